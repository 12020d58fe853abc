//! Services in the kernel, the paper's driven mode: frequent packets for a program's services are settled before they
//! reach it, by tables that the services keep up to date.
//!
//! **What.** Echo requests and replies, probes of known links, requests for the addresses of known hosts, and hosts' answers to
//! our probes. `bpf/services.bpf.c` settles them like the session and `urtica-services`, byte by byte; tests compare both.
//!
//! **The control queue.** The services' tables, which are BPF maps ([`ServiceOffload`]), one set for all switches, pass
//! information down. *Events* pass it up: packet-ins that are settled but have news, such as an unknown sender whose request
//! was answered. They are in the session's memory, whose owner is either the kernel or the program. So they need no separate
//! ring, and the program receives them before any input that was passed after them.
//!
//! **Left to the program.** Everything that starts without input: hello, features request, echo requests, probes. A program on
//! the kernel's sockets runs only for input.

mod half;
mod part;
#[cfg(not(without_programs))]
mod tables;
#[cfg(without_programs)]
#[path = "absent.rs"]
mod tables;

use crate::application::Application;
use crate::kernel::ResumedSession;
use crate::kernel::{Kernel, Unavailable};
use crate::link::Link;
use crate::mode::Mode;
use crate::session::Memory;
use half::{Half, count_others};
pub(crate) use part::Part;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tables::Tables;
use urtica_controller::hold::Id;
use urtica_controller::{KernelHalf, KernelHalves, Resumed, SwitchInfo};
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
/// A service without [`Driven::offload`] does its work alone. Programs before the services do not receive settled packets, so
/// do not use this with a program that must receive all packets.
///
/// A switch is left to the program while its queue stays long, as in [`Mode::Auto`].
#[derive(Clone)]
pub struct Driven {
    kernel: Kernel,
    tables: Arc<Tables>,
}

/// The default of [`HostsConfig::max_hosts`](urtica_services::HostsConfig::max_hosts).
const HOSTS: u32 = 1 << 17;

impl Driven {
    /// The application whose tables a holder can keep.
    pub(crate) const APPLICATION: Application = Application::Services { hosts: HOSTS };

    /// Creates it from programs whose tables a holder keeps, and which may be those of an earlier program.
    pub(crate) fn of_held(kernel: Kernel) -> Result<Self, Unavailable> {
        let driven = Self::of(kernel)?;
        driven.tables.keep_hosts();
        Ok(driven)
    }

    fn of(kernel: Kernel) -> Result<Self, Unavailable> {
        let tables = Tables::open(&kernel).map_err(Unavailable::because)?;
        Ok(Self {
            kernel,
            tables: Arc::new(tables),
        })
    }

    /// Loads the programs for the kernel, with space for 131,072 hosts, the default of
    /// [`Hosts`](urtica_services::Hosts).
    ///
    /// # Errors
    /// [`Unavailable`] if this build has no programs, or the kernel does not accept them.
    pub fn start() -> Result<Self, Unavailable> {
        Self::start_for(HOSTS)
    }

    /// Loads the programs with space for this number of hosts, at least one, and twice as many addresses. Memory is allocated
    /// on demand. The program handles the packets of further hosts.
    ///
    /// # Errors
    /// Those of [`Driven::start`].
    pub fn start_for(hosts: u32) -> Result<Self, Unavailable> {
        let hosts = hosts.max(1);
        Self::of(Kernel::load(Application::Services { hosts })?)
    }

    /// Limits the number of switches at a time: see [`Kernel::max_switches`]. Each needs about 0.2 MB of the kernel's
    /// memory.
    pub fn max_switches(self, count: u32) -> Self {
        let kernel = self.kernel.max_switches(count);
        Self { kernel, ..self }
    }

    /// Returns the services' interface to the tables.
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

    fn resume(&self, info: &SwitchInfo, held: Id) -> bool {
        let Some(ResumedSession { memory, .. }) = self.kernel.take_resumed(held) else {
            return false;
        };
        let version = u32::from(info.version.to_wire());
        let datapath_id = Part::of(&memory).datapath_id.load(Relaxed);
        let is_same =
            memory.shared().version.load(Relaxed) == version && datapath_id == info.datapath_id.0;
        if is_same {
            self.tables.resume(info.datapath_id);
        }
        is_same
    }
}

/// Continues with the link of an earlier program, whose session is mapped with this application's part.
pub(crate) fn resume(link: Link, memory: &Arc<Memory>, socket: BorrowedFd) -> io::Result<Resumed> {
    let mut resumed = link.into_resumed(socket, |link| Box::new(Half::resume(link, memory)))?;
    count_others(Part::of(memory), &mut resumed.reclaimed);
    Ok(resumed)
}
