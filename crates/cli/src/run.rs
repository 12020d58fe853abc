//! `urtica run`: a controller with bundled programs.

use crate::log::log_to_stderr;
#[cfg(feature = "northbound")]
use crate::northbound::NorthboundArgs;
use crate::status;
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
    #[cfg(feature = "northbound")]
    #[command(flatten)]
    northbound: NorthboundArgs,
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
        Offload::None => add_apps(controller, &args)?,
    };
    Ok(controller.run_programs()?)
}

/// Adds the programs, and the northbound interface where it is wanted.
fn add_apps(
    controller: Controller,
    args: &RunArgs,
) -> Result<Controller, Box<dyn std::error::Error>> {
    let (controller, services) =
        apps::add_all_with_services(controller, &args.apps, &args.options)?;
    #[cfg(feature = "northbound")]
    let controller = args.northbound.add_to(controller, &args.apps, &services)?;
    #[cfg(not(feature = "northbound"))]
    let _ = services;
    Ok(controller)
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
            let controller = controller.program(LearningSwitch::new(kernel));
            #[cfg(feature = "northbound")]
            let controller =
                args.northbound
                    .add_to(controller, &args.apps, &apps::Services::default())?;
            Ok(controller)
        }
        Err(reason) => {
            tracing::warn!("the kernel half is not active: {reason}; the program answers alone");
            add_apps(controller, args)
        }
    }
}
