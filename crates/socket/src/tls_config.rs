//! The settings of TLS, which also exist in programs built without it.

use crate::Address;
use std::path::PathBuf;

/// The settings of TLS: three PEM files, as `ovs-pki` makes them and `ovs-vsctl set-ssl` accepts them, and the peers to trust.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TlsConfig {
    /// Our private key.
    pub private_key: PathBuf,
    /// Our certificate, optionally followed by intermediates up to an authority that the peer knows.
    pub certificate: PathBuf,
    /// The certificates of the authorities that verify peers.
    pub ca_cert: PathBuf,
    /// Certificate revocation lists, one for each CA; `None` disables the check for revocation.
    pub crl: Option<PathBuf>,
    /// Whether to save the CA certificate that the first peer presents as `ca_cert`, if the file does not exist.
    pub bootstrap: bool,
    /// The expected peer, in the form of `Certificate::is_called`; `None` accepts any peer signed by the authorities.
    pub peer_name: Option<String>,
}

impl TlsConfig {
    /// Creates settings from a private key, a certificate, and the certificates of the authorities that verify peers.
    pub fn new(
        private_key: impl Into<PathBuf>,
        certificate: impl Into<PathBuf>,
        ca_cert: impl Into<PathBuf>,
    ) -> Self {
        Self {
            private_key: private_key.into(),
            certificate: certificate.into(),
            ca_cert: ca_cert.into(),
            crl: None,
            bootstrap: false,
            peer_name: None,
        }
    }

    /// Refuses certificates in these lists, and certificates of CAs without a list. The whole chain is checked.
    pub fn crl(mut self, file: Option<PathBuf>) -> Self {
        self.crl = file;
        self
    }

    /// Saves the CA certificate of the first peer that presents one, whoever the peer is, if the file does not exist. That
    /// connection is closed, and later ones are verified with the saved certificate.
    pub fn bootstrap(mut self, wanted: bool) -> Self {
        self.bootstrap = wanted;
        self
    }

    /// Accepts only the peer with this name.
    pub fn peer_name(mut self, name: Option<String>) -> Self {
        self.peer_name = name;
        self
    }
}

/// The error that an address needs TLS but has no settings for it.
#[derive(Debug, thiserror::Error)]
#[error(
    "{0} uses TLS, which needs a private key, a certificate and CA certificates: --private-key, --certificate and --ca-cert; \
     `ovs-pki req+sign NAME switch` or `… controller` makes the first two; see docs/operating.md"
)]
pub struct NoTlsConfig(pub Address);
