//! A relay between switches and controller that records both sides' messages, even under TLS.
//!
//! **Why a relay.** Under TLS a packet capture is unreadable. A relay between switches and controller has the plaintext of
//! any controller, and leaves the controller's own handling of packet-ins unchanged.
//!
//! **How.** Each connection has a thread (`relay`), which relays the bytes and makes TCP segments of them
//! ([`Transcript`](crate::Transcript)); one more thread writes the segments (`recorder`), so that a slow disk delays no
//! connection.

mod recorder;
mod relay;
mod relays;

pub use recorder::create_private;

use recorder::{Recorder, Writing};
use relay::Target;
use relays::Relays;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use urtica_socket::{Acceptor, Address, ListenError, Listener, Tls};

/// A listening relay, before recording.
pub struct Capture {
    acceptor: Acceptor,
    target: Target,
}

/// A relay, and the file that it writes.
pub struct Recording {
    relays: Relays,
    recorder: Recorder,
    writing: Writing,
}

/// The result of a recording.
#[derive(Debug)]
#[non_exhaustive]
pub struct Recorded {
    /// The number of connections that were relayed.
    pub connections: u64,
    /// The number of packets in the file, or why it is incomplete.
    pub written: io::Result<u64>,
    /// The number of packets missing from the file, because the queue was full or the file failed.
    pub dropped: u64,
    /// Why the relay ended before it was stopped.
    pub ended: io::Result<()>,
}

/// Why a relay cannot listen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// An address could not be bound.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The system is out of a resource, such as file descriptors.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Capture {
    /// Listens for switches, to relay their connections to `controller`. `tls` is for both sides, unless
    /// `controller_tls` is given for the controller.
    ///
    /// # Errors
    /// [`CaptureError`].
    pub fn bind(
        listen: &[Address],
        controller: Address,
        tls: Option<Tls>,
        controller_tls: Option<Tls>,
    ) -> Result<Self, CaptureError> {
        let mut acceptor = Acceptor::new()?;
        if let Some(tls) = tls.clone() {
            acceptor.speak_tls(tls)?;
        }
        for address in listen {
            acceptor.add(Listener::bind(address)?)?;
        }
        Ok(Self {
            acceptor,
            target: Target {
                address: controller,
                has_own_files: controller_tls.is_some(),
                tls: controller_tls.or(tls),
            },
        })
    }

    /// Returns the addresses to which switches connect, with the ports that the system chose.
    pub fn addresses(&self) -> impl Iterator<Item = &Address> {
        let listeners = self.acceptor.listeners();
        listeners.map(|(_, listener)| listener.address())
    }

    /// Creates the pcapng file. A later error of the file ends the recording, but not the connections.
    ///
    /// # Errors
    /// Errors of the file, and of the system if no thread can be created.
    pub fn start(self, out: Box<dyn Write + Send>) -> io::Result<Recording> {
        let (recorder, writing) = recorder::start(out)?;
        Ok(Recording {
            relays: Relays::new(self.acceptor, self.target),
            recorder,
            writing,
        })
    }
}

impl Recording {
    /// Relays and records until `stop` is readable or closed.
    pub fn run(mut self, stop: UnixStream) -> Recorded {
        let ended = self.relays.run(&Arc::new(stop), &self.recorder);
        let connections = self.relays.finish();
        drop(self.recorder);
        let (written, dropped) = self.writing.finish();
        Recorded {
            connections,
            written,
            dropped,
            ended,
        }
    }
}
