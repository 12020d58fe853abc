//! Name resolution of addresses.

use crate::Address;
use socket2::SockAddr;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

/// Resolves an address for connecting to all its socket addresses, IPv4 first: a name like localhost has addresses of both
/// families, and most controllers listen at the IPv4 one.
///
/// Blocks while the system resolves a host name.
///
/// # Errors
/// If the name cannot be resolved or has no address, the path of a Unix socket is too long, or the address is for listening.
pub fn look_up(address: &Address) -> io::Result<Vec<SockAddr>> {
    match address {
        Address::Tcp { host, port } | Address::Ssl { host, port } => {
            let mut places: Vec<SocketAddr> = (host.as_str(), *port).to_socket_addrs()?.collect();
            places.sort_by_key(SocketAddr::is_ipv6);
            match places.is_empty() {
                true => Err(io::Error::other("the name has no address")),
                false => Ok(places.into_iter().map(SockAddr::from).collect()),
            }
        }
        Address::Unix(path) => Ok(vec![SockAddr::unix(path)?]),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is an address to listen at; expected tcp:HOST[:PORT], ssl:HOST[:PORT] or unix:FILE",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looked_up(address: &str) -> io::Result<Vec<SockAddr>> {
        look_up(&address.parse().unwrap())
    }

    #[test]
    fn resolves_to_the_given_port_or_path() {
        let [place] = &looked_up("tcp:127.0.0.1:6654").unwrap()[..] else {
            panic!("expected one socket address");
        };
        assert_eq!(place.as_socket(), "127.0.0.1:6654".parse().ok());
        let [place] = &looked_up("unix:/run/of.sock").unwrap()[..] else {
            panic!("expected one socket address");
        };
        assert_eq!(place.as_pathname(), Some("/run/of.sock".as_ref()));
    }

    #[test]
    fn ipv4_comes_first() {
        let places = looked_up("tcp:localhost:1").unwrap();
        assert!(places[0].is_ipv4() || places.iter().all(SockAddr::is_ipv6));
    }

    #[test]
    fn rejects_addresses_that_cannot_be_connected_to() {
        for address in [
            "ptcp:6653",
            "punix:/run/of.sock",
            "tcp:no.such.host.invalid:1",
        ] {
            assert!(looked_up(address).is_err(), "{address}");
        }
        let long = format!("unix:/{}", "x".repeat(200));
        assert!(looked_up(&long).is_err());
    }
}
