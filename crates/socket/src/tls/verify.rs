//! Verification of a peer's certificate.
//!
//! `webpki` verifies chains, through `rustls`. It does not support X.509 version 1 certificates, which older versions of
//! ovs-pki make. They have no extensions, and are accepted if a certificate in our file has signed them directly.

use super::certificate::{Certificate, date};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_cert_signed_by_trust_anchor};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature,
    verify_tls13_signature_with_raw_key,
};
use rustls::pki_types::{
    CertificateDer, CertificateRevocationListDer, ServerName, SubjectPublicKeyInfoDer, UnixTime,
};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ParsedCertificate, VerifierBuilderError, WebPkiClientVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore,
    SignatureScheme,
};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};
use x509_cert::certificate::Version;
use x509_cert::der::{Decode, Encode};

/// The server name for `rustls`, which has no effect: certificates of ovs-pki contain no host names, and none is sent.
pub(super) const ANYBODY: &str = "openflow.invalid";

/// The trusted authorities.
#[derive(Debug)]
pub(super) struct Trust {
    /// Our own and the expected name, for messages.
    names: Names,
    authorities: Vec<CertificateDer<'static>>,
    /// `None` if no authority is known yet: the first peer's will be saved.
    chains: Option<Chains>,
    provider: Arc<CryptoProvider>,
    algorithms: WebPkiSupportedAlgorithms,
}

/// Names for the text of a verdict.
#[derive(Clone, Debug)]
pub(super) struct Names {
    /// The file of the authorities.
    pub authorities: PathBuf,
    /// The file of the lists of revoked certificates.
    pub crl: Option<PathBuf>,
    /// Our own certificate.
    pub ours: String,
    pub peer: Option<String>,
}

/// The verifiers of chains of certificates up to an authority.
#[derive(Debug)]
struct Chains {
    roots: Arc<RootCertStore>,
    clients: Arc<dyn ClientCertVerifier>,
    /// The verifier that checks certificate revocation lists, if they are configured.
    servers: Option<Arc<WebPkiServerVerifier>>,
}

/// The reason why peers cannot be verified.
pub(super) enum Unusable {
    /// An authority's certificate.
    Authority,
    /// A list of revoked certificates.
    Crl,
}

/// The role of the peer in the connection.
#[derive(Clone, Copy)]
enum Peer {
    Client,
    Server,
}

impl Chains {
    fn new(
        authorities: &[CertificateDer<'static>],
        crls: Vec<CertificateRevocationListDer<'static>>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, Unusable> {
        let mut roots = RootCertStore::empty();
        for authority in authorities {
            let added = roots.add(authority.clone());
            added.map_err(|_| Unusable::Authority)?;
        }
        let roots = Arc::new(roots);
        let reason = |error| match error {
            VerifierBuilderError::InvalidCrl(_) => Unusable::Crl,
            _ => Unusable::Authority,
        };
        let clients = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider.clone())
            .with_crls(crls.clone())
            .build()
            .map_err(reason)?;
        let servers = || {
            WebPkiServerVerifier::builder_with_provider(roots.clone(), provider.clone())
                .with_crls(crls.clone())
                .build()
        };
        let servers = (!crls.is_empty()).then(servers).transpose();
        Ok(Self {
            servers: servers.map_err(reason)?,
            roots,
            clients,
        })
    }

    fn check(
        &self,
        shown: &CertificateDer,
        intermediates: &[CertificateDer],
        now: UnixTime,
        peer: Peer,
        algorithms: &WebPkiSupportedAlgorithms,
    ) -> Result<(), Error> {
        match (peer, &self.servers) {
            (Peer::Client, _) => {
                let verified = self.clients.verify_client_cert(shown, intermediates, now);
                verified.map(|_| ())
            }
            (Peer::Server, None) => verify_server_cert_signed_by_trust_anchor(
                &ParsedCertificate::try_from(shown)?,
                &self.roots,
                intermediates,
                now,
                algorithms.all,
            ),
            (Peer::Server, Some(servers)) => {
                let anybody = ServerName::try_from(ANYBODY)
                    .map_err(|error| Error::General(error.to_string()))?;
                use CertificateError as E;
                match servers.verify_server_cert(shown, intermediates, &anybody, &[], now) {
                    // The name is checked last; certificates of ovs-pki contain none.
                    Err(Error::InvalidCertificate(
                        E::NotValidForName | E::NotValidForNameContext { .. },
                    )) => Ok(()),
                    verified => verified.map(|_| ()),
                }
            }
        }
    }
}

impl Trust {
    /// Creates the trust in `authorities`; if empty, the first peer's authority will be saved.
    pub fn new(
        names: Names,
        authorities: Vec<CertificateDer<'static>>,
        crls: Vec<CertificateRevocationListDer<'static>>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, Unusable> {
        let chains = match authorities[..] {
            [] => None,
            _ => Some(Chains::new(&authorities, crls, provider)?),
        };
        Ok(Self {
            names,
            authorities,
            chains,
            provider: provider.clone(),
            algorithms: provider.signature_verification_algorithms,
        })
    }

    /// Returns the authority that a peer presents behind its own certificate, if it has signed that certificate. It is
    /// unverified.
    fn introduce(
        &self,
        shown: &CertificateDer,
        intermediates: &[CertificateDer],
        now: UnixTime,
        peer: Peer,
    ) -> Result<CertificateDer<'static>, Error> {
        let last = intermediates.last().unwrap_or(shown).clone().into_owned();
        let authority = parse(&last)?;
        if !self.has_signed(&authority, &authority) {
            return Err(CertificateError::InvalidPurpose.into());
        }
        let names = self.names.clone();
        let trust = Self::new(names, vec![last.clone()], Vec::new(), &self.provider)
            .map_err(|_| Error::from(CertificateError::BadEncoding))?;
        trust.check(shown, intermediates, now, peer)?;
        Ok(last)
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
        match &self.chains {
            Some(chains) => chains.check(shown, intermediates, now, peer, &self.algorithms),
            None => Err(CertificateError::UnknownIssuer.into()),
        }
    }

    /// Accepts a certificate that one of the authorities has signed. `webpki` cannot check it against revocation lists, so it
    /// is refused if they are configured.
    fn check_version_1(&self, shown: &CertificateDer, now: UnixTime) -> Result<(), Error> {
        if self.names.crl.is_some() {
            return Err(CertificateError::UnknownRevocationStatus.into());
        }
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

    /// Explains the problem with a certificate.
    fn explain(&self, error: &Error, certificate: &Certificate) -> String {
        let crl = self.names.crl.as_deref().unwrap_or(Path::new("")).display();
        let error = match error {
            Error::InvalidCertificate(error) => error,
            Error::InvalidCertRevocationList(problem) => {
                return format!(
                    "cannot check whether its certificate {certificate} was revoked: the list of '{}' in {crl} cannot be used: \
                     {problem:?}; expected one made by this CA",
                    certificate.issuer()
                );
            }
            error => return format!("its certificate {certificate} cannot be used: {error}"),
        };
        use CertificateError as E;
        match error {
            E::InvalidPurpose if self.chains.is_none() => format!(
                "it does not send the certificate of its CA, which would be saved as {}; expected that its file of certificates has \
                 the CA's behind its own, or a file of CA certificates here",
                self.names.authorities.display()
            ),
            E::Revoked => format!(
                "its certificate {certificate} was revoked according to {crl}; expected another one, such as `ovs-pki req+sign NAME` makes"
            ),
            E::UnknownRevocationStatus => format!(
                "cannot check whether its certificate {certificate} was revoked: expected that {crl} has a list of '{}', such as \
                 `openssl ca -gencrl` makes, and a certificate of X.509's version 3",
                certificate.issuer()
            ),
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
                self.names.authorities.display()
            ),
            E::ApplicationVerificationFailure => format!(
                "its certificate has the name {}; expected '{}'",
                certificate
                    .names()
                    .iter()
                    .map(|name| format!("'{name}'"))
                    .collect::<Vec<_>>()
                    .join(", "),
                self.names.peer.as_deref().unwrap_or_default()
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

/// Returns the content of a DER sequence of less than 128 bytes: `rustls` identifies algorithms by the sequence's content
/// alone.
fn content(sequence: &[u8]) -> Option<&[u8]> {
    match sequence {
        [0x30, len, content @ ..] if usize::from(*len) == content.len() => Some(content),
        _ => None,
    }
}

/// Verifies one peer, and stores the result.
#[derive(Debug)]
pub(super) struct PeerVerifier {
    trust: Arc<Trust>,
    /// The certificate, or the problem with it.
    verdict: OnceLock<Result<Certificate, String>>,
    /// The authority that the peer has presented, if none was known.
    introduced: OnceLock<CertificateDer<'static>>,
}

impl PeerVerifier {
    pub fn new(trust: Arc<Trust>) -> Self {
        Self {
            trust,
            verdict: OnceLock::new(),
            introduced: OnceLock::new(),
        }
    }

    /// Returns the authority to save and its file, if none was known and the peer has presented one. Call this when the peer
    /// has proven that it holds its certificate's key.
    pub fn introduction(&self) -> Option<(&Path, &CertificateDer<'static>)> {
        Some((&self.trust.names.authorities, self.introduced.get()?))
    }

    /// Returns the peer's certificate, once it is accepted.
    pub fn certificate(&self) -> Option<&Certificate> {
        self.verdict.get()?.as_ref().ok()
    }

    /// Returns the problem with the certificate.
    pub fn problem(&self) -> Option<&str> {
        self.verdict.get()?.as_ref().err().map(String::as_str)
    }

    /// Returns our own certificate's name, for messages.
    pub fn ours(&self) -> &str {
        &self.trust.names.ours
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
            .check_chain(shown, intermediates, now, peer)
            .and_then(|()| self.check_name(&certificate));
        let verdict = match &checked {
            Ok(()) => Ok(certificate),
            Err(error) => Err(self.trust.explain(error, &certificate)),
        };
        // A peer presents its certificate once.
        let _ = self.verdict.set(verdict);
        checked
    }

    fn check_chain(
        &self,
        shown: &CertificateDer,
        intermediates: &[CertificateDer],
        now: UnixTime,
        peer: Peer,
    ) -> Result<(), Error> {
        if self.trust.chains.is_some() {
            return self.trust.check(shown, intermediates, now, peer);
        }
        let authority = self.trust.introduce(shown, intermediates, now, peer)?;
        // A peer presents its certificate once.
        let _ = self.introduced.set(authority);
        Ok(())
    }

    fn check_name(&self, certificate: &Certificate) -> Result<(), Error> {
        match &self.trust.names.peer {
            Some(name) if !certificate.is_called(name) => {
                Err(CertificateError::ApplicationVerificationFailure.into())
            }
            _ => Ok(()),
        }
    }

    /// Verifies a signature by the certificate's key in TLS 1.2.
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

    /// Verifies a signature by the certificate's key in TLS 1.3.
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
    /// Returns an empty list: Open vSwitch has one certificate, and a list would reveal our authorities to every peer.
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
