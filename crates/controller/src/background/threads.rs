//! Background programs on threads of their own.

use super::clock::Clock;
use super::task::{STALL, Task, drop_contained, poll_contained};
use crate::counters::{BackgroundCounters, is_worth_telling};
use crate::watch::{Watch, join_other};
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

/// How long a stopping controller waits for programs that are at work.
const PATIENCE: Duration = Duration::from_secs(2);

/// All programs of a controller, and the thread that keeps their clock.
pub(crate) struct Threads {
    clock: Arc<Clock>,
    running: Mutex<Vec<Running>>,
    keeper: Mutex<Option<JoinHandle<()>>>,
    stopping: AtomicBool,
    pub counters: BackgroundCounters,
}

/// A program at work.
struct Running {
    program: Arc<Program>,
    thread: JoinHandle<()>,
}

/// What is known of a program from outside of its thread.
struct Program {
    name: String,
    poll: Mutex<PollState>,
}

#[derive(Default)]
struct PollState {
    /// Since when it has been at work; `None` while it waits.
    since: Option<Instant>,
    /// Whether this stall has been counted.
    is_counted: bool,
    /// How many stalls there were.
    stalls: u64,
}

impl Threads {
    /// Starts the clock.
    pub fn start(clock: Arc<Clock>, watch: &Arc<Watch>) -> io::Result<Arc<Self>> {
        let threads = Arc::new(Self {
            clock,
            running: Mutex::default(),
            keeper: Mutex::default(),
            stopping: AtomicBool::new(false),
            counters: BackgroundCounters::default(),
        });
        let keeper = Arc::clone(&threads);
        let keeper = watch.spawn("clock".into(), move || {
            keeper.keep_clock();
            Ok(())
        })?;
        *threads.keeper.lock() = Some(keeper);
        Ok(threads)
    }

    /// Runs a program on a thread of its own.
    pub fn spawn(self: &Arc<Self>, name: &str, task: Task) {
        let program = Arc::new(Program {
            name: name.to_owned(),
            poll: Mutex::default(),
        });
        let (threads, known) = (Arc::clone(self), Arc::clone(&program));
        let thread = thread::Builder::new()
            // The system ends names there.
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
                urtica_log::error!(about: name, program = name, %error, "the system has no thread for a background program; it does not run");
            }
        }
    }

    /// Stops in order: programs that wait are dropped, those at work have a while to come to an end.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.clock.interrupt();
        if let Some(keeper) = self.keeper.lock().take() {
            join_other(keeper);
        }
        let running = std::mem::take(&mut *self.running.lock());
        for program in &running {
            program.thread.thread().unpark();
        }
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline
            && running.iter().any(|program| !program.thread.is_finished())
        {
            thread::sleep(Duration::from_millis(1));
        }
        for program in running
            .iter()
            .filter(|program| !program.thread.is_finished())
        {
            tracing::warn!(
                program = program.program.name,
                "a background program does not end; it is left to itself"
            );
        }
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    fn run(&self, program: &Program, mut task: Task) {
        let alarm = Arc::new(Alarm {
            thread: thread::current(),
            is_rung: AtomicBool::new(false),
        });
        let waker = Waker::from(Arc::clone(&alarm));
        let mut context = Context::from_waker(&waker);
        while !self.is_stopping() {
            program.begin();
            let polled = poll_contained(&mut task, &mut context);
            program.end();
            match polled {
                Ok(Poll::Pending) => alarm.wait(|| self.is_stopping()),
                Ok(Poll::Ready(())) => break,
                Err(reason) => {
                    self.counters.tell_of_panic(&program.name, &reason);
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
                running.program.tell_of_stall(&self.counters);
            }
        }
    }
}

impl Program {
    fn begin(&self) {
        let mut poll = self.poll.lock();
        poll.since = Some(Instant::now());
        poll.is_counted = false;
    }

    fn end(&self) {
        self.poll.lock().since = None;
    }

    /// Counts it, once, when it has been at work for too long, and tells of it: ever more rarely, since a program that
    /// waits for files and sockets may do so by design.
    fn tell_of_stall(&self, counters: &BackgroundCounters) {
        let Some((worked, count)) = self.stalled() else {
            return;
        };
        counters.add_stall();
        if is_worth_telling(count) {
            tracing::warn!(
                program = self.name,
                ?worked,
                count,
                "a background program has not waited for anything; others go on"
            );
        }
    }

    /// For how long it has been at work and the how-manieth time this is, when it is too long and was not counted yet.
    fn stalled(&self) -> Option<(Duration, u64)> {
        let mut poll = self.poll.lock();
        let worked = poll.since?.elapsed();
        if worked < STALL || poll.is_counted {
            return None;
        }
        poll.is_counted = true;
        poll.stalls += 1;
        Some((worked, poll.stalls))
    }
}

/// Wakes a program's thread.
struct Alarm {
    thread: Thread,
    is_rung: AtomicBool,
}

impl Alarm {
    fn wait(&self, or: impl Fn() -> bool) {
        while !self.is_rung.swap(false, Ordering::AcqRel) && !or() {
            thread::park();
        }
    }
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_rung.store(true, Ordering::Release);
        self.thread.unpark();
    }
}
