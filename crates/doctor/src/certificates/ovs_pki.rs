//! Commands of `ovs-pki(8)`, which makes keys and certificates.

use super::shown;
use crate::Finding;
use crate::finding::quoted;
use std::path::{Path, PathBuf};
use urtica_socket::TlsConfig;

/// Its default folder of CAs.
pub const FOLDER: &str = "/var/lib/openvswitch/pki";

/// Returns the folder of these files' CAs, derived from the path of the CA certificates.
pub fn folder_of(files: &TlsConfig) -> PathBuf {
    let authority = files.ca_cert.parent();
    let is_its = |folder: &&Path| folder.ends_with("switchca") || folder.ends_with("controllerca");
    match authority.filter(is_its).and_then(Path::parent) {
        Some(pki) => std::path::absolute(pki).unwrap_or_else(|_| pki.to_owned()),
        None => FOLDER.into(),
    }
}

/// Adds the command that replaces the key and the certificate, for a `switch` or a `controller`.
pub fn make_anew(finding: Finding, files: &TlsConfig, kind: &str) -> Finding {
    make_anew_in(&folder_of(files), finding, files, kind)
}

/// Like `make_anew`, with the CAs in this folder.
pub fn make_anew_in(pki: &Path, finding: Finding, files: &TlsConfig, kind: &str) -> Finding {
    let folder = files.certificate.parent().unwrap_or(Path::new(""));
    let file = files.certificate.file_name().unwrap_or_default();
    let file = file.to_string_lossy();
    let name = file.trim_end_matches(".pem").trim_end_matches("-cert");
    let go_there = match folder == Path::new("") {
        true => String::new(),
        false => format!("cd {} && ", shown(folder)),
    };
    let place = match pki == Path::new(FOLDER) {
        true => String::new(),
        false => format!("--dir={} ", shown(pki)),
    };
    let mut finding = finding.command(format!(
        "({go_there}ovs-pki --force {place}req+sign {} {kind})",
        quoted(name)
    ));
    for (what, wanted) in [
        ("privkey", &files.private_key),
        ("cert", &files.certificate),
    ] {
        let made = folder.join(format!("{name}-{what}.pem"));
        if made != *wanted {
            finding = finding.command(format!("mv {} {}", shown(&made), shown(wanted)));
        }
    }
    finding
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(key: &str, certificate: &str, authority: &str) -> Vec<String> {
        let files = TlsConfig::new(key, certificate, authority);
        make_anew(Finding::note("n", ""), &files, "controller").commands
    }

    #[test]
    fn files_are_replaced_in_their_folder() {
        let here = commands("ctl-privkey.pem", "ctl-cert.pem", "ca.pem");
        assert_eq!(here, ["(ovs-pki --force req+sign ctl controller)"]);
        let elsewhere = commands(
            "/etc/k.pem",
            "/etc/a b/c-cert.pem",
            "/pki/switchca/cacert.pem",
        );
        let expected = [
            "(cd '/etc/a b' && ovs-pki --force --dir=/pki req+sign c controller)",
            "mv '/etc/a b/c-privkey.pem' /etc/k.pem",
        ];
        assert_eq!(elsewhere, expected);
        let usual = commands(
            "ctl-privkey.pem",
            "ctl-cert.pem",
            &format!("{FOLDER}/switchca/cacert.pem"),
        );
        assert_eq!(usual, here);
    }
}
