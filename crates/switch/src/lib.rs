//! A software switch: ports, forwarding threads, and the agent through which controllers change its pipeline.
//!
//! **Why a separate crate.** [`Switch`] is the whole switch without threads, sockets or a clock: frames, controllers' bytes
//! and times are its input, frames and bytes its output. [`Runner`] connects it to real ports, connections and time; an
//! emulated network within one process connects it to other switches.
//!
//! ```
//! use std::time::Duration;
//! use urtica_switch::{Switch, SwitchConfig};
//!
//! let mut switch = Switch::new(SwitchConfig::default());
//! let controller = switch.connect("a test".to_owned(), Duration::ZERO);
//! let hello = switch.output(controller).expect("it has just connected");
//! assert_eq!(hello[..2], [4, 0]); // OpenFlow 1.3, OFPT_HELLO
//! ```

mod agent;
mod buffers;
mod egress;
mod forwarder;
mod mailbox;
mod normal;
mod parcel;
pub mod port;
mod port_queues;
mod port_table;
mod queues;
mod runner;
mod shared;
mod spread;
mod state_file;
mod switch;
mod uplink;

pub use agent::{ConnectionId, SessionError};
pub use port::tap::TapPort;
pub use port::{FrameMemory, LentFrame, PortError, PortIo, PortSender, PortSpec, Received};
pub use queues::{MAX_QUEUES, PortQueues, Queue, QueueError};
pub use runner::StateSync;
pub use runner::{
    ConnectionStatus, ControllerState, ControllerStatus, DropCounts, Flows, PortStatus, Remote,
    RemoteError, RunError, Runner, StopHandle, SwitchStatus, Target, Threads,
};
pub use state_file::{Restored, StateError, StateFile};
pub use switch::{Description, FailMode, Forwarding, Switch, SwitchConfig};
