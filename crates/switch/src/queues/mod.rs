//! Queues of ports: their configuration, and the choice of the next frame.
//!
//! | file | contents |
//! | --- | --- |
//! | `settings.rs` | a port's queues, as a user configures them, and their checks |
//! | `scheduler.rs` | waiting frames, and the choice of the next one |
//! | `bucket.rs`, `round.rs` | its parts: token buckets enforce rates, deficit round robin shares the rest |
//! | `named.rs` | the queues that belong to a port's name, as configured and as changed at run time |
//! | `shared.rs` | a port's scheduler, shared by the threads of a switch |
//!
//! **Why a separate implementation.** The kernel's HTB could only replace it for AF_PACKET. It needs CAP_NET_ADMIN and a
//! change to the interface that outlives a killed switch, has separate counters, and would queue frames only after the
//! switch has sent them.

mod bucket;
mod named;
mod round;
mod scheduler;
mod settings;
mod shared;

pub(crate) use named::NamedQueues;
pub(crate) use scheduler::{Polled, QueueCounters};
pub use settings::{MAX_QUEUES, PortQueues, Queue, QueueError};
pub(crate) use shared::{Pushed, SharedQueues};
