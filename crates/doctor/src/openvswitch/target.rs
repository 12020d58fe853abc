//! The targets of controllers in Open vSwitch's syntax: `tcp:127.0.0.1:6653`.

use std::net::SocketAddr;
use urtica_socket::Address;

/// Returns the host and port of a target.
pub fn parse(target: &str) -> Option<(Address, String, u16)> {
    let address: Address = target.parse().ok()?;
    match &address {
        Address::Tcp { host, port } | Address::Ssl { host, port } => {
            let (host, port) = (host.clone(), *port);
            Some((address, host, port))
        }
        _ => None,
    }
}

/// Returns the address of a target with a numeric host.
pub fn socket_of(target: &str) -> Option<SocketAddr> {
    let (_, host, port) = parse(target)?;
    Some(SocketAddr::new(host.parse().ok()?, port))
}
