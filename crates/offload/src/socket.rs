//! Socket queries that libraries lack.

use crate::unread;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// The sockets that a switch's bytes pass through, and the cookies by which programs identify the source of input. Data between
/// Unix sockets has the sending socket's cookie.
pub(crate) struct Way<'a> {
    pub switch: BorrowedFd<'a>,
    pub switch_cookie: u64,
    pub relay: BorrowedFd<'a>,
    pub exit: BorrowedFd<'a>,
    pub relay_cookie: u64,
}

/// Returns the number of bytes written to a TCP socket since it was connected, including unsent ones.
pub fn written_bytes(socket: BorrowedFd) -> io::Result<u64> {
    loop {
        let acknowledged = tcp_info(socket)?.bytes_acked;
        let unacknowledged = unacknowledged_bytes(socket)?;
        // Neither number includes bytes that were acknowledged between the two calls.
        if tcp_info(socket)?.bytes_acked == acknowledged {
            return Ok(acknowledged + unacknowledged);
        }
    }
}

/// `struct tcp_info` of linux/tcp.h, up to the last field that is read; libc's is shorter.
#[repr(C)]
#[derive(Default)]
struct TcpInfo {
    before: [u64; 15],
    bytes_acked: u64,
    bytes_received: u64,
}

fn tcp_info(socket: BorrowedFd) -> io::Result<TcpInfo> {
    let mut info = TcpInfo::default();
    let mut length = size_of::<TcpInfo>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `info`, which has that length and consists of numbers.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            std::ptr::from_mut(&mut info).cast(),
            &mut length,
        )
    };
    match result {
        0 => Ok(info),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Returns the number of unacknowledged bytes. For sockets, the request is called SIOCOUTQ.
fn unacknowledged_bytes(socket: BorrowedFd) -> io::Result<u64> {
    query_count(socket, libc::TIOCOUTQ)
}

/// Returns the number of bytes received by a TCP socket since it was connected, including unread ones.
pub fn received_bytes(socket: BorrowedFd) -> io::Result<u64> {
    Ok(tcp_info(socket)?.bytes_received)
}

/// Returns the number of received bytes that were read, or taken by the kernel's programs.
pub fn read_bytes(socket: BorrowedFd) -> io::Result<u64> {
    loop {
        let received = received_bytes(socket)?;
        let unread = unread_bytes(socket)?;
        if received_bytes(socket)? == received {
            return Ok(received.saturating_sub(unread));
        }
    }
}

/// Returns whether there is unread input.
pub fn has_unread(socket: BorrowedFd) -> io::Result<bool> {
    Ok(unread_bytes(socket)? > 0)
}

/// Returns the number of unread bytes. Without NETLINK_SOCK_DIAG, FIONREAD and peeking are the best sources.
fn unread_bytes(socket: BorrowedFd) -> io::Result<u64> {
    if let Ok(count) = unread::unread_bytes(socket) {
        return Ok(count);
    }
    let counted = query_count(socket, libc::FIONREAD)?;
    if counted > 0 {
        return Ok(counted);
    }
    // No queue is longer. No bytes are copied there.
    let mut room = vec![0; RECEIVE_BYTES as usize];
    let flags = RecvFlags::PEEK | RecvFlags::TRUNC | RecvFlags::DONTWAIT;
    // Errors of the connection are found when it is read.
    Ok(recv(socket, &mut room[..], flags).map_or(0, |(_, count)| count as u64))
}

/// Sends a request that is answered with a number of bytes.
fn query_count(socket: BorrowedFd, request: libc::c_ulong) -> io::Result<u64> {
    let mut count: libc::c_int = 0;
    // SAFETY: the requests of the callers write one int.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), request, &mut count) };
    match result {
        0 => Ok(u64::try_from(count).unwrap_or(0)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Holds input of a TCP socket back in its queue, unseen by programs and waiting readers, and waits until no reader is in the
/// middle of it: the option is set between two segments.
pub fn hold_back_input(socket: BorrowedFd) -> io::Result<()> {
    // The system limits it to half of the queue.
    set_option(socket, libc::SO_RCVLOWAT, libc::c_int::MAX)
}

/// Ends holding back input, and notifies waiting readers of input that arrived while it was held back.
pub fn let_input_in(socket: BorrowedFd) -> io::Result<()> {
    set_option(socket, libc::SO_RCVLOWAT, 1)
}

/// Maximum size of the kernel's queues of input from a switch and output to it, in bytes of memory. Longer queues do not
/// increase the speed, and a switch that does not read would fill them.
const RECEIVE_BYTES: libc::c_int = 4 << 20;
const SEND_BYTES: libc::c_int = 2 << 20;

/// Bounds a switch's queues in the kernel, for any settings of the system.
pub fn bound_queues(socket: BorrowedFd) -> io::Result<()> {
    // The system doubles the requested size.
    set_option(socket, libc::SO_RCVBUFFORCE, RECEIVE_BYTES / 2)?;
    set_option(socket, libc::SO_SNDBUFFORCE, SEND_BYTES / 2)
}

fn set_option(socket: BorrowedFd, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
    // SAFETY: the kernel reads one int.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            option,
            std::ptr::from_ref(&value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Returns the peer's address, for the log.
pub fn peer(socket: BorrowedFd) -> String {
    let address = rustix::net::getpeername(socket).ok().flatten();
    let address = address.and_then(|any| std::net::SocketAddr::try_from(any).ok());
    address.map_or_else(|| "unknown".into(), |address| address.to_string())
}

/// Returns whether the peer is on this machine, so that the processor that sends a segment also receives it.
pub fn is_peer_local(socket: BorrowedFd) -> bool {
    let ip = |address: rustix::io::Result<rustix::net::SocketAddrAny>| {
        let address = std::net::SocketAddr::try_from(address.ok()?).ok()?;
        Some(address.ip().to_canonical())
    };
    let peer = rustix::net::getpeername(socket).and_then(|peer| peer.ok_or(Errno::NOTCONN));
    let peer = ip(peer);
    peer.is_some_and(|ip| ip.is_loopback()) || peer == ip(rustix::net::getsockname(socket))
}

/// Returns the kernel's unique number for a socket.
pub fn cookie(socket: BorrowedFd) -> io::Result<u64> {
    Ok(rustix::net::sockopt::socket_cookie(socket)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;

    /// All written bytes are counted, even while acknowledgements arrive.
    #[test]
    fn all_written_bytes_are_counted() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut socket, _) = listener.accept().unwrap();
        let reader = std::thread::spawn(move || std::io::copy(&mut peer, &mut std::io::sink()));
        for round in 1..=50_000 {
            socket.write_all(&[0; 100]).unwrap();
            assert_eq!(written_bytes(socket.as_fd()).unwrap(), round * 100);
        }
        drop(socket);
        assert_eq!(reader.join().unwrap().unwrap(), 5_000_000);
    }

    #[test]
    fn local_peers_are_recognized() {
        for address in [
            "127.0.0.1:0",
            "127.9.8.7:0",
            "[::1]:0",
            "[::ffff:127.0.0.1]:0",
        ] {
            // This machine may have no IPv6.
            let Ok(listener) = TcpListener::bind(address) else {
                continue;
            };
            let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (socket, _) = listener.accept().unwrap();
            assert!(is_peer_local(socket.as_fd()), "{address}");
            assert!(is_peer_local(peer.as_fd()), "{address}");
        }
    }
}
