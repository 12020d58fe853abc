//! `urtica run`: a controller with bundled programs.

use crate::log::log_to_stderr;
use crate::status;
use std::process::ExitCode;
use urtica_apps as apps;
use urtica_controller::Args;

/// Options of `urtica run`.
#[derive(clap::Args)]
#[command(after_help = format!("Programs:\n{}\n\nLogging: set RUST_LOG, as in RUST_LOG=debug.", apps::overview()))]
pub struct RunArgs {
    /// The programs to run, separated by commas. Each message passes through them in this order.
    #[arg(value_name = "APP", value_delimiter = ',', required = true)]
    apps: Vec<String>,
    #[command(flatten)]
    controller: Args,
    #[command(flatten)]
    options: apps::Options,
}

/// Runs until SIGINT or SIGTERM.
pub fn run(args: RunArgs) -> ExitCode {
    log_to_stderr();
    status::of(run_apps(args))
}

fn run_apps(args: RunArgs) -> Result<(), Box<dyn std::error::Error>> {
    let controller = args.controller.into_controller();
    let controller = apps::add_all(controller, &args.apps, &args.options)?;
    Ok(controller.run_programs()?)
}
