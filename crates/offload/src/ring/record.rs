//! A message as the program sees it, wherever it came from.

use super::queue::RawRecord;
use std::ops::Range;
use urtica_wire::{
    BufferId, DatapathId, DecodeError, Header, MacAddr, Message, PacketIn, PortNo, Version,
};

/// A kind of messages that a program can subscribe to: those that a switch sends unasked. Their numbers are the same in both
/// versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MessageType {
    /// A packet for the program (OFPT_PACKET_IN).
    PacketIn = 10,
    /// A flow entry was removed (OFPT_FLOW_REMOVED).
    FlowRemoved = 11,
    /// A port was added, removed or changed (OFPT_PORT_STATUS).
    PortStatus = 12,
}

impl MessageType {
    const ALL: [Self; 3] = [Self::PacketIn, Self::FlowRemoved, Self::PortStatus];

    /// The bit that stands for it.
    pub(crate) fn bit(self) -> u64 {
        1 << self as u32
    }

    fn from_wire(number: u8) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|message_type| *message_type as u8 == number)
    }
}

/// A switch, once it is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingSwitch {
    /// Its datapath id.
    pub datapath_id: DatapathId,
    /// The version that it speaks.
    pub version: Version,
}

/// A message, and where in it things are. It borrows the ring, or what was read from the socket: nothing has been copied.
#[derive(Clone, Copy, Debug)]
pub struct Record<'r> {
    switch: RingSwitch,
    message_type: MessageType,
    xid: u32,
    buffer_id: BufferId,
    in_port: PortNo,
    frame: &'r [u8],
    message: &'r [u8],
}

impl<'r> Record<'r> {
    /// As the kernel has described it. `None` where it is of a type that it does not describe, or not well-formed: then it has told
    /// where the message is and not more.
    pub(crate) fn of_kernel(
        switch: RingSwitch,
        raw: &RawRecord,
        messages: &'r [u8],
    ) -> Option<Self> {
        let message = &messages[raw.at as usize..][..raw.bytes.into()];
        match MessageType::from_wire(raw.message_type)? {
            MessageType::PacketIn => Some(Self {
                switch,
                message_type: MessageType::PacketIn,
                xid: raw.xid,
                buffer_id: BufferId(raw.buffer_id),
                in_port: PortNo(raw.in_port),
                frame: &message[raw.frame_at as usize..][..raw.frame_bytes as usize],
                message,
            }),
            _ => Self::of_message(switch, message),
        }
    }

    /// The same, read from the message here. `None` where it is of another type, or not well-formed.
    pub(crate) fn of_message(switch: RingSwitch, message: &'r [u8]) -> Option<Self> {
        let header = Header::peek(message)?;
        let message_type = MessageType::from_wire(header.message_type)?;
        if header.version != switch.version.to_wire() {
            return None;
        }
        let (_, decoded) = Message::decode(message).ok()?;
        let (buffer_id, in_port, frame) = match &decoded {
            Message::PacketIn(packet) => (packet.buffer_id, packet.in_port, packet.data),
            _ => (BufferId::NONE, PortNo::ANY, &message[..0]),
        };
        Some(Self {
            switch,
            message_type,
            xid: header.xid,
            buffer_id,
            in_port,
            frame,
            message,
        })
    }

    /// The switch that it came from.
    pub fn switch(&self) -> RingSwitch {
        self.switch
    }

    /// The switch's datapath id.
    pub fn datapath_id(&self) -> DatapathId {
        self.switch.datapath_id
    }

    /// Its type.
    pub fn message_type(&self) -> MessageType {
        self.message_type
    }

    /// Its transaction id.
    pub fn xid(&self) -> u32 {
        self.xid
    }

    /// Of a packet-in: under which id the switch keeps the packet, if it does.
    pub fn buffer_id(&self) -> BufferId {
        self.buffer_id
    }

    /// Of a packet-in: the port that the packet came in by; [`PortNo::ANY`] where a 1.3 switch left that out.
    pub fn in_port(&self) -> PortNo {
        self.in_port
    }

    /// Of a packet-in: the packet from its Ethernet header on, as far as it was sent. Otherwise empty.
    pub fn frame(&self) -> &'r [u8] {
        self.frame
    }

    /// Of a packet-in: the Ethernet destination; all zeros where less than an Ethernet header was sent.
    pub fn eth_dst(&self) -> MacAddr {
        self.mac_at(0)
    }

    /// Of a packet-in: the Ethernet source; all zeros where less than an Ethernet header was sent.
    pub fn eth_src(&self) -> MacAddr {
        self.mac_at(6)
    }

    fn mac_at(&self, at: usize) -> MacAddr {
        let header = self.frame.first_chunk::<14>();
        let bytes = header.and_then(|header| header[at..].first_chunk::<6>());
        bytes.map_or(MacAddr::ZERO, |&bytes| MacAddr::new(bytes))
    }

    /// Where in the message the packet is.
    pub fn frame_range(&self) -> Range<usize> {
        let start = self.frame.as_ptr() as usize - self.message.as_ptr() as usize;
        start..start + self.frame.len()
    }

    /// The whole message, from its OpenFlow header on.
    pub fn message(&self) -> &'r [u8] {
        self.message
    }

    /// The packet-in with all its fields.
    ///
    /// # Errors
    /// [`DecodeError`] where it is none.
    pub fn packet_in(&self) -> Result<PacketIn<'r>, DecodeError> {
        PacketIn::decode(self.switch.version, &self.message[Header::SIZE..])
    }
}
