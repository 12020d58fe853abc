//! `urtica run`: a controller with bundled programs.

use crate::hold::HoldOptions;
use crate::log::log_to_stderr;
#[cfg(feature = "northbound")]
use crate::northbound::NorthboundArgs;
use crate::{service, status};
use std::process::ExitCode;
use urtica_apps as apps;
use urtica_controller::{Args, Controller};
use urtica_offload::ring::RingKernel;
use urtica_offload::{Driven, Kernel, LearningSwitch, Mode, Unavailable};

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
    /// The program; the kernel settles what its services are asked over and over (programs with services, such as routing).
    Driven,
    /// The program, whose messages come through rings that the kernel fills (any program).
    Ring,
}

/// Runs until SIGINT or SIGTERM.
pub fn run(args: RunArgs) -> ExitCode {
    log_to_stderr();
    status::of(run_apps(args))
}

fn run_apps(args: RunArgs) -> Result<(), Box<dyn std::error::Error>> {
    let takes_the_input = matches!(
        args.offload,
        Offload::Kernel | Offload::Driven | Offload::Ring
    );
    if args.hold.is_given() && takes_the_input {
        return Err(
            "--hold does not work with --offload kernel, driven or ring yet; expected one of them"
                .into(),
        );
    }
    let controller = args.controller.clone().into_controller();
    let controller = match kernel_mode(&args)? {
        Some(mode) => add_offloaded(controller, &args, mode)?,
        None if args.offload == Offload::Ring => add_apps(with_rings(controller), &args)?,
        None if args.offload == Offload::Driven => add_driven(controller, &args)?,
        None => add_apps(controller, &args)?,
    };
    // Last, since an earlier program stops for it.
    let controller = match args.hold.attach()? {
        Some(held) => controller.hold(held),
        None => controller,
    };
    controller.background(service::notify).run_programs()?;
    Ok(())
}

/// How the kernel is to answer, if it is.
fn kernel_mode(args: &RunArgs) -> Result<Option<Mode>, String> {
    let has_kernel_form = args.apps == ["l2"];
    match args.offload {
        Offload::None | Offload::Driven | Offload::Ring => Ok(None),
        // A holder keeps no state of a kernel half.
        Offload::Auto if args.hold.is_given() => Ok(None),
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
    add_northbound(controller, args, &services)
}

fn add_northbound(
    controller: Controller,
    args: &RunArgs,
    services: &apps::Services,
) -> Result<Controller, Box<dyn std::error::Error>> {
    #[cfg(feature = "northbound")]
    let controller = args.northbound.add_to(controller, &args.apps, services)?;
    #[cfg(not(feature = "northbound"))]
    let _ = (args, services);
    Ok(controller)
}

/// Routing, and what need not see the packets before it.
const LETS_FLOWS_PASS: [&str; 6] = [
    "discovery",
    "hosts",
    "neighbour-proxy",
    "routes",
    "provisioner",
    "routing",
];

/// Adds the programs, and has the kernel settle what it can for their services; where it cannot, says why.
fn add_driven(
    controller: Controller,
    args: &RunArgs,
) -> Result<Controller, Box<dyn std::error::Error>> {
    if args.apps.iter().any(|app| app == "security") {
        return Err("--offload driven: security has to see the packets that the kernel would settle; expected programs without it, or --offload none".into());
    }
    let (controller, services) =
        apps::add_all_with_services(controller, &args.apps, &args.options)?;
    let Some(discovery) = &services.discovery else {
        let apps = args.apps.join(",");
        return Err(format!("--offload driven: {apps} runs without services; expected a program that brings discovery along, such as routing, or --offload none").into());
    };
    let controller = match Driven::start() {
        Ok(driven) => {
            discovery.offload(driven.offload());
            if let Some(hosts) = &services.hosts {
                hosts.offload(driven.offload());
            }
            if let Some(proxy) = &services.neighbour_proxy {
                proxy.offload(driven.offload());
            }
            if args
                .apps
                .iter()
                .all(|app| LETS_FLOWS_PASS.contains(&&**app))
            {
                if let Some(routes) = &services.routes {
                    routes.offload(driven.offload());
                }
            }
            tracing::info!("the kernel half is active: it settles what it can for the services");
            controller.kernel_halves(driven)
        }
        Err(reason) => {
            tracing::warn!("{}", inactive(&reason));
            controller
        }
    };
    add_northbound(controller, args, &services)
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
            let controller = controller.program(LearningSwitch::new(kernel).mode(mode));
            #[cfg(feature = "northbound")]
            let controller =
                args.northbound
                    .add_to(controller, &args.apps, &apps::Services::default())?;
            Ok(controller)
        }
        Err(reason) => {
            // Who has asked for it is warned.
            match args.offload {
                Offload::Auto => tracing::info!("{}", inactive(&reason)),
                _ => tracing::warn!("{}", inactive(&reason)),
            }
            add_apps(controller, args)
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
