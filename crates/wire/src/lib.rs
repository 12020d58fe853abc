//! OpenFlow 1.0 and 1.3 messages, and the headers of the packets that they carry.
//!
//! [`Message`] and its parts are one set of types for both versions; the codecs convert them from and to bytes, [`text`]
//! reads and writes them in the syntax of `ovs-ofctl`, and [`packet`] reads and writes packet headers.
//!
//! **Why a separate crate.** Controller and switch share it, and so can any program that reads OpenFlow from a socket, a
//! capture or a test. It has no I/O, no threads and no clock, and depends on none of the other crates.
//!
//! # Reading
//! [`split_frame`] splits a stream into whole messages; [`Message::decode`] checks one and returns a value that borrows
//! from the bytes. No bytes make it panic: malformed ones are a [`DecodeError`], with the OFPT_ERROR code for the reply.
//!
//! ```
//! use urtica_wire::{Message, PortNo, split_frame};
//!
//! // A packet-in of OpenFlow 1.0, and the beginning of the next message.
//! let stream = [
//!     0x01, 0x0a, 0x00, 0x20, 0x00, 0x00, 0x00, 0x07, // version, type, length, xid
//!     0x00, 0x00, 0x00, 0x01, 0x00, 0x3c, 0x00, 0x03, 0x00, 0x00, // buffer_id, total_len, in_port, reason
//!     0x0a, 0x00, 0x00, 0x00, 0x00, 0x02, 0x0a, 0x00, 0x00, 0x00, 0x00, 0x01, 0x08, 0x00, // Ethernet
//!     0x01, 0x0a,
//! ];
//! let (frame, rest) = split_frame(&stream)?.expect("a whole message");
//! assert_eq!(rest, [0x01, 0x0a]);
//!
//! let (header, message) = Message::decode(frame)?;
//! assert_eq!(header.xid, 7);
//! let Message::PacketIn(packet) = message else {
//!     panic!("{message:?}");
//! };
//! assert_eq!(packet.in_port(), PortNo(3));
//! assert_eq!(packet.eth_src().to_string(), "0a:00:00:00:00:01");
//! # Ok::<(), urtica_wire::DecodeError>(())
//! ```
//!
//! # Writing
//! [`Message::encode`] appends to a buffer, in either version. If the version cannot express something, an [`EncodeError`]
//! names it, and the buffer is unchanged.
//!
//! ```
//! use urtica_wire::{
//!     Action, EtherType, FlowMod, Instruction, IpProtocol, List, Match, Message, PortNo, Version,
//! };
//!
//! let web_to_port_2 = FlowMod {
//!     priority: 10,
//!     match_: Match::any().eth_type(EtherType::IPV4).ip_proto(IpProtocol::TCP).tcp_dst(80),
//!     instructions: List::from(vec![Instruction::apply(vec![Action::output(PortNo(2))])]),
//!     ..FlowMod::default()
//! };
//! let mut out = Vec::new();
//! let message = Message::FlowMod(web_to_port_2.clone());
//! message.encode(Version::Of10, 1, &mut out)?;
//! message.encode(Version::Of13, 2, &mut out)?;
//!
//! let in_table_1 = FlowMod { table_id: 1, ..web_to_port_2 };
//! let error = Message::FlowMod(in_table_1).encode(Version::Of10, 3, &mut out).unwrap_err();
//! assert_eq!(error.to_string(), "OpenFlow 1.0 cannot express the table_id of a flow mod");
//! # Ok::<(), urtica_wire::EncodeError>(())
//! ```
//!
//! # Text
//! [`text`] reads and writes the syntax of `ovs-ofctl`.
//!
//! ```
//! use urtica_wire::text::message;
//! use urtica_wire::{FlowMod, FlowModCommand, Message};
//!
//! let flow = FlowMod::parse(FlowModCommand::Add, "priority=10,tcp,tp_dst=80,actions=output:2")?;
//! assert_eq!(flow.to_string(), "priority=10,tcp,tp_dst=80 actions=output:2");
//!
//! let (header, decoded) = Message::decode(&[0x04, 0x14, 0x00, 0x08, 0x00, 0x00, 0x00, 0x09])?;
//! let printed = message(&header, &decoded).to_string();
//! assert_eq!(printed, "OFPT_BARRIER_REQUEST (OF1.3) (xid=0x9):");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Cost
//! Decoding checks a message once and allocates nothing: a [`List`] remains bytes. The messages that a controller reads and
//! sends most often have special codecs, [`PacketIn::decode`], [`ExactFlowMod`] and [`OutputPacket`], which need a few
//! nanoseconds each (`cargo bench -p urtica-wire`).
//!
//! # Packets
//! [`packet`] has a view and a writer for each header that OpenFlow matches on, and [`packet::Headers`], which reads all
//! headers in one pass.

#![forbid(unsafe_code)]

mod action;
mod codec;
mod config;
mod elements;
mod error;
mod error_code;
mod exact;
mod features;
mod field;
mod flow_mod;
#[cfg(test)]
mod golden;
mod group;
mod header;
mod hello;
mod ids;
mod instruction;
mod mac;
mod matching;
mod message;
mod message_type;
mod meter;
mod mix;
mod multipart;
mod nicira;
pub mod packet;
mod packet_in;
mod packet_out;
mod port;
mod prefix;
mod protocol;
mod queue;
mod role;
mod table;
mod table_form;
mod version;

mod of10;
mod of13;

pub mod text;

pub use action::Action;
pub use codec::{Element, Iter, List};
pub(crate) use codec::{Put, Reader};
pub use config::{ConfigFlags, SwitchConfig};
pub use error::{DecodeError, EncodeError, Structure};
pub use error_code::ErrorCode;
pub use exact::{ExactFlowMod, OutputPacket};
pub use features::{Capabilities, Features};
pub use field::{Field, OxmField, RawField};
pub use flow_mod::{
    EntryOptions, FlowMod, FlowModCommand, FlowModFlags, FlowRemoved, FlowRemovedReason,
};
pub use group::{Bucket, GroupCapabilities, GroupMod, GroupModCommand, GroupType};
pub use header::{Header, split_frame};
pub use hello::{ErrorMessage, Experimenter, Hello, HelloElement};
pub use ids::{
    BufferId, CONTROLLER_NO_BUFFER, DatapathId, GROUP_ALL, GROUP_ANY, GROUP_MAX, METER_ALL,
    ParseDatapathIdError, ParsePortNoError, PortNo, QUEUE_ALL, TABLE_ALL,
};
pub use instruction::Instruction;
pub use mac::{MacAddr, ParseMacAddrError};
pub use matching::Match;
pub use matching::{ExactMatch, VLAN_PRESENT};
pub use message::Message;
pub use meter::{MeterBand, MeterFlags, MeterMod, MeterModCommand};
pub use mix::{MIX_STEP, mix};
pub use multipart::{
    AggregateStats, BucketCounter, Desc, ExperimenterMultipart, FlowStats, FlowStatsRequest,
    GroupDesc, GroupFeatures, GroupStats, MeterConfig, MeterFeatures, MeterStats, MultipartFlags,
    MultipartReply, MultipartReplyBody, MultipartRequest, MultipartRequestBody, PortStats,
    QueueStats, TableStats,
};
pub use nicira::{NICIRA, NiciraMessage};
pub use packet_in::{PacketIn, PacketInReason};
pub use packet_out::PacketOut;
pub use port::{
    FixedName, FixedNameRef, Port, PortConfig, PortFeatures, PortMod, PortReason, PortState,
    PortStatus,
};
pub use prefix::{Ipv4Prefix, Ipv6Prefix, PrefixError};
pub use protocol::{EtherType, IpProtocol};
pub use queue::{PacketQueue, QueueConfig, QueueProperty};
pub use role::{AsyncConfig, ControllerRole, Role};
pub use table::{TableFeatureKind, TableFeatureProperty, TableFeatures, TableMod};
pub use table_form::{TableForm, URTICA};
pub use version::{ParseVersionError, Version};
