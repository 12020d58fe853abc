//! A message as the program sees it, independent of its origin.

use super::queue::RawRecord;
use std::ops::Range;
use urtica_wire::{
    BufferId, DatapathId, DecodeError, Header, MacAddr, Message, PacketIn, PortNo, Version,
};

/// A type of messages that a program can subscribe to: asynchronous messages of a switch. The numbers are equal in both
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

    /// Returns the bit for this type.
    pub(crate) fn bit(self) -> u64 {
        1 << self as u32
    }

    fn from_wire(number: u8) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|message_type| *message_type as u8 == number)
    }
}

/// A switch that is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingSwitch {
    /// Its datapath id.
    pub datapath_id: DatapathId,
    /// The version that it speaks.
    pub version: Version,
}

/// A message, and the locations of its fields. It borrows the ring, or a buffer read from the socket, without a copy.
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
    /// Creates a record from the kernel's description. Returns `None` if the message is malformed or of a type that the kernel
    /// does not describe: the kernel has then given only its location.
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

    /// Creates a record by parsing the message here. Returns `None` if it is of another type, or malformed.
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

    /// Returns the switch that sent the message.
    pub fn switch(&self) -> RingSwitch {
        self.switch
    }

    /// Returns the switch's datapath id.
    pub fn datapath_id(&self) -> DatapathId {
        self.switch.datapath_id
    }

    /// Returns the type.
    pub fn message_type(&self) -> MessageType {
        self.message_type
    }

    /// Returns the transaction id.
    pub fn xid(&self) -> u32 {
        self.xid
    }

    /// Returns the id under which the switch keeps the packet of a packet-in, if it does.
    pub fn buffer_id(&self) -> BufferId {
        self.buffer_id
    }

    /// Returns the ingress port of the packet of a packet-in; [`PortNo::ANY`] if a 1.3 switch omitted it.
    pub fn in_port(&self) -> PortNo {
        self.in_port
    }

    /// Returns the packet of a packet-in from its Ethernet header on, as far as the switch sent it. Otherwise empty.
    pub fn frame(&self) -> &'r [u8] {
        self.frame
    }

    /// Returns the Ethernet destination of a packet-in; all zeros if less than an Ethernet header was sent.
    pub fn eth_dst(&self) -> MacAddr {
        self.mac_at(0)
    }

    /// Returns the Ethernet source of a packet-in; all zeros if less than an Ethernet header was sent.
    pub fn eth_src(&self) -> MacAddr {
        self.mac_at(6)
    }

    fn mac_at(&self, at: usize) -> MacAddr {
        let header = self.frame.first_chunk::<14>();
        let bytes = header.and_then(|header| header[at..].first_chunk::<6>());
        bytes.map_or(MacAddr::ZERO, |&bytes| MacAddr::new(bytes))
    }

    /// Returns the packet's location in the message.
    pub fn frame_range(&self) -> Range<usize> {
        let start = self.frame.as_ptr() as usize - self.message.as_ptr() as usize;
        start..start + self.frame.len()
    }

    /// Returns the whole message, from its OpenFlow header on.
    pub fn message(&self) -> &'r [u8] {
        self.message
    }

    /// Returns the packet-in with all its fields.
    ///
    /// # Errors
    /// [`DecodeError`] if it is not a packet-in.
    pub fn packet_in(&self) -> Result<PacketIn<'r>, DecodeError> {
        PacketIn::decode(self.switch.version, &self.message[Header::SIZE..])
    }
}
