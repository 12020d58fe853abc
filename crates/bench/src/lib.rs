//! A benchmark of OpenFlow controllers in the tradition of cbench: emulated switches, load shapes, recorder and report.
//!
//! This is a separate crate because it must not share session code with the controllers it measures: it has its own OpenFlow
//! code, written from the specifications, so that a mistake in our codec cannot hide itself.
//!
//! ```text
//! run       coordinates the threads, makes the report         versus    runs contenders alternately
//! └ load    one thread: sockets, epoll, sending, receiving    limit     the null responder
//!   ├ packet_in         what is sent, from a place in a sequence; hosts, identity: from whom; frame: what kinds
//!   ├ outstanding       what waits for its reply, and since when
//!   ├ patience          when what waits is lost
//!   ├ checker           which reply answers what; template: its fast path; reply, matching, actions: the full check
//!   ├ emulated_switch   the handshake and everything else a controller asks
//!   └ recorder          latency, number outstanding, CPU time
//! random    random numbers
//! report    text like cbench's, JSON, HTML; analysis: figures computed from the counts
//! ```

#![forbid(unsafe_code)]

mod actions;
pub mod analysis;
mod bytes;
mod checker;
pub mod config;
pub mod controller_process;
mod emulated_switch;
mod error;
pub mod frame;
mod hosts;
mod identity;
pub mod limit;
mod load;
mod matching;
#[cfg(test)]
mod naive;
mod outstanding;
mod packet_in;
mod patience;
pub mod random;
mod recorder;
pub mod reply;
pub mod report;
pub mod run;
mod socket;
mod template;
pub mod versus;

pub use checker::Tally;
pub use config::LoadConfig;
pub use error::Error;
pub use report::Report;
