//! Flows whose first entry a full switch may have refused.
//!
//! **Why.** A flow ends when its first switch reports that its entry has expired. A refused entry never expires, and a
//! refusal does not identify its flow: switches return 64 bytes of the message, which end before the source address.
//!
//! **What.** If a switch's table is full, all flows whose first entry was sent there in the last [`REFUSED_WITHIN`] are
//! doubtful. They end when an unused entry would have expired. The next packet of a flow still in use sets up a path again.

use super::{ENTRY, Flow};
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};
use urtica_wire::DatapathId;

/// The maximum time between an entry and its refusal.
const REFUSED_WITHIN: Duration = Duration::from_secs(5);

/// The flows that recently received their first entry, and the doubtful ones.
#[derive(Debug, Default)]
pub(super) struct Doubtful {
    /// Recent flows by the switch of the first entry, oldest first.
    recent: BTreeMap<DatapathId, VecDeque<(Instant, Flow)>>,
    /// The doubtful flows, and the time when each ends.
    due: VecDeque<(Instant, Flow)>,
}

impl Doubtful {
    /// Notes that a switch is sent a flow's first entry.
    pub fn note_added(&mut self, switch: DatapathId, flow: Flow, now: Instant) {
        let recent = self.recent.entry(switch).or_default();
        while recent
            .front()
            .is_some_and(|(added, _)| *added + REFUSED_WITHIN < now)
        {
            recent.pop_front();
        }
        recent.push_back((now, flow));
    }

    /// Notes that a switch has refused an entry.
    pub fn note_refusal(&mut self, switch: DatapathId, now: Instant) {
        let recent = self.recent.remove(&switch).unwrap_or_default();
        let is_recent = |added: Instant| added + REFUSED_WITHIN >= now;
        let doubtful = recent.into_iter().filter(|(added, _)| is_recent(*added));
        let ends = now + Duration::from_secs(ENTRY.idle_timeout.into());
        self.due.extend(doubtful.map(|(_, flow)| (ends, flow)));
    }

    /// Removes and returns the flows that end now.
    pub fn take_due(&mut self, now: Instant) -> Vec<Flow> {
        let is_due = |(ends, _): &&(Instant, Flow)| *ends <= now;
        let count = self.due.iter().take_while(is_due).count();
        self.due.drain(..count).map(|(_, flow)| flow).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use urtica_wire::MacAddr;

    const SWITCH: DatapathId = DatapathId(1);
    const OTHER: DatapathId = DatapathId(2);

    fn flow(src: u64) -> Flow {
        Flow {
            tag: None,
            src: MacAddr::from_u64(src),
            dst: MacAddr::from_u64(0x99),
        }
    }

    #[test]
    fn recent_flows_of_a_full_switch_end() {
        let (mut doubtful, start) = (Doubtful::default(), Instant::now());
        doubtful.note_added(SWITCH, flow(1), start);
        let later = start + REFUSED_WITHIN + Duration::from_millis(1);
        doubtful.note_added(SWITCH, flow(2), later);
        doubtful.note_added(OTHER, flow(3), later);
        assert_eq!(doubtful.recent[&SWITCH].len(), 1, "an old one is forgotten");
        doubtful.note_refusal(SWITCH, later);
        doubtful.note_refusal(SWITCH, later);
        let end = later + Duration::from_secs(ENTRY.idle_timeout.into());
        assert_eq!(doubtful.take_due(end - Duration::from_millis(1)), []);
        assert_eq!(doubtful.take_due(end), [flow(2)]);
        assert_eq!(doubtful.take_due(end), []);
    }
}
