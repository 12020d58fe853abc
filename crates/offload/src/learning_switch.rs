//! `l2` with a kernel half.

use crate::kernel::Kernel;
use crate::link::{Link, clock_ns_at};
use crate::mode::Mode;
use crate::places::{MAX_PLACES, SharedPlaces, set_up};
use crate::session::Memory;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;
use urtica_apps::{L2, MacTable};
use urtica_controller::hold::Id;
use urtica_controller::{KernelHalf, Program, Switch, SwitchHandler, SwitchInfo};
use urtica_wire::{PacketIn, PortNo, Version};

/// The learning switch, answering in the kernel as far as it can: `l2`'s replies, byte for byte.
///
/// Each switch has a table of [`LearningSwitch::places`], in memory that kernel and program share. While there is no room in the
/// kernel for a switch, it has `l2` alone.
#[derive(Clone)]
pub struct LearningSwitch {
    kernel: Kernel,
    mode: Mode,
    places: usize,
}

impl LearningSwitch {
    /// The program, in [`Mode::Auto`] and with tables of 65,536 places.
    pub fn new(kernel: Kernel) -> Self {
        Self {
            kernel,
            mode: Mode::default(),
            places: MAX_PLACES,
        }
    }

    /// The same in this mode.
    pub fn mode(self, mode: Mode) -> Self {
        Self { mode, ..self }
    }

    /// The same with tables of so many places, rounded up to a power of two: 64 to 65,536.
    pub fn places(self, places: usize) -> Self {
        let places = places.clamp(64, MAX_PLACES).next_power_of_two();
        Self { places, ..self }
    }
}

impl LearningSwitch {
    fn offloaded(&self, info: &SwitchInfo, table: Table) -> Offloaded {
        Offloaded {
            program: self.clone(),
            version: info.version,
            table,
            has_unanswered: false,
            first_unanswered_port: match info.version {
                Version::Of10 => PortNo(FIRST_UNANSWERED_PORT),
                Version::Of13 => PortNo::ANY,
            },
        }
    }
}

impl Program for LearningSwitch {
    fn handler(&self, info: &SwitchInfo) -> Box<dyn SwitchHandler> {
        Box::new(self.offloaded(info, Table::Own(L2::default())))
    }

    /// Its table is that of the earlier program.
    fn resume(
        &self,
        info: &SwitchInfo,
        held: Id,
        started: Instant,
    ) -> Option<Box<dyn SwitchHandler>> {
        let memory = self.kernel.take_resumed(held)?.memory;
        let version = memory.shared().version.load(Relaxed);
        if version != u32::from(info.version.to_wire()) {
            return None;
        }
        let places = SharedPlaces::resume(Arc::clone(&memory), clock_ns_at(started))?;
        let l2 = L2::with_table(MacTable::in_places(places));
        Some(Box::new(self.offloaded(info, Table::Shared { l2, memory })))
    }
}

/// Of 1.0's ports, the kernel writes those below: others may be reserved, and mean something else then.
const FIRST_UNANSWERED_PORT: u32 = 0x8000;

/// One switch's learning switch.
struct Offloaded {
    program: LearningSwitch,
    version: Version,
    table: Table,
    first_unanswered_port: PortNo,
    /// Whether the program's table may lead to a port that the kernel does not answer for.
    has_unanswered: bool,
}

/// Where a switch's table is.
enum Table {
    /// The program's, until the switch has a session in the kernel.
    Own(L2),
    /// The session's.
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
        match &mut self.table {
            Table::Own(l2) => {
                self.has_unanswered |= packet.in_port() >= self.first_unanswered_port;
                l2.packet_in(switch, packet);
            }
            Table::Shared { l2, memory } => {
                if packet.in_port() >= self.first_unanswered_port {
                    // The table may lead there from now on.
                    memory.shared().is_retired.store(1, Relaxed);
                }
                l2.packet_in(switch, packet);
            }
        }
    }

    fn kernel_half(&mut self) -> Option<Box<dyn KernelHalf>> {
        let Table::Own(l2) = &self.table else {
            return None;
        };
        let LearningSwitch {
            kernel,
            mode,
            places,
        } = &self.program;
        // The kernel's tables do not grow.
        if self.has_unanswered || l2.table().len() > places / 2 {
            return None;
        }
        let opened = kernel.open_session()?;
        let memory = Arc::clone(&opened.memory);
        prepare(&memory, self.version, *places);
        let shared = SharedPlaces::new(Arc::clone(&memory), *places);
        let l2 = L2::with_table(l2.table().moved_to(shared));
        self.table = Table::Shared { l2, memory };
        Some(Box::new(Link::new(kernel.clone(), opened, *mode)))
    }

    fn may_have_kernel_half(&self) -> bool {
        matches!(self.table, Table::Own(_))
    }
}

/// What stays for the time of a session.
pub(crate) fn prepare(memory: &Memory, version: Version, places: usize) {
    let shared = memory.shared();
    shared.version.store(version.to_wire().into(), Relaxed);
    set_up(memory, places, MAX_AGE_S);
}

/// After how long a silence a host is forgotten: as in [`MacTable::in_places`].
const MAX_AGE_S: u32 = 300;
