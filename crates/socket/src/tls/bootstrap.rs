//! The first connection of a side that does not know its peers' CA yet. It saves the CA certificate that the peer presents, as
//! Open vSwitch does.
//!
//! That first peer is not verified. So no data is exchanged with it, the certificate is reported, and later connections are
//! verified with the saved certificate.

use super::certificate::Certificate;
use super::config::AUTHORITIES;
use super::error::TlsError;
use rustls::pki_types::CertificateDer;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use x509_cert::der::pem::{LineEnding, encode_string};

/// Saves the certificate of a peer's CA in a new file that only its owner may read. Always returns an error, because the
/// connection that presented the certificate is closed.
pub(super) fn save(path: &Path, authority: &CertificateDer) -> TlsError {
    match write_new(path, authority) {
        Ok(()) => TlsError::Bootstrapped {
            path: path.to_owned(),
            authority: describe(authority),
        },
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let problem = "was created by another connection or program; the peer will be checked by it when it connects again";
            TlsError::file(AUTHORITIES, path, problem)
        }
        Err(error) => {
            let problem = format!("cannot be written: {error}; expected a writable folder");
            TlsError::file(AUTHORITIES, path, problem)
        }
    }
}

/// Returns the CA's name, and the fingerprint with which users compare it.
fn describe(authority: &CertificateDer) -> String {
    let parsed = Certificate::from_der(authority);
    parsed.map_or_else(String::new, |it| {
        format!("{it} (sha256:{})", it.fingerprint())
    })
}

/// Writes a temporary file and links it into place, so that no process can read a part of it; never replaces an existing file.
fn write_new(path: &Path, authority: &CertificateDer) -> io::Result<()> {
    let text = encode_string("CERTIFICATE", LineEnding::LF, authority).map_err(io::Error::other)?;
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{}.new", std::process::id()));
    let temporary = PathBuf::from(temporary);
    let written = create(&temporary).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::hard_link(&temporary, path)
    });
    // Also removes a temporary file that an earlier attempt has left.
    let _ = fs::remove_file(&temporary);
    written
}

fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    match options.open(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            // An earlier process with our id has left the temporary file.
            fs::remove_file(path)?;
            options.open(path)
        }
        opened => opened,
    }
}

#[cfg(test)]
mod tests;
