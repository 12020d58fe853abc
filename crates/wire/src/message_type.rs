//! The numbers of message types, and their names in errors.

use crate::Version;

/// The type of a hello, in all versions.
pub(crate) const OFPT_HELLO: u8 = 0;
/// The type of a packet-in, in both versions.
pub(crate) const OFPT_PACKET_IN: u8 = 10;
/// `OFPT_FLOW_MOD`, in both versions.
pub(crate) const OFPT_FLOW_MOD: u8 = 14;

/// The names of 1.0's messages, by type.
const OF10: [&str; 22] = [
    "hello",
    "error message",
    "echo request",
    "echo reply",
    "vendor message",
    "features request",
    "features reply",
    "get config request",
    "get config reply",
    "set config",
    "packet-in",
    "flow removed",
    "port status",
    "packet-out",
    "flow mod",
    "port mod",
    "stats request",
    "stats reply",
    "barrier request",
    "barrier reply",
    "queue get config request",
    "queue get config reply",
];

/// The names of 1.3's messages, by type.
const OF13: [&str; 30] = [
    "hello",
    "error message",
    "echo request",
    "echo reply",
    "experimenter message",
    "features request",
    "features reply",
    "get-config request",
    "get-config reply",
    "set-config",
    "packet-in",
    "flow-removed",
    "port-status",
    "packet-out",
    "flow mod",
    "group mod",
    "port mod",
    "table mod",
    "multipart request",
    "multipart reply",
    "barrier request",
    "barrier reply",
    "queue-get-config request",
    "queue-get-config reply",
    "role request",
    "role reply",
    "get-async request",
    "get-async reply",
    "set-async",
    "meter mod",
];

/// The number of types in 1.0.
pub(crate) const OF10_TYPES: usize = OF10.len();

/// The number of types in 1.3.
pub(crate) const OF13_TYPES: usize = OF13.len();

/// Returns the name of a message type, for errors.
pub(crate) const fn name(version: Version, message_type: u8) -> &'static str {
    let names: &[&str] = match version {
        Version::Of10 => &OF10,
        Version::Of13 => &OF13,
    };
    if (message_type as usize) < names.len() {
        names[message_type as usize]
    } else {
        "message"
    }
}
