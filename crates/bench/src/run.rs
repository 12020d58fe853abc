//! A whole run, which starts the load threads together, collects their reports, and creates the [`Report`].

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use crate::Error;
use crate::config::LoadConfig;
use crate::controller_process::{ControllerProcess, Reading, Usage};
use crate::load::{Outcome, Progress, TestPart, TestRun, Worker};
use crate::patience::LastAnswer;
use crate::recorder::Clock;
use crate::report::{Closed, Ended, Found, Report, Test};
use crate::socket::allow_open_files;

/// An event of a run in progress.
#[non_exhaustive]
pub enum Live<'a> {
    /// The load starts, with this many switches ready.
    Started {
        /// The number of switches that completed their handshake.
        ready: u32,
    },
    /// A test has ended.
    Test(&'a Test),
    /// A connection was closed.
    Closed(&'a Closed),
}

/// Runs a load from connecting to the last reply. Calls `tell` for each event. When `stop` becomes true, it ends with a report
/// of the measurements until then.
///
/// # Errors
/// If settings are invalid, the controller cannot be reached or does not complete a handshake, or the run is stopped before the
/// load starts. A run that loses connections continues with the others, if there are any, and lists them in its report.
pub fn run(
    config: &LoadConfig,
    stop: &AtomicBool,
    mut tell: impl FnMut(Live<'_>),
) -> Result<Report, Error> {
    config.validate()?;
    allow_open_files(config.switches)?;
    let process = config.controller_pid.map(watch).transpose()?;
    let clock = Clock::start();
    let last_answer = &LastAnswer::default();
    let (progress, incoming) = channel();
    thread::scope(|scope| {
        let starts: Vec<Sender<u64>> = shares(config)
            .enumerate()
            .map(|(index, ids)| {
                let (start, started) = channel();
                let progress = progress.clone();
                scope.spawn(move || {
                    let failed = progress.clone();
                    let result = contain(|| {
                        Worker::connect(config, index, ids, clock, last_answer, stop, progress)?
                            .run(&started)
                    });
                    if let Err(error) = result {
                        // If sending fails, the coordinator has given up, and needs no reason.
                        let _ = failed.send(Progress::Failed(error));
                    }
                });
                start
            })
            .collect();
        drop(progress);
        Coordinator::new(config, incoming, process, stop).conduct(starts, clock, &mut tell)
    })
}

/// Runs a load thread's part. Converts a panic, which is a bug, to an error, so that reports are not awaited forever.
fn contain(part: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
    catch_unwind(AssertUnwindSafe(part)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        let text = text.unwrap_or_else(|| "no message".to_owned());
        Err(Error::Invalid(format!(
            "a load thread panicked, so that nothing was measured; this is a bug in the benchmark: {text}"
        )))
    })
}

fn watch(pid: u32) -> Result<ControllerProcess, Error> {
    ControllerProcess::watch(pid).ok_or_else(|| {
        Error::invalid(format!(
            "cannot measure the CPU time of process {pid}, which does not exist on this machine"
        ))
    })
}

/// Returns the datapath ids of the switches of each thread.
fn shares(config: &LoadConfig) -> impl Iterator<Item = std::ops::Range<u64>> {
    let (switches, threads, first) = (
        u64::from(config.switches),
        config.threads as u64,
        config.dpid_offset,
    );
    (0..threads).map(move |thread| {
        first + switches * thread / threads..first + switches * (thread + 1) / threads
    })
}

struct Coordinator<'a> {
    config: &'a LoadConfig,
    incoming: Receiver<Progress>,
    stop: &'a AtomicBool,
    ready: u32,
    trouble: Option<String>,
    process: Option<ControllerProcess>,
    readings: (Option<Reading>, Option<Reading>),
    /// For each test, each thread's part.
    parts: Vec<Vec<Option<TestPart>>>,
    tests: Vec<Test>,
    closed: Vec<Closed>,
    outcomes: Vec<Outcome>,
}

impl<'a> Coordinator<'a> {
    fn new(
        config: &'a LoadConfig,
        incoming: Receiver<Progress>,
        process: Option<ControllerProcess>,
        stop: &'a AtomicBool,
    ) -> Self {
        Self {
            config,
            incoming,
            stop,
            ready: 0,
            trouble: None,
            process,
            readings: (None, None),
            parts: (0..config.tests)
                .map(|_| (0..config.threads).map(|_| None).collect())
                .collect(),
            tests: Vec::new(),
            closed: Vec::new(),
            outcomes: Vec::new(),
        }
    }

    fn conduct(
        mut self,
        starts: Vec<Sender<u64>>,
        clock: Clock,
        tell: &mut dyn FnMut(Live<'_>),
    ) -> Result<Report, Error> {
        self.await_ready(tell)?;
        tell(Live::Started { ready: self.ready });
        let start_ns = clock.now_ns()
            + self.config.delay.as_nanos() as u64
            + Duration::from_millis(5).as_nanos() as u64;
        for start in &starts {
            // A thread that has ended has reported why.
            let _ = start.send(start_ns);
        }
        if self.config.warmup == 0 {
            self.readings.0 = self.read_process();
        }
        while self.outcomes.len() < self.config.threads {
            self.take(tell)?;
        }
        Ok(Report::new(
            self.config,
            Found {
                ended: self.ended(),
                switches_ready: self.ready,
                controller: self.usage(),
                tests: self.tests,
                closed: self.closed,
                outcomes: self.outcomes,
            },
        ))
    }

    fn ended(&self) -> Ended {
        let whole = self.tests.iter().filter(|test| !test.cut_short).count();
        if whole == self.config.tests as usize {
            Ended::Complete
        } else if self.stop.load(Ordering::Relaxed) {
            Ended::Interrupted
        } else {
            Ended::AllClosed
        }
    }

    fn await_ready(&mut self, tell: &mut dyn FnMut(Live<'_>)) -> Result<(), Error> {
        let mut threads = 0;
        while threads < self.config.threads {
            threads += usize::from(self.take(tell)?);
        }
        if self.ready == 0 {
            let address = self.config.controller.to_string();
            let reason = self
                .trouble
                .take()
                .unwrap_or_else(|| "it never sent a features-request".to_owned());
            return Err(Error::Handshake { address, reason });
        }
        Ok(())
    }

    /// Handles a report. Returns `true` if it reports that a thread is ready.
    fn take(&mut self, tell: &mut dyn FnMut(Live<'_>)) -> Result<bool, Error> {
        let Ok(progress) = self.incoming.recv() else {
            return Err(Error::Invalid(
                "a load thread ended without a result".to_owned(),
            ));
        };
        match progress {
            Progress::Ready {
                switches,
                trouble,
                controller,
            } => {
                self.ready += switches;
                self.trouble = self.trouble.take().or(trouble);
                self.process = self.process.take().or(controller);
                return Ok(true);
            }
            Progress::Failed(error) => return Err(error),
            Progress::Test {
                index,
                thread,
                part,
            } => self.take_test(index, thread, part, tell),
            Progress::Closed {
                datapath_id,
                reason,
            } => {
                let closed = Closed {
                    datapath_id: format!("{datapath_id:016x}"),
                    reason,
                };
                tell(Live::Closed(&closed));
                self.closed.push(closed);
            }
            Progress::Done(outcome) => self.outcomes.push(*outcome),
        }
        Ok(false)
    }

    fn take_test(
        &mut self,
        index: u32,
        thread: usize,
        part: TestPart,
        tell: &mut dyn FnMut(Live<'_>),
    ) {
        let counted = self.config.counted_tests();
        let parts = &mut self.parts[index as usize];
        parts[thread] = Some(part);
        if parts.iter().any(Option::is_none) {
            return;
        }
        let parts: Vec<_> = std::mem::take(parts).into_iter().flatten().collect();
        if parts.iter().all(|part| part.run == TestRun::Never) {
            return;
        }
        if index + 1 == counted.start {
            self.readings.0 = self.read_process();
        }
        if counted.contains(&index) {
            self.readings.1 = self.read_process();
        }
        let test = Test::new(index, counted.contains(&index), parts);
        tell(Live::Test(&test));
        self.tests.push(test);
    }

    fn read_process(&self) -> Option<Reading> {
        self.process.as_ref()?.read()
    }

    fn usage(&self) -> Option<Usage> {
        let (before, after) = (self.readings.0.as_ref()?, self.readings.1.as_ref()?);
        Some(self.process.as_ref()?.usage(before, after))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panicking_load_thread_is_an_error() {
        let number = 7;
        let formatted = contain(|| panic!("connection {number} is not there"));
        let plain = contain(|| panic!("connection 7 is not there"));
        for ended in [formatted, plain] {
            let sentence = ended.expect_err("it panicked").to_string();
            assert!(sentence.contains("a load thread panicked"), "{sentence}");
            assert!(
                sentence.ends_with("connection 7 is not there"),
                "{sentence}"
            );
        }
        assert!(contain(|| Ok(())).is_ok());
    }
}
