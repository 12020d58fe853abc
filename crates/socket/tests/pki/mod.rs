//! Keys and certificates for the TLS tests of other crates.

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair,
};
use std::path::PathBuf;
use tempfile::TempDir;
use urtica_socket::{Tls, TlsConfig};

/// An authority, and files of the certificates that it has signed.
pub struct Pki {
    folder: TempDir,
    authority: Issuer<'static, KeyPair>,
}

impl Pki {
    pub fn new() -> Self {
        let mut params = named("ca");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let own = params.self_signed(&key).unwrap().pem();
        std::fs::write(folder.path().join("ca.pem"), own).unwrap();
        let authority = Issuer::new(params, key);
        Self { folder, authority }
    }

    /// Returns the path of a file in its folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Makes a key and a certificate for `name`, in files of `holder`.
    pub fn sign(&self, holder: &str, name: &str) -> TlsConfig {
        let key = KeyPair::generate().unwrap();
        let certificate = named(name).signed_by(&key, &self.authority).unwrap();
        let config = TlsConfig::new(
            self.path(&format!("{holder}-key.pem")),
            self.path(&format!("{holder}-cert.pem")),
            self.path("ca.pem"),
        );
        std::fs::write(&config.private_key, key.serialize_pem()).unwrap();
        std::fs::write(&config.certificate, certificate.pem()).unwrap();
        config
    }

    /// Loads the files of a peer with this name.
    pub fn tls(&self, name: &str) -> Tls {
        Tls::load(self.sign(name, name)).unwrap()
    }
}

fn named(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}
