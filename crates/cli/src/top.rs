//! `urtica top`: a running controller at a glance.
//!
//! `client` queries its HTTP interface, `exposition` parses the metrics, `figures` computes rates from two samples, and
//! `table` and `screen` show them.

mod client;
mod exposition;
mod figures;
mod screen;
mod table;

use crate::say::{PipedOutput, say_bare};
use crate::status;
use client::{Client, ClientError, HttpAddress};
use figures::Figures;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  urtica run l2 --northbound      in another terminal: it serves the figures shown here
  urtica top
  urtica top 192.0.2.1:8080 --token /etc/urtica/tokens
  urtica top --once | sort -k5 -n

Keys: up and down scroll the switches, q quits.";

/// Options of `urtica top`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct TopArgs {
    /// The controller's HTTP address: HOST:PORT, a port of this machine, or http://HOST:PORT.
    #[arg(value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    address: HttpAddress,
    /// A file with the bearer token in its first line that is not a comment, such as that of --northbound-tokens.
    #[arg(long, value_name = "FILE")]
    token: Option<PathBuf>,
    /// Seconds between two samples.
    #[arg(short, long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=3600))]
    interval: u64,
    /// Print one table and exit (default if standard output is not a terminal).
    #[arg(long)]
    once: bool,
}

/// Shows the controller until the user quits.
pub fn run(args: TopArgs) -> ExitCode {
    let shown = top(&args).map(|()| ExitCode::SUCCESS);
    status::of_printed(shown, |error| match error {
        Error::Output(error) => Some(error),
        _ => None,
    })
}

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("{path}: {error}; expected a file with a bearer token on its own line")]
    Token { path: String, error: io::Error },
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("the terminal cannot be used: {0}")]
    Output(#[from] io::Error),
}

fn top(args: &TopArgs) -> Result<(), Error> {
    let token = args.token.as_ref().map(read_token).transpose()?;
    let client = Client::new(&args.address, token);
    // Report errors before the terminal is used.
    let first = client.sample()?;
    let interval = Duration::from_secs(args.interval);
    if !args.once && io::stdout().is_terminal() {
        return Ok(screen::run(client, first, interval)?);
    }
    std::thread::sleep(interval);
    let figures = Figures::between(&first, &client.sample()?);
    say_bare(table::plain(&figures));
    Ok(PipedOutput.flush()?)
}

fn read_token(path: &PathBuf) -> Result<String, Error> {
    let text = std::fs::read_to_string(path);
    let text = text.and_then(|text| {
        let lines = text.lines().map(str::trim);
        let mut tokens = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        // A controller's file may have `read-only` before a token, which is the last word of its line.
        let first = tokens
            .next()
            .and_then(|line| line.split_whitespace().next_back());
        first
            .map(str::to_owned)
            .ok_or_else(|| io::Error::other("it has no token"))
    });
    text.map_err(|error| Error::Token {
        path: path.display().to_string(),
        error,
    })
}
