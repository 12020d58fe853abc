//! The table-miss entries of a session's switch, which are sent again if the switch refuses them.
//!
//! A switch may refuse an entry for a while, because its table is full or it is starting. Without a table-miss entry it drops
//! packets that match no other entry (1.3.5 section 5.4), and no program would ever see them.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// The time until refused entries are sent again; it doubles each time.
const BACKOFF: Duration = Duration::from_secs(1);

/// The longest such time.
const MAX_BACKOFF: Duration = Duration::from_secs(8);

/// The sent table-miss entries, and those that the switch has refused.
#[derive(Debug)]
pub(super) struct TableMisses {
    /// The xid that each was sent with, and its table.
    sent: Vec<(u32, u8)>,
    /// The tables whose entries were refused.
    refused: BTreeSet<u8>,
    /// The time when they are sent again.
    due: Option<Instant>,
    backoff: Duration,
}

impl Default for TableMisses {
    fn default() -> Self {
        Self {
            sent: Vec::new(),
            refused: BTreeSet::new(),
            due: None,
            backoff: BACKOFF,
        }
    }
}

impl TableMisses {
    /// The entry of this table was sent with `xid`.
    pub fn note_sent(&mut self, table_id: u8, xid: u32) {
        self.sent.push((xid, table_id));
    }

    /// The switch refused the message with `xid`. Returns the table of the entry that it carried, if it was one of these.
    pub fn note_refused(&mut self, xid: u32) -> Option<u8> {
        let at = self.sent.iter().position(|&(sent, _)| sent == xid)?;
        let (_, table_id) = self.sent.swap_remove(at);
        self.refused.insert(table_id);
        Some(table_id)
    }

    /// Returns the number of tables whose entries were sent before the switch has reported its number of tables: 0 or 1.
    pub fn count(&self) -> u8 {
        u8::from(!self.sent.is_empty() || !self.refused.is_empty())
    }

    /// Returns whether no refused entry must be sent again.
    pub fn is_settled(&self) -> bool {
        self.refused.is_empty()
    }

    /// Removes and returns the tables whose entries must be sent again now.
    pub fn take_due(&mut self, now: Instant) -> BTreeSet<u8> {
        if self.refused.is_empty() {
            return BTreeSet::new();
        }
        let due = *self.due.get_or_insert(now + self.backoff);
        if now < due {
            return BTreeSet::new();
        }
        self.due = None;
        self.backoff = MAX_BACKOFF.min(2 * self.backoff);
        std::mem::take(&mut self.refused)
    }
}
