//! Measures the packets between hosts: latency, path, and loss.
//!
//! **How.** Hosts tag the frames that they send. The [`Meter`] watches: a tag that leaves a host is in flight until it
//! reaches its destination. A packet in flight for longer than [`LOST_AFTER`] counts as lost, wherever that
//! happened.
//!
//! **Not measured.** ARP and broadcasts: the controller may answer on behalf of a host.

use std::collections::BTreeMap;
use std::time::Duration;
use urtica_net::watch::{Event, Violation, Watcher};
use urtica_net::{End, HostId, SwitchId, Tag};
use urtica_wire::MacAddr;
use urtica_wire::packet::ether_type;

/// A packet that is in flight for longer is lost.
pub const LOST_AFTER: Duration = Duration::from_millis(300);

/// The time for which losses are remembered.
const REMEMBERED: Duration = Duration::from_secs(10);

/// Sender and receiver.
pub type Pair = (HostId, HostId);

/// A watcher that measures.
#[derive(Default)]
pub struct Meter {
    hosts: BTreeMap<MacAddr, HostId>,
    under_way: BTreeMap<Tag, Packet>,
    /// The switches on the path of the last packet of each pair.
    paths: BTreeMap<Pair, Vec<SwitchId>>,
    /// The latencies since the last query.
    times: Vec<Duration>,
}

struct Packet {
    pair: Pair,
    sent_at: Duration,
    path: Vec<SwitchId>,
}

/// The losses among the packets sent in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// The number of packets.
    pub count: usize,
    /// When the last of them was sent.
    pub last_sent_at: Option<Duration>,
}

impl Meter {
    /// Measures the packets between these hosts.
    pub fn new(hosts: impl IntoIterator<Item = (MacAddr, HostId)>) -> Self {
        Self {
            hosts: hosts.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Returns the latencies of the packets that arrived since the last call.
    pub fn take_times(&mut self) -> Vec<Duration> {
        std::mem::take(&mut self.times)
    }

    /// Returns the switches on the path of the last packet from one host to another, in order.
    pub fn path(&self, pair: Pair) -> Option<&[SwitchId]> {
        self.paths.get(&pair).map(Vec::as_slice)
    }

    /// Returns the pairs whose last packet passed between these switches, in either direction.
    pub fn pairs_over(&self, ends: [SwitchId; 2]) -> impl Iterator<Item = Pair> + '_ {
        let goes_over = move |path: &[SwitchId]| {
            path.windows(2)
                .any(|hop| hop == ends || hop == [ends[1], ends[0]])
        };
        let paths = self.paths.iter();
        paths.filter_map(move |(&pair, path)| goes_over(path).then_some(pair))
    }

    /// Returns the losses among the packets sent since then. Packets that may still arrive do not count.
    pub fn lost_since(&self, since: Duration, now: Duration) -> Losses {
        let latest = now.saturating_sub(LOST_AFTER);
        let lost = self.under_way.values().map(|packet| packet.sent_at);
        let lost = lost.filter(|sent_at| (since..=latest).contains(sent_at));
        lost.fold(Losses::default(), |losses, sent_at| Losses {
            count: losses.count + 1,
            last_sent_at: losses.last_sent_at.max(Some(sent_at)),
        })
    }

    /// Forgets packets that were lost long ago.
    pub fn forget(&mut self, now: Duration) {
        self.under_way
            .retain(|_, packet| packet.sent_at + REMEMBERED > now);
    }

    fn leave(&mut self, frame: &[u8], now: Duration) {
        if let Some(tag) = Tag::of(frame) {
            if let Some(pair) = self.pair(frame) {
                let packet = Packet {
                    pair,
                    sent_at: now,
                    path: Vec::new(),
                };
                self.under_way.insert(tag, packet);
            }
        }
    }

    fn pass(&mut self, switch: SwitchId, frame: &[u8]) {
        if let Some(tag) = Tag::of(frame) {
            if let Some(packet) = self.under_way.get_mut(&tag) {
                packet.path.push(switch);
            }
        }
    }

    fn arrive(&mut self, host: HostId, frame: &[u8], now: Duration) {
        let Some(tag) = Tag::of(frame) else { return };
        let is_for_it = |packet: &Packet| packet.pair.1 == host;
        if self.under_way.get(&tag).is_some_and(is_for_it) {
            if let Some(packet) = self.under_way.remove(&tag) {
                self.times.push(now.saturating_sub(packet.sent_at));
                self.paths.insert(packet.pair, packet.path);
            }
        }
    }

    /// Returns the source and destination hosts of an IPv4 packet, if they are ours.
    fn pair(&self, frame: &[u8]) -> Option<Pair> {
        let (dst, rest) = frame.split_first_chunk::<6>()?;
        let (src, rest) = rest.split_first_chunk::<6>()?;
        let is_ipv4 = rest.starts_with(&ether_type::IPV4.to_be_bytes());
        let host = |mac| self.hosts.get(&MacAddr::new(mac)).copied();
        is_ipv4.then_some((host(*src)?, host(*dst)?))
    }
}

impl Watcher for Meter {
    fn see(&mut self, now: Duration, event: &Event<'_>) -> Result<(), Violation> {
        match *event {
            Event::Sent(_, End::Host(_), frame) => self.leave(frame, now),
            Event::Sent(_, End::Switch(switch, _), frame) => self.pass(switch, frame),
            Event::Arrived(_, End::Host(host), frame) => self.arrive(host, frame, now),
            _ => {}
        }
        Ok(())
    }
}

/// Returns a quantile of some times; `None` if `times` is empty. Sorts them.
pub fn percentile(times: &mut [Duration], share: f64) -> Option<Duration> {
    times.sort_unstable();
    let last = times.len().checked_sub(1)?;
    times.get((last as f64 * share).round() as usize).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_few_and_of_no_times() {
        let mut times: Vec<_> = (1..=101).rev().map(Duration::from_millis).collect();
        assert_eq!(percentile(&mut times, 0.5), Some(Duration::from_millis(51)));
        assert_eq!(
            percentile(&mut times, 0.99),
            Some(Duration::from_millis(100))
        );
        assert_eq!(
            percentile(&mut times[..1], 0.99),
            Some(Duration::from_millis(1))
        );
        assert_eq!(percentile(&mut [], 0.5), None);
    }
}
