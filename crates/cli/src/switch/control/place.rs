//! The path of a switch's control socket.

use std::path::{Path, PathBuf};

/// The folder of sockets in the system's runtime directory. The controller's service has another one, which is removed when the
/// service stops.
const FOLDER: &str = "urtica-switch";

/// Options for the path of a switch's control socket.
#[derive(Clone, Debug, clap::Args)]
pub struct ControlPlace {
    /// The control socket [default: urtica-switch/NAME.ctl in /run, or in $XDG_RUNTIME_DIR if not run by root].
    #[arg(long, value_name = "FILE")]
    control: Option<PathBuf>,
    /// The switch's name, for its description and its control socket.
    #[arg(long, value_name = "NAME", default_value = "urtica")]
    name: String,
}

impl ControlPlace {
    /// Returns the switch's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns `true` if the file was named.
    pub fn is_given(&self) -> bool {
        self.control.is_some()
    }

    /// Returns the socket's file.
    ///
    /// # Errors
    /// A message, if there is no default path.
    pub fn file(&self) -> Result<PathBuf, String> {
        if let Some(file) = &self.control {
            return Ok(file.clone());
        }
        let folder = folder().ok_or(
            "no default path for the control socket, since XDG_RUNTIME_DIR is not set; expected a file, as in \
             --control /tmp/mine/switch.ctl",
        )?;
        Ok(folder.join(file_name(&self.name)))
    }

    /// Returns the socket's file, and creates the folder of a default path.
    ///
    /// # Errors
    /// A message, if that fails.
    pub fn make(&self) -> Result<PathBuf, String> {
        let file = self.file()?;
        if !self.is_given() {
            let folder = file.parent().unwrap_or(Path::new("/"));
            let made = std::fs::create_dir_all(folder);
            made.map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
        }
        Ok(file)
    }
}

/// Returns the service manager's folder, for a service; otherwise the system's or the user's.
fn folder() -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os("RUNTIME_DIRECTORY") {
        return Some(PathBuf::from(folder));
    }
    let runtime = match rustix::process::geteuid().is_root() {
        true => Some(PathBuf::from("/run")),
        false => std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from),
    };
    Some(runtime?.join(FOLDER))
}

/// Returns a valid file name for a switch of any name.
fn file_name(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let plain = name.chars().map(|c| if is_plain(c) { c } else { '_' });
    format!("{}.ctl", plain.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_becomes_a_file_in_the_folder() {
        assert_eq!(file_name("s1"), "s1.ctl");
        assert_eq!(file_name("../rack 7/s1"), ".._rack_7_s1.ctl");
    }
}
