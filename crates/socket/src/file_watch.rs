//! Detection of changed files.

use std::fs::metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The identity of a file's content: device and inode, size, and time of the last change. `None` if the file does not exist.
type Stamp = Option<(u64, u64, u64, i64, i64)>;

/// Files that belong together, with their stamps as of the last read.
#[derive(Clone, Debug)]
pub struct FileWatch {
    paths: Vec<PathBuf>,
    read: Vec<Stamp>,
    /// The stamps at the last call, if the files have changed since they were read.
    changed: Option<Vec<Stamp>>,
}

impl FileWatch {
    /// Watches files whose current content the caller reads.
    pub fn new(paths: Vec<PathBuf>) -> Self {
        let read = stamps(&paths);
        Self {
            paths,
            read,
            changed: None,
        }
    }

    /// Returns `true` if the files must be read again: they have changed, but not since the last call. The second condition is
    /// because replacing several files or a long one needs time. Call this about once a second.
    pub fn has_changed(&mut self) -> bool {
        let now = stamps(&self.paths);
        if now == self.read {
            self.changed = None;
            return false;
        }
        if self.changed.as_ref() != Some(&now) {
            self.changed = Some(now);
            return false;
        }
        self.changed = None;
        self.read = now;
        true
    }
}

fn stamps(paths: &[PathBuf]) -> Vec<Stamp> {
    paths.iter().map(|path| stamp(path)).collect()
}

fn stamp(path: &Path) -> Stamp {
    let file = metadata(path).ok()?;
    Some((
        file.dev(),
        file.ino(),
        file.size(),
        file.mtime(),
        file.mtime_nsec(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{remove_file, write};

    #[test]
    fn reports_a_change_after_it_has_ended() {
        let folder = tempfile::tempdir().unwrap();
        let [one, other] = ["one", "other"].map(|name| folder.path().join(name));
        write(&one, "1").unwrap();
        let mut watch = FileWatch::new(vec![one.clone(), other.clone()]);
        let mut look = || watch.has_changed();
        assert!(!look() && !look());
        write(&one, "12").unwrap();
        assert!(!look(), "the change may continue");
        write(&other, "new").unwrap();
        assert!(!look(), "the change continued");
        assert!(look());
        assert!(!look() && !look());
        remove_file(&other).unwrap();
        assert!(!look() && look() && !look());
    }
}
