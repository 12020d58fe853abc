//! The control programs that come with Urtica: learning switches, routing, a firewall, L3 forwarding and others.
//!
//! **Why a separate crate.** The programs use only public interfaces, like a program of your own; each is one file, to read
//! and to copy. `docs/apps.md` describes each of them and its limits.
//!
//! [`add_all`] adds programs to a controller by name, with the services that they need, as `urtica run` does:
//!
//! ```
//! use urtica_apps::{Options, add_all};
//! use urtica_controller::Controller;
//!
//! # fn main() -> Result<(), urtica_apps::SetupError> {
//! let controller = add_all(Controller::new(), &["discovery", "l2"], &Options::default())?;
//! # let _ = controller;
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod bandwidth;
mod edges;
mod elephants;
mod firewall;
mod flood_budget;
mod full_table;
mod global;
mod host_table;
mod hub;
mod l2;
mod l3;
mod mac_table;
mod paths;
mod registry;
mod routing;
mod ryu;
mod security;

pub use bandwidth::{
    Bandwidth, BandwidthArgs, BandwidthConfig, BandwidthError, Demand, ParseDemandError, Reserved,
    Unbalanced,
};
pub use edges::{EdgeLearning, FULL_PORT_KEPT_FOR, MAX_HOSTS_PER_PORT};
pub use elephants::{Elephants, ElephantsArgs, ElephantsConfig};
pub use firewall::{
    Firewall, FirewallArgs, FirewallError, FirewallRules, Rule, RulesError, Verdict,
};
pub use flood_budget::{FloodLimit, ParseFloodLimitError};
pub use global::{Global, GlobalArgs};
pub use host_table::{
    Heard, Host, HostTable, LockFree, Locked, Place, Transactional, WrittenEachTime,
};
pub use hub::Hub;
pub use l2::{L2, L2Args};
pub use l3::{
    Interface, L3, L3Args, L3Config, L3ConfigError, L3Error, L3Fact, L3Kernel, L3Session, Subnet,
};
pub use mac_table::{Learned, MacEntry, MacTable, Slots};
pub use registry::{
    AppChange, Apps, NextApps, Options, Services, SetupError, add_all, add_all_with_services,
    add_by_name, find_watchful, is_l3_first, names, need_first_packets_only, overview,
};
pub use routing::{Routing, RoutingArgs, RoutingConfig};
pub use ryu::{
    Deleted, FirewallStatus, MAX_RULES_PER_SWITCH, QosAction, RestFirewall, RestQos, RestRouter,
    RouterAddress, RouterError, RouterRoute, RouterView, RyuApps, RyuError, RyuRule,
};
pub use security::{Dropped, Offence, Security, SecurityArgs, SecurityConfig};
