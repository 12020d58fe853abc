//! The progress of a TCP connection as the kernel counts it, which survives the program.

use rustix::fd::{AsRawFd, BorrowedFd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use std::io;

/// Maximum number of times that the counters are read until two readings are equal. They become constant if no process reads or
/// writes: the peer can acknowledge only sent bytes, and send only as much as the window allows.
const READINGS: u32 = 1000;

/// The progress of a TCP connection since it was accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes read from its queue. Once the peer has closed its side, one more may be counted.
    pub consumed: u64,
    /// Bytes written to it, including bytes that have not been sent yet.
    pub written: u64,
}

impl Progress {
    /// Returns the progress of a connection that no process reads or writes during the call.
    ///
    /// # Errors
    /// If the socket is not TCP, or is broken.
    pub fn of(socket: BorrowedFd) -> io::Result<Self> {
        for _ in 0..READINGS {
            let before = TcpInfo::of(socket)?;
            let queued = rustix::io::ioctl_fionread(socket)?;
            let unacknowledged = unacknowledged_bytes(socket)?;
            let after = TcpInfo::of(socket)?;
            if (before.bytes_acked, before.bytes_received)
                == (after.bytes_acked, after.bytes_received)
            {
                return Ok(Self {
                    consumed: after.bytes_received.saturating_sub(queued),
                    written: after.bytes_acked + unacknowledged,
                });
            }
            std::thread::yield_now();
        }
        Err(io::Error::other("its counters keep changing"))
    }
}

/// Removes peeked bytes from a TCP socket's queue, without copying them. The system needs `room` as if it did copy them.
///
/// # Errors
/// If the connection is broken.
pub fn discard(socket: BorrowedFd, mut count: usize, room: &mut [u8]) -> Result<(), Errno> {
    while count > 0 {
        let length = count.min(room.len());
        match recv(
            socket,
            &mut room[..length],
            RecvFlags::TRUNC | RecvFlags::DONTWAIT,
        ) {
            Ok((_, 0)) => return Err(Errno::CONNRESET),
            Ok((_, discarded)) => count -= discarded.min(count),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The minimum capacity of the receive queue of a held connection.
const QUEUE_BYTES: libc::c_int = 512 << 10;

/// Makes sure that a peer can keep sending while the start of a message stays in a TCP socket's queue.
///
/// The system counts a segment's memory until its last byte is read. A queue of the system's initial size (`tcp_rmem`) can be
/// filled by one large segment with a few bytes left. The system then offers the peer no window, and the rest of the message
/// never arrives.
/// large segment with a few bytes left; then it offers the peer no window, and the rest of the message never arrives.
///
/// # Errors
/// The system's error, if this is not a socket.
pub fn widen_queue(socket: BorrowedFd) -> io::Result<()> {
    // To make this many bytes readable at once, the system enlarges the queue, which keeps its size. Unlike SO_RCVBUF, this
    // needs no privilege (`rmem_max`), and the system still enlarges the queue automatically.
    for bytes in [QUEUE_BYTES, 1] {
        // SAFETY: the kernel reads one int.
        let result = unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_RCVLOWAT,
                std::ptr::from_ref(&bytes).cast(),
                size_of_val(&bytes) as libc::socklen_t,
            )
        };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// `struct tcp_info` of linux/tcp.h up to the last field that is read; libc's is shorter.
#[repr(C)]
#[derive(Default)]
struct TcpInfo {
    before: [u64; 15],
    bytes_acked: u64,
    bytes_received: u64,
}

impl TcpInfo {
    fn of(socket: BorrowedFd) -> io::Result<Self> {
        let mut info = Self::default();
        let mut length = size_of::<Self>() as libc::socklen_t;
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
}

fn unacknowledged_bytes(socket: BorrowedFd) -> io::Result<u64> {
    let mut count: libc::c_int = 0;
    // SAFETY: SIOCOUTQ, as TIOCOUTQ is called for sockets, writes one int.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &mut count) };
    match result {
        0 => Ok(u64::try_from(count).unwrap_or(0)),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fd::AsFd;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn the_kernel_knows_how_far_a_connection_has_got() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut socket, _) = listener.accept().unwrap();
        let start = Progress::of(socket.as_fd()).unwrap();
        assert_eq!(start.consumed, 0);
        peer.write_all(&[7; 1000]).unwrap();
        socket.write_all(&[1; 300]).unwrap();
        let mut looked_at = [0; 1000];
        let mut seen = 0;
        while seen < 1000 {
            seen = socket.peek(&mut looked_at).unwrap();
        }
        assert_eq!(Progress::of(socket.as_fd()).unwrap().consumed, 0);
        discard(socket.as_fd(), 600, &mut [0; 256]).unwrap();
        let now = Progress::of(socket.as_fd()).unwrap();
        assert_eq!((now.consumed, now.written - start.written), (600, 300));
        drop(peer);
        let mut rest = Vec::new();
        // Bytes sent to a peer that has closed may reset the connection.
        let _ = socket.read_to_end(&mut rest);
        assert!(rest.len() <= 400);
    }

    /// For any rest in the queue, a peer that writes large blocks keeps sending.
    #[test]
    fn the_start_of_a_message_in_the_queue_does_not_stop_the_peer() {
        for left in [1, 600, 1398, 30_000, 65_000] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let mut peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (socket, _) = listener.accept().unwrap();
            widen_queue(socket.as_fd()).unwrap();
            let sender = std::thread::spawn(move || peer.write_all(&vec![7; 32 << 20]));
            let mut room = vec![0; 256 << 10];
            let mut discarded = 0;
            while discarded + left < 32 << 20 {
                let count = wait_for_more(&socket, left) - left;
                discard(socket.as_fd(), count, &mut room).unwrap();
                discarded += count;
            }
            sender.join().unwrap().unwrap();
        }
    }

    /// Waits until the queue has more bytes than these; returns their number.
    fn wait_for_more(socket: &TcpStream, left: usize) -> usize {
        const DEADLINE: std::time::Duration = std::time::Duration::from_secs(60);
        let start = std::time::Instant::now();
        loop {
            let count = rustix::io::ioctl_fionread(socket).unwrap() as usize;
            if count > left {
                return count;
            }
            assert!(
                start.elapsed() < DEADLINE,
                "nothing comes behind {left} bytes"
            );
            std::thread::yield_now();
        }
    }

    #[test]
    fn other_sockets_have_no_progress() {
        let (socket, _peer) = std::os::unix::net::UnixStream::pair().unwrap();
        assert!(Progress::of(socket.as_fd()).is_err());
    }
}
