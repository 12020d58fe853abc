//! The settings of `routing`.

use super::RoutingArgs;
use crate::flood_budget::FloodLimit;

/// Settings of [`Routing`](super::Routing).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoutingConfig {
    /// The limit of packets to unknown hosts that are flooded from each port. 1,000 a second, and a burst of 2,000.
    pub flood_limit: FloodLimit,
    /// The maximum number of flows with entries that are charged to a port: flows that its hosts started, and the replies to
    /// them. 1,024.
    pub flows_per_port: usize,
}

impl Default for RoutingConfig {
    fn default() -> Self {
        Self::from(&RoutingArgs::default())
    }
}

impl From<&RoutingArgs> for RoutingConfig {
    fn from(args: &RoutingArgs) -> Self {
        Self {
            flood_limit: args.routing_flood_limit.unwrap_or_default(),
            flows_per_port: args.routing_flows_per_port.unwrap_or(1_024) as usize,
        }
    }
}
