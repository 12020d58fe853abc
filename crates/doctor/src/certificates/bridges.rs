//! A trial handshake between the bridges of this machine and the controller, with Open vSwitch's files and ours.

use super::{ovs_pki, shown};
use crate::Finding;
use crate::openvswitch::OpenVswitch;
use crate::plan::Plan;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};
use urtica_socket::{Handshakes, Stream, Tls, TlsConfig, TlsError};

/// The maximum time of a handshake on one machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// The type of Open vSwitch's certificate in ovs-pki.
const SWITCH: &str = "switch";

/// Why there would be no connection.
enum Refusal {
    /// We do not accept the bridge's certificate.
    OfTheirs(String),
    /// The bridge does not accept our certificate.
    OfOurs(String),
}

pub fn look(switch: &OpenVswitch, plan: &Plan, config: &TlsConfig, ours: &Tls) -> Option<Finding> {
    let files = switch.ssl()?;
    let file = |column| files.text(column);
    let theirs = TlsConfig::new(file("private_key")?, file("certificate")?, file("ca_cert")?);
    if is_forbidden(&theirs.private_key) {
        let sentence = "Cannot check whether the bridges of this machine and the controller accept each other: this \
                        needs Open vSwitch's key.";
        let finding = Finding::note("ovs-certificates-not-looked-at", sentence);
        return Some(finding.command("sudo urtica doctor certificates"));
    }
    let refusal = match Tls::load(theirs.clone()) {
        Ok(tls) => shake_hands(ours, tls).err()?,
        Err(error) => return Some(unusable(&theirs, &error)),
    };
    Some(explain(refusal, plan, config, &theirs))
}

fn is_forbidden(file: &Path) -> bool {
    File::open(file).is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
}

fn unusable(theirs: &TlsConfig, error: &TlsError) -> Finding {
    let sentence = format!("Open vSwitch cannot use TLS: {error}.");
    let finding = Finding::problem("ovs-certificates", sentence);
    match error {
        TlsError::File { path, .. } if *path == theirs.ca_cert => {
            finding.command(command_to_trust(theirs, &ovs_pki::folder_of(theirs)))
        }
        _ => ovs_pki::make_anew(finding, theirs, SWITCH),
    }
}

/// Returns the command that makes Open vSwitch trust the CA of controllers.
fn command_to_trust(theirs: &TlsConfig, pki: &Path) -> String {
    format!(
        "ovs-vsctl set-ssl {} {} {}",
        shown(&theirs.private_key),
        shown(&theirs.certificate),
        shown(&pki.join("controllerca/cacert.pem"))
    )
}

fn explain(refusal: Refusal, plan: &Plan, config: &TlsConfig, theirs: &TlsConfig) -> Finding {
    let pki = ovs_pki::folder_of(config);
    match refusal {
        Refusal::OfTheirs(why) => {
            let sentence =
                format!("The controller would not accept the bridges of this machine: {why}.");
            let finding = Finding::problem("certificate-of-bridges-refused", sentence);
            match config.peer_name.is_some() && why.contains("has the name") {
                true => finding.command(plan.run_with(&[("--peer-name", &name_of(theirs))])),
                false => ovs_pki::make_anew_in(&pki, finding, theirs, SWITCH),
            }
        }
        Refusal::OfOurs(why) => {
            let sentence =
                format!("The bridges of this machine would not accept the controller: {why}.");
            Finding::problem("certificate-refused-by-bridges", sentence)
                .command(command_to_trust(theirs, &pki))
        }
    }
}

/// Returns the name that ovs-pki was given.
fn name_of(config: &TlsConfig) -> String {
    let tls = Tls::load(config.clone()).ok();
    let name = tls.and_then(|tls| tls.certificate().names().first().cloned());
    let name = name.unwrap_or_default();
    name.split(" id:").next().unwrap_or_default().to_owned()
}

/// Performs a handshake in which the bridge connects and the controller accepts.
fn shake_hands(ours: &Tls, theirs: Tls) -> Result<(), Refusal> {
    let of_ours = |error: TlsError| Refusal::OfOurs(error.to_string());
    let (here, there) = UnixStream::pair().map_err(|error| of_ours(error.into()))?;
    let bridge = std::thread::spawn(move || {
        Stream::connect_tls(there.into(), &theirs, PATIENCE).map(|_| ())
    });
    let accepted = accept(ours, here);
    let connected = bridge.join().unwrap_or(Ok(()));
    match accepted {
        Err(TlsError::Certificate(why)) => Err(Refusal::OfTheirs(why)),
        // The bridge knows best why it does not accept us.
        Err(error) => Err(of_ours(connected.err().unwrap_or(error))),
        Ok(()) => connected.map_err(of_ours),
    }
}

fn accept(tls: &Tls, socket: UnixStream) -> Result<(), TlsError> {
    socket.set_nonblocking(true)?;
    let mut handshakes = Handshakes::new(tls.clone())?;
    handshakes.accept(socket.into(), "Open vSwitch".into(), Instant::now());
    loop {
        let mut ended = handshakes.poll(Instant::now());
        if let Some(ended) = ended.pop() {
            return ended.outcome.map(|_| ());
        }
        wait_for(&handshakes)?;
    }
}

/// Waits for a handshake, up to a timeout.
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
