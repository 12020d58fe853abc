//! Listening sockets: `ptcp:`, `pssl:` and `punix:`.

use crate::Address;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// Connections that may wait to be accepted. cbench connects all its switches before it says a word; a short queue
/// costs those that do not fit a second.
const BACKLOG: i32 = 4096;

/// Why we cannot listen at an address.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The address is one to connect to.
    #[error("cannot listen at {0}, which is an address to connect to; to listen there say {there}", there = to_listen(.0))]
    NotPassive(Address),
    /// Somebody else listens there.
    #[error(
        "cannot listen at {0}: the address is in use; is another program listening there? (`ss -ltxnp` tells)"
    )]
    InUse(Address),
    /// Something else has the name of the socket.
    #[error(
        "cannot listen at {0}: there is a file of that name, and it is not a socket; expected none"
    )]
    NotASocket(Address),
    /// The system refused otherwise.
    #[error("cannot listen at {address}: {error}")]
    Io {
        /// Where.
        address: Address,
        /// Why not.
        error: io::Error,
    },
}

/// The address to listen at that was probably meant by one to connect to. In `tcp:6653`, the port stands where a host is expected.
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

/// A listening socket. The file of a Unix socket goes when it is dropped.
pub struct Listener {
    socket: Socket,
    address: Address,
    /// The file to remove at the end.
    file: Option<PathBuf>,
}

impl Listener {
    /// Listens at a passive address. At `pssl:` what it accepts is to be handed to [`Handshakes`](crate::Handshakes). A socket file that nobody listens at any more is left over from a program that was
    /// killed, and replaced.
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

    /// A socket that listens already, as another program made it for this passive address.
    ///
    /// # Errors
    /// Where it does not listen.
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

    /// Stops listening, where others have the same socket and go on: the file of a Unix socket stays.
    pub fn leave(mut self) {
        self.file = None;
    }

    /// Where it listens; with the port that the system chose where 0 was asked for.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The next connection, non-blocking and without Nagle's delay, and a name for its peer.
    ///
    /// # Errors
    /// Those of `accept(2)`; [`io::ErrorKind::WouldBlock`] where nobody waits.
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
            // Somebody may have removed it already.
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

/// A listener at this address of TCP, with the port that the system chose.
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

/// Whether nobody listens at the socket. A listener that is slow to accept is one all the same.
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
    fn tcp_is_accepted_at_the_port_that_was_chosen() {
        let listener = Listener::bind(&"ptcp:0:127.0.0.1".parse().unwrap()).unwrap();
        let place = listener.address().listen_addr().unwrap();
        assert_ne!(place.port(), 0);
        let stream = TcpStream::connect(place).unwrap();
        let peer = stream.local_addr().unwrap();
        assert_eq!(accept(&listener), format!("tcp:{peer}"));
    }

    #[test]
    fn a_left_over_socket_is_replaced_and_other_files_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("of.sock");
        let address = Address::PassiveUnix(path.clone());
        // Killed: the socket is gone, its file is not.
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
