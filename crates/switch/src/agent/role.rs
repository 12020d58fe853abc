//! Several controllers on one switch: roles, and which asynchronous messages each one wants (1.3.5 sections 6.3.6,
//! 7.3.9, 7.3.10).

use super::requests::Request;
use super::session::Session;
use super::{Agent, ConnectionId};
use urtica_wire::{
    AsyncConfig, ControllerRole, ErrorCode, FlowRemovedReason, Message, PacketInReason, PortReason,
    Role, Version,
};

/// How many bytes of a packet go to a controller that asked for no other number (OFP_DEFAULT_MISS_SEND_LEN).
const DEFAULT_MISS_SEND_LEN: u16 = 128;

/// What a reply names as the election before there was one.
const NO_GENERATION: u64 = u64::MAX;

/// All reasons that the specification defines for a port-status or flow-removed message.
const ALL_PORT_STATUS: u32 = 0b111;
const ALL_FLOW_REMOVED: u32 = 0b1111;

/// What one controller wants to be told, and what it may do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wishes {
    pub role: ControllerRole,
    pub asynchronous: AsyncConfig,
    /// How many bytes of packets that no entry asked to be sent up it gets.
    pub miss_send_len: u16,
}

impl Default for Wishes {
    /// An EQUAL that is told everything but of packets with an invalid TTL; as a SLAVE it would be told of ports alone.
    fn default() -> Self {
        let packet_ins = bit(PacketInReason::NoMatch.into()) | bit(PacketInReason::Action.into());
        Self {
            role: ControllerRole::Equal,
            asynchronous: AsyncConfig {
                packet_in_mask: [packet_ins, 0],
                port_status_mask: [ALL_PORT_STATUS; 2],
                flow_removed_mask: [ALL_FLOW_REMOVED, 0],
            },
            miss_send_len: DEFAULT_MISS_SEND_LEN,
        }
    }
}

/// The bit of a reason in a mask; none for reasons that masks have no room for.
fn bit(reason: u8) -> u32 {
    1_u32.checked_shl(reason.into()).unwrap_or(0)
}

impl Session {
    /// Whether the controller may only look.
    pub fn is_slave(&self) -> bool {
        self.wishes.role == ControllerRole::Slave
    }

    pub fn wants_packet_in(&self, reason: PacketInReason) -> bool {
        self.wants(&self.wishes.asynchronous.packet_in_mask, reason.into())
    }

    /// Whether the controller is told of packets that no entry matches, not even a table-miss entry (1.0 section 3.4).
    pub fn wants_table_misses(&self) -> bool {
        self.version() == Some(Version::Of10) && self.wants_packet_in(PacketInReason::NoMatch)
    }

    pub fn wants_port_status(&self, reason: PortReason) -> bool {
        self.wants(&self.wishes.asynchronous.port_status_mask, reason.into())
    }

    pub fn wants_flow_removed(&self, reason: FlowRemovedReason) -> bool {
        self.wants(&self.wishes.asynchronous.flow_removed_mask, reason.into())
    }

    /// The masks are for a master or equal, and for a slave.
    fn wants(&self, masks: &[u32; 2], reason: u8) -> bool {
        masks[usize::from(self.is_slave())] & bit(reason) != 0
    }
}

impl Agent {
    /// Changes a controller's role, and tells it which it has.
    ///
    /// # Errors
    /// OFPRRFC_STALE where the election is older than one that was heard of, OFPRRFC_BAD_ROLE for any other number of
    /// a role.
    pub fn handle_role_request(&mut self, request: Request, asked: Role) -> Result<(), ErrorCode> {
        match asked.role {
            ControllerRole::NoChange | ControllerRole::Equal => {}
            ControllerRole::Master | ControllerRole::Slave => {
                self.hold_election(asked.generation_id)?;
            }
            ControllerRole::Other(_) => return Err(ErrorCode::RoleRequestFailedBadRole),
        }
        if asked.role == ControllerRole::Master {
            self.demote_masters(request.connection);
        }
        let generation_id = self.generation_id.unwrap_or(NO_GENERATION);
        let Some(session) = self.session_mut(request.connection) else {
            return Ok(());
        };
        if asked.role != ControllerRole::NoChange {
            session.wishes.role = asked.role;
        }
        let role = session.wishes.role;
        let reply = Role {
            role,
            generation_id,
        };
        session.reply(request.xid, &Message::RoleReply(reply));
        Ok(())
    }

    /// Generation ids may wrap around: one is older than another where their distance, taken as signed, is negative.
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

    /// There is one master: "the previous master becomes a slave".
    fn demote_masters(&mut self, but: ConnectionId) {
        for (&id, session) in &mut self.sessions {
            if id != but && session.wishes.role == ControllerRole::Master {
                session.wishes.role = ControllerRole::Slave;
            }
        }
    }
}
