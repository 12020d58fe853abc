//! Rules for the flows that request bandwidth, and the identity of a flow.

use crate::firewall::{includes, why_unusable};
use std::net::IpAddr;
use std::str::FromStr;
use urtica_topology::PortId;
use urtica_wire::packet::{Headers, ip_proto};
use urtica_wire::text::ParseError;
use urtica_wire::{MacAddr, Match, OxmField, PacketIn, VLAN_PRESENT};

/// The bandwidth that a kind of flows gets. Parsed from text: `10M udp,tp_dst=5004`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Demand {
    /// The bits per second of each flow.
    pub bps: u64,
    /// The packets of such flows.
    pub match_: Match<'static>,
}

impl Demand {
    /// Returns `true` if a packet belongs to such a flow.
    pub(super) fn is_of(&self, packet: &PacketIn) -> bool {
        let fields: Vec<_> = Match::exact(packet).fields().collect();
        self.match_
            .fields()
            .all(|wanted| includes(&wanted, &fields))
    }
}

/// The error for an invalid demand or rate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseDemandError {
    /// The text is not two words.
    #[error("'{0}' is not a demand; expected a rate and a match, as in '10M udp,tp_dst=5004'")]
    Form(String),
    /// The first word is not a rate.
    #[error(
        "'{0}' is not a rate; expected at least 1 bit per second, as in 64000, 500K, 10M or 1G"
    )]
    Rate(String),
    /// The second word is not a match.
    #[error(transparent)]
    Match(#[from] ParseError),
    /// The match does not identify flows.
    #[error("the match {problem}; expected {expected}")]
    Unusable {
        /// The problem with the match.
        problem: String,
        /// The expected value.
        expected: &'static str,
    },
}

impl FromStr for Demand {
    type Err = ParseDemandError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (rate, match_) = text
            .trim()
            .split_once(' ')
            .ok_or_else(|| ParseDemandError::Form(text.to_owned()))?;
        let bps = parse_rate(rate)?;
        let match_: Match = match_.trim().parse()?;
        match why_unusable(&match_) {
            None => Ok(Self { bps, match_ }),
            Some((problem, expected)) => Err(ParseDemandError::Unusable { problem, expected }),
        }
    }
}

/// Parses bits per second: digits, and K, M, G or T for powers of 1000.
pub(super) fn parse_rate(text: &str) -> Result<u64, ParseDemandError> {
    let digits = text.trim_end_matches(['K', 'M', 'G', 'T']);
    let factor: Option<u64> = match &text[digits.len()..] {
        "" => Some(1),
        "K" => Some(1_000),
        "M" => Some(1_000_000),
        "G" => Some(1_000_000_000),
        "T" => Some(1_000_000_000_000),
        _ => None,
    };
    let number = digits.parse().ok().filter(|&number: &u64| number > 0);
    let bps = number
        .zip(factor)
        .and_then(|(number, factor)| number.checked_mul(factor));
    bps.ok_or_else(|| ParseDemandError::Rate(text.to_owned()))
}

/// The key of a flow: the fields that its entries match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FlowKey {
    /// The VLAN id of the outermost tag, which entries match: 0 in a priority tag.
    tag: Option<u16>,
    pub eth_src: MacAddr,
    pub eth_dst: MacAddr,
    eth_type: Option<u16>,
    /// IP addresses and protocol.
    ip: Option<(IpAddr, IpAddr, u8)>,
    /// Ports of TCP or UDP.
    ports: Option<(u16, u16)>,
}

impl FlowKey {
    pub fn of(packet: &PacketIn) -> Self {
        let headers = Headers::parse(packet.data);
        let addresses = headers.ip_src.zip(headers.ip_dst).zip(headers.ip_proto);
        let has_ports = matches!(headers.ip_proto, Some(ip_proto::TCP | ip_proto::UDP));
        Self {
            tag: headers.vlan.map(|tag| tag.vid),
            eth_src: packet.eth_src(),
            eth_dst: packet.eth_dst(),
            eth_type: headers.eth_type,
            ip: addresses.map(|((src, dst), proto)| (src, dst, proto)),
            ports: headers.src_port.zip(headers.dst_port).filter(|_| has_ports),
        }
    }

    /// Creates the key of all traffic from one host to another.
    pub fn between(vlan: Option<u16>, eth_src: MacAddr, eth_dst: MacAddr) -> Self {
        Self {
            tag: vlan,
            eth_src,
            eth_dst,
            eth_type: None,
            ip: None,
            ports: None,
        }
    }

    /// Returns the addresses of the sender and the receiver of a flow of IP packets.
    pub fn addresses(&self) -> Option<(IpAddr, IpAddr)> {
        self.ip.map(|(src, dst, _)| (src, dst))
    }

    /// Returns the VLAN of the hosts. Packets with a priority tag are in the VLAN of untagged ones.
    pub fn vlan(&self) -> Option<u16> {
        self.tag.filter(|&vid| vid != 0)
    }

    /// Returns `true` for all traffic from one of these hosts to the other, in any VLAN.
    pub fn is_between(&self, eth_src: MacAddr, eth_dst: MacAddr) -> bool {
        self.is_pair() && (self.eth_src, self.eth_dst) == (eth_src, eth_dst)
    }

    /// Returns `true` for all traffic from one host to another.
    pub fn is_pair(&self) -> bool {
        self.eth_type.is_none()
    }

    /// Returns the port that is charged for a flow that starts at `begin`; `None` for a program's reservations.
    pub fn charged(&self, begin: Option<PortId>) -> Option<PortId> {
        begin.filter(|_| !self.is_pair())
    }

    pub fn match_(&self) -> Match<'static> {
        let vlan_vid = self.tag.map_or(0, |vid| vid | VLAN_PRESENT);
        let mut match_ = Match::any()
            .eth_src(self.eth_src)
            .eth_dst(self.eth_dst)
            .with_exact(OxmField::VlanVid, vlan_vid);
        if let Some(eth_type) = self.eth_type {
            match_ = match_.eth_type(eth_type);
        }
        match_ = match self.ip {
            Some((IpAddr::V4(src), IpAddr::V4(dst), proto)) => {
                match_.ip_proto(proto).ipv4_src(src).ipv4_dst(dst)
            }
            Some((IpAddr::V6(src), IpAddr::V6(dst), proto)) => {
                match_.ip_proto(proto).ipv6_src(src).ipv6_dst(dst)
            }
            _ => return match_,
        };
        match (self.ip, self.ports) {
            (Some((.., ip_proto::TCP)), Some((src, dst))) => match_.tcp_src(src).tcp_dst(dst),
            (Some((.., ip_proto::UDP)), Some((src, dst))) => match_.udp_src(src).udp_dst(dst),
            _ => match_,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_rates_and_matches() {
        let demand: Demand = "10M udp,tp_dst=5004".parse().unwrap();
        assert_eq!(demand.bps, 10_000_000);
        assert_eq!(demand.match_, "udp,tp_dst=5004".parse().unwrap());
        for (text, bps) in [
            ("1", 1),
            ("64K", 64_000),
            ("1G", 1_000_000_000),
            ("2T", 2_000_000_000_000),
        ] {
            assert_eq!(parse_rate(text), Ok(bps));
        }
    }

    #[test]
    fn errors_name_the_expected_text() {
        let rate =
            "is not a rate; expected at least 1 bit per second, as in 64000, 500K, 10M or 1G";
        for (text, expected) in [
            ("10M ,", "the match names no field"),
            (
                "",
                "'' is not a demand; expected a rate and a match, as in '10M udp,tp_dst=5004'",
            ),
            ("10M", "'10M' is not a demand; expected a rate and a match"),
            ("0 udp", rate),
            ("-1 udp", rate),
            ("10KM udp", rate),
            ("99999999T udp", rate),
            ("M udp", rate),
            ("1M udq", "'udq' is not a match field or keyword"),
            ("1M tcp_dst=5004", "expected tcp or tcp6 with it"),
        ] {
            let error = text.parse::<Demand>().unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
