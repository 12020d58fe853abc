//! Rate limits for log lines that a peer can cause: per subject and in total.
//!
//! **Why.** A peer can repeat anything without end: by connecting again and again with one datapath id it could write
//! megabytes of log a second, which fill disks, cost time, and hide important lines. This is a separate crate because the
//! controller, its programs and the switch all need it and share one log.
//!
//! **What.** [`error!`], [`warn!`], [`info!`] and [`debug!`] write the lines of `tracing`'s macros, but first name the line's
//! subject. A subject may have [`BURST`] lines at once, and then one every [`INTERVAL`]; all subjects together may have
//! [`BURST_IN_SUM`], and then [`PER_SECOND_IN_SUM`]. Each level has its own limits, so that no flood of less severe lines
//! hides a more severe one. The next line about a subject reports the number of lines suppressed since the last one, in its
//! field `suppressed`. At the level `DEBUG` all limits are ten times as high.
//!
//! ```
//! let peer = "192.0.2.1";
//! for attempt in 0..1000 {
//!     // Twenty times in the log.
//!     urtica_log::warn!(about: peer, attempt, "connection refused");
//! }
//! ```
//!
//! **Which subject.** The one that an operator would investigate: a switch by its datapath id, a peer by its address
//! (without the port, which differs for each connection), a switch's port for the traffic of the hosts behind it.
//!
//! **Other limits.** [`TokenBucket`] also limits other input from a peer, such as requests.
//!
//! **Cost.** A lock and a map look-up for a line of an enabled level, and nothing for other lines. At most [`SUBJECTS`] are
//! remembered for each level; if there are more, quiet subjects are forgotten, and new ones are subject only to the total
//! limit.
//!
//! **Thread-safety.** Any thread may log. No lock is held while a line is written.

#![forbid(unsafe_code)]

mod bucket;
mod limit;

pub use bucket::{Rate, TokenBucket};
pub use limit::{
    BURST, BURST_IN_SUM, Bounds, INTERVAL, Limit, PER_SECOND_IN_SUM, SUBJECTS, Suppressed,
};
#[doc(hidden)]
pub use tracing;

use parking_lot::Mutex;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Instant;
use tracing::Level;

/// Returns a peer's name without the port, which differs for each connection: `tcp:192.0.2.1:40312` is `tcp:192.0.2.1`.
pub fn without_port(peer: &str) -> &str {
    match peer.rsplit_once(':') {
        Some((place, port)) if port.parse::<u16>().is_ok() => place,
        _ => peer,
    }
}

/// One limit for each level, most severe first. Global, like the log.
static LIMITS: [Mutex<Option<Limit>>; 5] = [const { Mutex::new(None) }; 5];

/// Returns the lines suppressed before this line if it may be written now, otherwise `None`. For the macros.
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

/// Writes a line of a level, if the level is enabled and the limits allow it: for [`warn!`] and its siblings.
#[doc(hidden)]
#[macro_export]
macro_rules! thinned {
    ($level:ident, $about:expr, $($line:tt)+) => {{
        const LEVEL: $crate::tracing::Level = $crate::tracing::Level::$level;
        if $crate::tracing::event_enabled!(LEVEL) { if let Some(left_out) = $crate::admit(LEVEL, $about) {
            if let Some(suppressed) = left_out.elsewhere() {
                $crate::tracing::event!(LEVEL, suppressed, "suppressed log lines about others");
            }
            $crate::tracing::event!(LEVEL, suppressed = left_out.here(), $($line)+);
        } }
    }};
}

/// Like `tracing::error!`, for a line that a peer can cause: starts with `about: SUBJECT`, any value that implements
/// `Hash`.
#[macro_export]
macro_rules! error {
    (about: $about:expr, $($line:tt)+) => { $crate::thinned!(ERROR, $about, $($line)+) };
}

/// Like `tracing::warn!`, for a line that a peer can cause: starts with `about: SUBJECT`, any value that implements `Hash`.
#[macro_export]
macro_rules! warn {
    (about: $about:expr, $($line:tt)+) => { $crate::thinned!(WARN, $about, $($line)+) };
}

/// Like `tracing::info!`, for a line that a peer can cause: starts with `about: SUBJECT`, any value that implements `Hash`.
#[macro_export]
macro_rules! info {
    (about: $about:expr, $($line:tt)+) => { $crate::thinned!(INFO, $about, $($line)+) };
}

/// Like `tracing::debug!`, for a line that a peer can cause: starts with `about: SUBJECT`, any value that implements
/// `Hash`.
#[macro_export]
macro_rules! debug {
    (about: $about:expr, $($line:tt)+) => { $crate::thinned!(DEBUG, $about, $($line)+) };
}

/// Like `tracing::trace!`, for a line that a peer can cause: starts with `about: SUBJECT`, any value that implements
/// `Hash`.
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
