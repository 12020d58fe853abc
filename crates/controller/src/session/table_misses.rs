//! The table-miss entries of a session's switch: sent again where the switch refuses them.
//!
//! A switch may refuse an entry for a while, because its table is full or it is starting. Without a table-miss entry it drops
//! what matches nothing else (1.3.5 section 5.4), and no program would ever hear of it.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// How long until entries that were refused are sent again; each time twice as long.
const PAUSE: Duration = Duration::from_secs(1);

/// The longest such pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(8);

/// Which table-miss entries are with the switch, and which it has refused.
#[derive(Debug)]
pub(super) struct TableMisses {
    /// The xid that each was sent with, and its table.
    sent: Vec<(u32, u8)>,
    /// The tables whose entries were refused.
    refused: BTreeSet<u8>,
    /// When those are sent again.
    due: Option<Instant>,
    pause: Duration,
}

impl Default for TableMisses {
    fn default() -> Self {
        Self {
            sent: Vec::new(),
            refused: BTreeSet::new(),
            due: None,
            pause: PAUSE,
        }
    }
}

impl TableMisses {
    /// The entry of this table was sent with `xid`.
    pub fn note_sent(&mut self, table_id: u8, xid: u32) {
        self.sent.push((xid, table_id));
    }

    /// The switch refused what was sent with `xid`. Returns the table whose entry that was, if it was one.
    pub fn note_refused(&mut self, xid: u32) -> Option<u8> {
        let at = self.sent.iter().position(|&(sent, _)| sent == xid)?;
        let (_, table_id) = self.sent.swap_remove(at);
        self.refused.insert(table_id);
        Some(table_id)
    }

    /// The tables whose entries are to be sent again now.
    pub fn take_due(&mut self, now: Instant) -> BTreeSet<u8> {
        if self.refused.is_empty() {
            return BTreeSet::new();
        }
        let due = *self.due.get_or_insert(now + self.pause);
        if now < due {
            return BTreeSet::new();
        }
        self.due = None;
        self.pause = LONGEST_PAUSE.min(2 * self.pause);
        std::mem::take(&mut self.refused)
    }
}
