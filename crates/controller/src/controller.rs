//! The settings of a controller, and its start.

use crate::background::Starter;
use crate::datapath_ids::DatapathIds;
use crate::error::Error;
use crate::kernel_half::Threshold;
use crate::network::Network;
use crate::program_list::{check_beside_raw, check_count};
use crate::running::{Plan, Running};
use crate::session::{Clients, SessionConfig};
use crate::setting::SettingError;
use crate::stage::Tables;
use crate::{
    Background, Embedded, HeldHalves, InputRings, KernelHalves, Program, RawProgram, Role,
};
use rustix::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use urtica_hold::Held;
use urtica_socket::{Address, DEFAULT_PORT, ListenError, Listener, NoTlsConfig, Tls, TlsConfig};

/// The time that a stopping shard waits for switches to read their output, by default.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// The maximum number of shards, well above the cores of any machine: each has a thread and half a megabyte of buffers.
const MAX_SHARDS: usize = 1024;

/// The port that OpenFlow used before IANA assigned one. Mininet and old switches still try it.
const OLD_PORT: u16 = 6633;

/// A controller to be configured and started.
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
    role: Option<Role>,
    tls: Option<TlsConfig>,
    datapath_ids: Option<PathBuf>,
    drain_timeout: Duration,
    held: Option<Held>,
    held_halves: Option<Arc<dyn HeldHalves>>,
    programs: Vec<Arc<dyn Program>>,
    raw: Option<Arc<dyn RawProgram>>,
    rings: Option<Arc<dyn InputRings>>,
    kernel_halves: Option<Arc<dyn KernelHalves>>,
    half_threshold: Threshold,
    times_packet_ins: bool,
    starters: Vec<Starter>,
}

impl Default for Controller {
    fn default() -> Self {
        Self {
            listen: Vec::new(),
            shards: None,
            pin: None,
            session: SessionConfig::default(),
            role: None,
            tls: None,
            datapath_ids: None,
            drain_timeout: DRAIN_TIMEOUT,
            held: None,
            held_halves: None,
            programs: Vec::new(),
            raw: None,
            rings: None,
            kernel_halves: None,
            half_threshold: Threshold::OF_CONTROLLER,
            times_packet_ins: false,
            starters: Vec::new(),
        }
    }
}

impl Controller {
    /// Creates a controller with default options: a shard per core, listening on ports 6653 and 6633 of every address.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an address to listen at. Without any: ports 6653 and 6633 of every address, with TLS if [`Controller::tls`] is
    /// set.
    pub fn listen(mut self, address: Address) -> Self {
        self.listen.push(address);
        self
    }

    /// Sets the number of shards: 1 to 1,024. The default is one per core that the process may use.
    pub fn shards(mut self, shards: usize) -> Self {
        self.shards = Some(shards);
        self
    }

    /// Sets whether each shard is pinned to its own core. The default pins them if there are enough cores for all.
    pub fn pin(mut self, pin: bool) -> Self {
        self.pin = Some(pin);
        self
    }

    /// Sets the time that switches have to read their output when the controller stops: by default 2 s.
    pub fn drain_timeout(mut self, timeout: Duration) -> Self {
        self.drain_timeout = timeout;
        self
    }

    /// Sets versions, time-outs and keep-alive of the sessions with switches.
    pub fn session(mut self, config: SessionConfig) -> Self {
        self.session = config;
        self
    }

    /// Requests this role from each switch when it connects, overriding [`Controller::session`]. With [`Role::Primary`],
    /// other controllers with roles become secondaries; with [`Role::Secondary`], this one has only read access, until
    /// [`Network::set_role`](crate::Network::set_role) changes its role. By default no role is requested, and every
    /// controller of a switch answers each packet-in.
    pub fn role(mut self, role: Role) -> Self {
        self.role = Some(role);
        self
    }

    /// Makes listeners and connections survive this program: a holder keeps them when the program is killed or
    /// [leaves](Running::leave), and the next program with this holder takes them over. [`attach`](crate::hold::attach)
    /// returns `held`.
    ///
    /// A connection that is taken over has no new hello. Handlers are created again, and their
    /// [`switch_up`](crate::SwitchHandler::switch_up) is called once the switch has described its ports; packet-ins may
    /// arrive earlier. The switch receives the earlier handlers' answers once, and the new handlers receive unanswered
    /// packet-ins. Messages that a program sends through a [`Network`] may be lost, or sent twice if a handler receives a
    /// packet-in again.
    ///
    /// Only TCP connections are held. Of the handlers' kernel halves, only holdable ones
    /// ([`KernelHalf::held`](crate::KernelHalf::held)) are started; taking over an earlier program's requires
    /// [`Controller::held_halves`].
    pub fn hold(mut self, held: Held) -> Self {
        self.held = Some(held);
        self
    }

    /// Takes over the kernel halves that an earlier program left with the holder: see `urtica-offload`. A program that
    /// [resumes](Program::resume) its handlers continues them; other programs release them. Without this, connections that
    /// have a kernel half are closed, and their switches reconnect.
    pub fn held_halves(mut self, halves: impl HeldHalves + 'static) -> Self {
        self.held_halves = Some(Arc::new(halves));
        self
    }

    /// Sets the files for TLS, for `pssl:` addresses. They are reloaded when they change, for new connections. Requires the
    /// feature `tls`.
    pub fn tls(mut self, config: TlsConfig) -> Self {
        self.tls = Some(config);
        self
    }

    /// Sets a file of the datapath ids that each certificate may use, so that no switch can impersonate another. It has a
    /// line for each certificate: ids, separated by commas, and a name as in `Certificate::is_called`. A switch that connects
    /// by TLS needs a line; a switch without TLS may use the ids that are on no line. The file is reloaded when it changes.
    pub fn datapath_ids(mut self, file: PathBuf) -> Self {
        self.datapath_ids = Some(file);
        self
    }

    /// Adds a program. Programs see each message by [stage](Program::stage), and within a stage in the order in which they
    /// are added.
    pub fn program(mut self, program: impl Program + 'static) -> Self {
        self.programs.push(Arc::new(program));
        self
    }

    /// Like [`Controller::program`], for a program that the caller shares.
    pub fn shared_program(mut self, program: Arc<dyn Program>) -> Self {
        self.programs.push(program);
        self
    }

    /// Runs a program that gets frames instead of messages; a later call replaces it. Other programs of the controller may
    /// only [observe](crate::Stage::Observe).
    ///
    /// The session sends a hello and a features request, answers echo requests, and probes silent switches with its own; if
    /// other programs observe, it also requests port descriptions. The raw program gets every frame in order, from the
    /// switch's hello on, including echo requests, the first features reply and messages that other programs consume. Only
    /// replies to other senders' messages are not passed to it. Nothing else is sent to the switch, and the program's frames
    /// are not changed: no cookie is marked, no table-miss entry is added, FLOOD stays FLOOD, and malformed frames are not
    /// answered.
    ///
    /// Replies are routed by xid. The program may use any xid. If the first byte of one belongs to another sender (254, 255,
    /// 250, or another program's number), the frame is sent with a different xid, and replies get the original one back.
    ///
    /// Cannot be combined with [`Controller::hold`] and [`Controller::kernel_halves`].
    ///
    /// ```no_run
    /// use urtica_controller::{Controller, RawHandler, RawSwitch, SwitchInfo};
    ///
    /// /// Counts frames.
    /// struct Counting(u64);
    ///
    /// impl RawHandler for Counting {
    ///     fn frame(&mut self, _switch: &mut RawSwitch, _frame: &[u8]) {
    ///         self.0 += 1;
    ///     }
    /// }
    ///
    /// fn main() -> Result<(), urtica_controller::Error> {
    ///     Controller::new().raw_program(|_: &SwitchInfo| Counting(0)).run_programs()
    /// }
    /// ```
    pub fn raw_program(mut self, program: impl RawProgram + 'static) -> Self {
        self.raw = Some(Arc::new(program));
        self
    }

    /// Makes switches' messages arrive through rings if possible, one per shard: see `urtica-offload`. Switches then stay
    /// with their first shard.
    pub fn input_rings(mut self, rings: impl InputRings + 'static) -> Self {
        self.rings = Some(Arc::new(rings));
        self
    }

    /// Sets kernel halves that settle packets before all programs, for instance on behalf of services: see `urtica-offload`.
    /// The handlers' own [kernel halves](crate::SwitchHandler::kernel_half) are not started then.
    pub fn kernel_halves(mut self, halves: impl KernelHalves + 'static) -> Self {
        self.kernel_halves = Some(Arc::new(halves));
        self
    }

    /// Sets the time that a switch must have been up, and the number of packet-ins that it must have sent, before it gets a
    /// [kernel half](crate::KernelHalf), which needs memory of the system: by default 1 s and 16.
    pub fn kernel_half_after(mut self, uptime: Duration, packet_ins: u64) -> Self {
        self.half_threshold = Threshold { uptime, packet_ins };
        self
    }

    /// Sets whether the time that packet-ins need in each program is recorded: see
    /// [`Network::packet_in_times`](crate::Network::packet_in_times). It costs two readings of the clock for each read from
    /// a switch. Not available in an [`Embedded`] controller, whose time is its caller's.
    pub fn time_packet_ins(mut self, times: bool) -> Self {
        self.times_packet_ins = times;
        self
    }

    /// Runs background programs that have no handlers, such as an HTTP interface: `start` [spawns](Background::spawn) them.
    /// Unlike a [`Program`], whose handlers see each message, they add no cost per message.
    ///
    /// Their messages are from [code outside of programs](crate::ProgramId::OUTSIDE). `start` is called like
    /// [`Program::start`], but later, after all programs have started.
    pub fn background(mut self, start: impl FnOnce(&Background) + Send + 'static) -> Self {
        self.starters.push(Box::new(start));
        self
    }

    /// Runs the programs given so far and this one until SIGINT or SIGTERM, then stops in order; see
    /// [`Controller::run_programs`].
    ///
    /// # Errors
    /// [`Error`] if it cannot start, or stopped because of an error.
    pub fn run(self, program: impl Program + 'static) -> Result<(), Error> {
        self.program(program).run_programs()
    }

    /// Runs the programs given so far until SIGINT or SIGTERM, then stops in order. With a holder ([`Controller::hold`]),
    /// SIGTERM leaves the connections to the holder for the next program, as when another program takes them over; SIGINT
    /// closes them, and the holder ends.
    ///
    /// # Errors
    /// [`Error`] if it cannot start, or stopped because of an error.
    pub fn run_programs(self) -> Result<(), Error> {
        use signal_hook::consts::{SIGINT, SIGTERM};
        let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])
            .map_err(Error::io("catch signals"))?;
        let running = self.start()?;
        let waiting = signals.handle();
        running.on_failure(move || waiting.close());
        let signal = signals.forever().next();
        if let Some(signal) = signal {
            tracing::info!(signal, "stopping");
        }
        match signal {
            Some(SIGTERM) => running.leave(),
            _ => running.stop(),
        }
    }

    /// Starts, and returns at once. The controller runs until the value is [stopped](Running::stop) or dropped.
    ///
    /// # Errors
    /// [`Error`] if it cannot start.
    pub fn start(mut self) -> Result<Running, Error> {
        let programs = self.programs_in_order()?;
        self.check(&programs)?;
        raise_open_files();
        let cores = usable_cores();
        let shards = self.shards.unwrap_or(cores.len().max(1));
        let pin = self.pin.unwrap_or(shards <= cores.len());
        let core = |shard: usize| {
            let core = cores.get(shard % cores.len().max(1)).copied();
            core.filter(|_| pin)
        };
        let tables = tables_of(&programs);
        let datapath_ids = self.datapath_ids.as_deref();
        let session = self.session_config(tables, !programs.is_empty());
        Running::start(Plan {
            tls: self.load_tls()?,
            datapath_ids: datapath_ids.map(DatapathIds::read).transpose()?,
            listeners: self.bind()?,
            held: self.held,
            held_halves: self.held_halves,
            cores: (0..shards).map(core).collect(),
            session,
            drain_timeout: self.drain_timeout,
            tables,
            programs,
            raw: self.raw,
            rings: self.rings,
            kernel_halves: self.kernel_halves,
            half_threshold: self.half_threshold,
            times_packet_ins: self.times_packet_ins,
            starters: self.starters,
        })
    }

    /// Creates a controller without threads, sockets and clock, driven by its caller: see [`Embedded`]. It has one shard,
    /// and ignores addresses to listen at.
    ///
    /// # Errors
    /// [`Error`] if it cannot start.
    pub fn embed(self) -> Result<Embedded, Error> {
        let programs = self.programs_in_order()?;
        self.check(&programs)?;
        let tables = tables_of(&programs);
        let network = Network::new(1, tables).map_err(Error::io("make a mailbox"))?;
        let mut session = self.session_config(tables, !programs.is_empty());
        session.roles = Arc::clone(network.wanted_roles());
        Ok(Embedded::new(
            network,
            session,
            programs,
            self.raw,
            self.starters,
        ))
    }

    fn session_config(&self, tables: Tables, has_programs: bool) -> SessionConfig {
        let clients = match (&self.raw, has_programs) {
            (None, _) => Clients::Programs,
            (Some(_), false) => Clients::Raw,
            (Some(_), true) => Clients::RawAndServices,
        };
        let session = self.session.clone().for_tables(tables);
        SessionConfig {
            role: self.role.unwrap_or(session.role),
            clients,
            ..session
        }
    }

    fn programs_in_order(&self) -> Result<Vec<Arc<dyn Program>>, Error> {
        check_count(self.programs.len(), self.raw.is_some())?;
        let mut programs = self.programs.clone();
        programs.sort_by_key(|program| program.stage());
        Ok(programs)
    }

    /// Rejects settings that cannot work.
    fn check(&self, programs: &[Arc<dyn Program>]) -> Result<(), Error> {
        match self.shards {
            None | Some(1..=MAX_SHARDS) => {}
            Some(shards) => {
                let refused = format!("expected 1 to {MAX_SHARDS} shards, not {shards}");
                return Err(SettingError::new(refused).into());
            }
        }
        self.session.check()?;
        if self.raw.is_some() {
            self.check_raw(programs)?;
        }
        let mut programs = programs.iter();
        Ok(programs.try_for_each(|program| program.check())?)
    }

    /// Rejects programs and settings that would hide frames from a raw program.
    fn check_raw(&self, programs: &[Arc<dyn Program>]) -> Result<(), SettingError> {
        let with = match (&self.held, &self.kernel_halves) {
            (Some(_), _) => Some("a holder"),
            (None, Some(_)) => Some("kernel halves"),
            (None, None) => None,
        };
        if let Some(with) = with {
            let refused =
                format!("a raw program cannot be combined with {with}; expected only one of them");
            return Err(SettingError::new(refused));
        }
        check_beside_raw(programs.iter().map(|program| &**program))
    }

    /// Rejects unusable files, and addresses for TLS without files.
    #[cfg(feature = "args")]
    pub(crate) fn check_files(&self) -> Result<(), Error> {
        self.load_tls()?;
        if let Some(file) = &self.datapath_ids {
            DatapathIds::read(file)?;
        }
        Ok(())
    }

    fn load_tls(&self) -> Result<Option<Tls>, Error> {
        let needs = self.listen.iter().find(|address| address.is_tls());
        match (&self.tls, needs) {
            (Some(config), _) => Ok(Some(Tls::load(config.clone())?)),
            (None, Some(address)) => Err(NoTlsConfig(address.clone()).into()),
            (None, None) => Ok(None),
        }
    }

    fn bind(&mut self) -> Result<Vec<Listener>, Error> {
        let default = [DEFAULT_PORT, OLD_PORT].map(|port| match self.tls {
            Some(_) => Address::PassiveSsl { host: None, port },
            None => Address::PassiveTcp { host: None, port },
        });
        let addresses = if self.listen.is_empty() {
            &default[..]
        } else {
            &self.listen
        };
        let held = &mut self.held;
        let listen = |address| match held {
            None => Listener::bind(address),
            Some(held) => listen_on(held, address),
        };
        let listeners = addresses.iter().map(listen).collect::<Result<_, _>>()?;
        if let Some(held) = held {
            // Listeners that are no longer needed.
            let others = held.listeners.drain(..);
            others.for_each(|listener| held.link.forget(listener.id));
        }
        Ok(listeners)
    }
}

/// Listens at an address, with an earlier program's socket for it, or with a new one that the holder keeps.
fn listen_on(held: &mut Held, address: &Address) -> Result<Listener, ListenError> {
    let label = address.to_string();
    let mut kept = held.listeners.iter();
    if let Some(index) = kept.position(|kept| kept.label == label) {
        let kept = held.listeners.swap_remove(index);
        if let Ok(listener) = Listener::from_socket(address, kept.socket) {
            return Ok(listener);
        }
        held.link.forget(kept.id);
    }
    let listener = Listener::bind(address)?;
    if let Err(error) = held.link.keep_listener(label, listener.as_fd()) {
        tracing::warn!(%address, %error, "the holder cannot keep a listening socket; it ends with this program");
    }
    Ok(listener)
}

fn tables_of(programs: &[Arc<dyn Program>]) -> Tables {
    Tables::of(programs.iter().map(|program| program.stage()))
}

/// Returns the cores that the process may use, as limited by `taskset` and control groups.
fn usable_cores() -> Vec<usize> {
    let set = rustix::thread::sched_getaffinity(None).unwrap_or_default();
    (0..rustix::thread::CpuSet::MAX_CPU)
        .filter(|&core| set.is_set(core))
        .collect()
}

/// Raises the soft limit of open files, which is often 1024: each switch has a socket, and a controller may have thousands.
fn raise_open_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // If it cannot be raised, accepting reports it later.
    let _ = setrlimit(Resource::Nofile, limit);
}
