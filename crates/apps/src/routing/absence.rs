//! Switches whose connection is gone, or has come back a moment ago.
//!
//! **Why.** A switch that loses its controller goes on forwarding by the entries that it has. So a flow that has no other
//! way keeps the one over it, for a while: until its links, which cannot be seen meanwhile, are found again.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use urtica_wire::DatapathId;

/// How long a switch may be away: as long as one may be silent.
pub(super) const ABSENCE: Duration = Duration::from_secs(15);

/// How long after the controller has started all switches have connected again that can: they try every 8 s at least.
pub(super) const BACK_WITHIN: Duration = Duration::from_secs(9);

/// How long after a switch has come back its links are found again, even where some probes are lost.
const RETURN: Duration = Duration::from_secs(2);

/// Until when each is believed to forward as it did. There are no more than switches on paths, and switches that have
/// come back in the last moments.
#[derive(Debug, Default)]
pub(super) struct Absences {
    away: BTreeMap<DatapathId, Instant>,
    back: BTreeMap<DatapathId, Instant>,
}

impl Absences {
    /// A switch of a path is not connected: since it was seen to be so first.
    pub fn note_away(&mut self, switch: DatapathId, now: Instant) {
        self.away.entry(switch).or_insert(now + ABSENCE);
    }

    /// A switch has connected.
    pub fn note_back(&mut self, switch: DatapathId, now: Instant) {
        self.away.remove(&switch);
        self.back.insert(switch, now + RETURN);
    }

    /// Whether a switch is believed to forward as it did, though it or its links may not be seen.
    pub fn is_believed(&self, switch: DatapathId, now: Instant) -> bool {
        let until = [self.away.get(&switch), self.back.get(&switch)];
        until.into_iter().flatten().any(|until| now < *until)
    }

    /// When the next is not believed any more.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.away.values().chain(self.back.values()).copied().min()
    }

    /// Forgets those that are not believed any more. All paths have been looked at since then.
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
