//! A whole network in one process, for experiments, teaching and tests. It needs no root privileges and no real time.
//!
//! ```
//! use urtica_controller::Controller;
//! use urtica_net::{Net, NetConfig};
//! use urtica_topology::spec::TopologySpec;
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let plan = "tree,depth=2,fanout=2".parse::<TopologySpec>()?.plan()?;
//! let mut net = Net::new(&plan, NetConfig::default())?;
//! net.start_controller(urtica_apps::add_by_name(Controller::new(), "l2")?)?;
//! net.run_for(Duration::from_millis(500));
//! assert!(net.ping_all()?.is_complete());
//!
//! let (h1, h4) = (net.host("h1")?, net.host("h4")?);
//! net.cut(net.link("s1", "s3")?)?;
//! assert_eq!(net.ping(h1, h4)?.received, 0);
//! # Ok(())
//! # }
//! ```
//!
//! **What.** [`Net`] is built from a plan of `urtica-topology`. Its switches are `urtica-switch`'s and its controller is
//! `urtica-controller`'s, exactly as on a real network. Only the links, hosts, control channels and time are simulated.
//!
//! **How.** One thread executes the next event of a queue ([`Net::run_for`]); time jumps from one event to the next. All
//! randomness is drawn from one seed ([`Draw`]), and nothing depends on a clock or on an order that may differ between runs, so
//! a run can be repeated exactly. To observe events, add a [`Watcher`](watch::Watcher).
//!
//! **Cost.** Frames that reach a switch within its [delay](NetConfig::switch_delay) are processed in one burst, and frames that
//! arrive from one link at one time are one event.
//!
//! **Thread-safety.** A network belongs to one thread. Independent networks may run on several threads.

#![forbid(unsafe_code)]

/// The example of the guide, run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/net.md")]
struct Guide;

mod agenda;
mod channel;
pub mod digest;
mod draw;
mod frame;
mod host;
mod ids;
mod kernel;
mod link;
mod names;
mod net;
mod node;
pub mod pcap;
mod pipe;
mod port;
mod remote;
pub mod simulate;
pub mod tracer;
pub mod watch;

pub use channel::ChannelConfig;
pub use draw::Draw;
pub use frame::Tag;
pub use host::{Datagrams, FlowReport, HostCounters, PingReport};
pub use ids::{End, HostId, LinkId, SwitchId};
pub use kernel::Broken;
pub use link::LinkCounters;
pub use net::{FlowId, LostEnd, Net, NetConfig, NetError, PingAllReport, PingId};
