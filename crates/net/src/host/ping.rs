//! Echo requests and replies, over IPv4 (RFC 792) and IPv6 (RFC 4443 section 4).

use super::ip::Ip;
use super::outbox::Outbox;
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;
use urtica_wire::packet::checksum::PseudoHeader;
use urtica_wire::packet::{Icmpv4, Icmpv4View, Icmpv6, Icmpv6View, icmpv4, icmpv6, ip_proto};

/// The time to wait for a reply.
pub(crate) const ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// The payload of a request, which has the size of `ping`'s.
const PAYLOAD: [u8; 56] = [0x55; 56];

/// The results of a series of echo requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PingReport {
    /// Requests sent.
    pub sent: u32,
    /// Requests answered.
    pub received: u32,
    /// Duplicate replies.
    pub duplicates: u32,
    /// The shortest round-trip time.
    pub rtt_min: Duration,
    /// The longest round-trip time.
    pub rtt_max: Duration,
    /// The sum of the round-trip times.
    rtt_sum: Duration,
}

impl PingReport {
    /// Returns the number of lost requests.
    pub fn lost(&self) -> u32 {
        self.sent - self.received
    }

    /// Returns the mean round-trip time; 0 without replies.
    pub fn rtt_mean(&self) -> Duration {
        self.rtt_sum.checked_div(self.received).unwrap_or_default()
    }

    fn count(&mut self, rtt: Duration) {
        self.rtt_min = match self.received {
            0 => rtt,
            _ => self.rtt_min.min(rtt),
        };
        self.rtt_max = self.rtt_max.max(rtt);
        self.rtt_sum += rtt;
        self.received += 1;
    }
}

/// Formats the summary like `ping`.
impl fmt::Display for PingReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let loss = 100 * self.lost() / self.sent.max(1);
        write!(
            f,
            "{} sent, {} received, {loss}% lost",
            self.sent, self.received
        )?;
        if self.duplicates > 0 {
            write!(f, ", {} duplicates", self.duplicates)?;
        }
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        write!(
            f,
            ", rtt min/avg/max {:.3}/{:.3}/{:.3} ms",
            ms(self.rtt_min),
            ms(self.rtt_mean()),
            ms(self.rtt_max)
        )
    }
}

/// A host's pings, by identifier.
#[derive(Default)]
pub(crate) struct Pings {
    pings: BTreeMap<u16, Ping>,
    started: u16,
}

/// A series of requests to one host.
struct Ping {
    dst: IpAddr,
    left: u32,
    interval: Duration,
    next: Duration,
    /// The send times of unanswered requests, by sequence number.
    open: BTreeMap<u16, Duration>,
    report: PingReport,
}

impl Pings {
    /// Starts `count` requests to a host; returns the identifier.
    pub fn start(&mut self, dst: IpAddr, count: u32, interval: Duration, now: Duration) -> u16 {
        let identifier = self.started;
        self.started = self.started.wrapping_add(1);
        let ping = Ping {
            dst,
            left: count,
            interval,
            next: now,
            open: BTreeMap::new(),
            report: PingReport::default(),
        };
        self.pings.insert(identifier, ping);
        identifier
    }

    /// Returns the results so far; `None` if there is no such ping.
    pub fn report(&self, identifier: u16) -> Option<PingReport> {
        self.pings.get(&identifier).map(|ping| ping.report)
    }

    /// Returns `true` if a ping is finished.
    pub fn is_done(&self, identifier: u16, now: Duration) -> bool {
        self.pings
            .get(&identifier)
            .is_none_or(|ping| ping.is_done(now))
    }

    /// Removes a ping, and returns its results.
    pub fn finish(&mut self, identifier: u16) -> Option<PingReport> {
        self.pings.remove(&identifier).map(|ping| ping.report)
    }

    /// Handles an ICMP packet, and answers requests. Returns `true` if it was well-formed and expected.
    pub fn handle(
        &mut self,
        src: IpAddr,
        bytes: &[u8],
        ip: &mut Ip,
        now: Duration,
        out: &mut Outbox,
    ) -> bool {
        let echo = match src {
            IpAddr::V4(_) => echo_of_ipv4(bytes),
            IpAddr::V6(_) => echo_of_ipv6(bytes),
        };
        match echo {
            Some((Echo::Request, rest, payload)) => {
                send(src, Echo::Reply, rest, payload, ip, now, out);
                true
            }
            Some((Echo::Reply, rest, _)) => self.handle_reply(rest, now),
            None => false,
        }
    }

    /// Sends the due requests.
    pub fn handle_timeout(&mut self, ip: &mut Ip, now: Duration, out: &mut Outbox) {
        for (&identifier, ping) in &mut self.pings {
            if ping.left > 0 && ping.next <= now {
                ping.request(identifier, ip, now, out);
            }
        }
    }

    /// Returns the time of the next time-out.
    pub fn next_timeout(&self) -> Option<Duration> {
        let pings = self.pings.values().filter(|ping| ping.left > 0);
        pings.map(|ping| ping.next).min()
    }

    fn handle_reply(&mut self, rest: [u8; 4], now: Duration) -> bool {
        let [identifier, sequence] =
            [[rest[0], rest[1]], [rest[2], rest[3]]].map(u16::from_be_bytes);
        let Some(ping) = self.pings.get_mut(&identifier) else {
            return true;
        };
        match ping.open.remove(&sequence) {
            Some(sent) => ping.report.count(now.saturating_sub(sent)),
            None => ping.report.duplicates += 1,
        }
        true
    }
}

impl Ping {
    fn request(&mut self, identifier: u16, ip: &mut Ip, now: Duration, out: &mut Outbox) {
        let sequence = self.report.sent as u16;
        let [[a, b], [c, d]] = [identifier, sequence].map(u16::to_be_bytes);
        send(
            self.dst,
            Echo::Request,
            [a, b, c, d],
            &PAYLOAD,
            ip,
            now,
            out,
        );
        self.open.insert(sequence, now);
        self.report.sent += 1;
        self.left -= 1;
        self.next = now + self.interval;
    }

    fn is_done(&self, now: Duration) -> bool {
        let is_late = |&sent: &Duration| sent + ANSWER_WITHIN <= now;
        self.left == 0 && self.open.values().all(is_late)
    }
}

/// The kind of an ICMP packet of either version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Echo {
    Request,
    Reply,
}

/// Returns an ICMP packet's kind, identifier and sequence number, and payload.
fn echo_of_ipv4(bytes: &[u8]) -> Option<(Echo, [u8; 4], &[u8])> {
    let icmp = Icmpv4View::new(bytes).ok()?;
    let echo = match icmp.icmp_type() {
        icmpv4::ECHO_REQUEST => Echo::Request,
        icmpv4::ECHO_REPLY => Echo::Reply,
        _ => return None,
    };
    Some((echo, icmp.rest(), icmp.payload()))
}

/// Like `echo_of_ipv4`, for ICMPv6.
fn echo_of_ipv6(bytes: &[u8]) -> Option<(Echo, [u8; 4], &[u8])> {
    let icmp = Icmpv6View::new(bytes).ok()?;
    let echo = match icmp.icmp_type() {
        icmpv6::ECHO_REQUEST => Echo::Request,
        icmpv6::ECHO_REPLY => Echo::Reply,
        _ => return None,
    };
    let (rest, payload) = icmp.payload().split_first_chunk()?;
    Some((echo, *rest, payload))
}

fn send(
    dst: IpAddr,
    echo: Echo,
    rest: [u8; 4],
    payload: &[u8],
    ip: &mut Ip,
    now: Duration,
    out: &mut Outbox,
) {
    let mut packet = Vec::with_capacity(icmpv4::HEADER_LEN + payload.len());
    let proto = match dst {
        IpAddr::V4(_) => {
            let header = Icmpv4 {
                icmp_type: match echo {
                    Echo::Request => icmpv4::ECHO_REQUEST,
                    Echo::Reply => icmpv4::ECHO_REPLY,
                },
                icmp_code: 0,
                rest,
            };
            header.write(&mut packet, payload);
            ip_proto::ICMPV4
        }
        IpAddr::V6(dst) => {
            let header = Icmpv6 {
                icmp_type: match echo {
                    Echo::Request => icmpv6::ECHO_REQUEST,
                    Echo::Reply => icmpv6::ECHO_REPLY,
                },
                icmp_code: 0,
            };
            let src = ip.station.ipv6;
            let body = [&rest[..], payload].concat();
            header.write(&mut packet, &PseudoHeader::V6 { src, dst }, &body);
            ip_proto::ICMPV6
        }
    };
    ip.send(dst, proto, &packet, now, out);
}
