//! Files for results. They are opened before the measurements, so that an unwritable file is reported first.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use urtica_bench::Error;

use crate::bench::is_stdout;

/// The destination of a future result.
pub struct Output(Destination);

enum Destination {
    Stdout,
    File(ResultFile),
}

/// A file whose contents are replaced at the first write. If it was newly created and never written, it is removed.
struct ResultFile {
    path: PathBuf,
    file: File,
    is_empty_and_ours: bool,
}

impl Output {
    /// Opens standard output for `-`, otherwise this file.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn open(path: &Path) -> Result<Self, Error> {
        if is_stdout(path) {
            return Ok(Self(Destination::Stdout));
        }
        let made = File::options().write(true).create_new(true).open(path);
        let is_empty_and_ours = made.is_ok();
        let file = made.or_else(|_| File::options().write(true).open(path));
        let file = file.map_err(Error::system(format!("write {}", path.display())))?;
        Ok(Self(Destination::File(ResultFile {
            path: path.into(),
            file,
            is_empty_and_ours,
        })))
    }

    /// Returns `true` for standard output.
    pub fn is_stdout(&self) -> bool {
        matches!(self.0, Destination::Stdout)
    }

    /// Writes a result, which replaces the earlier contents.
    ///
    /// # Errors
    /// The system's error.
    pub fn write(self, content: &str) -> Result<(), Error> {
        match self.0 {
            Destination::Stdout => io::stdout()
                .write_all(content.as_bytes())
                .map_err(Error::system("write to standard output")),
            Destination::File(mut kept) => {
                kept.is_empty_and_ours = false;
                kept.replace(content)
                    .map_err(Error::system(format!("write {}", kept.path.display())))
            }
        }
    }
}

impl ResultFile {
    fn replace(&mut self, content: &str) -> io::Result<()> {
        // Only files can be truncated, and not /dev/null or a pipe.
        if self.file.metadata()?.is_file() {
            self.file.set_len(0)?;
        }
        self.file.write_all(content.as_bytes())
    }
}

impl Drop for ResultFile {
    fn drop(&mut self) {
        if self.is_empty_and_ours {
            // An empty file left behind does no harm.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn existing_files_are_kept_until_the_first_write() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result.json");
        drop(Output::open(&path).unwrap());
        assert!(!path.exists());
        fs::write(&path, "a longer result than the next").unwrap();
        drop(Output::open(&path).unwrap());
        assert!(fs::read_to_string(&path).unwrap().starts_with("a longer"));
        Output::open(&path).unwrap().write("short").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "short");
    }
}
