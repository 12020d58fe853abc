//! `urtica net simulate`: random networks, random faults, and the properties that must hold.

mod programs;
mod reservations;

use crate::log::log_to_stderr;
use crate::say::{PipedOutput, say, say_bare};
use std::collections::BTreeSet;
use std::error::Error;
use std::io::{IsTerminal, stdout};
use std::process::ExitCode;
use std::time::{Instant, SystemTime};
use urtica_apps as apps;
use urtica_net::simulate::{
    Failure, FaultKind, NoSuchItem, PlantedBug, Report, Scenario, ScheduleItem, minimise, simulate,
    simulate_watched,
};
use urtica_net::tracer::Tracer;
use urtica_topology::spec::{SpecError, TopologySpec};

/// Returns the help on bugs that can be planted.
fn after_help() -> String {
    let bugs = PlantedBug::ALL.map(|bug| format!("\n  {:18} {}", bug.name(), bug.about()));
    format!("Bugs to plant:{}\n\n{EXAMPLES}", bugs.concat())
}

const EXAMPLES: &str = "\
Examples:
  urtica net simulate --seeds 1000
  urtica net simulate --seed 4711
  urtica net simulate --seed 4711 --trace
  urtica net simulate --seed 4711 --minimise
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
    /// Topology to draw from. May be repeated [default: small ones, with loops if discovery is among the programs].
    #[arg(long, value_name = "TOPOLOGY")]
    topology: Vec<TopologySpec>,
    /// Number of seeds to run [default: 100, or 1 with --seed].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    seeds: Option<u64>,
    /// The first seed [default: different each time].
    #[arg(long, value_name = "SEED")]
    seed: Option<u64>,
    /// Maximum number of faults in a run.
    #[arg(long, value_name = "N", default_value_t = 8)]
    faults: usize,
    /// Kinds of faults, separated by commas [default: all that these programs handle].
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    kinds: Option<Vec<FaultKind>>,
    /// Keep only these faults and flows of a seed, as in fault-0,flow-3, or 'none'.
    #[arg(long, value_name = "PART", value_parser = parse_parts)]
    only: Option<Parts>,
    /// Remove all faults and flows that the first failing seed does not need to fail.
    #[arg(long)]
    minimise: bool,
    /// Maximum number of entries in a switch when the network is quiescent [default: 1, or 2 with loops].
    #[arg(long, value_name = "N")]
    entries: Option<usize>,
    /// Plant a bug in the controller, as below, to see that it is found.
    #[arg(long, value_name = "BUG")]
    plant: Option<PlantedBug>,
    /// Write a line for each frame and message.
    #[arg(long)]
    trace: bool,
    #[command(flatten)]
    options: apps::Options,
}

/// Faults and flows of a run.
#[derive(Clone, Debug)]
struct Parts(BTreeSet<ScheduleItem>);

fn parse_parts(text: &str) -> Result<Parts, NoSuchItem> {
    let items = text.split(',').filter(|item| *item != "none");
    items.map(str::parse).collect::<Result<_, _>>().map(Parts)
}

/// Runs all seeds, or up to the first that fails.
pub(super) fn run(args: SimulateArgs) -> Result<ExitCode, Box<dyn Error>> {
    // Switches connect and disconnect in every run, so this is logged only on request.
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
                args.tell_failure(&scenario, &failure);
                return Ok(ExitCode::FAILURE);
            }
        }
    }
    let took = started.elapsed().as_secs_f64();
    say(format!(
        "{count} seeds from {first} on: all invariants held; {took:.1} s"
    ));
    Ok(ExitCode::SUCCESS)
}

fn run_seed(scenario: &Scenario, seed: u64, traces: bool) -> Result<Report, Box<Failure>> {
    match traces {
        false => simulate(scenario, seed),
        true => simulate_watched(scenario, seed, &mut |net| {
            net.watch(Tracer::new(net, PipedOutput))
        }),
    }
}

impl SimulateArgs {
    fn tell_failure(&self, scenario: &Scenario, failure: &Failure) {
        say(failure);
        let only = self.only.as_ref().map(|Parts(only)| only);
        self.tell_how_to_repeat(failure.seed, only);
        if self.minimise {
            let least = minimise(scenario, failure);
            say(format!(
                "\nthe smallest part that still fails, after {} runs: {}",
                least.runs,
                items(&least.only)
            ));
            say(&least.failure);
            self.tell_how_to_repeat(failure.seed, Some(&least.only));
        }
    }

    fn tell_how_to_repeat(&self, seed: u64, only: Option<&BTreeSet<ScheduleItem>>) {
        let only = only.map(|only| format!(" --only {}", items(only)));
        say(format!(
            "to reproduce it: urtica net simulate --seed {seed} --trace{}{}",
            repeated(std::env::args()),
            only.unwrap_or_default()
        ));
    }

    fn scenario(&self) -> Result<Scenario, Box<dyn Error>> {
        let has_loops = self.has_loops()?;
        let mut scenario = programs::scenario(&self.apps, &self.options, has_loops, self.plant)?;
        if !self.topology.is_empty() {
            scenario.topologies = self.topology.clone();
        }
        if let Some(kinds) = &self.kinds {
            scenario.faults.kinds = kinds.clone();
        }
        scenario.faults.most = self.faults;
        scenario.only = self.only.clone().map(|Parts(only)| only);
        scenario.entries_when_quiescent = self.entries.unwrap_or(scenario.entries_when_quiescent);
        Ok(scenario)
    }

    /// Returns whether any of the named networks has loops; `None` if none was named.
    fn has_loops(&self) -> Result<Option<bool>, SpecError> {
        let mut has_loops = None;
        for spec in &self.topology {
            *has_loops.get_or_insert(false) |= super::has_loops(&spec.plan()?);
        }
        Ok(has_loops)
    }
}

/// Returns the options that a seed depends on, as typed.
fn repeated(arguments: impl Iterator<Item = String>) -> String {
    let mut arguments = arguments
        .skip_while(|argument| argument != "simulate")
        .skip(1);
    let mut kept = String::new();
    while let Some(argument) = arguments.next() {
        let name = argument.split('=').next().unwrap_or_default();
        match name {
            "--trace" | "--minimise" => {}
            "--seed" | "--seeds" | "--only" => {
                if name == argument {
                    arguments.next();
                }
            }
            _ => kept.push_str(&format!(" {}", quoted(&argument))),
        }
    }
    kept
}

/// Quotes an argument for a shell.
fn quoted(argument: &str) -> String {
    let is_plain = |character: char| character.is_alphanumeric() || "-_=,.:/".contains(character);
    match !argument.is_empty() && argument.chars().all(is_plain) {
        true => argument.to_owned(),
        false => format!("'{}'", argument.replace('\'', "'\\''")),
    }
}

/// Formats faults and flows for `--only`.
fn items(items: &BTreeSet<ScheduleItem>) -> String {
    let names: Vec<_> = items.iter().map(ScheduleItem::to_string).collect();
    match names.is_empty() {
        true => "none".to_owned(),
        false => names.join(","),
    }
}

fn tell(report: &Report, count: u64) -> std::io::Result<()> {
    let line = format!(
        "seed {} ({}): {} faults in {:.0} s, {}",
        report.seed,
        report.topology,
        report.faults,
        report.time.as_secs_f64(),
        report.digest
    );
    if count == 1 {
        say(line);
    } else if stdout().is_terminal() {
        say_bare(format_args!("\r\x1b[K{line}"));
    }
    Ok(())
}

/// Returns a random first seed.
fn any_seed() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(0, |now| now.as_micros() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_to_repeat_a_seed_keeps_the_settings() {
        let typed = "urtica net simulate --seed 4 --apps l2 --seeds=9 --only fault-1 --trace --faults=3 --minimise";
        let arguments = typed.split(' ').chain(["--firewall-rules", "my rules"]);
        assert_eq!(
            repeated(arguments.map(str::to_owned)),
            " --apps l2 --faults=3 --firewall-rules 'my rules'"
        );
    }
}
