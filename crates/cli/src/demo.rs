//! `urtica demo`: a network with loops and its controller, live in one process.
//!
//! [`lab`] has the network: hosts send [`traffic`] and [`pings`], a [`meter`] measures, and [`names`] describes events.
//! [`story`] is the script. [`plain`] prints it line by line; [`live`] shows it: [`view`] draws, on the [`map`] of the
//! network, and [`keys`] control it. With `--web`, [`web`] shows it in a browser instead.

mod keys;
mod lab;
mod live;
mod map;
mod meter;
mod names;
mod pings;
mod plain;
mod story;
mod throughput;
mod traffic;
mod view;
#[cfg(feature = "northbound")]
mod web;

use crate::status;
use lab::Lab;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use throughput::ThroughputArgs;
use urtica_topology::spec::TopologySpec;

/// At most as wide as any terminal.
const WHAT_NEXT: &str = "
What to try next:
   urtica net torus,3,3 --apps routing --ping-all
      the same network, for your own experiments
   urtica run discovery,hosts,routing
      the same controller, for real switches, and in another terminal:
   sudo mn --controller=remote --switch=ovs,protocols=OpenFlow13 \\
      --topo=torus,3,3 --mac --test=pingall
   urtica net simulate --seeds 100
      a hundred random networks with random faults
   urtica demo --web
      the same in a browser
   urtica demo throughput
      the rate at which the controller answers packet-ins
   urtica switch --help
      a switch, for the interfaces of this machine";

const EXAMPLES: &str = "\
Examples:
  urtica demo
  urtica demo --topology ring,8
  urtica demo --plain | less
  urtica demo --web
  urtica demo throughput

Topologies: single,N linear,N[,HOSTS] tree,depth=D,fanout=F torus,X,Y[,HOSTS] fattree,K ring,N mesh,N file:PATH.
Set NO_COLOR to disable colours.";

/// Options of `urtica demo`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct DemoArgs {
    #[command(subcommand)]
    command: Option<DemoCommand>,
    #[command(flatten)]
    show: ShowArgs,
}

#[derive(clap::Subcommand)]
enum DemoCommand {
    /// Run a controller and the benchmark against each other.
    Throughput(ThroughputArgs),
}

/// Options of the network that is shown.
#[derive(clap::Args)]
struct ShowArgs {
    /// The network, as below
    #[arg(long, default_value = "torus,3,3", value_name = "SHAPE")]
    topology: TopologySpec,
    /// Print lines of text instead of the live view, as without a terminal; the exit status is 0 if everything worked
    #[arg(long)]
    plain: bool,
    /// With lines of text: jump to the next event instead of waiting for it
    #[arg(long)]
    simulated: bool,
    /// Show the network in a browser, in real time, at ADDR: an address and a port, or a port of the loopback address [default
    /// ADDR: 127.0.0.1:8080]
    #[cfg(feature = "northbound")]
    #[arg(
        long,
        value_name = "ADDR",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "127.0.0.1:8080",
        value_parser = crate::northbound::parse_address,
        conflicts_with_all = ["plain", "simulated"]
    )]
    web: Option<std::net::SocketAddr>,
    /// Seed of delays and flows
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,
}

/// Runs the demonstration. The exit status is 0 only if every ping was answered, and the cut was healed.
pub fn run(args: DemoArgs) -> ExitCode {
    match args.command {
        Some(DemoCommand::Throughput(args)) => throughput::run(args),
        None => status::of_printed(show(&args.show), |_| None),
    }
}

fn show(args: &ShowArgs) -> lab::Result<ExitCode> {
    let stop = stop_on_signal()?;
    #[cfg(feature = "northbound")]
    if let Some(address) = args.web {
        return web::run(&args.topology, args.seed, address, stop);
    }
    let mut lab = Lab::new(&args.topology, args.seed)?;
    let all_is_well = match args.is_plain() {
        true => plain::run(&mut lab, &args.topology, args.simulated, &stop)?,
        false => live::run(&mut lab, &args.topology, &stop)?,
    };
    Ok(match all_is_well {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

impl ShowArgs {
    fn is_plain(&self) -> bool {
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let is_terminal = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
        self.plain || self.simulated || is_dumb || !is_terminal
    }
}

fn stop_on_signal() -> std::io::Result<Arc<AtomicBool>> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}
