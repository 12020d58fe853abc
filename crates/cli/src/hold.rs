//! `urtica hold`: keeps the connections of `urtica run` while that is replaced; and how `urtica run --hold` comes by one.

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

/// What a holder says when it is ready.
const READY: &str = "holding at";

/// Named in the place of a holder's socket, where systemd is to keep the connections.
const SYSTEMD: &str = "systemd";

/// How long a holder of another version may take to end.
const PATIENCE: Duration = Duration::from_secs(5);

/// Options of `urtica hold`.
#[derive(clap::Args)]
#[command(
    after_help = "It ends when urtica run does, by SIGINT, or when none has come back in time."
)]
pub struct HoldArgs {
    /// Its socket, which urtica run --hold=FILE names [default: as there]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

/// Options of `urtica run` about it.
#[derive(clap::Args)]
pub struct HoldOptions {
    /// Have a holder keep the connections while this program is killed, restarted or replaced; starts one where none is at FILE
    /// [default FILE: urtica-hold.sock in /run, or in $XDG_RUNTIME_DIR where not run by root]. With systemd as FILE, systemd keeps
    /// them, which must have started this program.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    hold: Option<Option<PathBuf>>,
    /// How long the holder waits for the next program, until it closes the connections; systemd waits for as long as it restarts its unit.
    #[arg(long, value_name = "SECONDS", requires = "hold", default_value_t = 30)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    hold_seconds: u32,
}

/// Runs until it is told to end, or no program has come back in time.
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
    /// Whether connections are to be held.
    pub fn is_given(&self) -> bool {
        self.hold.is_some()
    }

    /// Attaches this program to its holder, which is started where there is none. `None` where none is asked for, or, after a
    /// warning, where none can be used.
    ///
    /// # Errors
    /// Where another program has the connections, and the ports too.
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
                tracing::info!(file = %file.display(), "connections are held, and outlive this program");
                Ok(Some(held))
            }
            Err(error @ Failure::Hold(HoldError::Refused { .. })) => Err(error.to_string()),
            Err(error) => {
                tracing::warn!("connections end with this program, since {error}");
                Ok(None)
            }
        }
    }
}

/// Has systemd keep the connections. `None`, after a warning, where it has not started this program.
fn attach_to_systemd() -> Option<Held> {
    match attach_to_manager() {
        Ok(held) => {
            tracing::info!("connections are held by systemd, and outlive this program");
            Some(held)
        }
        Err(error) => {
            tracing::warn!("connections end with this program, since {error}");
            None
        }
    }
}

/// The holder's socket that was named, or the one that needs no name.
fn file(named: Option<PathBuf>) -> Result<PathBuf, String> {
    let folder = match named {
        Some(file) => return absolute(&file).map_err(|error| format!("{}: {error}", file.display())),
        None if rustix::process::geteuid().is_root() => PathBuf::from("/run"),
        None => std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).ok_or(
            "XDG_RUNTIME_DIR is not set, and there is no place for the holder's socket; expected its name, as in \
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
    #[error("no holder could be started: {0}")]
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

/// Starts a holder where one of another version is about to end.
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

/// Starts a holder that has nothing of this program's but its name: no terminal, no folder, no standard streams.
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
