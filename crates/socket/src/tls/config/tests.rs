//! Tests of usable, unusable and changing files.

use super::*;
use crate::tls::testing::{Authority, Files, year};
use rcgen::DnType;

fn refusal(files: &Files) -> String {
    Tls::load(files.config())
        .expect_err("the files should be rejected")
        .to_string()
}

#[test]
fn errors_name_the_file_and_the_remedy() {
    let ca = Authority::new("ca");
    let made = ca.sign_name("ctl");
    let changed = |name: &str, text: &str| {
        let files = Files::new(&made, &ca.pem);
        files.write(name, text);
        refusal(&files)
    };
    let other = ca.sign_name("other");
    let expired = ca.sign(|params| {
        params.not_after = rcgen::date_time_ymd(2001, 3, 4);
        params.distinguished_name.push(DnType::CommonName, "ctl");
    });
    for (name, text, expected) in [
        ("cert.pem", "", "BEGIN CERTIFICATE"),
        ("cert.pem", "no certificate", "BEGIN CERTIFICATE"),
        ("cert.pem", made.key.as_str(), "BEGIN CERTIFICATE"),
        (
            "cert.pem",
            expired.pem.as_str(),
            "has expired: 'ctl' was valid until 2001-03-04",
        ),
        ("ca.pem", "", "BEGIN CERTIFICATE"),
        (
            "ca.pem",
            expired.pem.as_str(),
            "no certificate that is still valid",
        ),
        ("key.pem", "secret", "BEGIN PRIVATE KEY"),
        (
            "key.pem",
            other.key.as_str(),
            "does not belong to the certificate in",
        ),
    ] {
        let sentence = changed(name, text);
        assert!(sentence.contains(expected), "{sentence}");
        assert!(sentence.contains(name), "{sentence}");
        assert!(!sentence.contains("secret"), "{sentence}");
    }
    let files = Files::new(&made, &ca.pem);
    std::fs::remove_file(files.path("key.pem")).unwrap();
    let sentence = refusal(&files);
    assert!(
        sentence.contains("cannot be read") && sentence.contains("ovs-pki req+sign"),
        "{sentence}"
    );
}

#[test]
fn reloads_changed_files_once_the_change_has_ended() {
    let ca = Authority::new("ca");
    let files = Files::new(&ca.sign_name("old"), &ca.pem);
    let mut tls = files.load();
    let now = SystemTime::now();
    assert!(tls.refresh(now).is_empty());
    let new = ca.sign_name("new");
    // The change is half done: the key does not match the certificate.
    files.write("key.pem", &new.key);
    assert!(tls.refresh(now).is_empty());
    let [Notice::Kept(_)] = &tls.refresh(now)[..] else {
        panic!("expected an error notice");
    };
    assert!(tls.refresh(now).is_empty(), "reported once");
    assert!(tls.certificate().is_called("old"));
    // The other half of the change, in two writes.
    files.write("cert.pem", "-----BEGIN");
    assert!(tls.refresh(now).is_empty());
    files.write("cert.pem", &new.pem);
    assert!(tls.refresh(now).is_empty());
    let [Notice::Reloaded { certificate }] = &tls.refresh(now)[..] else {
        panic!("expected the new certificate");
    };
    assert!(certificate.is_called("new") && tls.certificate().is_called("new"));
    assert!(tls.refresh(now).is_empty());
}

#[test]
fn warns_of_expiry_each_day_from_two_weeks_before() {
    let ca = Authority::new("ca");
    let made = ca.sign(|params| {
        params.not_after = rcgen::date_time_ymd(3000, 1, 1);
        params.distinguished_name.push(DnType::CommonName, "ctl");
    });
    let files = Files::new(&made, &ca.pem);
    let mut tls = files.load();
    let end = year(3000);
    let day = |before: u32| end - DAY * before;
    assert!(tls.refresh(day(15)).is_empty());
    for before in [13, 12, 1] {
        let notices = tls.refresh(day(before));
        let [notice] = &notices[..] else {
            panic!("expected one notice, not {notices:?}");
        };
        let sentence = notice.to_string();
        assert!(
            sentence.contains("'ctl'") && sentence.contains("expires on 3000-01-01"),
            "{sentence}"
        );
        assert!(notice.is_warning());
        assert!(tls.refresh(day(before)).is_empty(), "once a day");
    }
    let notices = tls.refresh(end + DAY);
    assert!(notices[0].to_string().contains("has expired on 3000-01-01"));
}

#[test]
fn reloads_changed_crls_and_warns_of_old_ones() {
    let ca = Authority::new("ca");
    let (made, lost) = (ca.sign_name("ctl"), ca.sign_name("lost"));
    let files = Files::new(&made, &ca.pem);
    files.write("crl.pem", &ca.revoke(&[], 2026));
    let config = files.config().crl(Some(files.path("crl.pem")));
    let mut tls = Tls::load(config).unwrap();
    assert!(tls.refresh(year(2026) + 100 * DAY).is_empty());
    let notices = tls.refresh(year(2027) + DAY);
    let [notice @ Notice::OldList { .. }] = &notices[..] else {
        panic!("expected that the list is old, not {notices:?}");
    };
    let sentence = notice.to_string();
    assert!(notice.is_warning());
    assert!(
        sentence.contains("of 'ca'") && sentence.contains("replaced on 2027-01-01"),
        "{sentence}"
    );
    files.write("crl.pem", &ca.revoke(&[&lost], 2027));
    assert!(tls.refresh(year(2027) + DAY).is_empty());
    let [Notice::Reloaded { .. }] = &tls.refresh(year(2027) + DAY)[..] else {
        panic!("expected the new list");
    };
}
