//! Whether a peer's certificate is accepted.
//!
//! Chains are checked by `webpki`, through `rustls`. It knows no certificates of X.509's version 1, which older versions of
//! ovs-pki make: those have no extensions, and are accepted where a certificate of our file has signed them itself.

use super::certificate::{Certificate, date};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature,
    verify_tls13_signature_with_raw_key,
};
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore,
    SignatureScheme,
};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};
use x509_cert::certificate::Version;
use x509_cert::der::{Decode, Encode};

/// By what peers are known.
#[derive(Debug)]
pub(super) struct Trust {
    /// The file of the authorities, for sentences.
    path: PathBuf,
    /// Our own certificate, for sentences.
    ours: String,
    peer_name: Option<String>,
    authorities: Vec<CertificateDer<'static>>,
    roots: Arc<RootCertStore>,
    clients: Arc<dyn ClientCertVerifier>,
    algorithms: WebPkiSupportedAlgorithms,
}

/// Which end the peer is of the connection.
#[derive(Clone, Copy)]
enum Peer {
    Client,
    Server,
}

impl Trust {
    /// `None` where one of `authorities` is no certificate.
    pub fn new(
        path: PathBuf,
        ours: String,
        peer_name: Option<String>,
        authorities: Vec<CertificateDer<'static>>,
        provider: &Arc<CryptoProvider>,
    ) -> Option<Self> {
        let mut roots = RootCertStore::empty();
        for authority in &authorities {
            roots.add(authority.clone()).ok()?;
        }
        let roots = Arc::new(roots);
        let clients = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider.clone());
        Some(Self {
            path,
            ours,
            peer_name,
            authorities,
            clients: clients.build().ok()?,
            roots,
            algorithms: provider.signature_verification_algorithms,
        })
    }

    fn check(
        &self,
        shown: &CertificateDer,
        intermediates: &[CertificateDer],
        now: UnixTime,
        peer: Peer,
    ) -> Result<(), Error> {
        if self.authorities.iter().any(|known| known == shown) {
            return check_time(&parse(shown)?, now);
        }
        if is_version_1(shown)? {
            return self.check_version_1(shown, now);
        }
        match peer {
            Peer::Client => self
                .clients
                .verify_client_cert(shown, intermediates, now)
                .map(|_| ()),
            Peer::Server => verify_server_cert_signed_by_trust_anchor(
                &ParsedCertificate::try_from(shown)?,
                &self.roots,
                intermediates,
                now,
                self.algorithms.all,
            ),
        }
    }

    /// One of the authorities must have signed it.
    fn check_version_1(&self, shown: &CertificateDer, now: UnixTime) -> Result<(), Error> {
        let certificate = parse(shown)?;
        let issuer = self.authorities.iter().find(|authority| {
            parse(authority).is_ok_and(|authority| self.has_signed(&authority, &certificate))
        });
        match issuer {
            Some(_) => check_time(&certificate, now),
            None => Err(CertificateError::UnknownIssuer.into()),
        }
    }

    fn has_signed(
        &self,
        issuer: &x509_cert::Certificate,
        certificate: &x509_cert::Certificate,
    ) -> bool {
        let (key, signed) = (issuer.tbs_certificate(), certificate.tbs_certificate());
        let parts = (
            key.subject_public_key_info().algorithm.to_der(),
            certificate.signature_algorithm().to_der(),
            signed.to_der(),
        );
        let (Ok(key_kind), Ok(signature_kind), Ok(message)) = parts else {
            return false;
        };
        let key_bits = key.subject_public_key_info().subject_public_key.raw_bytes();
        signed.issuer() == key.subject()
            && signed.signature() == certificate.signature_algorithm()
            && self.algorithms.all.iter().any(|algorithm| {
                content(&key_kind) == Some(algorithm.public_key_alg_id().as_ref())
                    && content(&signature_kind) == Some(algorithm.signature_alg_id().as_ref())
                    && algorithm
                        .verify_signature(key_bits, &message, certificate.signature().raw_bytes())
                        .is_ok()
            })
    }

    /// What is wrong with a certificate, for people.
    fn explain(&self, error: &Error, certificate: &Certificate) -> String {
        let Error::InvalidCertificate(error) = error else {
            return format!("its certificate {certificate} cannot be used: {error}");
        };
        use CertificateError as E;
        match error {
            E::Expired | E::ExpiredContext { .. } => format!(
                "its certificate {certificate} expired on {}; expected a newer one, such as `ovs-pki req+sign NAME` makes",
                date(certificate.not_after())
            ),
            E::NotValidYet | E::NotValidYetContext { .. } => format!(
                "its certificate {certificate} is not valid before {}; is the clock right, here and where it was made?",
                date(certificate.not_before())
            ),
            E::UnknownIssuer | E::BadSignature => format!(
                "its certificate {certificate} was signed by '{}', whose certificate is not in {}; expected one that is: \
                 ovs-pki keeps that of switches in switchca/cacert.pem and that of controllers in controllerca/cacert.pem",
                certificate.issuer(),
                self.path.display()
            ),
            E::ApplicationVerificationFailure => format!(
                "its certificate has the name {}; expected '{}'",
                certificate
                    .names()
                    .iter()
                    .map(|name| format!("'{name}'"))
                    .collect::<Vec<_>>()
                    .join(", "),
                self.peer_name.as_deref().unwrap_or_default()
            ),
            other => format!("its certificate {certificate} cannot be used: {other}"),
        }
    }
}

fn parse(der: &CertificateDer) -> Result<x509_cert::Certificate, Error> {
    x509_cert::Certificate::from_der(der).map_err(|_| CertificateError::BadEncoding.into())
}

fn is_version_1(der: &CertificateDer) -> Result<bool, Error> {
    Ok(parse(der)?.tbs_certificate().version() == Version::V1)
}

fn check_time(certificate: &x509_cert::Certificate, now: UnixTime) -> Result<(), Error> {
    let validity = certificate.tbs_certificate().validity();
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(now.as_secs());
    if now > validity.not_after.to_system_time() {
        return Err(CertificateError::Expired.into());
    }
    if now < validity.not_before.to_system_time() {
        return Err(CertificateError::NotValidYet.into());
    }
    Ok(())
}

/// What a DER sequence of less than 128 bytes holds: `rustls` names algorithms without the sequence around them.
fn content(sequence: &[u8]) -> Option<&[u8]> {
    match sequence {
        [0x30, len, content @ ..] if usize::from(*len) == content.len() => Some(content),
        _ => None,
    }
}

/// Judges one peer, and keeps what it found out about it.
#[derive(Debug)]
pub(super) struct PeerVerifier {
    trust: Arc<Trust>,
    /// The certificate, or what is wrong with it.
    verdict: OnceLock<Result<Certificate, String>>,
}

impl PeerVerifier {
    pub fn new(trust: Arc<Trust>) -> Self {
        Self {
            trust,
            verdict: OnceLock::new(),
        }
    }

    /// The peer's certificate, once it is accepted.
    pub fn certificate(&self) -> Option<&Certificate> {
        self.verdict.get()?.as_ref().ok()
    }

    /// What is wrong with it.
    pub fn problem(&self) -> Option<&str> {
        self.verdict.get()?.as_ref().err().map(String::as_str)
    }

    /// Our own certificate, for sentences.
    pub fn ours(&self) -> &str {
        &self.trust.ours
    }

    fn verify(
        &self,
        shown: &CertificateDer,
        intermediates: &[CertificateDer],
        now: UnixTime,
        peer: Peer,
    ) -> Result<(), Error> {
        let certificate =
            Certificate::from_der(shown).ok_or(Error::from(CertificateError::BadEncoding))?;
        let checked = self
            .trust
            .check(shown, intermediates, now, peer)
            .and_then(|()| self.check_name(&certificate));
        let verdict = match &checked {
            Ok(()) => Ok(certificate),
            Err(error) => Err(self.trust.explain(error, &certificate)),
        };
        // A peer shows its certificate once.
        let _ = self.verdict.set(verdict);
        checked
    }

    fn check_name(&self, certificate: &Certificate) -> Result<(), Error> {
        match &self.trust.peer_name {
            Some(name) if !certificate.is_called(name) => {
                Err(CertificateError::ApplicationVerificationFailure.into())
            }
            _ => Ok(()),
        }
    }

    /// Whether the holder of the certificate's key has signed this, in TLS 1.2.
    fn check_signature_12(
        &self,
        message: &[u8],
        shown: &CertificateDer,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.trust.algorithms;
        if !is_version_1(shown)? {
            return verify_tls12_signature(message, shown, signature, algorithms);
        }
        let certificate = parse(shown)?;
        let key = certificate.tbs_certificate().subject_public_key_info();
        let kind = key
            .algorithm
            .to_der()
            .map_err(|_| Error::from(CertificateError::BadEncoding))?;
        let candidates = algorithms
            .mapping
            .iter()
            .filter(|(scheme, _)| *scheme == signature.scheme)
            .flat_map(|(_, candidates)| candidates.iter())
            .filter(|algorithm| content(&kind) == Some(algorithm.public_key_alg_id().as_ref()));
        let key = key.subject_public_key.raw_bytes();
        for algorithm in candidates {
            if algorithm
                .verify_signature(key, message, signature.signature())
                .is_ok()
            {
                return Ok(HandshakeSignatureValid::assertion());
            }
        }
        Err(CertificateError::BadSignature.into())
    }

    /// The same in TLS 1.3.
    fn check_signature_13(
        &self,
        message: &[u8],
        shown: &CertificateDer,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let certificate = parse(shown)?;
        let key = certificate.tbs_certificate().subject_public_key_info();
        let key = key
            .to_der()
            .map_err(|_| Error::from(CertificateError::BadEncoding))?;
        let key = SubjectPublicKeyInfoDer::from(key);
        verify_tls13_signature_with_raw_key(message, &key, signature, &self.trust.algorithms)
    }
}

impl ClientCertVerifier for PeerVerifier {
    /// None: Open vSwitch has one certificate, and whoever has several authorities need not tell everyone.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        shown: &CertificateDer,
        intermediates: &[CertificateDer],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.verify(shown, intermediates, now, Peer::Client)
            .map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_signature_12(message, shown, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_signature_13(message, shown, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.trust.algorithms.supported_schemes()
    }
}

impl ServerCertVerifier for PeerVerifier {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer,
        intermediates: &[CertificateDer],
        _name: &ServerName,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.verify(shown, intermediates, now, Peer::Server)
            .map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_signature_12(message, shown, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_signature_13(message, shown, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.trust.algorithms.supported_schemes()
    }
}
