//! `urtica net simulate`: drawn networks, drawn faults, and what must hold.

use crate::log::log_to_stderr;
use crate::say::say;
use std::error::Error;
use std::io::{IsTerminal, Write, stdout};
use std::process::ExitCode;
use std::time::{Instant, SystemTime};
use urtica_apps as apps;
use urtica_controller::Controller;
use urtica_net::simulate::{PlantedBug, Programs, Report, Scenario, simulate, simulate_watched};
use urtica_net::tracer::Tracer;
use urtica_topology::shapes::{Shape, ShapeError};

/// What can be planted, and how it is used.
fn after_help() -> String {
    let bugs = PlantedBug::ALL.map(|bug| format!("\n  {:18} {}", bug.name(), bug.about()));
    format!("Bugs to plant:{}\n\n{EXAMPLES}", bugs.concat())
}

const EXAMPLES: &str = "\
Examples:
  urtica net simulate --seeds 1000
  urtica net simulate --seed 4711
  urtica net simulate --seed 4711 --trace
  urtica net simulate --apps l2 --topology tree,depth=3,fanout=2 --seeds 50
  urtica net simulate --plant ignore-port-down --seeds 1000";

/// Options of `urtica net simulate`.
#[derive(Debug, clap::Args)]
#[command(after_help = after_help())]
pub struct SimulateArgs {
    /// The programs that the controller runs, separated by commas.
    #[arg(
        long,
        value_name = "APP",
        value_delimiter = ',',
        default_value = "discovery,hosts,routing"
    )]
    apps: Vec<String>,
    /// Draw from these topologies; may be repeated [default: small ones, with loops if discovery is among the programs].
    #[arg(long, value_name = "TOPOLOGY")]
    topology: Vec<Shape>,
    /// How many seeds are run, one after the other [default: 100, or 1 with --seed].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    seeds: Option<u64>,
    /// The first seed [default: others each time].
    #[arg(long, value_name = "SEED")]
    seed: Option<u64>,
    /// How many faults there are at most in a run.
    #[arg(long, value_name = "N", default_value_t = 8)]
    faults: usize,
    /// How many entries a switch may have left at rest [default: 1, or 2 with loops].
    #[arg(long, value_name = "N")]
    entries: Option<usize>,
    /// Make the controller wrong, as below, to see that it is found out.
    #[arg(long, value_name = "BUG")]
    plant: Option<PlantedBug>,
    /// Write a line for each frame and message.
    #[arg(long)]
    trace: bool,
}

/// Runs all seeds, or up to the first that fails.
pub(super) fn run(args: SimulateArgs) -> Result<ExitCode, Box<dyn Error>> {
    // Switches come and go in every run: only who asks is told.
    if std::env::var_os("RUST_LOG").is_some() {
        log_to_stderr();
    }
    let scenario = args.scenario()?;
    let first = args.seed.unwrap_or_else(any_seed);
    let count = args
        .seeds
        .unwrap_or(if args.seed.is_some() { 1 } else { 100 });
    let started = Instant::now();
    for done in 0..count {
        let seed = first.wrapping_add(done);
        match run_seed(&scenario, seed, args.trace) {
            Ok(report) => tell(&report, count)?,
            Err(failure) => {
                say(failure);
                say(format!(
                    "to see it again: urtica net simulate --seed {seed} --trace{}",
                    args.repeated()
                ));
                return Ok(ExitCode::FAILURE);
            }
        }
    }
    let took = started.elapsed().as_secs_f64();
    say(format!(
        "{count} seeds from {first} on: everything held; {took:.1} s"
    ));
    Ok(ExitCode::SUCCESS)
}

fn run_seed(
    scenario: &Scenario,
    seed: u64,
    traces: bool,
) -> Result<Report, Box<urtica_net::simulate::Failure>> {
    match traces {
        false => simulate(scenario, seed),
        true => simulate_watched(scenario, seed, &mut |net| {
            net.watch(Tracer::new(net, stdout()))
        }),
    }
}

impl SimulateArgs {
    fn scenario(&self) -> Result<Scenario, Box<dyn Error>> {
        // Unknown names and topologies are told of before the first run.
        let options = apps::Options::default();
        super::with_apps(Controller::new(), &self.apps, &options)?;
        let has_loops = self.has_loops()?;
        let (names, bug) = (self.apps.clone(), self.plant);
        let programs = move || {
            let controller = Controller::new();
            let controller = match bug {
                Some(bug) => controller.program(bug),
                None => controller,
            };
            Programs {
                controller: super::with_apps(controller, &names, &options)
                    .expect("the names were looked up before"),
                reservations: None,
            }
        };
        let mut scenario = match has_loops {
            true => Scenario::on_loops(programs),
            false => Scenario::on_trees(programs),
        };
        if !self.topology.is_empty() {
            scenario.shapes = self.topology.clone();
        }
        scenario.faults.most = self.faults;
        scenario.entries_at_rest = self.entries.unwrap_or(scenario.entries_at_rest);
        Ok(scenario)
    }

    /// Whether any network may have loops.
    fn has_loops(&self) -> Result<bool, ShapeError> {
        if self.topology.is_empty() {
            return Ok(self.apps.iter().any(|app| app == "discovery"));
        }
        let mut plans = Vec::new();
        for shape in &self.topology {
            plans.push(shape.plan()?);
        }
        Ok(plans.iter().any(super::has_loops))
    }

    /// The options that a seed depends on.
    fn repeated(&self) -> String {
        let topologies = self
            .topology
            .iter()
            .map(|shape| format!(" --topology {shape}"));
        let entries = self.entries.map(|entries| format!(" --entries {entries}"));
        let plant = self.plant.map(|bug| format!(" --plant {bug}"));
        format!(
            " --apps {} --faults {}{}{}{}",
            self.apps.join(","),
            self.faults,
            entries.unwrap_or_default(),
            plant.unwrap_or_default(),
            topologies.collect::<String>()
        )
    }
}

fn tell(report: &Report, count: u64) -> std::io::Result<()> {
    let line = format!(
        "seed {} ({}): {} faults in {:.0} s, {}",
        report.seed,
        report.shape,
        report.faults,
        report.time.as_secs_f64(),
        report.digest
    );
    if count == 1 {
        say(line);
    } else if stdout().is_terminal() {
        print!("\r\x1b[K{line}");
        stdout().flush()?;
    }
    Ok(())
}

/// A seed that was hardly ever used before.
fn any_seed() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(0, |now| now.as_micros() as u64)
}
