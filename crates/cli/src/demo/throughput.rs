//! `urtica demo throughput`: controller, emulated switches and report in one process, without root and without a switch.

use crate::say::{complain, say};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use urtica_apps as apps;
use urtica_bench::analysis::{Bottleneck, Busy};
use urtica_bench::config::{LoadConfig, MAX_SWITCHES, Mode};
use urtica_bench::report::{html, text};
use urtica_bench::run::{Live, run as run_load};
use urtica_bench::{Error, Report};
use urtica_controller::{Controller, Running};
use urtica_socket::Address;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Options of `urtica demo throughput`.
#[derive(clap::Args)]
pub struct ThroughputArgs {
    /// Seconds to measure: a quarter packet by packet, the rest at the maximum rate
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=3600), value_name = "N")]
    seconds: u32,
    /// Number of switches to emulate
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_SWITCHES)), value_name = "N")]
    switches: u32,
    /// File for the report on the run at the maximum rate, a page with plots
    #[arg(long, default_value = "urtica-demo.html", value_name = "FILE")]
    report: PathBuf,
}

/// Runs controller and benchmark against each other. The exit status is 0 only if every answer was right.
pub fn run(args: ThroughputArgs) -> ExitCode {
    match demonstrate(&args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            complain(format_args!("urtica: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn demonstrate(args: &ThroughputArgs) -> Result<bool> {
    let controller = start_controller()?;
    let address = address_of(&controller)?;
    let seconds = Duration::from_secs(args.seconds.into());
    say(format!(
        "Running the learning switch (urtica run l2) on one thread at {address}, and emulating\n\
         {} OpenFlow 1.0 switches that send it packet-ins from 100,000 hosts each. Every answer is checked.",
        args.switches
    ));

    say(format!(
        "\nOne packet-in at a time from each switch, for {:.2} s:",
        (seconds / 4).as_secs_f64()
    ));
    let (config, tests) = (load(&address, args.switches), 4);
    let one_by_one = measure(&LoadConfig {
        mode: Mode::PingPong,
        tests: tests + 1,
        test_length: seconds / 4 / tests,
        ..config.clone()
    })?;
    say(findings(&one_by_one));

    say(format!(
        "\nPacket-ins at the maximum rate, for {:.2} s:",
        (seconds * 3 / 4).as_secs_f64()
    ));
    let tests = 12;
    let flood = measure(&LoadConfig {
        mode: Mode::MaxRate,
        tests: tests + 1,
        test_length: seconds * 3 / 4 / tests,
        ..config
    })?;
    say(findings(&flood));
    say(format!("  {}", bottleneck(&flood)));

    controller.stop()?;
    write_report(&args.report, &flood)?;
    say(what_next(&args.report));
    let wrong: Vec<&Report> = [&one_by_one, &flood]
        .into_iter()
        .filter(|report| !is_right(report))
        .collect();
    for report in &wrong {
        complain(format_args!(
            "\n{}: not all replies were correct\n{}",
            report.setup.mode,
            text::summary(report).trim_end()
        ));
    }
    Ok(wrong.is_empty())
}

fn start_controller() -> Result<Running> {
    let anywhere = "ptcp:0:127.0.0.1".parse::<Address>()?;
    let controller = Controller::new().listen(anywhere).shards(1);
    Ok(apps::add_by_name(controller, "l2")?.start()?)
}

/// Returns the controller's address, whose port the system chose.
fn address_of(controller: &Running) -> Result<Address> {
    match controller.addresses() {
        [Address::PassiveTcp { port, .. }] => Ok(Address::Tcp {
            host: "127.0.0.1".to_owned(),
            port: *port,
        }),
        other => Err(format!("expected to listen at one TCP port, not at {other:?}").into()),
    }
}

fn load(controller: &Address, switches: u32) -> LoadConfig {
    LoadConfig {
        controller: controller.clone(),
        switches,
        verify: true,
        ..LoadConfig::default()
    }
}

/// Runs a load, and corrects the report for a controller in the same process.
fn measure(config: &LoadConfig) -> Result<Report> {
    let counted = config.counted_tests();
    let (mut before, mut after) = (None, None);
    let mut report = run_load(config, &AtomicBool::new(false), |live| match live {
        Live::Test(test) if test.index + 1 == counted.start => before = ShardTimes::read(),
        Live::Test(test) if test.index + 1 == counted.end => after = ShardTimes::read(),
        Live::Closed(closed) => complain(format_args!(
            "switch {} was lost: {}",
            closed.datapath_id, closed.reason
        )),
        _ => {}
    })?;
    let shard = before
        .zip(after)
        .map(|(before, after)| after.since(&before));
    attribute_to(shard, &mut report);
    Ok(report)
}

/// Attributes only the shard's thread to the controller. The benchmark attributes the whole process to it.
fn attribute_to(shard: Option<Busy>, report: &mut Report) {
    let load = report.load.threads.first().copied().unwrap_or_default();
    report.controller = None;
    report.controller_cpu_us =
        shard.map(|busy| busy.ran * 1e6 / report.responses_per_s.mean.max(1.0));
    report.joules_per_million = None;
    if report.has_no_answers() {
        return;
    }
    report.bottleneck = Bottleneck::find(load, shard, false);
    report.verdict = report.bottleneck.sentence(load, shard);
}

/// The kernel's CPU times of the controller's one shard.
struct ShardTimes {
    at: Instant,
    ran: Duration,
    waited: Duration,
}

impl ShardTimes {
    /// Reads the times; `None` if the kernel does not report them.
    fn read() -> Option<Self> {
        let mut threads = std::fs::read_dir("/proc/self/task").ok()?.flatten();
        let shard = threads.find(|thread| {
            std::fs::read_to_string(thread.path().join("comm"))
                .is_ok_and(|name| name.trim_end() == "shard-0")
        })?;
        let times = std::fs::read_to_string(shard.path().join("schedstat")).ok()?;
        let mut times = times.split_whitespace().map_while(|ns| ns.parse().ok());
        Some(Self {
            at: Instant::now(),
            ran: Duration::from_nanos(times.next()?),
            waited: Duration::from_nanos(times.next()?),
        })
    }

    fn since(&self, before: &Self) -> Busy {
        let elapsed_s = (self.at - before.at).as_secs_f64().max(1e-9);
        Busy {
            ran: self.ran.saturating_sub(before.ran).as_secs_f64() / elapsed_s,
            waited: self.waited.saturating_sub(before.waited).as_secs_f64() / elapsed_s,
        }
    }
}

fn findings(report: &Report) -> String {
    let (latency, tally) = (&report.latency, &report.tally);
    let Some(latency) = latency else {
        return "  no packet-in was answered".to_owned();
    };
    let verdict = match report.faults() {
        0 => "all right".to_owned(),
        faults => format!("{faults} WRONG OR LOST"),
    };
    format!(
        "  {} answers per second\n  \
         half within {}, 99 of 100 within {}, 999 of 1000 within {}\n  \
         {} answers checked: {verdict}\n  \
         fairness: Jain's index {:.4}, where 1 means that all switches were served equally",
        html::thousands(report.responses_per_s.median),
        time(latency.p50_us),
        time(latency.p99_us),
        time(latency.p999_us),
        html::thousands(tally.answered as f64),
        report.jain
    )
}

fn time(us: f64) -> String {
    if us < 1000.0 {
        format!("{us:.0} us")
    } else {
        format!("{:.1} ms", us / 1e3)
    }
}

fn bottleneck(report: &Report) -> &'static str {
    match report.bottleneck {
        Bottleneck::Load => "the bottleneck was the load: the controller had spare time",
        Bottleneck::Controller => "the bottleneck was the controller: the load had spare time",
        Bottleneck::Both => "the bottleneck: neither load nor controller had spare time",
        Bottleneck::Latency => {
            "the bottleneck was in between: load and controller both had spare time"
        }
        Bottleneck::NotLoad | Bottleneck::Schedule => "the bottleneck was not the load",
        Bottleneck::NoAnswers => "the controller answered nothing",
        _ => "the bottleneck is unknown",
    }
}

fn is_right(report: &Report) -> bool {
    let everyone = report.setup.switches_ready == report.setup.switches && report.closed.is_empty();
    everyone && report.tally.answered > 0 && !report.failed_verification()
}

fn write_report(file: &Path, report: &Report) -> std::result::Result<(), Error> {
    std::fs::write(file, html::write(report))
        .map_err(Error::system(format!("write {}", file.display())))
}

fn what_next(report: &Path) -> String {
    format!(
        "\nThe run at the maximum rate, with plots: {}\n\
         \n\
         What to try next:\n  \
         urtica run l2\n     \
         a controller on ports 6653 and 6633\n  \
         ovs-vsctl set-controller BRIDGE tcp:127.0.0.1:6653\n     \
         Open vSwitch uses it\n  \
         urtica bench -c 127.0.0.1 -p 6653 -t --verify\n     \
         load any controller and check its answers\n  \
         urtica bench versus limit -t --verify\n     \
         compare l2 with the cheapest possible responder",
        report.display()
    )
}
