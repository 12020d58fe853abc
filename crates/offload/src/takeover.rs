//! The state from which the next program continues a connection, whenever the earlier one died.
//!
//! **States** of an attached connection. The program may die in any of them, and between any two steps:
//!
//! ```text
//!             attach              hand_over
//!   not attached ──► in, program's ──────► in, kernel's
//!                      ▲   ▲ │  ▲            │
//!                      │   │ │  └────────────┘ input is passed, or reclaim
//!              step_in │   │ │ step_aside
//!                      │   └─┼── if input was passed in between
//!                      └─ aside ◄┘
//! ```
//!
//! **Steps**, in this order. After each, the counts show the program's progress:
//!
//! - *attach* stores `written` and `unpassed`, then that it is attached, then enters the maps. Before it has entered them, no
//!   input has been passed.
//! - *hand over*, once all replies are written, stores `written`, then makes the kernel the owner. While replies are in
//!   transit, the program does not write: the number of bytes that it has written is the stored one, or that of all bytes
//!   written minus the replies, whichever is greater.
//! - *step aside*, once all replies are written and all passed input is read, holds input back, leaves the map, and lets input
//!   in. If input was passed before it was held back, it enters the map again. The next program lets input in, and enters the
//!   map if not all passed input has been read.
//! - *step in*, with an empty queue, stores the number of bytes received directly in `unpassed`, then enters the map. The bytes
//!   that the program has read beyond `unpassed` were either passed before, or received directly after it last stepped aside.
//! - *let go* steps aside, stores the kernel's work in the journal, and returns the session. If the journal is not yet written,
//!   the next program finds the connection aside; afterwards, it finds none to take over.
//! - *leave* changes nothing: it is like a death between two steps.

/// Byte counts of the kernel and the session, when the program owns the connection.
#[derive(Clone, Copy, Debug)]
pub struct Counts {
    /// Whether input passes through the kernel's programs.
    pub is_in: bool,
    /// Bytes that have left the socket's queue, including those that the kernel has answered.
    pub consumed: u64,
    /// Bytes written to the socket, including the kernel's replies.
    pub written: u64,
    /// Input that the kernel has answered.
    pub taken: u64,
    /// The kernel's replies, written or not.
    pub replied: u64,
    /// Input passed to programs.
    pub passed: u64,
    /// Input received directly by programs, as stored.
    pub unpassed: u64,
    /// Bytes that programs had written when the connection was last handed over.
    pub handed_over: u64,
}

/// The programs' progress in the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Whether the socket must enter the map again, because passed input can be read in order only there.
    pub enters: bool,
    /// Bytes received directly and read, before `unpassed` was stored and since.
    pub before: u64,
    pub read_aside: u64,
    /// Passed bytes that programs have read.
    pub read: u64,
    /// Bytes that programs have written.
    pub written: u64,
}

impl Counts {
    pub fn position(&self) -> Position {
        let read = self.consumed.saturating_sub(self.taken);
        let read_since = read.saturating_sub(self.unpassed);
        let enters = !self.is_in && read_since < self.passed;
        let read = match self.is_in || enters {
            true => read_since,
            false => self.passed,
        };
        let written = self.written.saturating_sub(self.replied);
        Position {
            enters,
            before: self.unpassed,
            read_aside: read_since - read,
            read,
            written: written.max(self.handed_over),
        }
    }
}

#[cfg(test)]
mod tests;
