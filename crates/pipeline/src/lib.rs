//! OpenFlow 1.3's pipeline of flow tables, groups and meters (1.3.5 section 5).
//!
//! **Why a separate crate.** The switch, emulated networks within one process, and tests share this pipeline. It has no
//! ports, sockets, threads or clock: packets and times are arguments, and a [`Sink`] receives the packets to send.
//!
//! - [`Pipeline`] holds the state that a controller changes: flow entries, groups, meters, ports.
//! - [`Pipeline::flow_mod`], [`Pipeline::group_mod`] and [`Pipeline::meter_mod`] change it, or refuse with the
//!   specification's error and change nothing. [`Pipeline::expire`] removes expired entries.
//! - [`Pipeline::process`] processes one packet, table by table and action by action. It is the reference model: tests
//!   compare every faster form with it. [`Sink::step`] shows each step.
//! - [`FlowTable::find`] finds a packet's entry with one hash table per set of masks; its reference model is
//!   [`FlowTable::find_plainly`], a linear search.
//! - [`Compiled`] and [`Reader`] process bursts of frames with a form compiled from the entries.
//!
//! ```
//! use std::time::Duration;
//! use urtica_pipeline::{Packet, PacketInCause, Pipeline, PipelineConfig, Sink};
//! use urtica_wire::{FlowMod, FlowModCommand, MacAddr, Port, PortNo};
//!
//! #[derive(Default)]
//! struct Sent(Vec<PortNo>);
//!
//! impl Sink for Sent {
//!     fn transmit(&mut self, port: PortNo, _: &Packet) {
//!         self.0.push(port);
//!     }
//!     fn packet_in(&mut self, _: &Packet, _: PacketInCause) {}
//!     fn normal(&mut self, _: &Packet) {}
//! }
//!
//! let mut pipeline = Pipeline::new(PipelineConfig::default());
//! for number in [1, 2] {
//!     pipeline.set_port(Port::new(PortNo(number), MacAddr::from_u64(number.into()), "port"));
//! }
//! let flow_mod = FlowMod::parse(FlowModCommand::Add, "in_port=1,actions=output:2").unwrap();
//! pipeline.flow_mod(&flow_mod, Duration::ZERO, &mut Vec::new()).unwrap();
//!
//! let mut sent = Sent::default();
//! pipeline.process(Packet::new(PortNo(1), &[0; 60]), Duration::ZERO, &mut sent);
//! assert_eq!(sent.0, [PortNo(2)]);
//! ```
//!
//! **Thread-safety.** Several threads may process packets at once, since this changes only counters and meters. All other
//! changes need exclusive access.

mod action_set;
mod change_log;
mod check;
mod classifier;
mod compile;
mod counters;
mod entry;
mod entry_change;
mod entry_view;
mod entry_walk;
mod fast;
mod features;
mod fields;
mod flow_hash;
mod flow_mod;
mod flow_table;
mod flow_walk;
mod fragments;
mod group;
mod group_buckets;
mod group_counters;
mod group_mod;
mod group_select;
mod layout;
mod linked_counters;
mod meter;
mod meter_mod;
#[cfg(miri)]
mod miri_memory;
mod packet;
mod packet_in_cause;
mod pipeline;
mod prerequisites;
mod process;
mod references;
mod removed_entry;
mod restore;
mod rewrite;
mod selection;
mod stats;
mod thread_counts;

pub use action_set::ActionSet;
pub use change_log::StateChange;
pub use counters::{EntryCounters, EntryCounts};
pub use entry::{EntryMatch, FlowEntry, Instructions};
pub use entry_change::EntryChange;
pub use entry_view::ViewLost;
pub use fast::{
    BURST, Backend, Burst, CompileConfig, Compiled, ExplainedActions, ExplainedCut, ExplainedPart,
    ExplainedSubTables, ExplainedTable, Explanation, MAX_FRAME, PlainReason, Processed, Reader,
    SentFrame, TemplateKind, Verdict, write_perf_map,
};
pub use features::TableFeatureIds;
pub use flow_table::FlowTable;
pub use flow_walk::FlowWalk;
pub use fragments::is_fragment;
pub use group::{Bucket, Group, Groups, MAX_BUCKETS, MAX_CHAIN};
pub use meter::{Band, MAX_BANDS, METER_MAX, Meter, MeterVerdict, Meters};
pub use packet::Packet;
pub use packet_in_cause::PacketInCause;
pub use pipeline::{Pipeline, PipelineConfig};
pub use process::{MAX_BUCKETS_PER_PACKET, Sink, Step};
pub use removed_entry::RemovedEntry;
