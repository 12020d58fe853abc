//! The table-miss entries of a session's switch, which are sent again if the switch refuses them.
//!
//! A switch may refuse an entry temporarily, because its table is full or it is starting. Without a table-miss entry it drops
//! packets that match no other entry (1.3.5 section 5.4), and no program would ever see them.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// The delay until refused entries are sent again; it doubles each time.
const BACKOFF: Duration = Duration::from_secs(1);

/// The maximum delay.
const MAX_BACKOFF: Duration = Duration::from_secs(8);

/// The sent table-miss entries, and the refused ones.
#[derive(Debug)]
pub(super) struct TableMisses {
    /// The xid of each sent entry, and its table.
    sent: Vec<(u32, u8)>,
    /// The tables whose entries were refused.
    refused: BTreeSet<u8>,
    /// The time when refused entries are sent again.
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
    /// Notes that the entry of this table was sent with `xid`.
    pub fn note_sent(&mut self, table_id: u8, xid: u32) {
        self.sent.push((xid, table_id));
    }

    /// Handles the refusal of the message with `xid`. Returns the table, if the message added a table-miss entry.
    pub fn note_refused(&mut self, xid: u32) -> Option<u8> {
        let at = self.sent.iter().position(|&(sent, _)| sent == xid)?;
        let (_, table_id) = self.sent.swap_remove(at);
        self.refused.insert(table_id);
        Some(table_id)
    }

    /// Returns the number of tables with entries sent before the switch has reported its number of tables: 0 or 1.
    pub fn count(&self) -> u8 {
        u8::from(!self.sent.is_empty() || !self.refused.is_empty())
    }

    /// Returns whether no refused entry has to be sent again.
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
