//! Brings links up, once probes arrive in both directions, and takes them down.

use super::{Links, MAX_DAMPINGS_PER_PORT, Timer, both_ways};
use crate::discovery::{DiscoveryEvent, DownReason};
use std::time::Instant;
use urtica_topology::{DirectedLink, PortId};
use urtica_wire::{DatapathId, PortNo};

impl Links {
    pub(super) fn take_down(&mut self, port: PortId, reason: DownReason) {
        let Some(other) = self.ports.get_mut(port).and_then(|port| port.link.take()) else {
            return;
        };
        if let Some(other) = self.ports.get_mut(other) {
            other.link = None;
        }
        if let Some(offload) = &self.offload {
            offload.forget_probe(port);
            offload.forget_probe(other);
        }
        self.has_new_links = true;
        for link in both_ways(port, other) {
            self.events
                .push_back(DiscoveryEvent::LinkDown { link, reason });
        }
    }

    /// Notes probes that were settled at a port by the offload: all of them confirmed its known origin.
    pub(super) fn note_settled(&mut self, at: PortId) {
        let settled = self.offload.as_ref();
        let Some((probe, heard_at)) = settled.and_then(|offload| offload.settled_probe(at)) else {
            return;
        };
        let heard = self.ports.get_mut(at).and_then(|port| port.heard.as_mut());
        let Some(heard) = heard.filter(|heard| heard.from == probe.from) else {
            return;
        };
        heard.at = heard.at.max(heard_at);
        if let Some(sender) = self.ports.get_mut(probe.from) {
            sender.heard_stamp = sender.heard_stamp.max(probe.stamp);
        }
    }

    /// Brings a link up when both ports have heard each other, unless it is up already or is held down.
    pub(super) fn bring_up(&mut self, a: PortId, b: PortId, now: Instant) {
        if self.is_up(a, b) {
            return;
        }
        let ends = (a.min(b), a.max(b));
        self.evict_damping(ends);
        let damping = self.dampings.entry(ends).or_default();
        if damping.is_holding(now) {
            return;
        }
        let hold = damping.note_up(&self.config.damping, now);
        let expiry = damping.expires_at(&self.config.damping);
        let due = hold.map(|hold| now + hold).or(expiry);
        if let Some(due) = due {
            self.timers.set(Timer::Damping(ends.0, ends.1), due);
        }
        match hold {
            Some(held_for) => self.events.push_back(DiscoveryEvent::Flapping {
                link: DirectedLink::new(ends.0, ends.1),
                held_for,
            }),
            None => self.establish(a, b),
        }
    }

    /// Forgets the history of one of the lower end's other links if there are too many.
    fn evict_damping(&mut self, ends: (PortId, PortId)) {
        if self.dampings.contains_key(&ends) {
            return;
        }
        let (least, most) = (DatapathId(0), DatapathId(u64::MAX));
        let least = (ends.0, PortId::new(least, PortNo(0)));
        let most = (ends.0, PortId::new(most, PortNo(u32::MAX)));
        let mut known = self.dampings.range(least..=most).map(|(&ends, _)| ends);
        if let Some(first) = known.next() {
            if known.count() + 1 >= MAX_DAMPINGS_PER_PORT {
                self.dampings.remove(&first);
                self.timers.cancel(Timer::Damping(first.0, first.1));
            }
        }
    }

    fn establish(&mut self, a: PortId, b: PortId) {
        for link in both_ways(a, b) {
            if let Some(port) = self.ports.get_mut(link.from) {
                port.link = Some(link.to);
                port.classify_at = None;
            }
            self.events.push_back(DiscoveryEvent::LinkUp(link));
        }
        self.has_new_links = true;
    }

    pub(super) fn release(&mut self, a: PortId, b: PortId, now: Instant) {
        let Some(damping) = self.dampings.get(&(a, b)) else {
            return;
        };
        if damping.is_holding(now) {
            return;
        }
        match damping.expires_at(&self.config.damping) {
            Some(expiry) if expiry > now => {
                self.timers.set(Timer::Damping(a, b), expiry);
                if self.hears(a, b) && self.hears(b, a) && !self.is_up(a, b) {
                    self.establish(a, b);
                }
            }
            _ => drop(self.dampings.remove(&(a, b))),
        }
    }
}
