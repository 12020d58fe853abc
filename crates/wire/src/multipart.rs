//! Multipart requests and replies about a switch's state (1.0 calls them stats).

use crate::port::{FixedName, FixedNameRef};
use crate::{
    Bucket, DecodeError, FlowModFlags, GroupCapabilities, GroupType, Instruction, List, Match,
    MeterBand, MeterFlags, Port, PortNo, Put, Reader, TableFeatures,
};
use bitflags::bitflags;

bitflags! {
    /// Flags of multipart requests and replies.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct MultipartFlags: u16 {
        /// More messages of this request or reply follow.
        const MORE = 1 << 0;
        /// Bits without a meaning are kept.
        const _ = !0;
    }
}

/// A request (1.3.5 section 7.3.5, 1.0 section 5.3.5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MultipartRequest<'a> {
    /// Whether more messages follow.
    pub flags: MultipartFlags,
    /// The requested data.
    pub body: MultipartRequestBody<'a>,
}

/// The kinds of multipart requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MultipartRequestBody<'a> {
    /// Maker, model, serial number.
    Desc,
    /// Flow entries, each.
    Flow(FlowStatsRequest<'a>),
    /// Flow entries, summed up.
    Aggregate(FlowStatsRequest<'a>),
    /// Tables.
    Table,
    /// A port's counters, or all ports' with [`PortNo::ANY`].
    PortStats(PortNo),
    /// Queues' counters.
    Queue {
        /// The port; [`PortNo::ANY`] for all (1.0: `OFPP_ALL`, which is [`PortNo::ALL`]).
        port: PortNo,
        /// The queue; [`crate::QUEUE_ALL`] for all.
        queue_id: u32,
    },
    /// A group's counters, or all groups' with [`crate::GROUP_ALL`]. 1.3 only, like all following ones except the last.
    Group(u32),
    /// All groups' types and buckets.
    GroupDesc,
    /// The switch's group features.
    GroupFeatures,
    /// A meter's counters, or all meters' with [`crate::METER_ALL`].
    Meter(u32),
    /// A meter's configuration, or all meters'.
    MeterConfig(u32),
    /// The switch's meter features.
    MeterFeatures,
    /// The table features; with rows, sets them.
    TableFeatures(List<'a, TableFeatures<'a>>),
    /// All ports' descriptions.
    PortDesc,
    /// An experimenter's request (1.0: a vendor's).
    Experimenter(ExperimenterMultipart<'a>),
}

/// A reply, or a part of one (1.3.5 section 7.3.5, 1.0 section 5.3.5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MultipartReply<'a> {
    /// Whether more messages follow.
    pub flags: MultipartFlags,
    /// The rows or the structure that were requested.
    pub body: MultipartReplyBody<'a>,
}

/// The kinds of multipart replies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MultipartReplyBody<'a> {
    /// Maker, model, serial number.
    Desc(Desc<'a>),
    /// Flow entries.
    Flow(List<'a, FlowStats<'a>>),
    /// Flow entries, summed up.
    Aggregate(AggregateStats),
    /// Tables.
    Table(List<'a, TableStats>),
    /// Ports' counters.
    PortStats(List<'a, PortStats>),
    /// Queues' counters.
    Queue(List<'a, QueueStats>),
    /// Groups' counters. 1.3 only, like all following ones except the last.
    Group(List<'a, GroupStats<'a>>),
    /// Groups' types and buckets.
    GroupDesc(List<'a, GroupDesc<'a>>),
    /// The switch's group features.
    GroupFeatures(GroupFeatures),
    /// Meters' counters.
    Meter(List<'a, MeterStats<'a>>),
    /// Meters' configuration.
    MeterConfig(List<'a, MeterConfig<'a>>),
    /// The switch's meter features.
    MeterFeatures(MeterFeatures),
    /// The table features.
    TableFeatures(List<'a, TableFeatures<'a>>),
    /// Ports' descriptions.
    PortDesc(List<'a, Port>),
    /// An experimenter's reply (1.0: a vendor's).
    Experimenter(ExperimenterMultipart<'a>),
}

/// An experimenter's request or reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExperimenterMultipart<'a> {
    /// The experimenter's id.
    pub experimenter: u32,
    /// The bytes after the experimenter id. In 1.3 the first four are the experimenter's own type.
    pub data: &'a [u8],
}

/// A selection of flow entries (`ofp_flow_stats_request`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowStatsRequest<'a> {
    /// The table; [`crate::TABLE_ALL`] for all.
    pub table_id: u8,
    /// Only entries that output here; [`PortNo::ANY`] for no restriction.
    pub out_port: PortNo,
    /// Only entries that use this group; [`crate::GROUP_ANY`] for no restriction. 1.3 only.
    pub out_group: u32,
    /// Only entries whose cookie equals this in the bits of `cookie_mask`. 1.3 only.
    pub cookie: u64,
    /// The bits of `cookie` that count. 1.3 only.
    pub cookie_mask: u64,
    /// Only entries within this match.
    pub match_: Match<'a>,
}

impl Default for FlowStatsRequest<'_> {
    /// Selects all entries of all tables.
    fn default() -> Self {
        Self {
            table_id: crate::TABLE_ALL,
            out_port: PortNo::ANY,
            out_group: crate::GROUP_ANY,
            cookie: 0,
            cookie_mask: 0,
            match_: Match::any(),
        }
    }
}

/// Maker, model, serial number (`ofp_desc`). Over a thousand bytes, and so borrowed from the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Desc<'a> {
    /// The manufacturer.
    pub mfr_desc: FixedNameRef<'a, 256>,
    /// The hardware.
    pub hw_desc: FixedNameRef<'a, 256>,
    /// The software.
    pub sw_desc: FixedNameRef<'a, 256>,
    /// The serial number.
    pub serial_num: FixedNameRef<'a, 32>,
    /// The datapath, in words for operators.
    pub dp_desc: FixedNameRef<'a, 256>,
}

/// Both versions have this layout.
impl<'a> Desc<'a> {
    pub(crate) fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            mfr_desc: FixedNameRef(reader.array_ref()?),
            hw_desc: FixedNameRef(reader.array_ref()?),
            sw_desc: FixedNameRef(reader.array_ref()?),
            serial_num: FixedNameRef(reader.array_ref()?),
            dp_desc: FixedNameRef(reader.array_ref()?),
        })
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.put(self.mfr_desc.0);
        out.put(self.hw_desc.0);
        out.put(self.sw_desc.0);
        out.put(self.serial_num.0);
        out.put(self.dp_desc.0);
    }
}

/// One flow entry (`ofp_flow_stats`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowStats<'a> {
    /// The table it is in.
    pub table_id: u8,
    /// Its duration: whole seconds.
    pub duration_sec: u32,
    /// Its duration beyond the whole seconds, in nanoseconds.
    pub duration_nsec: u32,
    /// Its priority.
    pub priority: u16,
    /// Its idle timeout in seconds.
    pub idle_timeout: u16,
    /// Its hard timeout in seconds.
    pub hard_timeout: u16,
    /// The flags of its flow mod. 1.3 only.
    pub flags: FlowModFlags,
    /// Its cookie.
    pub cookie: u64,
    /// The number of packets that it matched.
    pub packet_count: u64,
    /// The number of bytes that it matched.
    pub byte_count: u64,
    /// Its match.
    pub match_: Match<'a>,
    /// Its instructions.
    pub instructions: List<'a, Instruction<'a>>,
}

/// Flow entries summed up (`ofp_aggregate_stats_reply`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AggregateStats {
    /// The number of packets that they matched.
    pub packet_count: u64,
    /// The number of bytes that they matched.
    pub byte_count: u64,
    /// The number of entries.
    pub flow_count: u32,
}

/// One table (`ofp_table_stats`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableStats {
    /// Which table.
    pub table_id: u8,
    /// 1.0 only: its name.
    pub name: FixedName<32>,
    /// 1.0 only: the wildcards that it supports (`OFPFW_*`).
    pub wildcards: u32,
    /// 1.0 only: its maximum number of entries.
    pub max_entries: u32,
    /// Its number of entries.
    pub active_count: u32,
    /// The number of looked-up packets.
    pub lookup_count: u64,
    /// The number of matched packets.
    pub matched_count: u64,
}

/// One port's counters (`ofp_port_stats`); all ones for a counter that is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortStats {
    /// Which port.
    pub port_no: PortNo,
    /// Packets received.
    pub rx_packets: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Packets dropped on receipt.
    pub rx_dropped: u64,
    /// Packets dropped on sending.
    pub tx_dropped: u64,
    /// Receive errors.
    pub rx_errors: u64,
    /// Transmit errors.
    pub tx_errors: u64,
    /// Frame alignment errors.
    pub rx_frame_err: u64,
    /// Overruns.
    pub rx_over_err: u64,
    /// Checksum errors.
    pub rx_crc_err: u64,
    /// Collisions.
    pub collisions: u64,
    /// The time that the port has been up: whole seconds; 0 in 1.0.
    pub duration_sec: u32,
    /// Its duration beyond the whole seconds, in nanoseconds; 0 in 1.0.
    pub duration_nsec: u32,
}

/// One queue's counters (`ofp_queue_stats`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueStats {
    /// The port it belongs to.
    pub port_no: PortNo,
    /// Its number.
    pub queue_id: u32,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Packets dropped because of overrun.
    pub tx_errors: u64,
    /// Its duration: whole seconds; 0 in 1.0.
    pub duration_sec: u32,
    /// Its duration beyond the whole seconds, in nanoseconds; 0 in 1.0.
    pub duration_nsec: u32,
}

/// One group's counters (`ofp_group_stats`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupStats<'a> {
    /// Which group.
    pub group_id: u32,
    /// The number of entries and groups that refer to it.
    pub ref_count: u32,
    /// Packets that it handled.
    pub packet_count: u64,
    /// Bytes of them.
    pub byte_count: u64,
    /// Its duration: whole seconds.
    pub duration_sec: u32,
    /// Its duration beyond the whole seconds, in nanoseconds.
    pub duration_nsec: u32,
    /// Each bucket's share.
    pub buckets: List<'a, BucketCounter>,
}

/// Counters of one bucket of a group (`ofp_bucket_counter`), or one band of a meter (`ofp_meter_band_stats`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketCounter {
    /// Packets.
    pub packet_count: u64,
    /// Bytes.
    pub byte_count: u64,
}

/// One group's type and buckets (`ofp_group_desc`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupDesc<'a> {
    /// The group's type.
    pub group_type: GroupType,
    /// Which group.
    pub group_id: u32,
    /// Its buckets.
    pub buckets: List<'a, Bucket<'a>>,
}

/// The features of groups (`ofp_group_features`). Arrays are indexed by [`GroupType`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupFeatures {
    /// Bitmap of supported types.
    pub types: u32,
    /// Their capabilities.
    pub capabilities: GroupCapabilities,
    /// The maximum number of groups of each type.
    pub max_groups: [u32; 4],
    /// Bitmaps of the actions that each type supports.
    pub actions: [u32; 4],
}

/// One meter's counters (`ofp_meter_stats`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeterStats<'a> {
    /// Which meter.
    pub meter_id: u32,
    /// The number of entries that refer to it.
    pub flow_count: u32,
    /// Packets received.
    pub packet_in_count: u64,
    /// Bytes of them.
    pub byte_in_count: u64,
    /// Its duration: whole seconds.
    pub duration_sec: u32,
    /// Its duration beyond the whole seconds, in nanoseconds.
    pub duration_nsec: u32,
    /// The counters of each band.
    pub bands: List<'a, BucketCounter>,
}

/// One meter's configuration (`ofp_meter_config`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeterConfig<'a> {
    /// The units and present fields.
    pub flags: MeterFlags,
    /// Which meter.
    pub meter_id: u32,
    /// Its bands.
    pub bands: List<'a, MeterBand<'a>>,
}

/// The features of meters (`ofp_meter_features`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeterFeatures {
    /// The maximum number of meters.
    pub max_meter: u32,
    /// Bitmap of supported band types.
    pub band_types: u32,
    /// Supported [`MeterFlags`], as a bitmap.
    pub capabilities: u32,
    /// The maximum number of bands of a meter.
    pub max_bands: u8,
    /// The highest colour value.
    pub max_color: u8,
}
