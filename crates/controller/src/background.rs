//! Programs that run in parallel to the handlers (McNettle section 4, "background or asynchronous threads").
//!
//! **What.** A background program is a future. It shares state with handlers, sends to any switch through
//! [`Background::network`], awaits replies and timers, and may use files and sockets.
//!
//! **How.** In a controller with threads, each program has its own: it may block without delaying others. In an
//! [embedded](crate::Embedded) controller, programs run interleaved on the caller's thread, in the order in which they were
//! woken, so that a run can be repeated exactly; one that blocks there blocks everything.
//!
//! **Containment.** A program that panics is logged, counted and dropped; everything else keeps running. One that has not
//! returned from a poll for [`STALL`] is logged. When the controller stops, waiting programs are dropped, before handlers
//! are notified that their switches are gone.
//!
//! **Thread-safety.** Everything here may be used from any thread. No lock is held while a program runs.

mod clock;
mod queue;
mod task;
mod threads;

pub use clock::Sleep;
pub(crate) use queue::TaskQueue;
pub use task::STALL;
pub(crate) use threads::Threads;

use crate::watch::Watch;
use crate::{BackgroundCounters, Network, Stage};
use clock::Clock;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};
use task::{Run, Task};

/// The substitute for deadlines beyond the range of an [`Instant`].
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// Starts background programs, and provides the network, the time, and timers.
///
/// Cheap to clone; each program gets a clone.
///
/// ```
/// use std::time::Duration;
/// use urtica_controller::Background;
///
/// /// Prints the number of switches every ten seconds.
/// async fn census(background: Background) {
///     loop {
///         background.sleep(Duration::from_secs(10)).await;
///         println!("{} switches", background.network().switches().len());
///     }
/// }
/// ```
#[derive(Clone)]
pub struct Background {
    network: Network,
    clock: Arc<Clock>,
    spawner: Spawner,
    /// The run of the program that this clone was created for.
    run: Arc<Run>,
}

/// The executor of the programs.
#[derive(Clone)]
enum Spawner {
    Threads(Arc<Threads>),
    Queue(Arc<TaskQueue>),
}

/// Spawns background programs that have no handlers.
pub(crate) type Starter = Box<dyn FnOnce(&Background) + Send>;

impl Background {
    /// Creates a `Background` for a controller with threads, in which each program has its own.
    pub(crate) fn on_threads(
        network: Network,
        watch: &Arc<Watch>,
    ) -> std::io::Result<(Self, Arc<Threads>)> {
        let clock = Arc::new(Clock::real());
        let counters = BackgroundCounters::new(network.panic_log());
        let threads = Threads::start(Arc::clone(&clock), counters, watch)?;
        let background = Self {
            network,
            clock,
            spawner: Spawner::Threads(Arc::clone(&threads)),
            run: Arc::default(),
        };
        Ok((background, threads))
    }

    /// Creates a `Background` for an embedded controller, whose programs run when the queue does.
    pub(crate) fn on_queue(network: Network, now: Instant) -> (Self, Arc<TaskQueue>) {
        let clock = Arc::new(Clock::simulated(now));
        let counters = BackgroundCounters::new(network.panic_log());
        let queue = Arc::new(TaskQueue::new(Arc::clone(&clock), counters));
        let background = Self {
            network,
            clock,
            spawner: Spawner::Queue(Arc::clone(&queue)),
            run: Arc::default(),
        };
        (background, queue)
    }

    /// Returns a clone for a program with this network and stage, which can be [ended](Background::end) separately: see
    /// [`Network::for_stage`].
    pub(crate) fn for_program(&self, network: &Network, stage: Stage) -> Self {
        Self {
            network: network.for_stage(stage),
            run: Arc::default(),
            ..self.clone()
        }
    }

    /// Like `for_program`, but its programs do not start until they are [released](Background::release).
    pub(crate) fn held_for_program(&self, network: &Network, stage: Stage) -> Self {
        Self {
            run: Arc::new(Run::held()),
            ..self.for_program(network, stage)
        }
    }

    /// Starts spawned programs. In an embedded controller they run when the controller is polled next.
    pub(crate) fn release(&self) {
        self.run.release();
    }

    /// Drops all programs spawned through it and its clones, and starts no more.
    pub(crate) fn end(&self) {
        self.run.end();
        match &self.spawner {
            Spawner::Threads(threads) => threads.end(&self.run),
            Spawner::Queue(queue) => queue.end(&self.run),
        }
    }

    /// Starts a program. `name` is used in logs, and is the name of its thread.
    ///
    /// It ends when its future does, when its [`Program`](crate::Program) is [removed](crate::Running::set_programs), or
    /// when the controller stops: then it is dropped at its next wait. Inside a transaction, which may run again or be
    /// aborted, it is not started; that is logged, and counted as a panic.
    pub fn spawn(&self, name: &str, program: impl Future<Output = ()> + Send + 'static) {
        if urtica_state::in_transaction() {
            return self.refuse(name);
        }
        let task: Task = Box::pin(program);
        match &self.spawner {
            Spawner::Threads(threads) => threads.spawn(name, task, &self.run),
            Spawner::Queue(queue) => queue.spawn(name, task, &self.run),
        }
    }

    fn refuse(&self, name: &str) {
        self.counters().add_panic();
        urtica_log::error!(
            about: name,
            program = name,
            "a background program cannot be started inside a transaction, which may run again or be aborted; start it afterwards"
        );
    }

    /// Returns the connected switches.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Returns the counters of all background programs.
    pub fn counters(&self) -> &BackgroundCounters {
        match &self.spawner {
            Spawner::Threads(threads) => &threads.counters,
            Spawner::Queue(queue) => &queue.counters,
        }
    }

    /// Returns the current time; simulated in a simulated network.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Waits for `duration`.
    pub fn sleep(&self, duration: Duration) -> Sleep {
        let now = self.now();
        self.sleep_until(now.checked_add(duration).unwrap_or(now + FOR_EVER))
    }

    /// Waits until `deadline`; resolves at once if it has passed.
    pub fn sleep_until(&self, deadline: Instant) -> Sleep {
        Sleep::new(Arc::clone(&self.clock), deadline)
    }

    /// Awaits `future` for at most `duration`; returns `None` if it has not resolved by then.
    pub async fn timeout<F: Future>(&self, duration: Duration, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        let mut sleep = self.sleep(duration);
        poll_fn(|context| {
            if let Poll::Ready(output) = future.as_mut().poll(context) {
                return Poll::Ready(Some(output));
            }
            Pin::new(&mut sleep).poll(context).map(|()| None)
        })
        .await
    }
}
