//! A program's messages to a switch.

use super::record::{Record, RingSwitch};
use urtica_controller::EntryOptions;
use urtica_wire::{BufferId, EncodeError, ExactFlowMod, ExactMatch, Message, OutputPacket, PortNo};

/// Messages to one switch, sent when they are flushed: see [`Ring::flush`](super::Ring::flush).
pub struct Replies<'r> {
    switch: RingSwitch,
    output: &'r mut Vec<u8>,
}

impl<'r> Replies<'r> {
    pub(crate) fn new(switch: RingSwitch, output: &'r mut Vec<u8>) -> Self {
        Self { switch, output }
    }

    /// Sends the packet of a packet-in out of a port. The reply has the packet-in's xid.
    ///
    /// # Errors
    /// [`EncodeError`] if the switch's version cannot express it; then nothing is written.
    pub fn forward(&mut self, record: &Record, port: PortNo) -> Result<(), EncodeError> {
        let packet = OutputPacket {
            buffer_id: record.buffer_id(),
            in_port: record.in_port(),
            port,
            data: match record.buffer_id() {
                BufferId::NONE => record.frame(),
                _ => &[],
            },
        };
        packet.write(self.switch.version, record.xid(), self.output)
    }

    /// Adds a flow entry for packets like that of the packet-in, and sends the packet itself out of this port.
    ///
    /// # Errors
    /// [`EncodeError`] if the switch's version cannot express it; then nothing is written.
    pub fn forward_with_rule(
        &mut self,
        record: &Record,
        port: PortNo,
        options: EntryOptions,
    ) -> Result<(), EncodeError> {
        let flow_mod = ExactFlowMod {
            match_: ExactMatch {
                in_port: record.in_port(),
                frame: record.frame(),
            },
            port,
            buffer_id: record.buffer_id(),
            options,
            table_id: 0,
        };
        flow_mod.write(self.switch.version, record.xid(), self.output)?;
        match record.buffer_id() {
            BufferId::NONE => self.forward(record, port),
            _ => Ok(()),
        }
    }

    /// Writes any message.
    ///
    /// # Errors
    /// [`EncodeError`] if the switch's version cannot express it; then nothing is written.
    pub fn write(&mut self, xid: u32, message: &Message) -> Result<(), EncodeError> {
        message.encode(self.switch.version, xid, self.output)
    }

    /// Writes encoded messages.
    pub fn write_bytes(&mut self, messages: &[u8]) {
        self.output.extend_from_slice(messages);
    }
}
