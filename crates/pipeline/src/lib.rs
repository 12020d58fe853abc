//! What happens to a packet: OpenFlow 1.3's pipeline of tables, groups and meters (1.3.5 section 5).
//!
//! The crate stands apart from the switch so that the same pipeline serves a switch of its own, a network in one
//! process, and tests: it has no ports, no sockets, no threads and no clock. Packets and times come in as arguments,
//! what is to be sent goes out through a [`Sink`].
//!
//! - [`Pipeline`] is the state that a controller changes: flow entries, groups, meters, ports.
//! - [`Pipeline::process`] takes one packet through it, table by table and action by action. This is the *plain form*,
//!   the reference model of every faster one. [`Sink::step`] shows each step of a packet's way to whoever wants to see.
//! - [`FlowTable::find`] finds a packet's entry by one hash table for each sort of match; its reference model is
//!   [`FlowTable::find_plainly`], which looks at one entry after the other.
//! - [`Pipeline::flow_mod`], [`Pipeline::group_mod`] and [`Pipeline::meter_mod`] change the state, or refuse with the
//!   specification's error and change nothing. Time passes by [`Pipeline::expire`].
//!
//! Thread-safety: packets may be processed by several threads at once, as they change nothing but counters and what
//! meters measure. Changes need the pipeline to themselves.

mod action_set;
mod check;
mod classifier;
mod compile;
mod counters;
mod entry;
mod fast;
mod features;
mod fields;
mod flow_hash;
mod flow_mod;
mod flow_table;
mod group;
mod group_buckets;
mod group_mod;
mod layout;
mod meter;
mod meter_mod;
mod packet;
mod pipeline;
mod prerequisites;
mod process;
mod rewrite;
mod stats;

pub use action_set::ActionSet;
pub use counters::{EntryCounters, EntryCounts};
pub use entry::{EntryMatch, FlowEntry, Instructions};
pub use fast::{
    BURST, Backend, Burst, CompileConfig, Compiled, ExplainedActions, ExplainedCut, ExplainedPart,
    ExplainedSubTables, ExplainedTable, Explanation, MAX_FRAME, PlainReason, Processed, Reader,
    TemplateKind, Verdict,
};
pub use features::TableFeatureIds;
pub use flow_mod::RemovedEntry;
pub use flow_table::FlowTable;
pub use group::{Bucket, Group, Groups, MAX_BUCKETS, MAX_CHAIN};
pub use meter::{Band, MAX_BANDS, METER_MAX, Meter, MeterVerdict, Meters};
pub use packet::Packet;
pub use pipeline::{Pipeline, PipelineConfig};
pub use process::{MAX_BUCKETS_PER_PACKET, PacketInCause, Sink, Step};
