//! Programs that run beside the handlers (McNettle section 4, "background or asynchronous threads").
//!
//! **What.** A background program is a future. It shares state with handlers, sends to any switch through
//! [`Background::network`], awaits replies and timers, and may use files and sockets.
//!
//! **How.** In a controller with threads of its own, each program has one: it may block there without holding up anybody
//! else. In an [embedded](crate::Embedded) controller, programs run interleaved on the thread of whoever drives it, in the
//! order in which they were woken, so that a run can be repeated exactly; one that blocks there blocks everything.
//!
//! **Containment.** A program that panics is logged, counted and dropped; everything else goes on. One that has not returned
//! from a poll for [`STALL`] is logged. When the controller stops, programs that wait are dropped where they wait,
//! before handlers are told that their switches are gone.
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

/// Stands for deadlines beyond what an [`Instant`] can express.
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// Starts background programs, and gives them what they need: the network, the time, timers.
///
/// Cheap to clone; each program takes a clone along.
///
/// ```
/// use std::time::Duration;
/// use urtica_controller::Background;
///
/// /// Prints every ten seconds how many switches there are.
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
    /// Of the program for which it was made.
    run: Arc<Run>,
}

/// What runs the programs.
#[derive(Clone)]
enum Spawner {
    Threads(Arc<Threads>),
    Queue(Arc<TaskQueue>),
}

/// Spawns background programs that have no handlers.
pub(crate) type Starter = Box<dyn FnOnce(&Background) + Send>;

impl Background {
    /// For a controller with threads: each program gets one.
    pub(crate) fn on_threads(
        network: Network,
        watch: &Arc<Watch>,
    ) -> std::io::Result<(Self, Arc<Threads>)> {
        let clock = Arc::new(Clock::real());
        let threads = Threads::start(Arc::clone(&clock), watch)?;
        let background = Self {
            network,
            clock,
            spawner: Spawner::Threads(Arc::clone(&threads)),
            run: Arc::default(),
        };
        Ok((background, threads))
    }

    /// For an embedded controller: programs run when the queue is run.
    pub(crate) fn on_queue(network: Network, now: Instant) -> (Self, Arc<TaskQueue>) {
        let clock = Arc::new(Clock::simulated(now));
        let queue = Arc::new(TaskQueue::new(Arc::clone(&clock)));
        let background = Self {
            network,
            clock,
            spawner: Spawner::Queue(Arc::clone(&queue)),
            run: Arc::default(),
        };
        (background, queue)
    }

    /// The same for a program with this network and stage, which can [end](Background::end) alone: see [`Network::for_stage`].
    pub(crate) fn for_program(&self, network: &Network, stage: Stage) -> Self {
        Self {
            network: network.for_stage(stage),
            run: Arc::default(),
            ..self.clone()
        }
    }

    /// The same, where what is spawned waits until it is [released](Background::release).
    pub(crate) fn held_for_program(&self, network: &Network, stage: Stage) -> Self {
        Self {
            run: Arc::new(Run::held()),
            ..self.for_program(network, stage)
        }
    }

    /// Has what was spawned begin. In an embedded controller nothing does before that controller is polled.
    pub(crate) fn release(&self) {
        self.run.release();
    }

    /// Drops what was spawned through it and its clones, where it waits, and starts nothing any more.
    pub(crate) fn end(&self) {
        self.run.end();
        match &self.spawner {
            Spawner::Threads(threads) => threads.end(&self.run),
            Spawner::Queue(queue) => queue.end(&self.run),
        }
    }

    /// Starts a program. `name` is for logs, and the name of its thread.
    ///
    /// It ends when its future does, when its [`Program`](crate::Program) is [removed](crate::Running::set_programs), or when the
    /// controller stops: then it is dropped where it waits. Inside a transaction,
    /// which may run again or be aborted, it is not started; that is logged, and counted as a panic.
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

    /// The connected switches.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// What is counted of all background programs.
    pub fn counters(&self) -> &BackgroundCounters {
        match &self.spawner {
            Spawner::Threads(threads) => &threads.counters,
            Spawner::Queue(queue) => &queue.counters,
        }
    }

    /// The current time; simulated in a simulated network.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Waits for this long.
    pub fn sleep(&self, duration: Duration) -> Sleep {
        let now = self.now();
        self.sleep_until(now.checked_add(duration).unwrap_or(now + FOR_EVER))
    }

    /// Waits until this time; resolves at once if it has passed.
    pub fn sleep_until(&self, deadline: Instant) -> Sleep {
        Sleep::new(Arc::clone(&self.clock), deadline)
    }

    /// Awaits `future` for at most `duration`; `None` if it did not resolve by then.
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
