//! Packet-outs: packets that controllers send through the switch (1.3.5 section 7.3.7).

use super::requests::Request;
use crate::Switch;
use std::time::Duration;
use urtica_pipeline::{Packet, is_fragment};
use urtica_wire::packet::ethernet;
use urtica_wire::{Action, ErrorCode, PacketOut, PortNo};

impl Switch {
    /// Handles a packet-out. The whole message is checked before its buffer is used, so that a controller can try again.
    pub(super) fn handle_packet_out(
        &mut self,
        request: Request,
        packet_out: &PacketOut,
    ) -> Result<(), ErrorCode> {
        self.check_in_port(packet_out.in_port)?;
        self.shared
            .pipeline()
            .check_packet_out(&packet_out.actions)?;
        let actions: Vec<_> = packet_out.actions.iter().collect();
        let packet = self.take_packet(packet_out)?;
        self.carry_out(packet, &actions, request.now);
        Ok(())
    }

    /// Executes actions on a packet.
    pub(super) fn carry_out(&mut self, packet: Packet, actions: &[Action], now: Duration) {
        self.carry_out_with(now, |pipeline, egress| {
            pipeline.packet_out(packet, actions, now, egress);
        });
    }

    /// "It must be set to either a valid standard switch port or OFPP_CONTROLLER" (1.3.5 section 7.3.7). 1.0 uses OFPP_NONE
    /// instead of the latter, and many controllers of 1.3 still do.
    fn check_in_port(&self, in_port: PortNo) -> Result<(), ErrorCode> {
        match in_port {
            PortNo::CONTROLLER | PortNo::ANY => Ok(()),
            port if self.shared.pipeline().port(port).is_some() => Ok(()),
            _ => Err(ErrorCode::BadRequestBadPort),
        }
    }

    fn take_packet(&mut self, packet_out: &PacketOut) -> Result<Packet, ErrorCode> {
        let in_port = packet_out.in_port;
        if packet_out.buffer_id.is_some() {
            let mut packet = self.agent.buffers.take(packet_out.buffer_id)?;
            packet.in_port = in_port;
            packet.in_phy_port = in_port;
            packet.metadata = 0;
            packet.queue_id = 0;
            return Ok(packet);
        }
        if packet_out.data.len() < ethernet::HEADER_LEN {
            return Err(ErrorCode::BadRequestBadPacket);
        }
        let packet = Packet::new(in_port, packet_out.data);
        if !is_fragment(packet_out.data) {
            return Ok(packet);
        }
        Ok(if self.agent.matches_hidden() {
            packet.with_hidden_fields()
        } else if self.agent.zeroes_ports() {
            packet.as_fragment_of10()
        } else {
            packet
        })
    }
}
