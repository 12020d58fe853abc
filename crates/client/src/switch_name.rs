//! Switches by address, or by the name of an Open vSwitch bridge.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use urtica_socket::{Address, AddressError};

/// The directory of Open vSwitch's bridge sockets, unless `OVS_RUNDIR` is set.
const OVS_RUN_DIR: &str = "/var/run/openvswitch";

/// The suffix of a bridge's socket.
const SUFFIX: &str = ".mgmt";

/// An address, or the name of a bridge whose socket is in Open vSwitch's directory.
#[derive(Clone, Debug)]
pub struct SwitchName(Address);

/// The reason why a text does not name a switch.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SwitchNameError {
    /// The text is not an address.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The bridge does not exist.
    #[error("there is no bridge '{name}' in {}; expected tcp:HOST[:PORT], unix:FILE or {}", folder.display(), bridges(.there))]
    NoBridge {
        /// The bridge.
        name: String,
        /// The directory.
        folder: PathBuf,
        /// The existing bridges.
        there: Vec<String>,
    },
}

fn bridges(there: &[String]) -> String {
    match there {
        [] => "a bridge of an Open vSwitch that runs on this machine".to_owned(),
        [one] => format!("the only bridge, {one}"),
        some => format!("one of the bridges: {}", some.join(", ")),
    }
}

impl SwitchName {
    /// Returns the address to connect to.
    pub fn address(&self) -> &Address {
        &self.0
    }

    fn find(text: &str, folder: &Path) -> Result<Self, SwitchNameError> {
        if text.contains([':', '/']) {
            return Ok(Self(text.parse()?));
        }
        let socket = folder.join(format!("{text}{SUFFIX}"));
        if socket.exists() {
            return Ok(Self(Address::Unix(socket)));
        }
        Err(SwitchNameError::NoBridge {
            name: text.to_owned(),
            folder: folder.to_owned(),
            there: bridges_in(folder),
        })
    }
}

impl FromStr for SwitchName {
    type Err = SwitchNameError;

    fn from_str(text: &str) -> Result<Self, SwitchNameError> {
        let folder = std::env::var_os("OVS_RUNDIR");
        Self::find(text, Path::new(&folder.unwrap_or(OVS_RUN_DIR.into())))
    }
}

fn bridges_in(folder: &Path) -> Vec<String> {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = files.filter_map(|file| file.file_name().into_string().ok());
    let mut bridges: Vec<_> = names
        .filter_map(|name| name.strip_suffix(SUFFIX).map(str::to_owned))
        .collect();
    bridges.sort_unstable();
    bridges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_bridges_and_lists_them_in_errors() {
        let folder = tempfile::tempdir().unwrap();
        let find = |text: &str| SwitchName::find(text, folder.path());
        let message = |text: &str| find(text).unwrap_err().to_string();
        let none = message("s1");
        assert!(none.starts_with("there is no bridge 's1' in /"), "{none}");
        assert!(
            none.ends_with("unix:FILE or a bridge of an Open vSwitch that runs on this machine")
        );
        for bridge in ["s2", "s1"] {
            std::fs::write(folder.path().join(format!("{bridge}.mgmt")), "").unwrap();
        }
        let socket = folder.path().join("s1.mgmt");
        assert_eq!(find("s1").unwrap().address(), &Address::Unix(socket));
        assert!(message("s3").ends_with("one of the bridges: s1, s2"));
        assert!(find("tcp:127.0.0.1").is_ok());
        assert!(message("tpc:127.0.0.1").contains("tcp:HOST"));
    }
}
