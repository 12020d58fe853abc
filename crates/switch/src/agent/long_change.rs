//! Changes to many entries, which are made in parts, so that packets and other controllers need not wait for their end.
//!
//! **Order.** All later messages of the controller, including barriers, wait for the end of a change: no reply reports a
//! change that some packet does not see. Other controllers' messages are handled between its parts ([`EntryChange`] describes
//! the effect).
//!
//! **Disconnection.** A change that has started is completed, even if its controller disconnects before.

use super::ConnectionId;
use super::requests::Request;
use crate::Switch;
use std::time::Duration;
use urtica_pipeline::{EntryChange, Packet, Pipeline};
use urtica_wire::{Action, ErrorCode, PortNo};

/// Number of entries that any change may visit at once, so that small changes never wait.
const LOOKS_MIN: usize = 64;

/// The rest of a change.
#[derive(Debug)]
pub(crate) struct LongChange {
    change: EntryChange,
    /// A packet to be sent through the tables when the change is complete.
    packet: Option<Packet>,
}

impl Switch {
    /// Makes as much of a change as one turn allows, and notifies controllers of the removed entries.
    pub(super) fn change_pipeline(
        &mut self,
        request: Request,
        begin: impl FnOnce(&mut Pipeline) -> Result<Option<EntryChange>, ErrorCode>,
    ) -> Result<(), ErrorCode> {
        let mut removed = Vec::new();
        let looks = &mut self.agent.turn.looks;
        *looks = LOOKS_MIN.max(*looks);
        let left = self.shared.change(|pipeline| {
            let Some(mut change) = begin(pipeline)? else {
                return Ok(None);
            };
            let is_complete = pipeline.go_on(&mut change, looks, &mut removed);
            Ok((!is_complete).then_some(change))
        })?;
        self.agent.send_flow_removed(&removed, request.now);
        let change = left.map(|change| LongChange {
            change,
            packet: None,
        });
        match self.agent.session_mut(request.connection) {
            Some(session) => session.change = change,
            None => self.agent.abandoned_changes.extend(change),
        }
        Ok(())
    }

    /// Sends a packet through the tables after the controller's previous messages, as if a packet-out to OFPP_TABLE followed
    /// (1.3.5 section 7.3.4.1).
    pub(super) fn carry_out_behind(&mut self, request: Request, packet: Packet) {
        let session = self.agent.session_mut(request.connection);
        match session.and_then(|session| session.change.as_mut()) {
            Some(change) => change.packet = Some(packet),
            None => self.carry_out_by_tables(packet, request.now),
        }
    }

    /// Makes the next part of the change that a controller's messages wait for, if any.
    pub(crate) fn continue_change(&mut self, connection: ConnectionId, now: Duration) {
        let session = self.agent.session_mut(connection);
        let Some(change) = session.and_then(|session| session.change.take()) else {
            return;
        };
        let left = self.carry_out_part(change, now);
        match self.agent.session_mut(connection) {
            Some(session) => session.change = left,
            None => self.agent.abandoned_changes.extend(left),
        }
    }

    /// Makes the next part of a change whose controller has disconnected; returns whether there was one.
    pub(crate) fn continue_abandoned_change(&mut self, now: Duration) -> bool {
        let Some(change) = self.agent.abandoned_changes.pop_front() else {
            return false;
        };
        self.agent.begin_turn();
        let left = self.carry_out_part(change, now);
        self.agent.abandoned_changes.extend(left);
        true
    }

    /// Makes the next part of a change, and returns the rest of it.
    fn carry_out_part(&mut self, mut change: LongChange, now: Duration) -> Option<LongChange> {
        let mut removed = Vec::new();
        let looks = &mut self.agent.turn.looks;
        let is_complete = self
            .shared
            .change(|pipeline| pipeline.go_on(&mut change.change, looks, &mut removed));
        self.agent.send_flow_removed(&removed, now);
        if !is_complete {
            return Some(change);
        }
        if let Some(packet) = change.packet {
            self.carry_out_by_tables(packet, now);
        }
        None
    }

    fn carry_out_by_tables(&mut self, packet: Packet, now: Duration) {
        self.carry_out(packet, &[Action::output(PortNo::TABLE)], now);
    }
}
