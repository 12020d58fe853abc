//! Role requests, which elect one of several controllers as master (1.3.5 sections 6.3.6, 7.3.9). 1.0 uses Nicira's
//! extension.

use super::requests::Request;
use super::{Agent, ConnectionId};
use urtica_wire::{ControllerRole, ErrorCode, Experimenter, Message, NiciraMessage, Role};

/// The generation id of replies before the first election.
const NO_GENERATION: u64 = u64::MAX;

impl Agent {
    /// Changes a controller's role, and replies with the resulting role.
    ///
    /// # Errors
    /// OFPRRFC_STALE if the election is older than a known one, OFPRRFC_BAD_ROLE for an invalid role.
    pub fn handle_role_request(&mut self, request: Request, asked: Role) -> Result<(), ErrorCode> {
        match asked.role {
            ControllerRole::NoChange | ControllerRole::Equal => {}
            ControllerRole::Master | ControllerRole::Slave => {
                self.hold_election(asked.generation_id)?;
            }
            ControllerRole::Other(_) => return Err(ErrorCode::RoleRequestFailedBadRole),
        }
        self.change_role(request.connection, asked.role);
        let generation_id = self.generation_id.unwrap_or(NO_GENERATION);
        let Some(session) = self.session_mut(request.connection) else {
            return Ok(());
        };
        let role = session.controller.role;
        let reply = Role {
            role,
            generation_id,
        };
        session.reply(request.xid, &Message::RoleReply(reply));
        Ok(())
    }

    /// Handles a vendor message of 1.0 like Open vSwitch: roles without elections, and the filter of asynchronous messages.
    ///
    /// # Errors
    /// OFPBRC_BAD_VENDOR for any other message, OFPBRC_EPERM for an invalid role, OFPBRC_BAD_LEN.
    pub fn handle_vendor(
        &mut self,
        request: Request,
        vendor: &Experimenter,
    ) -> Result<(), ErrorCode> {
        match NiciraMessage::decode(vendor).map_err(|error| error.code())? {
            Some(NiciraMessage::RoleRequest(ControllerRole::Other(_))) => {
                Err(ErrorCode::BadRequestEperm)
            }
            Some(NiciraMessage::RoleRequest(role)) => {
                self.change_role(request.connection, role);
                if let Some(session) = self.session_mut(request.connection) {
                    session.reply_vendor(request.xid, &NiciraMessage::RoleReply(role));
                }
                Ok(())
            }
            Some(NiciraMessage::SetAsync(config)) => {
                if let Some(session) = self.session_mut(request.connection) {
                    session.controller.asynchronous = config;
                }
                Ok(())
            }
            _ => Err(ErrorCode::BadRequestBadExperimenter),
        }
    }

    fn change_role(&mut self, connection: ConnectionId, role: ControllerRole) {
        if role == ControllerRole::Master {
            self.demote_masters(connection);
        }
        if role != ControllerRole::NoChange {
            if let Some(session) = self.session_mut(connection) {
                session.controller.role = role;
            }
        }
    }

    /// Records an election. Generation ids may wrap around: one is older than another if their distance, interpreted as a
    /// signed number, is negative.
    fn hold_election(&mut self, generation_id: u64) -> Result<(), ErrorCode> {
        let is_stale = self
            .generation_id
            .is_some_and(|newest| (generation_id.wrapping_sub(newest) as i64) < 0);
        if is_stale {
            return Err(ErrorCode::RoleRequestFailedStale);
        }
        self.generation_id = Some(generation_id);
        Ok(())
    }

    /// Demotes all other masters: "the previous master becomes a slave".
    fn demote_masters(&mut self, but: ConnectionId) {
        for (&id, session) in &mut self.sessions {
            if id != but && session.controller.role == ControllerRole::Master {
                session.controller.role = ControllerRole::Slave;
            }
        }
    }
}
