//! The outputs of the pipeline: ports, controllers, and forwarding without OpenFlow.

use crate::normal::vlan_of;
use crate::port_table::PortTable;
use crate::shared::Shared;
use crate::uplink::Controllers;
use std::time::Duration;
use urtica_pipeline::{Packet, PacketInCause, Pipeline, Sink, Step};
use urtica_wire::packet::EthernetView;
use urtica_wire::{Port, PortConfig, PortNo, PortState};

/// The switch's [`Sink`], which is created for each packet or run of packets.
pub(crate) struct Egress<'a> {
    pub pipeline: &'a Pipeline,
    pub shared: &'a Shared,
    pub ports: &'a mut PortTable,
    pub controllers: &'a mut dyn Controllers,
    pub now: Duration,
}

impl Sink for Egress<'_> {
    fn transmit(&mut self, port: PortNo, packet: &Packet) {
        self.send(port, packet);
    }

    fn packet_in(&mut self, packet: &Packet, cause: PacketInCause) {
        self.controllers.packet_in(packet, cause, self.now);
    }

    fn normal(&mut self, packet: &Packet) {
        let Ok(ethernet) = EthernetView::new(packet.frame()) else {
            return;
        };
        let vid = vlan_of(packet.frame());
        let mut hosts = self.shared.hosts();
        if self.ports.get(packet.in_port).is_some() {
            hosts.learn(vid, ethernet.src(), packet.in_port, self.now);
        }
        // Messages between bridges are not forwarded (IEEE 802.1Q table 8-1).
        if ethernet.dst().is_link_local() {
            return;
        }
        let port = hosts.port_of(vid, ethernet.dst(), self.now);
        drop(hosts);
        match port {
            Some(port) if port == packet.in_port => {}
            Some(port) if self.pipeline.port(port).is_some_and(may_send) => {
                self.send(port, packet);
            }
            _ => self.flood(packet),
        }
    }

    fn step(&mut self, step: Step<'_>) {
        if let Step::Table {
            packet,
            entry: None,
            ..
        } = step
        {
            if self.sends_misses_up(packet.in_port) {
                self.controllers.table_miss(packet, self.now);
            }
        }
    }
}

impl Egress<'_> {
    fn send(&mut self, port_no: PortNo, packet: &Packet) {
        if let Some(port) = self.ports.get_mut(port_no) {
            port.send_by(packet.queue_id, packet.frame());
        }
    }

    fn flood(&mut self, packet: &Packet) {
        for port in self.pipeline.ports() {
            let is_flooded = !port.config.contains(PortConfig::NO_FLOOD);
            if port.port_no != packet.in_port && is_flooded && may_send(port) {
                self.send(port.port_no, packet);
            }
        }
    }

    /// Returns whether a port's misses are sent to controllers. For packets that a table-miss entry sends, the pipeline has
    /// already checked this (1.3.5 section 7.2.1; 1.0 section 5.2.1).
    fn sends_misses_up(&self, in_port: PortNo) -> bool {
        let port = self.pipeline.port(in_port);
        port.is_none_or(|port| !port.config.contains(PortConfig::NO_PACKET_IN))
    }
}

fn may_send(port: &Port) -> bool {
    !port
        .config
        .intersects(PortConfig::PORT_DOWN | PortConfig::NO_FWD)
        && !port
            .state
            .intersects(PortState::LINK_DOWN | PortState::BLOCKED)
}
