//! `urtica bench`: cbench's flags and lines, and additional ones.

mod network;
mod output;
mod switch;

use crate::say::complain;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::{ArgAction, Args, Subcommand, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use urtica_bench::config::{Addresses, Expect, LoadConfig, MAX_MACS, Mode, Version};
use urtica_bench::frame::FrameKind;
use urtica_bench::limit::Limit;
use urtica_bench::report::{Ended, html, json, text};
use urtica_bench::run::{Live, run as run_load};
use urtica_bench::versus::{Contender, VersusConfig, versus};
use urtica_bench::{Error, Report};
use urtica_socket::{Address, TlsArgs};

use output::Output;

/// Load an OpenFlow controller from emulated switches, and measure it
#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    args_override_self = true
)]
pub struct BenchArgs {
    #[command(subcommand)]
    command: Option<BenchCommand>,
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Subcommand, Debug)]
enum BenchCommand {
    /// Answer packet-ins as cheaply as possible: the ceiling of machine and load
    Limit {
        /// Address to listen on: ptcp:[PORT][:HOST] or punix:FILE
        #[arg(long, value_name = "ADDR")]
        listen: Address,
    },
    /// Compare urtica's l2 with other controllers, run alternately
    Versus(VersusArgs),
    /// Measure how fast the switch forwards packets from memory, on one core
    Switch(switch::SwitchArgs),
    /// Measure programs on a network within this process: transactions, discovery, paths, repair, packets
    Network(network::NetworkArgs),
}

#[derive(Args, Debug)]
struct TargetArgs {
    /// Host name of the controller, or its address as tcp:HOST:PORT, ssl:HOST:PORT or unix:FILE
    #[arg(
        short = 'c',
        long,
        default_value = "localhost",
        value_name = "HOST|ADDR"
    )]
    controller: String,
    /// Controller port
    #[arg(short, long, default_value_t = 6633)]
    port: u16,
    /// Process id of a local controller that is not found automatically
    #[arg(long, value_name = "PID")]
    controller_pid: Option<u32>,
    /// Test a range of 1, 2, 4, ... switches up to --switches
    #[arg(short, long)]
    ranged_test: bool,
    #[command(flatten)]
    tls: TlsArgs,
}

#[derive(Args, Debug)]
struct LoadArgs {
    /// Tests per run
    #[arg(short, long, default_value_t = 16)]
    loops: u32,
    /// Unique source MAC addresses per switch
    #[arg(short = 'M', long, default_value_t = 100_000, value_name = "N")]
    mac_addresses: u32,
    /// Never repeat a source MAC address: each packet-in is a new host
    #[arg(long, conflicts_with = "mac_addresses")]
    unique_macs: bool,
    /// Hosts' addresses and the order in which they send: cbench's, random and uniform, or random by Zipf's law
    #[arg(long, value_enum, default_value = "in-turn", value_name = "HOW")]
    addresses: HostAddresses,
    /// Kinds of frame in the packet-ins, round-robin
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "cbench",
        value_name = "KIND,..."
    )]
    frames: Vec<Frame>,
    /// Test length in ms
    #[arg(short, long, default_value_t = 1000, value_name = "MS")]
    ms_per_test: u64,
    /// Number of switches
    #[arg(short, long, default_value_t = 16, value_name = "N")]
    switches: u32,
    /// Send at the maximum rate instead of measuring latency with one packet-in outstanding per switch
    #[arg(short, long, conflicts_with_all = ["window", "rate"])]
    throughput: bool,
    /// Keep at most N packet-ins outstanding per switch
    #[arg(long, value_name = "N", conflicts_with = "rate")]
    window: Option<u32>,
    /// Keep at most N packet-ins outstanding over all switches together, which are served round-robin
    #[arg(long, value_name = "N", conflicts_with = "rate")]
    outstanding: Option<u32>,
    /// Send R packet-ins per second from each switch, answered or not; latency counts from when they were due
    #[arg(long, value_name = "R")]
    rate: Option<f64>,
    /// Tests to disregard at the start
    #[arg(short, long, default_value_t = 1, value_name = "N")]
    warmup: u32,
    /// Tests to disregard at the end
    #[arg(short = 'C', long, default_value_t = 0, value_name = "N")]
    cooldown: u32,
    /// Wait after the features replies, before the first test, in ms
    #[arg(short = 'D', long, default_value_t = 0, value_name = "MS")]
    delay: u64,
    /// Wait after each group of connections, in ms
    #[arg(short = 'i', long, default_value_t = 0, value_name = "MS")]
    connect_delay: u64,
    /// Switches in each group of connections
    #[arg(short = 'I', long, default_value_t = 1, value_name = "N")]
    connect_group_size: u32,
    /// Announce destination addresses by gratuitous ARP before the tests
    #[arg(short = 'L', long, value_enum, num_args = 0..=1, default_value = "on", default_missing_value = "on", value_name = "on|off")]
    learn_dst_macs: Switch,
    /// Datapath id of the first switch
    #[arg(short = 'o', long, default_value_t = 1, value_name = "ID")]
    dpid_offset: u64,
    /// OpenFlow version of the switches
    #[arg(long, value_enum, default_value = "1.0")]
    openflow: OpenFlow,
    /// Load threads, which share the switches
    #[arg(long, default_value_t = 1, value_name = "N")]
    threads: usize,
    /// Cores to pin the load threads to, round-robin
    #[arg(long, value_delimiter = ',', value_name = "CORE,...")]
    pin: Vec<usize>,
    /// Bytes of the frame in each packet-in
    #[arg(long, default_value_t = 64, value_name = "BYTES")]
    packet_size: usize,
    /// Check each reply against its packet-in: buffer id, command, match and actions
    #[arg(long)]
    verify: bool,
    /// Replies that --verify accepts: a learning switch's, or any with the packet-in's buffer id
    #[arg(long, value_enum, default_value = "learning")]
    expect: Expected,
    /// Print details, such as the rate of each switch
    #[arg(short, long, action = ArgAction::SetTrue)]
    debug: bool,
}

#[derive(Args, Debug)]
struct OutputArgs {
    /// Write all figures as JSON; - for standard output, which then has only JSON
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
    /// Write a self-contained HTML page with plots
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
}

#[derive(Args, Debug)]
struct VersusArgs {
    /// limit, ovs-testcontroller, os-ken, or the address of a running controller as tcp:HOST:PORT
    #[arg(required = true, value_name = "NAME|ADDR")]
    rivals: Vec<String>,
    /// Number of rounds, in each of which every controller runs once
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// Core of the server under test
    #[arg(long, default_value_t = 0, value_name = "CORE")]
    server_core: usize,
    #[command(flatten)]
    load: LoadArgs,
    /// Write the comparison as JSON; - for standard output, which then has only JSON
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Switch {
    #[value(alias = "true", alias = "1")]
    On,
    #[value(alias = "false", alias = "0")]
    Off,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum OpenFlow {
    #[value(name = "1.0")]
    V10,
    #[value(name = "1.3")]
    V13,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum HostAddresses {
    InTurn,
    Random,
    Zipf,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Frame {
    Cbench,
    Tcp,
    Udp,
    Arp,
    Ipv6,
    Vlan,
}

impl From<Frame> for FrameKind {
    fn from(frame: Frame) -> Self {
        match frame {
            Frame::Cbench => Self::Cbench,
            Frame::Tcp => Self::Tcp,
            Frame::Udp => Self::Udp,
            Frame::Arp => Self::Arp,
            Frame::Ipv6 => Self::Ipv6,
            Frame::Vlan => Self::Vlan,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Expected {
    Learning,
    Any,
}

/// Runs the benchmark. A failure is reported by a message on standard error; the exit status is 0 only if the benchmark
/// finished and all checked replies were valid, and 130 if it was interrupted.
pub fn run(args: BenchArgs) -> ExitCode {
    let done = match args.command {
        Some(BenchCommand::Limit { listen }) => run_limit(&listen),
        Some(BenchCommand::Versus(versus)) => run_versus(&versus),
        Some(BenchCommand::Switch(switch)) => switch::run(&switch).map(|()| ExitCode::SUCCESS),
        Some(BenchCommand::Network(network)) => network::run(&network).map(|()| ExitCode::SUCCESS),
        None => run_bench(&args.target, &args.load, &args.output),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            complain(format_args!("urtica bench: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// The exit status of an interrupted command, as in shells.
const INTERRUPTED: u8 = 130;

/// Returns a flag that the first Ctrl-C sets; the second ends the process at once.
fn stop_flag() -> Result<Arc<AtomicBool>, Error> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        let second = Arc::clone(&stop);
        signal_hook::flag::register_conditional_shutdown(signal, INTERRUPTED.into(), second)
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop)))
            .map_err(Error::system("watch for signals"))?;
    }
    Ok(stop)
}

fn status(is_right: bool, stop: &AtomicBool) -> ExitCode {
    match is_right {
        _ if stop.load(Ordering::Relaxed) => INTERRUPTED.into(),
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn run_limit(listen: &Address) -> Result<ExitCode, Error> {
    let limit = Limit::listen(listen)?;
    match limit.port() {
        Some(port) => complain(format_args!(
            "the null responder listens on port {port} ({listen}); load it with --expect any"
        )),
        None => complain(format_args!(
            "the null responder listens at {listen}; load it with --expect any"
        )),
    }
    limit.run().map(|()| ExitCode::SUCCESS)
}

fn run_bench(target: &TargetArgs, load: &LoadArgs, output: &OutputArgs) -> Result<ExitCode, Error> {
    let controller = target.address()?;
    let tls = target.tls.load_for([&controller]);
    let config = LoadConfig {
        tls: tls.map_err(|error| Error::invalid(error.to_string()))?,
        controller,
        controller_pid: target.controller_pid,
        ..load.config()
    };
    config.validate()?;
    let [json, page] =
        [&output.json, &output.report].map(|file| file.as_deref().map(Output::open).transpose());
    let (json, page) = (json?, page?);
    let screen = Screen::new(json.as_ref().is_some_and(Output::is_stdout), load.debug);
    let stop = stop_flag()?;
    let mut reports: Vec<Report> = Vec::new();
    for switches in target.range(config.switches) {
        let threads = config.threads.min(switches as usize);
        let config = LoadConfig {
            switches,
            threads,
            ..config.clone()
        };
        match bench_once(&config, &stop, &screen) {
            // A range that was interrupted between two numbers has the earlier results.
            Err(Error::Interrupted) if !reports.is_empty() => break,
            report => reports.push(report?),
        }
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    if let Some(json) = json {
        json.write(&json::write(&reports))?;
    }
    if let (Some(page), Some(report)) = (page, reports.last()) {
        page.write(&html::write(report))?;
    }
    Ok(status(reports.iter().all(is_right), &stop))
}

/// Returns whether a run was complete and correct; otherwise prints the problem.
fn is_right(report: &Report) -> bool {
    let complaint = match report.ended {
        Ended::AllClosed => {
            let (run, wanted) = (report.tests.len(), report.setup.tests);
            let switches = report.setup.switches_ready;
            format!("the controller closed all {switches} connections in test {run} of {wanted}")
        }
        Ended::Complete if report.has_no_answers() => {
            "the controller answered no packet-in in the tests that count".to_owned()
        }
        _ => return !report.failed_verification(),
    };
    complain(format_args!("urtica bench: {complaint}"));
    false
}

fn bench_once(config: &LoadConfig, stop: &AtomicBool, screen: &Screen) -> Result<Report, Error> {
    complain(format_args!("{}", text::opening(config)));
    let bar = screen.bar(config.tests);
    let report = run_load(config, stop, |live| match live {
        Live::Started { ready } if ready < config.switches => {
            bar.suspend(|| {
                complain(format_args!(
                    "only {ready} of {} switches completed the handshake",
                    config.switches
                ))
            });
        }
        Live::Test(test) => {
            bar.suspend(|| screen.say(&text::test_line(test, since_midnight())));
            bar.inc(1);
        }
        Live::Closed(closed) => {
            bar.suspend(|| {
                complain(format_args!(
                    "the connection of switch {} has ended: {}; continuing without it",
                    closed.datapath_id, closed.reason
                ))
            });
        }
        _ => {}
    });
    bar.finish_and_clear();
    let report = report?;
    if screen.debug {
        complain(text::switch_lines(&report).trim_end());
    }
    screen.say(text::summary(&report).trim_end());
    screen.say(&text::result_line(&report));
    Ok(report)
}

fn run_versus(args: &VersusArgs) -> Result<ExitCode, Error> {
    let rivals = args
        .rivals
        .iter()
        .map(|name| name.parse())
        .collect::<Result<Vec<Contender>, Error>>()?;
    let mut load = args.load.config();
    if load.cores.is_empty() {
        load.cores = vec![other_core(args.server_core)];
    }
    let program = std::env::current_exe().map_err(Error::system("find this program's own file"))?;
    let config = VersusConfig {
        rivals,
        rounds: args.rounds,
        server_core: args.server_core,
        load,
        program,
        seed: since_midnight().as_nanos() as u64,
    };
    let json = args.json.as_deref().map(Output::open).transpose()?;
    let screen = Screen::new(
        json.as_ref().is_some_and(Output::is_stdout),
        args.load.debug,
    );
    let stop = stop_flag()?;
    let bar = screen.bar(args.rounds * (config.rivals.len() as u32 + 1));
    let comparison = versus(&config, &stop, |round, contender, report| {
        bar.suspend(|| {
            complain(format_args!(
                "round {} {contender}: {}",
                round + 1,
                text::result_line(report)
            ))
        });
        bar.inc(1);
    })?;
    bar.finish_and_clear();
    screen.say(comparison.table().trim_end());
    if let Some(json) = json {
        json.write(&json::write_comparison(&comparison))?;
    }
    let faultless = comparison
        .contenders
        .iter()
        .all(|standing| standing.faults == 0);
    Ok(status(!args.load.verify || faultless, &stop))
}

/// Returns a core for the load, other than `server_core`.
fn other_core(server_core: usize) -> usize {
    usize::from(
        server_core == 0 && std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1),
    )
}

impl TargetArgs {
    fn address(&self) -> Result<Address, Error> {
        let host = &self.controller;
        if ["tcp:", "unix:", "ptcp:", "punix:", "ssl:", "pssl:"]
            .iter()
            .any(|method| host.starts_with(method))
        {
            return host
                .parse()
                .map_err(|error| Error::invalid(format!("{error}")));
        }
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        Ok(Address::Tcp {
            host: bare.to_owned(),
            port: self.port,
        })
    }

    /// Returns the numbers of switches to run with.
    fn range(&self, switches: u32) -> Vec<u32> {
        let powers = std::iter::successors(Some(1u32), |count| count.checked_mul(2));
        let smaller = powers.take_while(|&count| self.ranged_test && count < switches);
        smaller.chain([switches]).collect()
    }
}

impl LoadArgs {
    fn config(&self) -> LoadConfig {
        LoadConfig {
            switches: self.switches,
            mode: self.mode(),
            most_outstanding: self.outstanding,
            version: match self.openflow {
                OpenFlow::V10 => Version::V10,
                OpenFlow::V13 => Version::V13,
            },
            macs: if self.unique_macs {
                MAX_MACS
            } else {
                self.mac_addresses
            },
            addresses: match self.addresses {
                HostAddresses::InTurn => Addresses::InTurn,
                HostAddresses::Random => Addresses::Random,
                HostAddresses::Zipf => Addresses::Zipf,
            },
            frames: self.frames.iter().map(|&frame| frame.into()).collect(),
            tests: self.loops,
            test_length: Duration::from_millis(self.ms_per_test),
            warmup: self.warmup,
            cooldown: self.cooldown,
            learn_dst_macs: self.learn_dst_macs == Switch::On,
            delay: Duration::from_millis(self.delay),
            connect_delay: Duration::from_millis(self.connect_delay),
            connect_group_size: self.connect_group_size,
            dpid_offset: self.dpid_offset,
            threads: self.threads,
            verify: self.verify,
            expect: match self.expect {
                Expected::Learning => Expect::Learning,
                Expected::Any => Expect::Any,
            },
            cores: self.pin.clone(),
            frame_len: self.packet_size,
            ..LoadConfig::default()
        }
    }

    fn mode(&self) -> Mode {
        match (self.throughput, self.window, self.rate) {
            (true, ..) => Mode::MaxRate,
            (_, Some(window), _) => Mode::Window(window),
            (_, _, Some(rate)) => Mode::Rate(rate),
            _ => Mode::PingPong,
        }
    }
}

/// The output of lines and progress.
struct Screen {
    /// Whether lines are written to standard error, since standard output is only for JSON.
    json_alone: bool,
    debug: bool,
}

impl Screen {
    fn new(json_alone: bool, debug: bool) -> Self {
        Self { json_alone, debug }
    }

    fn say(&self, line: &str) {
        if self.json_alone {
            complain(line);
        } else {
            // A closed pipe, as in `| head`, is no failure of the benchmark.
            let _ = writeln!(std::io::stdout(), "{line}");
        }
    }

    /// Returns a progress bar, which is shown only on a terminal.
    fn bar(&self, steps: u32) -> ProgressBar {
        if !std::io::stderr().is_terminal() {
            return ProgressBar::hidden();
        }
        let style = ProgressStyle::with_template("{bar:40} test {pos} of {len}, {eta} left");
        let bar = ProgressBar::new(steps.into());
        if let Ok(style) = style {
            bar.set_style(style);
        }
        bar
    }
}

fn since_midnight() -> Duration {
    use chrono::Timelike;
    let now = chrono::Local::now();
    Duration::new(
        now.num_seconds_from_midnight().into(),
        now.nanosecond() % 1_000_000_000,
    )
}

fn is_stdout(file: &std::path::Path) -> bool {
    file.as_os_str() == "-"
}
