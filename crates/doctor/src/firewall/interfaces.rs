//! The machine's interfaces and addresses, and the ways in which switches reach one of its sockets.

use crate::program::{NoAnswer, ask};
use serde::Deserialize;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A network interface.
#[derive(Debug, Deserialize)]
pub struct Interface {
    #[serde(rename = "ifname")]
    pub name: String,
    #[serde(rename = "addr_info", default)]
    pub addresses: Vec<InterfaceAddress>,
}

/// An address of an interface.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct InterfaceAddress {
    pub local: IpAddr,
    #[serde(rename = "prefixlen")]
    pub prefix: u8,
}

/// The address used on a machine without an address that switches could reach, from a documentation network (RFC 5737).
const EXAMPLE: InterfaceAddress = InterfaceAddress {
    local: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
    prefix: 24,
};

/// A way into the machine.
#[derive(Debug, PartialEq, Eq)]
pub enum Entrance {
    /// From the machine itself.
    Local(IpAddr),
    /// To an address of an interface, from another address in its network.
    From {
        interface: String,
        address: IpAddr,
        peer: IpAddr,
    },
}

impl Entrance {
    /// Returns the machine's address.
    pub fn address(&self) -> IpAddr {
        match self {
            Self::Local(address) | Self::From { address, .. } => *address,
        }
    }
}

impl fmt::Display for Entrance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(_) => f.write_str("from this machine"),
            Self::From {
                interface, peer, ..
            } => write!(f, "from {peer} through {interface}"),
        }
    }
}

/// Reads the interfaces. If no interface has an address for switches, the first one gets [`EXAMPLE`].
pub fn read() -> Result<Vec<Interface>, NoAnswer> {
    let printed = ask("ip", &["-json", "address", "show"])?;
    parse(&printed).ok_or_else(|| NoAnswer::Refused("the output of ip cannot be parsed".to_owned()))
}

fn parse(printed: &str) -> Option<Vec<Interface>> {
    let mut interfaces: Vec<Interface> = serde_json::from_str(printed).ok()?;
    interfaces.retain(|interface| interface.name != "lo");
    for interface in &mut interfaces {
        interface
            .addresses
            .retain(|address| address.peer().is_some());
    }
    if interfaces
        .iter()
        .all(|interface| interface.addresses.is_empty())
    {
        match interfaces.first_mut() {
            Some(first) => first.addresses.push(EXAMPLE),
            None => interfaces.push(Interface {
                name: "eth0".to_owned(),
                addresses: vec![EXAMPLE],
            }),
        }
    }
    Some(interfaces)
}

/// Returns the entrances to a listening socket: one for each address of the machine that it listens at.
pub fn entrances(interfaces: &[Interface], socket: SocketAddr) -> Vec<Entrance> {
    if socket.ip().is_loopback() {
        return vec![Entrance::Local(socket.ip())];
    }
    let mut entrances = Vec::new();
    for Interface { name, addresses } in interfaces {
        for address in addresses
            .iter()
            .filter(|address| is_at(socket, address.local))
        {
            entrances.extend(address.peer().map(|peer| Entrance::From {
                interface: name.clone(),
                address: address.local,
                peer,
            }));
        }
    }
    entrances
}

/// Returns `true` if a socket that listens at `socket` accepts connections to this address. A socket of all IPv6 addresses
/// also accepts IPv4 connections.
fn is_at(socket: SocketAddr, address: IpAddr) -> bool {
    match socket.ip() {
        IpAddr::V4(any) if any.is_unspecified() => address.is_ipv4(),
        IpAddr::V6(any) if any.is_unspecified() => true,
        own => own == address,
    }
}

impl InterfaceAddress {
    /// Returns another address of this address's network, for a switch. `None` for networks of one address, and for link-local
    /// networks, which every interface has.
    pub fn peer(&self) -> Option<IpAddr> {
        match self.local {
            IpAddr::V4(address) if self.prefix <= 30 => {
                let host_bits = u32::MAX >> self.prefix;
                let others = [1, 2, 3].map(|bits| address.to_bits() ^ bits);
                let is_host = |address: &u32| ![0, host_bits].contains(&(address & host_bits));
                let peer = others.into_iter().find(is_host)?;
                Some(Ipv4Addr::from_bits(peer).into())
            }
            IpAddr::V6(address) if self.prefix < 127 && !address.is_unicast_link_local() => {
                Some(Ipv6Addr::from_bits(address.to_bits() ^ 2).into())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = r#"[
        {"ifname":"lo","addr_info":[{"family":"inet","local":"127.0.0.1","prefixlen":8}]},
        {"ifname":"eth0","addr_info":[
            {"family":"inet","local":"10.0.0.5","prefixlen":24},
            {"family":"inet6","local":"2001:db8::5","prefixlen":64},
            {"family":"inet6","local":"fe80::5","prefixlen":64}]},
        {"ifname":"tun0","addr_info":[{"family":"inet","local":"10.9.9.9","prefixlen":32}]}]"#;

    fn entrances_of(printed: &str, socket: &str) -> Vec<String> {
        let interfaces = parse(printed).unwrap();
        let entrances = entrances(&interfaces, socket.parse().unwrap());
        let shown = |entrance: &Entrance| format!("{} {entrance}", entrance.address());
        entrances.iter().map(shown).collect()
    }

    #[test]
    fn each_address_of_a_socket_is_an_entrance() {
        let v4 = "10.0.0.5 from 10.0.0.4 through eth0";
        let v6 = "2001:db8::5 from 2001:db8::7 through eth0";
        assert_eq!(entrances_of(PRINTED, "0.0.0.0:6653"), [v4]);
        assert_eq!(entrances_of(PRINTED, "[::]:6653"), [v4, v6]);
        assert_eq!(entrances_of(PRINTED, "[2001:db8::5]:6653"), [v6]);
        assert!(entrances_of(PRINTED, "192.0.2.9:6653").is_empty());
        let local = "127.0.0.1 from this machine";
        assert_eq!(entrances_of(PRINTED, "127.0.0.1:6653"), [local]);
        let example = "192.0.2.1 from 192.0.2.3 through eth0";
        assert_eq!(entrances_of("[]", "0.0.0.0:6653"), [example]);
    }

    #[test]
    fn a_peer_is_another_host_of_the_network() {
        for (local, prefix, peer) in [
            ("10.0.0.1", 24, Some("10.0.0.3")),
            ("10.0.0.254", 24, Some("10.0.0.252")),
            ("10.0.0.1", 30, Some("10.0.0.2")),
            ("10.0.0.2", 30, Some("10.0.0.1")),
            ("10.0.0.1", 31, None),
            ("fe80::1", 64, None),
        ] {
            let address = InterfaceAddress {
                local: local.parse().unwrap(),
                prefix,
            };
            let expected = peer.map(|peer| peer.parse().unwrap());
            assert_eq!(address.peer(), expected, "{local}/{prefix}");
        }
    }
}
