//! Blocking connection to an address.

use crate::{Address, Stream, Tls, TlsError, look_up};
use rustix::fd::OwnedFd;
use socket2::{SockAddr, Socket, Type};
use std::io;
use std::time::Duration;

/// The reason why [`Stream::connect`] failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// No address of the peer accepts connections.
    #[error(transparent)]
    Socket(#[from] io::Error),
    /// The TLS handshake failed.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

impl Stream {
    /// Connects to an address, with TLS if the address is `ssl:` and `tls` is given. The stream is non-blocking, but this call
    /// blocks for at most `timeout` for each socket address, and for at most `timeout` for the handshake.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub fn connect(
        address: &Address,
        tls: Option<&Tls>,
        timeout: Duration,
    ) -> Result<Self, ConnectError> {
        let socket = connect(address, timeout)?;
        socket.set_nonblocking(true)?;
        let socket = OwnedFd::from(socket);
        match tls.filter(|_| address.is_tls()) {
            None => Ok(socket.into()),
            Some(tls) => Ok(Self::connect_tls(socket, tls, timeout)?),
        }
    }
}

/// Connects to the first socket address of `address` that accepts, trying each for at most `timeout`. The socket blocks.
///
/// # Errors
/// The last socket address's error, or that of [`look_up`].
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Listener;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn connects_to_a_listener_and_does_not_block() {
        let listener = Listener::bind(&"ptcp:0:127.0.0.1".parse().unwrap()).unwrap();
        let Address::PassiveTcp { port, .. } = listener.address() else {
            panic!("{}", listener.address());
        };
        let address = format!("tcp:127.0.0.1:{port}").parse().unwrap();
        let mut stream = Stream::connect(&address, None, LONG).unwrap();
        let error = stream.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn reports_that_no_process_listens() {
        let folder = tempfile::tempdir().unwrap();
        let address = format!("unix:{}", folder.path().join("none.sock").display());
        let error = connect(&address.parse().unwrap(), LONG).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(connect(&"ptcp:6653".parse().unwrap(), LONG).is_err());
    }
}
