//! The options of `urtica run`, and the selection of a kernel half.

use crate::hold::HoldOptions;
use crate::log::parse_filter;
#[cfg(feature = "northbound")]
use crate::northbound::NorthboundArgs;
use std::net::SocketAddr;
use std::path::PathBuf;
use urtica_apps as apps;
use urtica_controller::Args;
use urtica_offload::{DEFAULT_MAX_SWITCHES, Mode};

/// Options of `urtica run`.
#[derive(clap::Args)]
#[command(after_help = format!(
    "Programs:\n{}\n\nOptions can also be in a file (--config), and in variables, such as URTICA_LISTEN. The command \
     line overrides the environment, and the environment overrides the file. SIGHUP reads the file again and applies \
     the changes (docs/operating.md).",
    apps::overview()
))]
pub struct RunArgs {
    /// The programs to run, separated by commas. Each message passes through them in this order.
    #[arg(value_name = "APP", value_delimiter = ',')]
    pub apps: Vec<String>,
    /// Read options from this TOML file; urtica check checks it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Log filter: error, warn, info, debug or trace, also for parts of the program, as in info,urtica_services=debug
    /// [default: RUST_LOG, or info].
    #[arg(long, value_name = "FILTER", value_parser = parse_filter)]
    log: Option<String>,
    /// Answer urtica check --dry-run at this socket, for the same user and root.
    #[arg(long, value_name = "FILE")]
    pub(super) control: Option<PathBuf>,
    /// Use a kernel half (for l2 alone, or l3; needs root and Linux 6.6).
    #[arg(long, value_name = "MODE", default_value = "none")]
    pub(super) offload: Offload,
    /// The most switches that the kernel answers at a time, 4096 at most: each needs up to 0.4 MB of memory; the program answers the others.
    #[arg(long, value_name = "N", default_value_t = DEFAULT_MAX_SWITCHES)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(super) offload_switches: u32,
    #[command(flatten)]
    pub(super) hold: HoldOptions,
    #[command(flatten)]
    pub(super) controller: Args,
    #[cfg(feature = "northbound")]
    #[command(flatten)]
    pub(super) northbound: NorthboundArgs,
    #[command(flatten)]
    pub options: apps::Options,
}

/// The part that answers packet-ins.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Offload {
    /// The kernel if possible and while a switch's queue is short, otherwise the program.
    Auto,
    /// The program.
    None,
    /// The kernel if possible, otherwise the program.
    Kernel,
    /// The program; the kernel handles repetitive input of its services (programs with services, such as routing).
    Driven,
    /// The program, which reads messages from rings that the kernel fills (any program).
    Ring,
}

impl RunArgs {
    /// Returns the log filter, if given.
    pub fn log_filter(&self) -> Option<&str> {
        self.log.as_deref()
    }

    /// Returns the options that every controller has.
    pub fn controller_args(&self) -> &Args {
        &self.controller
    }

    /// Returns `true` if a kernel half is required, not optional.
    pub fn wants_kernel(&self) -> bool {
        self.offload == Offload::Kernel
    }

    /// Returns the address of the northbound interface, if any.
    pub fn northbound_address(&self) -> Option<SocketAddr> {
        #[cfg(feature = "northbound")]
        return self.northbound.address();
        #[cfg(not(feature = "northbound"))]
        None
    }
}

/// A program that can answer in the kernel.
#[derive(Clone, Copy)]
pub(super) enum KernelForm {
    L2,
    L3,
}

impl KernelForm {
    /// Returns the form of these programs, if they have one.
    fn of(apps: &[String]) -> Option<Self> {
        match apps {
            [only] if only == "l2" => Some(Self::L2),
            apps => apps::is_l3_first(apps).then_some(Self::L3),
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::L2 => "l2",
            Self::L3 => "l3",
        }
    }
}

/// Returns the kernel half's form and mode, if any.
pub(super) fn kernel_mode(args: &RunArgs) -> Result<Option<(KernelForm, Mode)>, String> {
    let form = KernelForm::of(&args.apps);
    match args.offload {
        Offload::None | Offload::Driven | Offload::Ring => Ok(None),
        Offload::Auto => Ok(form.map(|form| (form, Mode::Auto))),
        Offload::Kernel => match form {
            Some(form) => Ok(Some((form, Mode::Kernel))),
            None => Err(format!(
                "--offload kernel: {} has no kernel form; expected l2, alone, or l3 before a program that forwards the rest, or --offload none",
                args.apps.join(",")
            )),
        },
    }
}
