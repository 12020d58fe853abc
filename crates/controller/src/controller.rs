//! The controller as a whole: from its options to its end.

use crate::background::Threads;
use crate::network::Network;
use crate::session::SessionConfig;
use crate::shard::Shard;
use crate::stage::Tables;
use crate::supervisor::Supervisor;
use crate::watch::{Watch, contain_thread};
use crate::xid::MAX_PROGRAMS;
use crate::{Background, BackgroundCounters, Embedded, Program};
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use urtica_socket::{Address, DEFAULT_PORT};
use urtica_socket::{ListenError, Listener};

/// How long a stopping shard waits for switches to read what is still to be sent.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// More shards than any machine has use for: each has a thread and half a megabyte of buffers.
const MAX_SHARDS: usize = 1024;

/// The port that OpenFlow used before IANA gave it one. Mininet and old switches still try it.
const OLD_PORT: u16 = 6633;

/// Why the controller could not start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An address cannot be listened at.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// There is nothing to run.
    #[error("no control program was given; expected at least one")]
    NoProgram,
    /// There is too much to run.
    #[error("{0} control programs were given; at most {MAX_PROGRAMS} fit into one controller")]
    TooManyPrograms(usize),
    /// A setting with which it cannot work.
    #[error("{0}")]
    Setting(String),
    /// A thread that it cannot do without has ended, and so it has stopped by itself.
    #[error(
        "the controller has stopped, since its thread {thread} ended: {reason}; no switch is served any more: start it anew"
    )]
    Ended {
        /// The thread's name.
        thread: String,
        /// By what it ended.
        reason: String,
    },
    /// The system refused something.
    #[error("the controller cannot {what}: {error}")]
    Io {
        /// What was attempted.
        what: &'static str,
        /// Why it failed.
        error: io::Error,
    },
}

impl Error {
    fn io(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Io { what, error }
    }
}

/// A controller that is being set up.
///
/// ```no_run
/// use urtica_controller::{Controller, Switch, SwitchHandler};
/// use urtica_wire::{PacketIn, PortNo};
///
/// struct Hub;
///
/// impl SwitchHandler for Hub {
///     fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
///         switch.forward(packet, PortNo::FLOOD);
///     }
/// }
///
/// fn main() -> Result<(), urtica_controller::Error> {
///     Controller::new().run(|_: &_| Hub)
/// }
/// ```
pub struct Controller {
    listen: Vec<Address>,
    shards: Option<usize>,
    pin: Option<bool>,
    session: SessionConfig,
    drain_timeout: Duration,
    programs: Vec<Arc<dyn Program>>,
}

impl Default for Controller {
    fn default() -> Self {
        Self {
            listen: Vec::new(),
            shards: None,
            pin: None,
            session: SessionConfig::default(),
            drain_timeout: DRAIN_TIMEOUT,
            programs: Vec::new(),
        }
    }
}

impl Controller {
    /// A controller with default options: a shard per core, listening on ports 6653 and 6633 of every address.
    pub fn new() -> Self {
        Self::default()
    }

    /// A controller with the options of the command line: see [`Args`](crate::Args). Prints help and exits where that is
    /// asked for or the options are wrong.
    #[cfg(feature = "args")]
    pub fn from_args() -> Self {
        crate::Args::parse_or_exit().into_controller()
    }

    /// Listens at this address too. Without any: on ports 6653 and 6633 of every address.
    pub fn listen(mut self, address: Address) -> Self {
        self.listen.push(address);
        self
    }

    /// How many shards there are: 1 to 1,024. Without this: one per core that the process may use.
    pub fn shards(mut self, shards: usize) -> Self {
        self.shards = Some(shards);
        self
    }

    /// Whether each shard is pinned to a core of its own. Without this: where there are enough cores for all.
    pub fn pin(mut self, pin: bool) -> Self {
        self.pin = Some(pin);
        self
    }

    /// How long switches have to take what waits for them when the controller stops: 2 s, unless told otherwise.
    pub fn drain_timeout(mut self, timeout: Duration) -> Self {
        self.drain_timeout = timeout;
        self
    }

    /// How sessions behave.
    pub fn session(mut self, config: SessionConfig) -> Self {
        self.session = config;
        self
    }

    /// Runs this program too. Programs see each message by [stage](Program::stage), and within a stage in the order in
    /// which they are added.
    pub fn program(mut self, program: impl Program + 'static) -> Self {
        self.programs.push(Arc::new(program));
        self
    }

    /// Runs the programs given so far and this one until SIGINT or SIGTERM, then stops in order.
    ///
    /// # Errors
    /// [`Error`] where it cannot start, or ended by itself.
    pub fn run(self, program: impl Program + 'static) -> Result<(), Error> {
        self.program(program).run_programs()
    }

    /// Runs the programs given so far until SIGINT or SIGTERM, then stops in order.
    ///
    /// # Errors
    /// [`Error`] where it cannot start, or ended by itself.
    pub fn run_programs(self) -> Result<(), Error> {
        use signal_hook::consts::{SIGINT, SIGTERM};
        let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])
            .map_err(Error::io("catch signals"))?;
        let running = self.start()?;
        let waiting = signals.handle();
        running.on_failure(move || waiting.close());
        if let Some(signal) = signals.forever().next() {
            tracing::info!(signal, "stopping");
        }
        running.stop()
    }

    /// Starts, and returns at once.
    ///
    /// # Errors
    /// [`Error`] where it cannot.
    pub fn start(self) -> Result<Running, Error> {
        let programs = self.programs_in_order()?;
        self.check(&programs)?;
        raise_open_files();
        let cores = usable_cores();
        let shards = self.shards.unwrap_or(cores.len().max(1));
        let pin = self.pin.unwrap_or(shards <= cores.len());
        let listeners = self.bind()?;
        let addresses: Vec<_> = listeners
            .iter()
            .map(|listener| listener.address().clone())
            .collect();
        let tables = Tables::of(&programs);
        let network = Network::new(shards, tables).map_err(Error::io("make a mailbox"))?;
        let (session, drain_timeout) = (self.session.for_tables(tables), self.drain_timeout);
        let watch = Watch::new(network.clone()).map_err(Error::io("make an event"))?;
        let (background, background_threads) =
            Background::on_threads(network.clone(), &watch).map_err(Error::io("start a clock"))?;
        for (index, program) in programs.iter().enumerate() {
            program.start(&background.for_program(index, program.stage()));
        }
        let supervisor = Supervisor::new(network.clone(), listeners, session);
        let core = |shard: usize| {
            let core = cores.get(shard % cores.len().max(1)).copied();
            core.filter(|_| pin)
        };
        let threads = (0..shards)
            .map(|shard| {
                spawn_shard(
                    &watch,
                    shard,
                    core(shard),
                    &network,
                    &programs,
                    drain_timeout,
                )
            })
            .chain(std::iter::once_with(|| {
                spawn_supervisor(&watch, supervisor)
            }))
            .collect::<Result<_, _>>()
            .inspect_err(|_| background_threads.stop())?;
        for address in &addresses {
            tracing::info!(%address, shards, "listening");
        }
        Ok(Running {
            network,
            background: background_threads,
            addresses,
            watch,
            threads,
        })
    }

    /// A controller without threads, sockets and clock, driven by whoever holds it. It has one shard, and addresses to
    /// listen at mean nothing to it.
    ///
    /// # Errors
    /// [`Error`] where it cannot start.
    pub fn embed(self) -> Result<Embedded, Error> {
        let programs = self.programs_in_order()?;
        self.check(&programs)?;
        let tables = Tables::of(&programs);
        let network = Network::new(1, tables).map_err(Error::io("make a mailbox"))?;
        let session = self.session.for_tables(tables);
        Ok(Embedded::new(network, session, programs))
    }

    fn programs_in_order(&self) -> Result<Vec<Arc<dyn Program>>, Error> {
        match self.programs.len() {
            0 => return Err(Error::NoProgram),
            1..=MAX_PROGRAMS => {}
            count => return Err(Error::TooManyPrograms(count)),
        }
        let mut programs = self.programs.clone();
        programs.sort_by_key(|program| program.stage());
        Ok(programs)
    }

    /// Refuses settings that cannot work.
    fn check(&self, programs: &[Arc<dyn Program>]) -> Result<(), Error> {
        if let Some(shards) = self.shards
            && !(1..=MAX_SHARDS).contains(&shards)
        {
            let refused = format!("expected 1 to {MAX_SHARDS} shards, not {shards}");
            return Err(Error::Setting(refused));
        }
        self.session.check().map_err(Error::Setting)?;
        let mut programs = programs.iter();
        programs.try_for_each(|program| program.check().map_err(Error::Setting))
    }

    fn bind(&self) -> Result<Vec<Listener>, Error> {
        let default = [DEFAULT_PORT, OLD_PORT].map(|port| Address::PassiveTcp { host: None, port });
        let addresses = if self.listen.is_empty() {
            &default[..]
        } else {
            &self.listen
        };
        addresses
            .iter()
            .map(|address| Listener::bind(address).map_err(Error::from))
            .collect()
    }
}

/// A controller at work. Dropping it leaves it at work until the process ends; [`Running::stop`] ends it in order.
pub struct Running {
    network: Network,
    background: Arc<Threads>,
    addresses: Vec<Address>,
    watch: Arc<Watch>,
    threads: Vec<JoinHandle<()>>,
}

impl Running {
    /// The connected switches.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Where it listens, with the ports that the system chose.
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// What happened to background programs.
    pub fn background_counters(&self) -> &BackgroundCounters {
        &self.background.counters
    }

    /// Why it has stopped by itself, if it has: a thread that it cannot do without has ended. Nobody is served any more then,
    /// and the switches were let go; what is left is to call [`Running::stop`].
    pub fn failure(&self) -> Option<Error> {
        self.watch.failure()
    }

    /// Calls `tell` once the controller has stopped by itself, on any thread, or at once where it has: see
    /// [`Running::failure`].
    pub fn on_failure(&self, tell: impl FnOnce() + Send + 'static) {
        self.watch.on_failure(tell);
    }

    /// Stops in order: background programs end, there are no new connections, what waits to be sent is sent, handlers are
    /// told, sockets are closed.
    ///
    /// Background programs end first, so that none takes the switches that leave now for a network that falls apart; what
    /// they have sent still leaves. Those that wait are dropped; one that is at work has 2 s, and is left to itself then.
    ///
    /// # Errors
    /// [`Error::Ended`] where a thread ended by an error or a panic, before or now.
    pub fn stop(self) -> Result<(), Error> {
        self.background.stop();
        self.watch.stop();
        for thread in self.threads {
            // Whatever it ended by, the watch knows.
            let _ = thread.join();
        }
        for (shard, counters) in self.network.shard_counters().enumerate() {
            let counts: Vec<_> = counters
                .iter()
                .map(|(name, count)| format!("{name}={count}"))
                .collect();
            tracing::info!(shard, "stopped: {}", counts.join(" "));
        }
        self.watch.failure().map_or(Ok(()), Err)
    }
}

fn spawn_shard(
    watch: &Arc<Watch>,
    index: usize,
    core: Option<usize>,
    network: &Network,
    programs: &[Arc<dyn Program>],
    drain_timeout: Duration,
) -> Result<JoinHandle<()>, Error> {
    let (network, programs) = (network.clone(), programs.to_vec());
    let run = move || {
        if let Some(core) = core
            && let Err(error) = pin_to(core)
        {
            tracing::warn!(shard = index, core, %error, "cannot pin the shard to its core; it runs anywhere");
        }
        let shard = || Shard::new(index, network.clone(), programs)?.run(drain_timeout);
        let served = contain_thread(shard);
        // Also where it did not get that far: nobody takes what is put in there any more.
        drop(network.end_shard(index));
        served
    };
    watch
        .spawn(format!("shard-{index}"), run)
        .map_err(Error::io("start a shard"))
}

fn spawn_supervisor(watch: &Arc<Watch>, supervisor: Supervisor) -> Result<JoinHandle<()>, Error> {
    let known = Arc::clone(watch);
    watch
        .spawn("supervisor".into(), move || {
            supervisor.run(known.stop_event())
        })
        .map_err(Error::io("start the supervisor"))
}

fn pin_to(core: usize) -> rustix::io::Result<()> {
    let mut set = rustix::thread::CpuSet::new();
    set.set(core);
    rustix::thread::sched_setaffinity(None, &set)
}

/// The cores that the process may use, as `taskset` and control groups leave them.
fn usable_cores() -> Vec<usize> {
    let set = rustix::thread::sched_getaffinity(None).unwrap_or_default();
    (0..rustix::thread::CpuSet::MAX_CPU)
        .filter(|&core| set.is_set(core))
        .collect()
}

/// Thousands of switches are thousands of sockets; the soft limit is often 1024.
fn raise_open_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Where it cannot be raised, accepting says so when the time comes.
    let _ = setrlimit(Resource::Nofile, limit);
}
