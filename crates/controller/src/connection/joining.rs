//! Joining: a switch identifies itself, its handlers are created, and its ports become known.

use super::joined::Joined;
use super::raw_part::RawPart;
use super::{Channel, Close, Connection};
use crate::batch::BatchContext;
use crate::counters::is_worth_logging;
use crate::network::Entry;
use crate::program_list::ProgramList;
use crate::session::{PortsProblem, Subject};
use crate::stage::Tables;
use crate::{MAX_PORTS, SwitchHandler, SwitchInfo};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use urtica_wire::{DatapathId, DecodeError, PortStatus, Version};

impl<C: Channel> Connection<C> {
    /// Identifies the switch by its features reply.
    pub(super) fn identify(
        &mut self,
        datapath_id: DatapathId,
        features: &[u8],
    ) -> Result<(), Close> {
        self.admit(datapath_id)?;
        self.transport.note_features(features)?;
        self.is_identified = true;
        Ok(())
    }

    /// Refuses a peer whose datapath id is reserved for another certificate.
    fn admit(&self, datapath_id: DatapathId) -> Result<(), Close> {
        match &self.admission {
            Some(admission) => admission(datapath_id).map_err(Close::NotAdmitted),
            None => Ok(()),
        }
    }

    pub(super) fn note_malformed(&self, error: &DecodeError) {
        self.counters.malformed.add(1);
        let count = self.counters.malformed.get();
        if is_worth_logging(count) {
            urtica_log::warn!(about: self.subject(), peer = self.name(), %error, count, "refused a malformed message");
        }
    }

    /// Creates the handlers of a switch that has identified itself, and registers it.
    pub(super) fn join(&mut self, info: SwitchInfo, batch: &mut BatchContext) {
        urtica_log::info!(about: Subject::Switch(info.datapath_id), dp_id = %info.datapath_id, peer = info.peer, openflow = %info.version, role = %info.role, "switch joined");
        let tables = batch.network.tables();
        warn_if_unguarded(&info, tables);
        let programs = Arc::clone(&batch.programs);
        let datapath_id = info.datapath_id;
        let info = Arc::new(info);
        let joined = self.switch.insert(Joined {
            info: info.clone(),
            handlers: Vec::with_capacity(programs.programs.len()),
            programs: Arc::clone(&programs),
            raw: None,
            is_up: false,
            up_since: batch.now,
            timers: Vec::new(),
        });
        let held = self.transport.resumable_half();
        let mut resumed =
            held.and_then(|held| resume_handler(&programs, &info, held, batch.started));
        let halves = batch.kernel_halves.as_ref();
        let continues = |held| halves.is_some_and(|halves| halves.resume(&info, held));
        if resumed.is_none() && !held.is_some_and(continues) {
            self.transport.let_go();
        }
        for (index, listed) in programs.programs.iter().enumerate() {
            let handler = resumed.take_if(|(of, _)| *of == index);
            let handler = handler.map(|(_, handler)| handler);
            let handler = handler.unwrap_or_else(|| listed.program.handler(&info));
            joined.handlers.push(handler);
        }
        joined.raw = RawPart::start(&programs, &info);
        let entry = Entry {
            shard: batch.shard,
            token: self.token,
            joined: Arc::clone(&info),
            info: Mutex::new(info),
            counters: self.counters.clone(),
            backlog: Arc::clone(self.transport.backlog()),
            permanent: Arc::default(),
            is_up: false,
            may_write: AtomicBool::new(self.session.role().may_write()),
            is_raw: self.session.is_raw(),
        };
        if let Some(older) = batch.network.register(entry) {
            urtica_log::warn!(
                about: Subject::Switch(older.joined.datapath_id),
                dp_id = %older.joined.datapath_id,
                older = older.joined.peer,
                newer = self.session.peer(),
                "two connections have the same datapath id: the newer one is used and the older one closed; if these are \
                 two switches, give them different ids"
            );
        }
        self.ask_for_wanted_role(datapath_id, batch);
        // A 1.0 features reply describes the ports; in 1.3, and in a resumed session, their descriptions are still missing.
        if !self.session.awaits_ports() {
            self.come_up(batch);
        }
    }

    pub(super) fn come_up(&mut self, batch: &mut BatchContext) {
        let may_write = self.session.role().may_write();
        if may_write {
            self.activate(batch);
        }
        if let Some(switch) = &mut self.switch {
            (switch.is_up, switch.up_since) = (true, batch.now);
            batch.network.announce(switch.info.datapath_id, self.token);
        }
        self.start_kernel_half(batch);
    }

    /// Calls `switch_up` and starts timers, when the ports are known and programs may write to the switch.
    pub(super) fn activate(&mut self, batch: &mut BatchContext) {
        self.call_each(batch, |handler, switch| handler.switch_up(switch));
        if let Some(switch) = &mut self.switch {
            switch.start_timers(batch.now);
        }
    }

    /// Handles a part of the port description. Once the switch is up, changes are passed to handlers as port-status messages.
    pub(super) fn learn_ports(
        &mut self,
        ports: Vec<PortStatus>,
        last: bool,
        batch: &mut BatchContext,
    ) {
        let learnt = self.update_ports(ports, batch);
        let is_up = self.switch.as_ref().is_some_and(|switch| switch.is_up);
        if is_up {
            for status in &learnt {
                self.call_each(batch, |handler, switch| handler.port_status(switch, status));
            }
        } else if last {
            self.come_up(batch);
        }
    }

    /// Continues with the ports that the switch has described, if it does not describe all.
    pub(super) fn do_without_ports(&mut self, problem: &PortsProblem, batch: &mut BatchContext) {
        if let PortsProblem::Malformed(error) = problem {
            self.note_malformed(error);
        }
        let known = self.switch.as_ref().map(|switch| switch.info.ports.len());
        urtica_log::warn!(
            about: self.subject(),
            peer = self.name(),
            %problem,
            known_ports = known,
            "not all ports of a switch are known; using those that it has described"
        );
        self.come_up(batch);
    }

    /// Updates the known ports. Returns the changes, except for ports beyond [`MAX_PORTS`].
    pub(super) fn update_ports(
        &mut self,
        mut changes: Vec<PortStatus>,
        batch: &BatchContext,
    ) -> Vec<PortStatus> {
        let token = self.switch_token();
        let Some(switch) = &mut self.switch else {
            return Vec::new();
        };
        let mut info = SwitchInfo::clone(&switch.info);
        let count = changes.len();
        changes.retain(|change| info.ports.update(change));
        switch.info = Arc::new(info);
        batch.network.update_info(token, &switch.info, &changes);
        self.note_refused_ports(count - changes.len());
        changes
    }

    fn note_refused_ports(&self, refused: usize) {
        for _ in 0..refused {
            self.counters.ports_refused.add(1);
            let count = self.counters.ports_refused.get();
            if is_worth_logging(count) {
                urtica_log::warn!(
                    about: self.subject(),
                    peer = self.name(),
                    count,
                    "ignoring a port: the switch has more than {MAX_PORTS}"
                );
            }
        }
    }
}

/// Returns the handler that continues an earlier program's kernel half, and its position among the programs; `None` if there
/// is no such handler.
fn resume_handler(
    programs: &ProgramList,
    info: &SwitchInfo,
    held: urtica_hold::Id,
    started: Instant,
) -> Option<(usize, Box<dyn SwitchHandler>)> {
    if let [only] = &programs.programs[..] {
        return Some((0, only.program.resume(info, held, started)?));
    }
    let mut listed = programs.programs.iter().enumerate();
    listed.find_map(|(index, listed)| {
        let handler = listed.program.resume_for_all(info, held, started)?;
        Some((index, handler))
    })
}

/// Warns of a switch that has no second table, for the entries that follow a filter's.
fn warn_if_unguarded(info: &SwitchInfo, tables: Tables) {
    let has = match info.version {
        Version::Of10 => 1,
        Version::Of13 => info.n_tables,
    };
    if has < tables.count() {
        urtica_log::warn!(
            about: Subject::Switch(info.datapath_id),
            dp_id = %info.datapath_id,
            openflow = %info.version,
            n_tables = has,
            "a filter program cannot guard flow entries in this switch: expected OpenFlow 1.3 and two tables; entries of \
             forwarding programs are refused and every packet is sent to the controller; on Open vSwitch type `ovs-vsctl set \
             bridge NAME protocols=OpenFlow13`"
        );
    }
}
