//! Waiting for input, for timers, and until output is accepted.

use super::{EVENTS, INBOX, LISTENERS, RING, Ready, Ring, TICK};
use crate::ring::reader::Reader;
use crate::ring::rings::Registration;
use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use urtica_socket::{EventFlags, Poller};

pub(super) fn open_poller(reader: &Reader, registration: &Registration) -> io::Result<Poller> {
    let poller = Poller::new()?;
    poller.add(reader.as_fd(), RING, EventFlags::IN)?;
    poller.add(registration.wakeup(), INBOX, EventFlags::IN)?;
    for listener in &registration.shared().listeners {
        let interest = EventFlags::IN | EventFlags::EXCLUSIVE;
        poller.add(listener.as_fd(), LISTENERS, interest)?;
    }
    Ok(poller)
}

impl Ring {
    /// Handles all due timers.
    pub(super) fn handle_time(&mut self) {
        self.flush_if_due();
        if Instant::now() < self.next_tick {
            return;
        }
        // Input that has arrived is handled first: if the program was late, the input may show that the switch is alive.
        if self.has_input() && !std::mem::replace(&mut self.is_tick_late, true) {
            return;
        }
        self.is_tick_late = false;
        self.next_tick = Instant::now() + TICK;
        self.check_for_lost();
        let ended = self.sessions.handle_timeout();
        self.note_reports(None);
        for number in self.peers.numbers() {
            let Some(peer) = self.peers.get_mut(number) else {
                continue;
            };
            let before = peer.output.len();
            self.sessions.take_output(peer.session, &mut peer.output);
            let (has_logged, has_ended) =
                (peer.output.len() > before, ended.contains(&peer.session));
            if has_logged {
                self.flush_peer(number);
            }
            if has_ended {
                self.close(number);
            }
        }
    }

    /// Updates the events that a connection is watched for.
    pub(super) fn watch(&mut self, number: u64) {
        let Some(peer) = self.peers.get_mut(number) else {
            return;
        };
        let interest = peer.interest();
        if peer.watched == interest {
            return;
        }
        peer.watched = interest;
        if self.poller.modify(peer.socket(), number, interest).is_err() {
            self.close(number);
        }
    }

    pub(super) fn make_ready(&mut self, number: u64) {
        if let Some(peer) = self.peers.get_mut(number) {
            if !std::mem::replace(&mut peer.is_ready, true) {
                self.ready.push_back(number);
            }
        }
    }

    fn has_input(&mut self) -> bool {
        self.reading.is_some() || !self.ready.is_empty() || self.reader.has_input()
    }

    pub(super) fn ready_now(&mut self) -> Ready {
        let input = self.has_input();
        Ready {
            input,
            control: self
                .events
                .as_ref()
                .is_some_and(|events| !events.is_empty()),
            error: false,
            output: !input && !self.unflushed.is_empty() && self.flush_interval.is_none(),
        }
    }

    /// Returns the time until the next timer is due.
    pub(super) fn next_due(&self, now: Instant) -> Duration {
        let due = self
            .flush_due
            .map_or(self.next_tick, |due| due.min(self.next_tick));
        due.saturating_duration_since(now)
    }

    pub(super) fn wait(&mut self, timeout: Duration) -> io::Result<()> {
        let mut events = Vec::with_capacity(EVENTS);
        self.poller.wait(&mut events, Some(timeout))?;
        for event in events {
            match event.data.u64() {
                RING => {}
                LISTENERS => self.registration.accept_all(),
                INBOX => {
                    for connection in self.registration.take_connections() {
                        self.add(connection);
                    }
                }
                number => self.handle_event(number, event.flags),
            }
        }
        Ok(())
    }

    fn handle_event(&mut self, number: u64, flags: EventFlags) {
        use EventFlags as Flags;
        let Some(peer) = self.peers.get_mut(number) else {
            return;
        };
        peer.is_closing |= flags.intersects(Flags::RDHUP | Flags::HUP | Flags::ERR);
        if peer.is_stalled {
            self.flush_peer(number);
        }
        self.make_ready(number);
    }
}
