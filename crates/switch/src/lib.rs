//! A software switch: ports, and the agent through which controllers change its pipeline.
//!
//! [`Switch`] is the whole switch without a thread, a socket or a clock: frames, bytes of controllers and times go
//! in, frames and bytes come out. [`Runner`] gives it those: real ports, real connections, real time. A network in
//! one process gives it others.

mod agent;
mod buffers;
mod egress;
mod forwarder;
mod fragments;
mod mailbox;
mod normal;
mod parcel;
pub mod port;
mod port_table;
mod runner;
mod shared;
mod spread;
mod switch;
mod uplink;

pub use agent::ConnectionId;
pub use port::{PortError, PortIo, PortSpec};
pub use runner::{RunError, Runner, StopHandle, Target, Threads};
pub use switch::{Description, FailMode, Forwarding, Switch, SwitchConfig};
