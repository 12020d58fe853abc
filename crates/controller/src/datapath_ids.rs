//! The datapath ids that each certificate may use, so that no switch can impersonate another.
//!
//! The file has a line per certificate: the datapath ids, separated by commas, then the certificate's name. Lines that begin
//! with `#` are comments.
//!
//! ```text
//! # the switch in rack 4, as ovs-pki made its certificate
//! 0000000000000001      s1
//! 2,3                   sha256:ab5c…
//! ```

use crate::setting::SettingError;
use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use urtica_socket::{Certificate, FileWatch};
use urtica_wire::DatapathId;

/// The contents of the file when it was last read.
#[derive(Debug, Default)]
struct Rules {
    path: PathBuf,
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    ids: Vec<DatapathId>,
    holder: String,
}

/// The rules in use, which are reloaded when their file changes.
///
/// Thread-safety: the supervisor reloads them, and shards query them; the lock is held only for a query.
#[derive(Clone)]
pub(crate) struct DatapathIds {
    rules: Arc<Mutex<Rules>>,
    files: FileWatch,
}

impl DatapathIds {
    /// Reads the file.
    ///
    /// # Errors
    /// If it cannot be read, or a line is invalid: the error contains the line and the expected form.
    pub fn read(path: &Path) -> Result<Self, SettingError> {
        let files = FileWatch::new(vec![path.to_owned()]);
        Ok(Self {
            rules: Arc::new(Mutex::new(Rules::read(path)?)),
            files,
        })
    }

    /// Reloads the file if it has changed. Returns `Some(Err)` if it is now invalid: the old rules stay in use.
    pub fn refresh(&mut self) -> Option<Result<(), SettingError>> {
        if !self.files.has_changed() {
            return None;
        }
        let path = self.rules.lock().path.clone();
        let read = Rules::read(&path);
        Some(read.map(|rules| *self.rules.lock() = rules))
    }

    /// Checks that a peer with this certificate, or without one, may use a datapath id. The error is the reason for refusing
    /// it.
    pub fn admit(
        &self,
        datapath_id: DatapathId,
        certificate: Option<&Certificate>,
    ) -> Result<(), String> {
        self.rules.lock().admit(datapath_id, certificate)
    }
}

impl Rules {
    fn read(path: &Path) -> Result<Self, SettingError> {
        let shown = path.display();
        let text = std::fs::read_to_string(path).map_err(|error| {
            SettingError::new(format!(
                "the file of datapath ids {shown} cannot be read: {error}"
            ))
        })?;
        let mut rows = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let row = Row::parse(line).map_err(|problem| {
                SettingError::new(format!("{shown}:{}: {problem}", index + 1))
            })?;
            rows.extend(row);
        }
        Ok(Self {
            path: path.to_owned(),
            rows,
        })
    }

    fn admit(&self, id: DatapathId, certificate: Option<&Certificate>) -> Result<(), String> {
        let file = self.path.display();
        let Some(certificate) = certificate else {
            let is_owned = self.rows.iter().any(|row| row.ids.contains(&id));
            return match is_owned {
                true => Err(format!(
                    "datapath id {id} is refused to a peer without a certificate, since {file} assigns it to a peer with one; \
                     expected the switch to connect by ssl:"
                )),
                false => Ok(()),
            };
        };
        let mut own = self
            .rows
            .iter()
            .filter(|row| certificate.is_called(&row.holder))
            .peekable();
        if own.peek().is_none() {
            return Err(format!(
                "datapath id {id} is refused to the certificate {certificate}, which is not in {file}; expected a line there \
                 such as '{id} NAME'"
            ));
        }
        match own.any(|row| row.ids.contains(&id)) {
            true => Ok(()),
            false => Err(format!(
                "datapath id {id} is refused to the certificate {certificate}, for which {file} lists others; a switch that uses \
                 another's id is misconfigured or hostile"
            )),
        }
    }
}

impl Row {
    /// Parses a line; returns `None` if it has no rule.
    fn parse(line: &str) -> Result<Option<Self>, String> {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            return Ok(None);
        }
        let (ids, holder) = line.split_once(char::is_whitespace).ok_or_else(|| {
            format!("'{line}' has no name of a certificate; expected 'ID[,ID…] NAME', as in '0000000000000001 s1'")
        })?;
        let ids = ids
            .split(',')
            .map(|id| id.parse().map_err(|error| format!("{error}")))
            .collect::<Result<_, _>>()?;
        let holder = holder.trim().to_owned();
        Ok(Some(Self { ids, holder }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

    fn certificate(name: &str) -> Certificate {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        Certificate::from_der(params.self_signed(&key).unwrap().der()).unwrap()
    }

    fn file(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    }

    #[test]
    fn certificates_have_separate_ids() {
        let file = file("# racks\n\n1 s1\n2,0x3\ts2 id:7\n00:00:00:00:00:00:00:04  s1\n");
        let ids = DatapathIds::read(file.path()).unwrap();
        let [s1, s2, s3] = ["s1 id:5", "s2 id:7", "s3"].map(certificate);
        let admit = |id, certificate| ids.admit(DatapathId(id), certificate);
        for (id, certificate) in [(1, &s1), (4, &s1), (2, &s2), (3, &s2)] {
            assert_eq!(admit(id, Some(certificate)), Ok(()));
        }
        for (id, certificate, words) in [
            (2, Some(&s1), "for which"),
            (1, Some(&s2), "misconfigured or hostile"),
            (9, Some(&s2), "lists others"),
            (
                9,
                Some(&s3),
                "expected a line there such as '0000000000000009 NAME'",
            ),
            (1, None, "expected the switch to connect by ssl:"),
        ] {
            let sentence = admit(id, certificate).unwrap_err();
            assert!(sentence.contains(words), "{sentence}");
            assert!(sentence.contains(&DatapathId(id).to_string()), "{sentence}");
        }
        assert_eq!(admit(9, None), Ok(()), "nobody's id");
    }

    #[test]
    fn invalid_lines_are_reported_by_number() {
        for (text, words) in [
            ("1 s1\n2\n", ":2: '2' has no name of a certificate"),
            ("x s1", ":1: "),
            ("1,,2 s1", ":1: "),
        ] {
            let file = file(text);
            let error = DatapathIds::read(file.path()).err().unwrap().to_string();
            assert!(error.contains(words), "{error}");
        }
        let error = DatapathIds::read("/none/ids".as_ref()).err().unwrap();
        assert!(error.to_string().contains("/none/ids cannot be read"));
    }

    #[test]
    fn files_that_become_invalid_are_ignored() {
        let file = file("1 s1");
        let mut ids = DatapathIds::read(file.path()).unwrap();
        let s1 = certificate("s1");
        let admits = |ids: &DatapathIds, id| ids.admit(DatapathId(id), Some(&s1)).is_ok();
        assert!(ids.refresh().is_none());
        std::fs::write(file.path(), "2").unwrap();
        assert!(ids.refresh().is_none());
        assert!(ids.refresh().unwrap().is_err());
        assert!(admits(&ids, 1) && ids.refresh().is_none());
        std::fs::write(file.path(), "22 s1").unwrap();
        assert!(ids.refresh().is_none());
        ids.refresh().unwrap().unwrap();
        assert!(admits(&ids, 22) && !admits(&ids, 1));
    }
}
