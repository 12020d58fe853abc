//! Connections that outlive their program: giving one to the holder, leaving it, and resuming it in the next program.
//!
//! The journal has a handler's replies to a message before the message counts as handled: see [`urtica_hold`].

use super::hold::{Hold, Stored};
use super::{Channel, Close, Connection};
use crate::batch::BatchContext;
use crate::kernel_half::{HeldHalves, Ownership, Resumed};
use crate::mailbox::Token;
use crate::session::{Session, SessionConfig, Unusable};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use std::io;
use std::sync::Arc;
use std::time::Instant;
use urtica_hold::{Damaged, HeldConnection, Journal, Link, Words, widen_queue};

/// Why a connection ends when its program leaves it to the next.
const LEFT: Close = Close::Asked("it is left to the next program");

/// Why a connection of an earlier program cannot be used.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) enum Unresumable {
    Damaged(#[from] Damaged),
    Session(#[from] Unusable),
    Half(#[from] HalfLost),
}

/// Why the kernel half of an earlier program cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HalfLost {
    #[error("the kernel answered for its program, and this program cannot take over kernel halves")]
    Unknown,
    #[error("the kernel answered for its program, and cannot be taken over: {0}")]
    Io(#[from] io::Error),
}

/// How a session is resumed.
pub(crate) struct Resumption<'a> {
    pub link: &'a Arc<Link>,
    pub halves: Option<&'a dyn HeldHalves>,
    pub token: Token,
    pub config: SessionConfig,
    pub now: Instant,
}

impl Connection {
    /// Adds the newly accepted connection to the holder.
    ///
    /// # Errors
    /// If it cannot be kept; it works without.
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
    pub fn resume(held: &HeldConnection, resumption: Resumption) -> Result<Self, Unresumable> {
        let Resumption {
            link,
            halves,
            token,
            config,
            now,
        } = resumption;
        let file = held.journal.try_clone().map_err(Damaged::from)?;
        let mut half = resume_half(held, link, halves, &file)?;
        let mut recovered = match &half {
            None => Journal::recover(file, held.socket.as_fd())?,
            Some(half) => Journal::recover_at(file, half.progress)?,
        };
        let (fragment, stored) = match &mut half {
            None => (Vec::new(), Stored::default()),
            Some(half) => newest(half, &mut recovered.words),
        };
        if half.is_none() {
            // An older program may not have done so.
            widen_queue(held.socket.as_fd()).map_err(Damaged::from)?;
        }
        let socket = held.socket.try_clone().map_err(Damaged::from)?;
        let mut asked = Vec::new();
        let kept = (recovered.words[0], &recovered.record[..]);
        let peer = held.label.clone();
        let (session, resumed) = Session::resume(config.clone(), peer, now, kept, &mut asked)?;
        let mut connection = Self::new(socket.into(), held.label.clone(), token, config, now);
        let unnoted = asked.len();
        connection.session = session;
        connection.resumed = resumed;
        connection.output = [recovered.unsent, asked].concat();
        let mut hold = Hold::resume(recovered.journal, Arc::clone(link), held.id, unnoted);
        hold.reclaim(fragment.len(), stored);
        connection.input = fragment;
        connection.hold = Some(Box::new(hold));
        connection.kernel = half.map(Ownership::resumed);
        Ok(connection)
    }

    /// Returns the number of packet-ins that the kernel answered while no program was running, if that is not counted yet.
    pub fn answered_meanwhile(&self) -> u64 {
        let kernel = self.kernel.as_ref();
        kernel.map_or(0, Ownership::uncounted_answers)
    }

    /// Lets the switch of a resumed connection join, before any of its messages is handled.
    pub fn take_up(&mut self, batch: &mut BatchContext) {
        if let Some(info) = self.resumed.take() {
            self.join(info, batch);
        }
        let uncounted = self.kernel.as_mut().and_then(Ownership::take_uncounted);
        if let Some(uncounted) = uncounted {
            self.count_reclaimed(&uncounted, batch);
        }
        if let Some(kernel) = &mut self.kernel {
            kernel.count_in(batch.network.kernel_half_totals());
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

    /// Closes the connection for this program, and leaves it to the next if it is held. Its kernel half keeps running.
    pub fn leave(&mut self, batch: &mut BatchContext) {
        match self.commit_output() {
            Ok(()) => self.hold = None,
            Err(close) => return self.close(&close, batch),
        }
        if let Some(kept) = self.kernel.as_mut().and_then(Ownership::kept) {
            kept.leave();
        }
        self.close(&LEFT, batch);
    }
}

impl<C: Channel> Connection<C> {
    /// Whether a holder keeps it.
    pub fn is_held(&self) -> bool {
        self.hold.is_some()
    }

    /// Returns the number of bytes of the next read that were seen before.
    pub fn left(&self) -> usize {
        self.hold.as_ref().map_or(0, |hold| hold.left())
    }

    /// Returns whether the queue holds an incomplete message, so that nothing can be done until more arrives.
    pub fn awaits_rest(&self) -> bool {
        let awaits = self.hold.as_ref().is_some_and(|hold| hold.awaits_rest());
        awaits && !self.is_stalled()
    }

    /// Writes to the journal everything that will be sent, before it is sent: the output from the mailbox, and the replies in
    /// `batch.out` together with the input that they answer.
    #[cold] // so that connections that nobody keeps pay a comparison
    pub(super) fn commit(&mut self, batch: &mut BatchContext) -> Result<(), Close> {
        if self.is_owned_by_kernel() {
            return Ok(());
        }
        let (Some(hold), Some(socket)) = (&mut self.hold, self.channel.socket()) else {
            return Ok(());
        };
        let (replies, word) = (&batch.out, self.session.to_word());
        let discarded = hold
            .commit(socket, &self.output, replies, word, &mut batch.discarded)
            .map_err(Close::Unkeepable)?;
        if let Some(kernel) = &mut self.kernel {
            kernel.note_discarded(discarded);
        }
        Ok(())
    }

    /// Of handled input, this is what is left: the beginning of a message, or, where the switch does not read our replies, more.
    /// It stays in the queue; in front of a kernel half, the beginning of a message is stored there.
    #[cold]
    pub(super) fn keep_rest(&mut self, rest: &[u8]) {
        let is_stalled = self.is_stalled();
        let Some(hold) = &mut self.hold else {
            return;
        };
        hold.note_left(rest.len());
        if let Some(kernel) = &mut self.kernel {
            let may_store = !is_stalled && !kernel.is_let_go() && hold.left() > 0;
            if may_store && rest.len() <= kernel.max_fragment() {
                if let Some(kept) = kernel.kept() {
                    hold.store(kept.store_fragment(rest));
                }
            }
        }
        self.input.extend_from_slice(&rest[..hold.fragment()]);
    }

    /// The program owns the connection again: what precedes its queue is stored with the kernel half.
    #[cold]
    pub(super) fn note_reclaimed(&mut self) {
        let (Some(hold), Some(kernel)) = (&mut self.hold, &mut self.kernel) else {
            return;
        };
        if let Some(kept) = kernel.kept() {
            let bytes = self.input.len();
            let stored = Stored {
                taken: kept.taken(),
                word: kept.fragment_word(bytes),
            };
            hold.reclaim(bytes, stored);
        }
    }

    /// Has the holder keep what the next program needs of the kernel half. Returns whether it may be attached now.
    #[cold]
    pub(super) fn keep_half(&mut self) -> io::Result<bool> {
        let (Some(hold), Some(kernel)) = (&mut self.hold, &mut self.kernel) else {
            return Ok(true);
        };
        let is_new = kernel.keep(&hold.keeper())?;
        let is_kept = kernel.is_kept();
        if is_new {
            hold.begin_half()?;
            urtica_log::debug!(about: self.subject(), peer = self.name(), "the holder keeps the kernel half");
        }
        Ok(is_kept)
    }

    /// Continues without the kernel half of an earlier program, once all input that it passed is handled and all its answers are
    /// written. Returns whether it has.
    #[cold]
    pub(super) fn let_half_go(&mut self) -> Result<bool, Close> {
        let (Some(hold), Some(kernel)) = (&mut self.hold, &mut self.kernel) else {
            return Ok(false);
        };
        let Some(socket) = self.channel.socket() else {
            return Ok(false);
        };
        if hold.fragment() > 0 || !kernel.may_write(socket) {
            return Ok(false);
        }
        let Some(kept) = kernel.kept() else {
            return Ok(false);
        };
        let Some(progress) = kept.let_go(socket)? else {
            return Ok(false);
        };
        let word = self.session.to_word();
        hold.end_half(progress, &self.output, word)
            .map_err(Close::Unkeepable)?;
        self.kernel = None;
        Ok(true)
    }

    /// Like `commit`, for the output from the mailbox only.
    #[cold]
    pub(super) fn commit_output(&mut self) -> Result<(), Close> {
        if self.is_owned_by_kernel() {
            return Ok(());
        }
        let Some(hold) = &mut self.hold else {
            return Ok(());
        };
        hold.note_output(&self.output, self.session.to_word())
            .map_err(Close::Unkeepable)
    }
}

/// Reclaims the connection from the kernel half that an earlier program left, if there is one.
fn resume_half(
    held: &HeldConnection,
    link: &Link,
    halves: Option<&dyn HeldHalves>,
    journal: &OwnedFd,
) -> Result<Option<Resumed>, Unresumable> {
    let has_half = Hold::has_half(Journal::mark_in(journal)?);
    match &held.attachment {
        Some(kept) if has_half => {
            let halves = halves.ok_or(HalfLost::Unknown)?;
            let resumed = halves.resume(held.id, kept, held.socket.as_fd());
            Ok(Some(resumed.map_err(HalfLost::Io)?))
        }
        None if has_half => Err(Damaged::NotAttached.into()),
        Some(_) => {
            // The earlier program had not started it, or had finished with it.
            link.detach(held.id);
            Ok(None)
        }
        None => Ok(None),
    }
}

/// Returns the incomplete message that precedes the queue: the kernel half's, if it has answered since the last note, or else the
/// noted one. The counter of xids in the session's word is updated likewise.
fn newest(half: &mut Resumed, words: &mut Words) -> (Vec<u8>, Stored) {
    let Some(kept) = half.half.held() else {
        return (Vec::new(), Stored::default());
    };
    let (taken, noted) = (
        kept.taken(),
        Stored {
            taken: words[1],
            word: words[2],
        },
    );
    if taken == noted.taken {
        return (kept.load_fragment(noted.word), noted);
    }
    words[0] = Session::word_with_xid(words[0], half.reclaimed.xid);
    let fragment = std::mem::take(&mut half.fragment);
    let word = kept.fragment_word(fragment.len());
    (fragment, Stored { taken, word })
}
