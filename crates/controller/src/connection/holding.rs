//! Connections that outlive their program: adding one to the holder, leaving it, and resuming it in the next program.
//!
//! A handler's replies to a message are in the journal before the message counts as handled: see [`urtica_hold`].

use super::{Close, Connection};
use crate::batch::BatchContext;
use crate::kernel_half::{HeldHalves, Resumed};
use crate::mailbox::Token;
use crate::session::{Session, SessionConfig, Unusable};
use crate::transport::{Hold, Stored};
use rustix::fd::{AsFd, OwnedFd};
use std::io;
use std::sync::Arc;
use std::time::Instant;
use urtica_hold::{Damaged, HeldConnection, Journal, Link, Words, widen_queue};

/// The reason that ends a connection when its program leaves it to the next.
const LEFT: Close = Close::Asked("the next program continues it");

/// The reason why an earlier program's connection cannot be used.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) enum Unresumable {
    Damaged(#[from] Damaged),
    Session(#[from] Unusable),
    Half(#[from] HalfLost),
}

/// The reason why an earlier program's kernel half cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HalfLost {
    #[error("the kernel answered for its program, and this program cannot take over kernel halves")]
    Unknown,
    #[error("the kernel answered for its program, and cannot be taken over: {0}")]
    Io(#[from] io::Error),
}

/// The settings for resuming a session.
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
    /// If the holder cannot keep it; the connection works without.
    pub fn hold(&mut self, link: &Arc<Link>) -> io::Result<()> {
        self.transport.hold(link, self.session.peer())
    }

    /// Resumes a connection of an earlier program. [`Connection::take_up`] must follow, on its shard.
    ///
    /// # Errors
    /// If its journal is damaged, or this program cannot continue its session; it must be closed then.
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
            // An older program may not have widened it.
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
        let output = [recovered.unsent, asked].concat();
        let mut hold = Hold::resume(recovered.journal, Arc::clone(link), held.id, unnoted);
        hold.reclaim(fragment.len(), stored);
        connection.transport.resume(hold, output, fragment, half);
        Ok(connection)
    }

    /// Makes the switch of a resumed connection join, before any of its messages is handled.
    pub fn take_up(&mut self, batch: &mut BatchContext) {
        if let Some(info) = self.resumed.take() {
            self.join(info, batch);
        }
        let totals = batch.network.kernel_half_totals();
        if let Some(uncounted) = self.transport.count_half(totals) {
            self.count_reclaimed(&uncounted, batch);
        }
    }

    /// Closes the connection in this program. If it is held, the next program continues it, and its kernel half keeps
    /// running.
    pub fn leave(&mut self, batch: &mut BatchContext) {
        if let Err(error) = self.transport.commit_output(self.session.to_word()) {
            self.end(&error.into(), batch);
            return self.transport.end_hold();
        }
        self.transport.leave();
        self.end(&LEFT, batch);
    }
}

/// Reclaims the connection from the kernel half of an earlier program, if it has one.
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
            // The earlier program had not started the half, or no longer used it.
            link.detach(held.id);
            Ok(None)
        }
        None => Ok(None),
    }
}

/// Returns the incomplete message that precedes the queue: the kernel half's if it has answered since the last note,
/// otherwise the noted one. Updates the xid counter in the session's word likewise.
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
