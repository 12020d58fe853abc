//! Authorities and certificates for tests.

use super::{Tls, TlsError};
use crate::tls::session::Session;
use crate::{Stream, TlsConfig};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DnType, IsCa, Issuer,
    KeyIdMethod, KeyPair, RevokedCertParams, SigningKey,
};
use rustix::fd::OwnedFd;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, Error, SignatureScheme};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};
use tempfile::TempDir;
use x509_cert::der::{Decode, Encode};

/// Returns the start of a year, or up to about a day before.
pub fn year(year: i32) -> SystemTime {
    let time = rcgen::date_time_ymd(year, 1, 1);
    SystemTime::UNIX_EPOCH + Duration::from_secs(time.unix_timestamp() as u64)
}

/// A certificate authority.
pub struct Authority {
    /// Its own certificate.
    pub pem: String,
    der: Vec<u8>,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key.
pub struct Made {
    pub der: Vec<u8>,
    pub pem: String,
    pub key: String,
}

impl Authority {
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let own = params.self_signed(&key).unwrap();
        Self {
            pem: own.pem(),
            der: own.der().to_vec(),
            issuer: Issuer::new(params, key),
        }
    }

    /// Returns its own certificate and key.
    pub fn own(&self) -> Made {
        Made {
            der: self.der.clone(),
            pem: self.pem.clone(),
            key: self.issuer.key().serialize_pem(),
        }
    }

    /// Signs a certificate modified by `change`.
    pub fn sign(&self, change: impl FnOnce(&mut CertificateParams)) -> Made {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Made {
            der: certificate.der().to_vec(),
            pem: certificate.pem(),
            key: key.serialize_pem(),
        }
    }

    /// Makes its certificate revocation list, valid for a year from the start of `year`.
    pub fn revoke(&self, revoked: &[&Made], year: i32) -> String {
        let serial = |made: &&Made| {
            let parsed = x509_cert::Certificate::from_der(&made.der).unwrap();
            let serial = parsed.tbs_certificate().serial_number().as_bytes().to_vec();
            RevokedCertParams {
                serial_number: serial.into(),
                revocation_time: rcgen::date_time_ymd(year, 1, 1),
                reason_code: None,
                invalidity_date: None,
            }
        };
        let list = CertificateRevocationListParams {
            this_update: rcgen::date_time_ymd(year, 1, 1),
            next_update: rcgen::date_time_ymd(year + 1, 1, 1),
            crl_number: 1.into(),
            issuing_distribution_point: None,
            revoked_certs: revoked.iter().map(serial).collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        list.signed_by(&self.issuer).unwrap().pem().unwrap()
    }

    /// Signs a certificate with this common name.
    pub fn sign_name(&self, name: &str) -> Made {
        self.sign(|params| params.distinguished_name.push(DnType::CommonName, name))
    }
}

/// The files of one side.
pub struct Files {
    folder: TempDir,
}

impl Files {
    /// Writes the side's key and certificate, and its trusted authorities.
    pub fn new(own: &Made, trusted: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let files = Self { folder };
        files.write("key.pem", &own.key);
        files.write("cert.pem", &own.pem);
        files.write("ca.pem", trusted);
        files
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn config(&self) -> TlsConfig {
        TlsConfig::new(
            self.path("key.pem"),
            self.path("cert.pem"),
            self.path("ca.pem"),
        )
    }

    pub fn load(&self) -> Tls {
        Tls::load(self.config()).unwrap()
    }
}

/// Returns two connected sockets for one side: its own and the test's.
pub fn pair() -> (OwnedFd, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    theirs.set_nonblocking(true).unwrap();
    (ours.into(), theirs)
}

/// Two sides whose handshake the test runs.
pub struct Ends {
    pub client: (Session, OwnedFd),
    pub server: (Session, OwnedFd),
}

/// The outcome of a handshake.
pub type Outcome = Result<(), String>;

impl Ends {
    /// Connects both sides by one pair of sockets.
    pub fn new(client: &Tls, server: &Tls) -> Self {
        let (one, other) = pair();
        Self {
            client: (Session::client(client).unwrap(), one),
            server: (Session::server(server).unwrap(), other.into()),
        }
    }

    /// Runs the handshake; returns the outcomes of the client and of the server.
    pub fn shake_hands(&mut self) -> (Outcome, Outcome) {
        let (mut client, mut server) = (Ok(false), Ok(false));
        for _ in 0..20 {
            step(&mut client, &mut self.client);
            step(&mut server, &mut self.server);
        }
        let settle = |outcome: Result<bool, TlsError>| match outcome {
            Ok(true) => Ok(()),
            Ok(false) => Err("still in progress".to_owned()),
            Err(error) => Err(error.to_string()),
        };
        (settle(client), settle(server))
    }

    pub fn into_streams(self) -> [Stream; 2] {
        [self.client, self.server].map(|(session, socket)| Stream::with_tls(socket, session))
    }
}

fn step(outcome: &mut Result<bool, TlsError>, (session, socket): &mut (Session, OwnedFd)) {
    if matches!(outcome, Ok(false)) {
        *outcome = session.handshake(socket);
    }
}

/// Signs an X.509 version 1 certificate, which has no version field and no extensions.
pub fn version_1(authority: &Authority, name: &str) -> Made {
    let made = authority.sign_name(name);
    let newer = x509_cert::Certificate::from_der(&made.der).unwrap();
    let signed = newer.tbs_certificate();
    let parts = [
        signed.serial_number().to_der(),
        signed.signature().to_der(),
        signed.issuer().to_der(),
        signed.validity().to_der(),
        signed.subject().to_der(),
        signed.subject_public_key_info().to_der(),
    ];
    let signed = sequence(&parts.map(Result::unwrap).concat());
    let signature = authority.issuer.key().sign(&signed).unwrap();
    let kind = newer.signature_algorithm().to_der().unwrap();
    // A bit string starts with the number of unused bits.
    let signature = tagged(3, &[&[0][..], &signature].concat());
    let der = sequence(&[signed, kind, signature].concat());
    let pem = x509_cert::der::pem::encode_string("CERTIFICATE", Default::default(), &der).unwrap();
    Made { der, pem, ..made }
}

fn sequence(content: &[u8]) -> Vec<u8> {
    tagged(0x30, content)
}

fn tagged(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).unwrap().to_be_bytes();
    let mut der = match length {
        [0, short @ ..0x80] => vec![tag, short],
        [0, medium] => vec![tag, 0x81, medium],
        [high, low] => vec![tag, 0x82, high, low],
    };
    der.extend_from_slice(content);
    der
}

/// Accepts every server.
#[derive(Debug)]
pub struct Credulous;

impl ServerCertVerifier for Credulous {
    fn verify_server_cert(
        &self,
        _: &CertificateDer,
        _: &[CertificateDer],
        _: &ServerName,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        rustls::crypto::ring::default_provider()
            .signature_verification_algorithms
            .supported_schemes()
    }
}
