//! `urtica bench switch`: how fast the switch forwards packets, on one core and without a network.

mod output;

use crate::say::say;
use clap::Args;
use output::Output;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;
use urtica_bench::Error;
use urtica_switch_bench::{
    Case, Form, Loading, MAX_ENTRIES, MAX_FLOWS, MeasuredCore, ParseWorkloadError, Plan, Trace,
    Workload, has_cycle_counter, measure_load, measure_rates, write_flows, write_pcap,
};

/// Options of `urtica bench switch`.
#[derive(Args, Debug)]
pub struct SwitchArgs {
    /// Pipelines: port, l2-1k, l2-100k, l3, lb, gateway, gateway-down, gateway-groups, gateway-groups-meters, mobile,
    /// mobile-groups, mobile-groups-meters, or all of these; or a ClassBench rule set: acl1 to acl5, fw1 to fw5, ipc1 or
    /// ipc2 with -1k, -10k or -100k, as in acl1-10k
    #[arg(long, value_name = "NAME,...", required_unless_present_any = ["load", "flows_file"])]
    pipeline: Option<Workloads>,
    /// Read the entries from this file: flows, groups and meters, one per line, as for 'urtica flows add'; group and
    /// meter lines start with group_id= and meter=
    #[arg(long, value_name = "FILE", requires = "pcap")]
    flows_file: Option<PathBuf>,
    /// Replay the Ethernet frames in this pcap or pcapng file, all into port 1
    #[arg(long, value_name = "FILE", requires = "flows_file")]
    pcap: Option<PathBuf>,
    /// Numbers of active flows, 1 to 16777216; of a rule set, the length of the trace
    #[arg(long, value_name = "N,...", default_value = "1,1000,100000")]
    flows: FlowCounts,
    /// Distribution of the packets over the flows
    #[arg(long, value_enum, value_name = "TRACE", default_value = "uniform")]
    trace: Trace,
    /// Ways to forward packets; several are interleaved
    #[arg(
        long,
        value_enum,
        value_name = "FORM,...",
        value_delimiter = ',',
        default_value = "switch,limit"
    )]
    form: Vec<Form>,
    /// Way to load the entries before the measurement
    #[arg(long, value_enum, value_name = "HOW", default_value = "one-by-one")]
    loading: Loading,
    /// Check the result of every packet, not only of the first 1024
    #[arg(long)]
    check_all: bool,
    /// Readings per point, 1 to 1000
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    readings: u32,
    /// Length of each reading in seconds, 0.001 to 3600
    #[arg(long, value_name = "S", default_value = "1")]
    seconds: Seconds,
    /// The measured core; everything else runs on the others
    #[arg(long, value_name = "CORE", default_value_t = 1)]
    core: usize,
    /// Also report the cycles of a burst of 32 packets
    #[arg(long)]
    latency: bool,
    /// Also measure under N route updates a second; 0 for as many as possible (l3 and gateway)
    #[arg(long, value_name = "N", requires = "pipeline")]
    updates: Option<u64>,
    /// Time the loading of N flow entries into an empty switch, 1 to 1048576
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_ENTRIES)))]
    load: Option<u32>,
    /// Append one JSON object per row to this file; - for standard output, which then has only JSON
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
    /// Measure nothing, but write the flow entries and the packets to this directory, for other switches
    #[arg(long, value_name = "DIR", conflicts_with_all = ["load", "json", "updates", "latency", "flows_file"])]
    write: Option<PathBuf>,
}

/// A list of workloads, or `all`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Workloads(Vec<Workload>);

impl FromStr for Workloads {
    type Err = ParseWorkloadError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "all" {
            return Ok(Self(Workload::ALL.to_vec()));
        }
        text.split(',')
            .map(str::parse)
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

/// A list of numbers of flows.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FlowCounts(Vec<u32>);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not a list of flow counts; expected numbers of 1 to {MAX_FLOWS}, as in 1,1000,100000"
)]
struct ParseFlowCountsError(String);

impl FromStr for FlowCounts {
    type Err = ParseFlowCountsError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let count = |word: &str| {
            word.parse()
                .ok()
                .filter(|count| (1..=MAX_FLOWS).contains(count))
        };
        let counts: Option<_> = text.split(',').map(count).collect();
        counts
            .map(Self)
            .ok_or_else(|| ParseFlowCountsError(text.to_owned()))
    }
}

/// The length of a reading.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Seconds(Duration);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not the length of a reading; expected 0.001 to 3600 seconds")]
struct ParseSecondsError(String);

impl FromStr for Seconds {
    type Err = ParseSecondsError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let seconds = text
            .parse()
            .ok()
            .filter(|seconds| (0.001..=3600.0).contains(seconds));
        seconds
            .map(|seconds| Self(Duration::from_secs_f64(seconds)))
            .ok_or_else(|| ParseSecondsError(text.to_owned()))
    }
}

/// Runs the benchmark, or writes its files.
///
/// # Errors
/// A message about a failed step.
pub fn run(args: &SwitchArgs) -> Result<(), Error> {
    args.check()?;
    if let Some(directory) = &args.write {
        return write_files(args, directory);
    }
    let core = MeasuredCore::take(args.core).map_err(failed)?;
    let mut output = Output::new(args.json.as_deref())?;
    let plan = args.plan(core);
    for workload in args.workloads() {
        for &flows in &args.flows.0 {
            let case = Case::of(workload, flows, args.trace).map_err(failed)?;
            print_rates(&plan, &case, &mut output)?;
        }
    }
    if let (Some(flows_file), Some(pcap)) = (&args.flows_file, &args.pcap) {
        let case = Case::read(flows_file, pcap).map_err(failed)?;
        print_rates(&plan, &case, &mut output)?;
    }
    if let Some(entries) = args.load {
        let load = measure_load(core, entries, args.readings).map_err(failed)?;
        output.print(&load)?;
    }
    Ok(())
}

fn print_rates(plan: &Plan, case: &Case, output: &mut Output) -> Result<(), Error> {
    let rates = measure_rates(plan, case).map_err(failed)?;
    rates.iter().try_for_each(|rate| output.print(rate))
}

/// Converts an error of the measurement.
fn failed(error: urtica_switch_bench::Error) -> Error {
    Error::invalid(error.to_string())
}

impl SwitchArgs {
    /// Refuses options that exclude each other.
    fn check(&self) -> Result<(), Error> {
        let fixed = self
            .workloads()
            .find(|workload| workload.route_table().is_none());
        if let (Some(_), Some(workload)) = (self.updates, fixed) {
            return Err(Error::invalid(format!(
                "{workload} has no routes to update; expected --updates with l3, gateway or both"
            )));
        }
        if self.latency && !has_cycle_counter() {
            return Err(Error::invalid(
                "--latency needs a cycle counter, which this program supports on x86-64 only",
            ));
        }
        Ok(())
    }

    fn workloads(&self) -> impl Iterator<Item = Workload> {
        self.pipeline.iter().flat_map(|list| list.0.iter().copied())
    }

    fn plan(&self, core: MeasuredCore) -> Plan {
        let mut plan = Plan::new(core);
        plan.forms = self.form.clone();
        plan.loading = self.loading;
        plan.checks_all = self.check_all;
        plan.readings = self.readings;
        plan.reading_length = self.seconds.0;
        plan.latency = self.latency;
        plan.updates_per_second = self.updates;
        plan
    }
}

/// Writes the flow entries of each pipeline and the packets of each point, and prints the files' names.
fn write_files(args: &SwitchArgs, directory: &Path) -> Result<(), Error> {
    std::fs::create_dir_all(directory).map_err(Error::system(format!(
        "make the directory {}",
        directory.display()
    )))?;
    for workload in args.workloads() {
        let path = directory.join(format!("{workload}.flows"));
        write_file(&path, |out| write_flows(workload, out))?;
        for &flows in &args.flows.0 {
            let trace = args.trace;
            let path = directory.join(format!("{workload}-{flows}{}.pcap", trace.suffix()));
            write_file(&path, |out| write_pcap(workload, flows, trace, out))?;
        }
    }
    Ok(())
}

fn write_file(
    path: &Path,
    write: impl FnOnce(BufWriter<File>) -> io::Result<()>,
) -> Result<(), Error> {
    File::create(path)
        .and_then(|file| write(BufWriter::new(file)))
        .map_err(Error::system(format!("write {}", path.display())))?;
    say(path.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read() {
        let workloads = |text: &str| text.parse::<Workloads>().map(|list| list.0);
        assert_eq!(workloads("all").unwrap(), Workload::ALL);
        assert_eq!(
            workloads("lb,l2-1k").unwrap(),
            [Workload::Lb, Workload::L2Of1k]
        );
        assert!(
            workloads("l3,")
                .unwrap_err()
                .to_string()
                .contains("expected all, or some of port,l2-1k")
        );
        let counts = |text: &str| text.parse::<FlowCounts>().map(|list| list.0);
        assert_eq!(counts("1,1000,16777216").unwrap(), [1, 1000, 16_777_216]);
        for wrong in ["", "0", "1,", "16777217", "1k", "-1"] {
            assert!(
                counts(wrong)
                    .unwrap_err()
                    .to_string()
                    .contains("expected numbers of 1 to 16777216"),
                "{wrong}"
            );
        }
    }

    #[test]
    fn lengths_of_readings_have_bounds() {
        assert_eq!(
            "0.25".parse::<Seconds>().unwrap().0,
            Duration::from_millis(250)
        );
        for wrong in ["0", "-1", "3601", "NaN", "inf", "1s"] {
            assert!(
                wrong
                    .parse::<Seconds>()
                    .unwrap_err()
                    .to_string()
                    .contains("expected 0.001 to 3600"),
                "{wrong}"
            );
        }
    }
}
