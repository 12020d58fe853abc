//! Certificates: subject, issuer, validity.

use sha2::{Digest, Sha256};
use std::fmt;
use std::time::SystemTime;
use x509_cert::der::{DateTime, Decode};
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::name::Name;

/// The text that ovs-pki puts between the given name and the number that it appends.
const OVS_PKI_ID: &str = " id:";

/// An X.509 certificate. It is displayed by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The subject's common name first, then the alternative names.
    names: Vec<String>,
    issuer: String,
    fingerprint: [u8; 32],
    not_before: SystemTime,
    not_after: SystemTime,
}

impl Certificate {
    /// Parses a certificate's DER; returns `None` if it is malformed.
    pub fn from_der(der: &[u8]) -> Option<Self> {
        let parsed = x509_cert::Certificate::from_der(der).ok()?;
        let parsed = parsed.tbs_certificate();
        let mut names = Vec::new();
        names.extend(common_name(parsed.subject()));
        if let Ok(Some((_, alternatives))) = parsed.get_extension::<SubjectAltName>() {
            names.extend(alternatives.0.iter().filter_map(text_of));
        }
        let mut seen = Vec::new();
        names.retain(|name| {
            let is_new = !seen.contains(name);
            seen.push(name.clone());
            is_new
        });
        let issuer = parsed.issuer();
        Some(Self {
            names,
            issuer: name_of(issuer),
            fingerprint: Sha256::digest(der).into(),
            not_before: parsed.validity().not_before.to_system_time(),
            not_after: parsed.validity().not_after.to_system_time(),
        })
    }

    /// Returns the names of its holder, the subject's common name first: `subjectAltName` of the kinds DNS and URI, and the
    /// common name. Control characters are replaced.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the issuer's common name.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Returns the SHA-256 digest of the certificate, in hexadecimal digits.
    pub fn fingerprint(&self) -> String {
        self.fingerprint
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }

    /// Returns the end of its validity.
    pub fn not_after(&self) -> SystemTime {
        self.not_after
    }

    /// Returns the start of its validity.
    pub fn not_before(&self) -> SystemTime {
        self.not_before
    }

    /// Returns `true` if `name` is one of [`Certificate::names`], the name given to `ovs-pki req` (before the ` id:…` that
    /// it adds), or `sha256:` and the fingerprint, with or without colons.
    pub fn is_called(&self, name: &str) -> bool {
        if let Some(fingerprint) = name.strip_prefix("sha256:") {
            let digits = fingerprint.replace(':', "").to_ascii_lowercase();
            return digits == self.fingerprint();
        }
        self.names.iter().any(|own| {
            let given = own.split_once(OVS_PKI_ID).map(|(given, _)| given);
            own == name || given == Some(name)
        })
    }
}

impl fmt::Display for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.names.first() {
            Some(name) => write!(f, "'{name}'"),
            None => write!(f, "sha256:{}", self.fingerprint()),
        }
    }
}

/// Returns the common name; without one, the whole name.
pub(super) fn name_of(name: &Name) -> String {
    common_name(name).unwrap_or_else(|| printable(&name.to_string()))
}

fn common_name(name: &Name) -> Option<String> {
    let name = name.common_name().ok()??;
    Some(printable(&name.value()))
}

fn text_of(name: &GeneralName) -> Option<String> {
    match name {
        GeneralName::DnsName(text) | GeneralName::UniformResourceIdentifier(text) => {
            Some(printable(text.as_str()))
        }
        _ => None,
    }
}

/// Replaces characters that could corrupt the output of a terminal or a log.
fn printable(text: &str) -> String {
    let clean = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    text.chars().map(clean).collect()
}

/// Formats a time for users, in UTC.
pub(super) fn date(time: SystemTime) -> String {
    DateTime::from_system_time(time)
        .map_or_else(|_| "an unknown time".to_owned(), |at| at.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::testing::Authority;

    #[test]
    fn matches_all_names_of_the_holder() {
        let ca = Authority::new("switchca");
        let made = ca.sign(|params| {
            params
                .distinguished_name
                .push(rcgen::DnType::CommonName, "s1 id:4a36");
            params.subject_alt_names =
                vec![rcgen::SanType::DnsName("s1.example".try_into().unwrap())];
        });
        let certificate = Certificate::from_der(&made.der).unwrap();
        assert_eq!(certificate.names(), ["s1 id:4a36", "s1.example"]);
        assert_eq!(certificate.issuer(), "switchca");
        assert_eq!(certificate.to_string(), "'s1 id:4a36'");
        let fingerprint = certificate.fingerprint();
        let colons: Vec<_> = fingerprint
            .as_bytes()
            .chunks(2)
            .map(|pair| std::str::from_utf8(pair).unwrap())
            .collect();
        for name in [
            "s1",
            "s1 id:4a36",
            "s1.example",
            &format!("sha256:{fingerprint}"),
            &format!("sha256:{}", colons.join(":").to_uppercase()),
        ] {
            assert!(certificate.is_called(name), "{name}");
        }
        for name in [
            "",
            "s",
            "s1 id:",
            "s1.example.org",
            "S1",
            "sha256:",
            &fingerprint,
        ] {
            assert!(!certificate.is_called(name), "{name}");
        }
    }

    #[test]
    fn replaces_control_characters_in_names() {
        let ca = Authority::new("ca");
        let made = ca.sign(|params| {
            params
                .distinguished_name
                .push(rcgen::DnType::CommonName, "a\u{1b}[2Jb\n")
        });
        let certificate = Certificate::from_der(&made.der).unwrap();
        assert_eq!(certificate.to_string(), "'a\u{fffd}[2Jb\u{fffd}'");
    }

    #[test]
    fn rejects_malformed_certificates() {
        assert_eq!(Certificate::from_der(b"no certificate"), None);
        assert_eq!(Certificate::from_der(b""), None);
    }
}
