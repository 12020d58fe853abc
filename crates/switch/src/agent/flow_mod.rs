//! Flow mods, with the meaning that each version gives them, and flow-removed messages.

use super::requests::Request;
use crate::Switch;
use std::time::Duration;
use urtica_pipeline::RemovedEntry;
use urtica_wire::{ErrorCode, FlowMod, FlowModCommand, FlowRemoved, FlowRemovedReason, Version};

impl Switch {
    pub(super) fn handle_flow_mod(
        &mut self,
        request: Request,
        flow_mod: &FlowMod,
    ) -> Result<(), ErrorCode> {
        self.change_pipeline(request, |pipeline| {
            pipeline.begin_flow_mod(request.version, flow_mod, request.now)
        })?;
        let is_delete = matches!(
            flow_mod.command,
            FlowModCommand::Delete | FlowModCommand::DeleteStrict
        );
        if is_delete {
            return Ok(());
        }
        self.agent.entries_version = Some(request.version);
        if !flow_mod.buffer_id.is_some() {
            return Ok(());
        }
        let mut packet = self.agent.buffers.take(flow_mod.buffer_id)?;
        packet.metadata = 0;
        packet.queue_id = 0;
        self.carry_out_behind(request, packet);
        Ok(())
    }
}

/// Creates the message about a removed entry. 1.0's message has no table, hard timeout and groups.
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
            match_: removed.entry.match_.to_of10(),
            ..message
        },
    }
}
