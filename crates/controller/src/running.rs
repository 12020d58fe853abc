//! A running controller and its threads.

use crate::background::{Starter, Threads};
use crate::connection_queue::ConnectionQueue;
use crate::datapath_ids::DatapathIds;
use crate::error::Error;
use crate::kernel_half::Threshold;
use crate::mailbox::Command;
use crate::network::Network;
use crate::panics::contain_thread;
use crate::preview::preview;
use crate::program_list::{CurrentPrograms, ProgramList, ProgramSlot, Programs};
use crate::session::SessionConfig;
use crate::shard::Shard;
use crate::stage::Tables;
use crate::supervisor::Supervisor;
use crate::watch::{Watch, join_other};
use crate::{
    Background, BackgroundCounters, FlowChange, HeldHalves, InputRings, KernelHalves, Program,
    ProgramId, RawProgram,
};
use parking_lot::Mutex;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use urtica_hold::Held;
use urtica_socket::{Acceptor, Address, Listener, Tls};
use urtica_state::Snapshot;

/// A running controller: see [`Controller::start`](crate::Controller::start).
///
/// Dropping it stops it in order and waits until it has ended, like [`Running::stop`], which also returns errors.
#[must_use = "dropping it stops the controller"]
pub struct Running {
    network: Network,
    programs: Mutex<Programs>,
    /// The current list of programs, shared with the shards.
    current: CurrentPrograms,
    background: Arc<Threads>,
    addresses: Vec<Address>,
    watch: Arc<Watch>,
    threads: Vec<JoinHandle<()>>,
}

/// The settings that a controller starts with.
pub(crate) struct Plan {
    pub listeners: Vec<Listener>,
    /// Keeps connections when this program ends, and has kept an earlier program's.
    pub held: Option<Held>,
    /// Continues kernel halves of an earlier program.
    pub held_halves: Option<Arc<dyn HeldHalves>>,
    pub tls: Option<Tls>,
    pub datapath_ids: Option<DatapathIds>,
    /// The core that each shard is pinned to, if any.
    pub cores: Vec<Option<usize>>,
    pub session: SessionConfig,
    pub drain_timeout: Duration,
    pub tables: Tables,
    /// The programs, in the order in which they see messages.
    pub programs: Vec<Arc<dyn Program>>,
    pub raw: Option<Arc<dyn RawProgram>>,
    pub rings: Option<Arc<dyn InputRings>>,
    pub kernel_halves: Option<Arc<dyn KernelHalves>>,
    pub half_threshold: Threshold,
    /// Whether programs' answers to packet-ins are timed.
    pub times_packet_ins: bool,
    /// Background programs without handlers.
    pub starters: Vec<Starter>,
}

impl Running {
    /// Starts all threads.
    pub(crate) fn start(mut plan: Plan) -> Result<Self, Error> {
        let addresses = plan.listeners.iter().map(Listener::address);
        let addresses: Vec<_> = addresses.cloned().collect();
        let shards = plan.cores.len();
        let network = Network::new(shards, plan.tables).map_err(Error::io("make a mailbox"))?;
        plan.session.roles = Arc::clone(network.wanted_roles());
        let watch = Watch::new(network.clone()).map_err(Error::io("create an event"))?;
        let (background, background_threads) =
            Background::on_threads(network.clone(), &watch).map_err(Error::io("start a clock"))?;
        let given = std::mem::take(&mut plan.programs);
        let list = ProgramList::first(given, plan.raw.take(), &network);
        let programs = Programs::start(Arc::clone(&list), &network, &background);
        for start in std::mem::take(&mut plan.starters) {
            start(&background);
        }
        let current = Arc::new(Snapshot::new(list));
        let threads = spawn_threads(&watch, &network, &current, plan).inspect_err(|_| {
            background_threads.stop();
            watch.stop_all();
        })?;
        for address in &addresses {
            tracing::info!(%address, shards, "listening");
        }
        Ok(Self {
            network,
            programs: Mutex::new(programs),
            current,
            background: background_threads,
            addresses,
            watch,
            threads,
        })
    }

    /// Returns the connected switches.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Returns the programs' numbers, in the order in which they see messages.
    pub fn program_ids(&self) -> Vec<ProgramId> {
        self.programs.lock().ids()
    }

    /// Replaces the running programs. Connections stay open. Programs see each message by [stage](Program::stage), and within
    /// a stage in the order of `slots`. Returns their numbers, in that order.
    ///
    /// - A kept program is not affected.
    /// - An added program [starts](Program::start), and its handlers' [`switch_up`](crate::SwitchHandler::switch_up) is
    ///   called for the switches that are up.
    /// - A missing program ends: its waiting background programs are dropped, and background programs that do not wait within
    ///   2 s are abandoned; its handlers' [`switch_down`](crate::SwitchHandler::switch_down) is called, and its entries are
    ///   deleted.
    /// - A replaced program ends like that, and the new one starts, with its number. Entries that both install are neither
    ///   deleted nor sent again. Entries that the new one has not added when it has been quiet for 2 s are deleted. If a
    ///   switch does not report its entries, all are deleted first.
    ///
    /// Each switch changes between two batches of messages. A switch with a [kernel half](crate::KernelHalf) is disconnected,
    /// and reconnects.
    ///
    /// # Errors
    /// [`Error::NoProgram`], [`Error::TooManyPrograms`], [`Error::NoSuchProgram`], [`Error::ProgramTwice`],
    /// [`Error::Setting`], and [`Error::FilterAtRunTime`]; on an error nothing changes.
    pub fn set_programs(&self, slots: &[ProgramSlot]) -> Result<Vec<ProgramId>, Error> {
        let mut programs = self.programs.lock();
        let prepared = programs.change(slots)?;
        programs.start_new(&prepared);
        self.current.publish(Arc::clone(&prepared.list));
        for shard in self.network.shards() {
            // Fails only if the shard has ended; then the controller stops.
            let _ = shard.mailbox.push(Command::FollowPrograms);
        }
        programs.release_new(&prepared);
        Ok(prepared.ids)
    }

    /// Returns the changes that [`Running::set_programs`] would make to switches' flow tables, by switch, without sending
    /// any, and the numbers that the programs would have. The new programs are run for up to 8 s: their messages are kept,
    /// their requests are sent. Changes that depend on packets, links and hosts are not included. If programs share a service
    /// that sends for them, the new programs must not include them.
    ///
    /// # Errors
    /// Like [`Running::set_programs`].
    pub fn preview_programs(
        &self,
        slots: &[ProgramSlot],
    ) -> Result<(Vec<ProgramId>, Vec<FlowChange>), Error> {
        preview(&self.programs.lock(), &self.network, slots)
    }

    /// Returns the addresses that it listens at, with the ports that the system chose.
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// Returns the counters of background programs.
    pub fn background_counters(&self) -> &BackgroundCounters {
        &self.background.counters
    }

    /// Returns the error that stopped the controller, if one of its threads has ended. All connections are then closed; call
    /// [`Running::stop`].
    pub fn failure(&self) -> Option<Error> {
        self.watch.failure()
    }

    /// Calls `callback`, on any thread, when the controller stops because of an error, or at once if it has stopped: see
    /// [`Running::failure`]. If there is no error, another program has taken over the connections
    /// ([`Controller::hold`](crate::Controller::hold)).
    pub fn on_failure(&self, callback: impl FnOnce() + Send + 'static) {
        self.watch.on_failure(callback);
    }

    /// Stops in order: background programs end, listeners are closed, waiting output is sent
    /// ([`Controller::drain_timeout`](crate::Controller::drain_timeout)), `switch_down` is called, sockets are closed.
    ///
    /// Background programs end first, so that they do not mistake the disconnecting switches for network failures; their
    /// output is still sent. Waiting programs are dropped; a running one has 2 s to wait or end, and is then abandoned.
    ///
    /// # Errors
    /// [`Error::Ended`] if a thread ended by an error or a panic, at any time.
    pub fn stop(mut self) -> Result<(), Error> {
        self.end();
        self.watch.failure().map_or(Ok(()), Err)
    }

    /// Stops like [`Running::stop`], but leaves listeners and connections with the holder, for the next program: see
    /// [`Controller::hold`](crate::Controller::hold). Switches do not notice. Without a holder it closes them.
    ///
    /// # Errors
    /// Like [`Running::stop`].
    pub fn leave(self) -> Result<(), Error> {
        self.watch.set_leaving();
        self.stop()
    }

    /// Stops the controller, unless it has ended.
    fn end(&mut self) {
        let threads = std::mem::take(&mut self.threads);
        if threads.is_empty() {
            return;
        }
        self.background.stop();
        self.watch.stop();
        threads.into_iter().for_each(join_other);
        for (shard, counters) in self.network.shard_counters().enumerate() {
            let counts: Vec<_> = counters
                .iter()
                .map(|(name, count)| format!("{name}={count}"))
                .collect();
            tracing::info!(shard, "stopped: {}", counts.join(" "));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// Starts the shards and the supervisor.
fn spawn_threads(
    watch: &Arc<Watch>,
    network: &Network,
    programs: &CurrentPrograms,
    plan: Plan,
) -> Result<Vec<JoinHandle<()>>, Error> {
    let queues = ConnectionQueue::for_shards(plan.cores.len());
    let mut threads = Vec::new();
    for (index, core) in plan.cores.into_iter().enumerate() {
        let (network, queues) = (network.clone(), Arc::clone(&queues));
        let (programs, drain_timeout) = (Arc::clone(programs), plan.drain_timeout);
        let (rings, halves) = (plan.rings.clone(), plan.kernel_halves.clone());
        let (times, threshold) = (plan.times_packet_ins, plan.half_threshold);
        let run = move || {
            pin_shard(index, core);
            let shard = || {
                let shard = Shard::new(index, network.clone(), queues, programs)?;
                let shard = shard.with_kernel_halves(halves).with_times(times);
                let shard = shard.with_half_threshold(threshold);
                with_ring(index, shard, rings.as_deref())?.run(drain_timeout)
            };
            let served = contain_thread(shard);
            // Needed even if `Shard::new` failed, since no thread drains the mailbox then.
            network.end_shard(index);
            served
        };
        let thread = watch.spawn(format!("shard-{index}"), run);
        threads.push(thread.map_err(Error::io("start a shard"))?);
    }
    let acceptor =
        acceptor(plan.listeners, plan.tls).map_err(Error::io("create an epoll instance"))?;
    let mut supervisor = Supervisor::new(
        network.clone(),
        queues,
        acceptor,
        plan.datapath_ids,
        plan.session,
    );
    supervisor.held_halves = plan.held_halves;
    if let Some(held) = plan.held {
        supervisor.take_over(held.link, held.connections);
    }
    let known = Arc::clone(watch);
    let run = move || supervisor.run(&known);
    let thread = watch.spawn("supervisor".into(), run);
    threads.push(thread.map_err(Error::io("start the supervisor"))?);
    Ok(threads)
}

fn acceptor(listeners: Vec<Listener>, tls: Option<Tls>) -> std::io::Result<Acceptor> {
    let mut acceptor = Acceptor::new()?;
    if let Some(tls) = tls {
        acceptor.speak_tls(tls)?;
    }
    for listener in listeners {
        acceptor.add(listener)?;
    }
    Ok(acceptor)
}

/// Gives a shard its ring, if the controller has rings.
fn with_ring(index: usize, shard: Shard, rings: Option<&dyn InputRings>) -> std::io::Result<Shard> {
    match rings.map(InputRings::open) {
        None => Ok(shard),
        Some(Ok(ring)) => shard.with_ring(ring),
        Some(Err(error)) => {
            tracing::warn!(shard = index, %error, "the shard has no ring; it reads from its sockets");
            Ok(shard)
        }
    }
}

fn pin_shard(index: usize, core: Option<usize>) {
    let Some(core) = core else {
        return;
    };
    if let Err(error) = pin_to(core) {
        tracing::warn!(shard = index, core, %error, "cannot pin the shard to its core; it runs on any");
    }
}

fn pin_to(core: usize) -> rustix::io::Result<()> {
    let mut set = rustix::thread::CpuSet::new();
    set.set(core);
    rustix::thread::sched_setaffinity(None, &set)
}
