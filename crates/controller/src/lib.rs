//! The controller framework: a control program is a handler per switch.
//!
//! ```text
//! socket → shard → connection → session → handler → out buffer → socket
//! ```
//! The whole path of a packet-in runs on one thread and uses no lock; ARCHITECTURE.md describes it file by file.
//!
//! - [`SwitchHandler`] and [`Switch`] are the interface of a control program; [`Network`] reaches the other switches.
//! - [`RawProgram`] gets frames instead of messages: [`Controller::raw_program`].
//! - [`Background`] starts programs that run in parallel to the handlers, with timers and awaited requests.
//! - [`Controller`] sets up and starts shards and listeners; [`Running`] stops them in order.
//! - [`Embedded`] is a controller without threads, sockets and clock, for a network in one process.
//! - [`hold`] keeps connections open when the program ends: [`Controller::hold`].
//! - [`session`] is the protocol without sockets and clock, for programs with their own I/O.
//!
//! This is a separate crate so that it depends on the protocol (`urtica-wire`) and on nothing above it: services, bundled
//! programs and the kernel half are built on its public interface, as your program is. Most programs depend on `urtica`,
//! which has this crate and the others under one name.
//!
//! **Features.** `args` (off by default) adds `Args` and `Controller::from_args`: the command-line options that every
//! controller has, by `clap`. `tls` (off by default): TLS on `pssl:` addresses, by `rustls` ([`Controller::tls`]).
//!
//! A controller inside a larger program is started, queried, and stopped:
//!
//! ```
//! use std::time::Duration;
//! use urtica_controller::{Controller, Switch, SwitchHandler, SwitchInfo};
//! use urtica_wire::{PacketIn, PortNo};
//!
//! /// Counts the packets of one switch, and floods them.
//! struct Counting(u64);
//!
//! impl SwitchHandler for Counting {
//!     fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
//!         self.0 += 1;
//!         switch.forward(packet, PortNo::FLOOD);
//!     }
//!
//!     fn switch_down(&mut self, info: &SwitchInfo) {
//!         println!("{} sent {} packets", info.datapath_id, self.0);
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let running = Controller::new()
//!     .listen("ptcp:0:127.0.0.1".parse()?)
//!     .shards(1)
//!     .program(|_: &SwitchInfo| Counting(0))
//!     .start()?;
//! println!("listening at {}", running.addresses()[0]);
//! for id in running.network().switches() {
//!     // When the reply is there, the switch has processed whatever was sent to it before.
//!     running.network().barrier(id)?.wait(Duration::from_secs(1))?;
//! }
//! running.stop()?;
//! # Ok(())
//! # }
//! ```
//!
//! **Errors.** A malformed message is answered with the specification's OFPT_ERROR, and the connection stays open; bytes
//! that cannot be messages close it. A peer that does not identify itself or falls silent is disconnected after a time-out
//! ([`SessionConfig`]). A switch that does not read its replies is not read from. Of two connections with one datapath id
//! the newer is used. If a handler panics, only its switch is disconnected; if a background program panics, only that
//! program ends. If a program filters, entries that it could not guard are refused ([`Stage`]). All of these are logged
//! through `tracing` and counted in [`SwitchCounters`], [`ShardCounters`] and [`BackgroundCounters`].

#![forbid(unsafe_code)]

mod actions;
#[cfg(feature = "args")]
mod args;
mod background;
mod backlog;
mod batch;
mod broadcast;
mod connection;
mod connection_queue;
mod controller;
mod counters;
mod datapath_ids;
mod embedded;
mod entries;
mod error;
mod events;
mod flooding;
mod frame;
mod handler;
mod input_ring;
mod kernel_half;
mod mailbox;
mod named;
mod network;
mod on_packet;
mod packet_in_times;
mod panic_log;
mod panics;
mod permanent;
mod ports;
mod preview;
mod program_id;
mod program_list;
mod program_panic;
mod raw;
mod reconciliation;
mod request;
mod role;
mod running;
pub mod session;
pub mod setting;
mod shard;
mod stage;
mod statistics;
mod supervisor;
mod switch;
mod switch_info;
mod transport;
mod unsent;
mod watch;
mod xid;
mod xid_map;

pub use actions::Actions;
#[cfg(feature = "args")]
pub use args::Args;
pub use background::{Background, STALL, Sleep};
pub use backlog::WaitingBytes;
pub use broadcast::{Broadcast, Events};
pub use controller::Controller;
pub use counters::{BackgroundCounters, BusyTimes, Counter, ShardCounters, SwitchCounters};
pub use embedded::{ConnectionError, ConnectionId, Embedded};
pub use error::Error;
pub use events::NetworkEvent;
pub use flooding::FloodPorts;
pub use frame::FrameError;
pub use handler::{PacketIns, Program, SwitchHandler};
pub use input_ring::{InputRing, InputRings, RingCounts, RingEntry, RingInput};
pub use kernel_half::{
    Handover, HeldHalf, HeldHalves, Keeper, KernelHalf, KernelHalfTotals, KernelHalves, Reclaimed,
    Resumed, Taken,
};
pub use named::Named;
pub use network::Network;
pub use on_packet::on_packet;
pub use packet_in_times::PacketInTimes;
pub use ports::{MAX_PORTS, Ports};
pub use preview::FlowChange;
pub use program_id::{OWN_COOKIE_BITS, ProgramId};
pub use program_list::ProgramSlot;
pub use program_panic::ProgramPanic;
pub use raw::{Frames, RawHandler, RawProgram, RawSwitch};
pub use request::{PendingReply, Reply, RequestError};
pub use role::{ParseRoleError, Role, RoleRequest};
pub use running::Running;
pub use session::SessionConfig;
pub use stage::Stage;
pub use statistics::{Description, Row, Rows};
pub use switch::{IDLE_5S, Switch};
pub use switch_info::SwitchInfo;
pub use urtica_hold as hold;
pub use urtica_socket::{Address, AddressError, ListenError, TlsConfig, TlsError};
pub use urtica_wire::EntryOptions;
