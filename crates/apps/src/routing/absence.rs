//! Switches that are disconnected, or have reconnected just now.
//!
//! **Why.** A switch that loses its controller goes on forwarding by its entries. So a flow that has no other path keeps the
//! one over it for a while: until its links, which cannot be seen meanwhile, are discovered again.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use urtica_wire::DatapathId;

/// How long a switch may be away: as long as one may be silent.
pub(super) const ABSENCE: Duration = Duration::from_secs(15);

/// How long after the controller's start all switches that can have connected again: they try every 8 s at least.
pub(super) const BACK_WITHIN: Duration = Duration::from_secs(9);

/// How long after a switch has reconnected its links are discovered again, even if some probes are lost.
const RETURN: Duration = Duration::from_secs(2);

/// Until when each switch is believed to forward as before. Contains only switches on paths, and switches that have
/// reconnected in the last moments.
#[derive(Debug, Default)]
pub(super) struct Absences {
    away: BTreeMap<DatapathId, Instant>,
    back: BTreeMap<DatapathId, Instant>,
}

impl Absences {
    /// A switch of a path is not connected; its time runs from the first such report.
    pub fn note_away(&mut self, switch: DatapathId, now: Instant) {
        self.away.entry(switch).or_insert(now + ABSENCE);
    }

    /// A switch has connected.
    pub fn note_back(&mut self, switch: DatapathId, now: Instant) {
        self.away.remove(&switch);
        self.back.insert(switch, now + RETURN);
    }

    /// Whether a switch is believed to forward as before, though it or its links may not be seen.
    pub fn is_believed(&self, switch: DatapathId, now: Instant) -> bool {
        let until = [self.away.get(&switch), self.back.get(&switch)];
        until.into_iter().flatten().any(|until| now < *until)
    }

    /// When the first of them is no longer believed.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.away.values().chain(self.back.values()).copied().min()
    }

    /// Forgets those that are no longer believed. All paths have been checked since then.
    pub fn forget_past(&mut self, now: Instant) {
        self.away.retain(|_, until| now < *until);
        self.back.retain(|_, until| now < *until);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_is_believed_for_a_while_and_after_its_return_for_a_moment() {
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
