//! Checks of the files for TLS, and of handshakes between the bridges of this machine and the controller.

mod bridges;
mod ovs_pki;

use crate::finding::{capital, quoted};
use crate::plan::Plan;
use crate::{Facts, Finding};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::SystemTime;
use urtica_socket::{Address, NoTlsConfig, Notice, Tls, TlsConfig, TlsError};

/// The type of our certificate in ovs-pki.
const CONTROLLER: &str = "controller";

pub fn look(facts: &Facts) -> Vec<Finding> {
    let plan = &facts.plan;
    let Some(config) = &plan.tls else {
        return without_files(plan);
    };
    let mut findings: Vec<Finding> = files(config)
        .filter_map(|(what, path)| unreadable(config, what, path))
        .collect();
    findings.extend(open_key(&config.private_key));
    findings.extend(own_authority(plan, config));
    if !findings
        .iter()
        .any(|finding| finding.name == "certificate-file")
    {
        match Tls::load(config.clone()) {
            Ok(tls) => {
                findings.extend(dates(config, &tls));
                if let Ok(switch) = &facts.openvswitch {
                    findings.extend(bridges::look(switch, plan, config, &tls));
                }
            }
            Err(error) => findings.push(unusable(config, &error)),
        }
    }
    if findings.is_empty() {
        let sentence = "The private key, the certificate and the CA certificates are valid.";
        findings.push(Finding::ok("certificates", sentence));
    }
    findings
}

fn without_files(plan: &Plan) -> Vec<Finding> {
    let needs = plan.listen.iter().find(|address| address.is_tls());
    let Some(address) = needs else {
        let sentence = "The controller does not use TLS: anyone on the path can read and change OpenFlow messages \
                        (docs/operating.md).";
        return vec![Finding::note("no-tls", sentence)];
    };
    let sentence = format!("{}.", NoTlsConfig(Address::clone(address)));
    let authority = format!("{}/switchca/cacert.pem", ovs_pki::FOLDER);
    let files = [
        ("--private-key", "ctl-privkey.pem"),
        ("--certificate", "ctl-cert.pem"),
        ("--ca-cert", authority.as_str()),
    ];
    let finding = Finding::problem("certificates-not-given", sentence);
    vec![
        finding
            .command("ovs-pki req+sign ctl controller")
            .command(plan.run_with(&files)),
    ]
}

fn files(config: &TlsConfig) -> impl Iterator<Item = (&'static str, &Path)> {
    [
        ("private key", config.private_key.as_path()),
        ("certificate", config.certificate.as_path()),
        ("file of CA certificates", config.ca_cert.as_path()),
    ]
    .into_iter()
}

fn shown(path: &Path) -> String {
    quoted(&path.display().to_string())
}

fn unreadable(config: &TlsConfig, what: &str, path: &Path) -> Option<Finding> {
    let error = std::fs::read(path).err()?;
    let sentence = format!(
        "The {what} {} cannot be read: {error}; the controller would not start.",
        path.display()
    );
    let finding = Finding::problem("certificate-file", sentence);
    Some(match error.kind() {
        ErrorKind::NotFound if path == config.ca_cert => finding.command("ovs-pki init"),
        ErrorKind::NotFound => ovs_pki::make_anew(finding, config, CONTROLLER),
        _ => finding.command(format!("ls -l {}", shown(path))),
    })
}

/// Finds a key that other users can read, so that they could impersonate the controller. A group, such as the service's, may
/// read it.
fn open_key(key: &Path) -> Option<Finding> {
    let mode = std::fs::metadata(key).ok()?.permissions().mode();
    if mode & 0o007 == 0 {
        return None;
    }
    let sentence = format!(
        "The private key {} is readable by every user of this machine (mode {:o}): each of them can impersonate the \
         controller.",
        key.display(),
        mode & 0o777
    );
    let command = format!("chmod o= {}", shown(key));
    Some(Finding::warning("key-readable-by-others", sentence).command(command))
}

/// Finds the other CA of ovs-pki, which is easily confused with the right one.
fn own_authority(plan: &Plan, config: &TlsConfig) -> Option<Finding> {
    let folder = config.ca_cert.parent()?;
    let right = folder.parent()?.join("switchca/cacert.pem");
    if !folder.ends_with("controllerca") || !right.exists() {
        return None;
    }
    let sentence = format!(
        "The file of CA certificates {} has the CA for controllers instead of the CA for switches: every switch is \
         refused.",
        config.ca_cert.display()
    );
    let [key, certificate, right] =
        [&config.private_key, &config.certificate, &right].map(|path| path.display().to_string());
    let files = [
        ("--private-key", key.as_str()),
        ("--certificate", certificate.as_str()),
        ("--ca-cert", right.as_str()),
    ];
    Some(Finding::problem("wrong-ca", sentence).command(plan.run_with(&files)))
}

/// Describes the error that would prevent the controller's start.
fn unusable(config: &TlsConfig, error: &TlsError) -> Finding {
    let sentence = format!("The controller would not start: {error}.");
    match error {
        TlsError::File { path, .. } if *path == config.ca_cert => {
            Finding::problem("ca-unusable", sentence).command(dates_of(path))
        }
        _ => ovs_pki::make_anew(
            Finding::problem("certificate-unusable", sentence),
            config,
            CONTROLLER,
        ),
    }
}

fn dates(config: &TlsConfig, tls: &Tls) -> Vec<Finding> {
    let now = SystemTime::now();
    let mut findings = Vec::new();
    if tls.certificate().not_before() > now {
        let sentence = format!(
            "The certificate {} in {} is not valid yet: switches refuse it. Its dates are wrong, or the clock is behind.",
            tls.certificate(),
            config.certificate.display()
        );
        let finding = Finding::problem("certificate-not-valid-yet", sentence);
        findings.push(ovs_pki::make_anew(finding, config, CONTROLLER));
    }
    for notice in tls.clone().refresh(now) {
        let Notice::Expires { path, .. } = &notice else {
            continue;
        };
        let sentence = capital(&format!("{notice}."));
        findings.push(match *path == config.ca_cert {
            true => Finding::warning("ca-expires", sentence).command(dates_of(path)),
            false => ovs_pki::make_anew(
                Finding::warning("certificate-expires", sentence),
                config,
                CONTROLLER,
            ),
        });
    }
    findings
}

/// Returns the command that prints when a certificate expires.
fn dates_of(path: &Path) -> String {
    format!("openssl x509 -noout -subject -dates -in {}", shown(path))
}
