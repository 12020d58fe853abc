//! `l2` with a kernel half.

use crate::application::Application;
use crate::kernel::{Kernel, Unavailable};
use crate::late::Late;
use crate::link::{Link, clock_ns_at};
use crate::mode::Mode;
use crate::places::{
    SharedPlaces, Size, clear, floods_dropped, is_crowded, limit_floods, note_taken, pause_entries,
    set_up,
};
use crate::session::Memory;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use urtica_apps::{FloodLimit, L2, MacTable};
use urtica_controller::hold::Id;
use urtica_controller::{KernelHalf, Program, Switch, SwitchHandler, SwitchInfo};
use urtica_services::EVENT_INTERVAL;
use urtica_wire::{ErrorMessage, PacketIn, PortNo, Version};

/// The learning switch, which answers in the kernel when it can, with `l2`'s replies, byte for byte.
///
/// Each switch has a table of 8,192 slots, in memory that kernel and program share. When three quarters of them are used, the
/// program alone answers that switch, with its own table, which grows. While the kernel has no session for a switch, `l2` alone
/// serves it.
#[derive(Clone)]
pub struct LearningSwitch {
    kernel: Late,
    mode: Mode,
    size: Size,
    flood_limit: FloodLimit,
}

impl LearningSwitch {
    /// Creates the program, in [`Mode::Auto`].
    pub fn new(kernel: Kernel) -> Self {
        Self {
            kernel: Late::of(kernel),
            ..Self::later()
        }
    }

    /// Creates the program before anything is loaded: it is `l2` alone until another thread has called
    /// [`LearningSwitch::load`].
    pub fn later() -> Self {
        Self {
            kernel: Late::default(),
            mode: Mode::default(),
            size: Size::GROWING,
            flood_limit: FloodLimit::NONE,
        }
    }

    /// Loads the programs, for at most this number of switches ([`Kernel::max_switches`]). Connected switches have kernel
    /// halves from then on. Must be called once.
    ///
    /// # Errors
    /// Those of [`Kernel::start`]. Switches are then served by `l2` alone.
    pub fn load(&self, max_switches: u32) -> Result<(), Unavailable> {
        self.kernel.load(Application::LearningSwitch, max_switches)
    }

    /// Limits the number of switches, if it is loaded: see [`Kernel::max_switches`].
    pub fn max_switches(self, count: u32) -> Self {
        if let Some(kernel) = self.kernel.get() {
            kernel.limit(count);
        }
        self
    }

    /// Sets the mode.
    pub fn mode(self, mode: Mode) -> Self {
        Self { mode, ..self }
    }

    /// Limits the packets to unknown hosts that are flooded from each port: see [`L2::flood_limit`]. Kernel and program each
    /// have a token bucket for a port, so a port that both serve alternately may flood twice as much. In the kernel, ports
    /// whose numbers are equal modulo 256 share one bucket.
    pub fn flood_limit(self, flood_limit: FloodLimit) -> Self {
        Self {
            flood_limit,
            ..self
        }
    }

    /// Sets the number of slots of tables, rounded up to a power of two: 64 to 8,192. A full table stays in the kernel, and new
    /// hosts displace others.
    pub fn places(self, places: usize) -> Self {
        let size = Size::fixed(places);
        Self { size, ..self }
    }
}

impl LearningSwitch {
    fn l2<P>(&self, table: MacTable<P>) -> L2<P> {
        L2::with_table(table).flood_limit(self.flood_limit)
    }

    fn offloaded(&self, info: &SwitchInfo, table: Table) -> Offloaded {
        Offloaded {
            program: self.clone(),
            version: info.version,
            table,
            is_retired: false,
            dropped_floods: 0,
            first_unanswered_port: match info.version {
                Version::Of10 => PortNo(FIRST_UNANSWERED_PORT),
                Version::Of13 => PortNo::ANY,
            },
        }
    }
}

impl Program for LearningSwitch {
    fn handler(&self, info: &SwitchInfo) -> Box<dyn SwitchHandler> {
        Box::new(self.offloaded(info, Table::Own(self.l2(MacTable::new()))))
    }

    /// Resumes a switch that has a table of an earlier program.
    fn resume(
        &self,
        info: &SwitchInfo,
        held: Id,
        started: Instant,
    ) -> Option<Box<dyn SwitchHandler>> {
        let memory = self.kernel.get()?.take_resumed(held)?.memory;
        let version = memory.shared().version.load(Relaxed);
        if version != u32::from(info.version.to_wire()) {
            return None;
        }
        let places = SharedPlaces::resume(Arc::clone(&memory), clock_ns_at(started))?;
        let l2 = self.l2(MacTable::in_slots(places));
        limit_floods(&memory, self.flood_limit);
        Some(Box::new(self.offloaded(info, Table::Shared { l2, memory })))
    }
}

/// The kernel writes 1.0's ports below this number. Higher ones may be reserved, with another meaning.
const FIRST_UNANSWERED_PORT: u32 = 0x8000;

/// The learning switch of one switch.
struct Offloaded {
    program: LearningSwitch,
    version: Version,
    table: Table,
    first_unanswered_port: PortNo,
    /// Whether the program answers alone from now on, because its table may contain a port that the kernel cannot answer for,
    /// or has become too large for the kernel.
    is_retired: bool,
    /// The number of packets to unknown hosts that the kernel had dropped when this was last logged.
    dropped_floods: u64,
}

/// The location of a switch's table.
enum Table {
    /// In the program's memory, until the switch has a session in the kernel.
    Own(L2),
    /// In the session.
    Shared {
        l2: L2<SharedPlaces>,
        memory: Arc<Memory>,
    },
}

impl SwitchHandler for Offloaded {
    fn prefetch(&self, packet: &PacketIn) {
        match &self.table {
            Table::Own(l2) => l2.prefetch(packet),
            Table::Shared { l2, .. } => l2.prefetch(packet),
        }
    }

    fn wants_prefetch(&self) -> bool {
        match &self.table {
            Table::Own(l2) => l2.wants_prefetch(),
            Table::Shared { l2, .. } => l2.wants_prefetch(),
        }
    }

    #[inline(always)] // as in L2
    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        if packet.in_port() >= self.first_unanswered_port {
            self.retire();
        }
        match &mut self.table {
            Table::Own(l2) => l2.packet_in(switch, packet),
            Table::Shared { l2, memory } => {
                let before = l2.table().len();
                l2.packet_in(switch, packet);
                let taken = l2.table().len() - before;
                if taken > 0 {
                    note_taken(memory, taken);
                }
                if is_crowded(memory) {
                    self.leave_crowded_table();
                }
            }
        }
    }

    fn error(&mut self, switch: &mut Switch, xid: u32, error: &ErrorMessage) {
        match &mut self.table {
            Table::Own(l2) => l2.error(switch, xid, error),
            Table::Shared { l2, memory } => {
                l2.error(switch, xid, error);
                if let Some(until) = l2.paused_until() {
                    pause_entries(memory, clock_ns_at(until));
                }
            }
        }
    }

    fn tick_interval(&self) -> Option<Duration> {
        Some(EVENT_INTERVAL)
    }

    fn tick(&mut self, switch: &mut Switch) {
        if let Table::Shared { memory, .. } = &self.table {
            let before = std::mem::replace(&mut self.dropped_floods, floods_dropped(memory));
            let dropped = self.dropped_floods.saturating_sub(before);
            if dropped > 0 {
                let here = switch.datapath_id();
                urtica_log::warn!(about: here, dp_id = %here, dropped, "too many packets to unknown hosts; the kernel half drops packets above the flood limit");
            }
        }
    }

    fn kernel_half(&mut self) -> Option<Box<dyn KernelHalf>> {
        let Table::Own(l2) = &self.table else {
            return None;
        };
        if !self.fits_in_kernel(l2) {
            return None;
        }
        let program = &self.program;
        let (kernel, size) = (program.kernel.get()?, program.size);
        let opened = kernel.open_session()?;
        let memory = Arc::clone(&opened.memory);
        prepare(&memory, self.version, size);
        limit_floods(&memory, program.flood_limit);
        note_taken(&memory, l2.table().len());
        let shared = SharedPlaces::new(Arc::clone(&memory), size.places);
        let l2 = program.l2(l2.table().moved_to(shared));
        self.table = Table::Shared { l2, memory };
        Some(Box::new(Link::new(kernel.clone(), opened, program.mode)))
    }

    fn may_have_kernel_half(&self) -> bool {
        match &self.table {
            Table::Own(l2) => self.fits_in_kernel(l2),
            Table::Shared { .. } => false,
        }
    }
}

impl Offloaded {
    /// Returns whether the kernel can have this table, which cannot grow there.
    fn fits_in_kernel(&self, l2: &L2) -> bool {
        let (kernel, size) = (&self.program.kernel, &self.program.size);
        kernel.may_be() && !self.is_retired && l2.table().len() <= size.places / 2
    }

    /// Makes the program answer alone from now on.
    #[cold]
    fn retire(&mut self) {
        self.is_retired = true;
        if let Table::Shared { memory, .. } = &self.table {
            memory.shared().is_retired.store(1, Relaxed);
        }
    }

    /// Makes the program answer alone from now on, with a table that grows.
    #[cold]
    fn leave_crowded_table(&mut self) {
        self.retire();
        let Table::Shared { l2, memory } = &self.table else {
            return;
        };
        let (own, memory) = (l2.table().to_growing(), Arc::clone(memory));
        self.table = Table::Own(self.program.l2(own));
        // The next program then finds an empty table instead of an outdated one.
        clear(memory);
    }
}

/// Sets the values that are constant during a session.
pub(crate) fn prepare(memory: &Memory, version: Version, size: Size) {
    let shared = memory.shared();
    shared.version.store(version.to_wire().into(), Relaxed);
    set_up(memory, size, MAX_AGE_S);
}

/// Time of silence after which a host is forgotten: as in [`MacTable::in_slots`].
const MAX_AGE_S: u32 = 300;
