//! Services: control programs that other programs build on, for programs that need the whole network (Shalimov and
//! Ivashchenko, section III, "service layer").
//!
//! **Why a separate crate.** The controller's core does not depend on services: it defines interfaces, such as
//! [`FloodPorts`](urtica_controller::FloodPorts), which services implement. A program that consists of handlers only does not
//! need this crate.
//!
//! A service is a [`Program`] like any other, in [`Stage::Observe`]: it receives messages before the programs that filter and
//! forward. It is also a handle, cheap to clone, which is passed to the programs that build on it.
//!
//! - [`Discovery`] finds links between switches by LLDP, and makes flooding safe where they form loops.
//! - [`Hosts`] tracks the end stations, their locations and their addresses.
//! - [`NeighbourProxy`] answers ARP and neighbour solicitations on their behalf.
//! - [`Routes`] keeps next hops between all switches up to date.
//! - [`Provisioner`] sets up flow paths across switches, whole or not at all.
//!
//! ```
//! use urtica_controller::Controller;
//! use urtica_services::{Discovery, DiscoveryConfig, Hosts, HostsConfig};
//!
//! let discovery = Discovery::new(DiscoveryConfig::default());
//! let hosts = Hosts::new(&discovery, HostsConfig::default());
//! let controller = Controller::new().program(discovery).program(hosts);
//! # let _ = controller;
//! ```

#![forbid(unsafe_code)]

#[cfg(doc)]
use urtica_controller::{Program, Stage};

/// The examples of the guide, compiled with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/services.md")]
struct Guide;

mod bucket;
mod discovery;
mod flooding;
mod hosts;
mod neighbour_proxy;
mod notify;
mod offload;
mod provision;
mod routes;
mod timers;

pub use discovery::{
    DampingConfig, Discovery, DiscoveryConfig, DiscoveryCounters, DiscoveryEvent, DownReason,
    HostLldp, Refusal,
};
pub use flooding::{FloodTree, PortRole};
pub use hosts::{
    ConflictPolicy, EVENT_INTERVAL, Host, HostEvent, Hosts, HostsConfig, HostsWatcher, LeftReason,
};
pub use neighbour_proxy::{NeighbourProxy, NeighbourProxyConfig, NeighbourProxyCounts};
pub use offload::{KeptHost, LinkProbe, ServiceOffload, SettledCounts};
pub use provision::{
    COOKIE_TAG, COOKIE_TAG_MASK, Flow, Outcome, ProvisionConfig, ProvisionCounts, ProvisionError,
    Provisioned, Provisioner, Provisioning, Removing, is_provisioned,
};
pub use routes::{NoPath, Routes};
pub use urtica_controller::Events;
