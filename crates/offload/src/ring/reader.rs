//! Reads a ring in order: its entries, and after them the connections that the kernel has passed to the program.

use super::kernel::{RingHandle, RingKernel};
use super::link::{Link, Setup};
use super::queue::Entry;
use super::session::Memory;
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Weak;
use urtica_wire::Version;

/// The next item of a ring.
pub(crate) enum Next {
    /// Messages: see [`Reader::entry`]. They stay until [`Reader::pass_over`].
    Messages,
    /// The kernel may have passed the input of this connection to the program. All its earlier messages in the ring
    /// have been read.
    Passed(u64),
}

/// A ring, read up to its end when the program last [looked](Reader::look).
pub(crate) struct Reader {
    kernel: RingKernel,
    ring: RingHandle,
    /// The kernel's position at that time.
    end: u64,
    /// Connections that were passed when the ring had no space to report it; due once `end` is reached.
    untold: Vec<u64>,
    sessions: HashMap<u64, Weak<Memory>>,
}

impl Reader {
    /// Opens a new ring of at least this number of bytes.
    pub fn open(kernel: &RingKernel, bytes: usize) -> io::Result<Self> {
        Ok(Self {
            kernel: kernel.clone(),
            ring: kernel.open_ring(bytes)?,
            end: 0,
            untold: Vec::new(),
            sessions: HashMap::new(),
        })
    }

    /// Creates a connection's link to this ring. No other connection of this ring has or had the number `connection`. Bit N of
    /// `types` sends messages of type N there.
    pub fn attach(
        &mut self,
        connection: u64,
        socket: BorrowedFd,
        version: Version,
        types: u64,
        wants_records: bool,
    ) -> io::Result<Link> {
        let setup = Setup {
            connection,
            ring: self.ring.queue.number(),
            version,
            wants_records,
            types,
        };
        let link = Link::attach(&self.kernel, socket, &setup)?;
        // Removes sessions of connections that have ended.
        self.sessions
            .retain(|_, session| session.strong_count() > 0);
        self.sessions.insert(connection, link.memory());
        Ok(link)
    }

    /// Makes [`Reader::next`] continue up to the current end of the ring.
    pub fn look(&mut self) {
        self.end = self.ring.queue.end();
    }

    /// Returns whether the ring has input.
    pub fn has_input(&mut self) -> bool {
        let end = self.ring.queue.end();
        !self.untold.is_empty() || self.ring.queue.has_next(end)
    }

    /// Returns the next item; `None` if everything up to the last position has been read.
    pub fn next(&mut self) -> Option<Next> {
        loop {
            if self.ring.queue.has_next(self.end) {
                let entry = self.ring.queue.entry();
                let connection = entry.connection;
                if !entry.messages.is_empty() {
                    return Some(Next::Messages);
                }
                self.pass_over();
                return Some(Next::Passed(connection));
            }
            if self.ring.queue.take_untold() {
                self.find_passed();
            } else {
                return self.untold.pop().map(Next::Passed);
            }
        }
    }

    /// Returns the next messages.
    pub fn entry(&self) -> Entry<'_> {
        self.ring.queue.entry()
    }

    /// Releases the messages to the kernel, which may overwrite them.
    pub fn pass_over(&mut self) {
        self.ring.queue.pass_over();
    }

    /// Finds connections that were passed to the program without an entry that reports it.
    pub fn find_passed(&mut self) {
        let is_passed = |session: &Weak<Memory>| {
            let memory = session.upgrade();
            memory.is_some_and(|memory| memory.shared().owner.is_program())
        };
        let passed = self
            .sessions
            .iter()
            .filter(|(_, session)| is_passed(session));
        self.untold = passed.map(|(&connection, _)| connection).collect();
        // Their earlier messages in the ring must be read first.
        self.look();
    }
}

impl AsFd for Reader {
    /// Readable while the ring has entries.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ring.queue.as_fd()
    }
}
