//! When connections are accepted: not while the system lacks what it takes.
//!
//! A connection that cannot be accepted for want of a descriptor still waits, and its listener stays readable: who would go on
//! waiting for that would do nothing else. So accepting pauses, and is tried again.

use rustix::io::Errno;
use std::io;
use std::time::Duration;

/// How long to wait before accepting is tried again.
const PAUSE: Duration = Duration::from_millis(500);

/// Whether connections are accepted now.
#[derive(Debug, Default)]
pub(super) struct Accepting {
    paused_until: Option<Duration>,
    /// Whether there was a warning since a connection was last accepted.
    has_warned: bool,
}

impl Accepting {
    /// Notes what came of an attempt to accept. Returns whether accepting has to pause.
    pub fn note(&mut self, error: Option<&io::Error>, now: Duration) -> bool {
        let Some(error) = error else {
            self.has_warned = false;
            return false;
        };
        match Errno::from_io_error(error) {
            // Nothing waits any more.
            Some(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => return false,
            _ if self.has_warned => {}
            Some(Errno::MFILE | Errno::NFILE) => {
                tracing::warn!(%error, "controllers' connections are not accepted until there are descriptors again; raise the limit of open files (`ulimit -n`)");
            }
            _ => {
                tracing::warn!(%error, "a controller's connection is not accepted until the system allows it")
            }
        }
        self.has_warned = true;
        self.paused_until = Some(now + PAUSE);
        true
    }

    /// Whether a pause is over, which is told once.
    pub fn is_resumed(&mut self, now: Duration) -> bool {
        self.paused_until.take_if(|until| *until <= now).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(100);

    #[test]
    fn it_pauses_while_there_are_no_descriptors() {
        for lasting in [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM] {
            let mut accepting = Accepting::default();
            assert!(accepting.note(Some(&lasting.into()), NOW));
            assert!(accepting.has_warned);
            assert!(!accepting.is_resumed(NOW + PAUSE - Duration::from_nanos(1)));
            assert!(accepting.is_resumed(NOW + PAUSE) && !accepting.is_resumed(NOW + PAUSE));
            assert!(accepting.note(Some(&lasting.into()), NOW + PAUSE));
            assert!(!accepting.note(None, NOW + 2 * PAUSE) && !accepting.has_warned);
        }
    }

    #[test]
    fn it_goes_on_after_a_connection_that_has_gone() {
        let mut accepting = Accepting::default();
        for passing in [Errno::AGAIN, Errno::INTR, Errno::CONNABORTED] {
            assert!(!accepting.note(Some(&passing.into()), NOW) && !accepting.has_warned);
        }
    }
}
