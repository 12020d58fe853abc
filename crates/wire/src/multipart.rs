//! Multipart requests and replies about the state of a switch (stats in 1.0).

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
        /// Undefined bits are kept.
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
    /// The manufacturer, model and serial number.
    Desc,
    /// Single flow entries.
    Flow(FlowStatsRequest<'a>),
    /// The totals of flow entries.
    Aggregate(FlowStatsRequest<'a>),
    /// The counters of tables.
    Table,
    /// The counters of a port, or of all ports with [`PortNo::ANY`].
    PortStats(PortNo),
    /// The counters of queues.
    Queue {
        /// The port; [`PortNo::ANY`] for all ports (1.0: `OFPP_ALL`, which is [`PortNo::ALL`]).
        port: PortNo,
        /// The queue; [`crate::QUEUE_ALL`] for all queues.
        queue_id: u32,
    },
    /// The counters of a group, or of all groups with [`crate::GROUP_ALL`]. 1.3 only, like all following ones except the last.
    Group(u32),
    /// The types and buckets of all groups.
    GroupDesc,
    /// The switch's group features.
    GroupFeatures,
    /// The counters of a meter, or of all meters with [`crate::METER_ALL`].
    Meter(u32),
    /// The configuration of a meter, or of all meters with [`crate::METER_ALL`].
    MeterConfig(u32),
    /// The switch's meter features.
    MeterFeatures,
    /// The table features; with rows, sets them.
    TableFeatures(List<'a, TableFeatures<'a>>),
    /// The descriptions of all ports.
    PortDesc,
    /// An experimenter's request (1.0: a vendor's).
    Experimenter(ExperimenterMultipart<'a>),
}

/// A reply, or a part of one (1.3.5 section 7.3.5, 1.0 section 5.3.5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MultipartReply<'a> {
    /// Whether more messages follow.
    pub flags: MultipartFlags,
    /// The requested rows or structure.
    pub body: MultipartReplyBody<'a>,
}

/// The kinds of multipart replies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MultipartReplyBody<'a> {
    /// The manufacturer, model and serial number.
    Desc(Desc<'a>),
    /// Single flow entries.
    Flow(List<'a, FlowStats<'a>>),
    /// The totals of flow entries.
    Aggregate(AggregateStats),
    /// The counters of tables.
    Table(List<'a, TableStats>),
    /// The counters of ports.
    PortStats(List<'a, PortStats>),
    /// The counters of queues.
    Queue(List<'a, QueueStats>),
    /// The counters of groups. 1.3 only, like all following ones except the last.
    Group(List<'a, GroupStats<'a>>),
    /// The types and buckets of groups.
    GroupDesc(List<'a, GroupDesc<'a>>),
    /// The switch's group features.
    GroupFeatures(GroupFeatures),
    /// The counters of meters.
    Meter(List<'a, MeterStats<'a>>),
    /// The configurations of meters.
    MeterConfig(List<'a, MeterConfig<'a>>),
    /// The switch's meter features.
    MeterFeatures(MeterFeatures),
    /// The table features.
    TableFeatures(List<'a, TableFeatures<'a>>),
    /// The descriptions of ports.
    PortDesc(List<'a, Port>),
    /// An experimenter's reply (1.0: a vendor's).
    Experimenter(ExperimenterMultipart<'a>),
}

/// An experimenter's request or reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExperimenterMultipart<'a> {
    /// The experimenter's id.
    pub experimenter: u32,
    /// The bytes after the experimenter id. In 1.3, the first four are the type that the experimenter assigns.
    pub data: &'a [u8],
}

/// A selection of flow entries (`ofp_flow_stats_request`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowStatsRequest<'a> {
    /// The table; [`crate::TABLE_ALL`] for all tables.
    pub table_id: u8,
    /// Selects entries that output to this port; [`PortNo::ANY`] for no restriction.
    pub out_port: PortNo,
    /// Selects entries that use this group; [`crate::GROUP_ANY`] for no restriction. 1.3 only.
    pub out_group: u32,
    /// Selects entries whose cookie equals this in the bits of `cookie_mask`. 1.3 only.
    pub cookie: u64,
    /// The bits of `cookie` that are compared. 1.3 only.
    pub cookie_mask: u64,
    /// Selects entries whose match is within this one.
    pub match_: Match<'a>,
}

impl Default for FlowStatsRequest<'_> {
    /// Returns a selection of all entries of all tables.
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

/// The manufacturer, model and serial number (`ofp_desc`). They have over a thousand bytes, so the message is borrowed.
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
    /// A description of the datapath for operators.
    pub dp_desc: FixedNameRef<'a, 256>,
}

/// The codec of this layout, which both versions have.
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

/// A flow entry (`ofp_flow_stats`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowStats<'a> {
    /// The table of the entry.
    pub table_id: u8,
    /// The whole seconds of its duration.
    pub duration_sec: u32,
    /// The rest of its duration, in nanoseconds.
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

/// The totals of flow entries (`ofp_aggregate_stats_reply`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AggregateStats {
    /// The number of packets that they matched.
    pub packet_count: u64,
    /// The number of bytes that they matched.
    pub byte_count: u64,
    /// The number of entries.
    pub flow_count: u32,
}

/// The counters of a table (`ofp_table_stats`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableStats {
    /// The number of the table.
    pub table_id: u8,
    /// 1.0 only: its name.
    pub name: FixedName<32>,
    /// 1.0 only: the wildcards that it supports (`OFPFW_*`).
    pub wildcards: u32,
    /// 1.0 only: its maximum number of entries.
    pub max_entries: u32,
    /// The number of entries.
    pub active_count: u32,
    /// The number of packets looked up.
    pub lookup_count: u64,
    /// The number of packets matched.
    pub matched_count: u64,
}

/// The counters of a port (`ofp_port_stats`). A counter that is not kept is all ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortStats {
    /// The number of the port.
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
    /// The whole seconds of the time that the port has been up; 0 in 1.0.
    pub duration_sec: u32,
    /// The rest of that time, in nanoseconds; 0 in 1.0.
    pub duration_nsec: u32,
}

/// The counters of a queue (`ofp_queue_stats`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueStats {
    /// The port of the queue.
    pub port_no: PortNo,
    /// The number of the queue.
    pub queue_id: u32,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Packets dropped because of overrun.
    pub tx_errors: u64,
    /// The whole seconds of its duration; 0 in 1.0.
    pub duration_sec: u32,
    /// The rest of its duration, in nanoseconds; 0 in 1.0.
    pub duration_nsec: u32,
}

/// The counters of a group (`ofp_group_stats`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupStats<'a> {
    /// The number of the group.
    pub group_id: u32,
    /// The number of entries and groups that refer to it.
    pub ref_count: u32,
    /// The number of packets.
    pub packet_count: u64,
    /// The number of bytes.
    pub byte_count: u64,
    /// The whole seconds of its duration.
    pub duration_sec: u32,
    /// The rest of its duration, in nanoseconds.
    pub duration_nsec: u32,
    /// The counters of each bucket.
    pub buckets: List<'a, BucketCounter>,
}

/// The counters of a bucket (`ofp_bucket_counter`), or of a band of a meter (`ofp_meter_band_stats`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketCounter {
    /// The number of packets.
    pub packet_count: u64,
    /// The number of bytes.
    pub byte_count: u64,
}

/// The type and buckets of a group (`ofp_group_desc`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupDesc<'a> {
    /// The group's type.
    pub group_type: GroupType,
    /// The number of the group.
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

/// The counters of a meter (`ofp_meter_stats`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeterStats<'a> {
    /// The number of the meter.
    pub meter_id: u32,
    /// The number of entries that refer to it.
    pub flow_count: u32,
    /// The number of packets received.
    pub packet_in_count: u64,
    /// The number of bytes received.
    pub byte_in_count: u64,
    /// The whole seconds of its duration.
    pub duration_sec: u32,
    /// The rest of its duration, in nanoseconds.
    pub duration_nsec: u32,
    /// The counters of each band.
    pub bands: List<'a, BucketCounter>,
}

/// The configuration of a meter (`ofp_meter_config`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeterConfig<'a> {
    /// The unit, and the optional fields in use.
    pub flags: MeterFlags,
    /// The number of the meter.
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
