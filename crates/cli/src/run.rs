//! `urtica run`: a controller with bundled programs.

use crate::hold::HoldOptions;
use crate::log::log_to_stderr;
#[cfg(feature = "northbound")]
use crate::northbound::NorthboundArgs;
use crate::{service, status};
use std::process::ExitCode;
use urtica_apps as apps;
use urtica_controller::{Args, Controller};
use urtica_hold::Held;
use urtica_offload::ring::RingKernel;
use urtica_offload::{Halves, Kernel, LearningSwitch, Mode, Unavailable};

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
    hold: HoldOptions,
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
    /// The kernel where it can and a switch's queue is short, the program otherwise.
    Auto,
    /// The program.
    None,
    /// The kernel what it can, the program the rest.
    Kernel,
    /// The program, whose messages come through rings that the kernel fills (any program).
    Ring,
}

/// Runs until SIGINT or SIGTERM.
pub fn run(args: RunArgs) -> ExitCode {
    log_to_stderr();
    status::of(run_apps(args))
}

fn run_apps(args: RunArgs) -> Result<(), Box<dyn std::error::Error>> {
    if args.hold.is_given() && args.offload == Offload::Ring {
        return Err("--hold does not work with --offload ring yet; expected one of them".into());
    }
    let controller = args.controller.clone().into_controller();
    let controller = match kernel_mode(&args)? {
        Some(mode) => add_offloaded(controller, &args, mode)?,
        None if args.offload == Offload::Ring => add_apps(with_rings(controller), &args)?,
        None => {
            let controller = add_apps(controller, &args)?;
            // Last, since an earlier program stops for it.
            match args.hold.attach()? {
                Some(mut held) => controller.kernel_halves(Halves::of(&mut held)).hold(held),
                None => controller,
            }
        }
    };
    controller.background(service::notify).run_programs()?;
    Ok(())
}

/// How the kernel is to answer, if it is.
fn kernel_mode(args: &RunArgs) -> Result<Option<Mode>, String> {
    let has_kernel_form = args.apps == ["l2"];
    match args.offload {
        Offload::None | Offload::Ring => Ok(None),
        Offload::Auto => Ok(has_kernel_form.then_some(Mode::Auto)),
        Offload::Kernel if has_kernel_form => Ok(Some(Mode::Kernel)),
        Offload::Kernel => Err(format!(
            "--offload kernel: {} has no kernel form; expected l2, alone, or --offload none",
            args.apps.join(",")
        )),
    }
}

/// Has messages come through rings; where this machine has no room for that, says why.
fn with_rings(controller: Controller) -> Controller {
    match RingKernel::start() {
        Ok(kernel) => {
            tracing::info!(
                "rings are active: the kernel puts messages there, and programs read them"
            );
            controller.input_rings(kernel)
        }
        Err(reason) => {
            tracing::warn!("rings are not active: {reason}; messages are read from sockets");
            controller
        }
    }
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

/// Adds the program with its kernel half; where there is none, says why and adds the program alone. One line either way.
fn add_offloaded(
    controller: Controller,
    args: &RunArgs,
    mode: Mode,
) -> Result<Controller, Box<dyn std::error::Error>> {
    // Also what else is wrong with the options, before an earlier program stops for this one.
    add_apps(Controller::new(), args)?;
    let held = args.hold.attach()?;
    let (controller, started) = start_kernel_half(controller, held, mode);
    let (kernel, tables) = match started {
        Ok(started) => started,
        Err(reason) => {
            // Who has asked for it is warned.
            match args.offload {
                Offload::Auto => tracing::info!("{}", inactive(&reason)),
                _ => tracing::warn!("{}", inactive(&reason)),
            }
            return add_apps(controller, args);
        }
    };
    let when = when_it_answers(mode);
    tracing::info!("the kernel half is active: l2 answers in the kernel what it can{when}{tables}");
    let controller = controller.program(LearningSwitch::new(kernel).mode(mode));
    #[cfg(feature = "northbound")]
    let controller = {
        let services = apps::Services::default();
        args.northbound.add_to(controller, &args.apps, &services)?
    };
    Ok(controller)
}

/// Starts the kernel half, with the tables of an earlier program where a holder has them, and says what becomes of the tables.
fn start_kernel_half(
    controller: Controller,
    held: Option<Held>,
    mode: Mode,
) -> (Controller, Result<(Kernel, String), Unavailable>) {
    let Some(mut held) = held else {
        let started = Kernel::start().map(|kernel| (kernel, String::new()));
        return (controller, started);
    };
    let mut halves = Halves::of(&mut held).mode(mode);
    let started = halves.start(&held.link).map(|kernel| {
        let tables = match halves.going_on() {
            0 => "; its tables are held".to_owned(),
            count => format!("; its tables are held, and go on with {count} of an earlier program"),
        };
        (kernel, tables)
    });
    (controller.kernel_halves(halves).hold(held), started)
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
