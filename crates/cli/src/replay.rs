//! `urtica replay`: sends the switches' part of a recording to a controller.

use crate::say::{complain, say};
use crate::status;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use urtica_recordings::replay::{
    Outcome, Pace, PlayError, Played, Recording, RecordingError, Replay,
};
use urtica_socket::{Address, TlsArgs, TlsArgsError};

const EXAMPLES: &str = "\
Examples:
  urtica replay of.pcapng tcp:127.0.0.1:6653
  urtica replay of.pcapng tcp:127.0.0.1:6653 --as-test
  urtica replay of.pcapng tcp:127.0.0.1:6653 --load --loops 1000

A recording is made by urtica capture, or, without TLS, by tcpdump or Wireshark.";

/// Options of `urtica replay`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct ReplayArgs {
    /// The recording: a pcap or pcapng file with OpenFlow connections, on any ports.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The controller: tcp:HOST:PORT, ssl:HOST:PORT or unix:FILE.
    #[arg(value_name = "ADDR")]
    controller: Address,
    /// Compare the types and order of the controller's messages with the recorded ones; the exit status is 1 if they differ.
    /// Recorded times are ignored.
    #[arg(long, conflicts_with = "load")]
    as_test: bool,
    /// Send the switches' asynchronous messages, such as packet-ins, as fast as the controller accepts them.
    #[arg(long)]
    load: bool,
    /// Number of times to send them, one after the other.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "load",
          value_parser = clap::value_parser!(u64).range(1..))]
    loops: u64,
    /// Speed, as a multiple of the recorded one.
    #[arg(long, value_name = "N", default_value_t = 1.0, conflicts_with_all = ["as_test", "load"], value_parser = parse_speed)]
    speed: f64,
    /// Seconds to wait for a message of the controller that is in the recording.
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600))]
    timeout: u64,
    #[command(flatten)]
    tls: TlsArgs,
}

fn parse_speed(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(speed) if (0.001..=1e6).contains(&speed) => Ok(speed),
        _ => Err("expected a number from 0.001 to 1000000, such as 1 or 2.5".to_owned()),
    }
}

/// Replays, and reports each connection; the exit status is 1 if one failed, or differs in a test.
pub fn run(args: ReplayArgs) -> ExitCode {
    status::of_printed(replay(&args), |_| None)
}

/// An error that prevents a replay.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("{path}: {error}")]
    File { path: String, error: io::Error },
    #[error(transparent)]
    Recording(#[from] RecordingError),
    #[error(
        "{0} is an address to listen on; expected one to connect to, such as tcp:HOST:PORT, ssl:HOST:PORT or unix:FILE"
    )]
    Passive(Address),
    #[error(transparent)]
    Tls(#[from] TlsArgsError),
}

fn replay(args: &ReplayArgs) -> Result<ExitCode, Error> {
    if args.controller.is_passive() {
        return Err(Error::Passive(args.controller.clone()));
    }
    let tls = args.tls.load_for([&args.controller])?;
    let bytes = std::fs::read(&args.file).map_err(|error| Error::File {
        path: args.file.display().to_string(),
        error,
    })?;
    let recording = Recording::read(&bytes)?;
    drop(bytes);
    let is_whole = recording.problems.is_empty();
    for problem in &recording.problems {
        complain(format_args!("urtica: {problem}"));
    }
    let replay = Replay {
        controller: args.controller.clone(),
        tls,
        pace: args.pace(),
        timeout: Duration::from_secs(args.timeout),
    };
    let all_went_well = replay.play_all(recording.sessions, |outcome| tell(outcome, args.as_test));
    Ok(match all_went_well && (is_whole || !args.as_test) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

impl ReplayArgs {
    fn pace(&self) -> Pace {
        match (self.as_test, self.load) {
            (true, _) => Pace::AsAnswered,
            (_, true) => Pace::Load { loops: self.loops },
            _ => Pace::AsRecorded { speed: self.speed },
        }
    }
}

/// Prints the outcome of a connection; returns whether it is good.
fn tell(outcome: &Outcome, is_test: bool) -> bool {
    let (line, went_well) = report(&outcome.played, is_test);
    let (id, place) = (outcome.datapath_id, outcome.switch);
    say(format_args!("{id} ({place} in the recording): {line}"));
    went_well
}

/// Returns a line about the outcome of a connection, and whether it is good.
fn report(played: &Result<Played, PlayError>, is_test: bool) -> (String, bool) {
    let played = match played {
        Ok(played) => played,
        Err(error) => return (error.to_string(), false),
    };
    let mut line = played.to_string();
    let went_well = match &played.difference {
        Some(difference) if is_test => {
            line.push_str(&format!("; {difference}"));
            false
        }
        None if is_test => {
            line.push_str("; types and order as recorded");
            true
        }
        _ => true,
    };
    (line, went_well)
}
