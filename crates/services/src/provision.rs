//! Flow paths across switches, set up in an order that loses no packet (McNettle Figure 2, "Flow Path Provisioning").
//!
//! **What.** [`Provisioner`] installs an entry for a flow in every switch of a path, or in none.
//!
//! **How.** A background program installs entries from the egress switch back to the ingress switch. Each entry is followed by
//! a barrier, and the next switch's entry is sent when the barrier is answered. So a packet that matches an entry at the
//! ingress switch matches one at every later switch; and when one path [replaces](Provisioner::replace) another, every packet
//! follows either the old path or the new one from any switch to the end. Removal starts at the ingress switch.
//!
//! If a switch refuses its entry, does not confirm it in time, or disconnects before the last confirmation, everything is
//! rolled back, starting at the ingress switch, and [`ProvisionError`] names the switch and the reason.
//!
//! **Cookies.** The top 16 of the bits that a program may choose are [`COOKIE_TAG`]; the others number paths from 1. When a
//! switch joins, the program requests its entries with this tag and compares them with the expected ones. It deletes entries of
//! removed paths, or of an earlier run of the controller, one by one, and installs missing permanent entries again, for
//! instance after a restart of the switch. Provisioning waits until that is done. So a switch that disconnects does not keep
//! stale entries forever.
//!
//! **Paths that expire.** Entries with a time-out request a flow-removed message. When the first one is removed, the rest of
//! its path is removed too, so that half a path never stays. Only switches on the path are believed, and only once.
//!
//! **Cost.** A path of *n* switches takes *n* round trips. Jobs wait for different switches concurrently; at most
//! [`ProvisionConfig::max_jobs`] are accepted at a time. An installed path costs about 500 bytes per switch.
//!
//! **Thread-safety.** [`Provisioner`] is cheap to clone and may be used anywhere, including in handlers: a queue passes jobs to
//! the program. One lock guards the ledger and one the queue; neither is held while the other is taken.

mod error;
mod flow;
mod job;
mod ledger;

pub use error::ProvisionError;
pub use flow::Flow;

use crate::notify::Notify;
use futures_util::stream::{FuturesUnordered, StreamExt};
use job::Job;
use ledger::Ledger;
use parking_lot::{Mutex, MutexGuard};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use urtica_controller::setting::{SettingError, expect_some, expect_time};
use urtica_controller::{
    Background, OWN_COOKIE_BITS, Program, Stage, Switch, SwitchHandler, SwitchInfo,
};
use urtica_state::Snapshot;
use urtica_topology::Path;
use urtica_wire::{DatapathId, FlowRemoved};

/// Marks the cookie of every entry that a [`Provisioner`] installs, right below the framework's bits: `ur` in ASCII.
pub const COOKIE_TAG: u64 = 0x7572 << 40;

/// The bits of a cookie that hold [`COOKIE_TAG`].
pub const COOKIE_TAG_MASK: u64 = 0xffff << 40;

/// Returns `true` if a cookie is a [`Provisioner`]'s. The provisioner deletes entries with such a cookie that belong to none of
/// its paths, so a program that chooses its own cookies must choose others.
pub const fn is_provisioned(cookie: u64) -> bool {
    // 1.0 uses all ones for "no cookie"; this value has another tag.
    cookie & COOKIE_TAG_MASK == COOKIE_TAG
}

/// Settings of a [`Provisioner`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProvisionConfig {
    /// Time in which a switch must confirm an entry. 5 s.
    pub timeout: Duration,
    /// The maximum number of jobs that wait or are in progress. 4096.
    pub max_jobs: usize,
    /// The maximum number of paths. 1,000,000.
    pub max_flows: usize,
}

impl Default for ProvisionConfig {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(5),
            max_jobs: 4096,
            max_flows: 1_000_000,
        }
    }
}

/// Sets up and removes flow paths across switches. See the module's documentation.
///
/// It is a [`Program`]: give a clone to [`Controller::program`](urtica_controller::Controller::program).
///
/// ```
/// use urtica_controller::Controller;
/// use urtica_services::{Flow, ProvisionConfig, Provisioner};
/// use urtica_topology::Path;
/// use urtica_wire::Match;
///
/// let provisioner = Provisioner::new(ProvisionConfig::default());
/// let controller = Controller::new().program(provisioner.clone());
///
/// /// Part of a background program: the path is installed when this returns.
/// async fn connect(provisioner: &Provisioner, path: Path, match_: Match<'static>) {
///     match provisioner.provision(Flow::new(path, match_)).await {
///         Ok(provisioned) => println!("path {:#x} is there", provisioned.cookie()),
///         Err(error) => println!("{error}"),
///     }
/// }
/// ```
#[derive(Clone)]
pub struct Provisioner(Arc<ProvisionState>);

/// A provisioned path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provisioned {
    cookie: u64,
    path: Arc<Path>,
}

impl Provisioned {
    /// Returns the cookie of its entries.
    pub fn cookie(&self) -> u64 {
        self.cookie
    }

    /// Returns the path that packets follow.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Counters and current numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProvisionCounts {
    /// Paths that are installed or being set up.
    pub paths: usize,
    /// Jobs that wait or are in progress.
    pub jobs: usize,
    /// Paths that were set up or replaced.
    pub provisioned: u64,
    /// Paths that could not be set up.
    pub failed: u64,
    /// Paths that were removed by a caller, or because one of their entries was removed.
    pub removed: u64,
    /// Stale entries that were deleted when their switches joined.
    pub stale_entries: u64,
}

struct ProvisionState {
    config: ProvisionConfig,
    /// Set when the controller starts.
    background: OnceLock<Background>,
    queue: Mutex<Queue>,
    /// The queue has jobs for the program.
    has_jobs: Notify,
    ledger: Mutex<Ledger>,
    /// Notified whenever a switch has been cleaned or has disconnected.
    cleaned: Snapshot<()>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Job>,
    /// Jobs that were requested and are not done.
    asked: usize,
    counts: ProvisionCounts,
}

impl Provisioner {
    /// Creates a provisioner without paths.
    pub fn new(config: ProvisionConfig) -> Self {
        Self(Arc::new(ProvisionState {
            config,
            background: OnceLock::new(),
            queue: Mutex::default(),
            has_jobs: Notify::default(),
            ledger: Mutex::default(),
            cleaned: Snapshot::new(()),
        }))
    }

    /// Sets up a path. The job is accepted at once, and continues even if the future is dropped. Its outcome is then discarded,
    /// which suits a handler that only [releases](Flow::releasing) a packet.
    pub fn provision(&self, flow: Flow) -> Provisioning {
        let (reply, receiver) = oneshot::channel();
        self.0.accept(receiver, Job::set_up(flow, None, reply))
    }

    /// Sets up a path instead of another, which may have the same match. No packet is lost in between. If it fails, the old
    /// path stays. If the old path was removed, this is equivalent to [`Provisioner::provision`].
    pub fn replace(&self, old: &Provisioned, flow: Flow) -> Provisioning {
        let (reply, receiver) = oneshot::channel();
        self.0
            .accept(receiver, Job::set_up(flow, Some(old.cookie), reply))
    }

    /// Removes a path. Removing one twice is not an error.
    ///
    /// On a disconnected switch, its entry is deleted when the switch joins again.
    pub fn remove(&self, provisioned: &Provisioned) -> Removing {
        let (reply, receiver) = oneshot::channel();
        self.0
            .accept(receiver, Job::remove(provisioned.cookie, reply))
    }

    /// Returns whether a path is installed, that is, provisioned and neither removed nor expired.
    pub fn is_live(&self, provisioned: &Provisioned) -> bool {
        self.0.ledger().is_live(provisioned.cookie)
    }

    /// Returns the counters.
    pub fn counts(&self) -> ProvisionCounts {
        let paths = self.0.ledger().live_paths();
        let queue = self.0.queue();
        ProvisionCounts {
            paths,
            jobs: queue.asked,
            ..queue.counts
        }
    }
}

/// The outcome of a job, as a future.
#[must_use = "the job continues without it, but its result is lost"]
pub struct Outcome<T>(Result<oneshot::Receiver<Result<T, ProvisionError>>, ProvisionError>);

/// A path being set up: see [`Provisioner::provision`].
pub type Provisioning = Outcome<Provisioned>;

/// A path being removed: see [`Provisioner::remove`].
pub type Removing = Outcome<()>;

impl<T> Future for Outcome<T> {
    type Output = Result<T, ProvisionError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let outcome = match &mut self.0 {
            Ok(receiver) => ready!(Pin::new(receiver).poll(context)),
            Err(error) => return Poll::Ready(Err(error.clone())),
        };
        Poll::Ready(outcome.unwrap_or(Err(ProvisionError::NotRunning)))
    }
}

impl Program for Provisioner {
    fn check(&self) -> Result<(), SettingError> {
        let config = &self.0.config;
        expect_time("ProvisionConfig::timeout", config.timeout)?;
        expect_some("ProvisionConfig::max_jobs", config.max_jobs)?;
        expect_some("ProvisionConfig::max_flows", config.max_flows)
    }

    fn handler(&self, info: &SwitchInfo) -> Box<dyn SwitchHandler> {
        self.0.ledger().mark_unclean(info.datapath_id);
        Box::new(Handler(Arc::clone(&self.0)))
    }

    fn start(&self, background: &Background) {
        // A second controller would have other switches; the first one keeps it.
        if self.0.background.set(background.clone()).is_ok() {
            let worker = job::Worker::new(Arc::clone(&self.0), background.clone());
            background.spawn("provision", run(Arc::clone(&self.0), worker));
        }
    }

    fn stage(&self) -> Stage {
        Stage::Observe
    }
}

/// Works on all jobs concurrently. Each continues when the event that it waits for has happened.
async fn run(shared: Arc<ProvisionState>, worker: job::Worker) {
    let mut jobs = FuturesUnordered::new();
    poll_fn(|context| {
        while shared.has_jobs.poll_notified(context).is_ready() {
            jobs.extend(shared.take_jobs().into_iter().map(|job| worker.work(job)));
        }
        while let Poll::Ready(Some(())) = jobs.poll_next_unpin(context) {}
        Poll::<()>::Pending
    })
    .await;
}

impl ProvisionState {
    /// Accepts a requested job if the number of jobs is below the limit.
    fn accept<T>(
        &self,
        receiver: oneshot::Receiver<Result<T, ProvisionError>>,
        job: Job,
    ) -> Outcome<T> {
        if urtica_state::in_transaction() {
            return Outcome(Err(ProvisionError::InTransaction));
        }
        if self.background.get().is_none() {
            return Outcome(Err(ProvisionError::NotRunning));
        }
        let max_jobs = self.config.max_jobs;
        let mut queue = self.queue();
        if queue.asked >= max_jobs {
            return Outcome(Err(ProvisionError::TooManyJobs { max_jobs }));
        }
        queue.asked += 1;
        queue.waiting.push_back(job);
        drop(queue);
        self.has_jobs.notify();
        Outcome(Ok(receiver))
    }

    /// Adds a job that was not requested by a user.
    fn push(&self, job: Job) {
        self.queue().waiting.push_back(job);
        self.has_jobs.notify();
    }

    fn take_jobs(&self) -> VecDeque<Job> {
        std::mem::take(&mut self.queue().waiting)
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock()
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock()
    }
}

/// The handler of one switch: reports the switch's events to the program.
struct Handler(Arc<ProvisionState>);

impl SwitchHandler for Handler {
    fn switch_up(&mut self, switch: &mut Switch) {
        self.0.request_cleaning(switch.datapath_id());
    }

    fn flow_removed(&mut self, switch: &mut Switch, removed: &FlowRemoved) {
        if is_provisioned(removed.cookie) {
            switch.consume();
            self.0
                .lose_entry(switch.datapath_id(), removed.cookie & OWN_COOKIE_BITS);
        }
    }

    fn switch_down(&mut self, info: &SwitchInfo) {
        self.0.switch_left(info.datapath_id);
    }
}

impl ProvisionState {
    fn switch_left(&self, switch: DatapathId) {
        let mut ledger = self.ledger();
        ledger.switch_left(switch);
        // If a newer connection has this datapath id, the switch is being cleaned already.
        let network = self.background.get().map(Background::network);
        if network.is_none_or(|network| network.info(switch).is_none()) {
            ledger.forget_switch(switch);
        }
        drop(ledger);
        self.cleaned.publish(());
    }

    /// Requests that a switch is compared with its expected entries; several requests at a time count as one.
    fn request_cleaning(&self, switch: DatapathId) {
        let is_asked_first = self.ledger().request_cleaning(switch);
        if is_asked_first {
            self.push(Job::Clean(switch));
        }
    }

    /// Handles a switch's report that an entry was removed: removes its path, if it includes this switch.
    fn lose_entry(&self, switch: DatapathId, cookie: u64) {
        let is_half = self.ledger().lose_entry(switch, cookie);
        if is_half {
            self.take_down(cookie);
        }
    }

    /// Removes a path that is no longer complete: once, even if several entries are reported.
    fn take_down(&self, cookie: u64) {
        let removal = self.ledger().begin_removal(cookie);
        if let Ok(Some(entries)) = removal {
            self.push(Job::TakeDown { cookie, entries });
        }
    }
}
