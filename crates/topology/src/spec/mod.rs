//! Networks specified by name, or described in files.
//!
//! **What.** A [`TopologySpec`] is parsed from text such as `tree,depth=3,fanout=3` or `file:net.toml`. Its [`Plan`] lists the
//! network's switches, hosts and links. [`Plan::topology`] is the network's true topology.
//!
//! **Why.** Names and numbers equal Mininet's, for the topologies that it has: `mn --topo tree,3,3` has the same switches,
//! hosts and ports, from `s1` to the port of `h27`. Sizes are limited, so that a typing error results in an error message
//! instead of exhausting the memory.
//!
//! **Cost.** A plan needs some hundred bytes per host. Creating it needs time linear in its size.
//!
//! **Thread-safety.** All types are plain values. Only [`TopologySpec::plan`] does I/O, when it reads a file.

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
