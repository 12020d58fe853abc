//! Keys and certificates, as `ovs-pki` makes them.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::process::run;

/// What is needed to make them.
pub const TOOL: &str = "ovs-pki";

/// A folder with two authorities, one for switches and one for controllers, and what they have signed.
pub struct Pki(TempDir);

impl Pki {
    /// Makes the authorities, and a certificate for each of these holders, who are `switch` or `controller`.
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

    /// The key, the certificate, and the authority of the peers of a holder of the one kind or the other.
    fn files(&self, name: &str, peers: &str) -> [PathBuf; 3] {
        let folder = self.0.path();
        [
            folder.join(format!("{name}-privkey.pem")),
            folder.join(format!("{name}-cert.pem")),
            folder.join(format!("pki/{peers}ca/cacert.pem")),
        ]
    }

    /// As `ovs-vsctl set-ssl` takes them, and in its order, for a switch.
    pub fn switch(&self, name: &str) -> [PathBuf; 3] {
        self.files(name, "controller")
    }

    /// The same for a controller.
    pub fn controller(&self, name: &str) -> [PathBuf; 3] {
        self.files(name, "switch")
    }

    /// The path of a file of the test's own in the same folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Has the authority of switches revoke a certificate, as docs/operating.md says; returns its list of revoked ones.
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

    /// A file of the test's own in the same folder.
    pub fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).expect("the folder can be written to");
        shown(&path)
    }
}

/// The options that urtica and Open vSwitch's programs have for the files.
pub fn options(files: &[PathBuf; 3]) -> Vec<String> {
    options_with("--", files)
}

/// The options with this prefix.
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
