//! From an address to the places that it stands for.

use crate::Address;
use socket2::SockAddr;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

/// All places that an address to connect to stands for, those of IPv4 first: a name like localhost has addresses of both
/// kinds, and controllers mostly listen at the IPv4 one.
///
/// May block for as long as the system takes to look a host's name up.
///
/// # Errors
/// Where the name cannot be looked up or stands for nothing, the path of a Unix socket is too long, or the address is one
/// to listen at.
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
            "it is a place to listen at; expected tcp:HOST[:PORT], ssl:HOST[:PORT] or unix:FILE",
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
    fn places_have_the_addresss_port_or_path() {
        let [place] = &looked_up("tcp:127.0.0.1:6654").unwrap()[..] else {
            panic!("expected one place");
        };
        assert_eq!(place.as_socket(), "127.0.0.1:6654".parse().ok());
        let [place] = &looked_up("unix:/run/of.sock").unwrap()[..] else {
            panic!("expected one place");
        };
        assert_eq!(place.as_pathname(), Some("/run/of.sock".as_ref()));
    }

    #[test]
    fn ipv4_comes_first() {
        let places = looked_up("tcp:localhost:1").unwrap();
        assert!(places[0].is_ipv4() || places.iter().all(SockAddr::is_ipv6));
    }

    #[test]
    fn what_cannot_be_connected_to_is_an_error() {
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
