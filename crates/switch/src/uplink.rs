//! Passing packets for controllers from any thread to theirs.

use crate::agent::Agent;
use crate::mailbox::Mailbox;
use crate::shared::Shared;
use std::sync::Arc;
use std::time::Duration;
use urtica_pipeline::{Packet, PacketInCause};

/// Maximum number of packets that can wait for the controllers' thread.
pub(crate) const MAX_WAITING: usize = 4096;

/// A destination of packets for controllers.
pub(crate) trait Controllers {
    /// Sends a packet that the pipeline sends to controllers.
    fn packet_in(&mut self, packet: &Packet, cause: PacketInCause, now: Duration);

    /// Sends a packet that matched no entry to the controllers that want it ([`Agent::send_table_miss`]).
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

/// A packet for the controllers' thread.
pub(crate) struct ControllerPacket {
    packet: Packet,
    /// The cause; `None` if the packet matched no entry.
    cause: Option<PacketInCause>,
}

impl ControllerPacket {
    /// Passes the packet to the controllers.
    pub fn deliver(self, controllers: &mut impl Controllers, now: Duration) {
        match self.cause {
            Some(cause) => controllers.packet_in(&self.packet, cause, now),
            None => controllers.table_miss(&self.packet, now),
        }
    }
}

/// A path from another thread to the controllers' thread.
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
