//! Errors of sockets that do not block, or only for a limited time.

use std::io;

/// Returns `true` if a call on a socket failed only for now and can be repeated when the socket is ready.
pub fn is_try_again(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

/// Returns `true` if a call on a socket with a time limit reached the limit, or was interrupted before.
pub fn has_timed_out(error: &io::Error) -> bool {
    is_try_again(error) || error.kind() == io::ErrorKind::TimedOut
}
