//! Links that were lost recently, which drawings show as down.
//!
//! Discovery forgets a link when it is lost. This module follows its events and keeps lost links for ten minutes, as the page
//! does.

use crate::live::Live;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::pending;
use std::time::{Duration, Instant};
use urtica_controller::Events;
use urtica_services::{Discovery, DiscoveryEvent, DownReason};
use urtica_topology::{DirectedLink, Topology};

/// The time for which lost links are kept.
const KEPT: Duration = Duration::from_secs(600);

/// The maximum number of lost links. Further ones are not kept.
const MOST: usize = 4_096;

/// Lost links, with the times of the losses. Each is kept in one direction, from its lower end.
#[derive(Default)]
pub(crate) struct LostLinks(Mutex<BTreeMap<DirectedLink, Instant>>);

impl LostLinks {
    /// Follows the events of the running discovery.
    pub async fn follow(&self, live: &Live) -> Infallible {
        let mut changes = live.watch_sources();
        let mut discovery = changes.borrow_and_update().discovery.clone();
        let mut events = discovery.as_ref().map(Discovery::events);
        loop {
            tokio::select! {
                changed = changes.changed() => {
                    if changed.is_err() {
                        return pending().await;
                    }
                    let new = changes.borrow_and_update().discovery.clone();
                    let is_same = match (&discovery, &new) {
                        (Some(old), Some(new)) => old.ptr_eq(new),
                        (old, new) => old.is_none() && new.is_none(),
                    };
                    if !is_same {
                        // It is unknown whether these links are still down.
                        self.0.lock().clear();
                        events = new.as_ref().map(Discovery::events);
                        discovery = new;
                    }
                }
                event = next_of(&mut events) => match event {
                    Some(event) => self.see(&event, Instant::now()),
                    None => events = None,
                }
            }
        }
    }

    fn see(&self, event: &DiscoveryEvent, now: Instant) {
        let mut lost = self.0.lock();
        match *event {
            DiscoveryEvent::LinkUp(link) => {
                lost.remove(&lower(link));
            }
            // A moved link is up at another port.
            DiscoveryEvent::LinkDown { link, reason } if reason != DownReason::Moved => {
                lost.retain(|_, since| now.duration_since(*since) < KEPT);
                if lost.len() < MOST {
                    lost.insert(lower(link), now);
                }
            }
            _ => {}
        }
    }

    /// Returns the links that were lost and not replaced: no link of this topology has one of their ports.
    pub fn missing(&self, topology: &Topology, now: Instant) -> Vec<DirectedLink> {
        let lost = self.0.lock();
        let is_free = |port| topology.link_ports().binary_search(&port).is_err();
        let missing = lost.iter().filter(|(link, since)| {
            now.duration_since(**since) < KEPT && is_free(link.from) && is_free(link.to)
        });
        missing.map(|(link, _)| *link).collect()
    }
}

/// Returns the next event of discovery; never returns without discovery.
async fn next_of(events: &mut Option<Events<DiscoveryEvent>>) -> Option<DiscoveryEvent> {
    match events {
        Some(events) => events.next().await,
        None => pending().await,
    }
}

/// Returns the direction in which a link is kept.
fn lower(link: DirectedLink) -> DirectedLink {
    link.min(link.reversed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use urtica_topology::PortId;
    use urtica_wire::{DatapathId, PortNo};

    fn link(a: u64, b: u64) -> DirectedLink {
        let port = |switch, number: u64| PortId::new(DatapathId(switch), PortNo(number as u32));
        DirectedLink::new(port(a, b), port(b, a))
    }

    fn down(link: DirectedLink, reason: DownReason) -> DiscoveryEvent {
        DiscoveryEvent::LinkDown { link, reason }
    }

    fn topology(links: &[DirectedLink]) -> Topology {
        let both = links.iter().flat_map(|link| [*link, link.reversed()]);
        Topology::new((1..=4).map(DatapathId), both)
    }

    #[test]
    fn lost_links_are_missing_until_they_are_found_again_or_forgotten() {
        let (lost, now) = (LostLinks::default(), Instant::now());
        let known = topology(&[]);
        for link in [link(1, 2), link(2, 1), link(3, 2)] {
            lost.see(&down(link, DownReason::Port), now);
        }
        assert_eq!(lost.missing(&known, now), [link(1, 2), link(2, 3)]);
        lost.see(&DiscoveryEvent::LinkUp(link(2, 1)), now);
        assert_eq!(lost.missing(&known, now), [link(2, 3)]);
        assert_eq!(lost.missing(&known, now + KEPT), []);
    }

    #[test]
    fn links_that_were_moved_or_replaced_are_not_missing() {
        let (lost, now) = (LostLinks::default(), Instant::now());
        lost.see(&down(link(1, 2), DownReason::Moved), now);
        assert_eq!(lost.missing(&topology(&[]), now), []);
        lost.see(&down(link(1, 2), DownReason::TimedOut), now);
        let other = DirectedLink::new(link(1, 2).from, link(3, 4).from);
        assert_eq!(lost.missing(&topology(&[other]), now), []);
    }

    #[test]
    fn the_number_of_lost_links_is_bounded() {
        let (lost, now) = (LostLinks::default(), Instant::now());
        for other in 2..=MOST as u64 + 10 {
            lost.see(&down(link(1, other), DownReason::Port), now);
        }
        assert_eq!(lost.0.lock().len(), MOST);
        lost.see(&down(link(1, 2), DownReason::Port), now + KEPT);
        assert_eq!(lost.0.lock().len(), 1);
    }
}
