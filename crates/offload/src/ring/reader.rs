//! A ring in order: its entries, and, behind what they have put there, the connections that the kernel has passed to the program.

use super::kernel::{RingHandle, RingKernel};
use super::link::{Link, Setup};
use super::queue::Entry;
use super::session::Memory;
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Weak;
use urtica_wire::Version;

/// What comes next.
pub(crate) enum Next {
    /// Messages: see [`Reader::entry`]. They stay until [`Reader::pass_over`].
    Messages,
    /// The kernel may have passed the input of this connection to the program. All that it had put into the ring before has been
    /// read.
    Passed(u64),
}

/// A ring, as far as it was filled when the program last [looked](Reader::look).
pub(crate) struct Reader {
    kernel: RingKernel,
    ring: RingHandle,
    /// Where the kernel's writing had got to.
    end: u64,
    /// Connections that were passed when the ring had no room to tell: due once `end` is reached.
    untold: Vec<u64>,
    sessions: HashMap<u64, Weak<Memory>>,
}

impl Reader {
    /// A new ring of at least so many bytes.
    pub fn open(kernel: &RingKernel, bytes: usize) -> io::Result<Self> {
        Ok(Self {
            kernel: kernel.clone(),
            ring: kernel.open_ring(bytes)?,
            end: 0,
            untold: Vec::new(),
            sessions: HashMap::new(),
        })
    }

    /// Prepares a connection's way into this ring. `connection` is a number that no other of this ring has or had; bit N of `types` says that
    /// messages of type N go there.
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
        // Those of connections that have ended.
        self.sessions
            .retain(|_, session| session.strong_count() > 0);
        self.sessions.insert(connection, link.memory());
        Ok(link)
    }

    /// Has [`Reader::next`] go on to what there is now.
    pub fn look(&mut self) {
        self.end = self.ring.queue.end();
    }

    /// Whether there is something in the ring.
    pub fn has_input(&mut self) -> bool {
        let end = self.ring.queue.end();
        !self.untold.is_empty() || self.ring.queue.has_next(end)
    }

    /// What comes next; `None` where all is read that there was at the last look.
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

    /// The messages that come next.
    pub fn entry(&self) -> Entry<'_> {
        self.ring.queue.entry()
    }

    /// Leaves them to the kernel, which writes others there.
    pub fn pass_over(&mut self) {
        self.ring.queue.pass_over();
    }

    /// Finds connections that are passed to the program without an entry that says so.
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
        // What they have put into the ring before is read before.
        self.look();
    }
}

impl AsFd for Reader {
    /// Readable while there is something in the ring.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ring.queue.as_fd()
    }
}
