//! A hash over everything that happens in a run, to compare runs.
//!
//! It detects accidental differences. It is not cryptographic: collisions can be constructed.

use crate::watch::{Event, Violation, Watcher};
use crate::{End, LinkId, SwitchId};
use std::fmt;
use std::time::Duration;

/// Hashes all events, with their times and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digest {
    hash: u64,
    events: u64,
}

impl Digest {
    /// Returns the digest of no events.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of hashed events.
    pub fn events(&self) -> u64 {
        self.events
    }

    fn add(&mut self, word: u64) {
        // Folded multiplication: xors the product's upper half into its lower half, so that each bit affects bits above and
        // below it.
        let product = u128::from(self.hash.rotate_left(5) ^ word) * 0x9e37_79b9_7f4a_7c15_u128;
        self.hash = product as u64 ^ (product >> 64) as u64 ^ word.rotate_left(17);
    }

    fn add_words<const N: usize>(&mut self, words: [u64; N]) {
        words.into_iter().for_each(|word| self.add(word));
    }

    fn add_bytes(&mut self, bytes: &[u8]) {
        self.add(bytes.len() as u64);
        for chunk in bytes.chunks(size_of::<u64>()) {
            let mut word = [0; size_of::<u64>()];
            word[..chunk.len()].copy_from_slice(chunk);
            self.add(u64::from_le_bytes(word));
        }
    }

    fn add_frame(&mut self, kind: u64, LinkId(link): LinkId, end: End, frame: &[u8]) {
        let (owner, port) = match end {
            End::Switch(SwitchId(switch), port_no) => (u64::from(switch), u64::from(port_no.0)),
            End::Host(host) => (u64::from(host.0), u64::MAX),
        };
        self.add_words([kind, link.into(), owner, port]);
        self.add_bytes(frame);
    }

    fn add_control(&mut self, kind: u64, SwitchId(switch): SwitchId, bytes: &[u8]) {
        self.add_words([kind, switch.into()]);
        self.add_bytes(bytes);
    }
}

impl Watcher for Digest {
    fn see(&mut self, now: Duration, event: &Event<'_>) -> Result<(), Violation> {
        self.events += 1;
        self.add(now.as_nanos() as u64);
        match *event {
            Event::Sent(link, end, frame) => self.add_frame(0, link, end, frame),
            Event::Arrived(link, end, frame) => self.add_frame(1, link, end, frame),
            Event::Lost(link, loss, frame) => {
                self.add_words([2, link.0.into(), loss as u64]);
                self.add_bytes(frame);
            }
            Event::Cut(link) => self.add_words([3, link.0.into()]),
            Event::Repaired(link) => self.add_words([4, link.0.into()]),
            Event::SwitchStopped(switch) => self.add_control(5, switch, &[]),
            Event::SwitchStarted(switch) => self.add_control(6, switch, &[]),
            Event::ControllerStopped => self.add(7),
            Event::ControllerStarted => self.add(8),
            Event::Connected(switch) => self.add_control(9, switch, &[]),
            Event::Disconnected(switch, reason) => self.add_control(10, switch, reason.as_bytes()),
            Event::ToSwitch(switch, bytes) => self.add_control(11, switch, bytes),
            Event::ToController(switch, bytes) => self.add_control(12, switch, bytes),
            Event::Moved(link, end) => self.add_frame(13, link, end, &[]),
        }
        Ok(())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x} over {} events", self.hash, self.events)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HostId;
    use crate::watch::Loss;
    use std::collections::BTreeSet;

    #[test]
    fn hashes_all_parts_of_an_event() {
        let frame = &[1, 2, 3][..];
        let (link, host) = (LinkId(0), End::Host(HostId(0)));
        let ms = Duration::from_millis;
        let events = [
            (ms(1), Event::Sent(link, host, frame)),
            (ms(2), Event::Sent(link, host, frame)),
            (ms(1), Event::Sent(LinkId(1), host, frame)),
            (ms(1), Event::Sent(link, End::Host(HostId(1)), frame)),
            (ms(1), Event::Sent(link, host, &[1, 2])),
            (ms(1), Event::Sent(link, host, &[1, 2, 4])),
            (ms(1), Event::Arrived(link, host, frame)),
            (ms(1), Event::Lost(link, Loss::Cut, frame)),
            (ms(1), Event::Lost(link, Loss::Drawn, frame)),
            (ms(1), Event::ToSwitch(SwitchId(0), frame)),
            (ms(1), Event::ToController(SwitchId(0), frame)),
            (ms(1), Event::ControllerStopped),
            (ms(1), Event::Cut(link)),
        ];
        let hashes = events.map(|(now, event)| {
            let mut digest = Digest::new();
            digest.see(now, &event).unwrap();
            digest.to_string()
        });
        assert_eq!(hashes.iter().collect::<BTreeSet<_>>().len(), events.len());
    }

    #[test]
    fn the_order_of_options_matters() {
        let see = |events: [Event<'_>; 2]| {
            let mut digest = Digest::new();
            events
                .iter()
                .for_each(|event| digest.see(Duration::ZERO, event).unwrap());
            assert_eq!(digest.events(), 2);
            digest
        };
        let (stop, start) = (Event::ControllerStopped, Event::ControllerStarted);
        assert_ne!(see([stop, start]), see([start, stop]));
        assert_eq!(see([stop, start]), see([stop, start]));
    }
}
