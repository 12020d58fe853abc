//! Flow paths across switches, set up in an order that no packet suffers from (McNettle Figure 2, "Flow Path
//! Provisioning").
//!
//! **What.** [`Provisioner`] puts an entry for a flow into every switch of a path, or into none.
//!
//! **How.** A background program installs from the egress switch to the ingress switch. Each entry is followed by a barrier, and
//! the next switch follows when the barrier is answered. So a packet that comes in at the ingress switch and meets
//! an entry there meets one at every later switch; and where one path [replaces](Provisioner::replace) another, every
//! packet takes, from any switch on, either the old way or the new one to the end. Removal begins at the ingress switch.
//!
//! Where a switch refuses its entry, does not confirm it in time, or leaves before the last confirmation, everything is
//! taken back, from the ingress switch on, and [`ProvisionError`] names the switch and the reason.
//!
//! **Cookies.** The top 16 of the bits that are a program's own are [`COOKIE_TAG`]; the others number paths from 1 on. When a
//! switch joins, its entries with this tag are asked for and compared with what should be there: those of paths that are gone, or of an earlier
//! run of the controller, are deleted one by one, and permanent entries that are missing, as on a switch that was
//! restarted, are installed again. Until that is done, provisioning waits for the switch. So a switch that leaves takes
//! nothing with it that would stay for ever.
//!
//! **Paths that expire.** Entries with a time-out ask for word when they go. The first that goes takes its path along:
//! half a path is never left. Only a switch that a path is on is believed, and only once.
//!
//! **Cost.** A path of *n* switches takes *n* round trips. Jobs wait for different switches at once; at most
//! [`ProvisionConfig::max_jobs`] are accepted before some are done. A path that is there costs about 500 bytes a switch.
//!
//! **Thread-safety.** [`Provisioner`] is cheap to clone and may be used from anywhere, handlers included: jobs go to the
//! program through a queue. One lock guards the ledger and one the queue; neither is held while the other is taken.

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

/// What is in the cookie of every entry that a [`Provisioner`] installs, right below the bits of the framework: `ur` in ASCII.
pub const COOKIE_TAG: u64 = 0x7572 << 40;

/// The bits of a cookie that [`COOKIE_TAG`] is in.
pub const COOKIE_TAG_MASK: u64 = 0xffff << 40;

/// Whether a cookie is one of a [`Provisioner`]'s, which deletes entries that have such a cookie and belong to none of its
/// paths. A program that chooses cookies of its own takes care that this is `false` for them.
pub const fn is_provisioned(cookie: u64) -> bool {
    // 1.0 has all ones where there is no cookie; they have another tag.
    cookie & COOKIE_TAG_MASK == COOKIE_TAG
}

/// How a [`Provisioner`] works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProvisionConfig {
    /// How long a switch has to confirm an entry. 5 s.
    pub timeout: Duration,
    /// How many jobs may wait or be worked on. 4096.
    pub max_jobs: usize,
    /// How many paths there may be. 1,000,000.
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

/// Sets up and removes flow paths across switches. See the module.
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
/// /// A background program's part: the path is there when this returns.
/// async fn connect(provisioner: &Provisioner, path: Path, match_: Match<'static>) {
///     match provisioner.provision(Flow::new(path, match_)).await {
///         Ok(provisioned) => println!("path {:#x} is there", provisioned.cookie()),
///         Err(error) => println!("{error}"),
///     }
/// }
/// ```
#[derive(Clone)]
pub struct Provisioner(Arc<Shared>);

/// A path that was provisioned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provisioned {
    cookie: u64,
    path: Arc<Path>,
}

impl Provisioned {
    /// The cookie of its entries.
    pub fn cookie(&self) -> u64 {
        self.cookie
    }

    /// The way that packets take.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// What happened so far, and what is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProvisionCounts {
    /// Paths that are there, or on their way.
    pub paths: usize,
    /// Jobs that wait or are worked on.
    pub jobs: usize,
    /// Paths that were set up or replaced.
    pub provisioned: u64,
    /// Paths that could not be.
    pub failed: u64,
    /// Paths that were removed, or went because an entry of theirs did.
    pub removed: u64,
    /// Old entries that were deleted when their switches joined.
    pub stale_entries: u64,
}

struct Shared {
    config: ProvisionConfig,
    /// Set when the controller starts.
    background: OnceLock<Background>,
    queue: Mutex<Queue>,
    /// There are jobs in the queue for the program.
    has_jobs: Notify,
    ledger: Mutex<Ledger>,
    /// Told whenever a switch has been cleaned, or has left. Who waits for that leaves nothing behind.
    cleaned: Snapshot<()>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Job>,
    /// Jobs that somebody asked for and that are not done.
    asked: usize,
    counts: ProvisionCounts,
}

impl Provisioner {
    /// A provisioner that has nothing to do yet.
    pub fn new(config: ProvisionConfig) -> Self {
        Self(Arc::new(Shared {
            config,
            background: OnceLock::new(),
            queue: Mutex::default(),
            has_jobs: Notify::default(),
            ledger: Mutex::default(),
            cleaned: Snapshot::new(()),
        }))
    }

    /// Sets up a path. The work is accepted at once, and goes on if the future is dropped: then nobody hears how it
    /// ended, which is what a handler wants that only [releases](Flow::releasing) a packet.
    pub fn provision(&self, flow: Flow) -> Provisioning {
        let (reply, receiver) = oneshot::channel();
        self.0.accept(receiver, Job::set_up(flow, None, reply))
    }

    /// Sets up a path in place of another, which may have the same match: no packet is lost on the way from one to the
    /// other. If that fails, the old path is there as before. If the old path is gone, this is
    /// [`Provisioner::provision`].
    pub fn replace(&self, old: &Provisioned, flow: Flow) -> Provisioning {
        let (reply, receiver) = oneshot::channel();
        self.0
            .accept(receiver, Job::set_up(flow, Some(old.cookie), reply))
    }

    /// Removes a path. One that is gone is no error.
    ///
    /// On a switch that is not there, its entry goes when the switch returns.
    pub fn remove(&self, provisioned: &Provisioned) -> Removing {
        let (reply, receiver) = oneshot::channel();
        self.0
            .accept(receiver, Job::remove(provisioned.cookie, reply))
    }

    /// Whether a path is there: provisioned, and neither removed nor expired.
    pub fn is_live(&self, provisioned: &Provisioned) -> bool {
        self.0.ledger().is_live(provisioned.cookie)
    }

    /// What happened so far.
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

/// The outcome of a job, on its way: await it.
#[must_use = "the work goes on without it, but nobody hears how it ends"]
pub struct Outcome<T>(Result<oneshot::Receiver<Result<T, ProvisionError>>, ProvisionError>);

/// A path on its way: see [`Provisioner::provision`].
pub type Provisioning = Outcome<Provisioned>;

/// A path on its way out: see [`Provisioner::remove`].
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
        // A second controller would have switches of its own; the first keeps it.
        if self.0.background.set(background.clone()).is_ok() {
            let worker = job::Worker::new(Arc::clone(&self.0), background.clone());
            background.spawn("provision", run(Arc::clone(&self.0), worker));
        }
    }

    fn stage(&self) -> Stage {
        Stage::Observe
    }
}

/// Works on all jobs at once, each going on when what it waits for is there.
async fn run(shared: Arc<Shared>, worker: job::Worker) {
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

impl Shared {
    /// Accepts a job that somebody asked for, if there is room.
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

    /// Puts a job in that nobody asked for.
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

/// One switch's part: tells the program of what happens there.
struct Handler(Arc<Shared>);

impl SwitchHandler for Handler {
    fn switch_up(&mut self, switch: &mut Switch) {
        self.0.ask_to_clean(switch.datapath_id());
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

impl Shared {
    fn switch_left(&self, switch: DatapathId) {
        let mut ledger = self.ledger();
        ledger.switch_left(switch);
        // Where a newer connection has the datapath id, the switch is being cleaned already.
        let network = self.background.get().map(Background::network);
        if network.is_none_or(|network| network.info(switch).is_none()) {
            ledger.forget_switch(switch);
        }
        drop(ledger);
        self.cleaned.publish(());
    }

    /// Has a switch compared with what it should have, once where that is asked for several times.
    fn ask_to_clean(&self, switch: DatapathId) {
        let is_asked_first = self.ledger().ask_to_clean(switch);
        if is_asked_first {
            self.push(Job::Clean(switch));
        }
    }

    /// A switch says that an entry is gone: its path goes, too, if there is one that the switch is on.
    fn lose_entry(&self, switch: DatapathId, cookie: u64) {
        let is_half = self.ledger().lose_entry(switch, cookie);
        if is_half {
            self.take_down(cookie);
        }
    }

    /// Has a path removed that is there no more as a whole: once, however often that is said.
    fn take_down(&self, cookie: u64) {
        let removal = self.ledger().begin_removal(cookie);
        if let Ok(Some(entries)) = removal {
            self.push(Job::TakeDown { cookie, entries });
        }
    }
}
