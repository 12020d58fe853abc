//! The state that a controller changes, whole.

use crate::change_log::{ChangeLog, StateChange};
use crate::entry_view::ViewBudget;
use crate::fast::Compiler;
use crate::{FlowTable, Groups, Meters};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use urtica_wire::{Port, PortNo};

/// The maximum number of tables: 255 means all (OFPTT_MAX is the last one's number).
const MAX_TABLES: u8 = 254;

/// Bounds of a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PipelineConfig {
    /// The number of tables, 1 to 254.
    pub n_tables: u8,
    /// The maximum number of entries of each table.
    pub max_entries: u32,
    /// The maximum number of groups.
    pub max_groups: u32,
    /// The maximum number of meters.
    pub max_meters: u32,
}

impl Default for PipelineConfig {
    /// 254 tables of a million entries, 65,536 groups and meters.
    fn default() -> Self {
        Self {
            n_tables: 254,
            max_entries: 1 << 20,
            max_groups: 1 << 16,
            max_meters: 1 << 16,
        }
    }
}

/// Tables, groups, meters and ports.
// Its many methods are one for each request of OpenFlow and each step of a packet, in a file for each kind.
#[derive(Debug)]
pub struct Pipeline {
    config: PipelineConfig,
    pub(crate) tables: Vec<FlowTable>,
    /// A lower bound for the next expiry in any table; `None` without timeouts. Cached, since there are many tables.
    pub(crate) next_expiry: Option<Duration>,
    pub(crate) groups: Groups,
    pub(crate) meters: Meters,
    pub(crate) ports: BTreeMap<PortNo, Port>,
    /// The queues of ports that have some.
    queues: BTreeMap<PortNo, BTreeSet<u32>>,
    misses_to_controller: bool,
    /// Whether entries and groups may name ports that are not there yet.
    pub(crate) ports_may_follow: bool,
    pub(crate) is_locked: bool,
    pub(crate) view_budget: Arc<ViewBudget>,
    pub(crate) log: ChangeLog,
    /// Each change under way has a copy.
    pub(crate) changes: Arc<()>,
    pub(crate) compiler: Option<Mutex<Compiler>>,
    /// Whether the compiled form follows changes only when requested.
    pub(crate) is_deferred: bool,
}

impl Pipeline {
    /// Creates an empty pipeline, which drops every packet (1.3.5 section 5.4).
    ///
    /// The number of tables is limited to 1 to 254: see [`Pipeline::config`].
    pub fn new(config: PipelineConfig) -> Self {
        let config = PipelineConfig {
            n_tables: config.n_tables.clamp(1, MAX_TABLES),
            ..config
        };
        let tables = (0..config.n_tables).map(|_| FlowTable::default());
        Self {
            config,
            tables: tables.collect(),
            next_expiry: None,
            groups: Groups::default(),
            meters: Meters::default(),
            ports: BTreeMap::new(),
            queues: BTreeMap::new(),
            misses_to_controller: false,
            ports_may_follow: false,
            is_locked: false,
            view_budget: Arc::default(),
            log: ChangeLog::default(),
            changes: Arc::default(),
            compiler: None,
            is_deferred: false,
        }
    }

    /// Its bounds.
    pub fn config(&self) -> &PipelineConfig {
        &self.config
    }

    /// Changes the maximum number of entries of each table. Existing ones stay.
    pub fn set_max_entries(&mut self, max_entries: u32) {
        self.config.max_entries = max_entries;
    }

    /// Makes the pipeline refuse all flow mods with OFPFMFC_EPERM (1.3.5 section 7.5.4.5) from now on, or accept them again.
    pub fn set_locked(&mut self, is_locked: bool) {
        self.is_locked = is_locked;
    }

    /// Returns whether packets that no entry matches are sent to the controller, as in 1.0 (1.0 section 3.4), instead
    /// of being dropped, as in 1.3 (1.3.5 section 5.4).
    pub fn misses_to_controller(&self) -> bool {
        self.misses_to_controller
    }

    /// Sets the handling of packets without an entry: see [`Pipeline::misses_to_controller`].
    pub fn set_misses_to_controller(&mut self, misses_to_controller: bool) {
        self.misses_to_controller = misses_to_controller;
    }

    /// Its tables.
    pub fn tables(&self) -> &[FlowTable] {
        &self.tables
    }

    /// Its groups.
    pub fn groups(&self) -> &Groups {
        &self.groups
    }

    /// Its meters.
    pub fn meters(&self) -> &Meters {
        &self.meters
    }

    /// Its ports, in the order of their numbers.
    pub fn ports(&self) -> impl Iterator<Item = &Port> {
        self.ports.values()
    }

    /// The port with this number.
    pub fn port(&self, port_no: PortNo) -> Option<&Port> {
        self.ports.get(&port_no)
    }

    /// Returns `true` if entries and groups may name this port.
    pub(crate) fn has_port(&self, port_no: PortNo) -> bool {
        let can_be_port = port_no == PortNo::LOCAL || port_no.0 != 0 && !port_no.is_reserved();
        let may_follow = self.ports_may_follow && can_be_port;
        may_follow || self.ports.contains_key(&port_no)
    }

    /// Adds a port, or changes it.
    pub fn set_port(&mut self, port: Port) {
        self.ports.insert(port.port_no, port);
        self.follow_ports();
    }

    /// Removes a port.
    pub fn remove_port(&mut self, port_no: PortNo) -> Option<Port> {
        let removed = self.ports.remove(&port_no);
        self.queues.remove(&port_no);
        self.follow_ports();
        removed
    }

    /// Sets the queues of a port: those that an entry of 1.0 may enqueue packets to. Entries that name others stay.
    pub fn set_queues(&mut self, port_no: PortNo, queues: impl IntoIterator<Item = u32>) {
        let queues: BTreeSet<_> = queues.into_iter().collect();
        match queues.is_empty() {
            true => self.queues.remove(&port_no),
            false => self.queues.insert(port_no, queues),
        };
    }

    /// Returns `true` if an entry may enqueue packets to this queue of a port; for [`PortNo::IN_PORT`], of any port.
    pub(crate) fn has_queue(&self, port_no: PortNo, queue_id: u32) -> bool {
        if self.ports_may_follow {
            return true;
        }
        match port_no {
            PortNo::IN_PORT => self
                .queues
                .values()
                .any(|queues| queues.contains(&queue_id)),
            port_no => {
                let queues = self.queues.get(&port_no);
                queues.is_some_and(|queues| queues.contains(&queue_id))
            }
        }
    }

    /// Starts logging changes, for [`Pipeline::take_logged`].
    pub fn log_changes(&mut self) {
        self.log = ChangeLog::started();
        let log = &self.log;
        self.tables
            .iter_mut()
            .for_each(|table| table.set_log(log.clone()));
    }

    /// Returns the changes since the last call.
    pub fn take_logged(&mut self) -> Vec<StateChange> {
        self.log.take()
    }
}
