//! The controller framework: a control program is a handler per switch.
//!
//! ```text
//! socket → shard → connection → session → handler → out buffer → socket
//! ```
//! The whole path of a packet-in runs on one thread; ARCHITECTURE.md walks along it file by file.
//!
//! - [`SwitchHandler`] and [`Switch`] are what a control program sees; [`Network`] leads to the other switches.
//! - [`Background`] is what programs beside the handlers have at hand.
//! - [`Controller`] starts shards and listeners and stops them in order.
//! - [`Embedded`] is a controller without threads, sockets and clock, for a network in one process.
//! - [`session`] is the protocol without sockets and clock, for whoever brings their own.
//!
//! A controller inside a larger program starts, is asked, and stops:
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
//!     // Whatever was sent to it before has been dealt with when the reply is there.
//!     running.network().barrier(id)?.wait(Duration::from_secs(1))?;
//! }
//! running.stop()?;
//! # Ok(())
//! # }
//! ```
//!
//! **What goes wrong, and what happens then.** A message that makes no sense is answered with the OFPT_ERROR of the
//! specification, and the connection lives; bytes that cannot be messages end it. A peer that does not say who it is, or
//! falls silent, is dropped in time ([`SessionConfig`]). A switch that does not read what it is sent is not read from.
//! Of two connections with one datapath id the newer is used. A handler that panics loses its switch and nothing else,
//! and a background program that panics, itself. Where a program filters, entries that it could not guard are refused
//! ([`Stage`]). Each is logged through `tracing` and counted in [`SwitchCounters`], [`ShardCounters`] and
//! [`BackgroundCounters`].

#![forbid(unsafe_code)]

mod actions;
#[cfg(feature = "args")]
mod args;
mod background;
mod backlog;
mod connection;
mod controller;
mod counters;
mod embedded;
mod entries;
mod events;
mod flooding;
mod handler;
mod kernel_half;
mod mailbox;
mod network;
mod on_packet;
mod permanent;
mod ports;
mod program_id;
mod request;
pub mod session;
mod shard;
mod stage;
mod statistics;
mod supervisor;
mod switch;
mod watch;
mod xid;

pub use actions::Actions;
#[cfg(feature = "args")]
pub use args::Args;
pub use background::{Background, STALL, Sleep};
pub use controller::{Controller, Error, Running};
pub use counters::{BackgroundCounters, Counter, ShardCounters, SwitchCounters};
pub use embedded::{ConnectionId, Embedded};
pub use events::{NetworkEvent, NetworkEvents};
pub use flooding::FloodPorts;
pub use handler::{PacketIns, Program, SwitchHandler};
pub use kernel_half::{Hand, KernelHalf, Taken};
pub use network::Network;
pub use on_packet::on_packet;
pub use ports::{MAX_PORTS, Ports};
pub use program_id::{OWN_COOKIE_BITS, ProgramId};
pub use request::{PendingReply, Reply, RequestError};
pub use session::SessionConfig;
pub use stage::Stage;
pub use statistics::{Description, Row, Rows};
pub use switch::{IDLE_5S, Switch, SwitchInfo};
pub use urtica_socket::{Address, AddressError, ListenError};
pub use urtica_wire::EntryOptions;
