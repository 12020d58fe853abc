//! The control programs that come with Urtica: each one readable file.
//!
//! They use nothing that a program of your own could not; copy one to begin. `docs/apps.md` tells what each does, how
//! to run it, and what it does not do. [`add_all`] puts them into a controller by name, as `urtica run` does.

mod bandwidth;
mod edges;
mod elephants;
mod firewall;
mod global;
mod host_table;
mod hub;
mod l2;
mod l3;
mod mac_table;
mod paths;
mod registry;
mod routing;
mod security;

pub use bandwidth::{
    Bandwidth, BandwidthArgs, BandwidthConfig, BandwidthError, Demand, ParseDemandError, Reserved,
};
pub use edges::{EdgeLearning, FULL_PORT_KEPT_FOR, MAX_HOSTS_PER_PORT};
pub use elephants::{Elephants, ElephantsArgs, ElephantsConfig};
pub use firewall::{
    Firewall, FirewallArgs, FirewallError, FirewallRules, Rule, RulesError, Verdict,
};
pub use global::{Global, GlobalArgs};
pub use host_table::{
    Heard, Host, HostTable, LockFree, Locked, Place, Transactional, WrittenEachTime,
};
pub use hub::Hub;
pub use l2::L2;
pub use l3::{Interface, L3, L3Args, L3Config, L3ConfigError, L3Error, Subnet};
pub use mac_table::{Learned, MacEntry, MacTable, Places};
pub use registry::{Options, SetupError, add_all, add_by_name, names, overview};
pub use routing::Routing;
pub use security::{Dropped, Offence, Security, SecurityArgs, SecurityConfig};
