//! Background programs that run interleaved on the thread that drives an embedded controller.

use super::clock::Clock;
use super::task::{Run, Task, drop_contained, poll_contained};
use crate::counters::BackgroundCounters;
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// The programs of an embedded controller.
///
/// The queue is their only owner, since a waker has no more than its program's number. So [`TaskQueue::stop`] drops them all,
/// although programs refer to the queue, and the clock to their wakers.
pub(crate) struct TaskQueue {
    pub clock: Arc<Clock>,
    programs: Mutex<Programs>,
    ready: Arc<Ready>,
    pub counters: BackgroundCounters,
}

#[derive(Default)]
struct Programs {
    by_number: BTreeMap<u64, Program>,
    last_number: u64,
    is_stopped: bool,
}

struct Program {
    name: String,
    /// `None` while the program runs.
    task: Option<Task>,
    waker: Arc<ProgramWaker>,
    run: Arc<Run>,
}

/// The numbers of programs that can run, in the order in which they were woken.
type Ready = Mutex<VecDeque<u64>>;

impl TaskQueue {
    pub fn new(clock: Arc<Clock>, counters: BackgroundCounters) -> Self {
        Self {
            clock,
            programs: Mutex::default(),
            ready: Arc::default(),
            counters,
        }
    }

    /// Adds a program; it is first polled when the queue is run next. After [`TaskQueue::stop`], or the end of its run, it is dropped
    /// instead.
    pub fn spawn(&self, name: &str, task: Task, run: &Arc<Run>) {
        let mut programs = self.programs.lock();
        if programs.is_stopped || run.is_over() {
            drop(programs);
            return drop_contained(name, task, &self.counters);
        }
        programs.last_number += 1;
        let number = programs.last_number;
        let waker = Arc::new(ProgramWaker {
            number,
            is_queued: AtomicBool::new(false),
            ready: Arc::clone(&self.ready),
        });
        let program = Program {
            name: name.to_owned(),
            task: Some(task),
            waker: Arc::clone(&waker),
            run: Arc::clone(run),
        };
        programs.by_number.insert(number, program);
        drop(programs);
        waker.wake();
    }

    /// Polls programs until all wait, or `polls` is used up: it is decremented by one for each.
    pub fn run(&self, polls: &mut usize) {
        self.clock.fire();
        while *polls > 0 {
            let Some(number) = self.ready.lock().pop_front() else {
                return;
            };
            *polls -= 1;
            self.poll(number);
        }
    }

    /// Returns `true` if all programs wait.
    pub fn is_idle(&self) -> bool {
        self.ready.lock().is_empty()
    }

    /// Drops all programs, and any that are added later.
    pub fn stop(&self) {
        let mut programs = self.programs.lock();
        programs.is_stopped = true;
        let all = std::mem::take(&mut programs.by_number);
        drop(programs);
        self.drop_all(all);
    }

    /// Drops the programs of this run, which is over.
    pub fn end(&self, run: &Arc<Run>) {
        let mut programs = self.programs.lock();
        let all = std::mem::take(&mut programs.by_number).into_iter();
        let (ended, left) = all.partition(|(_, program)| Arc::ptr_eq(&program.run, run));
        programs.by_number = left;
        drop(programs);
        self.drop_all(ended);
    }

    fn drop_all(&self, programs: BTreeMap<u64, Program>) {
        for program in programs.into_values() {
            if let Some(task) = program.task {
                drop_contained(&program.name, task, &self.counters);
            }
        }
    }

    fn poll(&self, number: u64) {
        let Some((mut task, waker)) = self.take_out(number) else {
            return;
        };
        waker.is_queued.store(false, Ordering::Release);
        let waker = Waker::from(waker);
        let mut context = Context::from_waker(&waker);
        let polled = poll_contained(&mut task, &mut context);
        if matches!(polled, Ok(Poll::Pending)) {
            return self.put_back(number, task);
        }
        let program = self.programs.lock().by_number.remove(&number);
        let name = program.map_or_else(String::new, |program| program.name);
        if let Err(reason) = polled {
            self.counters.note_panic(&name, &reason);
        }
        drop_contained(&name, task, &self.counters);
    }

    fn take_out(&self, number: u64) -> Option<(Task, Arc<ProgramWaker>)> {
        let mut programs = self.programs.lock();
        let program = programs.by_number.get_mut(&number)?;
        Some((program.task.take()?, Arc::clone(&program.waker)))
    }

    /// Stores a program that waits again.
    fn put_back(&self, number: u64, task: Task) {
        if let Some(program) = self.programs.lock().by_number.get_mut(&number) {
            program.task = Some(task);
        }
    }
}

/// The waker of a program.
struct ProgramWaker {
    number: u64,
    is_queued: AtomicBool,
    /// The queue for woken programs.
    ready: Arc<Ready>,
}

impl Wake for ProgramWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_queued.swap(true, Ordering::AcqRel) {
            self.ready.lock().push_back(self.number);
        }
    }
}
