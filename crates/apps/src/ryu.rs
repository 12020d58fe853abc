//! Replacements of Ryu's REST applications: programs controlled by requests.
//!
//! **What.** [`RestFirewall`] passes the packets that its rules allow, [`RestQos`] assigns queues, meters and marks to
//! packets, and [`RestRouter`] routes between subnets. The settings in requests are stored until the controller ends, and
//! installed again whenever a switch connects. `urtica-northbound` defines the paths.
//!
//! **Lock order.** One lock guards the settings, and messages to switches are sent under it, so that a switch receives
//! changes in their order. It precedes the locks of [`Network`](urtica_controller::Network).

mod firewall;
mod membership;
mod qos;
mod router;
mod rules;
mod store;

pub use firewall::{FirewallStatus, RestFirewall};
pub use qos::{QosAction, RestQos};
pub use router::{Deleted, RestRouter, RouterAddress, RouterError, RouterRoute, RouterView};
pub use rules::{MAX_RULES_PER_SWITCH, RyuRule};
pub use store::RyuError;

pub(crate) use firewall::ROW as FIREWALL_ROW;
pub(crate) use qos::ROW as QOS_ROW;
pub(crate) use router::ROW as ROUTER_ROW;

/// The replacements of Ryu's REST applications, running or not. Clones share their state.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct RyuApps {
    /// Ryu's `rest_firewall`.
    pub firewall: RestFirewall,
    /// Ryu's `rest_qos`.
    pub qos: RestQos,
    /// Ryu's `rest_router`.
    pub router: RestRouter,
}
