//! The back-off after a switch has refused an entry because its table is full.
//!
//! **Why.** The controller receives packets without an entry. If it added the entry again for each packet, a full switch
//! would have to refuse an entry per packet. So for a while no entry is added there, and packet-outs forward the packets.
//!
//! **How.** The first refusal starts a pause of [`PAUSE`]. A refusal soon after a pause starts one that is twice as long, up
//! to [`LONGEST_PAUSE`]. Refusals of entries that were sent before the first refusal arrived change nothing.

use std::time::{Duration, Instant};
use urtica_services::EVENT_INTERVAL;
use urtica_wire::{DatapathId, ErrorCode, ErrorMessage};

/// The first pause.
const PAUSE: Duration = Duration::from_secs(1);

/// The longest pause: entries expire while it lasts.
const LONGEST_PAUSE: Duration = Duration::from_secs(16);

/// The back-off of one switch.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FullTable(Option<BackOff>);

#[derive(Clone, Copy, Debug)]
struct BackOff {
    until: Instant,
    pause: Duration,
    told: Instant,
}

/// Returns `true` if a switch has refused an entry because its table is full (in 1.0: all its tables).
pub(crate) fn is_full(error: &ErrorMessage) -> bool {
    error.code == ErrorCode::FlowModFailedTableFull
}

impl FullTable {
    /// Returns `true` if entries may be added.
    #[inline]
    pub fn has_space(&self, now: Instant) -> bool {
        self.0.is_none_or(|back_off| back_off.until <= now)
    }

    /// Returns the end of the current or last pause.
    pub fn paused_until(&self) -> Option<Instant> {
        self.0.map(|back_off| back_off.until)
    }

    /// Handles a switch's refusal of a message.
    #[cold]
    pub fn handle_error(&mut self, switch: DatapathId, error: &ErrorMessage, now: Instant) {
        if is_full(error) {
            self.pause(switch, now);
        }
    }

    /// Handles the refusal of an entry by a full table. Returns `true` if it starts a pause, `false` during one.
    pub fn pause(&mut self, switch: DatapathId, now: Instant) -> bool {
        if !self.has_space(now) {
            return false;
        }
        let soon_after = self.0.filter(|last| now < last.until + last.pause);
        let pause = soon_after.map_or(PAUSE, |last| LONGEST_PAUSE.min(2 * last.pause));
        let told = self.0.map(|last| last.told);
        let told = told.filter(|told| now < *told + EVENT_INTERVAL);
        if told.is_none() {
            urtica_log::warn!(about: switch, dp_id = %switch, "the switch's flow table is full; adding no entries for a while and forwarding by packet-outs");
        }
        self.0 = Some(BackOff {
            until: now + pause,
            pause,
            told: told.unwrap_or(now),
        });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWITCH: DatapathId = DatapathId(1);

    fn error(code: ErrorCode) -> ErrorMessage<'static> {
        ErrorMessage { code, data: &[] }
    }

    #[test]
    fn pauses_grow_while_the_table_stays_full_and_start_again_later() {
        let mut table = FullTable::default();
        let mut now = Instant::now();
        assert!(table.has_space(now));
        for seconds in [1, 2, 4, 8, 16, 16] {
            assert!(table.pause(SWITCH, now));
            let end = now + Duration::from_secs(seconds);
            let before = end - Duration::from_millis(1);
            assert!(!table.pause(SWITCH, before), "an entry that was under way");
            assert!(!table.has_space(before) && table.has_space(end));
            now = end;
        }
        now += LONGEST_PAUSE;
        assert!(table.pause(SWITCH, now));
        assert!(table.has_space(now + PAUSE));
    }

    #[test]
    fn only_full_tables_cause_pauses() {
        let (mut table, now) = (FullTable::default(), Instant::now());
        table.handle_error(SWITCH, &error(ErrorCode::FlowModFailedOverlap), now);
        assert!(table.has_space(now));
        table.handle_error(SWITCH, &error(ErrorCode::FlowModFailedTableFull), now);
        assert!(!table.has_space(now));
    }
}
