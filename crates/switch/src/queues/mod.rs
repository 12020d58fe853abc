//! Queues of ports: what they are told to do, and which frame leaves next.
//!
//! | file | what |
//! | --- | --- |
//! | `settings.rs` | a port's queues, as a user describes them, and what is checked of them |
//! | `scheduler.rs` | frames that wait, and which leaves next |
//! | `bucket.rs`, `round.rs` | its parts: rates are kept by token buckets, the rest is shared by deficit round robin |
//! | `shared.rs` | a port's scheduler, as the threads of a switch share it |
//!
//! **Why one of our own, for every back end.** The kernel's HTB would do the same for AF_PACKET alone, with CAP_NET_ADMIN, a change to the
//! interface that outlives the switch if it is killed, and counters of its own; frames would leave by it only after the switch had
//! accepted them.

mod bucket;
mod round;
mod scheduler;
mod settings;
mod shared;

pub(crate) use scheduler::{Polled, QueueCounters};
pub use settings::{MAX_QUEUES, PortQueues, Queue, QueueError};
pub(crate) use shared::{Pushed, SharedQueues};
