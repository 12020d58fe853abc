//! Buffers for packets about which controllers decide (1.3.5 section 7.4.1).
//!
//! They form a ring: each packet uses the next slot. A slot is free once its packet was used, or has waited for [`MAX_AGE`].
//! While the next slot is not free, packets are sent whole instead of being buffered.

use std::time::Duration;
use urtica_pipeline::Packet;
use urtica_wire::{BufferId, ErrorCode};

/// Minimum time for which a packet is buffered. Later its buffer may be reused.
const MAX_AGE: Duration = Duration::from_secs(5);

/// Maximum number of buffers, whatever the configuration.
const MAX_BUFFERS: u32 = 1 << 16;

/// Ids count up within these bits, so they never reach [`BufferId::NONE`].
const ID_MASK: u32 = 0x7fff_ffff;

/// A ring of buffered packets.
#[derive(Debug)]
pub(crate) struct Buffers {
    places: Vec<BufferSlot>,
    next: u32,
}

#[derive(Clone, Debug, Default)]
struct BufferSlot {
    /// The last id issued for this slot.
    id: Option<BufferId>,
    /// The packet, until it is used.
    packet: Option<Packet>,
    since: Duration,
}

impl Buffers {
    /// Creates a ring for `n_buffers` packets, but at most [`MAX_BUFFERS`].
    pub fn new(n_buffers: u32) -> Self {
        Self {
            places: vec![BufferSlot::default(); n_buffers.min(MAX_BUFFERS) as usize],
            next: 0,
        }
    }

    /// Returns the maximum number of packets.
    pub fn capacity(&self) -> u32 {
        self.places.len() as u32
    }

    /// Buffers a packet; returns [`BufferId::NONE`] if the ring has no space.
    pub fn keep(&mut self, packet: &Packet, now: Duration) -> BufferId {
        let id = BufferId(self.next);
        let Some(place) = self.place(id) else {
            return BufferId::NONE;
        };
        if place.packet.is_some() && now.saturating_sub(place.since) < MAX_AGE {
            return BufferId::NONE;
        }
        *place = BufferSlot {
            id: Some(id),
            packet: Some(packet.clone()),
            since: now,
        };
        self.next = (self.next + 1) & ID_MASK;
        id
    }

    /// Returns a buffered packet, and frees its slot.
    ///
    /// # Errors
    /// OFPBRC_BUFFER_EMPTY if it was already returned, OFPBRC_BUFFER_UNKNOWN if the id was never issued, or its slot has been
    /// reused.
    pub fn take(&mut self, id: BufferId) -> Result<Packet, ErrorCode> {
        let place = self.place(id).filter(|place| place.id == Some(id));
        let place = place.ok_or(ErrorCode::BadRequestBufferUnknown)?;
        place.packet.take().ok_or(ErrorCode::BadRequestBufferEmpty)
    }

    fn place(&mut self, id: BufferId) -> Option<&mut BufferSlot> {
        let at = (id.0 as usize).checked_rem(self.places.len())?;
        self.places.get_mut(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use urtica_wire::PortNo;

    fn packet(byte: u8) -> Packet {
        Packet::new(PortNo(1), &[byte; 60])
    }

    fn first_byte(packet: &Packet) -> u8 {
        packet.frame()[0]
    }

    #[test]
    fn a_buffer_is_used_once() {
        let mut buffers = Buffers::new(2);
        let id = buffers.keep(&packet(1), Duration::ZERO);
        assert_eq!(first_byte(&buffers.take(id).unwrap()), 1);
        assert_eq!(
            buffers.take(id).unwrap_err(),
            ErrorCode::BadRequestBufferEmpty
        );
    }

    #[test]
    fn unissued_ids_are_unknown() {
        let mut buffers = Buffers::new(2);
        for id in [0, 1, 77, u32::MAX] {
            let error = buffers.take(BufferId(id)).unwrap_err();
            assert_eq!(error, ErrorCode::BadRequestBufferUnknown);
        }
    }

    #[test]
    fn a_full_ring_keeps_no_packets_until_old_ones_expire() {
        let mut buffers = Buffers::new(2);
        let first = buffers.keep(&packet(1), Duration::ZERO);
        buffers.keep(&packet(2), Duration::ZERO);
        let soon = MAX_AGE - Duration::from_nanos(1);
        assert_eq!(buffers.keep(&packet(3), soon), BufferId::NONE);
        let third = buffers.keep(&packet(3), MAX_AGE);
        assert_eq!(first_byte(&buffers.take(third).unwrap()), 3);
        assert_eq!(
            buffers.take(first).unwrap_err(),
            ErrorCode::BadRequestBufferUnknown
        );
    }

    #[test]
    fn a_ring_of_size_0_keeps_no_packets() {
        let mut buffers = Buffers::new(0);
        assert_eq!(buffers.keep(&packet(1), Duration::ZERO), BufferId::NONE);
        assert!(buffers.take(BufferId(0)).is_err());
    }

    #[test]
    fn ids_never_become_none() {
        let mut buffers = Buffers::new(3);
        buffers.next = ID_MASK;
        assert_eq!(buffers.keep(&packet(1), Duration::ZERO), BufferId(ID_MASK));
        assert_eq!(buffers.keep(&packet(2), Duration::ZERO), BufferId(0));
    }
}
