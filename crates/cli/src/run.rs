//! `urtica run`: a controller with bundled programs.

mod control;
mod live;

pub use control::ask;

use crate::config::{Effective, LoadError, Sources};
use crate::hold::HoldOptions;
use crate::log::{log_filtered, parse_filter};
#[cfg(feature = "northbound")]
use crate::northbound::NorthboundArgs;
use crate::say::complain;
use crate::{Cli, Command, service, status};
use clap::CommandFactory;
use clap::error::ErrorKind;
use live::Live;
use std::path::PathBuf;
use std::process::ExitCode;
use urtica_apps::{self as apps, Apps};
use urtica_controller::{Args, Controller};
use urtica_offload::ring::RingKernel;
use urtica_offload::{Kernel, LearningSwitch, Mode, Unavailable};

/// Options of `urtica run`.
#[derive(clap::Args)]
#[command(after_help = format!(
    "Programs:\n{}\n\n\
     Options can be in a file, too (--config), and in variables, such as URTICA_LISTEN. The command line counts, then the environment, then the \
     file. SIGHUP has the file read again, and applies what has changed (docs/operating.md).",
    apps::overview()
))]
pub struct RunArgs {
    /// The programs to run, separated by commas. Each message passes through them in this order.
    #[arg(value_name = "APP", value_delimiter = ',')]
    pub apps: Vec<String>,
    /// Read options from this file, in TOML, which urtica check can check.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// What to log: error, warn, info, debug or trace, for parts of the program too, as in info,urtica_services=debug
    /// [default: what RUST_LOG says, or info].
    #[arg(long, value_name = "FILTER", value_parser = parse_filter)]
    log: Option<String>,
    /// Answer urtica check --dry-run at this socket, which the same user and root can use.
    #[arg(long, value_name = "FILE")]
    control: Option<PathBuf>,
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
    pub options: apps::Options,
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

impl RunArgs {
    /// What to log, where that was said.
    pub fn log_filter(&self) -> Option<&str> {
        self.log.as_deref()
    }
}

/// Runs until SIGINT or SIGTERM.
pub fn run(sources: &Sources) -> ExitCode {
    let effective = match sources.load() {
        Ok(effective) => effective,
        Err(LoadError::Arguments(error)) => error.exit(),
        Err(error) => {
            complain(format_args!("urtica: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let Effective { cli, values, .. } = effective;
    let Command::Run(args) = cli.command else {
        return ExitCode::SUCCESS;
    };
    if args.apps.is_empty() {
        refuse_no_programs();
    }
    let log = log_filtered(args.log_filter());
    let live = Live::new(sources.clone(), values, log, args.control.clone());
    status::of(run_apps(&args, live))
}

fn refuse_no_programs() -> ! {
    let sentence = "no control program was named; expected one or more, as in urtica run l2, or a file with 'programs' (--config)";
    let mut cli = Cli::command();
    cli.build();
    let run = cli.find_subcommand_mut("run");
    let error = run.map(|run| run.error(ErrorKind::MissingRequiredArgument, sentence));
    error.map_or_else(|| std::process::exit(2), |error| error.exit())
}

/// A controller with the programs that it runs by name, where they are all that it runs.
struct Prepared {
    controller: Controller,
    apps: Option<Apps>,
}

fn run_apps(args: &RunArgs, live: Live) -> Result<(), Box<dyn std::error::Error>> {
    let takes_the_input = matches!(args.offload, Offload::Kernel | Offload::Ring);
    if args.hold.is_given() && takes_the_input {
        return Err(
            "--hold does not work with --offload kernel or ring yet; expected one of them".into(),
        );
    }
    let controller = args.controller.clone().into_controller();
    let Prepared { controller, apps } = match kernel_mode(args)? {
        Some(mode) => add_offloaded(controller, args, mode)?,
        None if args.offload == Offload::Ring => add_apps(with_rings(controller), args)?,
        None => add_apps(controller, args)?,
    };
    // Last, since an earlier program stops for it.
    let controller = match args.hold.attach()? {
        Some(held) => controller.hold(held),
        None => controller,
    };
    live.run(controller.background(service::notify), apps)
}

/// How the kernel is to answer, if it is.
fn kernel_mode(args: &RunArgs) -> Result<Option<Mode>, String> {
    let has_kernel_form = args.apps == ["l2"];
    match args.offload {
        Offload::None | Offload::Ring => Ok(None),
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
) -> Result<Prepared, Box<dyn std::error::Error>> {
    let apps = Apps::new(&args.apps, &args.options)?;
    let controller = apps.add_to(controller);
    #[cfg(feature = "northbound")]
    let controller = args
        .northbound
        .add_to(controller, &args.apps, apps.services())?;
    Ok(Prepared {
        controller,
        apps: Some(apps),
    })
}

/// Adds the program with its kernel half; where there is none, says why and adds the program alone. One line either way.
fn add_offloaded(
    controller: Controller,
    args: &RunArgs,
    mode: Mode,
) -> Result<Prepared, Box<dyn std::error::Error>> {
    // Also what else is wrong with the options.
    Apps::new(&args.apps, &args.options)?;
    match Kernel::start() {
        Ok(kernel) => {
            let when = when_it_answers(mode);
            tracing::info!("the kernel half is active: l2 answers in the kernel what it can{when}");
            let controller = controller.program(LearningSwitch::new(kernel).mode(mode));
            #[cfg(feature = "northbound")]
            let controller =
                args.northbound
                    .add_to(controller, &args.apps, &apps::Services::default())?;
            Ok(Prepared {
                controller,
                apps: None,
            })
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
