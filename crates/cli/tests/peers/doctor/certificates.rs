//! Tests of mistakes with keys and certificates.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::{examine, find_and_fix, shell, shown};
use crate::namespace::Namespace;
use crate::openvswitch::{OpenVswitch, TOOLS};
use crate::pki::{self, Pki};
use crate::process::run;
use crate::require;

const LISTEN: &str = "pssl:6653:127.0.0.1";

fn can_run() -> bool {
    require::root_and(&[TOOLS, &[pki::TOOL, "openssl"]].concat())
}

fn made() -> (Pki, [PathBuf; 3]) {
    let pki = Pki::new(&[("ctl", "controller"), ("s1", "switch")]);
    let files = pki.controller("ctl");
    (pki, files)
}

/// Returns the options for the controller's files.
fn options(files: &[PathBuf; 3]) -> Vec<String> {
    let first = ["certificates", "--listen", LISTEN].map(str::to_owned);
    [&first[..], &pki::options(files)].concat()
}

/// Signs the controller's certificate again, for `days` days.
fn sign_for_days(files: &[PathBuf; 3], days: &str) {
    let certificate = &files[1];
    let folder = certificate.parent().expect("it is in a folder");
    let file = |name: &str| folder.join(name);
    let mut command = Command::new("openssl");
    command.args(["x509", "-req", "-CAcreateserial", "-days", days, "-in"]);
    command
        .arg(file("ctl-req.pem"))
        .arg("-CA")
        .arg(file("pki/controllerca/cacert.pem"));
    command
        .arg("-CAkey")
        .arg(file("pki/controllerca/private/cakey.pem"));
    run(command.arg("-out").arg(certificate));
}

/// Makes a mistake with the controller's files, finds it, and fixes it.
fn mistake(make: impl FnOnce(&[PathBuf; 3]), name: &str, severity: &str, words: &[&str]) {
    if !can_run() {
        return;
    }
    let (_pki, files) = made();
    make(&files);
    let options = options(&files);
    let options: Vec<_> = options.iter().map(String::as_str).collect();
    find_and_fix(&shell, &options, name, severity, words);
    assert_eq!(examine(&shell, &options).problems(), 0);
}

#[test]
fn finds_an_expired_certificate() {
    let make = |files: &[PathBuf; 3]| sign_for_days(files, "-1");
    mistake(
        make,
        "certificate-unusable",
        "problem",
        &["has expired", "ctl"],
    );
}

#[test]
fn finds_a_certificate_that_expires_soon() {
    let make = |files: &[PathBuf; 3]| sign_for_days(files, "3");
    mistake(
        make,
        "certificate-expires",
        "warning",
        &["expires on", "ctl"],
    );
}

#[test]
fn finds_a_certificate_that_is_not_valid_yet() {
    let make = |files: &[PathBuf; 3]| {
        let folder = files[1].parent().expect("it is in a folder");
        let mut command = Command::new("openssl");
        command.current_dir(folder.join("pki/controllerca"));
        command.args(["ca", "-batch", "-notext", "-config", "ca.cnf"]);
        command.args([
            "-startdate",
            "20800101000000Z",
            "-enddate",
            "20810101000000Z",
        ]);
        command.arg("-in").arg(folder.join("ctl-req.pem"));
        run(command.arg("-out").arg(&files[1]));
    };
    let words = ["is not valid yet", "the clock is behind"];
    mistake(make, "certificate-not-valid-yet", "problem", &words);
}

#[test]
fn finds_a_key_of_another_certificate() {
    let make = |files: &[PathBuf; 3]| {
        let other = files[0].with_file_name("s1-privkey.pem");
        fs::copy(other, &files[0]).expect("the key can be copied");
    };
    mistake(
        make,
        "certificate-unusable",
        "problem",
        &["does not belong to the certificate"],
    );
}

#[test]
fn finds_a_key_that_others_can_read() {
    let make = |files: &[PathBuf; 3]| {
        run(Command::new("chmod").arg("644").arg(&files[0]));
    };
    mistake(
        make,
        "key-readable-by-others",
        "warning",
        &["mode 644", "impersonate the controller"],
    );
}

#[test]
fn finds_a_missing_certificate() {
    let make = |files: &[PathBuf; 3]| fs::remove_file(&files[1]).expect("it can be removed");
    mistake(
        make,
        "certificate-file",
        "problem",
        &["ctl-cert.pem cannot be read"],
    );
}

#[test]
fn finds_missing_files_with_other_names() {
    let make = |files: &[PathBuf; 3]| fs::remove_file(&files[1]).expect("it can be removed");
    if !can_run() {
        return;
    }
    let (_pki, [key, certificate, authority]) = made();
    let renamed = [
        key.with_file_name("key.pem"),
        certificate.with_file_name("mine.pem"),
        authority,
    ];
    make(&[key, certificate.clone(), PathBuf::new()]);
    let options = options(&renamed);
    let options: Vec<_> = options.iter().map(String::as_str).collect();
    find_and_fix(
        &shell,
        &options,
        "certificate-file",
        "problem",
        &["key.pem cannot be read"],
    );
}

#[test]
fn finds_the_controllers_authority_instead_of_the_switches() {
    if !can_run() {
        return;
    }
    let (pki, mut files) = made();
    let right = files[2].clone();
    files[2] = pki.switch("s1")[2].clone();
    let options = options(&files);
    let options: Vec<_> = options.iter().map(String::as_str).collect();
    let found = examine(&shell, &options);
    let commands = found.commands("wrong-ca", "problem", &["every switch is refused"]);
    let expected = format!("--ca-cert {}", shown(&right));
    assert!(commands[0].ends_with(&expected), "{commands:?}");
}

#[test]
fn finds_a_tls_address_without_files() {
    let found = examine(&shell, &["certificates", "--listen", LISTEN]);
    let commands = found.commands("certificates-not-given", "problem", &[LISTEN, "--ca-cert"]);
    assert_eq!(commands[0], "ovs-pki req+sign ctl controller");
}

/// Creates an Open vSwitch with files of one PKI, for a controller with options.
fn with_switch(switch_files: &[PathBuf; 3], look: impl FnOnce(&OpenVswitch)) {
    let room = Namespace::new();
    let switch = OpenVswitch::start(&room);
    let mut command = switch.command("ovs-vsctl");
    run(command
        .args(["--timeout=120", "set-ssl"])
        .args(switch_files));
    look(&switch);
}

#[test]
fn finds_a_switch_with_a_strangers_certificate() {
    if !can_run() {
        return;
    }
    let (pki, files) = made();
    let other = Pki::new(&[("s1", "switch")]);
    let [key, certificate, _] = other.switch("s1");
    let [.., authority] = pki.switch("s1");
    with_switch(&[key, certificate, authority], |switch| {
        let shell = || switch.command("sh");
        let options = options(&files);
        let options: Vec<_> = options.iter().map(String::as_str).collect();
        let (name, words) = (
            "certificate-of-bridges-refused",
            ["whose certificate is not in"],
        );
        find_and_fix(&shell, &options, name, "problem", &words);
        assert_eq!(examine(&shell, &options).problems(), 0);
    });
}

#[test]
fn finds_a_switch_that_trusts_its_own_authority() {
    if !can_run() {
        return;
    }
    let (pki, files) = made();
    let [key, certificate, _] = pki.switch("s1");
    with_switch(&[key, certificate, files[2].clone()], |switch| {
        let shell = || switch.command("sh");
        let options = options(&files);
        let options: Vec<_> = options.iter().map(String::as_str).collect();
        let (name, words) = (
            "certificate-refused-by-bridges",
            ["whose certificate is not in"],
        );
        find_and_fix(&shell, &options, name, "problem", &words);
        assert_eq!(examine(&shell, &options).problems(), 0);
    });
}

#[test]
fn finds_a_switch_with_an_unexpected_name() {
    if !can_run() {
        return;
    }
    let (pki, files) = made();
    with_switch(&pki.switch("s1"), |switch| {
        let shell = || switch.command("sh");
        let options = options(&files);
        let mut options: Vec<_> = options.iter().map(String::as_str).collect();
        options.push("--peer-name=s2");
        let found = examine(&shell, &options);
        let words = ["has the name 's1 id:", "expected 's2'"];
        let commands = found.commands("certificate-of-bridges-refused", "problem", &words);
        assert!(commands[0].ends_with(" --peer-name s1"), "{commands:?}");
        options.pop();
        options.push("--peer-name=s1");
        assert_eq!(examine(&shell, &options).problems(), 0);
    });
}

#[test]
fn finds_open_vswitch_without_its_files() {
    if !can_run() {
        return;
    }
    let (pki, files) = made();
    let theirs = pki.switch("s1");
    with_switch(&theirs, |switch| {
        fs::remove_file(&theirs[1]).expect("it can be removed");
        let shell = || switch.command("sh");
        let options = options(&files);
        let options: Vec<_> = options.iter().map(String::as_str).collect();
        let words = ["Open vSwitch cannot use TLS", "s1-cert.pem cannot be read"];
        find_and_fix(&shell, &options, "ovs-certificates", "problem", &words);
        assert_eq!(examine(&shell, &options).problems(), 0);
    });
}
