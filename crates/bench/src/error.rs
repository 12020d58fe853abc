//! Errors of a benchmark.

use std::io;

use urtica_socket::TlsError;

/// The reason why a benchmark cannot run or finish.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Settings that contradict each other or cannot be run.
    #[error("{0}")]
    Invalid(String),
    /// No controller accepts connections at the address.
    #[error(
        "cannot connect to the controller at {address}: {source}; is it running, and does it listen there?"
    )]
    Connect {
        /// The controller's address, as given.
        address: String,
        /// The system's error.
        source: io::Error,
    },
    /// The TLS handshake with the controller failed.
    #[error("cannot set up TLS with the controller at {address}: {source}")]
    Tls {
        /// The controller's address, as given.
        address: String,
        /// The TLS error.
        source: TlsError,
    },
    /// The controller accepted connections, but completed no handshake.
    #[error("no switch completed its handshake with the controller at {address}: {reason}")]
    Handshake {
        /// The controller's address.
        address: String,
        /// The reason, if known.
        reason: String,
    },
    /// The run was stopped before the load started.
    #[error("interrupted before the load started; nothing was measured")]
    Interrupted,
    /// A system call failed.
    #[error("cannot {doing}: {source}")]
    System {
        /// The failed operation, as in "open the file x".
        doing: String,
        /// The system's error.
        source: io::Error,
    },
    /// A contender of `versus` could not be run.
    #[error("{0}")]
    Contender(String),
}

impl Error {
    /// Creates an error for invalid settings, whose message contains the expected ones.
    pub fn invalid(sentence: impl Into<String>) -> Self {
        Self::Invalid(sentence.into())
    }

    /// Adds the failed operation to a system error.
    pub fn system<E: Into<io::Error>>(doing: impl Into<String>) -> impl FnOnce(E) -> Self {
        let doing = doing.into();
        move |source| Self::System {
            doing,
            source: source.into(),
        }
    }
}
