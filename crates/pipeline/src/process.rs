//! Processing one packet, table by table and action by action (1.3.5 sections 5.1, 5.9, 5.10). This is the reference model of
//! all faster forms, and written so that it can be checked against the specification by reading.

use crate::packet_in_cause::PacketInCause;
use crate::{ActionSet, Bucket, FlowEntry, MeterVerdict, Packet, Pipeline};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use urtica_wire::{Action, CONTROLLER_NO_BUFFER, PacketInReason, PortConfig, PortNo};

/// The maximum number of buckets for one packet, in all chained groups. Further ones are skipped; otherwise a chain of groups
/// could turn one packet into billions.
pub const MAX_BUCKETS_PER_PACKET: usize = 4096;

/// The cookie of packet-ins without an entry.
const NO_COOKIE: u64 = u64::MAX;

/// The receiver of a pipeline's output.
pub trait Sink {
    /// Sends a packet to a port that exists and may send, through the queue `packet.queue_id`.
    fn transmit(&mut self, port: PortNo, packet: &Packet);

    /// Sends a packet to the controller.
    fn packet_in(&mut self, packet: &Packet, cause: PacketInCause);

    /// Forwards a packet like a switch without OpenFlow ([`PortNo::NORMAL`]).
    fn normal(&mut self, packet: &Packet);

    /// Observes a step of a packet. Does nothing by default.
    fn step(&mut self, _step: Step<'_>) {}
}

/// A step of a packet, reported before its effect.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Step<'a> {
    /// A table has been searched.
    Table {
        /// The table.
        table_id: u8,
        /// The packet at the table.
        packet: &'a Packet,
        /// The entry that it matches, if any.
        entry: Option<&'a FlowEntry>,
    },
    /// A meter has measured the packet.
    Meter {
        /// The meter.
        meter_id: u32,
        /// The meter's verdict.
        verdict: MeterVerdict,
    },
    /// An action is about to be executed.
    Action {
        /// The action.
        action: &'a Action<'a>,
        /// The packet before it.
        packet: &'a Packet,
    },
    /// The last table has been searched, and the action set is about to be executed.
    ActionSet(&'a ActionSet),
    /// A group sends a copy of the packet to a bucket.
    Bucket {
        /// The group.
        group_id: u32,
        /// Its bucket.
        bucket: &'a Bucket,
    },
}

impl Pipeline {
    /// Processes a received packet, starting at the first table. Ignores packets of a port that is down or does not receive
    /// (OFPPC_NO_RECV).
    pub fn process(&self, packet: Packet, now: Duration, sink: &mut dyn Sink) {
        let deaf = PortConfig::PORT_DOWN | PortConfig::NO_RECV;
        if !self.has_config(packet.in_port, deaf) {
            Walk::new(self, now, sink).through_tables(packet, 0, ActionSet::default());
        }
    }

    /// Processes a received packet with an action set, starting at a later table.
    pub(crate) fn process_from(
        &self,
        table_id: u8,
        packet: Packet,
        action_set: ActionSet,
        now: Duration,
        sink: &mut dyn Sink,
    ) {
        Walk::new(self, now, sink).through_tables(packet, table_id, action_set);
    }

    /// Sends a packet to a port, or to the ports of a reserved port. `cause` is for packet-ins.
    pub(crate) fn send_for(
        &self,
        cause: PacketInCause,
        port: PortNo,
        packet: &Packet,
        now: Duration,
        sink: &mut dyn Sink,
    ) {
        let mut walk = Walk::new(self, now, sink);
        walk.cause = cause;
        walk.output(port, cause.max_len, packet);
    }

    /// Executes a packet-out's actions. An output to [`PortNo::TABLE`] sends the packet through the tables.
    ///
    /// Invalid actions have no effect here; check them with [`Pipeline::check_packet_out`].
    pub fn packet_out(
        &self,
        mut packet: Packet,
        actions: &[Action<'_>],
        now: Duration,
        sink: &mut dyn Sink,
    ) {
        // If the packet was stopped, nothing is left to do.
        let _ = Walk::new(self, now, sink).carry_out_all(actions, &mut packet);
    }

    /// Returns whether a port exists and has any of these bits set.
    fn has_config(&self, port_no: PortNo, bits: PortConfig) -> bool {
        self.port(port_no)
            .is_some_and(|port| port.config.intersects(bits))
    }
}

/// The packet is not processed further.
struct Stopped;

/// The state of one packet's processing.
struct Walk<'a> {
    pipeline: &'a Pipeline,
    now: Duration,
    sink: &'a mut dyn Sink,
    /// The cause that a packet-in would have now.
    cause: PacketInCause,
    /// The number of buckets that may still be used.
    buckets_left: usize,
}

impl<'a> Walk<'a> {
    /// Creates the state for a packet that has not matched an entry yet.
    fn new(pipeline: &'a Pipeline, now: Duration, sink: &'a mut dyn Sink) -> Self {
        Self {
            pipeline,
            now,
            sink,
            cause: PacketInCause {
                reason: PacketInReason::Action,
                table_id: 0,
                cookie: NO_COOKIE,
                max_len: CONTROLLER_NO_BUFFER,
            },
            buckets_left: MAX_BUCKETS_PER_PACKET,
        }
    }

    /// Processes a packet from a table on, until an entry has no goto, and then executes the action set.
    fn through_tables(&mut self, mut packet: Packet, first: u8, mut action_set: ActionSet) {
        let mut table_id = Some(first);
        while let Some(current) = table_id {
            let Some(entry) = self.look_up(current, &packet) else {
                return self.handle_miss(&packet);
            };
            if self.instruct(entry, &mut packet, &mut action_set).is_err() {
                return;
            }
            table_id = entry.instructions.goto;
        }
        self.sink.step(Step::ActionSet(&action_set));
        self.carry_out_set(&action_set, packet);
    }

    fn look_up(&mut self, table_id: u8, packet: &Packet) -> Option<&'a FlowEntry> {
        let table = &self.pipeline.tables[usize::from(table_id)];
        table.lookups.fetch_add(1, Relaxed);
        let entry = table.find(packet).map(AsRef::as_ref);
        self.cause = PacketInCause {
            reason: match entry {
                Some(entry) if !entry.is_table_miss() => PacketInReason::Action,
                _ => PacketInReason::NoMatch,
            },
            table_id,
            cookie: entry.map_or(NO_COOKIE, |entry| entry.cookie),
            max_len: CONTROLLER_NO_BUFFER,
        };
        if let Some(entry) = entry {
            table.matches.fetch_add(1, Relaxed);
            entry.count(packet.frame().len(), self.now);
        }
        self.sink.step(Step::Table {
            table_id,
            packet,
            entry,
        });
        entry
    }

    /// Handles a packet that matches no entry, not even a table-miss entry.
    fn handle_miss(&mut self, packet: &Packet) {
        if self.pipeline.misses_to_controller() {
            self.packet_in(self.cause, packet);
        }
    }

    /// Executes an entry's instructions, except for goto-table.
    fn instruct(
        &mut self,
        entry: &FlowEntry,
        packet: &mut Packet,
        action_set: &mut ActionSet,
    ) -> Result<(), Stopped> {
        let instructions = &entry.instructions;
        if let Some(meter_id) = instructions.meter {
            self.pass_meter(meter_id, packet)?;
        }
        if let Some(actions) = &instructions.apply {
            self.carry_out_all(actions, packet)?;
        }
        if instructions.clear {
            action_set.clear();
        }
        if let Some(actions) = &instructions.write {
            action_set.write_all(actions);
        }
        if let Some((metadata, mask)) = instructions.metadata {
            packet.metadata = packet.metadata & !mask | metadata & mask;
        }
        Ok(())
    }

    fn pass_meter(&mut self, meter_id: u32, packet: &mut Packet) -> Result<(), Stopped> {
        let Some(meter) = self.pipeline.meters.get(meter_id) else {
            return Ok(());
        };
        let verdict = meter.measure(packet.frame().len(), self.now);
        self.sink.step(Step::Meter { meter_id, verdict });
        match verdict {
            MeterVerdict::Pass => Ok(()),
            MeterVerdict::Remark(levels) => {
                packet.raise_drop_precedence(levels);
                Ok(())
            }
            MeterVerdict::Drop => Err(Stopped),
        }
    }

    fn carry_out_all(&mut self, actions: &[Action], packet: &mut Packet) -> Result<(), Stopped> {
        let mut actions = actions.iter();
        actions.try_for_each(|action| self.carry_out(action, packet))
    }

    /// "If both an output action and a group action are specified in an action set, the output action is ignored" (1.3.5
    /// section 5.10), even if the group has no bucket for the packet.
    fn carry_out_set(&mut self, action_set: &ActionSet, mut packet: Packet) {
        for action in action_set.actions() {
            let result = self.carry_out(action, &mut packet);
            if result.is_err() || matches!(action, Action::Group(_)) {
                return;
            }
        }
    }

    fn carry_out(&mut self, action: &Action, packet: &mut Packet) -> Result<(), Stopped> {
        self.sink.step(Step::Action { action, packet });
        match *action {
            Action::Output { port, max_len } => self.output(port, max_len, packet),
            Action::Enqueue { port, queue_id } => self.enqueue(port, queue_id, packet),
            Action::Group(group_id) => self.hand_to_group(group_id, packet),
            _ => return self.rewrite(action, packet),
        }
        Ok(())
    }

    fn rewrite(&mut self, action: &Action, packet: &mut Packet) -> Result<(), Stopped> {
        if packet.apply(action) {
            return Ok(());
        }
        let reason = PacketInReason::InvalidTtl;
        self.packet_in(
            PacketInCause {
                reason,
                ..self.cause
            },
            packet,
        );
        Err(Stopped)
    }

    /// Sends a packet to a port, or to the ports of a reserved port (1.3.5 section 4.5), but back to its input port only by
    /// OFPP_IN_PORT.
    fn output(&mut self, port: PortNo, max_len: u16, packet: &Packet) {
        match port {
            PortNo::IN_PORT => self.transmit(packet.in_port, packet),
            PortNo::TABLE => self.submit_to_tables(packet),
            PortNo::NORMAL => self.sink.normal(packet),
            PortNo::ALL => self.transmit_to_all_but(PortConfig::empty(), packet),
            PortNo::FLOOD => self.transmit_to_all_but(PortConfig::NO_FLOOD, packet),
            PortNo::CONTROLLER => self.packet_in(
                PacketInCause {
                    max_len,
                    ..self.cause
                },
                packet,
            ),
            port if port == packet.in_port => {}
            port => self.transmit(port, packet),
        }
    }

    /// Sends a packet to a port through one of its queues, for this output only (1.0 section 3.3).
    fn enqueue(&mut self, port: PortNo, queue_id: u32, packet: &mut Packet) {
        let before = std::mem::replace(&mut packet.queue_id, queue_id);
        self.output(port, 0, packet);
        packet.queue_id = before;
    }

    /// Submits a packet-out to the tables. Only packet-outs may do this (1.3.5 section 4.5), so no packet loops.
    fn submit_to_tables(&mut self, packet: &Packet) {
        let cause = self.cause;
        self.through_tables(packet.clone(), 0, ActionSet::default());
        self.cause = cause;
    }

    fn transmit_to_all_but(&mut self, excluded: PortConfig, packet: &Packet) {
        let pipeline = self.pipeline;
        for port in pipeline.ports() {
            if port.port_no != packet.in_port && !port.config.intersects(excluded) {
                self.transmit(port.port_no, packet);
            }
        }
    }

    fn transmit(&mut self, port_no: PortNo, packet: &Packet) {
        let mute = PortConfig::PORT_DOWN | PortConfig::NO_FWD;
        let may_send = |port: &urtica_wire::Port| !port.config.intersects(mute);
        if self.pipeline.port(port_no).is_some_and(may_send) {
            self.sink.transmit(port_no, packet);
        }
    }

    /// "If the port config bit OFPPC_NO_PACKET_IN is set, packets on that port that generate a table miss should
    /// never trigger a packet-in message" (1.3.5 section 7.2.1).
    fn packet_in(&mut self, cause: PacketInCause, packet: &Packet) {
        let is_miss = cause.reason == PacketInReason::NoMatch;
        let is_silent = || {
            self.pipeline
                .has_config(packet.in_port, PortConfig::NO_PACKET_IN)
        };
        if !(is_miss && is_silent()) {
            self.sink.packet_in(packet, cause);
        }
    }

    /// Sends a copy to each bucket of a group. A packet-in from a bucket has the reason "action", even after a table miss.
    fn hand_to_group(&mut self, group_id: u32, packet: &Packet) {
        let pipeline = self.pipeline;
        let Some(group) = pipeline.groups.get(group_id) else {
            return;
        };
        let bytes = packet.frame().len();
        group.counters.count(bytes);
        let reason = std::mem::replace(&mut self.cause.reason, PacketInReason::Action);
        for bucket in pipeline.buckets_for(group, packet) {
            let Some(buckets_left) = self.buckets_left.checked_sub(1) else {
                break;
            };
            self.buckets_left = buckets_left;
            bucket.counters.count(bytes);
            self.sink.step(Step::Bucket { group_id, bucket });
            self.carry_out_set(&ActionSet::from_actions(&bucket.actions), packet.clone());
        }
        self.cause.reason = reason;
    }
}
