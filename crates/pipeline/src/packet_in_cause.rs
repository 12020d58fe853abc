//! Causes of packet-ins.

use urtica_wire::PacketInReason;

/// The reason for a packet-in, and the data that its message reports about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketInCause {
    /// The reason.
    pub reason: PacketInReason,
    /// The table whose entry sent the packet; 0 for a packet-out.
    pub table_id: u8,
    /// The entry's cookie; all ones without an entry, as for a packet-out.
    pub cookie: u64,
    /// The number of bytes to send, from the action; [`CONTROLLER_NO_BUFFER`](urtica_wire::CONTROLLER_NO_BUFFER) without an
    /// action.
    pub max_len: u16,
}
