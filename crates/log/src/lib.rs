//! Log lines that others can cause, thinned: per subject and in sum.
//!
//! **Why.** Whatever a peer can cause it can cause without end: by connecting again and again with one datapath id it could
//! write megabytes of log a second, which fill disks, cost time, and hide what matters. This crate stands apart because the
//! controller, its programs and the switch need the same, and because the log that they share is one.
//!
//! **What.** [`error!`], [`warn!`], [`info!`] and [`debug!`] write what `tracing`'s macros do, but name first what the line is
//! about. A subject has [`BURST`] lines, and then one every [`INTERVAL`]; all together have [`BURST_IN_SUM`], and then
//! [`PER_SECOND_IN_SUM`]. A level has bounds of its own, so that no flood of lesser lines hides a graver one. The next line
//! about a subject says in its field `suppressed` how many were left out since the last. Whoever asked for `DEBUG` wants to see
//! more: there all is ten times as much.
//!
//! ```
//! let peer = "192.0.2.1";
//! for attempt in 0..1000 {
//!     // Twenty times in the log.
//!     urtica_log::warn!(about: peer, attempt, "connection refused");
//! }
//! ```
//!
//! **Which subject.** What an operator would look into: a switch by its datapath id, a peer by its address (not by its port,
//! which is another each time), a switch's port for what hosts behind it do.
//!
//! **Cost.** A lock and a look into a map for a line that the log would take, and nothing for others. At most [`SUBJECTS`]
//! are remembered for each level; beyond that, those are forgotten about which it has been quiet, and newcomers have the bound
//! in sum alone.
//!
//! **Thread-safety.** Any thread writes. No lock is held while a line is written.

#![forbid(unsafe_code)]

mod limit;

pub use limit::{
    BURST, BURST_IN_SUM, Bounds, INTERVAL, Limit, PER_SECOND_IN_SUM, SUBJECTS, Suppressed,
};
#[doc(hidden)]
pub use tracing;

use parking_lot::Mutex;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Instant;
use tracing::Level;

/// A peer's name without the port, which is another for each connection: `tcp:192.0.2.1:40312` is `tcp:192.0.2.1`.
pub fn without_port(peer: &str) -> &str {
    match peer.rsplit_once(':') {
        Some((place, port)) if port.parse::<u16>().is_ok() => place,
        _ => peer,
    }
}

/// One for each level, from the gravest on. The log is one for the process, and so is what bounds it.
static LIMITS: [Mutex<Option<Limit>>; 5] = [const { Mutex::new(None) }; 5];

/// Whether a line of this level about this subject is written now, and what was left out before it. For the macros.
#[doc(hidden)]
pub fn admit(level: Level, about: impl Hash) -> Option<Suppressed> {
    let (at, bounds) = match level {
        Level::ERROR => (0, Bounds::DEFAULT),
        Level::WARN => (1, Bounds::DEFAULT),
        Level::INFO => (2, Bounds::DEFAULT),
        Level::DEBUG => (3, Bounds::DEFAULT.times(10)),
        _ => (4, Bounds::DEFAULT.times(10)),
    };
    let mut subject = DefaultHasher::new();
    about.hash(&mut subject);
    let now = Instant::now();
    let mut limit = LIMITS[at].lock();
    let limit = limit.get_or_insert_with(|| Limit::new(bounds, now));
    limit.admit(subject.finish(), now)
}

/// Writes a line of a level, if that is wanted and there is room for it: [`warn!`] and its siblings.
#[doc(hidden)]
#[macro_export]
macro_rules! thinned {
    ($level:ident, $about:expr, $($line:tt)+) => {{
        const LEVEL: $crate::tracing::Level = $crate::tracing::Level::$level;
        if $crate::tracing::event_enabled!(LEVEL) { if let Some(left_out) = $crate::admit(LEVEL, $about) {
            if let Some(suppressed) = left_out.elsewhere() {
                $crate::tracing::event!(LEVEL, suppressed, "log lines about others were left out");
            }
            $crate::tracing::event!(LEVEL, suppressed = left_out.here(), $($line)+);
        } }
    }};
}

/// `tracing::error!` for a line that others can cause: begins with `about: SUBJECT`, anything that has a hash.
#[macro_export]
macro_rules! error {
    (about: $about:expr, $($line:tt)+) => { $crate::thinned!(ERROR, $about, $($line)+) };
}

/// `tracing::warn!` for a line that others can cause: begins with `about: SUBJECT`, anything that has a hash.
#[macro_export]
macro_rules! warn {
    (about: $about:expr, $($line:tt)+) => { $crate::thinned!(WARN, $about, $($line)+) };
}

/// `tracing::info!` for a line that others can cause: begins with `about: SUBJECT`, anything that has a hash.
#[macro_export]
macro_rules! info {
    (about: $about:expr, $($line:tt)+) => { $crate::thinned!(INFO, $about, $($line)+) };
}

/// `tracing::debug!` for a line that others can cause: begins with `about: SUBJECT`, anything that has a hash.
#[macro_export]
macro_rules! debug {
    (about: $about:expr, $($line:tt)+) => { $crate::thinned!(DEBUG, $about, $($line)+) };
}

/// `tracing::trace!` for a line that others can cause: begins with `about: SUBJECT`, anything that has a hash.
#[macro_export]
macro_rules! trace {
    (about: $about:expr, $($line:tt)+) => { $crate::thinned!(TRACE, $about, $($line)+) };
}

#[cfg(test)]
mod tests {
    use super::without_port;

    #[test]
    fn a_peer_is_the_same_whatever_its_port() {
        for (peer, place) in [
            ("tcp:192.0.2.1:40312", "tcp:192.0.2.1"),
            ("tcp:[2001:db8::1]:6653", "tcp:[2001:db8::1]"),
            ("punix:/run/of.sock", "punix:/run/of.sock"),
            ("s1", "s1"),
        ] {
            assert_eq!(without_port(peer), place);
        }
    }
}
