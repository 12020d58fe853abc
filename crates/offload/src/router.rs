//! `l3` with a kernel half.

use crate::application::Application;
use crate::kernel::{Kernel, ResumedSession, Unavailable};
use crate::l3_tables::{SharedTables, forget};
use crate::late::Late;
use crate::link::{Link, Turns};
use crate::mode::Mode;
use crate::session::Memory;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};
use std::time::Instant;
use urtica_apps::{L3Fact, L3Kernel, L3Session};
use urtica_controller::hold::Id;
use urtica_controller::{KernelHalf, ProgramId, SwitchInfo};
use urtica_services::Hosts;
use urtica_topology::PortId;
use urtica_wire::{DatapathId, PortNo, Version};

/// Answers in the kernel for [`L3`](urtica_apps::L3) when it can, with `l3`'s replies, byte for byte. See
/// [`L3::in_kernel`](urtica_apps::L3::in_kernel).
///
/// It answers by facts that the program has stored: packets of a host to an address are answered from the second on, and so are
/// requests for a gateway. Each switch has its own tables, in memory that kernel and program share: 2,048 hosts, 4,096
/// addresses and, in OpenFlow 1.3, 4,096 flows. If a table is full, the program answers.
///
/// ```no_run
/// use std::sync::Arc;
/// use urtica_apps::{L3, L3Config};
/// use urtica_controller::Controller;
/// use urtica_offload::RouterKernel;
/// use urtica_services::{
///     Discovery, DiscoveryConfig, Hosts, HostsConfig, ProvisionConfig, Provisioner, Routes,
/// };
///
/// fn main() -> Result<(), Box<dyn std::error::Error>> {
///     let config: L3Config = std::fs::read_to_string("subnets.toml")?.parse()?;
///     let discovery = Discovery::new(DiscoveryConfig::default());
///     let hosts = Hosts::new(&discovery, HostsConfig::default());
///     let routes = Routes::new(&discovery);
///     let provisioner = Provisioner::new(ProvisionConfig::default());
///     let l3 = L3::new(&discovery, &hosts, &routes, &provisioner, config);
///     Controller::new()
///         .program(discovery)
///         .program(hosts)
///         .program(routes)
///         .program(provisioner)
///         .program(l3.in_kernel(Arc::new(RouterKernel::start()?)))
///         .run_programs()?;
///     Ok(())
/// }
/// ```
///
/// Thread-safety: one lock guards the sessions of each switch. No other lock is taken while it is held.
#[derive(Clone)]
pub struct RouterKernel {
    kernel: Late,
    mode: Mode,
    sessions: Arc<Mutex<HashMap<DatapathId, Vec<Weak<Memory>>>>>,
}

impl RouterKernel {
    /// Loads the programs, for [`Mode::Auto`].
    ///
    /// # Errors
    /// [`Unavailable`] if this build has no programs, or the kernel does not accept them.
    pub fn start() -> Result<Self, Unavailable> {
        Ok(Self::of(Kernel::load(Application::L3)?))
    }

    /// Creates the kernel half of the router from loaded programs.
    pub(crate) fn of(kernel: Kernel) -> Self {
        Self {
            kernel: Late::of(kernel),
            ..Self::later()
        }
    }

    /// Creates the kernel half before anything is loaded: the program answers alone until another thread has called
    /// [`RouterKernel::load`].
    pub fn later() -> Self {
        Self {
            kernel: Late::default(),
            mode: Mode::default(),
            sessions: Arc::default(),
        }
    }

    /// Loads the programs, for at most this number of switches ([`Kernel::max_switches`]). Connected switches have kernel
    /// halves from then on. Must be called once.
    ///
    /// # Errors
    /// Those of [`RouterKernel::start`]. The program then answers alone.
    pub fn load(&self, max_switches: u32) -> Result<(), Unavailable> {
        self.kernel.load(Application::L3, max_switches)
    }

    /// Sets the mode.
    pub fn mode(self, mode: Mode) -> Self {
        Self { mode, ..self }
    }

    /// Limits the number of connections at a time: see [`Kernel::max_switches`].
    pub fn max_switches(self, count: u32) -> Self {
        if let Some(kernel) = self.kernel.get() {
            kernel.limit(count);
        }
        self
    }

    fn add_session(&self, switch: DatapathId, memory: &Arc<Memory>) {
        let mut sessions = self.sessions.lock();
        sessions.retain(|_, of_switch| {
            of_switch.retain(|session| session.strong_count() > 0);
            !of_switch.is_empty()
        });
        let of_switch = sessions.entry(switch).or_default();
        of_switch.push(Arc::downgrade(memory));
    }
}

impl fmt::Debug for RouterKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RouterKernel")
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}

impl L3Kernel for RouterKernel {
    fn open(
        &self,
        switch: &SwitchInfo,
        program: ProgramId,
        hosts: &Hosts,
    ) -> Option<Box<dyn L3Session>> {
        Some(Box::new(Session::new(self, switch, program, hosts)))
    }

    fn resume(
        &self,
        switch: &SwitchInfo,
        held: Id,
        program: ProgramId,
        hosts: &Hosts,
    ) -> Option<Box<dyn L3Session>> {
        let ResumedSession { memory, turns } = self.kernel.get()?.take_resumed(held)?;
        if memory.shared().version.load(Relaxed) != u32::from(switch.version.to_wire()) {
            return None;
        }
        let mut tables = SharedTables::resume(Arc::clone(&memory), xid_of(program))?;
        tables.forget_stale();
        restore_hosts(&mut tables, switch.datapath_id, hosts);
        // Restoring hosts counts as a change, so this follows it.
        self.add_session(switch.datapath_id, &memory);
        let mut session = Session::new(self, switch, program, hosts);
        turns.set(session.share(tables));
        Some(Box::new(session))
    }

    fn forget(&self, switch: DatapathId) {
        let sessions = self.sessions.lock();
        for session in sessions.get(&switch).into_iter().flatten() {
            if let Some(memory) = session.upgrade() {
                forget(&memory);
            }
        }
    }
}

/// Restores hosts whose addresses are in the tables.
fn restore_hosts(tables: &mut SharedTables, switch: DatapathId, hosts: &Hosts) {
    for hop in tables.next_hops() {
        if let L3Fact::NextHop {
            address,
            port,
            dst,
            is_owner: true,
            ..
        } = hop
        {
            hosts.restore(dst, PortId::new(switch, port), address);
        }
    }
}

/// Returns the xid of messages that a program sends through its network.
fn xid_of(program: ProgramId) -> u32 {
    u32::from(program.number()) << 24
}

/// The last of 1.0's ports that the kernel writes. Higher numbers may be reserved, with another meaning.
const LAST_PORT_OF10: PortNo = PortNo(0x7fff);

/// One switch's session, for its handler.
struct Session {
    router: RouterKernel,
    switch: DatapathId,
    version: Version,
    hosts: Hosts,
    xid: u32,
    /// Locked only by the connection's thread. `None` until the switch has a session in the kernel.
    tables: Option<Arc<Mutex<SharedTables>>>,
    last_port: PortNo,
}

impl Session {
    /// Creates a session without tables.
    fn new(router: &RouterKernel, switch: &SwitchInfo, program: ProgramId, hosts: &Hosts) -> Self {
        Self {
            router: router.clone(),
            switch: switch.datapath_id,
            version: switch.version,
            hosts: hosts.clone(),
            xid: xid_of(program),
            tables: None,
            last_port: match switch.version {
                Version::Of10 => LAST_PORT_OF10,
                Version::Of13 => PortNo(u32::MAX),
            },
        }
    }

    /// Uses these tables from now on. Returns the actions for changes of their owner.
    fn share(&mut self, tables: SharedTables) -> RouterTurns {
        let tables = Arc::new(Mutex::new(tables));
        self.tables = Some(Arc::clone(&tables));
        RouterTurns {
            tables,
            hosts: self.hosts.clone(),
            switch: self.switch,
        }
    }
}

impl L3Session for Session {
    fn begin(&mut self) {
        if let Some(tables) = &self.tables {
            tables.lock().forget_stale();
        }
    }

    fn tell(&mut self, fact: L3Fact) {
        let Some(tables) = &self.tables else {
            return;
        };
        match fact {
            L3Fact::Host { port, .. } | L3Fact::NextHop { port, .. } if port > self.last_port => {}
            _ => tables.lock().tell(fact),
        }
    }

    fn retain(&mut self, is_so: &mut dyn FnMut(L3Fact) -> bool) {
        if let Some(tables) = &self.tables {
            tables.lock().retain(is_so);
        }
    }

    fn kernel_half(&mut self) -> Option<Box<dyn KernelHalf>> {
        if self.tables.is_some() {
            return None;
        }
        let kernel = self.router.kernel.get()?.clone();
        let opened = kernel.open_session()?;
        let memory = Arc::clone(&opened.memory);
        let version = self.version.to_wire().into();
        memory.shared().version.store(version, Relaxed);
        let tables = SharedTables::new(Arc::clone(&memory), self.xid);
        self.router.add_session(self.switch, &memory);
        let turns = self.share(tables);
        let mode = self.router.mode;
        Some(Box::new(Link::with_turns(kernel, opened, mode, turns)))
    }
}

/// The actions when the owner of the tables changes.
struct RouterTurns {
    tables: Arc<Mutex<SharedTables>>,
    hosts: Hosts,
    switch: DatapathId,
}

impl Turns for RouterTurns {
    fn before_kernel(&self) {
        self.tables.lock().forget_stale();
    }

    fn after_kernel(&self) {
        let (now, switch) = (Instant::now(), self.switch);
        self.tables.lock().take_heard(|mac, port| {
            self.hosts.note_heard(mac, PortId::new(switch, port), now);
        });
    }
}
