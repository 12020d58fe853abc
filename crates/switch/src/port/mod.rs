//! Ports, which receive and send frames, with one file per back end.
//!
//! | back end | purpose | needs |
//! | --- | --- | --- |
//! | [`memory`] | tests and emulated networks | nothing |
//! | [`pcap`] | replaying a capture, recording sent frames | files |
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
    /// Returns the port's name for people, such as `eth0`.
    fn name(&self) -> &str;

    /// Returns the port's Ethernet address.
    fn hw_addr(&self) -> MacAddr;

    /// Returns whether the port has a link.
    fn is_up(&self) -> bool;

    /// Returns the number of the network interface with this link, if the system reports its changes (rtnetlink); `None` if the
    /// link must be polled.
    fn link_index(&self) -> Option<u32> {
        None
    }

    /// Returns the port's rate in kb/s; 0 if it has none.
    fn speed_kbps(&self) -> u32;

    /// Returns the maximum number of threads that can receive from the port.
    fn max_threads(&self) -> usize {
        1
    }

    /// Splits the port's input with other back ends of the port, for `count` threads in total; at least two. Each frame is
    /// received by one of them, and all frames of a flow by the same one. Called once, before anything was received. Returns
    /// fewer back ends if there are fewer queues.
    ///
    /// # Errors
    /// If the system refuses this; then this back end receives everything.
    fn split(&mut self, count: usize) -> Result<Vec<Box<dyn PortIo>>, PortError> {
        let _ = count;
        Ok(Vec::new())
    }

    /// Reopens a network interface that was deleted and created again under its name. Returns whether it did; then
    /// [`PortIo::as_fd`] and [`PortIo::link_index`] return other values than before. Called every 100 ms.
    ///
    /// # Errors
    /// If it cannot be opened.
    fn reopen(&mut self) -> Result<bool, PortError> {
        Ok(false)
    }

    /// Passes at most `max` received frames to `handle`, and returns their number.
    ///
    /// # Errors
    /// If the port has failed.
    fn receive(&mut self, max: usize, handle: &mut dyn FnMut(&[u8])) -> io::Result<usize>;

    /// Like [`PortIo::receive`], but frames may be lent in place: they must be passed to [`PortIo::send_lent`] of a
    /// port that shares their memory, or to [`PortIo::take_back`].
    ///
    /// # Errors
    /// If the port has failed.
    fn receive_lent(
        &mut self,
        max: usize,
        handle: &mut dyn FnMut(Received<'_>),
    ) -> io::Result<usize> {
        self.receive(max, &mut |frame| handle(Received::Bytes(frame)))
    }

    /// Takes back all frames of the list, which this port has lent.
    fn take_back(&mut self, frames: &mut Vec<LentFrame>) {
        frames.clear();
    }

    /// Sends a lent frame in place, like [`PortIo::send`].
    ///
    /// # Errors
    /// Returns the frame if the port does not share its memory, or has no space.
    fn send_lent(&mut self, frame: LentFrame) -> Result<(), LentFrame> {
        Err(frame)
    }

    /// Sends a frame, at the latest at the next [`PortIo::flush`]. Returns whether there was space for it.
    fn send(&mut self, frame: &[u8]) -> bool;

    /// Transmits as many of the frames passed to [`PortIo::send`] as there is space for.
    fn flush(&mut self);

    /// Returns whether the last [`PortIo::flush`] kept frames for lack of space. It should then be called again soon.
    fn has_unsent(&self) -> bool {
        false
    }

    /// Returns the number of incoming frames that were lost for lack of space since the last call.
    fn take_dropped(&mut self) -> u64 {
        0
    }

    /// Returns a sender with which another thread can send directly; `None` if the back end has none.
    ///
    /// # Errors
    /// If the system refuses this.
    fn sender(&self) -> Option<Result<Box<dyn PortSender>, PortError>> {
        None
    }

    /// Returns the descriptor that becomes readable when frames have arrived; `None` if the port must be polled.
    fn as_fd(&self) -> Option<rustix::fd::BorrowedFd<'_>>;
}

/// A sender for a port whose back end belongs to another thread. Each sender keeps its order; the order between senders is
/// undefined.
pub trait PortSender: Send {
    /// Sends a frame, like [`PortIo::send`].
    fn send(&mut self, frame: &[u8]) -> bool;

    /// Transmits frames, like [`PortIo::flush`].
    fn flush(&mut self);

    /// Returns whether frames wait, like [`PortIo::has_unsent`].
    fn has_unsent(&self) -> bool;

    /// Reopens the interface, like [`PortIo::reopen`].
    ///
    /// # Errors
    /// If it cannot be opened.
    fn reopen(&mut self) -> Result<bool, PortError> {
        Ok(false)
    }
}

/// The reason why a port could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PortError {
    /// The text does not specify a port.
    #[error("'{text}' is not a port: it {problem}; expected {expected}", expected = spec::EXPECTED)]
    Syntax {
        /// The text given.
        text: String,
        /// The problem with it.
        problem: &'static str,
    },
    /// No such interface exists.
    #[error("there is no network interface '{0}'; `ip link` lists them")]
    NoInterface(String),
    /// The process lacks the permission.
    #[error("cannot open {port}: it needs {needs}; run as root, or grant the program that")]
    NotPermitted {
        /// The port's name.
        port: String,
        /// The capabilities that it needs.
        needs: &'static str,
    },
    /// Another program uses the interface.
    #[error(
        "cannot open {port}: it is in use; end the program that uses it (`bpftool net` and `ss -f link -p` show it)"
    )]
    InUse {
        /// The port's name.
        port: String,
    },
    /// The interface is of a kind, or configured in a way, that the back end cannot use.
    #[error("cannot open {port}: it {problem}")]
    Unsuitable {
        /// The port's name.
        port: String,
        /// The problem, and its solution.
        problem: String,
    },
    /// Another error of the system.
    #[error("cannot {what} for {port}: {error}")]
    Io {
        /// The port's name.
        port: String,
        /// The failed operation.
        what: &'static str,
        /// The system's error.
        error: io::Error,
    },
}

/// The port being opened, to add its name to errors, and to add advice to common ones.
struct Opening<'name> {
    port: &'name str,
    /// The capabilities that the port needs.
    needs: &'static str,
}

impl Opening<'_> {
    /// Returns a conversion for an error of the operation `what`.
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
