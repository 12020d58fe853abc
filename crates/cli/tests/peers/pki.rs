//! Keys and certificates, as `ovs-pki` makes them.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::process::run;

/// The tool that creates them.
pub const TOOL: &str = "ovs-pki";

/// A folder with two authorities, for switches and for controllers, and the certificates that they have signed.
pub struct Pki(TempDir);

impl Pki {
    /// Creates the authorities, and a certificate for each of these holders, of the kind `switch` or `controller`.
    pub fn new(holders: &[(&str, &str)]) -> Self {
        let pki = Self(tempfile::tempdir().expect("a temporary folder can be made"));
        pki.run(&["init"]);
        for (name, kind) in holders {
            pki.run(&["req+sign", name, kind]);
        }
        pki
    }

    fn run(&self, arguments: &[&str]) {
        let folder = self.0.path();
        let mut command = Command::new(TOOL);
        command.current_dir(folder).args(arguments);
        run(command
            .arg(format!("--dir={}", folder.join("pki").display()))
            .arg(format!("--log={}", folder.join("log").display())));
    }

    /// Returns a holder's key, its certificate, and the authority of its peers.
    fn files(&self, name: &str, peers: &str) -> [PathBuf; 3] {
        let folder = self.0.path();
        [
            folder.join(format!("{name}-privkey.pem")),
            folder.join(format!("{name}-cert.pem")),
            folder.join(format!("pki/{peers}ca/cacert.pem")),
        ]
    }

    /// Returns a switch's files in the order of `ovs-vsctl set-ssl`.
    pub fn switch(&self, name: &str) -> [PathBuf; 3] {
        self.files(name, "controller")
    }

    /// Returns a controller's files in the order of `ovs-vsctl set-ssl`.
    pub fn controller(&self, name: &str) -> [PathBuf; 3] {
        self.files(name, "switch")
    }

    /// Returns the path of the test's own file in this folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Makes the authority of switches revoke a certificate, as docs/operating.md describes; returns its list of
    /// revoked certificates.
    pub fn revoke_switch(&self, name: &str) -> PathBuf {
        let [_, certificate, _] = self.switch(name);
        let list = self.path("crl.pem");
        let script = format!(
            "printf '[ crl ]\\nauthorityKeyIdentifier = keyid:always\\n' >> ca.cnf
             openssl ca -config ca.cnf -revoke {} && openssl ca -config ca.cnf -gencrl -crlexts crl -out {}",
            shown(&certificate),
            shown(&list)
        );
        let mut command = Command::new("sh");
        run(command
            .args(["-ec", &script])
            .current_dir(self.0.path().join("pki/switchca")));
        list
    }

    /// Writes the test's own file in this folder.
    pub fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).expect("the folder can be written to");
        shown(&path)
    }
}

/// Returns the options of urtica and Open vSwitch's programs for the files.
pub fn options(files: &[PathBuf; 3]) -> Vec<String> {
    options_with("--", files)
}

/// Returns these options with a prefix.
pub fn options_with(prefix: &str, files: &[PathBuf; 3]) -> Vec<String> {
    let names = ["private-key", "certificate", "ca-cert"];
    let options = names.iter().zip(files);
    options
        .map(|(name, file)| format!("{prefix}{name}={}", shown(file)))
        .collect()
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
