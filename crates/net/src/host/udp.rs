//! Datagrams at a steady rate, as `iperf -u` sends them.

use super::flow::FlowReport;
use super::ip::Ip;
use super::outbox::Outbox;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;
use urtica_wire::packet::checksum::PseudoHeader;
use urtica_wire::packet::{Udp, UdpView, ip_proto, udp};

/// The destination port of datagrams.
pub(crate) const PORT: u16 = 5001;

/// The maximum number of datagrams sent at once after time has jumped.
const CATCH_UP: u32 = 64;

/// The datagrams to send.
#[derive(Clone, Copy, Debug)]
pub struct Datagrams {
    /// The number of datagrams.
    pub count: u64,
    /// The payload of each in bytes; at least 8 for its number.
    pub payload_bytes: usize,
    /// The interval.
    pub interval: Duration,
}

/// A host's sent and received datagrams.
#[derive(Default)]
pub(crate) struct Udps {
    sending: BTreeMap<u16, Sending>,
    /// Received flows, by sender and source port.
    heard: BTreeMap<(Ipv4Addr, u16), Heard>,
}

struct Sending {
    dst: Ipv4Addr,
    flow: Datagrams,
    sent: u64,
    next: Duration,
    payload: Vec<u8>,
}

#[derive(Default)]
struct Heard {
    received: u64,
    bytes: u64,
    /// The next expected number: one more than the highest so far.
    expected: u64,
    reordered: u64,
}

impl Udps {
    /// Starts to send from this port.
    pub fn start(&mut self, port: u16, dst: Ipv4Addr, flow: Datagrams, now: Duration) {
        let sending = Sending {
            dst,
            flow,
            sent: 0,
            next: now,
            payload: vec![0; flow.payload_bytes.max(size_of::<u64>())],
        };
        self.sending.insert(port, sending);
    }

    /// Stops sending.
    pub fn stop(&mut self) {
        self.sending.clear();
    }

    /// Adds the sender's results of the flow from a port.
    pub fn report_sent(&self, port: u16, report: &mut FlowReport) {
        if let Some(sending) = self.sending.get(&port) {
            report.sent = sending.sent;
            report.is_done = sending.sent == sending.flow.count;
        }
    }

    /// Adds the receiver's results of the flow from a host's port.
    pub fn report_heard(&self, src: (Ipv4Addr, u16), report: &mut FlowReport) {
        if let Some(heard) = self.heard.get(&src) {
            report.received = heard.received;
            report.received_bytes = heard.bytes;
            report.reordered = heard.reordered;
        }
    }

    /// Handles a datagram. Returns `true` if it belongs to a flow.
    #[inline]
    pub fn handle(&mut self, src: Ipv4Addr, bytes: &[u8]) -> bool {
        let Ok(datagram) = UdpView::new(bytes) else {
            return false;
        };
        let Some(number) = datagram.payload().first_chunk() else {
            return false;
        };
        if datagram.dst_port() != PORT {
            return false;
        }
        let heard = self.heard.entry((src, datagram.src_port())).or_default();
        heard.count(u64::from_be_bytes(*number), datagram.payload().len());
        true
    }

    /// Sends the due datagrams.
    pub fn handle_timeout(&mut self, ip: &mut Ip, now: Duration, out: &mut Outbox) {
        for (&port, sending) in &mut self.sending {
            for _ in 0..CATCH_UP {
                if sending.next_timeout().is_none_or(|next| next > now) {
                    break;
                }
                sending.send(port, ip, now, out);
            }
        }
    }

    /// Returns the time of the next time-out.
    pub fn next_timeout(&self) -> Option<Duration> {
        self.sending
            .values()
            .filter_map(Sending::next_timeout)
            .min()
    }
}

impl Sending {
    fn next_timeout(&self) -> Option<Duration> {
        (self.sent < self.flow.count).then_some(self.next)
    }

    fn send(&mut self, port: u16, ip: &mut Ip, now: Duration, out: &mut Outbox) {
        self.payload[..size_of::<u64>()].copy_from_slice(&self.sent.to_be_bytes());
        let header = Udp {
            src_port: port,
            dst_port: PORT,
        };
        let pseudo_header = PseudoHeader::V4 {
            src: ip.station.ipv4,
            dst: self.dst,
        };
        let mut packet = Vec::with_capacity(udp::HEADER_LEN + self.payload.len());
        if header
            .write(&mut packet, &pseudo_header, &self.payload)
            .is_ok()
        {
            ip.send(self.dst.into(), ip_proto::UDP, &packet, now, out);
        }
        self.sent += 1;
        self.next += self.flow.interval;
    }
}

impl Heard {
    fn count(&mut self, number: u64, bytes: usize) {
        self.received += 1;
        self.bytes += bytes as u64;
        self.reordered += u64::from(number < self.expected);
        self.expected = self.expected.max(number + 1);
    }
}
