//! Services in the kernel, the paper's driven mode: what a program's services are asked over and over is settled before it reaches
//! them, by tables that they keep up to date.
//!
//! **What.** Echo requests and replies, probes of known links, requests for the addresses of known hosts, and the answers of hosts to
//! our probes. `bpf/services.bpf.c` settles them as the session and `urtica-services` do, byte by byte; tests compare both.
//!
//! **The control queue.** Down go the services' tables, which are BPF maps ([`ServiceOffload`]): one set for all switches. Up come
//! *events*: packet-ins that are settled and say something new, such as an unknown sender whose request was answered. They are in the
//! session's memory, of which either the kernel or the program is the owner. So they need no ring of their own, and the program has them
//! before anything that was passed after them.
//!
//! **What is left to the program.** All that begins without input: hello, features request, echo requests, probes. A program for the
//! kernel's sockets runs when something comes in, and only then.

mod half;
mod part;
#[cfg(not(without_programs))]
mod tables;
#[cfg(without_programs)]
#[path = "absent.rs"]
mod tables;

use crate::kernel::{Application, Kernel, Unavailable};
use crate::mode::Mode;
use half::Half;
pub(crate) use part::Part;
use std::sync::Arc;
use tables::Tables;
use urtica_controller::{KernelHalf, KernelHalves, SwitchInfo};
use urtica_services::ServiceOffload;

/// Settles packets in the kernel on behalf of services.
///
/// ```no_run
/// use urtica_controller::Controller;
/// use urtica_offload::Driven;
/// use urtica_services::{Discovery, DiscoveryConfig, Hosts, HostsConfig, NeighbourProxy};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let discovery = Discovery::new(DiscoveryConfig::default());
/// let hosts = Hosts::new(&discovery, HostsConfig::default());
/// let proxy = NeighbourProxy::new(&hosts);
/// let driven = Driven::start()?;
/// discovery.offload(driven.offload());
/// hosts.offload(driven.offload());
/// proxy.offload(driven.offload());
/// let controller = Controller::new().kernel_halves(driven);
/// controller.program(discovery).program(hosts).run(proxy)?;
/// # Ok(())
/// # }
/// ```
///
/// A service that is not given [`Driven::offload`] does its work alone. Programs in front of the services do not see the packets that
/// are settled: do not use it with one that has to see all.
///
/// A switch whose queue stays long is left to the program meanwhile, as in [`Mode::Auto`].
#[derive(Clone)]
pub struct Driven {
    kernel: Kernel,
    tables: Arc<Tables>,
}

/// As many as [`HostsConfig::max_hosts`](urtica_services::HostsConfig::max_hosts) has by default.
const HOSTS: u32 = 1 << 17;

impl Driven {
    /// Loads the programs for the kernel, with room for 131,072 hosts, as [`Hosts`](urtica_services::Hosts) has it.
    ///
    /// # Errors
    /// [`Unavailable`] where there are none, or the kernel does not take them.
    pub fn start() -> Result<Self, Unavailable> {
        Self::start_for(HOSTS)
    }

    /// The same with room for so many hosts, at least one, and twice as many addresses. Memory is taken as they come; the program
    /// deals with those that there is no room for.
    ///
    /// # Errors
    /// As [`Driven::start`].
    pub fn start_for(hosts: u32) -> Result<Self, Unavailable> {
        let hosts = hosts.max(1);
        let kernel = Kernel::load(Application::Services { hosts })?;
        let tables = Tables::open(&kernel).map_err(Unavailable::because)?;
        Ok(Self {
            kernel,
            tables: Arc::new(tables),
        })
    }

    /// The same for at most so many switches at a time: see [`Kernel::max_switches`]. Each takes about 0.2 MB of the kernel's memory.
    pub fn max_switches(self, count: u32) -> Self {
        let kernel = self.kernel.max_switches(count);
        Self { kernel, ..self }
    }

    /// What services write their tables to.
    pub fn offload(&self) -> Arc<dyn ServiceOffload> {
        self.tables.clone()
    }
}

impl KernelHalves for Driven {
    fn open(&self, info: &SwitchInfo) -> Option<Box<dyn KernelHalf>> {
        let opened = self.kernel.open_session()?;
        Some(Box::new(Half::new(
            self.kernel.clone(),
            opened,
            info,
            Mode::Auto,
        )))
    }
}
