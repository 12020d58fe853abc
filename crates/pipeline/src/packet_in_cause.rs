//! Causes of packet-ins.

use urtica_wire::PacketInReason;

/// The reason for a packet-in, and its form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketInCause {
    /// Why.
    pub reason: PacketInReason,
    /// The table whose entry sent it; 0 for a packet-out.
    pub table_id: u8,
    /// That entry's cookie; all ones if there is none, as for a packet-out.
    pub cookie: u64,
    /// The action's number of bytes to send; [`CONTROLLER_NO_BUFFER`](urtica_wire::CONTROLLER_NO_BUFFER) if no action sent
    /// it.
    pub max_len: u16,
}
