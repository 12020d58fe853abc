//! Networks by name, and from files.
//!
//! **What.** A [`TopologySpec`] is read from text such as `tree,depth=3,fanout=3` or `file:net.toml`; its [`Plan`] lists
//! the network's switches, hosts and links. [`Plan::topology`] is the network's true topology.
//!
//! **Why.** Names and numbers equal Mininet's, for the topologies that it has: `mn --topo tree,3,3` has the same
//! switches, hosts and ports, from `s1` to the port of `h27`. Sizes are bounded, so that a typing error gives an error
//! message and does not exhaust the memory.
//!
//! **Cost.** A plan needs some hundred bytes for each host, and time linear in its size to make.
//!
//! **Thread-safety.** Values. Only [`TopologySpec::plan`] of a file does I/O: it reads the file.

mod builder;
mod file;
mod form;
mod plan;
mod topology_spec;

pub use file::{ParseQuantityError, PlanError, bandwidth_bps, bandwidth_text};
pub use plan::{
    HostPlan, LinkPlan, LinkProperties, MAX_HOSTS, MAX_LINKS, MAX_SWITCHES, Plan, SwitchPlan,
};
pub use topology_spec::{SpecError, TopologySpec};
