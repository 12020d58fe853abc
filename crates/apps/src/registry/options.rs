//! The options of all programs.

use crate::bandwidth::BandwidthArgs;
use crate::elephants::ElephantsArgs;
use crate::firewall::FirewallArgs;
use crate::global::GlobalArgs;
use crate::l2::L2Args;
use crate::l3::{L3Args, L3Kernel, L3Options};
use crate::routing::RoutingArgs;
use crate::security::SecurityArgs;
use std::sync::Arc;
use urtica_services::{DiscoveryConfig, HostsConfig};

/// Options of all bundled programs; each has its own, named after it.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Options of programs")]
pub struct Options {
    /// Of `bandwidth`.
    #[command(flatten)]
    pub bandwidth: BandwidthArgs,
    /// Of `firewall`.
    #[command(flatten)]
    pub firewall: FirewallArgs,
    /// Of `elephants`.
    #[command(flatten)]
    pub elephants: ElephantsArgs,
    /// Of `global`, `global-mutex` and `global-stm`.
    #[command(flatten)]
    pub global: GlobalArgs,
    /// Of `l2`.
    #[command(flatten)]
    pub l2: L2Args,
    /// Of `l3`.
    #[command(flatten)]
    pub l3: L3Args,
    /// Of `routing`.
    #[command(flatten)]
    pub routing: RoutingArgs,
    /// Of `security`.
    #[command(flatten)]
    pub security: SecurityArgs,
    /// The kernel half of `l3`; not on the command line. It requires [`is_l3_first`](crate::is_l3_first).
    #[arg(skip)]
    pub l3_kernel: Option<Arc<dyn L3Kernel>>,
    /// Of `discovery`; not on the command line.
    #[arg(skip)]
    pub discovery: DiscoveryConfig,
    /// Of `hosts`; not on the command line.
    #[arg(skip)]
    pub hosts: HostsConfig,
}

impl Options {
    /// Options of `l3`.
    pub(super) fn l3_options(&self) -> L3Options {
        L3Options {
            args: self.l3.clone(),
            kernel: self.l3_kernel.clone(),
        }
    }
}
