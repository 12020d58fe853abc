mod consumer;
mod kernel;
mod link;
mod peer;
#[cfg(not(without_programs))]
mod programs;
#[cfg(without_programs)]
#[path = "absent.rs"]
mod programs;
mod queue;
mod reader;
mod record;
mod replies;

mod rings;
mod session;
mod sessions;
mod shards;

pub use consumer::{Ready, Ring};
pub use kernel::RingKernel;
pub use link::KernelCounts;
pub use record::{MessageType, Record, RingSwitch};
pub use replies::Replies;
pub use rings::{RingError, RingSettings, Rings};
pub use sessions::RingEvent;
