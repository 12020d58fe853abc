//! What programs that look at the whole network have in common: the services (Shalimov and Ivashchenko, section III,
//! "service layer").
//!
//! A service is a [`Program`] like any other, in [`Stage::Observe`]: it sees messages before those that filter
//! and forward. It is also a handle: cheap to clone, and handed to the programs that build on it.
//!
//! - [`Discovery`] finds links between switches by LLDP, and makes flooding safe where they form loops.
//! - [`Hosts`] knows which end stations there are, where, and with which addresses.
//! - [`NeighbourProxy`] answers ARP and neighbour solicitations in their names.
//! - [`Routes`] keeps next hops between all switches up to date.
//! - [`Provisioner`] sets up flow paths across switches, whole or not at all.

#![forbid(unsafe_code)]

#[cfg(doc)]
use urtica_controller::{Program, Stage};

/// The examples of the guide, compiled with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/services.md")]
struct Guide;

mod broadcast;
mod bucket;
mod discovery;
mod flooding;
mod hosts;
mod neighbour_proxy;
mod provision;
mod routes;
mod timers;

pub(crate) use broadcast::Announcer;
pub use broadcast::Events;
pub use discovery::{
    DampingConfig, Discovery, DiscoveryConfig, DiscoveryCounters, DiscoveryEvent, DownReason,
    HostLldp, Refusal,
};
pub use flooding::{FloodTree, PortRole};
pub use hosts::{ConflictPolicy, EVENT_INTERVAL, Host, HostEvent, Hosts, HostsConfig, LeftReason};
pub use neighbour_proxy::{NeighbourProxy, NeighbourProxyConfig, NeighbourProxyCounts};
pub use provision::{
    COOKIE_TAG, COOKIE_TAG_MASK, Flow, Outcome, ProvisionConfig, ProvisionCounts, ProvisionError,
    Provisioned, Provisioner, Provisioning, Removing,
};
pub use routes::{NoPath, Routes};
