//! Connections that outlive their program: giving one to the holder, leaving it, and resuming it in the next program.
//!
//! The journal has a handler's replies to a message before the message counts as handled: see [`urtica_hold`].

use super::hold::Hold;
use super::{Channel, Close, Connection};
use crate::batch::BatchContext;
use crate::mailbox::Token;
use crate::session::{Session, SessionConfig, Unusable};
use rustix::fd::AsFd;
use rustix::io::Errno;
use std::io;
use std::sync::Arc;
use std::time::Instant;
use urtica_hold::{Damaged, HeldConnection, Journal, Link};

/// Why a connection ends when its program leaves it to the next.
const LEFT: Close = Close::Asked("it is left to the next program");

/// Why a connection of an earlier program cannot be used.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) enum Unresumable {
    Damaged(#[from] Damaged),
    Session(#[from] Unusable),
}

impl Connection {
    /// Gives the newly accepted connection to the holder.
    ///
    /// # Errors
    /// If it cannot be kept; it works all the same.
    pub fn hold(&mut self, link: &Arc<Link>) -> io::Result<()> {
        let socket = self.channel.socket().ok_or(io::ErrorKind::Unsupported)?;
        let hold = Hold::begin(link, socket, self.session.peer())?;
        self.hold = Some(Box::new(hold));
        Ok(())
    }

    /// Resumes a connection of an earlier program. [`Connection::take_up`] must follow, on its shard.
    ///
    /// # Errors
    /// If its journal is damaged, or its session is not possible here; it must be closed then.
    pub fn resume(
        held: &HeldConnection,
        link: &Arc<Link>,
        token: Token,
        config: SessionConfig,
        now: Instant,
    ) -> Result<Self, Unresumable> {
        let file = held.journal.try_clone().map_err(Damaged::from)?;
        let recovered = Journal::recover(file, held.socket.as_fd())?;
        let socket = held.socket.try_clone().map_err(Damaged::from)?;
        let mut asked = Vec::new();
        let kept = (recovered.word, &recovered.record[..]);
        let peer = held.label.clone();
        let (session, resumed) = Session::resume(config.clone(), peer, now, kept, &mut asked)?;
        let mut connection = Self::new(socket.into(), held.label.clone(), token, config, now);
        let unnoted = asked.len();
        connection.session = session;
        connection.resumed = resumed;
        connection.output = [recovered.unsent, asked].concat();
        let hold = Hold::resume(recovered.journal, Arc::clone(link), held.id, unnoted);
        connection.hold = Some(Box::new(hold));
        Ok(connection)
    }

    /// Lets the switch of a resumed connection join, before any of its messages is handled.
    pub fn take_up(&mut self, batch: &mut BatchContext) {
        if let Some(info) = self.resumed.take() {
            self.join(info, batch);
        }
    }

    /// Reads input; on a held connection it only peeks, so that the input stays in the queue until it is handled.
    pub fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        if self.hold.is_none() {
            return self.read(buffer);
        }
        match Hold::look(self.socket(), buffer) {
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            seen => Ok(seen.map(Some)?),
        }
    }

    /// Ends the connection for this program, and leaves it to the next if it is held.
    pub fn leave(&mut self, batch: &mut BatchContext) {
        match self.commit_output() {
            Ok(()) => self.hold = None,
            Err(close) => return self.close(&close, batch),
        }
        self.close(&LEFT, batch);
    }
}

impl<C: Channel> Connection<C> {
    /// How many of the bytes that the next read returns were seen before.
    pub fn left(&self) -> usize {
        self.hold.as_ref().map_or(0, |hold| hold.left())
    }

    /// Whether the queue holds an incomplete message, and there is nothing to do until more arrives.
    pub fn awaits_rest(&self) -> bool {
        let awaits = self.hold.as_ref().is_some_and(|hold| hold.awaits_rest());
        awaits && !self.is_stalled()
    }

    /// Writes to the journal everything that is to be sent, before it is sent: the output from the mailbox, and the replies
    /// in `batch.out` together with the input that they answer.
    #[cold] // so that connections that nobody keeps pay a comparison
    pub(super) fn commit(&mut self, batch: &mut BatchContext) -> Result<(), Close> {
        let (Some(hold), Some(socket)) = (&mut self.hold, self.channel.socket()) else {
            return Ok(());
        };
        let (replies, word) = (&batch.out, self.session.to_word());
        hold.commit(socket, &self.output, replies, word, &mut batch.discarded)
            .map_err(Close::Unkeepable)
    }

    /// The same for the output from the mailbox only.
    #[cold]
    pub(super) fn commit_output(&mut self) -> Result<(), Close> {
        let Some(hold) = &mut self.hold else {
            return Ok(());
        };
        hold.note_output(&self.output, self.session.to_word())
            .map_err(Close::Unkeepable)
    }
}
