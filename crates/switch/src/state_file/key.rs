//! The identity of a switch's run, and of an entry, in a state file and its journal.

use std::hash::{BuildHasher, RandomState};
use urtica_wire::{FlowMod, Match, Message, Version};

pub(super) const ID_BYTES: usize = 16;

/// The value for entries of 1.0 without a `dl_vlan_pcp`.
pub(super) const NO_PCP: u8 = u8::MAX;

/// Identifies a switch's run, so that a journal of another run is recognized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunId(pub [u8; ID_BYTES]);

impl RunId {
    /// Creates a unique id.
    pub fn new() -> Self {
        let random = || RandomState::new().hash_one(std::process::id());
        let both = u128::from(random()) << 64 | u128::from(random());
        Self(both.to_be_bytes())
    }
}

/// Returns a key that is unique for each entry.
pub(super) fn flow_key(
    version: Version,
    pcp_of_untagged: Option<u8>,
    table_id: u8,
    priority: u16,
    match_: &Match,
) -> Option<Vec<u8>> {
    let mut key = vec![version.to_wire(), pcp_of_untagged.unwrap_or(NO_PCP)];
    let flow_mod = FlowMod {
        table_id,
        priority,
        match_: match_.clone(),
        ..FlowMod::default()
    };
    let written = Message::FlowMod(flow_mod).encode(Version::Of13, 0, &mut key);
    written.ok().map(|()| key)
}
