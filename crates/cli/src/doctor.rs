//! `urtica doctor`: checks the machine for problems between switches and their controller.

mod configuration;
mod plan;

use crate::log::log_filtered;
use crate::say::say;
use std::path::PathBuf;
use std::process::ExitCode;
use urtica_doctor::{Check, Facts, Report};
use urtica_socket::{Address, TlsArgs};

/// Options of `urtica doctor`.
#[derive(clap::Args)]
#[command(
    after_help = "Takes the options of urtica run, or its file, and checks what they need; changes nothing. Each finding has the commands \
                  that fix it, for root. The exit status is 1 with a problem, and 0 with only warnings and notes; docs/operating.md lists the \
                  findings."
)]
pub struct DoctorArgs {
    /// The checks to run [default: all].
    #[arg(value_name = "CHECK", value_enum)]
    checks: Vec<Check>,
    /// The configuration file, as for urtica run.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Address that the controller listens on, as for urtica run. May be repeated.
    #[arg(long, value_name = "ADDR")]
    listen: Vec<Address>,
    /// The file of datapath ids, as for urtica run.
    #[arg(long, value_name = "FILE")]
    datapath_ids: Option<PathBuf>,
    /// Address for HTTP, as for urtica run.
    #[cfg(feature = "northbound")]
    #[arg(
        long,
        value_name = "ADDR",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "127.0.0.1:8080",
        value_parser = crate::northbound::parse_address
    )]
    northbound: Option<std::net::SocketAddr>,
    /// The file of bearer tokens, as for urtica run.
    #[cfg(feature = "northbound")]
    #[arg(long, value_name = "FILE")]
    northbound_tokens: Option<PathBuf>,
    /// Expected number of switches.
    #[arg(long, value_name = "N", default_value_t = 100)]
    switches: u64,
    /// Network device for a port of urtica switch. May be repeated.
    #[arg(long, value_name = "DEVICE")]
    device: Vec<String>,
    /// Print the findings as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    tls: TlsArgs,
}

/// Runs the checks, and prints the findings. The status is 1 if there is a problem.
pub fn run(args: &DoctorArgs) -> ExitCode {
    // The other parts would write to the log, too.
    let _ = log_filtered(Some("off"));
    let (plan, error) = plan::of(args);
    let configuration = configuration::look(error.as_ref(), args.config.as_deref());
    let checks = match args.checks.as_slice() {
        [] => &Check::ALL,
        some => some,
    };
    let report = Report::new(checks, &Facts::read(plan, configuration));
    match args.json {
        true => say(serde_json::json!(report)),
        false => say(&report),
    }
    match report.problems {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
