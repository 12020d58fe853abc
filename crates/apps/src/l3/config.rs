//! The configuration file: subnets, and routes beyond them.

use super::kernel::L3Fact;
use std::fmt;
use std::net::Ipv4Addr;
use std::ops::Range;
use std::str::FromStr;
use toml::Spanned;
use urtica_wire::MacAddr;

/// Addresses with a common prefix: `10.0.1.0/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subnet {
    /// The first address.
    pub network: Ipv4Addr,
    /// The prefix length in bits.
    pub prefix_len: u8,
}

impl Subnet {
    /// Returns the subnet with this prefix length, at most 32, that contains an address.
    fn of(address: Ipv4Addr, prefix_len: u8) -> Self {
        let mask = u32::MAX
            .checked_shl(32 - u32::from(prefix_len))
            .unwrap_or(0);
        Self {
            network: Ipv4Addr::from_bits(address.to_bits() & mask),
            prefix_len,
        }
    }

    /// Returns `true` if the subnet contains an address.
    pub fn contains(&self, address: Ipv4Addr) -> bool {
        Self::of(address, self.prefix_len) == *self
    }

    /// Returns `true` for the subnet's first and last addresses, which are for all hosts (RFC 1812 section 4.2.3.1). Subnets
    /// of one or two addresses have no such addresses (RFC 3021).
    pub(super) fn is_broadcast(&self, address: Ipv4Addr) -> bool {
        let host_bits = u32::MAX.checked_shr(self.prefix_len.into()).unwrap_or(0);
        let host = address.to_bits() & host_bits;
        self.prefix_len < 31 && self.contains(address) && (host == 0 || host == host_bits)
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.contains(other.network) || other.contains(self.network)
    }
}

impl fmt::Display for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.prefix_len)
    }
}

/// An interface of the router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The interface's address: the gateway of the subnet's hosts.
    pub address: Ipv4Addr,
    /// The subnet.
    pub subnet: Subnet,
    /// The interface's MAC address, which must be unused.
    pub mac: MacAddr,
}

impl Interface {
    /// Returns the interface's fact for the kernel half.
    pub(super) fn fact(&self) -> L3Fact {
        L3Fact::Gateway {
            address: self.address,
            mac: self.mac,
        }
    }
}

/// The route of packets to a subnet without an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Route {
    to: Subnet,
    via: Ipv4Addr,
}

/// Interfaces and routes. Parsed from text by [`str::parse`]; `docs/apps/l3.md` has the format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct L3Config {
    interfaces: Vec<Interface>,
    /// Longest prefixes first.
    routes: Vec<Route>,
    /// Whether to answer ARP requests for addresses outside the requester's subnet.
    pub(super) proxy_arp: bool,
}

/// A next hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NextHop<'a> {
    /// The interface that sends the packet.
    pub interface: &'a Interface,
    /// The receiver's address: the destination, or another router.
    pub address: Ipv4Addr,
}

impl L3Config {
    /// Returns the interfaces, in the order of the file.
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    pub(super) fn by_mac(&self, mac: MacAddr) -> Option<&Interface> {
        self.interfaces
            .iter()
            .find(|interface| interface.mac == mac)
    }

    pub(super) fn by_address(&self, address: Ipv4Addr) -> Option<&Interface> {
        self.interfaces
            .iter()
            .find(|interface| interface.address == address)
    }

    /// Returns the interface whose subnet contains an address.
    pub(super) fn by_subnet(&self, address: Ipv4Addr) -> Option<&Interface> {
        self.interfaces
            .iter()
            .find(|interface| interface.subnet.contains(address))
    }

    /// Returns the next hop of packets to an address: the address itself if an interface has its subnet, or else that of the
    /// route with the longest matching prefix.
    ///
    /// Cost: a scan of all interfaces and routes.
    pub(super) fn next_hop(&self, dst: Ipv4Addr) -> Option<NextHop<'_>> {
        let route = self.routes.iter().find(|route| route.to.contains(dst));
        let via = |address| {
            let interface = self.by_subnet(address)?;
            Some(NextHop { interface, address })
        };
        via(dst).or_else(|| via(route?.via))
    }
}

/// The error for an invalid configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {problem}")]
pub struct L3ConfigError {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    /// The problem, and the expected value.
    pub problem: String,
}

/// An error at a range of bytes of a text.
struct Wrong {
    place: Range<usize>,
    problem: String,
}

/// The file's structure in TOML.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    proxy_arp: bool,
    #[serde(default)]
    interface: Vec<InterfaceSection>,
    #[serde(default)]
    route: Vec<RouteSection>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct InterfaceSection {
    address: Spanned<String>,
    mac: Spanned<String>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct RouteSection {
    to: Spanned<String>,
    via: Spanned<String>,
}

impl FromStr for L3Config {
    type Err = L3ConfigError;

    fn from_str(text: &str) -> Result<Self, L3ConfigError> {
        let file = toml::from_str(text).map_err(|error: toml::de::Error| Wrong {
            place: error.span().unwrap_or_default(),
            problem: error.message().replace('\n', ", "),
        });
        file.and_then(Self::of_file)
            .map_err(|wrong| wrong.within(text))
    }
}

impl L3Config {
    fn of_file(file: File) -> Result<Self, Wrong> {
        let mut config = Self {
            interfaces: Vec::new(),
            routes: Vec::new(),
            proxy_arp: file.proxy_arp,
        };
        for section in &file.interface {
            config.add_interface(section)?;
        }
        for section in &file.route {
            config.add_route(section)?;
        }
        if config.interfaces.is_empty() {
            let problem = "there is no interface; expected at least one [[interface]]".to_owned();
            return Err(Wrong {
                place: 0..0,
                problem,
            });
        }
        // No two routes have the same subnet.
        config
            .routes
            .sort_by_key(|route| std::cmp::Reverse(route.to.prefix_len));
        Ok(config)
    }

    fn add_interface(&mut self, section: &InterfaceSection) -> Result<(), Wrong> {
        let (address, prefix_len) = parse_with_prefix(&section.address, "10.0.1.1/24")?;
        let subnet = Subnet::of(address, prefix_len);
        let is_host =
            prefix_len >= 31 || address != subnet.network && Some(address) != last_address(&subnet);
        if prefix_len > 30 || !is_host {
            let expected = "an address that a host of a subnet of at most 30 bits can have";
            return Err(wrong(&section.address, "is no gateway's address", expected));
        }
        if let Some(other) = self
            .interfaces
            .iter()
            .find(|other| other.subnet.overlaps(&subnet))
        {
            let problem = format!("overlaps with {}", other.subnet);
            return Err(wrong(&section.address, &problem, "subnets that do not"));
        }
        let mac: MacAddr = section.mac.get_ref().parse().map_err(|_| {
            wrong(
                &section.mac,
                "is not a MAC address",
                "one such as 02:00:00:00:01:01",
            )
        })?;
        if mac.is_multicast() || mac == MacAddr::ZERO {
            return Err(wrong(
                &section.mac,
                "is not an interface's address",
                "one whose first octet is even",
            ));
        }
        if self.by_mac(mac).is_some() {
            return Err(wrong(
                &section.mac,
                "is used by another interface",
                "one for each",
            ));
        }
        self.interfaces.push(Interface {
            address,
            subnet,
            mac,
        });
        Ok(())
    }

    fn add_route(&mut self, section: &RouteSection) -> Result<(), Wrong> {
        let (address, prefix_len) = parse_with_prefix(&section.to, "192.168.0.0/16")?;
        let to = Subnet::of(address, prefix_len);
        if to.network != address {
            let expected = format!("{to}");
            return Err(wrong(
                &section.to,
                "has bits beyond its prefix length",
                &expected,
            ));
        }
        if self.routes.iter().any(|route| route.to == to) {
            return Err(wrong(
                &section.to,
                "has a route already",
                "one for each subnet",
            ));
        }
        let via: Ipv4Addr = section.via.get_ref().parse().map_err(|_| {
            wrong(
                &section.via,
                "is not an IPv4 address",
                "one such as 10.0.1.254",
            )
        })?;
        if self.by_subnet(via).is_none() || self.by_address(via).is_some() {
            let expected = "the address of another router in an interface's subnet";
            return Err(wrong(&section.via, "is no next hop", expected));
        }
        self.routes.push(Route { to, via });
        Ok(())
    }
}

fn parse_with_prefix(text: &Spanned<String>, example: &str) -> Result<(Ipv4Addr, u8), Wrong> {
    let parsed = text
        .get_ref()
        .split_once('/')
        .and_then(|(address, prefix_len)| {
            let prefix_len = prefix_len.parse().ok().filter(|&len: &u8| len <= 32)?;
            Some((address.parse().ok()?, prefix_len))
        });
    let expected = format!("an IPv4 address and a number of bits up to 32, as in {example}");
    parsed.ok_or_else(|| wrong(text, "is not a subnet", &expected))
}

/// Returns the broadcast address.
fn last_address(subnet: &Subnet) -> Option<Ipv4Addr> {
    let rest = u32::MAX.checked_shr(subnet.prefix_len.into())?;
    Some(Ipv4Addr::from_bits(subnet.network.to_bits() | rest))
}

fn wrong(value: &Spanned<String>, problem: &str, expected: &str) -> Wrong {
    Wrong {
        place: value.span(),
        problem: format!("'{}' {problem}; expected {expected}", value.get_ref()),
    }
}

impl Wrong {
    fn within(self, text: &str) -> L3ConfigError {
        let at = self.place.start.min(text.len());
        let at = (0..=at).rev().find(|at| text.is_char_boundary(*at));
        let before = &text[..at.unwrap_or(0)];
        let line_begins = before.rfind('\n').map_or(0, |end| end + 1);
        L3ConfigError {
            line: before.matches('\n').count() + 1,
            column: before[line_begins..].chars().count() + 1,
            problem: self.problem,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GOOD: &str = r#"
[[interface]]
address = "10.0.1.1/24"
mac = "02:00:00:00:01:01"

[[interface]]
address = "10.0.2.1/24"
mac = "02:00:00:00:02:01"

[[route]]
to = "192.168.0.0/16"
via = "10.0.1.254"

[[route]]
to = "192.168.7.0/24"
via = "10.0.2.254"
"#;

    fn next_hop(config: &L3Config, dst: [u8; 4]) -> Option<[u8; 4]> {
        config.next_hop(dst.into()).map(|hop| hop.address.octets())
    }

    #[test]
    fn longest_prefixes_win() {
        let config: L3Config = GOOD.parse().unwrap();
        assert_eq!(next_hop(&config, [10, 0, 1, 7]), Some([10, 0, 1, 7]));
        assert_eq!(next_hop(&config, [192, 168, 1, 1]), Some([10, 0, 1, 254]));
        assert_eq!(next_hop(&config, [192, 168, 7, 1]), Some([10, 0, 2, 254]));
        assert_eq!(next_hop(&config, [8, 8, 8, 8]), None);
        let all = format!("{GOOD}[[route]]\nto = \"0.0.0.0/0\"\nvia = \"10.0.1.253\"\n");
        let config: L3Config = all.parse().unwrap();
        assert_eq!(next_hop(&config, [8, 8, 8, 8]), Some([10, 0, 1, 253]));
        assert_eq!(next_hop(&config, [192, 168, 7, 1]), Some([10, 0, 2, 254]));
    }

    #[test]
    fn errors_name_position_and_expected_value() {
        for (from, to, expected) in [
            (
                "10.0.1.1/24",
                "10.0.1.1",
                "line 3, column 11: '10.0.1.1' is not a subnet; expected an IPv4 address and a number of bits up to 32, as in 10.0.1.1/24",
            ),
            (
                "10.0.1.1/24",
                "10.0.1.1/33",
                "line 3, column 11: '10.0.1.1/33' is not a subnet",
            ),
            (
                "10.0.1.1/24",
                "10.0.1.0/24",
                "is no gateway's address; expected an address that a host",
            ),
            ("10.0.1.1/24", "10.0.1.255/24", "is no gateway's address"),
            (
                "10.0.2.1/24",
                "10.0.0.1/16",
                "line 7, column 11: '10.0.0.1/16' overlaps with 10.0.1.0/24; expected subnets that do not",
            ),
            (
                "02:00:00:00:02:01",
                "02:00:00:00:01:01",
                "is used by another interface; expected one for each",
            ),
            (
                "02:00:00:00:02:01",
                "2",
                "line 8, column 7: '2' is not a MAC address; expected one such as 02:00:00:00:01:01",
            ),
            (
                "02:00:00:00:02:01",
                "01:00:00:00:02:01",
                "expected one whose first octet is even",
            ),
            (
                "192.168.0.0/16",
                "192.168.1.0/16",
                "has bits beyond its prefix length; expected 192.168.0.0/16",
            ),
            (
                "192.168.7.0/24",
                "192.168.0.0/16",
                "has a route already; expected one for each subnet",
            ),
            (
                "10.0.1.254",
                "10.0.3.254",
                "line 12, column 7: '10.0.3.254' is no next hop; expected the address of another router",
            ),
            ("10.0.1.254", "router", "is not an IPv4 address"),
            (
                "mac =",
                "mak =",
                "line 4, column 1: unknown field `mak`, expected `address` or `mac`",
            ),
            ("[[interface]]", "[[interface]", "line 2, column"),
        ] {
            let error = GOOD
                .replacen(from, to, 1)
                .parse::<L3Config>()
                .unwrap_err()
                .to_string();
            assert!(error.contains(expected), "{to}: {error}");
        }
        let error = "".parse::<L3Config>().unwrap_err().to_string();
        assert_eq!(
            error,
            "line 1, column 1: there is no interface; expected at least one [[interface]]"
        );
    }

    proptest! {
        #[test]
        fn parses_any_text_without_panics(text in "(\\[\\[(interface|route)\\]\\]\n|(address|mac|to|via) = \"[0-9./:]{0,20}\"\n){0,6}") {
            let _ = text.parse::<L3Config>();
        }

        #[test]
        fn subnets_contain_addresses_with_their_prefix(address: u32, other: u32, prefix_len in 0..=32_u8) {
            let subnet = Subnet::of(address.into(), prefix_len);
            let alike = prefix_len == 0 || (address ^ other).leading_zeros() >= prefix_len.into();
            prop_assert_eq!(subnet.contains(other.into()), alike);
        }
    }
}
