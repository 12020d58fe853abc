//! The files for TLS: whether they can be used, and whether the bridges of this machine and the controller accept each other.

use super::finding::{capital, quoted};
use super::openvswitch::OpenVswitch;
use super::plan::Plan;
use super::{Facts, Finding};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};
use urtica_socket::{Address, Handshakes, NoTlsConfig, Notice, Stream, Tls, TlsConfig, TlsError};

/// How long two programs on one machine may take to come to an understanding.
const PATIENCE: Duration = Duration::from_secs(30);

/// Where ovs-pki keeps its CAs, unless it is told otherwise.
const PKI: &str = "/var/lib/openvswitch/pki";

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
                findings.extend(bridges(facts.openvswitch.as_ref().ok(), plan, config, &tls));
            }
            Err(error) => findings.push(unusable(config, &error)),
        }
    }
    if findings.is_empty() {
        let sentence = "The private key, the certificate and the CA certificates can be used.";
        findings.push(Finding::ok("certificates", sentence));
    }
    findings
}

fn without_files(plan: &Plan) -> Vec<Finding> {
    let needs = plan.listen.iter().find(|address| address.is_tls());
    let Some(address) = needs else {
        let sentence = "The controller does not speak TLS: whoever is on the way can read and change OpenFlow's messages (docs/operating.md).";
        return vec![Finding::note("no-tls", sentence)];
    };
    let sentence = format!("{}.", NoTlsConfig(Address::clone(address)));
    let authority = format!("{PKI}/switchca/cacert.pem");
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
        ErrorKind::NotFound => make_anew(finding, config),
        _ => finding.command(format!("ls -l {}", shown(path))),
    })
}

/// Has ovs-pki make key and certificate anew, where they are.
fn make_anew(finding: Finding, config: &TlsConfig) -> Finding {
    let folder = config.certificate.parent().unwrap_or(Path::new(""));
    let file = config.certificate.file_name().unwrap_or_default();
    let name = file
        .to_string_lossy()
        .replace("-cert.pem", "")
        .replace(".pem", "");
    let made = |kind: &str| folder.join(format!("{name}-{kind}.pem"));
    let go_there = match folder == Path::new("") {
        true => String::new(),
        false => format!("cd {} && ", shown(folder)),
    };
    let sign = format!(
        "({go_there}ovs-pki --force {}req+sign {} controller)",
        pki_option(config),
        quoted(&name)
    );
    let mut finding = finding.command(sign);
    for (kind, wanted) in [
        ("privkey", &config.private_key),
        ("cert", &config.certificate),
    ] {
        if made(kind) != *wanted {
            finding = finding.command(format!("mv {} {}", shown(&made(kind)), shown(wanted)));
        }
    }
    finding
}

/// Where the CAs are, by where the file of CA certificates is.
fn pki_option(config: &TlsConfig) -> String {
    let folder = config.ca_cert.parent();
    let is_of_pki = folder
        .is_some_and(|folder| folder.ends_with("switchca") || folder.ends_with("controllerca"));
    match folder
        .and_then(Path::parent)
        .filter(|pki| is_of_pki && *pki != Path::new(PKI))
    {
        Some(pki) => {
            let pki = std::path::absolute(pki).unwrap_or_else(|_| pki.to_owned());
            format!("--dir={} ", shown(&pki))
        }
        None => String::new(),
    }
}

/// Whoever can read the key can be the controller.
fn open_key(key: &Path) -> Option<Finding> {
    let mode = std::fs::metadata(key).ok()?.permissions().mode();
    if mode & 0o077 == 0 {
        return None;
    }
    let sentence = format!(
        "The private key {} can be read by others than its owner (mode {:o}): each of them can pose as the controller.",
        key.display(),
        mode & 0o777
    );
    let command = format!("chmod 600 {}", shown(key));
    Some(Finding::warning("key-readable-by-others", sentence).command(command))
}

/// The other CA of ovs-pki, which is easily taken for the right one.
fn own_authority(plan: &Plan, config: &TlsConfig) -> Option<Finding> {
    let folder = config.ca_cert.parent()?;
    let right = folder.parent()?.join("switchca/cacert.pem");
    if !folder.ends_with("controllerca") || !right.exists() {
        return None;
    }
    let sentence = format!(
        "The file of CA certificates {} has the CA that signs controllers, and not the one that signs switches: every switch is refused.",
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

/// What the controller itself would say as it starts.
fn unusable(config: &TlsConfig, error: &TlsError) -> Finding {
    let sentence = format!("The controller would not start: {error}.");
    match error {
        TlsError::File { path, .. } if *path == config.ca_cert => {
            Finding::problem("ca-unusable", sentence).command(dates_of(path))
        }
        _ => make_anew(Finding::problem("certificate-unusable", sentence), config),
    }
}

fn dates(config: &TlsConfig, tls: &Tls) -> Vec<Finding> {
    let now = SystemTime::now();
    let mut findings = Vec::new();
    if tls.certificate().not_before() > now {
        let sentence = format!(
            "The certificate {} in {} is not valid yet: switches refuse it. Either it was made for later, or the clock is behind.",
            tls.certificate(),
            config.certificate.display()
        );
        let finding = Finding::problem("certificate-not-valid-yet", sentence);
        findings.push(make_anew(finding, config));
    }
    for notice in tls.clone().refresh(now) {
        let sentence = capital(&format!("{notice}."));
        findings.push(match notice {
            Notice::Expires { path, .. } if path == config.ca_cert => {
                Finding::warning("ca-expires", sentence).command(dates_of(&path))
            }
            _ => make_anew(Finding::warning("certificate-expires", sentence), config),
        });
    }
    findings
}

/// The command that shows until when a certificate is valid.
fn dates_of(path: &Path) -> String {
    format!("openssl x509 -noout -subject -dates -in {}", shown(path))
}

/// Has Open vSwitch's files and ours shake hands, as a bridge and the controller would.
fn bridges(
    switch: Option<&OpenVswitch>,
    plan: &Plan,
    config: &TlsConfig,
    ours: &Tls,
) -> Option<Finding> {
    let files = switch?.ssl()?;
    let file = |column| files.text(column).map(Into::into);
    let theirs = TlsConfig {
        private_key: file("private_key")?,
        certificate: file("certificate")?,
        ca_cert: file("ca_cert")?,
        peer_name: None,
    };
    let set = |config: &TlsConfig, authority: &Path| {
        format!(
            "ovs-vsctl set-ssl {} {} {}",
            shown(&config.private_key),
            shown(&config.certificate),
            shown(authority)
        )
    };
    let their_tls = match Tls::load(theirs.clone()) {
        Ok(tls) => tls,
        Err(error) => {
            let sentence = format!("Open vSwitch cannot speak TLS: {error}.");
            let finding = Finding::problem("ovs-certificates", sentence);
            return Some(finding.command(set(&theirs, &theirs.ca_cert)));
        }
    };
    let error = shake_hands(ours, their_tls).err()?;
    let sentence = format!(
        "The bridges of this machine and the controller refuse each other's certificates: {error}."
    );
    let finding = Finding::problem("certificates-refused", sentence);
    let pki = config
        .ca_cert
        .parent()
        .and_then(Path::parent)
        .unwrap_or(Path::new(PKI));
    Some(
        match config.peer_name.is_some() && error.contains("has the name") {
            true => finding.command(plan.run_with(&[("--peer-name", &name_of(&theirs))])),
            false => finding
                .command(format!(
                    "ovs-pki --force {}req+sign s1 switch",
                    pki_option(config)
                ))
                .command(format!(
                    "ovs-vsctl set-ssl \"$PWD/s1-privkey.pem\" \"$PWD/s1-cert.pem\" {}",
                    shown(&pki.join("controllerca/cacert.pem"))
                )),
        },
    )
}

fn name_of(config: &TlsConfig) -> String {
    let tls = Tls::load(config.clone()).ok();
    let name = tls.and_then(|tls| tls.certificate().names().first().cloned());
    let name = name.unwrap_or_default();
    name.split(" id:").next().unwrap_or_default().to_owned()
}

/// What one of them says of the other.
fn shake_hands(ours: &Tls, theirs: Tls) -> Result<(), String> {
    let (here, there) = UnixStream::pair().map_err(|error| error.to_string())?;
    let bridge = std::thread::spawn(move || {
        Stream::connect_tls(there.into(), &theirs, PATIENCE).map(|_| ())
    });
    let accepted = accept(ours, here);
    let connected = bridge.join().unwrap_or(Ok(()));
    accepted.map_err(|error| error.to_string())?;
    connected.map_err(|error| format!("Open vSwitch says that {error}"))
}

fn accept(tls: &Tls, socket: UnixStream) -> Result<(), TlsError> {
    socket.set_nonblocking(true)?;
    let start = Instant::now();
    let mut handshakes = Handshakes::new(tls.clone())?;
    handshakes.accept(socket.into(), "Open vSwitch".into(), start);
    loop {
        let mut ended = handshakes.poll(Instant::now());
        if let Some(ended) = ended.pop() {
            return ended.outcome.map(|_| ());
        }
        wait_for(&handshakes)?;
    }
}

/// Until something comes, or long enough to see that nothing does.
fn wait_for(handshakes: &Handshakes) -> Result<(), TlsError> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let second = Timespec {
        tv_sec: 1,
        tv_nsec: 0,
    };
    let mut descriptors = [PollFd::new(handshakes, PollFlags::IN)];
    poll(&mut descriptors, Some(&second)).map_err(std::io::Error::from)?;
    Ok(())
}
