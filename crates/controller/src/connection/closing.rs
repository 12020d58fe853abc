//! The end of a connection, and its reason.

use super::{Channel, Connection};
use crate::SwitchHandler;
use crate::batch::BatchContext;
use crate::panics::panic_text;
use crate::session::SessionError;
use crate::switch::take_panicked;
use crate::transport::TransportError;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The reason why a connection ends.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Close {
    #[error("the peer closed the connection")]
    ByPeer,
    #[error("{0}")]
    Session(#[from] SessionError),
    #[error(transparent)]
    Transport(#[from] TransportError),
    #[error("{0}")]
    NotAdmitted(String),
    #[error("{0}")]
    Auxiliary(String),
    /// Not an end: the shard hands the connection over to the shard of its main connection.
    #[error("it is an auxiliary connection")]
    ToMain,
    #[error("{0}")]
    Asked(&'static str),
    #[error("a handler panicked: {0}")]
    Panic(String),
}

impl From<io::Error> for Close {
    fn from(error: io::Error) -> Self {
        Self::Transport(error.into())
    }
}

impl<C: Channel> Connection<C> {
    /// Closes the connection: sends the remaining output, logs the end, removes the switch from the registry, and notifies
    /// the handlers. [`Connection::finish`] must follow.
    pub fn close(&mut self, close: &Close, batch: &mut BatchContext) {
        self.reclaim(batch);
        let _ = contain(|| {
            self.handle_events(batch);
            Ok(())
        });
        // Sends a final OFPT_ERROR, for instance, if the socket accepts it.
        let _ = self.flush(batch);
        batch.out.clear();
        self.end(close, batch);
    }

    /// Ends a closed connection once the kernel half's answers have been written, and then the last messages: all of them, or
    /// as many as the socket accepts at once. Returns `false` while they are unsent, since dropping the connection would lose
    /// them.
    pub fn finish(&mut self, sends_all: bool, batch: &BatchContext) -> bool {
        if self.transport.is_answering() {
            return false;
        }
        let is_flushed = self.flush_backlog(batch);
        if sends_all
            && is_flushed.is_ok()
            && self.is_waiting()
            && self.transport.channel().is_open()
        {
            return false;
        }
        self.transport.end_hold();
        true
    }

    /// Ends a closed connection now.
    pub fn abandon(&mut self) {
        self.transport.end_hold();
    }

    /// Leaves a closed connection to the next program, if a holder keeps it.
    pub fn leave_closed(&mut self) {
        // If it fails, the next program closes the connection.
        let _ = self.transport.commit_output(self.session.to_word());
        self.transport.leave();
    }

    /// Ends the connection without sending anything.
    pub(super) fn end(&mut self, close: &Close, batch: &mut BatchContext) {
        self.log_end(close);
        if matches!(close, Close::Session(SessionError::Dead(_))) {
            self.log_silence();
        }
        self.close_auxiliaries(batch);
        let shard = &batch.network.shard(batch.shard).counters;
        if let Close::Panic(reason) = close {
            shard.panics.add(1);
            self.note_panic(reason, batch);
        }
        self.reconciliations.clear();
        let Some(switch) = &mut self.switch else {
            return;
        };
        batch
            .network
            .deregister(switch.info.datapath_id, self.token);
        let handlers = std::mem::take(&mut switch.handlers);
        for (program, handler) in switch.programs.identities.iter().zip(handlers) {
            switch.end_handler(program, handler, batch);
        }
        switch.end_raw(batch);
    }

    /// Notes that a handler has panicked.
    fn note_panic(&self, reason: &str, batch: &BatchContext) {
        let panicked = take_panicked();
        let switch = self.switch.as_ref();
        let id = switch.map(|switch| switch.info.datapath_id);
        let program = switch.and_then(|switch| {
            let mut identities = switch.programs.identities.iter();
            identities.find(|identity| Some(identity.origin) == panicked)
        });
        let name = program.and_then(|program| program.times.name());
        batch.network.panic_log().note(name, id, reason);
    }

    /// Logs the causes that may keep a working connection silent: unsent output, or unread input.
    fn log_silence(&self) {
        urtica_log::debug!(
            about: self.subject(),
            peer = self.name(),
            waiting_bytes = self.transport.waiting_bytes(),
            waiting_replies = self.transport.waiting_replies(),
            input_bytes = self.transport.input_len(),
            unhandled_bytes = self.transport.left(),
            kernel_half = self.transport.describe_half(),
            "state of the silent connection"
        );
    }

    fn log_end(&self, close: &Close) {
        let (peer, joined) = (self.name(), self.switch.is_some());
        let subject = self.subject();
        match close {
            Close::Panic(_) => {
                urtica_log::error!(about: subject, peer, reason = %close, "switch dropped; the controller keeps running")
            }
            Close::ByPeer | Close::Asked(_) if joined => {
                urtica_log::info!(about: subject, peer, reason = %close, "switch left")
            }
            _ if joined => urtica_log::warn!(about: subject, peer, reason = %close, "switch lost"),
            Close::Auxiliary(_) => {
                urtica_log::warn!(about: subject, peer, reason = %close, "connection refused")
            }
            _ if self.is_auxiliary() => {
                urtica_log::info!(about: subject, peer, reason = %close, "auxiliary connection closed")
            }
            Close::NotAdmitted(_) => {
                urtica_log::warn!(about: subject, peer, reason = %close, "switch refused")
            }
            Close::Session(error) if !error.is_noise() => {
                urtica_log::warn!(about: subject, peer, reason = %close, "connection refused")
            }
            _ => {
                urtica_log::debug!(about: subject, peer, reason = %close, "connection closed before a switch joined")
            }
        }
    }
}

/// Runs code that calls handlers; a handler's panic becomes the reason for closing its connection.
pub(crate) fn contain(run: impl FnOnce() -> Result<(), Close>) -> Result<(), Close> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| Err(Close::Panic(panic_text(panic))))
}

/// Returns the message of a panic that was contained.
pub(super) fn panic_of(contained: &Close) -> String {
    match contained {
        Close::Panic(message) => message.clone(),
        other => other.to_string(),
    }
}

/// Drops a handler, which may panic in its destructor.
pub(super) fn drop_contained(handler: Box<dyn SwitchHandler>) -> Result<(), Close> {
    contain(|| {
        drop(handler);
        Ok(())
    })
}
