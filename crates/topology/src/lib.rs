//! The topology of a network, and paths through it.
//!
//! **Why a separate crate.** Two users need the same algorithms: the controller, which learns the network from its switches,
//! and an emulated network, which knows its own true topology and checks the controller against it. This crate reads no clock,
//! has no threads of its own, and does no I/O except for reading a topology's file.
//!
//! ```
//! use urtica_topology::spec::TopologySpec;
//! use urtica_topology::{NextHops, SpanningTree, shortest};
//!
//! let spec: TopologySpec = "ring,5".parse()?;
//! let plan = spec.plan()?;
//! let topology = plan.topology();
//!
//! let (h1, h3) = (plan.hosts[0].attached, plan.hosts[2].attached);
//! let path = shortest::path(&topology, h1, h3).expect("a ring is connected");
//! let switches: Vec<_> = path.hops.iter().map(|hop| hop.switch.0).collect();
//! assert_eq!(switches, [1, 2, 3]);
//!
//! // A link of the ring is left out of the tree: its ports do not flood.
//! let tree = SpanningTree::new(&topology);
//! let blocked = topology.link_ports().iter().filter(|port| !tree.is_flood_port(**port));
//! assert_eq!(blocked.count(), 2);
//!
//! // The link that the path takes first fails, in one direction: h3 is now reached the other way round.
//! let first = path.directed_links().next().expect("there are three hops");
//! let next_hops = NextHops::new(topology.clone().into());
//! let next_hops = next_hops.updated(topology.without_link(first).into());
//! assert_eq!(next_hops.distance(h1.switch, h3.switch), Some(3));
//! # Ok::<(), urtica_topology::spec::SpecError>(())
//! ```
//!
//! A [`Topology`] never changes: a change creates another one. Everything computed from it is deterministic: the same switches
//! and links, in any order and computed by any number of threads, result in the same paths. It has no hosts, since they change
//! for other reasons; a path leads from any port to any port.
//!
//! With `n` switches, `m` links, `d` links at a switch, and paths of `h` hops:
//!
//! | query | algorithm | cost | reference in the tests |
//! | --- | --- | --- | --- |
//! | [`shortest::path`] | breadth-first search, until it reaches the source | `n + m` | all paths; petgraph's `dijkstra` |
//! | [`shortest::path_by_cost`] | Dijkstra | `m log m` | petgraph's `dijkstra` |
//! | [`NextHops::new`] | breadth-first searches, 64 together | `n (n + m)` at worst, `n² + n m / 64` at best | one search after the other; petgraph's `dijkstra` |
//! | [`NextHops::updated`] | searches only for destinations whose distances change | `n + m`, `n` for each changed link, and the searches | `NextHops::new` |
//! | [`NextHops::next_hops`], [`NextHops::path`] | scan of the links of each switch on the path | `d`, `h d` | petgraph's distances |
//! | [`k_shortest::paths`] | Yen and Lawler | for each path, `h` searches of `m log m` | all paths |
//! | [`SpanningTree::new`] | by distance from the root, as 802.1D | `n + m log d` | petgraph's `UnionFind`; a packet flooded hop by hop |
//! | [`spec`] | | linear | Mininet |
//! | [`draw`] | stress majorization | `n²` for each of at most 300 rounds; bounded | |

#![forbid(unsafe_code)]

mod link;
mod next_hops;
mod path;
mod search;
mod sorted;
mod spanning_tree;
#[cfg(test)]
mod testing;
mod topology;

pub mod draw;
pub mod k_shortest;
pub mod shortest;
pub mod spec;

pub use link::{DirectedLink, PortId};
pub use next_hops::NextHops;
pub use path::{Hop, Path};
pub use spanning_tree::SpanningTree;
pub use topology::{SwitchIndex, Topology};
