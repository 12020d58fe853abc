//! `urtica run`: a controller with bundled programs.

use crate::log::log_to_stderr;
use crate::{service, status};
use std::process::ExitCode;
use urtica_apps as apps;
use urtica_controller::{Args, Controller};
use urtica_offload::{Kernel, LearningSwitch};

/// Options of `urtica run`.
#[derive(clap::Args)]
#[command(after_help = format!("Programs:\n{}\n\nLogging: set RUST_LOG, as in RUST_LOG=debug.", apps::overview()))]
pub struct RunArgs {
    /// The programs to run, separated by commas. Each message passes through them in this order.
    #[arg(value_name = "APP", value_delimiter = ',', required = true)]
    apps: Vec<String>,
    /// Who answers packet-ins: the program alone, or, as far as it can, the kernel (l2 alone; needs root and Linux 6.6).
    #[arg(long, value_name = "MODE", default_value = "none")]
    offload: Offload,
    #[command(flatten)]
    controller: Args,
    #[command(flatten)]
    options: apps::Options,
}

/// Who answers packet-ins.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Offload {
    /// The program.
    None,
    /// The kernel what it can, the program the rest.
    Kernel,
}

/// Runs until SIGINT or SIGTERM.
pub fn run(args: RunArgs) -> ExitCode {
    log_to_stderr();
    status::of(run_apps(args))
}

fn run_apps(args: RunArgs) -> Result<(), Box<dyn std::error::Error>> {
    let controller = args.controller.clone().into_controller();
    let controller = match args.offload {
        Offload::Kernel => add_offloaded(controller, &args)?,
        Offload::None => apps::add_all(controller, &args.apps, &args.options)?,
    };
    controller.when_ready(service::ready).run_programs()?;
    Ok(())
}

/// Adds the program with its kernel half; where this machine has no room for that, says why and adds the program alone.
fn add_offloaded(
    controller: Controller,
    args: &RunArgs,
) -> Result<Controller, Box<dyn std::error::Error>> {
    if args.apps != ["l2"] {
        let asked = args.apps.join(",");
        return Err(format!(
            "--offload kernel: {asked} has no kernel form; expected l2, alone, or --offload none"
        )
        .into());
    }
    // Also what else is wrong with the options.
    apps::add_all(Controller::new(), &args.apps, &args.options)?;
    match Kernel::start() {
        Ok(kernel) => {
            tracing::info!("the kernel half is active: l2 answers in the kernel what it can");
            Ok(controller.program(LearningSwitch::new(kernel)))
        }
        Err(reason) => {
            tracing::warn!("the kernel half is not active: {reason}; the program answers alone");
            Ok(apps::add_all(controller, &args.apps, &args.options)?)
        }
    }
}
