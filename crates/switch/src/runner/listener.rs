//! Where controllers connect to the switch: `ptcp:` and `punix:`.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use socket2::{Domain, SockAddr, Socket, Type};
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use urtica_wire::Address;

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 64;

/// A listening socket.
pub(super) struct Listener {
    socket: Socket,
    /// Where it listens; with the port that the system chose where 0 was asked for.
    pub address: Address,
    /// The file to remove at the end.
    file: Option<PathBuf>,
}

impl Listener {
    /// Listens at a passive address.
    pub fn bind(address: &Address) -> io::Result<Self> {
        match address {
            Address::PassiveUnix(path) => bind_unix(path),
            _ => bind_tcp(address),
        }
    }

    /// The next connection, and a name for its peer.
    pub fn accept(&self) -> io::Result<(OwnedFd, String)> {
        let (socket, peer) = self.socket.accept()?;
        socket.set_nonblocking(true)?;
        let name = match peer.as_socket() {
            Some(peer) => {
                socket.set_tcp_nodelay(true)?;
                format!("tcp:{peer}")
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
    let socket = Socket::new(Domain::for_address(local), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    listen(&socket, &local.into())?;
    let bound = socket.local_addr()?.as_socket();
    Ok(Listener {
        address: Address::PassiveTcp {
            host: Some(local.ip()).filter(|host| !host.is_unspecified()),
            port: bound.map_or(local.port(), |bound| bound.port()),
        },
        socket,
        file: None,
    })
}

/// A socket file that nobody listens at any more is left over from a switch that was killed, and replaced.
fn bind_unix(path: &Path) -> io::Result<Listener> {
    let address = SockAddr::unix(path)?;
    if is_left_over(path, &address) {
        std::fs::remove_file(path)?;
    }
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    listen(&socket, &address)?;
    Ok(Listener {
        socket,
        address: Address::PassiveUnix(path.to_owned()),
        file: Some(path.to_owned()),
    })
}

fn is_left_over(path: &Path, address: &SockAddr) -> bool {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    let probe = || {
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        socket.connect(address)
    };
    is_socket && probe().is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
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
        let place = listener.address.listen_addr().unwrap();
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
        let in_use = Listener::bind(&address).err().unwrap();
        assert_eq!(in_use.kind(), io::ErrorKind::AddrInUse);
        drop(listener);
        assert!(!path.exists());
        std::fs::write(&path, "no socket").unwrap();
        assert!(Listener::bind(&address).is_err());
        assert!(path.exists());
    }
}
