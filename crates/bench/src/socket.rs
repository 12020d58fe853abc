//! Sockets: connecting to a controller, listening like one, and the limit on file descriptors.

use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
    sockopt,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use urtica_socket::{Address, has_timed_out};

use crate::Error;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const FIRST_ATTEMPT: Duration = Duration::from_millis(50);
const BACKLOG: i32 = 4096;

/// An address to connect to, whose name was resolved.
#[derive(Clone, Debug)]
pub enum Target {
    /// A TCP endpoint.
    Tcp(SocketAddr),
    /// A Unix domain socket.
    Unix(SocketAddrUnix),
}

impl Target {
    /// Resolves an active address.
    pub fn resolve(address: &Address) -> Result<Self, Error> {
        let failed = |source| Error::Connect {
            address: address.to_string(),
            source,
        };
        match address {
            Address::Tcp { host, port } | Address::Ssl { host, port } => {
                let mut found = (host.as_str(), *port)
                    .to_socket_addrs()
                    .map_err(failed)?
                    .collect::<Vec<_>>();
                // A name such as localhost has addresses of both versions, and controllers mostly listen at the IPv4 one.
                found.sort_by_key(SocketAddr::is_ipv6);
                let unknown = || {
                    failed(io::Error::new(
                        io::ErrorKind::NotFound,
                        "the name has no address",
                    ))
                };
                found.first().copied().map(Self::Tcp).ok_or_else(unknown)
            }
            Address::Unix(file) => SocketAddrUnix::new(file)
                .map(Self::Unix)
                .map_err(|e| failed(e.into())),
            passive => Err(Error::invalid(format!(
                "'{passive}' is an address to listen at, not to connect to"
            ))),
        }
    }

    /// Returns a connected, non-blocking socket without Nagle's delay.
    ///
    /// If the controller's listen backlog is full, the system would only retry after a second, so each attempt is aborted sooner
    /// and repeated.
    pub fn connect(&self) -> io::Result<OwnedFd> {
        let deadline = Instant::now() + CONNECT_TIMEOUT;
        let mut patience = FIRST_ATTEMPT;
        loop {
            match self.attempt(patience) {
                Err(error) if has_timed_out(&error) && Instant::now() < deadline => {
                    if error.kind() == io::ErrorKind::WouldBlock {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    patience = (patience * 2).min(CONNECT_TIMEOUT);
                }
                result => return result,
            }
        }
    }

    fn attempt(&self, patience: Duration) -> io::Result<OwnedFd> {
        let family = match self {
            Self::Tcp(SocketAddr::V4(_)) => AddressFamily::INET,
            Self::Tcp(SocketAddr::V6(_)) => AddressFamily::INET6,
            Self::Unix(_) => AddressFamily::UNIX,
        };
        let socket = stream_socket(family)?;
        let connected = match self {
            Self::Tcp(address) => {
                sockopt::set_tcp_nodelay(&socket, true)?;
                connect(&socket, address)
            }
            Self::Unix(address) => connect(&socket, address),
        };
        match connected {
            Ok(()) => Ok(socket),
            Err(Errno::INPROGRESS) => {
                let timeout = Timespec::try_from(patience).map_err(io::Error::other)?;
                let mut fds = [PollFd::new(&socket, PollFlags::OUT)];
                if poll(&mut fds, Some(&timeout))? == 0 {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                sockopt::socket_error(&socket)?.map_err(io::Error::from)?;
                Ok(socket)
            }
            Err(error) => Err(error.into()),
        }
    }
}

fn stream_socket(family: AddressFamily) -> io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    Ok(socket_with(family, SocketType::STREAM, flags, None)?)
}

/// Returns a non-blocking socket that listens at a passive address.
pub fn listen_at(address: &Address) -> Result<OwnedFd, Error> {
    let failed = || format!("listen at {address}");
    let listening = match address {
        Address::PassiveTcp { .. } => listen_tcp(address.listen_addr()),
        Address::PassiveUnix(file) => listen_unix(file),
        other => {
            return Err(Error::invalid(format!(
                "'{other}' is not an address to listen at without TLS; expected ptcp:[PORT][:HOST] or punix:FILE"
            )));
        }
    };
    listening.map_err(Error::system(failed()))
}

fn listen_tcp(address: Option<SocketAddr>) -> io::Result<OwnedFd> {
    let address = address.ok_or(io::ErrorKind::InvalidInput)?;
    let socket = stream_socket(if address.is_ipv6() {
        AddressFamily::INET6
    } else {
        AddressFamily::INET
    })?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &address)?;
    listen(&socket, BACKLOG)?;
    Ok(socket)
}

/// Listens at a Unix socket, and replaces a stale socket file.
fn listen_unix(file: &std::path::Path) -> io::Result<OwnedFd> {
    let socket = stream_socket(AddressFamily::UNIX)?;
    let address = SocketAddrUnix::new(file)?;
    match bind(&socket, &address) {
        Err(Errno::ADDRINUSE) if UnixStream::connect(file).is_err() => {
            std::fs::remove_file(file)?;
            bind(&socket, &address)?;
        }
        bound => bound?,
    }
    listen(&socket, BACKLOG)?;
    Ok(socket)
}

/// Returns the port of a listening TCP socket; `None` for other sockets.
pub fn local_port(socket: impl AsFd) -> Option<u16> {
    let address = rustix::net::getsockname(socket).ok()?;
    SocketAddr::try_from(address)
        .ok()
        .map(|address| address.port())
}

/// Returns `true` if a server accepts connections at this TCP address.
pub fn is_listening(address: SocketAddr) -> bool {
    TcpStream::connect_timeout(&address, Duration::from_millis(200)).is_ok()
}

/// Raises the limit on open files for `sockets` sockets. The error contains the command that the user can run.
pub fn allow_open_files(sockets: u32) -> Result<(), Error> {
    let wanted = u64::from(sockets) + 64;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= wanted) {
        return Ok(());
    }
    // Only a privileged process may exceed the hard limit.
    let maximum = limit.maximum.map(|maximum| maximum.max(wanted));
    if setrlimit(
        Resource::Nofile,
        Rlimit {
            current: Some(wanted),
            maximum,
        },
    )
    .is_ok()
    {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "{sockets} connections need {wanted} open files and the limit is {}; raise it first with: ulimit -n {wanted}",
        limit.maximum.unwrap_or(0)
    )))
}
