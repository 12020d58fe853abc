//! The complete state that a controller changes.

use crate::change_log::{ChangeLog, StateChange};
use crate::entry_view::ViewBudget;
use crate::fast::Compiler;
use crate::{FlowTable, Groups, Meters};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use urtica_wire::{Port, PortNo};

/// The maximum number of tables. OFPTT_MAX is the number of the last one; 255 means all tables.
const MAX_TABLES: u8 = 254;

/// The limits of a pipeline.
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

/// A pipeline: tables, groups, meters and ports.
// It has many methods, one for each request of OpenFlow and each step of a packet, in a file for each kind.
#[derive(Debug)]
pub struct Pipeline {
    config: PipelineConfig,
    pub(crate) tables: Vec<FlowTable>,
    /// A lower bound for the next expiry in any table; `None` without timeouts. Cached, to avoid a search of all tables.
    pub(crate) next_expiry: Option<Duration>,
    pub(crate) groups: Groups,
    pub(crate) meters: Meters,
    pub(crate) ports: BTreeMap<PortNo, Port>,
    /// The queues of the ports that have any.
    queues: BTreeMap<PortNo, BTreeSet<u32>>,
    misses_to_controller: bool,
    /// Whether entries and groups may refer to ports that do not exist yet.
    pub(crate) ports_may_follow: bool,
    pub(crate) is_locked: bool,
    pub(crate) view_budget: Arc<ViewBudget>,
    pub(crate) log: ChangeLog,
    /// Each change in progress holds a clone.
    pub(crate) changes: Arc<()>,
    pub(crate) compiler: Option<Mutex<Compiler>>,
    /// Whether the compiled form follows changes only on request.
    pub(crate) is_deferred: bool,
}

impl Pipeline {
    /// Creates an empty pipeline, which drops every packet (1.3.5 section 5.4).
    ///
    /// The number of tables is clamped to 1 to 254: see [`Pipeline::config`].
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

    /// Returns the limits.
    pub fn config(&self) -> &PipelineConfig {
        &self.config
    }

    /// Changes the maximum number of entries per table. Existing entries stay, even beyond it.
    pub fn set_max_entries(&mut self, max_entries: u32) {
        self.config.max_entries = max_entries;
    }

    /// Sets whether the pipeline refuses all flow mods, with OFPFMFC_EPERM (1.3.5 section 7.5.4.5).
    pub fn set_locked(&mut self, is_locked: bool) {
        self.is_locked = is_locked;
    }

    /// Returns whether packets that match no entry are sent to the controller, as in 1.0 (1.0 section 3.4), or dropped, as in
    /// 1.3 (1.3.5 section 5.4).
    pub fn misses_to_controller(&self) -> bool {
        self.misses_to_controller
    }

    /// Sets the handling of table misses: see [`Pipeline::misses_to_controller`].
    pub fn set_misses_to_controller(&mut self, misses_to_controller: bool) {
        self.misses_to_controller = misses_to_controller;
    }

    /// Returns the tables.
    pub fn tables(&self) -> &[FlowTable] {
        &self.tables
    }

    /// Returns the groups.
    pub fn groups(&self) -> &Groups {
        &self.groups
    }

    /// Returns the meters.
    pub fn meters(&self) -> &Meters {
        &self.meters
    }

    /// Returns the ports, by number.
    pub fn ports(&self) -> impl Iterator<Item = &Port> {
        self.ports.values()
    }

    /// Returns the port with this number.
    pub fn port(&self, port_no: PortNo) -> Option<&Port> {
        self.ports.get(&port_no)
    }

    /// Returns `true` if entries and groups may refer to this port.
    pub(crate) fn has_port(&self, port_no: PortNo) -> bool {
        let can_be_port = port_no == PortNo::LOCAL || port_no.0 != 0 && !port_no.is_reserved();
        let may_follow = self.ports_may_follow && can_be_port;
        may_follow || self.ports.contains_key(&port_no)
    }

    /// Adds a port, or replaces the one with its number.
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

    /// Sets the queues of a port, to which 1.0's entries may enqueue packets. Entries that use other queues stay.
    pub fn set_queues(&mut self, port_no: PortNo, queues: impl IntoIterator<Item = u32>) {
        let queues: BTreeSet<_> = queues.into_iter().collect();
        match queues.is_empty() {
            true => self.queues.remove(&port_no),
            false => self.queues.insert(port_no, queues),
        };
    }

    /// Returns `true` if an entry may enqueue packets to this queue of a port; for [`PortNo::IN_PORT`], any port's queue.
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
