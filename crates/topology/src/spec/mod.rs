//! Networks by name, and from files.
//!
//! **What.** A [`TopologySpec`] is read from text such as `tree,depth=3,fanout=3` or `file:net.toml`; its [`Plan`] says which
//! switches, hosts and links the network has. [`Plan::topology`] is the network's true topology.
//!
//! **Why.** Names and numbers are those of Mininet, for the topologies that it has: what a user knows about
//! `mn --topo tree,3,3`, from `s1` to which port `h27` is at, holds here. Sizes are bounded, so that a slip of the finger
//! is a sentence and not a machine out of memory.
//!
//! **Cost.** A plan takes some hundred bytes for each host. Making one is linear in its size.
//!
//! **Thread-safety.** Values. Only [`TopologySpec::plan`] of a file does I/O: it reads the file.

mod builder;
mod file;
mod form;
mod plan;
mod topology_spec;

pub use file::PlanError;
pub use plan::{HostPlan, LinkPlan, LinkProperties, Plan, SwitchPlan};
pub use topology_spec::{MAX_HOSTS, MAX_LINKS, MAX_SWITCHES, SpecError, TopologySpec};
