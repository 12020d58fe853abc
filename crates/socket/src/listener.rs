//! Listening sockets: `ptcp:`, `pssl:` and `punix:`.

use crate::Address;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// The length of the queue of connections that wait to be accepted. cbench connects all its switches before it sends its first
/// message; a connection that a short queue cannot hold is delayed by a second.
const BACKLOG: i32 = 4096;

/// An error of listening at an address.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// The address is for connecting, not for listening.
    #[error("cannot listen at {0}, which is an address to connect to; to listen there use {there}", there = to_listen(.0))]
    NotPassive(Address),
    /// Another program is listening at the address.
    #[error(
        "cannot listen at {0}: the address is in use; is another program listening there? (see `ss -ltxnp`)"
    )]
    InUse(Address),
    /// The socket's path is a file of another kind.
    #[error(
        "cannot listen at {0}: a file of that name exists and is not a socket; remove it or use another name"
    )]
    NotASocket(Address),
    /// Another system error.
    #[error("cannot listen at {address}: {error}")]
    Io {
        /// The address.
        address: Address,
        /// The system's error.
        error: io::Error,
    },
}

/// Returns the listening address that was probably meant by an address for connecting. In `tcp:6653`, the port is in the place
/// of the host.
fn to_listen(address: &Address) -> String {
    match address {
        Address::Tcp { host, .. } if host.parse::<u16>().is_ok() => format!("ptcp:{host}"),
        Address::Tcp { host, port } if host.contains(':') => format!("ptcp:{port}:[{host}]"),
        Address::Tcp { host, port } => format!("ptcp:{port}:{host}"),
        Address::Unix(file) => format!("punix:{}", file.display()),
        Address::Ssl { host, .. } if host.parse::<u16>().is_ok() => format!("pssl:{host}"),
        Address::Ssl { host, port } if host.contains(':') => format!("pssl:{port}:[{host}]"),
        Address::Ssl { host, port } => format!("pssl:{port}:{host}"),
        _ => "ptcp:[PORT][:HOST], pssl:[PORT][:HOST] or punix:FILE".to_owned(),
    }
}

/// A listening socket. Dropping it removes the file of a Unix socket.
pub struct Listener {
    socket: Socket,
    address: Address,
    /// The file to remove when dropped.
    file: Option<PathBuf>,
}

impl Listener {
    /// Listens at a passive address. Pass the connections accepted at `pssl:` to [`Handshakes`](crate::Handshakes). A socket
    /// file without a listener, which a killed program leaves, is replaced.
    ///
    /// # Errors
    /// [`ListenError`].
    pub fn bind(address: &Address) -> Result<Self, ListenError> {
        let bound = match address {
            Address::PassiveTcp { .. } | Address::PassiveSsl { .. } => bind_tcp(address),
            Address::PassiveUnix(path) => bind_unix(path),
            _ => return Err(ListenError::NotPassive(address.clone())),
        };
        bound.map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => ListenError::InUse(address.clone()),
            io::ErrorKind::AlreadyExists => ListenError::NotASocket(address.clone()),
            _ => ListenError::Io {
                address: address.clone(),
                error,
            },
        })
    }

    /// Wraps a socket of another program that is already listening at this passive address.
    ///
    /// # Errors
    /// `InvalidInput` if the socket is not listening, and errors of the system.
    pub fn from_socket(address: &Address, socket: OwnedFd) -> io::Result<Self> {
        let socket = Socket::from(socket);
        if !socket.is_listener()? {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok(match address {
            Address::PassiveUnix(path) => Self {
                socket,
                address: address.clone(),
                file: Some(path.clone()),
            },
            _ => listening_at(address, socket)?,
        })
    }

    /// Closes this process's descriptor, but keeps the file of a Unix socket, because other processes still listen on it.
    pub fn leave(mut self) {
        self.file = None;
    }

    /// Returns the address, in which the port that the system chose replaces 0.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Accepts the next connection. Returns it, non-blocking and without Nagle's delay, and a name for its peer.
    ///
    /// # Errors
    /// The errors of `accept(2)`; [`io::ErrorKind::WouldBlock`] if no connection waits.
    pub fn accept(&self) -> io::Result<(OwnedFd, String)> {
        let (socket, peer) = self.socket.accept()?;
        socket.set_nonblocking(true)?;
        let name = match peer.as_socket() {
            Some(peer) => {
                socket.set_tcp_nodelay(true)?;
                let method = if self.address.is_tls() { "ssl" } else { "tcp" };
                format!("{method}:{peer}")
            }
            None => self.address.to_string(),
        };
        Ok((socket.into(), name))
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            // The file may have been removed already.
            let _ = std::fs::remove_file(file);
        }
    }
}

fn bind_tcp(address: &Address) -> io::Result<Listener> {
    let local = address.listen_addr().ok_or(io::ErrorKind::InvalidInput)?;
    let socket = Socket::new(
        Domain::for_address(local),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    socket.set_reuse_address(true)?;
    listen(&socket, &local.into())?;
    listening_at(address, socket)
}

/// Wraps a TCP listener and reads the port that the system chose.
fn listening_at(address: &Address, socket: Socket) -> io::Result<Listener> {
    let port = socket
        .local_addr()?
        .as_socket()
        .map_or(0, |bound: SocketAddr| bound.port());
    let mut address = address.clone();
    if let Address::PassiveTcp { port: bound, .. } | Address::PassiveSsl { port: bound, .. } =
        &mut address
    {
        *bound = port;
    }
    Ok(Listener {
        socket,
        address,
        file: None,
    })
}

fn bind_unix(path: &Path) -> io::Result<Listener> {
    let address = SockAddr::unix(path)?;
    match std::fs::symlink_metadata(path) {
        Ok(file) if !file.file_type().is_socket() => {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        Ok(_) if is_stale(&address)? => std::fs::remove_file(path)?,
        _ => {}
    }
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    listen(&socket, &address)?;
    Ok(Listener {
        socket,
        address: Address::PassiveUnix(path.to_owned()),
        file: Some(path.to_owned()),
    })
}

/// Returns `true` if no process is listening at the socket. A listener with a full queue counts as listening.
fn is_stale(address: &SockAddr) -> io::Result<bool> {
    let probe = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    probe.set_nonblocking(true)?;
    let refused = io::ErrorKind::ConnectionRefused;
    Ok(probe
        .connect(address)
        .is_err_and(|error| error.kind() == refused))
}

fn listen(socket: &Socket, address: &SockAddr) -> io::Result<()> {
    socket.bind(address)?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;
    use std::os::unix::net::UnixStream;

    fn accept(listener: &Listener) -> String {
        loop {
            match listener.accept() {
                Ok((_, name)) => return name,
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
        }
    }

    #[test]
    fn accepts_tcp_at_the_chosen_port() {
        let listener = Listener::bind(&"ptcp:0:127.0.0.1".parse().unwrap()).unwrap();
        let place = listener.address().listen_addr().unwrap();
        assert_ne!(place.port(), 0);
        let stream = TcpStream::connect(place).unwrap();
        let peer = stream.local_addr().unwrap();
        assert_eq!(accept(&listener), format!("tcp:{peer}"));
    }

    #[test]
    fn replaces_stale_sockets_but_no_other_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("of.sock");
        let address = Address::PassiveUnix(path.clone());
        // A killed program closes the socket but leaves its file.
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let listener = Listener::bind(&address).unwrap();
        let _stream = UnixStream::connect(&path).unwrap();
        assert_eq!(accept(&listener), address.to_string());
        assert!(matches!(
            Listener::bind(&address),
            Err(ListenError::InUse(_))
        ));
        drop(listener);
        assert!(!path.exists());
        std::fs::write(&path, "no socket").unwrap();
        assert!(matches!(
            Listener::bind(&address),
            Err(ListenError::NotASocket(_))
        ));
        assert!(path.exists());
    }
}
