//! Tests of CAs saved at the first connection.

use super::*;
use crate::tls::testing::{Authority, Ends, Files, Made};
use std::os::unix::fs::PermissionsExt;
use std::time::SystemTime;

/// Creates the files of a side that does not know its peers' CA.
fn without_ca(own: &Made) -> Files {
    let files = Files::new(own, "");
    fs::remove_file(files.path("ca.pem")).unwrap();
    files
}

fn bootstrapping(files: &Files) -> crate::Tls {
    let config = files.config().bootstrap(true);
    crate::Tls::load(config).unwrap()
}

/// Appends the CA's certificate to a certificate, so that both are presented.
fn with_ca(made: Made, ca: &Authority) -> Made {
    Made {
        pem: format!("{}{}", made.pem, ca.pem),
        ..made
    }
}

#[test]
fn saves_the_first_peers_ca_and_verifies_the_next_connection_by_it() {
    let (switches, controllers) = (Authority::new("switchca"), Authority::new("controllerca"));
    let switch = without_ca(&switches.sign_name("s1"));
    let controller = with_ca(controllers.sign_name("ctl"), &controllers);
    let controller = Files::new(&controller, &switches.pem).load();
    let mut tls = bootstrapping(&switch);
    let (told, _) = Ends::new(&tls, &controller).shake_hands();
    let told = told.unwrap_err();
    for words in ["'controllerca' (sha256:", "ca.pem", "compare"] {
        assert!(told.contains(words), "{told}");
    }
    let saved = switch.path("ca.pem");
    assert_eq!(
        fs::metadata(&saved).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let text = fs::read_to_string(&saved).unwrap();
    assert_eq!(text.trim(), controllers.pem.replace("\r\n", "\n").trim());
    assert_eq!(
        fs::read_dir(saved.parent().unwrap()).unwrap().count(),
        3,
        "no temporary file is left"
    );
    // Until the file has been read, no peer is accepted.
    let (told, _) = Ends::new(&tls, &controller).shake_hands();
    assert!(
        told.unwrap_err()
            .contains("was created by another connection")
    );
    let now = SystemTime::now();
    assert!(tls.refresh(now).is_empty());
    assert_eq!(tls.refresh(now).len(), 1);
    assert_eq!(Ends::new(&tls, &controller).shake_hands(), (Ok(()), Ok(())));
    let impostors = Authority::new("controllerca");
    let impostor = with_ca(impostors.sign_name("ctl"), &impostors);
    let impostor = Files::new(&impostor, &switches.pem).load();
    let (told, _) = Ends::new(&tls, &impostor).shake_hands();
    assert!(told.is_err());
    assert_eq!(fs::read_to_string(&saved).unwrap(), text);
}

#[test]
fn uses_an_existing_file() {
    let (switches, controllers) = (Authority::new("switchca"), Authority::new("controllerca"));
    let switch = Files::new(&switches.sign_name("s1"), &controllers.pem);
    let controller = Files::new(&controllers.sign_name("ctl"), &switches.pem).load();
    let tls = bootstrapping(&switch);
    assert_eq!(Ends::new(&tls, &controller).shake_hands(), (Ok(()), Ok(())));
}

#[test]
fn a_listener_saves_the_ca_of_its_first_client() {
    let (switches, controllers) = (Authority::new("switchca"), Authority::new("controllerca"));
    let controller = without_ca(&controllers.sign_name("ctl"));
    let switch = with_ca(switches.sign_name("s1"), &switches);
    let switch = Files::new(&switch, &controllers.pem).load();
    let (_, told) = Ends::new(&switch, &bootstrapping(&controller)).shake_hands();
    assert!(told.unwrap_err().contains("'switchca'"));
    assert!(controller.path("ca.pem").exists());
}

#[test]
fn rejects_unusable_ca_certificates() {
    let (switches, controllers) = (Authority::new("switchca"), Authority::new("controllerca"));
    let other = Authority::new("other");
    let alone = controllers.sign_name("ctl");
    let with_another = with_ca(controllers.sign_name("ctl"), &other);
    for (shown, expected) in [
        (alone, "does not send the certificate of its CA"),
        (with_another, "was signed by 'controllerca'"),
    ] {
        let switch = without_ca(&switches.sign_name("s1"));
        let controller = Files::new(&shown, &switches.pem).load();
        let (told, _) = Ends::new(&bootstrapping(&switch), &controller).shake_hands();
        let told = told.unwrap_err();
        assert!(told.contains(expected), "{told}");
        assert!(!switch.path("ca.pem").exists());
    }
}

#[test]
fn reports_an_unwritable_folder() {
    let ca = Authority::new("ca");
    let der = CertificateDer::from(ca.own().der);
    let told = save(Path::new("/proc/none/ca.pem"), &der).to_string();
    assert!(
        told.contains("/proc/none/ca.pem cannot be written"),
        "{told}"
    );
}
