//! What TLS needs to be told, whether or not this program speaks it.

use crate::Address;
use std::path::PathBuf;

/// What TLS needs: three files, all in PEM, as `ovs-pki` makes them and `ovs-vsctl set-ssl` takes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsConfig {
    /// Our private key.
    pub private_key: PathBuf,
    /// Our certificate; behind it, if need be, those that lead from it to an authority that the peer knows.
    pub certificate: PathBuf,
    /// The certificates of the authorities by which peers are known.
    pub ca_cert: PathBuf,
    /// Whom we expect, in the form of `Certificate::is_called`; without it, whoever the authorities have signed.
    pub peer_name: Option<String>,
}

/// An address speaks TLS, and nothing was said about how.
#[derive(Debug, thiserror::Error)]
#[error(
    "{0} speaks TLS, which takes a private key, a certificate and CA certificates: --private-key, --certificate and --ca-cert; \
     `ovs-pki req+sign NAME switch` or `… controller` makes the first two, and docs/operating.md tells the rest"
)]
pub struct NoTlsConfig(pub Address);
