//! OpenFlow 1.0 and 1.3, and the headers of the packets that it talks about.
//!
//! This crate stands alone: bytes in, bytes out, no I/O, no clock. Controller, benchmark and switch share it.
//!
//! - [`Message::decode`] and [`Message::encode`] handle every message of both versions through one set of
//!   version-neutral types; what a version lacks is an [`EncodeError`] that names it.
//! - Views borrow from the bytes they were read from, are checked once, and never allocate.
//! - [`text`] reads and writes the syntax of `ovs-ofctl`.
//! - [`ExactFlowMod`] is the straight-line writer for the message that a controller sends most.

mod action;
mod address;
mod codec;
mod config;
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
mod meter;
mod multipart;
pub mod packet;
mod packet_in;
mod packet_out;
mod port;
mod queue;
mod role;
mod table;

mod of10;
mod of13;

pub mod text;

pub use action::Action;
pub use address::{Address, AddressError, DEFAULT_PORT};
pub use codec::{Element, Iter, List, Reader, Write};
pub use config::{ConfigFlags, SwitchConfig};
pub use error::{DecodeError, EncodeError};
pub use error_code::ErrorCode;
pub use exact::{ExactFlowMod, OutputPacket};
pub use features::{Capabilities, Features};
pub use field::{Field, OxmField, RawField};
pub use flow_mod::{FlowMod, FlowModCommand, FlowModFlags, FlowRemoved, FlowRemovedReason};
pub use group::{Bucket, GroupCapabilities, GroupMod, GroupModCommand, GroupType};
pub use header::{Header, Version, split_frame};
pub use hello::{ErrorMessage, Experimenter, Hello, HelloElement};
pub use ids::{
    BufferId, CONTROLLER_NO_BUFFER, DatapathId, GROUP_ALL, GROUP_ANY, GROUP_MAX, METER_ALL, PortNo,
    QUEUE_ALL, TABLE_ALL,
};
pub use instruction::Instruction;
pub use mac::{MacAddr, ParseMacAddrError};
pub use matching::Match;
pub use matching::{ExactMatch, VLAN_PRESENT};
pub use message::Message;
pub use meter::{MeterBand, MeterFlags, MeterMod, MeterModCommand};
pub use multipart::{
    AggregateStats, BucketCounter, Desc, ExperimenterMultipart, FlowStats, FlowStatsRequest,
    GroupDesc, GroupFeatures, GroupStats, MeterConfig, MeterFeatures, MeterStats, MultipartFlags,
    MultipartReply, MultipartReplyBody, MultipartRequest, MultipartRequestBody, PortStats,
    QueueStats, TableStats,
};
pub use packet_in::{PacketIn, PacketInReason};
pub use packet_out::PacketOut;
pub use port::{
    FixedName, Port, PortConfig, PortFeatures, PortMod, PortReason, PortState, PortStatus,
};
pub use queue::{PacketQueue, QueueConfig, QueueProperty};
pub use role::{AsyncConfig, ControllerRole, Role};
pub use table::{TableFeatureKind, TableFeatureProperty, TableFeatures, TableMod};
