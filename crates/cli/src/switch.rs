//! `urtica switch`: a software switch.

mod control;
mod ctl;
mod explain;
#[cfg(feature = "northbound")]
mod metrics;
mod queues;

use crate::control_socket::ControlSocket;
use crate::log::log_to_stderr;
use crate::{service, status};
use clap::ValueEnum;
use control::ControlPlace;
use queues::QueueFile;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::{Duration, Instant};
use urtica_pipeline::Backend;
use urtica_socket::{Address, TlsArgs};
use urtica_switch::{
    Description, FailMode, Forwarding, FrameMemory, PortError, PortIo, PortSpec, Runner, StateFile,
    StateSync, StopHandle, Switch, SwitchConfig, TapPort, Threads,
};
use urtica_wire::{DatapathId, PortNo, Version};

// Not doc comments, since rustdoc would parse the brackets as links.
const CONTROLLER_HELP: &str = "Connect to this controller, or let controllers connect: tcp:HOST[:PORT], ssl:HOST[:PORT], \
                               unix:FILE, ptcp:[PORT][:HOST], pssl:[PORT][:HOST] or punix:FILE. May be repeated [default: none]";
const PORT_HELP: &str = "A port by its number: afpacket:INTERFACE, afxdp:INTERFACE, tap:NAME or pcap:[IN][,OUT]. \
                         May be repeated";

const EXAMPLES: &str = "\
Examples:
  urtica switch eth1 eth2 --controller tcp:127.0.0.1:6653
  urtica switch eth1 eth2 --fail-mode standalone
  urtica switch eth1 eth2 --local br0 --controller tcp:127.0.0.1:6653
  urtica switch eth1 eth2 eth3 eth4 --threads 2 --cores 2,3 --controller tcp:127.0.0.1:6653
  urtica switch --port 1=tap:t0 --port 2=afxdp:eth1 --controller ptcp:6654
  urtica switch eth1 eth2 --queues queues.toml --controller tcp:127.0.0.1:6653
  urtica switch --explain flows.txt
  urtica switch ctl show
  urtica switch ctl add-port eth3

The ports' interfaces should be up and have no IP addresses. Logging: set RUST_LOG, as in RUST_LOG=debug.";

/// Options of `urtica switch`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct SwitchArgs {
    /// Network interfaces or other ports; they get the numbers 1, 2, …, except those of --port.
    #[arg(value_name = "PORT", required_unless_present_any = ["port", "local", "explain", "explain_code"])]
    ports: Vec<PortSpec>,
    #[arg(long, value_name = "NUMBER=KIND:NAME", help = PORT_HELP)]
    port: Vec<NumberedPort>,
    /// Create a tap device of this name as the LOCAL port (OFPP_LOCAL), for the network stack of this machine [default: none].
    #[arg(long, value_name = "NAME")]
    local: Option<String>,
    /// The switch's identity: decimal, 0x…, or 16 hex digits [default: the first port's Ethernet address].
    #[arg(long, value_name = "ID")]
    datapath_id: Option<DatapathId>,
    #[arg(long, value_name = "ADDR", help = CONTROLLER_HELP)]
    controller: Vec<Address>,
    /// Use only these versions of OpenFlow: 1.0, 1.3 [default: both].
    #[arg(long, value_name = "VERSION", value_delimiter = ',')]
    openflow: Vec<Version>,
    /// Behaviour while no controller is connected.
    #[arg(long, value_enum, default_value = "secure")]
    fail_mode: FailModeArg,
    /// Form of the flow tables used for forwarding; all have equal results.
    #[arg(long, value_enum, default_value = "compiled")]
    forwarding: ForwardingArg,
    /// List the machine code of compiled tables in /tmp/perf-PID.map, so that perf(1) can name it.
    #[arg(long)]
    perf_map: bool,
    /// Number of forwarding threads: all receive from each AF_PACKET port, and from an AF_XDP port as many as it has queues; 0 to
    /// forward in the thread for controllers [default: 1, or 0 with one processor].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(..=256))]
    threads: Option<u16>,
    /// Processors to bind these threads to, round-robin, as in 1,2 [default: the system chooses].
    #[arg(long, value_name = "CORES", value_delimiter = ',')]
    cores: Vec<usize>,
    /// Microseconds that a thread polls its ports before it sleeps, while frames arrive close together; 0 to disable [default: 50;
    /// 0 with one processor].
    #[arg(long, value_name = "US", value_parser = clap::value_parser!(u16).range(..=1000))]
    poll_us: Option<u16>,
    /// Number of flow tables.
    #[arg(long, value_name = "N", default_value_t = 254, value_parser = clap::value_parser!(u8).range(1..=254))]
    tables: u8,
    /// Number of packets buffered for controllers; 0 sends them whole.
    #[arg(long, value_name = "N", default_value_t = 256)]
    buffers: u32,
    /// Save flow entries, groups, meters and queues set at run time in this file and its journal, and restore them at the start,
    /// before packets are forwarded.
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// When to write changes of the state to disk: each second, or also before the reply to a barrier.
    #[arg(
        long,
        value_enum,
        value_name = "WHEN",
        default_value = "interval",
        requires = "state"
    )]
    state_sync: StateSyncArg,
    /// Configure the ports' queues, for the actions set_queue and enqueue, from this TOML file.
    #[arg(long, value_name = "FILE")]
    queues: Option<PathBuf>,
    #[command(flatten)]
    place: ControlPlace,
    #[cfg(feature = "northbound")]
    #[command(flatten)]
    metrics: metrics::MetricsArgs,
    #[command(flatten)]
    tls: TlsArgs,
    #[command(flatten)]
    explain: explain::ExplainArgs,
    #[command(subcommand)]
    command: Option<SwitchCommand>,
}

#[derive(Debug, clap::Subcommand)]
enum SwitchCommand {
    /// Query or change a running switch through its control socket.
    Ctl(ctl::CtlArgs),
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum StateSyncArg {
    /// Each second.
    Interval,
    /// Each second, and before the reply to each barrier.
    Barrier,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum FailModeArg {
    /// Keep forwarding by the installed entries.
    Secure,
    /// Act as a learning switch.
    Standalone,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ForwardingArg {
    /// Compiled, to machine code if possible.
    Compiled,
    /// Compiled, but without machine code.
    Interpreted,
    /// The reference model, packet by packet and table by table: slow.
    Plain,
}

/// `NUMBER=KIND:NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct NumberedPort {
    number: PortNo,
    spec: PortSpec,
}

/// `[NUMBER=]PORT`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct NewPort {
    number: Option<PortNo>,
    spec: PortSpec,
}

/// Errors of options that clap does not detect.
#[derive(Debug, thiserror::Error)]
enum ArgsError {
    #[error("'{0}' has no '='; expected NUMBER=KIND:NAME")]
    NoEqualsSign(String),
    #[error("'{0}' does not begin with a port number; expected 1 to {max}", max = PortNo::MAX.0)]
    NoPortNumber(String),
    #[error(transparent)]
    PortSpec(#[from] PortError),
    #[error("port {0} was given twice; expected each number once")]
    PortTwice(PortNo),
    #[error("--cores binds the threads of --threads; expected --threads 1 or more")]
    CoresWithoutThreads,
}

impl FromStr for NumberedPort {
    type Err = ArgsError;

    fn from_str(text: &str) -> Result<Self, ArgsError> {
        let (number, spec) = text
            .split_once('=')
            .ok_or_else(|| ArgsError::NoEqualsSign(text.to_owned()))?;
        let number = PortNo(number.parse().unwrap_or(0));
        if number.0 == 0 || number.is_reserved() {
            return Err(ArgsError::NoPortNumber(text.to_owned()));
        }
        Ok(Self {
            number,
            spec: spec.parse()?,
        })
    }
}

impl FromStr for NewPort {
    type Err = ArgsError;

    fn from_str(text: &str) -> Result<Self, ArgsError> {
        let begins_with_number = text.starts_with(|first: char| first.is_ascii_digit());
        if begins_with_number && text.contains('=') {
            let NumberedPort { number, spec } = text.parse()?;
            let number = Some(number);
            return Ok(Self { number, spec });
        }
        let (number, spec) = (None, text.parse()?);
        Ok(Self { number, spec })
    }
}

/// Runs until SIGINT or SIGTERM, or only explains entries if requested.
pub fn run(args: SwitchArgs) -> ExitCode {
    if let Some(SwitchCommand::Ctl(args)) = &args.command {
        return ctl::run(args);
    }
    if let Some((file, with_code)) = args.explain.asked() {
        return explain::run(file, with_code);
    }
    log_to_stderr();
    status::of(run_switch(args))
}

fn run_switch(args: SwitchArgs) -> Result<(), Box<dyn std::error::Error>> {
    if args.perf_map {
        urtica_pipeline::write_perf_map()?;
    }
    let queues = args.queues.as_deref().map(QueueFile::read).transpose()?;
    let mut ports = Vec::new();
    let specs = args.numbered_ports()?;
    // Ports are dealt out to threads in the order of their numbers.
    let threads = args.threads()?;
    let owners = threads.count.max(1);
    let mut memories: Vec<_> = (0..owners)
        .map(|owner| FrameMemory::for_ports(specs.len().saturating_sub(owner).div_ceil(owners)))
        .collect();
    for (place, (number, spec)) in specs.into_iter().enumerate() {
        ports.push((number, spec.open_sharing(&mut memories[place % owners])?));
    }
    if let Some(name) = &args.local {
        ports.push((PortNo::LOCAL, Box::new(TapPort::create_local(name)?)));
    }
    let state = args.state.as_deref().map(StateFile::open).transpose()?;
    let started = state
        .as_ref()
        .map_or_else(Instant::now, StateFile::clock_start);
    let config = args.config(&ports);
    let datapath_id = config.datapath_id;
    let mut switch = Switch::new(config);
    for (number, port) in ports {
        tracing::info!(port = %number, name = port.name(), hw_addr = %port.hw_addr(), "port");
        switch.add_port(number, port, started.elapsed());
    }
    if let Some(queues) = &queues {
        queues.apply(&mut switch, started.elapsed())?;
    }
    if let Some(state) = &state {
        restore(&mut switch, state, started.elapsed());
    }
    let mut runner = Runner::new(switch, &args.controller)?
        .with_clock(started)
        .with_threads(&threads)?;
    if let Some(state) = state {
        runner = runner.with_state_synced(state, args.state_sync());
    }
    if let Some(limit_us) = args.poll_us {
        runner = runner.with_busy_poll(Duration::from_micros(limit_us.into()));
    }
    if let Some(files) = args.tls.config() {
        runner = runner.with_tls(files)?;
    }
    for address in runner.listen_addresses() {
        tracing::info!(%address, "listening");
    }
    let _control = args.open_control(&runner)?;
    #[cfg(feature = "northbound")]
    let _metrics = args.metrics.serve(runner.remote())?;
    stop_on_signal(runner.stop_handle())?;
    tracing::info!(dp_id = %datapath_id, "switching");
    service::notify_of_switch(runner.remote())?;
    Ok(runner.run()?)
}

/// Restores the saved state, and logs it.
fn restore(switch: &mut Switch, state: &StateFile, now: Duration) {
    let restored = switch.restore(state, now);
    let (flows, groups, meters) = (restored.flows, restored.groups, restored.meters);
    tracing::info!(
        flows,
        groups,
        meters,
        ports_with_queues = restored.queues,
        "restored"
    );
    if restored.refused > 0 {
        tracing::warn!(
            count = restored.refused,
            "cannot restore all saved entries: too few tables, or tables are full; skipping the rest"
        );
    }
}

impl SwitchArgs {
    /// Returns all ports by number. Ports without a number get the lowest free numbers.
    fn numbered_ports(&self) -> Result<BTreeMap<PortNo, PortSpec>, ArgsError> {
        let mut ports = BTreeMap::new();
        for NumberedPort { number, spec } in &self.port {
            if ports.insert(*number, spec.clone()).is_some() {
                return Err(ArgsError::PortTwice(*number));
            }
        }
        let mut numbers = (1..).map(PortNo);
        for spec in &self.ports {
            let free = numbers.find(|number| !ports.contains_key(number));
            ports.extend(free.map(|number| (number, spec.clone())));
        }
        Ok(ports)
    }

    /// Opens the control socket. If it was not requested and has no default path, the switch runs without one.
    fn open_control(&self, runner: &Runner) -> Result<Option<ControlSocket>, String> {
        let file = self.place.make();
        let socket = file.and_then(|file| Ok((control::serve(&file, runner.remote())?, file)));
        match socket {
            Ok((socket, file)) => {
                tracing::info!(file = %file.display(), "control socket");
                Ok(Some(socket))
            }
            Err(error) if self.place.is_given() => Err(error),
            Err(error) => {
                tracing::info!("no control socket: {error}");
                Ok(None)
            }
        }
    }

    fn state_sync(&self) -> StateSync {
        match self.state_sync {
            StateSyncArg::Interval => StateSync::Interval,
            StateSyncArg::Barrier => StateSync::Barrier,
        }
    }

    fn threads(&self) -> Result<Threads, ArgsError> {
        let count = match (self.threads, self.cores.is_empty()) {
            (Some(0), false) => return Err(ArgsError::CoresWithoutThreads),
            (Some(count), _) => count.into(),
            (None, true) => return Ok(Threads::for_this_machine()),
            (None, false) => 1,
        };
        Ok(Threads {
            count,
            cores: self.cores.clone(),
        })
    }

    fn config(&self, ports: &[(PortNo, Box<dyn PortIo>)]) -> SwitchConfig {
        let mut config = SwitchConfig {
            n_buffers: self.buffers,
            fail_mode: match self.fail_mode {
                FailModeArg::Secure => FailMode::Secure,
                FailModeArg::Standalone => FailMode::Standalone,
            },
            forwarding: match self.forwarding {
                ForwardingArg::Compiled => Forwarding::default(),
                ForwardingArg::Interpreted => Forwarding::Compiled(Backend::Interpreter),
                ForwardingArg::Plain => Forwarding::Plain,
            },
            description: Description {
                datapath: self.place.name().to_owned(),
                ..Description::default()
            },
            ..SwitchConfig::default()
        };
        config.pipeline.n_tables = self.tables;
        if !self.openflow.is_empty() {
            config.versions = self.openflow.clone();
        }
        let first_addr = ports
            .first()
            .map(|(_, port)| DatapathId(port.hw_addr().to_u64()));
        config.datapath_id = self
            .datapath_id
            .or(first_addr)
            .unwrap_or(config.datapath_id);
        config
    }
}

fn stop_on_signal(stop: StopHandle) -> std::io::Result<()> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])?;
    let wait = move || {
        if let Some(signal) = signals.forever().next() {
            tracing::info!(signal, "stopping");
            stop.stop();
        }
    };
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(wait)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Alone {
        #[command(flatten)]
        args: SwitchArgs,
    }

    fn parse(arguments: &[&str]) -> Result<SwitchArgs, String> {
        let program = ["switch"].iter().chain(arguments);
        let parsed = Alone::try_parse_from(program).map_err(|error| error.to_string())?;
        Ok(parsed.args)
    }

    fn ports(arguments: &[&str]) -> Result<Vec<String>, String> {
        let ports = parse(arguments)?.numbered_ports();
        let ports = ports.map_err(|error| error.to_string())?;
        Ok(ports
            .iter()
            .map(|(number, spec)| format!("{number}={spec}"))
            .collect())
    }

    #[test]
    fn ports_without_numbers_get_the_lowest_free_ones() {
        assert_eq!(
            ports(&["a", "b"]).unwrap(),
            ["1=afpacket:a", "2=afpacket:b"]
        );
        assert_eq!(
            ports(&["a", "--port", "1=tap:t0", "b", "--port=9=pcap:x,y"]).unwrap(),
            ["1=tap:t0", "2=afpacket:a", "3=afpacket:b", "9=pcap:x,y"]
        );
    }

    #[test]
    fn options_become_the_configuration() {
        let args = parse(&[
            "a",
            "--openflow=1.0,1.3",
            "--tables=3",
            "--fail-mode=standalone",
            "--forwarding=plain",
            "--datapath-id=0x2a",
        ]);
        let config = args.unwrap().config(&[]);
        assert_eq!(config.versions, Version::ALL);
        assert_eq!(config.pipeline.n_tables, 3);
        assert_eq!(config.fail_mode, FailMode::Standalone);
        assert_eq!(config.forwarding, Forwarding::Plain);
        assert_eq!(config.datapath_id, DatapathId(42));
    }

    #[test]
    fn reads_threads_and_their_cores() {
        let threads = |arguments: &[&str]| parse(arguments).unwrap().threads();
        assert_eq!(threads(&["a"]).unwrap(), Threads::for_this_machine());
        assert_eq!(threads(&["a", "--threads=0"]).unwrap(), Threads::default());
        let bound = Threads {
            count: 1,
            cores: vec![2],
        };
        assert_eq!(threads(&["a", "--cores=2"]).unwrap(), bound);
        let two = Threads {
            count: 2,
            cores: vec![3, 1],
        };
        assert_eq!(threads(&["a", "--threads=2", "--cores=3,1"]).unwrap(), two);
        let refused = threads(&["a", "--threads=0", "--cores=1"]);
        let sentence = refused.unwrap_err().to_string();
        assert!(
            sentence.contains("expected --threads 1 or more"),
            "{sentence}"
        );
    }

    #[test]
    fn errors_name_the_expected_input() {
        for (arguments, expected) in [
            (&[][..], "required"),
            (&["--port=eth0"], "expected NUMBER=KIND:NAME"),
            (&["--port=0=tap:t"], "expected 1 to 4294967040"),
            (&["--port=1=dpdk:0"], "afpacket:INTERFACE"),
            (&["--port=1=tap:t", "--port=1=tap:u"], "given twice"),
            (&["a", "--tables=255"], "1..=254"),
            (&["a", "--fail-mode=open"], "secure, standalone"),
            (&["a", "--threads=257"], "0..=256"),
            (&["a", "--forwarding=fast"], "compiled, interpreted, plain"),
            (&["a", "--controller=here"], "tcp:HOST"),
        ] {
            let sentence = ports(arguments).unwrap_err();
            assert!(sentence.contains(expected), "{arguments:?}: {sentence}");
        }
    }
}
