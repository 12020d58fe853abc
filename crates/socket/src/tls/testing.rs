//! Authorities and certificates for tests.

use super::Tls;
use crate::TlsConfig;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, SigningKey};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, Error, SignatureScheme};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};
use tempfile::TempDir;
use x509_cert::der::{Decode, Encode};

/// When a year begins, or a day or so before.
pub fn year(year: i32) -> SystemTime {
    let time = rcgen::date_time_ymd(year, 1, 1);
    SystemTime::UNIX_EPOCH + Duration::from_secs(time.unix_timestamp() as u64)
}

/// Who signs certificates.
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

    /// Its own certificate and key.
    pub fn own(&self) -> Made {
        Made {
            der: self.der.clone(),
            pem: self.pem.clone(),
            key: self.issuer.key().serialize_pem(),
        }
    }

    /// Signs a certificate that has what `change` gives it.
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

    /// Signs a certificate with this common name.
    pub fn sign_name(&self, name: &str) -> Made {
        self.sign(|params| params.distinguished_name.push(DnType::CommonName, name))
    }
}

/// The files of one end.
pub struct Files {
    folder: TempDir,
}

impl Files {
    /// Its key and certificate, and whom it trusts.
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
        TlsConfig {
            private_key: self.path("key.pem"),
            certificate: self.path("cert.pem"),
            ca_cert: self.path("ca.pem"),
            peer_name: None,
        }
    }

    pub fn load(&self) -> Tls {
        Tls::load(self.config()).unwrap()
    }
}

/// Signs a certificate of X.509's version 1, which has neither version nor extensions.
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
    // A bit string has a byte in front that says how many bits are unused.
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
