//! `urtica hold`, which keeps the connections of `urtica run` while it is replaced, and `urtica run --hold`, which attaches
//! to it.

use crate::say::say;
use crate::{service, status};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf, absolute};
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use urtica_hold::{Held, HoldError, Holder, attach, attach_to_manager};

/// The line that a ready holder prints.
const READY: &str = "holding at";

/// The name for systemd instead of a holder's socket.
const SYSTEMD: &str = "systemd";

/// The maximum time for a holder of another version to end.
const PATIENCE: Duration = Duration::from_secs(5);

/// Options of `urtica hold`.
#[derive(clap::Args)]
#[command(
    after_help = "It ends when urtica run ends by SIGINT, or when no other one attaches in time."
)]
pub struct HoldArgs {
    /// The holder's socket, as in urtica run --hold=FILE [default: as for urtica run]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

/// Options of `urtica run` for the holder.
#[derive(clap::Args)]
pub struct HoldOptions {
    /// Keep the connections in a holder while this program is killed, restarted or replaced; starts a holder if none is at FILE
    /// [default FILE: urtica-hold.sock in /run, or in $XDG_RUNTIME_DIR if not run by root]. With systemd as FILE, systemd keeps
    /// them; it must have started this program.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    hold: Option<Option<PathBuf>>,
    /// Seconds that the holder waits for the next program before it closes the connections; does not apply to systemd.
    #[arg(long, value_name = "SECONDS", requires = "hold", default_value_t = 30)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    hold_seconds: u32,
}

/// Runs until it is stopped, or no program has attached in time.
pub fn run(args: HoldArgs) -> ExitCode {
    status::of(hold(args))
}

fn hold(args: HoldArgs) -> Result<(), String> {
    let file = file(args.file)?;
    let holder = Holder::bind(&file)
        .map_err(|error| format!("cannot hold at {}: {error}", file.display()))?;
    say(format_args!("{READY} {}", file.display()));
    service::ready();
    let closed = holder.run().map_err(|error| error.to_string())?;
    say(format_args!("closed {closed} sockets"));
    Ok(())
}

impl HoldOptions {
    /// Returns `true` if connections should be held.
    pub fn is_given(&self) -> bool {
        self.hold.is_some()
    }

    /// Attaches this program to its holder, and starts one if necessary. Returns `None` without `--hold` or, after a warning, if
    /// no holder can be used.
    ///
    /// # Errors
    /// If another program has the connections and the ports.
    pub fn attach(&self) -> Result<Option<Held>, String> {
        let Some(named) = &self.hold else {
            return Ok(None);
        };
        if named.as_deref() == Some(Path::new(SYSTEMD)) {
            return Ok(attach_to_systemd());
        }
        let file = file(named.clone())?;
        let keep = Duration::from_secs(self.hold_seconds.into());
        match attach_or_start(&file, keep) {
            Ok(held) => {
                tracing::info!(file = %file.display(), "a holder keeps the connections when this program ends");
                Ok(Some(held))
            }
            Err(error @ Failure::Hold(HoldError::Refused { .. })) => Err(error.to_string()),
            Err(error) => {
                tracing::warn!("connections will close when this program ends: {error}");
                Ok(None)
            }
        }
    }
}

/// Lets systemd keep the connections. Returns `None`, after a warning, if it has not started this program.
fn attach_to_systemd() -> Option<Held> {
    match attach_to_manager() {
        Ok(held) => {
            tracing::info!("systemd keeps the connections when this program ends");
            Some(held)
        }
        Err(error) => {
            tracing::warn!("connections will close when this program ends: {error}");
            None
        }
    }
}

/// Returns the holder's socket from the options, or the default one.
fn file(named: Option<PathBuf>) -> Result<PathBuf, String> {
    let folder = match named {
        Some(file) => return absolute(&file).map_err(|error| format!("{}: {error}", file.display())),
        None if rustix::process::geteuid().is_root() => PathBuf::from("/run"),
        None => std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).ok_or(
            "no default path for the holder's socket, since XDG_RUNTIME_DIR is not set; expected a file, as in \
             --hold=/tmp/mine/hold.sock",
        )?,
    };
    Ok(folder.join("urtica-hold.sock"))
}

/// Why connections are not held.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Hold(#[from] HoldError),
    #[error("cannot start a holder: {0}")]
    Start(String),
}

fn attach_or_start(file: &Path, keep: Duration) -> Result<Held, Failure> {
    match attach(file, keep) {
        Err(HoldError::Absent { .. }) => start(file).map_err(Failure::Start)?,
        Err(error @ HoldError::OtherVersion { .. }) => {
            tracing::warn!("{error}");
            start_after_another(file)?;
        }
        attached => return Ok(attached?),
    }
    Ok(attach(file, keep)?)
}

/// Starts a holder while one of another version is about to end.
fn start_after_another(file: &Path) -> Result<(), Failure> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match start(file) {
            Err(reason) if Instant::now() >= deadline => return Err(Failure::Start(reason)),
            Err(_) => thread::sleep(Duration::from_millis(50)),
            Ok(()) => return Ok(()),
        }
    }
}

/// Starts a holder independent of this program: without its terminal, folder and standard streams.
fn start(file: &Path) -> Result<(), String> {
    let text = |error: std::io::Error| error.to_string();
    let (mut ours, theirs) = UnixStream::pair().map_err(text)?;
    let said = theirs.try_clone().map_err(text)?;
    let program = std::env::current_exe().map_err(text)?;
    let mut child = Command::new(program)
        .arg("hold")
        .arg(file)
        .current_dir("/")
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(OwnedFd::from(theirs))
        .stderr(OwnedFd::from(said))
        .spawn()
        .map_err(text)?;
    let mut answer = Vec::new();
    let mut byte = [0];
    while matches!(ours.read(&mut byte), Ok(1)) && byte != *b"\n" {
        answer.extend(byte);
    }
    let answer = String::from_utf8_lossy(&answer);
    if answer.starts_with(READY) {
        return Ok(());
    }
    // It has ended, or is about to.
    let _ = child.kill();
    let _ = child.wait();
    Err(answer.trim_start_matches("urtica: ").to_owned())
}
