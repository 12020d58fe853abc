//! Replacements of Ryu's REST applications: programs that are controlled by requests alone.
//!
//! **What.** [`RestFirewall`] lets pass what its rules allow, [`RestQos`] gives packets queues, meters and marks, and
//! [`RestRouter`] routes between subnets. What a request changes is kept here, and installed again
//! whenever a switch connects; it is gone when the controller ends. The paths are those of `urtica-northbound`.
//!
//! **Order.** What is kept for switches changes under one lock, and what is sent to make it so is handed over under the
//! same lock: a switch gets the changes in the order in which they were made. The lock is taken before those of
//! [`Network`](urtica_controller::Network).

mod firewall;
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

/// The programs that stand for Ryu's REST applications, whether they run or not. Clones share what is kept.
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
