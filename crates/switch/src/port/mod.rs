//! Ports: where frames come from and go to. One file per back end.
//!
//! | back end | what it is for | needs |
//! | --- | --- | --- |
//! | [`memory`] | tests, and networks in one process | nothing |
//! | [`pcap`] | replaying a capture, recording what is sent | files |
//! | [`tap`] | the machine's own network stack as a host | CAP_NET_ADMIN |
//! | [`af_packet`] | any network interface | CAP_NET_RAW |
//! | [`af_xdp`] | a network interface, faster | CAP_NET_ADMIN, CAP_BPF, CAP_NET_RAW |

pub mod af_packet;
pub mod af_xdp;
mod interface;
mod lent;
pub(crate) mod link_watch;
pub mod memory;
mod offload;
pub mod pcap;
mod spec;
pub mod tap;
#[cfg(test)]
pub(crate) mod testing;

pub use af_xdp::FrameMemory;
pub use lent::{LentFrame, Received};
pub use spec::PortSpec;

use std::io;
use urtica_wire::MacAddr;

/// A port's back end.
pub trait PortIo: Send {
    /// The name that people know the port by, such as `eth0`.
    fn name(&self) -> &str;

    /// Its Ethernet address.
    fn hw_addr(&self) -> MacAddr;

    /// Whether it has a link.
    fn is_up(&self) -> bool;

    /// The number of the network interface whose link this is, by which the system tells when that changes (rtnetlink); `None`
    /// where only asking tells.
    fn link_index(&self) -> Option<u32> {
        None
    }

    /// Its rate in kb/s; 0 where that means nothing.
    fn speed_kbps(&self) -> u32;

    /// How many threads could receive by it.
    fn max_threads(&self) -> usize {
        1
    }

    /// Shares what comes in with other back ends of the same port, for `count` threads altogether; two at least. Each frame comes to
    /// one of them, and all frames of a flow to the same. Called once, before anything was received. There may be fewer than asked for, if there are
    /// not so many queues.
    ///
    /// # Errors
    /// Where the system refuses it; then all comes to this one.
    fn split(&mut self, count: usize) -> Result<Vec<Box<dyn PortIo>>, PortError> {
        let _ = count;
        Ok(Vec::new())
    }

    /// Opens a network interface again that was deleted and has been created again under its name. Returns whether it did: from
    /// then on [`PortIo::as_fd`] and [`PortIo::link_index`] return other values than before. Called every 100 ms.
    ///
    /// # Errors
    /// Where it cannot be opened.
    fn reopen(&mut self) -> Result<bool, PortError> {
        Ok(false)
    }

    /// Hands over frames that have come in, at most `max`; returns how many.
    ///
    /// # Errors
    /// Where the port does not work any more.
    fn receive(&mut self, max: usize, handle: &mut dyn FnMut(&[u8])) -> io::Result<usize>;

    /// The same, but frames may be lent, from where they are: they go to [`PortIo::send_lent`] of a port that shares their memory,
    /// or to [`PortIo::take_back`].
    ///
    /// # Errors
    /// Where the port does not work any more.
    fn receive_lent(
        &mut self,
        max: usize,
        handle: &mut dyn FnMut(Received<'_>),
    ) -> io::Result<usize> {
        self.receive(max, &mut |frame| handle(Received::Bytes(frame)))
    }

    /// Takes back frames that it has lent, all there are.
    fn take_back(&mut self, frames: &mut Vec<LentFrame>) {
        frames.clear();
    }

    /// Sends a lent frame from where it is, as [`PortIo::send`].
    ///
    /// # Errors
    /// The frame, where it is in memory that the port does not share, or there is no room.
    fn send_lent(&mut self, frame: LentFrame) -> Result<(), LentFrame> {
        Err(frame)
    }

    /// Sends a frame, at the latest at the next [`PortIo::flush`]. Returns whether there was room for it.
    fn send(&mut self, frame: &[u8]) -> bool;

    /// Sees to it that all frames given to [`PortIo::send`] leave, as far as there is room for them to.
    fn flush(&mut self);

    /// Whether the last [`PortIo::flush`] has kept frames for want of room: it should be called again soon.
    fn has_unsent(&self) -> bool {
        false
    }

    /// How many frames have come in since the last call that the back end had no room for: nobody received them.
    fn take_dropped(&mut self) -> u64 {
        0
    }

    /// A way for another thread to send by the port, past the one that has it; `None` where there is no other.
    ///
    /// # Errors
    /// Where the system refuses it.
    fn sender(&self) -> Option<Result<Box<dyn PortSender>, PortError>> {
        None
    }

    /// What becomes readable when frames have come in; `None` where only asking tells.
    fn as_fd(&self) -> Option<rustix::fd::BorrowedFd<'_>>;
}

/// A way to send by a port whose back end another thread has. Each sends in order, and nothing is said of frames of different ones.
pub trait PortSender: Send {
    /// As [`PortIo::send`].
    fn send(&mut self, frame: &[u8]) -> bool;

    /// As [`PortIo::flush`].
    fn flush(&mut self);

    /// As [`PortIo::has_unsent`].
    fn has_unsent(&self) -> bool;

    /// As [`PortIo::reopen`].
    ///
    /// # Errors
    /// Where it cannot be opened.
    fn reopen(&mut self) -> Result<bool, PortError> {
        Ok(false)
    }
}

/// Why a port could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PortError {
    /// The text names no port.
    #[error("'{text}' is not a port: it {problem}; expected {expected}", expected = spec::EXPECTED)]
    Syntax {
        /// What was given.
        text: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// There is nothing of that name.
    #[error("there is no network interface '{0}'; `ip link` lists those there are")]
    NoInterface(String),
    /// We may not.
    #[error("cannot open {port}: the system wants {needs}; run as root, or give the program that")]
    NotPermitted {
        /// Which port.
        port: String,
        /// The capabilities that it takes.
        needs: &'static str,
    },
    /// Somebody else has it.
    #[error(
        "cannot open {port}: it is in use; end the program that has it (`bpftool net`, `ss -f link -p` tell)"
    )]
    InUse {
        /// Which port.
        port: String,
    },
    /// The interface is of another kind or set up in another way than the back end can use.
    #[error("cannot open {port}: it {problem}")]
    Unsuitable {
        /// Which port.
        port: String,
        /// What is in the way, and what to do about it.
        problem: String,
    },
    /// The system refused otherwise.
    #[error("cannot {what} for {port}: {error}")]
    Io {
        /// Which port.
        port: String,
        /// What was attempted.
        what: &'static str,
        /// Why it failed.
        error: io::Error,
    },
}

/// Says of errors which port they are about, and turns the common ones into advice.
struct Opening<'name> {
    port: &'name str,
    /// The capabilities that it takes.
    needs: &'static str,
}

impl Opening<'_> {
    /// What an attempt to do `what` that failed says.
    fn failed<E: Into<io::Error>>(&self, what: &'static str) -> impl FnOnce(E) -> PortError {
        let (port, needs) = (self.port.to_owned(), self.needs);
        move |error| {
            let error = error.into();
            match error.kind() {
                io::ErrorKind::PermissionDenied => PortError::NotPermitted { port, needs },
                io::ErrorKind::ResourceBusy => PortError::InUse { port },
                _ => PortError::Io { port, what, error },
            }
        }
    }

    fn unsuitable(&self, problem: impl Into<String>) -> PortError {
        PortError::Unsuitable {
            port: self.port.to_owned(),
            problem: problem.into(),
        }
    }
}
