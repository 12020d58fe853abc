//! The number of unread bytes of a TCP socket's input, even while the kernel's programs read its input.
//!
//! Bytes that the programs pass wait in the socket's queue in the map. Before that, they may wait in another queue, behind
//! replies that are in transit to the switch. FIONREAD counts all queues in earlier kernels, but in Linux 7.0 and later
//! releases of 6.18 only that of the map. NETLINK_SOCK_DIAG reports all received bytes minus all that were read, in every
//! version.

use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrAny, SocketFlags, SocketType, getpeername,
    getsockname, netlink, recv, send, socket_with, sockopt,
};
use std::net::{IpAddr, SocketAddr};

/// The type of a request and its answer.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST: u16 = 1;

const HEADER_BYTES: usize = 16;
const REQUEST_BYTES: usize = HEADER_BYTES + 56;

/// The offset of `idiag_rqueue` in an answer, after the header and a socket's identity.
const UNREAD_AT: usize = HEADER_BYTES + 56;

/// Returns the number of unread bytes. The end of the stream counts as a byte.
///
/// # Errors
/// If the kernel was built without INET_DIAG, the socket is in another network namespace, or its connection is broken.
pub fn unread_bytes(socket: BorrowedFd) -> Result<u64, Errno> {
    let request = request(socket)?;
    let flags = SocketFlags::CLOEXEC;
    let kernel = socket_with(
        AddressFamily::NETLINK,
        SocketType::DGRAM,
        flags,
        Some(netlink::SOCK_DIAG),
    )?;
    send(&kernel, &request, SendFlags::empty())?;
    let mut answer = [0; 4096];
    // The kernel answers during the call that sends the request.
    let (_, length) = recv(&kernel, &mut answer[..], RecvFlags::DONTWAIT)?;
    read(answer.get(..length).unwrap_or_default())
}

/// Returns a request for this socket, identified by its addresses and its cookie.
fn request(socket: BorrowedFd) -> Result<Vec<u8>, Errno> {
    let (local, peer) = (address(getsockname(socket)?)?, getpeername(socket)?);
    let peer = address(peer.ok_or(Errno::NOTCONN)?)?;
    let family = match local {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    // A socket with a link-local address is bound to its interface.
    let interface = match peer {
        SocketAddr::V4(_) => 0,
        SocketAddr::V6(peer) => peer.scope_id(),
    };
    let cookie = sockopt::socket_cookie(socket)?;
    let mut bytes = Vec::with_capacity(REQUEST_BYTES);
    bytes.extend((REQUEST_BYTES as u32).to_ne_bytes());
    bytes.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes.extend(NLM_F_REQUEST.to_ne_bytes());
    // A sequence number and the sender's id, which are not used.
    bytes.extend([0; 8]);
    bytes.extend([family.as_raw() as u8, libc::IPPROTO_TCP as u8, 0, 0]);
    // All states of the connection.
    bytes.extend(u32::MAX.to_ne_bytes());
    bytes.extend(local.port().to_be_bytes());
    bytes.extend(peer.port().to_be_bytes());
    bytes.extend(ip_bytes(local.ip()));
    bytes.extend(ip_bytes(peer.ip()));
    bytes.extend(interface.to_ne_bytes());
    bytes.extend((cookie as u32).to_ne_bytes());
    bytes.extend(((cookie >> 32) as u32).to_ne_bytes());
    Ok(bytes)
}

fn address(address: SocketAddrAny) -> Result<SocketAddr, Errno> {
    SocketAddr::try_from(address)
}

fn ip_bytes(ip: IpAddr) -> [u8; 16] {
    let mut bytes = [0; 16];
    match ip {
        IpAddr::V4(ip) => bytes[..4].copy_from_slice(&ip.octets()),
        IpAddr::V6(ip) => bytes = ip.octets(),
    }
    bytes
}

fn read(answer: &[u8]) -> Result<u64, Errno> {
    let word = |at: usize| Some(answer.get(at..at + 4)?.try_into().unwrap_or_default());
    let kind = answer
        .get(4..6)
        .map(|kind| [kind[0], kind[1]])
        .map(u16::from_ne_bytes);
    if kind != Some(SOCK_DIAG_BY_FAMILY) {
        // An error is a negative number after the header.
        let error = word(HEADER_BYTES).map_or(0, i32::from_ne_bytes);
        let is_error = (-4095..0).contains(&error);
        return Err(match is_error {
            true => Errno::from_raw_os_error(-error),
            false => Errno::BADMSG,
        });
    }
    let unread = word(UNREAD_AT).ok_or(Errno::BADMSG)?;
    Ok(u32::from_ne_bytes(unread).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;

    #[test]
    fn counts_unread_bytes_of_any_address_family() {
        for (listens, connects) in [
            ("127.0.0.1:0", "127.0.0.1"),
            ("[::]:0", "127.0.0.1"),
            ("[::1]:0", "::1"),
        ] {
            // This machine may have no IPv6.
            let Ok(listener) = TcpListener::bind(listens) else {
                continue;
            };
            let port = listener.local_addr().unwrap().port();
            let mut peer = TcpStream::connect((connects, port)).unwrap();
            let (mut socket, _) = listener.accept().unwrap();
            if unread_bytes(socket.as_fd()) == Err(Errno::NOENT) {
                println!("skipped: the kernel has no INET_DIAG");
                return;
            }
            assert_eq!(unread_bytes(socket.as_fd()), Ok(0), "{listens}");
            peer.write_all(&[1; 100]).unwrap();
            socket.read_exact(&mut [0; 40]).unwrap();
            let mut rest = [0; 60];
            while socket.peek(&mut rest).unwrap() < 60 {}
            assert_eq!(unread_bytes(socket.as_fd()), Ok(60), "{listens}");
        }
    }

    #[test]
    fn malformed_answers_are_errors() {
        assert_eq!(read(&[]), Err(Errno::BADMSG));
        let mut short = [0; UNREAD_AT + 3];
        short[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
        assert_eq!(read(&short), Err(Errno::BADMSG));
        let mut refused = [0; 36];
        refused[16..20].copy_from_slice(&(-2_i32).to_ne_bytes());
        assert_eq!(read(&refused), Err(Errno::NOENT));
    }
}
