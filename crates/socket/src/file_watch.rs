//! Whether files have changed.

use std::fs::metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// By what a file is seen to have changed: device and inode, size, and time of the last change. `None` where there is none.
type Stamp = Option<(u64, u64, u64, i64, i64)>;

/// Files that belong together, and how they looked when they were last read.
#[derive(Clone, Debug)]
pub struct FileWatch {
    paths: Vec<PathBuf>,
    read: Vec<Stamp>,
    /// How they look since they have changed.
    changed: Option<Vec<Stamp>>,
}

impl FileWatch {
    /// Files that are to be read now.
    pub fn new(paths: Vec<PathBuf>) -> Self {
        let read = stamps(&paths);
        Self {
            paths,
            read,
            changed: None,
        }
    }

    /// Whether they are to be read again: they have changed, and look as they did at the last call. Whoever replaces several
    /// files, or a long one, does not do it at once. To be called about once a second.
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
    fn a_change_counts_once_it_is_over() {
        let folder = tempfile::tempdir().unwrap();
        let [one, other] = ["one", "other"].map(|name| folder.path().join(name));
        write(&one, "1").unwrap();
        let mut watch = FileWatch::new(vec![one.clone(), other.clone()]);
        let mut look = || watch.has_changed();
        assert!(!look() && !look());
        write(&one, "12").unwrap();
        assert!(!look(), "it may go on");
        write(&other, "new").unwrap();
        assert!(!look(), "it went on");
        assert!(look());
        assert!(!look() && !look());
        remove_file(&other).unwrap();
        assert!(!look() && look() && !look());
    }
}
