//! What TLS needs to be told, whether or not this program speaks it.

use crate::Address;
use std::path::PathBuf;

/// What TLS needs: three files, all in PEM, as `ovs-pki` makes them and `ovs-vsctl set-ssl` takes them; and who is believed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TlsConfig {
    /// Our private key.
    pub private_key: PathBuf,
    /// Our certificate; behind it, if need be, those that lead from it to an authority that the peer knows.
    pub certificate: PathBuf,
    /// The certificates of the authorities by which peers are known.
    pub ca_cert: PathBuf,
    /// Lists of certificates that were revoked, one of each CA; without it, none was.
    pub crl: Option<PathBuf>,
    /// Whether the CA certificate that the first peer shows is saved as `ca_cert`, where there is no such file.
    pub bootstrap: bool,
    /// Whom we expect, in the form of `Certificate::is_called`; without it, whoever the authorities have signed.
    pub peer_name: Option<String>,
}

impl TlsConfig {
    /// A private key, a certificate, and the certificates of the authorities by which peers are known.
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

    /// Refuses certificates that these lists have, and those of CAs without a list. They are checked along the whole chain.
    pub fn crl(mut self, file: Option<PathBuf>) -> Self {
        self.crl = file;
        self
    }

    /// Takes the CA certificate of the first peer that shows one, where there is no file yet: whoever that is. It is saved, the
    /// connection ends, and later ones are checked by it.
    pub fn bootstrap(mut self, wanted: bool) -> Self {
        self.bootstrap = wanted;
        self
    }

    /// Accepts only the peer of this name.
    pub fn peer_name(mut self, name: Option<String>) -> Self {
        self.peer_name = name;
        self
    }
}

/// An address speaks TLS, and nothing was said about how.
#[derive(Debug, thiserror::Error)]
#[error(
    "{0} speaks TLS, which takes a private key, a certificate and CA certificates: --private-key, --certificate and --ca-cert; \
     `ovs-pki req+sign NAME switch` or `… controller` makes the first two, and docs/operating.md tells the rest"
)]
pub struct NoTlsConfig(pub Address);
