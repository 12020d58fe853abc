//! `urtica bench network`: the speed of programs on a network, within this process.

mod discovery;
mod hops;
mod next_hops;
mod path;
mod repair;
mod report;
mod reservations;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::bench::output::Output;
use clap::{Args, ValueEnum};
use report::Report;
use urtica_apps::{Options, add_all};
use urtica_bench::Error;
use urtica_controller::Controller;
use urtica_net::{ChannelConfig, Net, NetConfig};
use urtica_topology::spec::{Plan, TopologySpec};

/// Options of `urtica bench network`.
#[derive(Args, Debug)]
pub struct NetworkArgs {
    /// Figures to measure [default: all]
    #[arg(long, value_enum, value_name = "NAME,...", value_delimiter = ',')]
    figure: Vec<Figure>,
    /// Number of measurements of each, 1 to 1000
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Use small networks and short runs, only to show that it works
    #[arg(long)]
    quick: bool,
    /// Write one JSON object per figure to this file; - for standard output, which then has only JSON
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
}

/// A figure to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Figure {
    /// Reservations of paths over four links, each a transaction, on one core and on two
    Reservations,
    /// A path between two hosts of a tree
    Path,
    /// Next hops between all switches of a fat tree, from scratch and after a link went down
    NextHops,
    /// The links of a thousand switches
    Discovery,
    /// Traffic that recovers after a link was cut
    Repair,
    /// Packets in a simulated network
    Hops,
}

/// The size of the measurements.
#[derive(Clone, Copy, Debug)]
struct Effort {
    is_quick: bool,
}

/// The results of one round.
#[derive(Clone, Debug, PartialEq)]
struct Reading {
    /// The name of the figure, for programs.
    figure: String,
    /// Its description for people.
    what: String,
    unit: &'static str,
    value: f64,
}

impl Reading {
    fn new(
        figure: impl Into<String>,
        what: impl Into<String>,
        unit: &'static str,
        value: f64,
    ) -> Self {
        Self {
            figure: figure.into(),
            what: what.into(),
            unit,
            value,
        }
    }
}

/// Takes the measurements, and writes the report.
///
/// # Errors
/// A message about a failed step.
pub fn run(args: &NetworkArgs) -> Result<(), Error> {
    let effort = Effort {
        is_quick: args.quick,
    };
    let json = args.json.as_deref().map(Output::open).transpose()?;
    let mut report = Report::default();
    for _ in 0..args.rounds {
        for figure in args.figures() {
            report.add(figure.measure(effort)?);
        }
    }
    report.tell(json)
}

impl NetworkArgs {
    fn figures(&self) -> &[Figure] {
        match self.figure.as_slice() {
            [] => Figure::value_variants(),
            chosen => chosen,
        }
    }
}

impl Figure {
    fn measure(self, effort: Effort) -> Result<Vec<Reading>, Error> {
        match self {
            Self::Reservations => reservations::measure(effort),
            Self::Path => path::measure(effort),
            Self::NextHops => next_hops::measure(effort),
            Self::Discovery => discovery::measure(effort),
            Self::Repair => repair::measure(effort),
            Self::Hops => hops::measure(effort),
        }
    }
}

impl Effort {
    /// Returns one of two sizes.
    fn either<T>(self, whole: T, quick: T) -> T {
        if self.is_quick { quick } else { whole }
    }
}

/// Returns the parts of a named topology.
fn plan(spec: &str) -> Result<Plan, Error> {
    let plan = spec.parse::<TopologySpec>().and_then(|spec| spec.plan());
    plan.map_err(failed)
}

/// Returns the configuration of a network with control channels without delay.
fn config() -> NetConfig {
    NetConfig {
        channel: ChannelConfig {
            delay: Duration::ZERO..=Duration::ZERO,
            splits: false,
            connect_within: Duration::ZERO,
        },
        ..NetConfig::default()
    }
}

/// Creates a network of this topology under the routing program, which has received packets of every host.
fn routed(spec: &str) -> Result<Net, Error> {
    let mut net = Net::new(&plan(spec)?, config()).map_err(failed)?;
    let programs = ["discovery", "hosts", "routing"];
    let controller = add_all(Controller::new(), &programs, &Options::default()).map_err(failed)?;
    net.start_controller(controller).map_err(failed)?;
    net.run_for(Duration::from_secs(1));
    net.announce_hosts();
    net.run_for(Duration::from_millis(100));
    Ok(net)
}

/// Converts any error by its message.
fn failed(error: impl ToString) -> Error {
    Error::invalid(error.to_string())
}

/// Returns the duration of `work`, and its result.
fn timed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let started = Instant::now();
    let result = work();
    (started.elapsed(), result)
}
