//! Dispatch of all messages that a controller may send, and the handlers of the short ones.

use super::ConnectionId;
use crate::Switch;
use std::time::Duration;
use urtica_wire::{
    Capabilities, ConfigFlags, ErrorCode, Features, Header, List, Message, PortNo, SwitchConfig,
    TABLE_ALL, TableMod, Version,
};

/// The request being handled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub connection: ConnectionId,
    pub version: Version,
    pub xid: u32,
    pub now: Duration,
}

/// The capabilities of a 1.3 switch.
const CAPABILITIES_13: Capabilities = Capabilities::FLOW_STATS
    .union(Capabilities::TABLE_STATS)
    .union(Capabilities::PORT_STATS)
    .union(Capabilities::QUEUE_STATS)
    .union(Capabilities::GROUP_STATS);
/// The capabilities of a 1.0 switch.
const CAPABILITIES_10: Capabilities = Capabilities::FLOW_STATS
    .union(Capabilities::TABLE_STATS)
    .union(Capabilities::PORT_STATS)
    .union(Capabilities::QUEUE_STATS)
    .union(Capabilities::ARP_MATCH_IP);
/// 1.0's actions: all from OFPAT_OUTPUT to OFPAT_ENQUEUE.
const ACTIONS_10: u32 = 0xfff;
/// OFPTC_DEPRECATED_MASK: bits of a table's configuration that had a meaning before 1.3, and are ignored.
const OFPTC_DEPRECATED_MASK: u32 = 3;

impl Switch {
    /// Handles one message of a controller. An invalid one is answered with an error.
    pub(crate) fn handle_message(
        &mut self,
        connection: ConnectionId,
        frame: &[u8],
        (header, message): (Header, Message),
        now: Duration,
    ) {
        let version = self.agent.session(connection).and_then(|s| s.version());
        let Some(version) = version else {
            return;
        };
        let request = Request {
            connection,
            version,
            xid: header.xid,
            now,
        };
        let result = self
            .check_role(connection, &message)
            .and_then(|()| self.dispatch(request, frame, message));
        if let (Err(code), Some(session)) = (result, self.agent.session_mut(connection)) {
            session.send_error(code, frame);
        }
    }

    /// Refuses slaves' writes, since slaves may only read (1.3.5 section 6.3.6).
    fn check_role(&self, connection: ConnectionId, message: &Message) -> Result<(), ErrorCode> {
        let is_write = matches!(
            message,
            Message::PacketOut(_)
                | Message::FlowMod(_)
                | Message::GroupMod(_)
                | Message::PortMod(_)
                | Message::TableMod(_)
                | Message::MeterMod(_)
        );
        match self.agent.session(connection) {
            Some(session) if is_write && session.controller.is_slave() => {
                Err(ErrorCode::BadRequestIsSlave)
            }
            _ => Ok(()),
        }
    }

    fn dispatch(
        &mut self,
        request: Request,
        frame: &[u8],
        message: Message,
    ) -> Result<(), ErrorCode> {
        match message {
            Message::FeaturesRequest => self.handle_features_request(request),
            Message::GetConfigRequest => self.handle_get_config(request),
            Message::SetConfig(config) => self.handle_set_config(request, config)?,
            Message::PacketOut(packet_out) => self.handle_packet_out(request, &packet_out)?,
            Message::FlowMod(flow_mod) => self.handle_flow_mod(request, &flow_mod)?,
            Message::GroupMod(group_mod) => self.change_pipeline(request, |pipeline| {
                pipeline.begin_group_mod(&group_mod, request.now)
            })?,
            Message::MeterMod(meter_mod) => self.change_pipeline(request, |pipeline| {
                pipeline.begin_meter_mod(&meter_mod, request.now)
            })?,
            Message::PortMod(port_mod) => self.handle_port_mod(request, &port_mod)?,
            Message::TableMod(table_mod) => self.handle_table_mod(table_mod)?,
            Message::MultipartRequest(multipart) => {
                self.handle_multipart(request, frame, multipart)?;
            }
            Message::BarrierRequest => self.handle_barrier(request)?,
            Message::QueueGetConfigRequest(port) => self.handle_queue_get_config(request, port)?,
            Message::RoleRequest(role) => self.agent.handle_role_request(request, role)?,
            Message::GetAsyncRequest => self.handle_get_async(request),
            Message::SetAsync(config) => {
                if let Some(session) = self.agent.session_mut(request.connection) {
                    session.controller.asynchronous = config;
                }
            }
            Message::Experimenter(vendor) if request.version == Version::Of10 => {
                self.agent.handle_vendor(request, &vendor)?;
            }
            Message::Experimenter(_) => return Err(ErrorCode::BadRequestBadExperimenter),
            // Messages that only switches send.
            _ => return Err(ErrorCode::BadRequestBadType),
        }
        Ok(())
    }

    /// Answers a request.
    pub(super) fn reply(&mut self, request: Request, message: &Message) {
        if let Some(session) = self.agent.session_mut(request.connection) {
            session.reply(request.xid, message);
        }
    }

    fn handle_features_request(&mut self, request: Request) {
        let is_10 = request.version == Version::Of10;
        let ports = match is_10 {
            true => self.port_descriptions(request.version),
            false => Vec::new(),
        };
        let features = Features {
            datapath_id: self.config.datapath_id,
            n_buffers: self.agent.buffers.capacity(),
            n_tables: self.shared.pipeline().config().n_tables,
            auxiliary_id: 0,
            capabilities: if is_10 {
                CAPABILITIES_10
            } else {
                CAPABILITIES_13
            },
            actions: if is_10 { ACTIONS_10 } else { 0 },
            ports: List::from(ports),
        };
        self.reply(request, &Message::FeaturesReply(features));
    }

    /// Answers a barrier, or refuses it if waiting for the disk has failed: a reply would claim that the previous changes
    /// outlive the switch.
    fn handle_barrier(&mut self, request: Request) -> Result<(), ErrorCode> {
        let session = self.agent.session_mut(request.connection);
        let wanted = session.and_then(|session| session.take_durable_wanted());
        if !self.shared.durability().has(wanted) {
            return Err(ErrorCode::BadRequestEperm);
        }
        self.reply(request, &Message::BarrierReply);
        Ok(())
    }

    fn handle_get_config(&mut self, request: Request) {
        let session = self.agent.session(request.connection);
        let config = SwitchConfig {
            flags: self.agent.fragments,
            miss_send_len: session.map_or(0, |session| session.controller.miss_send_len),
        };
        self.reply(request, &Message::GetConfigReply(config));
    }

    /// Sets the handling of fragments for all controllers, so slaves may not change it. The length of packet-ins is each
    /// controller's own setting. This switch never reassembles fragments, as the capabilities show.
    fn handle_set_config(
        &mut self,
        request: Request,
        config: SwitchConfig,
    ) -> Result<(), ErrorCode> {
        let supported = match config.flags & ConfigFlags::FRAG_NX_MATCH {
            ConfigFlags::FRAG_REASM => ConfigFlags::empty(),
            supported => supported,
        };
        if supported != config.flags && request.version == Version::Of13 {
            return Err(ErrorCode::SwitchConfigFailedBadFlags);
        }
        let Some(session) = self.agent.session_mut(request.connection) else {
            return Ok(());
        };
        session.controller.miss_send_len = config.miss_send_len;
        if !session.controller.is_slave() {
            self.agent.fragments = supported;
        }
        Ok(())
    }

    fn handle_table_mod(&mut self, table_mod: TableMod) -> Result<(), ErrorCode> {
        let n_tables = self.shared.pipeline().config().n_tables;
        if table_mod.table_id != TABLE_ALL && table_mod.table_id >= n_tables {
            return Err(ErrorCode::TableModFailedBadTable);
        }
        match table_mod.config & !OFPTC_DEPRECATED_MASK {
            0 => Ok(()),
            _ => Err(ErrorCode::TableModFailedBadConfig),
        }
    }

    fn handle_queue_get_config(&mut self, request: Request, port: PortNo) -> Result<(), ErrorCode> {
        let config = self.queue_config(request.version, port)?;
        self.reply(request, &Message::QueueGetConfigReply(config));
        Ok(())
    }

    fn handle_get_async(&mut self, request: Request) {
        if let Some(session) = self.agent.session_mut(request.connection) {
            let config = session.controller.asynchronous;
            session.reply(request.xid, &Message::GetAsyncReply(config));
        }
    }
}
