//! Comparison of controllers: Urtica and others run with the same load alternately, round after round, so that changes of the
//! machine affect all of them alike.
//!
//! In each round, each server is started on its own core, loaded from another core, and stopped. The order within a round is
//! random. The ratios, each of which is the median of those of the rounds, are more reliable than the figures.

use std::fmt::{self, Write as _};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::Serialize;
use urtica_socket::Address;

use crate::Error;
use crate::analysis::{Ratio, Spread};
use crate::config::{Expect, LoadConfig};
use crate::random::Random;
use crate::report::Report;
use crate::run::run;
use crate::socket::is_listening;

/// The time limit for a server to listen; servers in Python need a few seconds.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// The time in which a server must stop before it is killed.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// A learning switch like those of os-ken, which no longer includes its example applications.
const OS_KEN_LEARNING_SWITCH: &str = include_str!("os_ken_learning_switch.py");

/// A participant of the comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Contender {
    /// `urtica run l2` on one shard.
    Ours,
    /// The null responder, [`crate::limit`].
    Limit,
    /// Open vSwitch's test controller.
    OvsTestcontroller,
    /// A learning switch on os-ken, which answers like os-ken's former simple_switch.
    OsKen,
    /// A controller that is already running.
    Running(Address),
}

impl FromStr for Contender {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Ok(match name {
            "limit" => Self::Limit,
            "ovs-testcontroller" => Self::OvsTestcontroller,
            "os-ken" => Self::OsKen,
            address => Self::Running(address.parse().map_err(|_| {
                Error::invalid(format!("'{name}' is not a contender; expected limit, ovs-testcontroller, os-ken, or an address like tcp:HOST:PORT"))
            })?),
        })
    }
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ours => f.write_str("urtica l2"),
            Self::Limit => f.write_str("limit"),
            Self::OvsTestcontroller => f.write_str("ovs-testcontroller"),
            Self::OsKen => f.write_str("os-ken"),
            Self::Running(address) => write!(f, "{address}"),
        }
    }
}

/// The settings of a comparison.
#[derive(Clone, Debug)]
pub struct VersusConfig {
    /// The other contenders.
    pub rivals: Vec<Contender>,
    /// The number of rounds.
    pub rounds: u32,
    /// The core of the server under test.
    pub server_core: usize,
    /// The load, in which the address is replaced by each contender's. Null responders are not expected to learn.
    pub load: LoadConfig,
    /// The program to start for `ours` and `limit`.
    pub program: PathBuf,
    /// The seed of the order within each round.
    pub seed: u64,
}

/// The result of a comparison, in which ours is first.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// The program's version.
    pub urtica: &'static str,
    /// The number of complete rounds.
    pub rounds: u32,
    /// The mode of the load.
    pub mode: String,
    /// The OpenFlow version.
    pub openflow: &'static str,
    /// The number of switches.
    pub switches: u32,
    /// Each contender's figures.
    pub contenders: Vec<Standing>,
}

/// A contender's figures over all rounds.
#[derive(Clone, Debug, Serialize)]
pub struct Standing {
    /// Its name.
    pub name: String,
    /// The number of packet-ins answered per second.
    pub responses_per_s: Measure,
    /// The CPU time of its process per answered packet-in, in microseconds.
    pub cpu_us: Option<Measure>,
    /// The median latency in microseconds.
    pub p50_us: Measure,
    /// The number of wrong, lost, repeated and missing answers, in all rounds together.
    pub faults: u64,
    /// The number of rounds in which the load generator was the bottleneck.
    pub load_bound_rounds: u32,
}

/// A figure over all rounds, and its comparison with ours.
#[derive(Clone, Debug, Serialize)]
pub struct Measure {
    /// The spread of the figure.
    pub spread: Spread,
    /// The ratio of our figure to this one, round by round; `None` if one of them is missing.
    pub ours_over_this: Option<Ratio>,
}

/// Runs all rounds, or those that are complete when `stop` becomes true. Calls `tell` after each server's turn.
///
/// # Errors
/// If a contender is not installed or does not start, a run fails, or `stop` becomes true before the first round is complete.
pub fn versus(
    config: &VersusConfig,
    stop: &AtomicBool,
    mut tell: impl FnMut(u32, &Contender, &Report),
) -> Result<Comparison, Error> {
    if config.rounds == 0 {
        return Err(Error::invalid("a comparison needs at least one round"));
    }
    let contenders: Vec<&Contender> = [&Contender::Ours]
        .into_iter()
        .chain(&config.rivals)
        .collect();
    contenders
        .iter()
        .try_for_each(|contender| contender.check_installed())?;
    let mut rounds: Vec<Vec<Report>> = Vec::new();
    let mut random = Random::new(config.seed);
    for round in 0..config.rounds {
        let mut order: Vec<usize> = (0..contenders.len()).collect();
        random.shuffle(&mut order);
        let mut reports: Vec<Option<Report>> = vec![None; contenders.len()];
        for index in order {
            let report = match turn(config, contenders[index], stop) {
                // Ctrl-C also reaches the servers, so one of them may end before its load does.
                _ if stop.load(Ordering::Relaxed) => break,
                report => report?,
            };
            tell(round, contenders[index], &report);
            reports[index] = Some(report);
        }
        match reports.into_iter().collect() {
            Some(round) => rounds.push(round),
            None => break,
        }
    }
    if rounds.is_empty() {
        return Err(Error::Contender(
            "interrupted before the first round was complete; nothing was compared".to_owned(),
        ));
    }
    Ok(Comparison::new(&contenders, &rounds))
}

fn turn(config: &VersusConfig, contender: &Contender, stop: &AtomicBool) -> Result<Report, Error> {
    let address = free_address()?;
    let mut load = config.load.clone();
    let server = match contender {
        Contender::Running(address) => {
            load.controller = address.clone();
            None
        }
        started => {
            let mut command = started.command(&config.program, address);
            load.controller = Address::Tcp {
                host: address.ip().to_string(),
                port: address.port(),
            };
            Some(Server::start(
                &mut command,
                started,
                address,
                config.server_core,
            )?)
        }
    };
    if *contender == Contender::Limit {
        load.expect = Expect::Any;
    }
    load.controller_pid = server.as_ref().map(|server| server.child.id());
    let report = run(&load, stop, |_| ());
    drop(server);
    match report?.whole() {
        Ok(report) => Ok(report),
        Err(sentence) => Err(Error::Contender(format!("{contender}: {sentence}"))),
    }
}

/// Returns an address that no other process will use: a free port of a loopback address that is derived from this process's id,
/// since another process might use a port of 127.0.0.1 before the server does.
fn free_address() -> Result<SocketAddr, Error> {
    let [_, high, mid, low] = std::process::id().to_be_bytes();
    let own = Ipv4Addr::new(127, 64 | high & 0x3f, mid, low);
    TcpListener::bind((own, 0))
        .and_then(|listener| listener.local_addr())
        .map_err(Error::system("find a free port"))
}

impl Contender {
    fn program(&self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::OvsTestcontroller => Some((
                "ovs-testcontroller",
                "apt install openvswitch-testcontroller",
            )),
            Self::OsKen => Some(("python3", "apt install python3")),
            Self::Ours | Self::Limit | Self::Running(_) => None,
        }
    }

    fn check_installed(&self) -> Result<(), Error> {
        let Some((program, install)) = self.program() else {
            return Ok(());
        };
        let missing = |what, install| {
            Err(Error::Contender(format!(
                "{self} cannot take part, because {what} is not installed; try: {install}"
            )))
        };
        let path = std::env::var_os("PATH").unwrap_or_default();
        if !std::env::split_paths(&path).any(|directory| directory.join(program).is_file()) {
            return missing(program, install);
        }
        if *self == Self::OsKen && !has_os_ken() {
            return missing("the Python package os-ken", "pip install os-ken");
        }
        Ok(())
    }

    /// Returns the command that makes it listen at this address.
    fn command(&self, program: &Path, address: SocketAddr) -> Command {
        let (host, port) = (address.ip().to_string(), address.port().to_string());
        let listen = format!("ptcp:{port}:{host}");
        let mut command = Command::new(
            self.program()
                .map_or(program.as_os_str(), |(program, _)| program.as_ref()),
        );
        match self {
            Self::Ours => command.args(["run", "l2", "--shards", "1", "--listen", &listen]),
            Self::Limit => command.args(["bench", "limit", "--listen", &listen]),
            Self::OvsTestcontroller => command.args(["--verbose=off", "--unixctl=none", &listen]),
            Self::OsKen => command.args(["-c", OS_KEN_LEARNING_SWITCH, &port, &host]),
            Self::Running(_) => &mut command,
        };
        command
    }
}

fn has_os_ken() -> bool {
    let mut python = Command::new("python3");
    python
        .args(["-c", "import os_ken"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    python.status().is_ok_and(|status| status.success())
}

/// A server started by this process, which is stopped on drop.
struct Server {
    child: Child,
}

impl Server {
    fn start(
        command: &mut Command,
        contender: &Contender,
        address: SocketAddr,
        core: usize,
    ) -> Result<Self, Error> {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = spawn_on(command, core)
            .map_err(Error::system(format!("start {contender} on core {core}")))?;
        let mut server = Self { child };
        let deadline = Instant::now() + START_TIMEOUT;
        while !is_listening(address) {
            if let Ok(Some(status)) = server.child.try_wait() {
                return Err(Error::Contender(format!(
                    "{contender} ended before it listened ({status})"
                )));
            }
            if Instant::now() > deadline {
                return Err(Error::Contender(format!(
                    "{contender} does not listen at {address} in time"
                )));
            }
            thread::sleep(Duration::from_millis(50));
        }
        Ok(server)
    }
}

impl Drop for Server {
    /// Terminates it by its process id, and kills it if it does not stop.
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        let asked = rustix::process::kill_process(pid, rustix::process::Signal::TERM).is_ok();
        let deadline = Instant::now() + STOP_TIMEOUT;
        while asked && Instant::now() < deadline {
            if let Ok(Some(_)) = self.child.try_wait() {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        // An error means that it has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a command on one core, by the affinity that a child inherits from the thread that starts it.
fn spawn_on(command: &mut Command, core: usize) -> io::Result<Child> {
    let own = sched_getaffinity(None)?;
    if core >= CpuSet::MAX_CPU {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("core {core} does not exist"),
        ));
    }
    let mut its = CpuSet::new();
    its.set(core);
    sched_setaffinity(None, &its)?;
    let child = command.spawn();
    sched_setaffinity(None, &own)?;
    child
}

impl Comparison {
    /// Computes the result from the reports of each round, in the order of the contenders.
    fn new(contenders: &[&Contender], rounds: &[Vec<Report>]) -> Self {
        let reports_of =
            |index: usize| -> Vec<&Report> { rounds.iter().map(|round| &round[index]).collect() };
        let ours = Figures::of(&reports_of(0));
        let standings = contenders.iter().enumerate().map(|(index, contender)| {
            let reports = reports_of(index);
            let figures = Figures::of(&reports);
            Standing {
                name: contender.to_string(),
                responses_per_s: Measure::new(&ours.rates, &figures.rates),
                cpu_us: figures
                    .cpu_us
                    .map(|its| Measure::new(ours.cpu_us.as_deref().unwrap_or_default(), &its)),
                p50_us: Measure::new(&ours.p50_us, &figures.p50_us),
                faults: reports.iter().map(|report| report.faults()).sum(),
                load_bound_rounds: reports
                    .iter()
                    .filter(|report| report.was_load_bound())
                    .count() as u32,
            }
        });
        let setup = &rounds[0][0].setup;
        Self {
            urtica: env!("CARGO_PKG_VERSION"),
            rounds: rounds.len() as u32,
            mode: setup.mode.clone(),
            openflow: setup.openflow,
            switches: setup.switches,
            contenders: standings.collect(),
        }
    }

    /// Formats the comparison as a table.
    pub fn table(&self) -> String {
        let mut table = format!(
            "{} switches, {}, OpenFlow {}; median (min to max) of {} interleaved rounds\n\
             ratio = urtica l2 / this, median of the rounds' (and where it lies with 95 % confidence)\n\n\
             {:<20} {:>40} {:>19} {:>32} {:>19} {:>32} {:>19}\n",
            self.switches,
            self.mode,
            self.openflow,
            self.rounds,
            "",
            "answered/s",
            "ratio",
            "CPU us/packet-in",
            "ratio",
            "p50 us",
            "ratio"
        );
        for standing in &self.contenders {
            let cpu = standing
                .cpu_us
                .as_ref()
                .map_or([String::from("unknown"), String::new()], |cpu| cpu.cells(4));
            let ([rate, rate_ratio], [p50, p50_ratio]) =
                (standing.responses_per_s.cells(0), standing.p50_us.cells(1));
            let _ = writeln!(
                table,
                "{:<20} {rate:>40} {rate_ratio:>19} {:>32} {:>19} {p50:>32} {p50_ratio:>19}{}",
                standing.name,
                cpu[0],
                cpu[1],
                standing.remarks(self.rounds)
            );
        }
        table
    }
}

impl Standing {
    fn remarks(&self, rounds: u32) -> String {
        let mut remarks = String::new();
        if self.load_bound_rounds > 0 {
            let _ = write!(
                remarks,
                "  (load-bound in {} of {rounds} rounds)",
                self.load_bound_rounds
            );
        }
        if self.faults > 0 {
            let _ = write!(remarks, "  ({} faults)", self.faults);
        }
        remarks
    }
}

impl Measure {
    /// Computes a measure from the values in each round.
    fn new(ours: &[f64], its: &[f64]) -> Self {
        Self {
            spread: Spread::of(its),
            ours_over_this: Ratio::of(ours.iter().copied().zip(its.iter().copied())),
        }
    }

    fn cells(&self, decimals: usize) -> [String; 2] {
        let Spread {
            min, median, max, ..
        } = self.spread;
        let ratio = self.ours_over_this.map(|ratio| {
            let Ratio { median, low, high } = ratio;
            format!("{median:.3} ({low:.2}-{high:.2})")
        });
        [
            format!("{median:.decimals$} ({min:.decimals$} to {max:.decimals$})"),
            ratio.unwrap_or_else(|| "unknown".to_owned()),
        ]
    }
}

/// A contender's figures in each round.
struct Figures {
    rates: Vec<f64>,
    cpu_us: Option<Vec<f64>>,
    p50_us: Vec<f64>,
}

impl Figures {
    fn of(reports: &[&Report]) -> Self {
        let each =
            |figure: fn(&Report) -> f64| reports.iter().map(|report| figure(report)).collect();
        Self {
            rates: each(|report| report.responses_per_s.mean),
            cpu_us: reports
                .iter()
                .map(|report| report.controller_cpu_us)
                .collect(),
            p50_us: each(|report| {
                report
                    .latency
                    .as_ref()
                    .map_or(0.0, |latency| latency.p50_us)
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn contenders_by_name_or_address() {
        assert_eq!("limit".parse::<Contender>().unwrap(), Contender::Limit);
        assert_eq!("os-ken".parse::<Contender>().unwrap(), Contender::OsKen);
        let address: Contender = "tcp:10.0.0.1:6653".parse().unwrap();
        assert_eq!(address.to_string(), "tcp:10.0.0.1:6653");
        let refusal = "floodlight".parse::<Contender>().unwrap_err().to_string();
        assert!(
            refusal.contains("expected limit, ovs-testcontroller, os-ken"),
            "{refusal}"
        );
    }

    #[test]
    fn ratios_are_ours_over_theirs() {
        // In the second round, the machine was twice as fast.
        let with_rate = |rate: f64| {
            let mut report = sample();
            report.responses_per_s.mean = rate;
            report
        };
        let comparison = Comparison::new(
            &[&Contender::Ours, &Contender::Limit],
            &[
                vec![with_rate(300.0), with_rate(100.0)],
                vec![with_rate(600.0), with_rate(200.0)],
            ],
        );
        let ratio = |index: usize| {
            let measure: &Measure = &comparison.contenders[index].responses_per_s;
            measure.ours_over_this.unwrap().median
        };
        assert_eq!((ratio(0), ratio(1)), (1.0, 3.0));
        let table = comparison.table();
        assert!(
            table.contains("limit") && table.contains("3.000 (3.00-3.00)"),
            "{table}"
        );
        assert!(table.contains("(10 faults)"), "{table}");
    }

    #[test]
    fn reports_a_program_that_ends_at_once() {
        let mut command = Command::new("true");
        let error = Server::start(&mut command, &Contender::Ours, free_address().unwrap(), 0)
            .err()
            .unwrap();
        assert!(
            error.to_string().contains("ended before it listened"),
            "{error}"
        );
    }
}
