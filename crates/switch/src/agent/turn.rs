//! Limits on the work for one controller, before other controllers and packets have their turn.

use crate::state_file::Durability;
use urtica_wire::{Header, Version};

/// Number of entries that one turn may visit, in some hundred microseconds.
const LOOKS: usize = 512;
/// Cost of a multipart request itself, as a number of visited entries.
const REQUEST_LOOKS: usize = 16;

/// The remaining allowance of a turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    /// Number of entries that may still be visited.
    pub looks: usize,
}

impl Turn {
    /// Creates a full turn.
    pub fn new() -> Self {
        Self { looks: LOOKS }
    }

    /// Returns whether entries may still be visited.
    pub fn may_look(&self) -> bool {
        self.looks > 0
    }

    /// Subtracts the cost of a multipart request.
    pub fn take_request(&mut self) {
        self.looks = self.looks.saturating_sub(REQUEST_LOOKS);
    }
}

/// The reason why a controller's message must wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Awaits {
    Nothing,
    /// A barrier waits for the end of the reply being written (1.3.5 section 6.2).
    Replies,
    /// A multipart request waits for this, for space for its own reply, and for the end of changes in progress.
    Room,
    /// A flow, group or meter mod waits for other controllers' multipart requests that wait for the end of changes. Otherwise a
    /// controller that sends changes without end would prevent others from reading.
    Readers,
}

/// Other controllers' work, for which a message may have to wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Others {
    /// A change to many entries is in progress.
    pub are_changing: bool,
    /// A multipart request waits only for the end of such a change.
    pub wait_to_read: bool,
    /// The durable changes, for which barriers may have to wait.
    pub durability: Durability,
}

impl Awaits {
    /// Returns the reason why a frame may have to wait.
    pub fn of(version: Version, frame: &[u8]) -> Self {
        let message_type = Header::peek(frame).map(|header| header.message_type);
        // OFPT_STATS_REQUEST and OFPT_BARRIER_REQUEST in 1.0, OFPT_MULTIPART_REQUEST and OFPT_BARRIER_REQUEST in 1.3.
        match (version, message_type) {
            (Version::Of10, Some(16)) | (Version::Of13, Some(18)) => Self::Room,
            (Version::Of10, Some(18)) | (Version::Of13, Some(20)) => Self::Replies,
            // OFPT_FLOW_MOD in 1.0; OFPT_FLOW_MOD, OFPT_GROUP_MOD and OFPT_METER_MOD in 1.3.
            (Version::Of10, Some(14)) | (Version::Of13, Some(14 | 15 | 29)) => Self::Readers,
            _ => Self::Nothing,
        }
    }
}
