//! `urtica ryu-manager`: runs Ryu programs with the Python package urtica-ryu.

use crate::status;
use std::env;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

const EXAMPLES: &str = "\
Options of Ryu's manager follow the command, such as --ofp-tcp-listen-port PORT, --ofp-listen-host ADDRESS, --verbose and
--log-file FILE; 'urtica ryu-manager -- --help' lists them.

Examples:
  urtica ryu-manager my_app.py
  urtica ryu-manager --ofp-tcp-listen-port 6653 --verbose monitor.py firewall.py

The interpreter is that of --python, else that of the active virtual environment, else python3. The guide is docs/ryu.md.";

/// Options of `urtica ryu-manager`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct RyuManagerArgs {
    /// The Python interpreter; before all other arguments.
    #[arg(long, value_name = "FILE")]
    python: Option<PathBuf>,
    /// Options, and programs: Python files, or names of modules.
    #[arg(
        value_name = "ARGUMENT",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    arguments: Vec<OsString>,
}

/// Why the programs cannot be started.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(
        "cannot run the Python interpreter {0}: {1}; expected Python 3.10 or later, from --python, an active virtual environment, or as python3"
    )]
    Interpreter(String, io::Error),
    #[error(
        "{0} is older than Python 3.10, which the package urtica-ryu needs; name another interpreter with --python"
    )]
    Old(String),
    #[error(
        "the package urtica-ryu is not installed for {0}; build it with 'make python', then install it: {0} -m pip install target/wheels/urtica*.whl"
    )]
    Package(String),
}

/// Replaces this process by the interpreter that runs the programs.
pub fn run(args: RyuManagerArgs) -> ExitCode {
    let python = interpreter(args.python, env::var_os("VIRTUAL_ENV"));
    status::of(start(&python, &args.arguments))
}

/// Returns the interpreter: the given one, that of the virtual environment, or the system's.
fn interpreter(given: Option<PathBuf>, environment: Option<OsString>) -> PathBuf {
    let active = environment.filter(|folder| !folder.is_empty());
    given
        .or_else(|| active.map(|folder| Path::new(&folder).join("bin/python3")))
        .unwrap_or_else(|| "python3".into())
}

/// The statuses with which the check below ends.
const OLD: i32 = 3;
const CHECK: &str = "\
import sys
if sys.version_info < (3, 10): sys.exit(3)
from importlib.util import find_spec
sys.exit(0 if find_spec('urtica_ryu') and find_spec('urtica') else 4)";

/// Replaces this process; returns only if that fails, with the reason.
fn start(python: &Path, arguments: &[OsString]) -> Result<(), Error> {
    let name = || python.display().to_string();
    let failed = |error| Error::Interpreter(name(), error);
    let mut check = Command::new(python);
    check.args(["-c", CHECK]).stdin(Stdio::null());
    match check.status().map_err(failed)?.code() {
        Some(0) => {}
        Some(OLD) => return Err(Error::Old(name())),
        _ => return Err(Error::Package(name())),
    }
    let mut command = Command::new(python);
    command.args(["-m", "urtica_ryu"]).args(arguments);
    Err(failed(command.exec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_given_interpreter_precedes_the_virtual_environment_and_the_system() {
        let environment = || Some(OsString::from("/venv"));
        let given = || Some(PathBuf::from("/usr/bin/python3.12"));
        assert_eq!(
            interpreter(given(), environment()),
            Path::new("/usr/bin/python3.12")
        );
        assert_eq!(
            interpreter(None, environment()),
            Path::new("/venv/bin/python3")
        );
        assert_eq!(
            interpreter(None, Some(OsString::new())),
            Path::new("python3")
        );
        assert_eq!(interpreter(None, None), Path::new("python3"));
    }
}
