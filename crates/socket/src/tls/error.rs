//! Errors of TLS.

use super::verify::PeerVerifier;
use rustls::{AlertDescription, Error};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// An error of TLS. Its text names the expected state and the command for it; it never contains keys.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file of [`TlsConfig`](crate::TlsConfig) cannot be used.
    #[error("the {what} {} {problem}", path.display())]
    File {
        /// The kind of file.
        what: &'static str,
        /// Its path.
        path: PathBuf,
        /// The problem and its remedy.
        problem: String,
    },
    /// The peer's certificate is rejected.
    #[error("the peer is refused: {0}")]
    Certificate(String),
    /// The peer's CA certificate was saved ([`TlsConfig::bootstrap`](crate::TlsConfig::bootstrap)), and the connection
    /// closed.
    #[error(
        "the CA certificate {authority} of the peer was trusted on first use and saved in {}: compare its fingerprint with the CA's own; \
         the next connection is checked by it",
        path.display()
    )]
    Bootstrapped {
        /// The file with the certificate.
        path: PathBuf,
        /// The CA's name and fingerprint.
        authority: String,
    },
    /// The peer rejects us.
    #[error("the peer refuses us: {0}")]
    Refused(String),
    /// The peer's first bytes are not TLS.
    #[error(
        "the peer does not speak TLS; expected ssl: or pssl: there, as in `ovs-vsctl set-controller BRIDGE ssl:HOST:PORT`, or tcp: or \
         ptcp: here"
    )]
    NotTls,
    /// The peer has not finished the handshake in time.
    #[error("the TLS handshake did not finish within {0:?}")]
    Timeout(Duration),
    /// Too many handshakes were in progress, and this was the oldest.
    #[error("closed the oldest TLS handshake, as {0} others were in progress")]
    TooMany(usize),
    /// The peer closed the connection during the handshake.
    #[error("the peer closed the connection during the TLS handshake; its log may say why")]
    Closed {
        /// Whether it had sent anything.
        spoke: bool,
    },
    /// The peer violated the protocol, or does not support our versions of it.
    #[error("the TLS connection failed: {0}")]
    Protocol(String),
    /// A system call failed.
    #[error("the TLS connection failed: {0}")]
    Io(#[from] std::io::Error),
}

impl TlsError {
    pub(super) fn file(what: &'static str, path: &Path, problem: impl Into<String>) -> Self {
        Self::File {
            what,
            path: path.to_owned(),
            problem: problem.into(),
        }
    }

    /// Returns `true` for background noise of an open port, which an operator can ignore.
    pub fn is_noise(&self) -> bool {
        matches!(self, Self::Closed { spoke: false })
    }

    /// Returns `true` if an operator must check the error although the next connection succeeds: a CA was trusted without
    /// verification.
    pub fn is_warning(&self) -> bool {
        matches!(self, Self::Bootstrapped { .. })
    }

    /// Converts an error of the protocol. `verifier` has the problem with the peer's certificate, if any.
    pub(super) fn explain(error: &Error, verifier: &PeerVerifier) -> Self {
        if let Some(problem) = verifier.problem() {
            return Self::Certificate(problem.to_owned());
        }
        match error {
            Error::NoCertificatesPresented => Self::Certificate(
                "it has no certificate; on Open vSwitch, `ovs-vsctl set-ssl PRIVKEY CERT CACERT` gives it one".into(),
            ),
            Error::AlertReceived(alert) => Self::Refused(refusal(*alert, verifier)),
            Error::PeerIncompatible(_) => {
                Self::Protocol(format!("{error}; expected TLS 1.2 or 1.3"))
            }
            _ => Self::Protocol(error.to_string()),
        }
    }
}

/// Explains an alert about our certificate.
fn refusal(alert: AlertDescription, verifier: &PeerVerifier) -> String {
    let ours = verifier.ours();
    match alert {
        AlertDescription::UnknownCA
        | AlertDescription::DecryptError
        | AlertDescription::BadCertificate
        | AlertDescription::CertificateUnknown => format!(
            "it does not accept our certificate {ours}; its file of CA certificates must contain the one that signed ours"
        ),
        AlertDescription::CertificateExpired => {
            format!(
                "it reports that our certificate {ours} has expired; if it is still valid, the peer's clock is wrong"
            )
        }
        AlertDescription::CertificateRequired => {
            "it requires a certificate and received none".into()
        }
        AlertDescription::AccessDenied => {
            format!(
                "it does not expect our certificate {ours}; is it configured to expect another name?"
            )
        }
        other => format!("it sent the alert {other:?}"),
    }
}
