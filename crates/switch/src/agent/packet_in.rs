//! Packet-ins: the controllers that receive a packet, how much of it, and the rate limit.

use super::session::Session;
use super::{Agent, connected};
use crate::buffers::Buffers;
use std::time::Duration;
use urtica_pipeline::{Packet, PacketInCause};
use urtica_wire::{
    BufferId, CONTROLLER_NO_BUFFER, Match, Message, OxmField, PacketIn, PacketInReason, Version,
};

/// The cookie of a packet that no entry sent.
const NO_COOKIE: u64 = u64::MAX;
/// Maximum number of a packet's bytes that always fit into a message, with the packet-in's own fields.
const MAX_DATA_BYTES: usize = 65_000;
/// Size of a burst of packet-ins, as its duration at the limited rate.
const BURST: Duration = Duration::from_millis(100);

/// A rate limit that allows small bursts: the generic cell rate algorithm (ITU-T I.371), a token bucket that stores a time
/// instead of a number of tokens.
#[derive(Clone, Copy, Debug)]
pub(super) struct RateLimit {
    interval: Duration,
    /// The time when the bucket would be full again.
    full_at: Duration,
}

impl RateLimit {
    /// Creates a limit of `per_second`; 0 means no limit.
    pub fn new(per_second: u32) -> Self {
        let interval = Duration::from_secs(1).checked_div(per_second);
        Self {
            interval: interval.unwrap_or_default(),
            full_at: Duration::ZERO,
        }
    }

    /// Returns whether another packet may pass, and counts it if so.
    pub fn admits(&mut self, now: Duration) -> bool {
        let full_at = self.full_at.max(now);
        let burst = BURST.max(self.interval);
        if full_at + self.interval > now + burst {
            return false;
        }
        self.full_at = full_at + self.interval;
        true
    }
}

/// A packet that is being sent to controllers.
struct Handover<'a> {
    packet: &'a Packet,
    cause: PacketInCause,
    /// The id of the buffer with the packet, once buffering was attempted.
    buffer_id: Option<BufferId>,
    now: Duration,
}

impl Agent {
    /// Sends a packet to the controllers that want it.
    pub fn send_packet_in(&mut self, packet: &Packet, cause: PacketInCause, now: Duration) {
        self.hand_over(packet, cause, now, |session| {
            session.controller.wants_packet_in(cause.reason)
        });
    }

    /// Sends a packet that matched no entry to 1.0's controllers, as 1.0 section 3.4 requires. 1.3's controllers receive
    /// packets only from table-miss entries; without one the packet is dropped (1.3.5 section 5.4). If both kinds are connected,
    /// each is treated as its version requires, as in Open vSwitch.
    pub fn send_table_miss(&mut self, packet: &Packet, now: Duration) {
        let cause = PacketInCause {
            reason: PacketInReason::NoMatch,
            table_id: 0,
            cookie: NO_COOKIE,
            max_len: CONTROLLER_NO_BUFFER,
        };
        self.hand_over(packet, cause, now, Session::wants_table_misses);
    }

    fn hand_over(
        &mut self,
        packet: &Packet,
        cause: PacketInCause,
        now: Duration,
        is_wanted: impl Fn(&Session) -> bool,
    ) {
        let mut handover = Handover {
            packet,
            cause,
            buffer_id: None,
            now,
        };
        let mut is_admitted = None;
        for (version, session) in connected(&mut self.sessions) {
            if !is_wanted(session) {
                continue;
            }
            let is_admitted = *is_admitted.get_or_insert_with(|| self.rate_limit.admits(now));
            if is_admitted && session.has_space_for_packet_in() {
                handover.send(version, session, &mut self.buffers);
            } else {
                self.packet_ins_dropped += 1;
            }
        }
    }
}

impl Handover<'_> {
    fn send(&mut self, version: Version, session: &mut Session, buffers: &mut Buffers) {
        let max_len = self.max_len(version, session);
        let (buffer_id, length) = self.keep(max_len, buffers);
        let frame = self.packet.frame();
        let is_10 = version == Version::Of10;
        let packet_in = PacketIn {
            buffer_id,
            total_len: u16::try_from(frame.len()).unwrap_or(u16::MAX),
            reason: self.cause.reason,
            table_id: if is_10 { 0 } else { self.cause.table_id },
            cookie: if is_10 { NO_COOKIE } else { self.cause.cookie },
            in_port: self.packet.in_port,
            match_: if is_10 {
                Match::any()
            } else {
                pipeline_fields(self.packet)
            },
            data: &frame[..length.min(frame.len()).min(MAX_DATA_BYTES)],
        };
        session.send(&Message::PacketIn(packet_in));
    }

    /// Returns the maximum length: that of the output action, or `miss_send_len` for packets sent without one (1.3.5 section
    /// 7.3.2).
    fn max_len(&self, version: Version, session: &Session) -> u16 {
        let is_miss = version == Version::Of10 && self.cause.reason == PacketInReason::NoMatch;
        match self.cause.reason {
            PacketInReason::InvalidTtl => session.controller.miss_send_len,
            _ if is_miss => session.controller.miss_send_len,
            _ => self.cause.max_len,
        }
    }

    /// Buffers the packet, once for all controllers. If it cannot be buffered, it is sent whole.
    fn keep(&mut self, max_len: u16, buffers: &mut Buffers) -> (BufferId, usize) {
        if max_len == CONTROLLER_NO_BUFFER {
            return (BufferId::NONE, usize::MAX);
        }
        let (packet, now) = (self.packet, self.now);
        let buffer_id = *self
            .buffer_id
            .get_or_insert_with(|| buffers.keep(packet, now));
        match buffer_id {
            BufferId::NONE => (BufferId::NONE, usize::MAX),
            kept => (kept, max_len.into()),
        }
    }
}

/// Returns the fields that are not in the packet's bytes. Fields with the value 0 may be omitted (1.3.5 section 7.4.1).
fn pipeline_fields(packet: &Packet) -> Match<'static> {
    let mut fields = Match::any().in_port(packet.in_port);
    if packet.in_phy_port != packet.in_port {
        fields = fields.with_exact(OxmField::InPhyPort, packet.in_phy_port.0);
    }
    if packet.metadata != 0 {
        fields = fields.with_exact(OxmField::Metadata, packet.metadata);
    }
    if packet.tunnel_id != 0 {
        fields = fields.with_exact(OxmField::TunnelId, packet.tunnel_id);
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admitted(limit: &mut RateLimit, now: Duration, offered: usize) -> usize {
        (0..offered).filter(|_| limit.admits(now)).count()
    }

    #[test]
    fn a_burst_passes_before_the_rate_applies() {
        let mut limit = RateLimit::new(1000);
        assert_eq!(admitted(&mut limit, Duration::ZERO, 1000), 100);
        let later = Duration::from_millis(10);
        assert_eq!(admitted(&mut limit, later, 1000), 10);
        assert_eq!(admitted(&mut limit, Duration::from_secs(60), 1000), 100);
    }

    #[test]
    fn a_low_rate_admits_single_packet_ins() {
        let mut limit = RateLimit::new(2);
        assert_eq!(admitted(&mut limit, Duration::ZERO, 10), 1);
        assert_eq!(admitted(&mut limit, Duration::from_millis(500), 10), 1);
    }

    #[test]
    fn zero_means_no_limit() {
        let mut limit = RateLimit::new(0);
        assert_eq!(admitted(&mut limit, Duration::ZERO, 100_000), 100_000);
    }
}
