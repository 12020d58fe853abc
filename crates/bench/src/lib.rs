//! A benchmark of OpenFlow controllers in the tradition of cbench: emulated switches, load shapes, recorder and report.
//!
//! **Why a separate crate.** It must not share session code with the controllers that it measures. It has its own OpenFlow
//! code, written from the specifications, so that an error in Urtica's codec cannot hide itself.
//!
//! ```text
//! run       coordinates the threads, creates the report       versus    runs contenders alternately
//! └ load    one thread: sockets, epoll, sending, receiving    limit     the null responder
//!   ├ packet_in         the packet-ins, derived from a sequence number; hosts, identity: their source; frame: their kinds
//!   ├ outstanding       the packet-ins without a reply, and when they were sent
//!   ├ patience          when a packet-in counts as lost
//!   ├ checker           which reply answers which packet-in; template: its fast path; reply, matching, actions: the full check
//!   ├ emulated_switch   the handshake, and replies to all other requests of the controller
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
