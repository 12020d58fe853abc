//! Reliable byte streams with a congestion window: a minimal TCP.
//!
//! **What.** A handshake, segments with real headers, cumulative acknowledgements, slow start and congestion avoidance (RFC
//! 5681), and a close. That is enough to look like TCP to a switch and to share a saturated link with other streams.
//!
//! **Limits.** After a loss the sender resends everything from the lost segment on, except bytes acknowledged during the resend
//! (go-back-N). No options, no receive window, no resets.

use super::flow::FlowReport;
use super::ip::Ip;
use super::outbox::Outbox;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;
use urtica_wire::packet::checksum::PseudoHeader;
use urtica_wire::packet::tcp::flags;
use urtica_wire::packet::{Tcp, TcpView, ip_proto};

/// The destination port of streams.
pub(crate) const PORT: u16 = 5001;

/// The maximum segment size.
const SEGMENT_BYTES: u64 = 1448;

/// The initial and the maximum congestion window in segments.
const FIRST_WINDOW: u64 = 10;
const MAX_WINDOW: u64 = 256;

/// The minimum and maximum retransmission time-out.
const MIN_TIMEOUT: Duration = Duration::from_millis(200);
const MAX_TIMEOUT: Duration = Duration::from_secs(3);

/// The number of duplicate acknowledgements that indicates a loss.
const REPEATS: u32 = 3;

/// A host's streams.
#[derive(Default)]
pub(crate) struct Tcps {
    sending: BTreeMap<u16, Sending>,
    /// By sender and source port.
    receiving: BTreeMap<(Ipv4Addr, u16), Receiving>,
}

/// The sending side of a stream. Positions start at 0 for the first byte; the SYN's is -1, so the sequence number of a position
/// is one higher.
struct Sending {
    dst: Ipv4Addr,
    bytes: u64,
    phase: Phase,
    /// Everything before this is acknowledged.
    acknowledged: u64,
    /// The next position to send.
    next: u64,
    /// Everything before this was sent at least once.
    reached: u64,
    /// The congestion window, and the threshold above which it grows slowly.
    window: u64,
    slow_from: u64,
    /// Acknowledgements since the window last grew in congestion avoidance.
    counted: u64,
    repeats: u32,
    round_trip: RoundTrip,
    timeout: Duration,
    deadline: Option<Duration>,
    started: Duration,
    report: FlowReport,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Greeting,
    Open,
    Done,
}

/// The round-trip time (RFC 6298). One segment is measured at a time, and no retransmitted ones.
#[derive(Default)]
struct RoundTrip {
    /// The end of the measured segment, and when it was sent.
    timed: Option<(u64, Duration)>,
    smoothed: Option<Duration>,
    variation: Duration,
}

/// The receiving side of a stream.
#[derive(Default)]
struct Receiving {
    /// Everything before this has arrived.
    expected: u64,
    /// Ranges received out of order: start and end of each.
    beyond: BTreeMap<u64, u64>,
    received: u64,
    reordered: u64,
    /// Segments whose bytes were not those sent.
    corrupted: u64,
}

/// The contents of a segment.
struct Segment<'a> {
    src_port: u16,
    dst_port: u16,
    seq: u32,
    ack: u32,
    flags: u16,
    payload: &'a [u8],
}

impl Tcps {
    /// Starts to send this many bytes from a port, at the next time-out.
    pub fn start(&mut self, port: u16, dst: Ipv4Addr, bytes: u64, now: Duration) {
        self.sending.insert(port, Sending::new(dst, bytes, now));
    }

    /// Stops sending.
    pub fn stop(&mut self) {
        self.sending.clear();
    }

    /// Returns the streams being sent: source port, destination, and number of bytes.
    pub fn sent(&self) -> impl Iterator<Item = (u16, Ipv4Addr, u64)> {
        let sending = self.sending.iter();
        sending.map(|(port, sending)| (*port, sending.dst, sending.bytes))
    }

    /// Adds the sender's results of the flow from a port.
    pub fn report_sent(&self, port: u16, report: &mut FlowReport) {
        if let Some(sending) = self.sending.get(&port) {
            *report = FlowReport {
                received: report.received,
                received_bytes: report.received_bytes,
                reordered: report.reordered,
                corrupted: report.corrupted,
                ..sending.report
            };
        }
    }

    /// Adds the receiver's results of the flow from a host's port.
    pub fn report_heard(&self, src: (Ipv4Addr, u16), report: &mut FlowReport) {
        if let Some(receiving) = self.receiving.get(&src) {
            report.received = receiving.received;
            report.received_bytes = receiving.expected;
            report.reordered = receiving.reordered;
            report.corrupted = receiving.corrupted;
        }
    }

    /// Handles a segment. Returns whether it was well-formed.
    pub fn handle(
        &mut self,
        src: Ipv4Addr,
        bytes: &[u8],
        ip: &mut Ip,
        now: Duration,
        out: &mut Outbox,
    ) -> bool {
        let Ok(segment) = TcpView::new(bytes) else {
            return false;
        };
        if segment.dst_port() == PORT {
            self.receive(src, &segment, ip, now, out);
        } else if let Some(sending) = self.sending.get_mut(&segment.dst_port()) {
            if sending.dst == src {
                sending.handle_acknowledgement(segment.dst_port(), &segment, ip, now, out);
            }
        }
        true
    }

    /// Starts new streams, and retransmits unacknowledged bytes.
    pub fn handle_timeout(&mut self, ip: &mut Ip, now: Duration, out: &mut Outbox) {
        for (&port, sending) in &mut self.sending {
            if sending.deadline.is_some_and(|deadline| deadline <= now) {
                sending.handle_timeout(port, ip, now, out);
            }
        }
    }

    /// Returns the time of the next time-out.
    pub fn next_timeout(&self) -> Option<Duration> {
        let deadlines = self.sending.values().map(|sending| sending.deadline);
        deadlines.flatten().min()
    }

    fn receive(
        &mut self,
        src: Ipv4Addr,
        segment: &TcpView<'_>,
        ip: &mut Ip,
        now: Duration,
        out: &mut Outbox,
    ) {
        let stream = (src, segment.src_port());
        let greets = segment.flags() & flags::SYN != 0;
        if greets {
            self.receiving.entry(stream).or_default();
        }
        let Some(receiving) = self.receiving.get_mut(&stream) else {
            return;
        };
        receiving.take(segment);
        let acknowledgement = Segment {
            src_port: PORT,
            dst_port: segment.src_port(),
            seq: u32::from(!greets),
            ack: sequence_number(receiving.expected),
            flags: if greets {
                flags::SYN | flags::ACK
            } else {
                flags::ACK
            },
            payload: &[],
        };
        acknowledgement.send(src, ip, now, out);
    }
}

impl Sending {
    fn new(dst: Ipv4Addr, bytes: u64, now: Duration) -> Self {
        Self {
            dst,
            bytes,
            phase: Phase::Greeting,
            acknowledged: 0,
            next: 0,
            reached: 0,
            window: FIRST_WINDOW,
            slow_from: MAX_WINDOW,
            counted: 0,
            repeats: 0,
            round_trip: RoundTrip::default(),
            timeout: MIN_TIMEOUT,
            deadline: Some(now),
            started: now,
            report: FlowReport::default(),
        }
    }

    fn handle_acknowledgement(
        &mut self,
        port: u16,
        segment: &TcpView<'_>,
        ip: &mut Ip,
        now: Duration,
        out: &mut Outbox,
    ) {
        if segment.flags() & flags::ACK == 0 || self.phase == Phase::Done {
            return;
        }
        if self.phase == Phase::Greeting {
            self.phase = Phase::Open;
            self.restart_timer(now);
        }
        // The difference is signed, since a number far behind the acknowledged one would otherwise look far ahead of it.
        let ahead = segment
            .ack()
            .wrapping_sub(sequence_number(self.acknowledged)) as i32;
        match u64::try_from(ahead) {
            Ok(0) if self.next > self.acknowledged => self.count_repeat(),
            Ok(ahead) if self.acknowledged + ahead <= self.reached => self.advance(ahead, now),
            _ => {}
        }
        match self.acknowledged == self.bytes {
            true => self.finish(port, ip, now, out),
            false => self.fill_window(port, ip, now, out),
        }
    }

    fn advance(&mut self, ahead: u64, now: Duration) {
        self.acknowledged += ahead;
        self.next = self.next.max(self.acknowledged);
        self.repeats = 0;
        self.timeout = self.round_trip.hear(self.acknowledged, now);
        self.restart_timer(now);
        self.widen();
    }

    /// Widens the window by one segment for an acknowledgement, or by a fraction of one above the threshold.
    fn widen(&mut self) {
        self.counted += 1;
        if self.window < self.slow_from || self.counted >= self.window {
            self.window = (self.window + 1).min(MAX_WINDOW);
            self.counted = 0;
        }
    }

    fn count_repeat(&mut self) {
        self.repeats += 1;
        if self.repeats == REPEATS {
            self.slow_from = (self.window / 2).max(2);
            self.window = self.slow_from;
            self.next = self.acknowledged;
            self.round_trip.forget();
        }
    }

    fn handle_timeout(&mut self, port: u16, ip: &mut Ip, now: Duration, out: &mut Outbox) {
        if self.phase == Phase::Greeting {
            self.segment(port, flags::SYN, u32::MAX, &[])
                .send(self.dst, ip, now, out);
        } else {
            self.slow_from = (self.window / 2).max(2);
            self.window = 1;
            self.next = self.acknowledged;
            self.repeats = 0;
            self.round_trip.forget();
            self.fill_window(port, ip, now, out);
        }
        self.deadline = Some(now + self.timeout);
        self.timeout = (self.timeout * 2).min(MAX_TIMEOUT);
    }

    fn fill_window(&mut self, port: u16, ip: &mut Ip, now: Duration, out: &mut Outbox) {
        let limit = self.acknowledged + self.window * SEGMENT_BYTES;
        while self.next < self.bytes && self.next < limit {
            let length = SEGMENT_BYTES.min(self.bytes - self.next);
            let payload = data(self.next, length as usize);
            let seq = sequence_number(self.next);
            self.segment(port, flags::ACK, seq, payload)
                .send(self.dst, ip, now, out);
            self.report.sent += 1;
            match self.next < self.reached {
                true => self.report.sent_again += 1,
                false => self.round_trip.send(self.next + length, now),
            }
            self.next += length;
            self.reached = self.reached.max(self.next);
        }
    }

    /// Finishes a stream when everything has arrived. The FIN is sent once, without waiting for its acknowledgement.
    fn finish(&mut self, port: u16, ip: &mut Ip, now: Duration, out: &mut Outbox) {
        self.phase = Phase::Done;
        self.deadline = None;
        self.report.is_done = true;
        self.report.took = Some(now.saturating_sub(self.started));
        let seq = sequence_number(self.bytes);
        self.segment(port, flags::FIN | flags::ACK, seq, &[])
            .send(self.dst, ip, now, out);
    }

    fn restart_timer(&mut self, now: Duration) {
        self.deadline = Some(now + self.timeout);
    }

    fn segment<'a>(&self, port: u16, flags: u16, seq: u32, payload: &'a [u8]) -> Segment<'a> {
        Segment {
            src_port: port,
            dst_port: PORT,
            seq,
            ack: u32::from(self.phase != Phase::Greeting),
            flags,
            payload,
        }
    }
}

impl RoundTrip {
    /// Notes that a segment that ends at this position was sent for the first time.
    fn send(&mut self, end: u64, now: Duration) {
        self.timed.get_or_insert((end, now));
    }

    /// Cancels the measurement, because a retransmission makes its acknowledgement ambiguous.
    fn forget(&mut self) {
        self.timed = None;
    }

    /// Notes that everything before this position is acknowledged; returns the time-out for the following segments.
    fn hear(&mut self, acknowledged: u64, now: Duration) -> Duration {
        if let Some((_, sent)) = self.timed.take_if(|(end, _)| *end <= acknowledged) {
            let took = now.saturating_sub(sent);
            let smoothed = self.smoothed.unwrap_or(took);
            self.variation = match self.smoothed {
                None => took / 2,
                Some(_) => (3 * self.variation + smoothed.abs_diff(took)) / 4,
            };
            self.smoothed = Some((7 * smoothed + took) / 8);
        }
        let smoothed = self.smoothed.unwrap_or_default();
        (smoothed + 4 * self.variation).clamp(MIN_TIMEOUT, MAX_TIMEOUT)
    }
}

impl Receiving {
    fn take(&mut self, segment: &TcpView<'_>) {
        let length = segment.payload().len() as u64;
        if length == 0 {
            return;
        }
        self.received += 1;
        let ahead = segment.seq().wrapping_sub(sequence_number(self.expected)) as i32;
        self.reordered += u64::from(ahead != 0);
        let begin = self.expected.saturating_add_signed(ahead.into());
        let is_whole = segment.payload() == data(begin, segment.payload().len());
        self.corrupted += u64::from(!is_whole);
        let end = self.beyond.entry(begin).or_default();
        *end = (*end).max(begin + length);
        while let Some(piece) = self
            .beyond
            .first_entry()
            .filter(|piece| *piece.key() <= self.expected)
        {
            self.expected = self.expected.max(piece.remove());
        }
    }
}

impl Segment<'_> {
    fn send(&self, dst: Ipv4Addr, ip: &mut Ip, now: Duration, out: &mut Outbox) {
        let header = Tcp {
            src_port: self.src_port,
            dst_port: self.dst_port,
            seq: self.seq,
            ack: self.ack,
            flags: self.flags,
            window: u16::MAX,
            ..Tcp::default()
        };
        let src = ip.station.ipv4;
        let mut packet = Vec::new();
        if header
            .write(&mut packet, &PseudoHeader::V4 { src, dst }, self.payload)
            .is_ok()
        {
            ip.send(dst.into(), ip_proto::TCP, &packet, now, out);
        }
    }
}

/// Returns the contents of a stream at a position, up to a segment. The bytes depend on their position, with a prime period
/// that divides no segment length.
fn data(place: u64, length: usize) -> &'static [u8] {
    const PERIOD: usize = 251;
    const DATA: [u8; SEGMENT_BYTES as usize + PERIOD] = {
        let mut data = [0; SEGMENT_BYTES as usize + PERIOD];
        let mut at = 0;
        while at < data.len() {
            data[at] = (at % PERIOD) as u8;
            at += 1;
        }
        data
    };
    let begin = (place % PERIOD as u64) as usize;
    &DATA[begin..begin + length.min(SEGMENT_BYTES as usize)]
}

/// Returns the sequence number of a position in a stream: the SYN's is 2^32 - 1.
fn sequence_number(place: u64) -> u32 {
    place as u32
}
