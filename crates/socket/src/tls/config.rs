//! The files that TLS needs: read, checked, and reloaded when they change.

use super::certificate::{Certificate, date};
use super::error::TlsError;
use super::verify::{Names, PeerVerifier, Trust, Unusable};
use crate::{FileWatch, TlsConfig};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use rustls::server::NoServerSessionStorage;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, ServerConfig, client::Resumption};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use x509_cert::certificate::Rfc5280;
use x509_cert::crl::CertificateList;
use x509_cert::der::{Decode, Encode};

/// The time before the expiry of our certificate, or an authority's, from which on a warning is given each day.
pub const EXPIRY_WARNING: Duration = Duration::from_secs(14 * 24 * 3600);

const DAY: Duration = Duration::from_secs(24 * 3600);

const CRL: &str = "file of revoked certificates";
const KEY: &str = "private key";
const CERTIFICATE: &str = "certificate";
pub(super) const AUTHORITIES: &str = "file of CA certificates";

/// The files needed for TLS, read and checked.
#[derive(Clone)]
pub struct Tls {
    config: TlsConfig,
    pub(super) loaded: Arc<Loaded>,
    files: FileWatch,
    next_warning: SystemTime,
}

/// The content of the files.
pub(super) struct Loaded {
    provider: Arc<CryptoProvider>,
    key: Arc<SingleCertAndKey>,
    own: Certificate,
    authorities: Vec<Certificate>,
    /// The issuer and the time of the next update of each certificate revocation list.
    lists: Vec<(String, SystemTime)>,
    trust: Arc<Trust>,
}

/// A notice about the files in use.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Notice {
    /// The files have changed; new connections use the new files.
    #[error("new key and certificates are in use: {certificate}, valid until {}", date(certificate.not_after()))]
    Reloaded {
        /// The new certificate.
        certificate: Certificate,
    },
    /// The files have changed, but the new ones cannot be used.
    #[error("{0}; the old key and certificates stay in use")]
    Kept(TlsError),
    /// A certificate expires soon, or has expired.
    #[error(
        "the {what} {certificate} in {} {} on {}: replace it by a newer one, such as `ovs-pki req+sign NAME` makes; \
         it will be used without a restart",
        path.display(),
        if *is_over { "has expired" } else { "expires" },
        date(certificate.not_after())
    )]
    Expires {
        /// The kind of certificate: ours or an authority's.
        what: &'static str,
        /// Its file.
        path: PathBuf,
        /// The certificate.
        certificate: Certificate,
        /// Whether it has expired.
        is_over: bool,
    },
    /// A certificate revocation list is past the time of its next update.
    #[error(
        "the list of revoked certificates of '{issuer}' in {} was due to be replaced on {}; it stays in use: replace it by a newer one, such as \
         `openssl ca -gencrl` makes",
        path.display(),
        date(*next_update)
    )]
    OldList {
        /// The list's issuer.
        issuer: String,
        /// Its file.
        path: PathBuf,
        /// The time of the list's next update.
        next_update: SystemTime,
    },
}

impl Notice {
    /// Returns `true` if an operator has to act.
    pub fn is_warning(&self) -> bool {
        !matches!(self, Self::Reloaded { .. })
    }
}

/// Prints our certificate, but no part of the key.
impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tls").field(self.certificate()).finish()
    }
}

impl Tls {
    /// Reads the files and checks them.
    ///
    /// # Errors
    /// [`TlsError::File`], with the file and the remedy.
    pub fn load(config: TlsConfig) -> Result<Self, TlsError> {
        Self::load_at(config, SystemTime::now())
    }

    pub(super) fn load_at(config: TlsConfig, now: SystemTime) -> Result<Self, TlsError> {
        let paths = [&config.private_key, &config.certificate, &config.ca_cert];
        let paths = paths.into_iter().chain(&config.crl);
        let files = FileWatch::new(paths.cloned().collect());
        let loaded = Arc::new(Loaded::read(&config, now)?);
        Ok(Self {
            config,
            loaded,
            files,
            next_warning: SystemTime::UNIX_EPOCH,
        })
    }

    /// Returns our own certificate.
    pub fn certificate(&self) -> &Certificate {
        &self.loaded.own
    }

    /// Reads the files again if they have changed, but not since the last call: replacing three files needs time. Call this
    /// about once a second. `now` is the wall-clock time, by which certificates expire.
    pub fn refresh(&mut self, now: SystemTime) -> Vec<Notice> {
        let mut notices = Vec::new();
        notices.extend(self.reload(now));
        if now >= self.next_warning {
            self.next_warning = now + DAY;
            notices.extend(self.expiring(now));
            notices.extend(self.old_lists(now));
        }
        notices
    }

    fn reload(&mut self, now: SystemTime) -> Option<Notice> {
        if !self.files.has_changed() {
            return None;
        }
        match Loaded::read(&self.config, now) {
            Ok(loaded) => {
                let certificate = loaded.own.clone();
                self.loaded = Arc::new(loaded);
                self.next_warning = now;
                Some(Notice::Reloaded { certificate })
            }
            Err(error) => Some(Notice::Kept(error)),
        }
    }

    fn expiring(&self, now: SystemTime) -> Vec<Notice> {
        let own = (CERTIFICATE, &self.config.certificate, &self.loaded.own);
        let authorities = self.loaded.authorities.iter();
        let authorities =
            authorities.map(|authority| ("CA certificate", &self.config.ca_cert, authority));
        std::iter::once(own)
            .chain(authorities)
            .filter(|(_, _, certificate)| certificate.not_after() < now + EXPIRY_WARNING)
            .map(|(what, path, certificate)| Notice::Expires {
                what,
                path: path.clone(),
                certificate: certificate.clone(),
                is_over: certificate.not_after() < now,
            })
            .collect()
    }
}

impl Tls {
    fn old_lists(&self, now: SystemTime) -> impl Iterator<Item = Notice> {
        let path = self.config.crl.clone().unwrap_or_default();
        let old = self.loaded.lists.iter();
        old.filter(move |(_, next_update)| *next_update < now)
            .map(move |(issuer, next_update)| Notice::OldList {
                issuer: issuer.clone(),
                path: path.clone(),
                next_update: *next_update,
            })
    }
}

impl Loaded {
    fn read(config: &TlsConfig, now: SystemTime) -> Result<Self, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let chain = read_certificates(CERTIFICATE, &config.certificate)?;
        let own = parse(CERTIFICATE, &config.certificate, &chain[0])?;
        check_time(&own, &config.certificate, now)?;
        let key = read_key(&config.private_key)?;
        let key = provider.key_provider.load_private_key(key).map_err(|_| {
            let problem = "has a key of a kind that is not supported; expected RSA of 2048 to 8192 bits, ECDSA or Ed25519, such as \
                           `ovs-pki req NAME` makes";
            TlsError::file(KEY, &config.private_key, problem)
        })?;
        let certified = CertifiedKey::new(chain, key);
        check_match(&certified, config)?;
        let shown = read_authorities(config)?;
        let authorities = parse_authorities(&shown, &config.ca_cert, now)?;
        let crls = config.crl.as_deref().map(read_crls).transpose()?;
        let crls = crls.unwrap_or_default();
        let names = Names {
            authorities: config.ca_cert.clone(),
            crl: config.crl.clone(),
            ours: format!("{own} in {}", config.certificate.display()),
            peer: config.peer_name.clone(),
        };
        let lists = crls.iter().filter_map(about_list).collect();
        let trust = Trust::new(names, shown, crls, &provider).map_err(|reason| match reason {
            Unusable::Authority => no_certificate(AUTHORITIES, &config.ca_cert),
            Unusable::Crl => no_crl(config.crl.as_deref().unwrap_or(Path::new(""))),
        })?;
        Ok(Self {
            provider,
            key: Arc::new(SingleCertAndKey::from(certified)),
            own,
            authorities,
            lists,
            trust: Arc::new(trust),
        })
    }

    /// Creates a verifier for one peer.
    pub fn verifier(&self) -> Arc<PeerVerifier> {
        Arc::new(PeerVerifier::new(self.trust.clone()))
    }

    /// Returns the settings of one connection for the server, without session resumption.
    pub fn server(&self, verifier: Arc<PeerVerifier>) -> Result<Arc<ServerConfig>, rustls::Error> {
        let mut config = ServerConfig::builder_with_provider(self.provider.clone())
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(verifier)
            .with_cert_resolver(self.key.clone());
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Arc::new(config))
    }

    /// Returns the settings of one connection for the client.
    pub fn client(&self, verifier: Arc<PeerVerifier>) -> Result<Arc<ClientConfig>, rustls::Error> {
        let mut config = ClientConfig::builder_with_provider(self.provider.clone())
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_client_cert_resolver(self.key.clone());
        config.resumption = Resumption::disabled();
        config.enable_sni = false;
        Ok(Arc::new(config))
    }
}

fn read_file(what: &'static str, path: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|error| {
        let problem = format!(
            "cannot be read: {error}; `ovs-pki req+sign NAME switch` or `… controller` makes key and certificate, and ovs-pki keeps \
             the CA certificates in its folders switchca and controllerca"
        );
        TlsError::file(what, path, problem)
    })
}

/// Reads one or more certificates.
fn read_certificates(
    what: &'static str,
    path: &Path,
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let text = read_file(what, path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        _ => Err(no_certificate(what, path)),
    }
}

/// Reads the authorities' certificates. Returns an empty list if the file does not exist but will be created for the first
/// peer.
fn read_authorities(config: &TlsConfig) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let is_missing = matches!(config.ca_cert.try_exists(), Ok(false));
    match config.bootstrap && is_missing {
        true => Ok(Vec::new()),
        false => read_certificates(AUTHORITIES, &config.ca_cert),
    }
}

fn parse_authorities(
    shown: &[CertificateDer],
    path: &Path,
    now: SystemTime,
) -> Result<Vec<Certificate>, TlsError> {
    let authorities = shown.iter().map(|der| parse(AUTHORITIES, path, der));
    let authorities = authorities.collect::<Result<Vec<_>, _>>()?;
    let are_over = authorities.iter().all(|it| it.not_after() < now);
    if let Some(first) = authorities.first().filter(|_| are_over) {
        let expired = date(first.not_after());
        let problem =
            format!("has no certificate that is still valid: {first} expired on {expired}");
        return Err(TlsError::file(AUTHORITIES, path, problem));
    }
    Ok(authorities)
}

/// Reads one or more certificate revocation lists.
fn read_crls(path: &Path) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsError> {
    let text = std::fs::read(path).map_err(|error| {
        let problem =
            format!("cannot be read: {error}; make one by `openssl ca -gencrl`, or omit --crl");
        TlsError::file(CRL, path, problem)
    })?;
    let found: Result<Vec<_>, _> = CertificateRevocationListDer::pem_slice_iter(&text).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        _ => Err(no_crl(path)),
    }
}

fn no_crl(path: &Path) -> TlsError {
    let problem = "has no list of revoked certificates, or one that cannot be read; expected PEM, which begins with \
                   -----BEGIN X509 CRL-----, of version 2, such as `openssl ca -gencrl -crlexts EXTENSIONS` makes";
    TlsError::file(CRL, path, problem)
}

/// Returns a list's issuer and the time of its next update, if it has one.
fn about_list(der: &CertificateRevocationListDer) -> Option<(String, SystemTime)> {
    let list = CertificateList::<Rfc5280>::from_der(der)
        .ok()?
        .tbs_cert_list;
    let issuer = super::certificate::name_of(&list.issuer);
    Some((issuer, list.next_update?.to_system_time()))
}

fn no_certificate(what: &'static str, path: &Path) -> TlsError {
    let problem = "has no certificate, or one that cannot be read; expected PEM, which starts with -----BEGIN CERTIFICATE-----";
    TlsError::file(what, path, problem)
}

fn parse(what: &'static str, path: &Path, der: &CertificateDer) -> Result<Certificate, TlsError> {
    Certificate::from_der(der).ok_or_else(|| no_certificate(what, path))
}

/// Reads the private key. The error contains no part of the file.
fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_slice(&read_file(KEY, path)?).map_err(|_| {
        let problem = "has no private key without a password; expected PEM, which starts with -----BEGIN PRIVATE KEY----- or similar";
        TlsError::file(KEY, path, problem)
    })
}

/// Rejects a certificate that has expired, but not one that is not valid yet.
fn check_time(own: &Certificate, path: &Path, now: SystemTime) -> Result<(), TlsError> {
    if own.not_after() >= now {
        return Ok(());
    }
    let problem = format!(
        "has expired: {own} was valid until {}; make a new one, for instance by `ovs-pki req+sign NAME switch` or `… controller`",
        date(own.not_after())
    );
    Err(TlsError::file(CERTIFICATE, path, problem))
}

fn check_match(certified: &CertifiedKey, config: &TlsConfig) -> Result<(), TlsError> {
    let certificate = certified
        .cert
        .first()
        .and_then(|der| x509_cert::Certificate::from_der(der).ok());
    let shown = certificate.and_then(|parsed| {
        parsed
            .tbs_certificate()
            .subject_public_key_info()
            .to_der()
            .ok()
    });
    match (certified.key.public_key(), shown) {
        (Some(key), Some(shown)) if key.as_ref() != shown => {
            let problem = format!(
                "does not belong to the certificate in {}; expected the two that were made together",
                config.certificate.display()
            );
            Err(TlsError::file(KEY, &config.private_key, problem))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
