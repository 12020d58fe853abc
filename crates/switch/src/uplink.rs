//! Packets for controllers, from whatever thread they are on.

use crate::agent::Agent;
use crate::mailbox::Mailbox;
use crate::shared::Shared;
use std::sync::Arc;
use std::time::Duration;
use urtica_pipeline::{Packet, PacketInCause};

/// How many packets can wait for the thread that talks to controllers.
pub(crate) const MAX_WAITING: usize = 4096;

/// Where packets for controllers go.
pub(crate) trait Controllers {
    /// A packet that the pipeline sends up.
    fn packet_in(&mut self, packet: &Packet, cause: PacketInCause, now: Duration);

    /// A packet that no entry matched, for those who want to hear of it ([`Agent::send_table_miss`]).
    fn table_miss(&mut self, packet: &Packet, now: Duration);
}

impl Controllers for Agent {
    fn packet_in(&mut self, packet: &Packet, cause: PacketInCause, now: Duration) {
        self.send_packet_in(packet, cause, now);
    }

    fn table_miss(&mut self, packet: &Packet, now: Duration) {
        self.send_table_miss(packet, now);
    }
}

/// A packet on its way to the thread that talks to controllers.
pub(crate) struct ControllerPacket {
    packet: Packet,
    /// `None` where no entry matched it.
    cause: Option<PacketInCause>,
}

impl ControllerPacket {
    /// Arrives.
    pub fn deliver(self, controllers: &mut impl Controllers, now: Duration) {
        match self.cause {
            Some(cause) => controllers.packet_in(&self.packet, cause, now),
            None => controllers.table_miss(&self.packet, now),
        }
    }
}

/// The way there from another thread.
pub(crate) struct Uplink {
    pub packets: Arc<Mailbox<ControllerPacket>>,
    pub shared: Arc<Shared>,
}

impl Uplink {
    fn put(&mut self, packet: &Packet, cause: Option<PacketInCause>) {
        let packet = packet.clone();
        let put = self.packets.put(ControllerPacket { packet, cause }, 1);
        if put.is_err() {
            self.shared.count_dropped_packet_in();
        }
    }
}

impl Controllers for Uplink {
    fn packet_in(&mut self, packet: &Packet, cause: PacketInCause, _now: Duration) {
        self.put(packet, Some(cause));
    }

    fn table_miss(&mut self, packet: &Packet, _now: Duration) {
        if self.shared.modes().wants_table_misses {
            self.put(packet, None);
        }
    }
}
