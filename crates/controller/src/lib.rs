//! The controller framework: a control program is a handler per switch.
//!
//! ```text
//! socket → shard → connection → session → handler → out buffer → socket
//! ```
//! The whole path of a packet-in runs on one thread; ARCHITECTURE.md walks along it file by file.
//!
//! - [`SwitchHandler`] and [`Switch`] are what a control program sees; [`Network`] leads to the other switches.
//! - [`Controller`] starts shards and listeners and stops them in order.
//! - [`session`] is the protocol without sockets and clock, for whoever brings their own.

mod args;
mod connection;
mod controller;
mod counters;
mod handler;
mod listener;
mod mailbox;
mod network;
mod request;
pub mod session;
mod shard;
mod supervisor;
mod switch;
mod xid;

pub use args::Args;
pub use controller::{Controller, Error, Running};
pub use counters::{Counter, ShardCounters, SwitchCounters};
pub use handler::{Program, SwitchHandler};
pub use listener::ListenError;
pub use network::Network;
pub use request::{PendingReply, Reply, RequestError};
pub use session::SessionConfig;
pub use switch::{EntryOptions, IDLE_5S, Switch, SwitchInfo};
