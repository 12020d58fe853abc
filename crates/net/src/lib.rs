//! A whole network in one process, to try things in, to teach with, and to test with: without root, and without waiting.
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
//! **What.** [`Net`] is built from a plan of `urtica-topology`. Its switches are `urtica-switch`'s, its controller is
//! `urtica-controller`'s, both to the byte what runs on a real network. Ours are the links, the hosts, the control channels, and time.
//!
//! **How.** One thread takes the next thing that is due off an agenda and lets it happen ([`Net::run_for`]); time jumps from one to the
//! next. What is left to chance is drawn from one seed ([`Draw`]), and nothing looks at a clock or at an order that another run would not
//! have: a run can be repeated exactly. Who wants to see what happens puts on a [`Watcher`](watch::Watcher).
//!
//! **Cost.** Frames that come to a switch within its [delay](NetConfig::switch_delay) go through it in one burst, and those of one link that
//! arrive at the same time are one item on the agenda.
//!
//! **Thread-safety.** A network belongs to one thread. Several may run side by side, and know nothing of each other.

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
