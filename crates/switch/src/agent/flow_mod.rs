//! Flow mods, in both versions' meanings, and notifications of removed entries.

use super::requests::Request;
use crate::Switch;
use std::time::Duration;
use urtica_pipeline::{Pipeline, RemovedEntry};
use urtica_wire::{
    Action, ErrorCode, FlowMod, FlowModCommand, FlowRemoved, FlowRemovedReason, PortNo, Version,
};

impl Switch {
    pub(super) fn handle_flow_mod(
        &mut self,
        request: Request,
        flow_mod: &FlowMod,
    ) -> Result<(), ErrorCode> {
        self.change_pipeline(request, |pipeline, removed| match request.version {
            Version::Of10 => pipeline.flow_mod_of10(flow_mod, request.now, removed),
            Version::Of13 => pipeline.flow_mod(flow_mod, request.now, removed),
        })?;
        let is_delete = matches!(
            flow_mod.command,
            FlowModCommand::Delete | FlowModCommand::DeleteStrict
        );
        if is_delete || !flow_mod.buffer_id.is_some() {
            return Ok(());
        }
        // As if a packet-out of the buffered packet to OFPP_TABLE followed (1.3.5 section 7.3.4.1).
        let mut packet = self.agent.buffers.take(flow_mod.buffer_id)?;
        packet.metadata = 0;
        packet.queue_id = 0;
        self.carry_out(packet, &[Action::output(PortNo::TABLE)], request.now);
        Ok(())
    }

    /// Changes the pipeline, and tells controllers of the entries that are gone for it.
    pub(super) fn change_pipeline(
        &mut self,
        request: Request,
        change: impl FnOnce(&mut Pipeline, &mut Vec<RemovedEntry>) -> Result<(), ErrorCode>,
    ) -> Result<(), ErrorCode> {
        let mut removed = Vec::new();
        let result = self
            .shared
            .change(|pipeline| change(pipeline, &mut removed));
        self.agent.send_flow_removed(&removed, request.now);
        result
    }
}

/// The message about a removed entry. 1.0's lacks table, hard timeout and groups.
pub(super) fn flow_removed(
    version: Version,
    removed: &RemovedEntry,
    now: Duration,
) -> FlowRemoved<'static> {
    let message = removed.to_wire(now);
    match version {
        Version::Of13 => message,
        Version::Of10 => FlowRemoved {
            reason: match removed.reason {
                FlowRemovedReason::GroupDelete => FlowRemovedReason::Delete,
                reason => reason,
            },
            table_id: 0,
            hard_timeout: 0,
            ..message
        },
    }
}
