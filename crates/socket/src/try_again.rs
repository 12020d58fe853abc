//! Errors of sockets that do not block.

use std::io;

/// Returns `true` if a call on a socket failed only for now: repeat it when the socket is ready.
pub fn is_try_again(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}
