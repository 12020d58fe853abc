//! Why a benchmark could not do its job, in sentences.

use std::io;

use urtica_socket::TlsError;

/// Why a benchmark could not do its job.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Settings that contradict each other or that nothing could run with.
    #[error("{0}")]
    Invalid(String),
    /// Nobody answers where the controller should be.
    #[error(
        "cannot connect to the controller at {address}: {source}; is it running, and does it listen there?"
    )]
    Connect {
        /// The controller's address, as it was given.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// The controller is there, and no TLS connection with it comes about.
    #[error("no TLS connection with the controller at {address}: {source}")]
    Tls {
        /// The controller's address, as it was given.
        address: String,
        /// Why not.
        source: TlsError,
    },
    /// The controller accepted connections and then never completed a handshake.
    #[error("no switch got through its handshake with the controller at {address}: {reason}")]
    Handshake {
        /// The controller's address.
        address: String,
        /// What is known about why.
        reason: String,
    },
    /// It was told to stop before the load began.
    #[error("interrupted before the load began; nothing was measured")]
    Interrupted,
    /// The system refused something.
    #[error("cannot {doing}: {source}")]
    System {
        /// What was tried, as in "open the file x".
        doing: String,
        /// What the system said.
        source: io::Error,
    },
    /// A contender in `versus` could not be run.
    #[error("{0}")]
    Contender(String),
}

impl Error {
    /// Settings that cannot be run with, and what was expected.
    pub fn invalid(sentence: impl Into<String>) -> Self {
        Self::Invalid(sentence.into())
    }

    /// Wraps what the system said with what was tried.
    pub fn system<E: Into<io::Error>>(doing: impl Into<String>) -> impl FnOnce(E) -> Self {
        let doing = doing.into();
        move |source| Self::System {
            doing,
            source: source.into(),
        }
    }
}
