//! Where the next program goes on with a connection, whenever the earlier one died.
//!
//! **States** of a connection that is attached. The program dies in any of them, and between any two steps:
//!
//! ```text
//!             attach              hand_over
//!   not attached ──► in, program's ──────► in, kernel's
//!                      ▲   ▲ │  ▲            │
//!                      │   │ │  └────────────┘ something is passed, or reclaim
//!              step_in │   │ │ step_aside
//!                      │   └─┼── where something was passed meanwhile
//!                      └─ aside ◄┘
//! ```
//!
//! **Steps**, in this order. After each, the counts tell where the program was:
//!
//! - *attach* stores `written` and `unpassed`, then that it is attached, then enters the maps. Before it has entered them, nothing
//!   has been passed.
//! - *hand over*, once all replies are written, stores `written`, then makes the kernel the owner. While replies are on their way, the
//!   program writes nothing: what it has written is what is stored, or all that was written less the replies, whichever is more.
//! - *step aside*, once all replies are written and all that was passed is read, holds input back, leaves the map, and lets input in.
//!   Where something was passed before input was held back, it enters the map again. The next program lets input in, and enters the map
//!   where not all that was passed has been read.
//! - *step in*, with an empty queue, stores in `unpassed` all that came straight to the program, then enters the map. What it has read
//!   beyond `unpassed` was passed before, or came straight after the program last stepped aside.
//! - *let go* steps aside, notes in the journal what the kernel has done, and gives the session back. Before the note, the next program
//!   finds the connection aside; after it, it has none to take over.
//! - *leave* changes nothing: it is a death between two steps.

/// What the kernel and the session have counted, in bytes. The program owns the connection.
#[derive(Clone, Copy, Debug)]
pub struct Counts {
    /// Whether input goes through the kernel's programs.
    pub is_in: bool,
    /// What has left the socket's queue, also what the kernel has answered.
    pub consumed: u64,
    /// What was written to the socket, replies of the kernel's included.
    pub written: u64,
    /// The input that the kernel has answered.
    pub taken: u64,
    /// Its replies, written or not.
    pub replied: u64,
    /// What was passed to programs.
    pub passed: u64,
    /// What came straight to programs, as far as that is stored.
    pub unpassed: u64,
    /// What programs had written when the connection was last handed over.
    pub handed_over: u64,
}

/// Where programs were with the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Whether the socket must enter the map again: what was passed can be read in order only while it is there.
    pub enters: bool,
    /// What was read of what had come straight to programs before `unpassed` was stored, and since.
    pub before: u64,
    pub read_aside: u64,
    /// What was read of what was passed.
    pub read: u64,
    /// What programs have written.
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
