//! Switches that are disconnected, or have reconnected just now.
//!
//! **Why.** A switch that loses its controller continues to forward by its entries. So a flow that has no other path keeps
//! the one over that switch for a while, until the switch's links are discovered again.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use urtica_wire::DatapathId;

/// The time for which a switch may be away: as long as it may be silent.
pub(super) const ABSENCE: Duration = Duration::from_secs(15);

/// The time after the controller's start by which all reachable switches have reconnected: they try at least every 8 s.
pub(super) const BACK_WITHIN: Duration = Duration::from_secs(9);

/// The time after a switch's return by which its links are discovered again, even if some probes are lost.
const RETURN: Duration = Duration::from_secs(2);

/// The times until which switches are believed to forward as before. Contains only switches of paths, and switches that
/// have just reconnected.
#[derive(Debug, Default)]
pub(super) struct Absences {
    away: BTreeMap<DatapathId, Instant>,
    back: BTreeMap<DatapathId, Instant>,
}

impl Absences {
    /// Notes that a switch of a path is not connected. Its time runs from the first such note.
    pub fn note_away(&mut self, switch: DatapathId, now: Instant) {
        self.away.entry(switch).or_insert(now + ABSENCE);
    }

    /// Notes that a switch has connected.
    pub fn note_back(&mut self, switch: DatapathId, now: Instant) {
        self.away.remove(&switch);
        self.back.insert(switch, now + RETURN);
    }

    /// Returns `true` if a switch is believed to forward as before, even if it or its links are not visible.
    pub fn is_believed(&self, switch: DatapathId, now: Instant) -> bool {
        let until = [self.away.get(&switch), self.back.get(&switch)];
        until.into_iter().flatten().any(|until| now < *until)
    }

    /// Returns the time at which the first switch stops being believed.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.away.values().chain(self.back.values()).copied().min()
    }

    /// Forgets the switches that are no longer believed. The caller has checked all paths since their time ended.
    pub fn forget_past(&mut self, now: Instant) {
        self.away.retain(|_, until| now < *until);
        self.back.retain(|_, until| now < *until);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn believes_absent_and_returned_switches_for_a_while() {
        let (switch, start) = (DatapathId(1), Instant::now());
        let mut absences = Absences::default();
        assert!(!absences.is_believed(switch, start));
        absences.note_away(switch, start);
        absences.note_away(switch, start + ABSENCE / 2);
        assert_eq!(absences.next_timeout(), Some(start + ABSENCE));
        assert!(absences.is_believed(switch, start + ABSENCE - RETURN));
        assert!(!absences.is_believed(switch, start + ABSENCE));
        absences.note_back(switch, start + RETURN);
        assert!(absences.is_believed(switch, start + RETURN));
        assert!(!absences.is_believed(switch, start + 2 * RETURN));
        absences.note_away(switch, start + 2 * RETURN);
        assert!(absences.is_believed(switch, start + ABSENCE));
        absences.forget_past(start + 2 * ABSENCE);
        assert_eq!(absences.next_timeout(), None);
    }
}
