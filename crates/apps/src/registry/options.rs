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

/// Options of all bundled programs. The names of a program's options start with its name.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Options of programs")]
pub struct Options {
    /// Options of `bandwidth`.
    #[command(flatten)]
    pub bandwidth: BandwidthArgs,
    /// Options of `firewall`.
    #[command(flatten)]
    pub firewall: FirewallArgs,
    /// Options of `elephants`.
    #[command(flatten)]
    pub elephants: ElephantsArgs,
    /// Options of `global`, `global-mutex` and `global-stm`.
    #[command(flatten)]
    pub global: GlobalArgs,
    /// Options of `l2`.
    #[command(flatten)]
    pub l2: L2Args,
    /// Options of `l3`, without its kernel half.
    #[command(flatten)]
    pub l3: L3Args,
    /// Options of `routing`.
    #[command(flatten)]
    pub routing: RoutingArgs,
    /// Options of `security`.
    #[command(flatten)]
    pub security: SecurityArgs,
    /// The kernel half of `l3`; not on the command line. It requires [`is_l3_first`](crate::is_l3_first).
    #[arg(skip)]
    pub l3_kernel: Option<Arc<dyn L3Kernel>>,
    /// Settings of `discovery`; not on the command line.
    #[arg(skip)]
    pub discovery: DiscoveryConfig,
    /// Settings of `hosts`; not on the command line.
    #[arg(skip)]
    pub hosts: HostsConfig,
}

impl Options {
    /// Returns the options of `l3`, with its kernel half.
    pub(super) fn l3_options(&self) -> L3Options {
        L3Options {
            args: self.l3.clone(),
            kernel: self.l3_kernel.clone(),
        }
    }
}
