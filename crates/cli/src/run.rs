//! `urtica run`: a controller with bundled programs.

use crate::log::log_to_stderr;
use crate::{service, status};
use std::process::ExitCode;
use urtica_apps as apps;
use urtica_controller::{Args, Controller};
use urtica_offload::{Kernel, LearningSwitch, Mode, Unavailable};

/// Options of `urtica run`.
#[derive(clap::Args)]
#[command(after_help = format!("Programs:\n{}\n\nLogging: set RUST_LOG, as in RUST_LOG=debug.", apps::overview()))]
pub struct RunArgs {
    /// The programs to run, separated by commas. Each message passes through them in this order.
    #[arg(value_name = "APP", value_delimiter = ',', required = true)]
    apps: Vec<String>,
    /// Who answers packet-ins: the program, or, as far as it can, the kernel (l2 alone; needs root and Linux 6.6).
    #[arg(long, value_name = "MODE", default_value = "auto")]
    offload: Offload,
    #[command(flatten)]
    controller: Args,
    #[command(flatten)]
    options: apps::Options,
}

/// Who answers packet-ins.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Offload {
    /// The kernel where it can and a switch's queue is short, the program otherwise.
    Auto,
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
    let controller = match kernel_mode(&args)? {
        Some(mode) => add_offloaded(controller, &args, mode)?,
        None => apps::add_all(controller, &args.apps, &args.options)?,
    };
    controller.when_ready(service::ready).run_programs()?;
    Ok(())
}

/// How the kernel is to answer, if it is.
fn kernel_mode(args: &RunArgs) -> Result<Option<Mode>, String> {
    let has_kernel_form = args.apps == ["l2"];
    match args.offload {
        Offload::None => Ok(None),
        Offload::Auto => Ok(has_kernel_form.then_some(Mode::Auto)),
        Offload::Kernel if has_kernel_form => Ok(Some(Mode::Kernel)),
        Offload::Kernel => Err(format!(
            "--offload kernel: {} has no kernel form; expected l2, alone, or --offload none",
            args.apps.join(",")
        )),
    }
}

/// Adds the program with its kernel half; where there is none, says why and adds the program alone. One line either way.
fn add_offloaded(
    controller: Controller,
    args: &RunArgs,
    mode: Mode,
) -> Result<Controller, Box<dyn std::error::Error>> {
    // Also what else is wrong with the options.
    apps::add_all(Controller::new(), &args.apps, &args.options)?;
    match Kernel::start() {
        Ok(kernel) => {
            let when = when_it_answers(mode);
            tracing::info!("the kernel half is active: l2 answers in the kernel what it can{when}");
            Ok(controller.program(LearningSwitch::new(kernel).mode(mode)))
        }
        Err(reason) => {
            // Who has asked for it is warned.
            match args.offload {
                Offload::Auto => tracing::info!("{}", inactive(&reason)),
                _ => tracing::warn!("{}", inactive(&reason)),
            }
            Ok(apps::add_all(controller, &args.apps, &args.options)?)
        }
    }
}

fn when_it_answers(mode: Mode) -> &'static str {
    match mode {
        Mode::Auto => ", while queues are short",
        _ => "",
    }
}

fn inactive(reason: &Unavailable) -> String {
    format!("the kernel half is not active: {reason}; the program answers alone")
}
