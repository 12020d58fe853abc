//! Keeps a program's sockets open while the program is killed, restarted or replaced.
//!
//! **Why it exists apart.** It handles sockets and bytes, and does not depend on OpenFlow. The holder must outlive all
//! programs, so it should be small.
//!
//! **What.** A [`Holder`] is a process with a Unix socket. A program [`attach`]es to it, passes its listening sockets and
//! connections to it ([`Link`]), and writes a [`Journal`] for each connection, which the holder keeps as well. Other descriptors may
//! belong to one connection or to all ([`Link::attach`], [`Link::keep_common`]). When the program has ended, by `kill -9` or
//! because another one replaces it, the next program receives all of them, and continues each connection at the exact byte
//! ([`Journal::recover`]). The holder neither reads from the sockets nor writes to them.
//!
//! systemd can be used instead of a holder, since it keeps descriptors for its services ([`attach_to_manager`]).
//!
//! **Access.** Only its owner and root can open the holder's socket, and both sides check each other's user.
//!
//! ```
//! use std::time::Duration;
//! use urtica_hold::{Holder, attach};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("hold.sock");
//! let holder = Holder::bind(&path)?;
//! let holder = std::thread::spawn(move || holder.run()); // a separate process in practice
//! let held = attach(&path, Duration::from_secs(30))?;
//! assert!(held.connections.is_empty()); // no earlier program left any
//! held.link.end();
//! # holder.join().expect("it does not panic")?;
//! # Ok(())
//! # }
//! ```

mod held;
mod holder;
mod journal;
mod left;
mod message;
mod progress;
mod store;

pub use held::{Held, HoldError, Link, Notice, attach, attach_to_manager};
pub use holder::Holder;
pub use journal::{Damaged, Journal, Note, RECORD_BYTES, Recovered, Words};
pub use left::{Attachment, HeldCommon, HeldConnection, HeldListener};
pub use message::Id;
pub use progress::{Progress, discard, widen_queue};
