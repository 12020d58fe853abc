//! Background programs on their own threads.

use super::clock::Clock;
use super::task::{Run, STALL, Task, drop_contained, poll_contained};
use crate::counters::{BackgroundCounters, is_worth_logging};
use crate::watch::{Watch, join_other};
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

/// The time that a stopping controller waits for running programs.
const PATIENCE: Duration = Duration::from_secs(2);

/// The interval at which a held program checks whether it is released.
const HELD_INTERVAL: Duration = Duration::from_millis(1);

/// All programs of a controller, and the thread that drives their clock.
pub(crate) struct Threads {
    clock: Arc<Clock>,
    running: Mutex<Vec<Running>>,
    keeper: Mutex<Option<JoinHandle<()>>>,
    stopping: AtomicBool,
    pub counters: BackgroundCounters,
}

/// A program and its thread.
struct Running {
    program: Arc<Program>,
    thread: JoinHandle<()>,
}

/// The state of a program, as seen from other threads.
struct Program {
    name: String,
    run: Arc<Run>,
    poll: Mutex<PollState>,
}

#[derive(Default)]
struct PollState {
    /// The time when its current poll started; `None` while it waits.
    since: Option<Instant>,
    /// Whether this stall has been counted.
    is_counted: bool,
    /// The number of stalls.
    stalls: u64,
}

impl Threads {
    /// Starts the clock.
    pub fn start(
        clock: Arc<Clock>,
        counters: BackgroundCounters,
        watch: &Arc<Watch>,
    ) -> io::Result<Arc<Self>> {
        let threads = Arc::new(Self {
            clock,
            running: Mutex::default(),
            keeper: Mutex::default(),
            stopping: AtomicBool::new(false),
            counters,
        });
        let keeper = Arc::clone(&threads);
        let keeper = watch.spawn("clock".into(), move || {
            keeper.keep_clock();
            Ok(())
        })?;
        *threads.keeper.lock() = Some(keeper);
        Ok(threads)
    }

    /// Runs a program on its own thread.
    pub fn spawn(self: &Arc<Self>, name: &str, task: Task, run: &Arc<Run>) {
        let program = Arc::new(Program {
            name: name.to_owned(),
            run: Arc::clone(run),
            poll: Mutex::default(),
        });
        let (threads, known) = (Arc::clone(self), Arc::clone(&program));
        let thread = thread::Builder::new()
            // Thread names must not contain NUL.
            .name(name.replace('\0', " "))
            .spawn(move || threads.run(&known, task));
        match thread {
            Ok(thread) => {
                let mut running = self.running.lock();
                running.retain(|other| !other.thread.is_finished());
                running.push(Running { program, thread });
            }
            Err(error) => {
                self.counters.add_panic();
                urtica_log::error!(about: name, program = name, %error, "cannot start a thread for a background program; the program does not run");
            }
        }
    }

    /// Stops in order: programs that wait are dropped; running ones get [`PATIENCE`] to wait or end.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.clock.interrupt();
        if let Some(keeper) = self.keeper.lock().take() {
            join_other(keeper);
        }
        wait_for(&std::mem::take(&mut *self.running.lock()));
    }

    /// Drops the programs of this run, which is over, as [`Threads::stop`] does.
    pub fn end(&self, run: &Arc<Run>) {
        let mut running = self.running.lock();
        let all = std::mem::take(&mut *running).into_iter();
        let (ended, left): (Vec<_>, _) =
            all.partition(|other| Arc::ptr_eq(&other.program.run, run));
        *running = left;
        drop(running);
        wait_for(&ended);
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    fn run(&self, program: &Program, mut task: Task) {
        let unparker = Arc::new(Unparker {
            thread: thread::current(),
            is_woken: AtomicBool::new(false),
        });
        let waker = Waker::from(Arc::clone(&unparker));
        let mut context = Context::from_waker(&waker);
        let is_over = || self.is_stopping() || program.run.is_over();
        while program.run.is_held() && !is_over() {
            thread::park_timeout(HELD_INTERVAL);
        }
        while !is_over() {
            program.begin_poll();
            let polled = poll_contained(&mut task, &mut context);
            program.end_poll();
            match polled {
                Ok(Poll::Pending) => unparker.wait(is_over),
                Ok(Poll::Ready(())) => break,
                Err(reason) => {
                    self.counters.note_panic(&program.name, &reason);
                    break;
                }
            }
        }
        drop_contained(&program.name, task, &self.counters);
    }

    fn keep_clock(&self) {
        while !self.is_stopping() {
            self.clock.wait(STALL / 4);
            self.clock.fire();
            for running in self.running.lock().iter() {
                running.program.note_stall(&self.counters);
            }
        }
    }
}

/// Ends the threads of dropped programs, and waits for them for at most [`PATIENCE`].
fn wait_for(running: &[Running]) {
    for program in running {
        program.thread.thread().unpark();
    }
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline && running.iter().any(|program| !program.thread.is_finished()) {
        thread::sleep(Duration::from_millis(1));
    }
    for program in running
        .iter()
        .filter(|program| !program.thread.is_finished())
    {
        tracing::warn!(
            program = program.program.name,
            "a background program does not end; abandoning it"
        );
    }
}

impl Program {
    fn begin_poll(&self) {
        let mut poll = self.poll.lock();
        poll.since = Some(Instant::now());
        poll.is_counted = false;
    }

    fn end_poll(&self) {
        self.poll.lock().since = None;
    }

    /// Counts a stall once, and logs it: ever more rarely, since a program may block on files and sockets by design.
    fn note_stall(&self, counters: &BackgroundCounters) {
        let Some((ran_for, count)) = self.stalled() else {
            return;
        };
        counters.add_stall();
        if is_worth_logging(count) {
            tracing::warn!(
                program = self.name,
                ?ran_for,
                count,
                "a background program has run for a long time without waiting; others are not affected"
            );
        }
    }

    /// Counts the current poll if it is a stall that has not been counted. Returns its duration so far, and the number of
    /// stalls.
    fn stalled(&self) -> Option<(Duration, u64)> {
        let mut poll = self.poll.lock();
        let ran_for = poll.since?.elapsed();
        if ran_for < STALL || poll.is_counted {
            return None;
        }
        poll.is_counted = true;
        poll.stalls += 1;
        Some((ran_for, poll.stalls))
    }
}

/// The waker of a program: unparks its thread.
struct Unparker {
    thread: Thread,
    is_woken: AtomicBool,
}

impl Unparker {
    fn wait(&self, or: impl Fn() -> bool) {
        while !self.is_woken.swap(false, Ordering::AcqRel) && !or() {
            thread::park();
        }
    }
}

impl Wake for Unparker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}
