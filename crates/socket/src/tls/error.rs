//! Why TLS cannot be spoken, in sentences.

use super::verify::PeerVerifier;
use rustls::{AlertDescription, Error};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why TLS cannot be spoken. Its text says what was expected and what to type; keys are never in it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file of [`TlsConfig`](crate::TlsConfig) cannot be used.
    #[error("the {what} {} {problem}", path.display())]
    File {
        /// Which of the three.
        what: &'static str,
        /// Where it is.
        path: PathBuf,
        /// What is wrong with it, and what to do.
        problem: String,
    },
    /// The peer's certificate is not accepted.
    #[error("the peer is refused: {0}")]
    Certificate(String),
    /// The CA certificate that the peer has shown was saved ([`TlsConfig::bootstrap`](crate::TlsConfig::bootstrap)), and the connection
    /// ended.
    #[error(
        "the CA certificate {authority} of the peer was taken on trust and saved in {}: compare its fingerprint with the CA's own; \
         the next connection is checked by it",
        path.display()
    )]
    Bootstrapped {
        /// Where it is.
        path: PathBuf,
        /// Its name and its fingerprint.
        authority: String,
    },
    /// The peer does not accept us.
    #[error("the peer refuses us: {0}")]
    Refused(String),
    /// The peer does not begin with TLS.
    #[error(
        "the peer does not speak TLS; expected ssl: or pssl: there, as in `ovs-vsctl set-controller BRIDGE ssl:HOST:PORT`, or tcp: or \
         ptcp: here"
    )]
    NotTls,
    /// The peer did not finish the handshake in time.
    #[error("the TLS handshake was not over within {0:?}")]
    Timeout(Duration),
    /// There are too many connections whose handshake is under way, and this was the oldest.
    #[error("its TLS handshake took longest while {0} others were under way")]
    TooMany(usize),
    /// The peer closed the connection during the handshake.
    #[error("the peer closed the connection during the TLS handshake; its log may say why")]
    Closed {
        /// Whether it had sent anything.
        spoke: bool,
    },
    /// The peer violated the protocol, or has no version of it in common with us.
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

    /// Whether this is the background noise of an open port and not worth an operator's attention.
    pub fn is_noise(&self) -> bool {
        matches!(self, Self::Closed { spoke: false })
    }

    /// Whether somebody has to look at what it tells before all goes on as if nothing had been: a CA was taken on trust.
    pub fn is_warning(&self) -> bool {
        matches!(self, Self::Bootstrapped { .. })
    }

    /// What an error of the protocol means to people. `verifier` knows what is wrong with the peer's certificate, if anything is.
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

/// What an alert means for the certificate that we have shown.
fn refusal(alert: AlertDescription, verifier: &PeerVerifier) -> String {
    let ours = verifier.ours();
    match alert {
        AlertDescription::UnknownCA
        | AlertDescription::DecryptError
        | AlertDescription::BadCertificate
        | AlertDescription::CertificateUnknown => format!(
            "it does not accept our certificate {ours}; expected that its file of CA certificates has the one that signed it"
        ),
        AlertDescription::CertificateExpired => {
            format!(
                "it says that our certificate {ours} has expired; if that is not so, its clock is wrong"
            )
        }
        AlertDescription::CertificateRequired => "it wants a certificate, and got none".into(),
        AlertDescription::AccessDenied => {
            format!("it does not expect our certificate {ours}; is another name demanded there?")
        }
        other => format!("it sent the alert {other:?}"),
    }
}
