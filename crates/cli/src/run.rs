//! `urtica run`: a controller with bundled programs.

mod args;
mod control;
mod live;
mod settings;

pub use args::RunArgs;
pub use control::ask;

use crate::config::Effective;
use crate::log::log_filtered;
#[cfg(feature = "northbound")]
use crate::northbound::set_programs;
use crate::say::complain;
use crate::{Cli, Command, service, status};
use args::{KernelForm, Offload, kernel_mode};
use clap::CommandFactory;
use clap::error::ErrorKind;
use live::{Follow, Live};
#[cfg(feature = "northbound")]
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use urtica_apps::{self as apps, Apps};
use urtica_config::{LoadError, Sources};
use urtica_controller::Controller;
use urtica_hold::Held;
#[cfg(feature = "northbound")]
use urtica_northbound::NorthboundHandle;
use urtica_offload::ring::RingKernel;
use urtica_offload::{Driven, Halves, Kernel, LearningSwitch, Mode, RouterKernel, Unavailable};

/// Runs until SIGINT or SIGTERM.
pub fn run(sources: &Sources) -> ExitCode {
    let effective = match Effective::load(sources) {
        Ok(effective) => effective,
        Err(LoadError::Arguments(error)) => error.exit(),
        Err(error) => {
            complain(format_args!("urtica: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let names_programs = |args: &RunArgs| !args.apps.is_empty();
    if !effective.run_args().is_some_and(names_programs) {
        refuse_no_programs();
    }
    if let Err(error) = effective.check_settings() {
        complain(format_args!("urtica: {error}"));
        return ExitCode::FAILURE;
    }
    let Effective { cli, values, .. } = effective;
    let Command::Run(args) = cli.command else {
        return ExitCode::SUCCESS;
    };
    let log = log_filtered(args.log_filter());
    let live = Live::new(sources.clone(), values, log, args.control.clone());
    status::of(run_apps(&args, live))
}

fn refuse_no_programs() -> ! {
    let sentence = "no control program given; expected one or more, as in urtica run l2, or a file with 'programs' \
                    (--config)";
    let mut cli = Cli::command();
    cli.build();
    let run = cli.find_subcommand_mut("run");
    let error = run.map(|run| run.error(ErrorKind::MissingRequiredArgument, sentence));
    error.map_or_else(|| std::process::exit(2), |error| error.exit())
}

/// A controller with its named programs, if they can change while it runs.
struct Prepared {
    controller: Controller,
    apps: Option<Apps>,
    follow: Box<dyn Follow>,
}

fn run_apps(args: &RunArgs, live: Live) -> Result<(), Box<dyn std::error::Error>> {
    let controller = args.controller.clone().into_controller();
    let Prepared {
        controller,
        apps,
        follow,
    } = match kernel_mode(args)? {
        Some((form, mode)) => add_offloaded(controller, args, form, mode)?,
        None if args.offload == Offload::Ring => {
            add_apps(with_rings(controller, args), args, &args.options)?
        }
        None if args.offload == Offload::Driven => add_driven(controller, args)?,
        None => hold(add_apps(controller, args, &args.options)?, args)?,
    };
    live.run(controller.background(service::notify), apps, follow)
}

/// Attaches to the holder if `--hold` is given, and releases an earlier program's kernel state. Called last, since the
/// earlier program stops for it.
fn hold(prepared: Prepared, args: &RunArgs) -> Result<Prepared, Box<dyn std::error::Error>> {
    let Some(mut held) = args.hold.attach()? else {
        return Ok(prepared);
    };
    let halves = Halves::of(&mut held);
    Ok(Prepared {
        controller: prepared.controller.held_halves(halves).hold(held),
        ..prepared
    })
}

/// Enables rings, or logs why this machine cannot have them.
fn with_rings(controller: Controller, args: &RunArgs) -> Controller {
    match RingKernel::start() {
        Ok(kernel) => {
            tracing::info!(
                "rings are active: programs read messages from rings that the kernel fills"
            );
            controller.input_rings(kernel.max_switches(args.offload_switches))
        }
        Err(reason) => {
            tracing::warn!("rings are not active: {reason}; messages are read from sockets");
            controller
        }
    }
}

/// Adds the programs, and the northbound interface if requested.
fn add_apps(
    controller: Controller,
    args: &RunArgs,
    options: &apps::Options,
) -> Result<Prepared, Box<dyn std::error::Error>> {
    let apps = Apps::new(&args.apps, options)?;
    let (controller, follow) = add_northbound(apps.add_to(controller), args, apps.services())?;
    Ok(Prepared {
        controller,
        apps: Some(apps),
        follow,
    })
}

fn add_northbound(
    controller: Controller,
    args: &RunArgs,
    services: &apps::Services,
) -> Result<(Controller, Box<dyn Follow>), Box<dyn std::error::Error>> {
    #[cfg(feature = "northbound")]
    let (controller, handle) = args.northbound.add_to(controller, &args.apps, services)?;
    #[cfg(feature = "northbound")]
    if let Some(handle) = handle {
        return Ok((controller, Box::new(Interface(handle))));
    }
    #[cfg(not(feature = "northbound"))]
    let _ = (args, services);
    Ok((controller, Box::new(())))
}

/// The northbound interface of a controller that runs.
#[cfg(feature = "northbound")]
struct Interface(NorthboundHandle);

#[cfg(feature = "northbound")]
impl Follow for Interface {
    fn programs(&self, args: &RunArgs, apps: Option<&Apps>) {
        args.northbound.set_tokens(&self.0);
        if let Some(apps) = apps {
            set_programs(&self.0, &args.apps, apps.services());
        }
    }

    fn settings(&self, values: &BTreeMap<String, Vec<String>>) {
        self.0.set_settings(values.clone());
    }
}

/// Adds the programs, and lets the kernel handle input of their services, or logs why it cannot.
fn add_driven(
    controller: Controller,
    args: &RunArgs,
) -> Result<Prepared, Box<dyn std::error::Error>> {
    let (controller, services) =
        apps::add_all_with_services(controller, &args.apps, &args.options)?;
    let Some(discovery) = &services.discovery else {
        let apps = args.apps.join(",");
        return Err(format!("--offload driven: {apps} runs without services; expected a program that brings discovery along, such as routing, or --offload none").into());
    };
    let (controller, follow) = add_northbound(controller, args, &services)?;
    // Attach last, since an earlier program stops for it.
    let (controller, started, tables) = match args.hold.attach()? {
        Some(mut held) => {
            let mut halves = Halves::of(&mut held);
            let started = halves.start_driven(&held.link);
            let tables = tables(halves.going_on());
            (controller.held_halves(halves).hold(held), started, tables)
        }
        None => (controller, Driven::start(), String::new()),
    };
    let controller = match started {
        Ok(driven) => {
            let driven = driven.max_switches(args.offload_switches);
            discovery.offload(driven.offload());
            if let Some(hosts) = &services.hosts {
                hosts.offload(driven.offload());
            }
            if let Some(proxy) = &services.neighbour_proxy {
                proxy.offload(driven.offload());
            }
            if apps::need_first_packets_only(&args.apps) {
                if let Some(routes) = &services.routes {
                    routes.offload(driven.offload());
                }
            }
            tracing::info!(
                "the kernel half is active: it handles repetitive input of the services{tables}"
            );
            controller.kernel_halves(driven)
        }
        Err(reason) => {
            tracing::warn!("{}", inactive(&reason));
            controller
        }
    };
    Ok(Prepared {
        controller,
        apps: None,
        follow,
    })
}

/// Adds the program with or without its kernel half, and logs the choice in one line.
fn add_offloaded(
    controller: Controller,
    args: &RunArgs,
    form: KernelForm,
    mode: Mode,
) -> Result<Prepared, Box<dyn std::error::Error>> {
    // Check the options first; they are otherwise checked when programs are added.
    add_apps(Controller::new(), args, &args.options)?;
    // Attach last, since an earlier program stops for it.
    match args.hold.attach()? {
        Some(held) => add_held(controller, args, form, mode, held),
        None => add_later(controller, args, form, mode),
    }
}

/// Like `add_later`, for connections that a holder keeps: the kernel half is loaded at once, since it may continue with
/// an earlier program's tables. While it loads, the earlier kernel half answers, and listening sockets are kept.
fn add_held(
    controller: Controller,
    args: &RunArgs,
    form: KernelForm,
    mode: Mode,
    mut held: Held,
) -> Result<Prepared, Box<dyn std::error::Error>> {
    let mut halves = Halves::of(&mut held).mode(mode);
    let started = match form {
        KernelForm::L2 => {
            let kernel = halves.start(&held.link);
            kernel.map(|kernel| OffloadedForm::l2(LearningSwitch::new(kernel), args, mode))
        }
        KernelForm::L3 => halves.start_router(&held.link).map(OffloadedForm::L3),
    };
    let going_on = halves.going_on();
    let controller = controller.held_halves(halves).hold(held);
    match started {
        Ok(program) => {
            let program = program.max_switches(args.offload_switches);
            say_active(form, mode, &tables(going_on));
            program.add_to(controller, args)
        }
        Err(reason) => {
            say_inactive(args.offload, &reason);
            add_apps(controller, args, &args.options)
        }
    }
}

/// Adds the program, which answers alone until a thread has loaded its kernel half; on a busy machine, this may take
/// seconds.
fn add_later(
    controller: Controller,
    args: &RunArgs,
    form: KernelForm,
    mode: Mode,
) -> Result<Prepared, Box<dyn std::error::Error>> {
    if let Err(reason) = Kernel::check() {
        say_inactive(args.offload, &reason);
        return add_apps(controller, args, &args.options);
    }
    let program = OffloadedForm::later(form, args, mode);
    let prepared = program.clone().add_to(controller, args)?;
    let (offload, max_switches) = (args.offload, args.offload_switches);
    let load = move || match program.load(max_switches) {
        Ok(()) => say_active(form, mode, ""),
        Err(reason) => say_inactive(offload, &reason),
    };
    let thread = thread::Builder::new().name("kernel half".into());
    thread.spawn(load)?;
    Ok(prepared)
}

/// A program with a part in the kernel.
#[derive(Clone)]
enum OffloadedForm {
    L2(LearningSwitch),
    L3(RouterKernel),
}

impl OffloadedForm {
    /// Creates the learning switch with its options.
    fn l2(program: LearningSwitch, args: &RunArgs, mode: Mode) -> Self {
        let limit = args.options.l2.l2_flood_limit.unwrap_or_default();
        Self::L2(program.mode(mode).flood_limit(limit))
    }

    /// Creates the form before anything is loaded.
    fn later(form: KernelForm, args: &RunArgs, mode: Mode) -> Self {
        match form {
            KernelForm::L2 => Self::l2(LearningSwitch::later(), args, mode),
            KernelForm::L3 => Self::L3(RouterKernel::later().mode(mode)),
        }
    }

    fn load(&self, max_switches: u32) -> Result<(), Unavailable> {
        match self {
            Self::L2(program) => program.load(max_switches),
            Self::L3(kernel) => kernel.load(max_switches),
        }
    }

    /// Sets the maximum number of switches of the kernel half.
    fn max_switches(self, count: u32) -> Self {
        match self {
            Self::L2(program) => Self::L2(program.max_switches(count)),
            Self::L3(kernel) => Self::L3(kernel.max_switches(count)),
        }
    }

    /// Adds the programs, one of which answers in the kernel.
    fn add_to(
        self,
        controller: Controller,
        args: &RunArgs,
    ) -> Result<Prepared, Box<dyn std::error::Error>> {
        let (controller, services) = match self {
            Self::L2(program) => {
                let program = urtica_controller::Named::new("l2", program);
                (controller.program(program), apps::Services::default())
            }
            Self::L3(kernel) => {
                let mut options = args.options.clone();
                options.l3_kernel = Some(Arc::new(kernel));
                apps::add_all_with_services(controller, &args.apps, &options)?
            }
        };
        let (controller, follow) = add_northbound(controller, args, &services)?;
        Ok(Prepared {
            controller,
            apps: None,
            follow,
        })
    }
}

fn say_active(form: KernelForm, mode: Mode, tables: &str) {
    let (name, when) = (form.name(), when_it_answers(mode));
    tracing::info!(
        "the kernel half is active: {name} answers in the kernel if possible{when}{tables}"
    );
}

/// Logs why the kernel half is missing; a warning, if it was requested.
fn say_inactive(offload: Offload, reason: &Unavailable) {
    match offload {
        Offload::Auto => tracing::info!("{}", inactive(reason)),
        _ => tracing::warn!("{}", inactive(reason)),
    }
}

/// Describes the tables that a holder keeps, with the number of an earlier program's.
fn tables(going_on: usize) -> String {
    match going_on {
        0 => "; its tables are held".to_owned(),
        count => format!("; its tables are held, and include {count} of an earlier program"),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// `docs/offload.md` quotes this message.
    #[test]
    fn a_build_without_clang_says_why_there_is_no_kernel_half() {
        let reason = Unavailable::NotBuilt("clang cannot be run (No such file or directory)");
        assert_eq!(
            inactive(&reason),
            "the kernel half is not active: it was built without the kernel's programs, since clang cannot be run \
             (No such file or directory); the program answers alone"
        );
    }
}
