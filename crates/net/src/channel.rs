//! The control channel between a switch and the controller, in memory.
//!
//! **What.** It behaves like TCP: bytes arrive in order, after a drawn delay, in drawn segments. At most a window of bytes is
//! in flight to a side that does not read. Closing a connection notifies the other side after the last bytes; breaking it loses
//! the bytes in flight. A stalled channel delivers nothing for a while, and then everything.
//!
//! **How.** Connections are numbered, and segments in flight carry their connection's number, so the next connection ignores
//! segments of an old one.

use crate::Draw;
use crate::kernel::{Way, to_ns};
use crate::pipe::Pipe;
use std::ops::RangeInclusive;
use std::time::Duration;

/// The window: the maximum number of bytes in flight in each direction.
const WINDOW_BYTES: usize = 256 << 10;

/// The maximum number of segments that bytes sent at once are cut into.
const MAX_PIECES: u64 = 4;

/// The shortest and longest back-off between connection attempts, as in a real switch.
const SHORTEST_BACKOFF: Duration = Duration::from_secs(1);
const LONGEST_BACKOFF: Duration = Duration::from_secs(8);

/// Settings of control channels.
#[derive(Clone, Debug)]
pub struct ChannelConfig {
    /// The latency; drawn for each segment.
    pub delay: RangeInclusive<Duration>,
    /// Whether bytes sent at once arrive in drawn segments.
    pub splits: bool,
    /// Upper limit of the drawn time of switches' first connection attempts.
    pub connect_within: Duration,
}

impl Default for ChannelConfig {
    /// A delay of about a millisecond, no segmentation, and first attempts within a tenth of a second.
    fn default() -> Self {
        Self {
            delay: Duration::from_micros(500)..=Duration::from_micros(1_500),
            splits: false,
            connect_within: Duration::from_millis(100),
        }
    }
}

/// Both sides of one switch's channel, and the bytes in flight.
pub(crate) struct Channel {
    pub switch_side: Option<Side<urtica_switch::ConnectionId>>,
    pub controller_side: Option<Side<urtica_controller::ConnectionId>>,
    pub to_switch: Direction,
    pub to_controller: Direction,
    connections: u64,
    /// The time until which nothing is delivered.
    pub stalled_until_ns: u64,
    /// The number of bytes per second that the switch reads; unlimited if `None`.
    pub read_rate: Option<u64>,
    /// The time at which the switch has processed the bytes it read last.
    reads_from_ns: u64,
    /// The controller's ends of connections that the switch has lost, unknown to the controller.
    pub half_open: Vec<urtica_controller::ConnectionId>,
    /// The time of the switch's next connection attempt; events for other times are stale.
    pub next_attempt_ns: u64,
    failures: u32,
    connected_at: Duration,
    /// The stream from which times of connection attempts are drawn.
    pub draw: Draw,
}

/// A side's end of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Side<Id> {
    pub number: u64,
    pub id: Id,
}

/// Data or an event in flight, of the connection with this number.
pub(crate) struct Segment {
    pub number: u64,
    pub content: Content,
}

pub(crate) enum Content {
    Open,
    Bytes(Vec<u8>),
    Close,
}

/// One direction of a channel.
pub(crate) struct Direction {
    pub under_way: Pipe<Segment>,
    bytes: usize,
    draw: Draw,
}

impl Channel {
    /// Creates a channel without a connection. Connection times, delays and segments are drawn from these streams.
    pub fn new(draw: Draw, to_switch: Draw, to_controller: Draw) -> Self {
        Self {
            switch_side: None,
            controller_side: None,
            to_switch: Direction::new(to_switch),
            to_controller: Direction::new(to_controller),
            connections: 0,
            stalled_until_ns: 0,
            read_rate: None,
            reads_from_ns: 0,
            half_open: Vec::new(),
            next_attempt_ns: 0,
            failures: 0,
            connected_at: Duration::ZERO,
            draw,
        }
    }

    /// Returns a direction.
    pub fn direction(&mut self, way: Way) -> &mut Direction {
        match way {
            Way::ToSwitch => &mut self.to_switch,
            Way::ToController => &mut self.to_controller,
        }
    }

    /// Notes that the switch has connected. Returns the number of the connection.
    pub fn open(&mut self, id: urtica_switch::ConnectionId, now: Duration) -> u64 {
        self.connections += 1;
        self.connected_at = now;
        let number = self.connections;
        self.switch_side = Some(Side { number, id });
        number
    }

    /// Notes that the switch has started to read `bytes` bytes.
    pub fn note_read(&mut self, bytes: usize, now_ns: u64) {
        if let Some(rate) = self.read_rate {
            let time_ns = (bytes as u64).saturating_mul(1_000_000_000) / rate.max(1);
            self.reads_from_ns = now_ns.saturating_add(time_ns);
        }
    }

    /// Returns `true` if the switch has processed the bytes that it has read.
    pub fn is_read(&self, now_ns: u64) -> bool {
        self.read_rate.is_none() || self.reads_from_ns <= now_ns
    }

    /// Returns the back-off before the switch's next attempt. A connection that lasted long does not count as a failure.
    pub fn next_delay(&mut self, now: Duration) -> Duration {
        if now >= self.connected_at + LONGEST_BACKOFF && self.connected_at > Duration::ZERO {
            self.failures = 0;
            self.connected_at = Duration::ZERO;
        }
        let doubled = SHORTEST_BACKOFF * (1 << self.failures.min(3));
        self.failures = self.failures.saturating_add(1);
        let fifth = doubled.min(LONGEST_BACKOFF) / 5;
        self.draw.duration(4 * fifth..=6 * fifth)
    }

    /// Loses everything in flight.
    pub fn clear(&mut self) {
        self.to_switch.clear();
        self.to_controller.clear();
    }

    /// Returns the number of bytes in flight in both directions.
    pub fn under_way_bytes(&self) -> usize {
        self.to_switch.bytes + self.to_controller.bytes
    }
}

impl Direction {
    fn new(draw: Draw) -> Self {
        Self {
            under_way: Pipe::new(),
            bytes: 0,
            draw,
        }
    }

    /// Sends as much from the front of `output` as fits into the window, in segments; returns when to schedule the
    /// direction.
    pub fn send(&mut self, number: u64, output: &mut Vec<u8>, delays: Delays<'_>) -> Option<u64> {
        let room = WINDOW_BYTES.saturating_sub(self.bytes).min(output.len());
        let mut due = None;
        let mut taken = output.drain(..room);
        let mut left = room;
        for pieces in (1..=self.pieces(delays.config)).rev() {
            let length = match pieces {
                1 => left,
                _ => self.draw.below(left as u64 + 1) as usize,
            };
            if length > 0 {
                let bytes: Vec<_> = taken.by_ref().take(length).collect();
                self.bytes += length;
                left -= length;
                due = due.or(self.put(number, Content::Bytes(bytes), delays));
            }
        }
        due
    }

    /// Sends a segment; returns when to schedule the direction.
    pub fn put(&mut self, number: u64, content: Content, delays: Delays<'_>) -> Option<u64> {
        let delay = self.draw.duration(delays.config.delay.clone());
        let at_ns = (delays.now_ns + to_ns(delay)).max(delays.stalled_until_ns);
        self.under_way.put(at_ns, Segment { number, content })
    }

    /// Returns the next segment that has arrived.
    pub fn take_due(&mut self, now_ns: u64) -> Option<Segment> {
        let segment = self.under_way.take_due(now_ns)?;
        if let Content::Bytes(bytes) = &segment.content {
            self.bytes -= bytes.len();
        }
        Some(segment)
    }

    fn pieces(&mut self, config: &ChannelConfig) -> u64 {
        match config.splits {
            true => self.draw.within(1..=MAX_PIECES),
            false => 1,
        }
    }

    fn clear(&mut self) {
        self.bytes = 0;
        self.under_way.clear().for_each(drop);
    }
}

/// Determines the arrival times of segments.
#[derive(Clone, Copy)]
pub(crate) struct Delays<'a> {
    pub config: &'a ChannelConfig,
    pub now_ns: u64,
    pub stalled_until_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn direction(seed: u64) -> Direction {
        Direction::new(Draw::new(seed))
    }

    fn delays(config: &ChannelConfig, now_ns: u64) -> Delays<'_> {
        Delays {
            config,
            now_ns,
            stalled_until_ns: 0,
        }
    }

    /// Returns the bytes of connection 1 that a direction has delivered by `now_ns`.
    fn taken(direction: &mut Direction, now_ns: u64) -> Vec<u8> {
        let segments = std::iter::from_fn(|| direction.take_due(now_ns));
        let bytes = segments.filter_map(|segment| match segment.content {
            Content::Bytes(bytes) => Some(bytes),
            Content::Open | Content::Close => None,
        });
        bytes.flatten().collect()
    }

    proptest! {
        /// The reference is the input.
        #[test]
        fn bytes_arrive_in_order_for_any_segments(
            seed: u64,
            splits: bool,
            sends in prop::collection::vec((0..3_000_000_u64, prop::collection::vec(any::<u8>(), 0..50)), 0..20),
        ) {
            let config = ChannelConfig { splits, ..ChannelConfig::default() };
            let (mut now_ns, mut direction) = (0, direction(seed));
            let (mut expected, mut found) = (Vec::new(), Vec::new());
            for (pause_ns, mut bytes) in sends {
                now_ns += pause_ns;
                found.extend(taken(&mut direction, now_ns));
                expected.extend_from_slice(&bytes);
                let _ = direction.send(1, &mut bytes, delays(&config, now_ns));
                prop_assert!(bytes.is_empty());
            }
            found.extend(taken(&mut direction, u64::MAX));
            prop_assert_eq!(found, expected);
            prop_assert_eq!(direction.bytes, 0);
        }
    }

    #[test]
    fn at_most_a_window_is_in_flight() {
        let mut direction = direction(1);
        let config = ChannelConfig::default();
        let mut output = vec![7; WINDOW_BYTES + 10];
        let _ = direction.send(1, &mut output, delays(&config, 0));
        assert_eq!(output.len(), 10);
        taken(&mut direction, u64::MAX);
        let _ = direction.send(1, &mut output, delays(&config, 0));
        assert!(output.is_empty());
    }

    #[test]
    fn stalled_links_deliver_nothing() {
        let (mut direction, until_ns) = (direction(1), 5_000_000_000);
        let config = ChannelConfig::default();
        let delays = Delays {
            stalled_until_ns: until_ns,
            ..delays(&config, 0)
        };
        let _ = direction.send(1, &mut vec![1, 2], delays);
        assert_eq!(taken(&mut direction, until_ns - 1), []);
        assert_eq!(taken(&mut direction, until_ns), [1, 2]);
    }

    #[test]
    fn back_off_grows_until_a_connection_lasts() {
        let mut channel = Channel::new(Draw::new(1), Draw::new(2), Draw::new(3));
        let second = Duration::from_secs(1);
        let mut delay = |now| channel.next_delay(now);
        for expected in [1, 2, 4, 8, 8] {
            let drawn = delay(Duration::ZERO);
            assert!(
                (expected * second).abs_diff(drawn) <= expected * second / 5,
                "{drawn:?}"
            );
        }
        channel.connected_at = second;
        let drawn = channel.next_delay(second + LONGEST_BACKOFF);
        assert!(drawn <= second * 6 / 5, "{drawn:?}");
    }
}
