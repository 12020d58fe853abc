//! The targets of controllers, as Open vSwitch writes them: `tcp:127.0.0.1:6653`.

use std::net::SocketAddr;
use urtica_socket::Address;

/// The host and port of a target.
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

/// The address of a target that names one by its number.
pub fn socket_of(target: &str) -> Option<SocketAddr> {
    let (_, host, port) = parse(target)?;
    Some(SocketAddr::new(host.parse().ok()?, port))
}
