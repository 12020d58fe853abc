//! The first connection of who does not know its peers' CA yet: it takes the certificate that the peer shows, as Open vSwitch does.
//!
//! Whoever answers that connection is believed. So nothing is said over it, the certificate is told, and every connection
//! after it is checked by what was saved.

use super::certificate::Certificate;
use super::config::AUTHORITIES;
use super::error::TlsError;
use rustls::pki_types::CertificateDer;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use x509_cert::der::pem::{LineEnding, encode_string};

/// Saves the certificate of a peer's CA where there is none, for its owner alone to read. Always an error: the connection that the
/// certificate came by ends.
pub(super) fn save(path: &Path, authority: &CertificateDer) -> TlsError {
    match write_new(path, authority) {
        Ok(()) => TlsError::Bootstrapped {
            path: path.to_owned(),
            authority: describe(authority),
        },
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let problem =
                "was made meanwhile; the peer will be checked by it when it connects again";
            TlsError::file(AUTHORITIES, path, problem)
        }
        Err(error) => {
            let problem =
                format!("cannot be written: {error}; expected a folder that we may write to");
            TlsError::file(AUTHORITIES, path, problem)
        }
    }
}

/// Its name, and the fingerprint by which people compare it.
fn describe(authority: &CertificateDer) -> String {
    let parsed = Certificate::from_der(authority);
    parsed.map_or_else(String::new, |it| {
        format!("{it} (sha256:{})", it.fingerprint())
    })
}

/// Writes a file beside it first, so that nobody ever reads half of it, and never replaces one that is there.
fn write_new(path: &Path, authority: &CertificateDer) -> io::Result<()> {
    let text = encode_string("CERTIFICATE", LineEnding::LF, authority).map_err(io::Error::other)?;
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}.new", std::process::id()));
    let beside = PathBuf::from(beside);
    let written = create(&beside).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::hard_link(&beside, path)
    });
    // What an earlier attempt may have left goes, too.
    let _ = fs::remove_file(&beside);
    written
}

fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    match options.open(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            // Of an earlier process with our id: not that of the file itself.
            fs::remove_file(path)?;
            options.open(path)
        }
        opened => opened,
    }
}

#[cfg(test)]
mod tests;
