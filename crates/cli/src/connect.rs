//! Connects to an address, waiting for it.

use socket2::{SockAddr, Socket, Type};
use std::io;
use std::time::Duration;
use urtica_socket::{Address, look_up};

/// Tries the places that the address stands for, one after the other, each for `timeout`. The socket blocks.
pub fn connect(address: &Address, timeout: Duration) -> io::Result<Socket> {
    let mut last = io::ErrorKind::NotFound.into();
    for place in look_up(address)? {
        match connect_to(&place, timeout) {
            Ok(socket) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn connect_to(place: &SockAddr, timeout: Duration) -> io::Result<Socket> {
    let socket = Socket::new(place.domain(), Type::STREAM, None)?;
    if !place.is_unix() {
        socket.set_tcp_nodelay(true)?;
    }
    socket.connect_timeout(place, timeout)?;
    Ok(socket)
}
