//! One load thread, with the sockets of its switches in one epoll loop.
//!
//! # How
//! All packet-ins of a thread are sent from one image, which is patched for the sending switch, 64 KiB at a time. Replies are
//! received into one buffer, 256 KiB at a time, and checked in place. There are no allocations per message.
//!
//! # Time
//! The clock is read once before each `send` and once after each `recv`; all messages of that call share the reading. With one
//! packet-in or reply per call, as in ping-pong, that is the time of each message; at full rate, it is the time of a batch.

mod receiving;
mod sending;
mod switch;

use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::time::{Duration, Instant};
use switch::{Schedule, Share, Switch};

use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_setaffinity, set_current_timer_slack};

use urtica_socket::Stream;

use crate::Error;
use crate::checker::Tally;
use crate::config::{LoadConfig, Mode};
use crate::controller_process::ControllerProcess;
use crate::outstanding::{SendTimes, due_ns};
use crate::packet_in::Train;
use crate::patience::{DRAIN_NS, LOST_AFTER_NS, LastAnswer, Wait};
use crate::recorder::{Clock, Recorder, Recording};
use crate::socket::Target;
use crate::template::SLACK;

const READ_BYTES: usize = 256 * 1024;
const MAX_MESSAGE_BYTES: usize = 65_535;
const EVENTS: usize = 256;

/// The time limit for the handshakes of all switches.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// The time without messages that is required before the load starts, so that a controller's preparations have finished.
const QUIET: Duration = Duration::from_millis(100);

/// A report on the progress of a load thread.
pub enum Progress {
    /// All its switches that could complete their handshake have done so.
    Ready {
        /// The number of these switches.
        switches: u32,
        /// The reason why others did not, if known.
        trouble: Option<String>,
        /// The controller's process, if it is on this machine.
        controller: Option<ControllerProcess>,
    },
    /// The thread could not start.
    Failed(Error),
    /// A test has ended.
    Test {
        /// The test's number, from 0.
        index: u32,
        /// The thread.
        thread: usize,
        /// The results of the thread's switches.
        part: TestPart,
    },
    /// A connection closed before the load ended.
    Closed {
        /// The switch's datapath id.
        datapath_id: u64,
        /// The reason, as a clause.
        reason: String,
    },
    /// The thread has finished.
    Done(Box<Outcome>),
}

/// One thread's part of a test.
pub struct TestPart {
    /// Packet-ins answered, for each switch of the thread in order.
    pub answered: Vec<u64>,
    /// Flow mods and packet-outs received, for any purpose.
    pub messages: u64,
    /// The real duration of the test.
    pub elapsed_ns: u64,
    /// The part of the test that ran.
    pub run: TestRun,
}

/// The part of a test that a thread ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestRun {
    /// The whole test.
    Whole,
    /// The part until the run was interrupted.
    CutShort,
    /// Nothing, because none of the thread's switches was connected any longer.
    Never,
}

/// The results of a load thread.
pub struct Outcome {
    /// The replies of the whole run.
    pub tally: Tally,
    /// The measurements of the tests that count.
    pub recording: Recording,
    /// The number of calls of `send` for packet-ins, and of those calls whose data the socket did not accept completely.
    pub sends: u64,
    /// See `sends`.
    pub blocked_sends: u64,
    /// The number of packet-ins still waiting when the load ended, while the controller was answering.
    pub unanswered: u64,
}

/// One thread's part of the load.
pub struct Worker<'a> {
    config: &'a LoadConfig,
    thread: usize,
    clock: Clock,
    last_answer: &'a LastAnswer,
    stop: &'a AtomicBool,
    progress: Sender<Progress>,
    epoll: OwnedFd,
    switches: Vec<Switch>,
    train: Train,
    input: Box<[u8]>,
    tally: Tally,
    recorder: Recorder,
    recording: Option<Recording>,
    schedule: Option<Schedule>,
    share: Option<Share>,
    phase: Phase,
    last_input: Instant,
    trouble: Option<String>,
    sends: u64,
    blocked_sends: u64,
    /// The number of flow mods and packet-outs received before the test.
    messages_before: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Handshake,
    Load,
    Drain,
}

impl<'a> Worker<'a> {
    /// Connects a switch for each of `datapath_ids`. Fails if one cannot connect.
    pub fn connect(
        config: &'a LoadConfig,
        thread: usize,
        datapath_ids: Range<u64>,
        clock: Clock,
        last_answer: &'a LastAnswer,
        stop: &'a AtomicBool,
        progress: Sender<Progress>,
    ) -> Result<Self, Error> {
        pin(&config.cores, thread)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)
            .map_err(Error::system("create an epoll instance"))?;
        let switches: Vec<_> = datapath_ids
            .map(|id| Switch::new(config, id, send_times(config)))
            .collect();
        // A fixed rate should not wait for other timers. Without permission to set this, it is less exact.
        let _ = set_current_timer_slack(NonZeroU64::new(1));
        let mut worker = Self {
            config,
            thread,
            clock,
            last_answer,
            stop,
            progress,
            epoll,
            share: Share::new(config, thread, switches.len()),
            switches,
            train: Train::new(config.version, config.frame_len, &config.frames),
            input: vec![0; MAX_MESSAGE_BYTES + READ_BYTES + SLACK].into(),
            tally: Tally::default(),
            recorder: Recorder::new(),
            recording: None,
            schedule: None,
            phase: Phase::Handshake,
            last_input: Instant::now(),
            trouble: None,
            sends: 0,
            blocked_sends: 0,
            messages_before: 0,
        };
        worker.connect_all()?;
        Ok(worker)
    }

    /// Connects all switches before any of them sends its hello, as cbench does.
    fn connect_all(&mut self) -> Result<(), Error> {
        let target = Target::resolve(&self.config.controller)?;
        for index in 0..self.switches.len() {
            self.refuse_if_stopped()?;
            let address = || self.config.controller.to_string();
            let socket = target.connect().map_err(|source| Error::Connect {
                address: address(),
                source,
            })?;
            let stream = self.shake_tls_hands(socket)?;
            let event = epoll::EventData::new_u64(index as u64);
            epoll::add(&self.epoll, &stream, event, epoll::EventFlags::IN)
                .map_err(Error::system("watch a socket"))?;
            self.switches[index].stream = Some(stream);
            if (index + 1).checked_rem(self.config.connect_group_size as usize) == Some(0) {
                std::thread::sleep(self.config.connect_delay);
            }
        }
        for index in 0..self.switches.len() {
            let switch = &mut self.switches[index];
            switch.session.poll_hello(&mut switch.control);
            let has_input = switch.stream.as_ref().is_some_and(Stream::has_input);
            self.send_all(index);
            if has_input {
                self.receive(index);
            }
        }
        Ok(())
    }

    fn shake_tls_hands(&self, socket: OwnedFd) -> Result<Stream, Error> {
        let Some(tls) = self
            .config
            .tls
            .as_ref()
            .filter(|_| self.config.controller.is_tls())
        else {
            return Ok(socket.into());
        };
        Stream::connect_tls(socket, tls, HANDSHAKE_TIMEOUT).map_err(|source| Error::Tls {
            address: self.config.controller.to_string(),
            source,
        })
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn refuse_if_stopped(&self) -> Result<(), Error> {
        if self.is_stopped() {
            Err(Error::Interrupted)
        } else {
            Ok(())
        }
    }

    /// Completes the handshakes, waits for the start time from `start`, loads the controller, and reports. Returns without
    /// loading if `start` is closed.
    pub fn run(mut self, start: &Receiver<u64>) -> Result<(), Error> {
        self.shake_hands()?;
        let Some(start_ns) = self.wait_for_start(start)? else {
            return Ok(());
        };
        self.load(start_ns)?;
        self.drain()?;
        self.finish();
        Ok(())
    }

    fn shake_hands(&mut self) -> Result<(), Error> {
        let deadline = Instant::now() + HANDSHAKE_TIMEOUT;
        while !self.is_settled() && Instant::now() < deadline {
            self.refuse_if_stopped()?;
            self.serve(Duration::from_millis(10))?;
        }
        let switches = self
            .switches
            .iter()
            .filter(|s| s.stream.is_some() && s.ready)
            .count() as u32;
        let trouble = self.trouble.take();
        let mut sockets = self.switches.iter().filter_map(|s| s.stream.as_ref());
        let controller = sockets.next().and_then(ControllerProcess::at_other_end);
        self.report(Progress::Ready {
            switches,
            trouble,
            controller,
        });
        Ok(())
    }

    fn is_settled(&self) -> bool {
        self.switches.iter().all(|s| s.ready || s.stream.is_none())
            && self.last_input.elapsed() >= QUIET
    }

    fn wait_for_start(&mut self, start: &Receiver<u64>) -> Result<Option<u64>, Error> {
        let start_ns = loop {
            self.refuse_if_stopped()?;
            match start.try_recv() {
                Ok(start_ns) => break start_ns,
                Err(TryRecvError::Disconnected) => return Ok(None),
                Err(TryRecvError::Empty) => self.serve(Duration::from_millis(1))?,
            }
        };
        while let left @ 1.. = start_ns.saturating_sub(self.clock.now_ns()) {
            self.refuse_if_stopped()?;
            self.serve(Duration::from_nanos(left.min(1_000_000)))?;
        }
        Ok(Some(start_ns))
    }

    fn load(&mut self, start_ns: u64) -> Result<(), Error> {
        self.start_sending(start_ns);
        let counted = self.config.counted_tests();
        let test_ns = self.config.test_length.as_nanos() as u64;
        let mut begun_ns = start_ns;
        for index in 0..self.config.tests {
            if index == counted.start {
                self.recorder.begin(self.clock.now_ns());
            }
            let end_ns = start_ns + u64::from(index + 1) * test_ns;
            while self.clock.now_ns() < end_ns && !self.is_stopped() {
                self.poll_schedule();
                self.serve(self.until_next_due(end_ns))?;
            }
            let now_ns = self.clock.now_ns();
            let run = if now_ns < end_ns {
                TestRun::CutShort
            } else {
                TestRun::Whole
            };
            if index + 1 == counted.end {
                let recorder = std::mem::replace(&mut self.recorder, Recorder::new());
                self.recording = Some(recorder.end(now_ns));
            }
            self.end_test(index, run, begun_ns, now_ns);
            begun_ns = now_ns;
            if self.is_stopped() {
                break;
            }
            if self.switches.iter().all(|s| s.stream.is_none()) {
                self.skip_tests(index + 1);
                break;
            }
        }
        Ok(())
    }

    /// Reports that the tests from `first` on were not run, so that those of other threads still count.
    fn skip_tests(&self, first: u32) {
        for index in first..self.config.tests {
            let part = TestPart {
                answered: vec![0; self.switches.len()],
                messages: 0,
                elapsed_ns: self.config.test_length.as_nanos() as u64,
                run: TestRun::Never,
            };
            self.report_test(index, part);
        }
    }

    fn report_test(&self, index: u32, part: TestPart) {
        let thread = self.thread;
        self.report(Progress::Test {
            index,
            thread,
            part,
        });
    }

    fn start_sending(&mut self, start_ns: u64) {
        self.phase = Phase::Load;
        self.last_answer.note(start_ns);
        if let Mode::Rate(rate) = self.config.mode {
            let step_ns = 1e9 / rate / self.switches.len() as f64;
            self.schedule = Some(Schedule {
                start_ns,
                step_ns,
                next: 0,
            });
        }
        for index in 0..self.switches.len() {
            let switch = &mut self.switches[index];
            switch.last_answer_ns = start_ns;
            if let Some(schedule) = &self.schedule {
                switch
                    .outstanding
                    .start(due_ns(start_ns, schedule.step_ns, index as u64));
            }
            self.send_all(index);
        }
        self.share_out();
    }

    /// Lets switches send round-robin, while the limit of outstanding packet-ins allows it.
    fn share_out(&mut self) {
        let mut passed = 0;
        while self.phase == Phase::Load && passed < self.switches.len() {
            let Some(share) = self.share.as_mut().filter(|share| share.used < share.most) else {
                break;
            };
            let index = share.next;
            share.next = (index + 1) % self.switches.len();
            let switch = &mut self.switches[index];
            let taken = switch.outstanding.waiting() + switch.due;
            let free = switch.most_waiting.saturating_sub(taken);
            let grant = free.min(share.at_a_time).min(share.most - share.used);
            if grant == 0 || switch.stream.is_none() || !switch.ready {
                passed += 1;
                continue;
            }
            passed = 0;
            share.used += grant;
            switch.due += grant;
            self.send_all(index);
        }
    }

    /// Notes that `count` packet-ins are no longer outstanding, because they were answered or lost.
    fn remove_waiting(&mut self, count: u64, now_ns: u64) {
        self.recorder.remove_waiting(count, now_ns);
        if let Some(share) = &mut self.share {
            share.used -= count;
        }
    }

    /// Sends the packet-ins that are due.
    fn poll_schedule(&mut self) {
        let Some(mut schedule) = self.schedule.take() else {
            return;
        };
        let now_ns = self.clock.now_ns();
        let switches = self.switches.len() as u64;
        let first = schedule.next;
        loop {
            let due_ns = due_ns(schedule.start_ns, schedule.step_ns, schedule.next);
            if due_ns > now_ns {
                break;
            }
            let switch = &mut self.switches[(schedule.next % switches) as usize];
            if switch.stream.is_some() && switch.ready {
                switch.due += 1;
                self.recorder.add_due(due_ns, now_ns);
            }
            schedule.next += 1;
        }
        let touched = (schedule.next - first).min(switches);
        for turn in schedule.next - touched..schedule.next {
            self.send_all((turn % switches) as usize);
        }
        self.schedule = Some(schedule);
    }

    fn until_next_due(&self, end_ns: u64) -> Duration {
        let next_ns = self.schedule.as_ref().map_or(end_ns, |s| {
            due_ns(s.start_ns, s.step_ns, s.next).min(end_ns)
        });
        Duration::from_nanos(next_ns.saturating_sub(self.clock.now_ns()))
    }

    fn end_test(&mut self, index: u32, run: TestRun, begun_ns: u64, now_ns: u64) {
        let mut answered = Vec::with_capacity(self.switches.len());
        for switch in &mut self.switches {
            answered.push(switch.answered - switch.answered_before);
            switch.answered_before = switch.answered;
        }
        let messages = self.tally.messages();
        let part = TestPart {
            answered,
            messages: messages - self.messages_before,
            elapsed_ns: now_ns - begun_ns,
            run,
        };
        self.messages_before = messages;
        self.report_test(index, part);
        self.give_up_lost(now_ns);
    }

    /// Abandons lost packet-ins, and sends new ones instead.
    fn give_up_lost(&mut self, now_ns: u64) {
        for index in 0..self.switches.len() {
            if self.is_lost(index, now_ns) {
                self.give_up(index, now_ns);
                self.send_all(index);
            }
        }
        self.share_out();
    }

    /// Returns `true` if a switch's outstanding packet-ins are lost.
    fn is_lost(&self, index: usize, now_ns: u64) -> bool {
        let switch = &self.switches[index];
        let Some(sent_ns) = switch.outstanding.oldest_sent_ns() else {
            return false;
        };
        let wait = Wait {
            waited_ns: now_ns.saturating_sub(switch.last_answer_ns.max(sent_ns)),
            silence_ns: self.last_answer.silence_ns(now_ns),
            answered_since: self.tally.answered - switch.answered_by_then,
            most_queued: switch.most_waiting * self.switches.len() as u64,
        };
        wait.is_lost()
    }

    fn give_up(&mut self, index: usize, now_ns: u64) {
        let switch = &mut self.switches[index];
        let lost = switch.outstanding.give_up();
        switch.last_answer_ns = now_ns;
        switch.answered_by_then = self.tally.answered;
        self.tally.lost += lost;
        self.remove_waiting(lost, now_ns);
    }

    /// Returns the number of outstanding packet-ins.
    fn waiting(&self) -> u64 {
        let connected = self.switches.iter().filter(|s| s.stream.is_some());
        connected.map(|s| s.outstanding.waiting()).sum()
    }

    /// Waits for outstanding replies, while they keep arriving and the run is not stopped.
    fn drain(&mut self) -> Result<(), Error> {
        self.phase = Phase::Drain;
        let begun_ns = self.clock.now_ns();
        loop {
            let now_ns = self.clock.now_ns();
            let drained_ns = now_ns - begun_ns;
            let silence_ns = self.last_answer.silence_ns(now_ns).min(drained_ns);
            if self.is_stopped() {
                return Ok(());
            }
            if self.waiting() == 0 || silence_ns >= LOST_AFTER_NS || drained_ns >= DRAIN_NS {
                self.give_up_lost(now_ns);
                return Ok(());
            }
            self.serve(Duration::from_millis(10))?;
        }
    }

    fn finish(mut self) {
        let now_ns = self.clock.now_ns();
        let unanswered = self.waiting();
        let recording = self
            .recording
            .take()
            .unwrap_or_else(|| self.recorder.end(now_ns));
        let outcome = Outcome {
            tally: self.tally,
            recording,
            sends: self.sends,
            blocked_sends: self.blocked_sends,
            unanswered,
        };
        // If the run was abandoned, the receiver is gone, and the result is not needed.
        let _ = self.progress.send(Progress::Done(Box::new(outcome)));
    }

    fn report(&self, progress: Progress) {
        // As in `finish`.
        let _ = self.progress.send(progress);
    }

    /// Handles the events of the sockets, for which it waits at most for `timeout`.
    fn serve(&mut self, timeout: Duration) -> Result<(), Error> {
        let mut events = [const {
            epoll::Event {
                flags: epoll::EventFlags::empty(),
                data: epoll::EventData::new_u64(0),
            }
        }; EVENTS];
        let timeout = self.sleep_exactly(timeout)?;
        let count = match epoll::wait(&self.epoll, &mut events, Some(&timeout)) {
            Ok(count) => count,
            Err(Errno::INTR) => 0,
            Err(error) => return Err(Error::system("wait for sockets")(error)),
        };
        for event in &events[..count] {
            let (flags, index) = (event.flags, event.data.u64() as usize);
            if flags
                .intersects(epoll::EventFlags::IN | epoll::EventFlags::HUP | epoll::EventFlags::ERR)
            {
                self.receive(index);
            }
            self.send_all(index);
        }
        self.share_out();
        Ok(())
    }

    /// Waits for sockets if the wait is too short for epoll, which counts in milliseconds before Linux 5.11. Returns the rest of
    /// the wait.
    fn sleep_exactly(&self, timeout: Duration) -> Result<Timespec, Error> {
        const COARSE: Duration = Duration::from_millis(2);
        let timespec = Timespec {
            tv_sec: timeout.as_secs() as _,
            tv_nsec: timeout.subsec_nanos().into(),
        };
        if timeout >= COARSE || timeout.is_zero() {
            return Ok(timespec);
        }
        let mut sockets = [PollFd::new(&self.epoll, PollFlags::IN)];
        match poll(&mut sockets, Some(&timespec)) {
            Ok(_) | Err(Errno::INTR) => Ok(Timespec::default()),
            Err(error) => Err(Error::system("wait for sockets")(error)),
        }
    }

    /// Continues without a switch whose connection has closed.
    fn close(&mut self, index: usize, reason: &str) {
        let switch = &mut self.switches[index];
        if switch.stream.take().is_none() {
            return;
        }
        // Its outstanding packet-ins are lost. On a schedule, packet-ins that were due but not sent also wait, but are not
        // lost.
        let owed = switch.outstanding.give_up();
        let due = std::mem::take(&mut switch.due);
        let datapath_id = switch.identity.datapath_id;
        let now_ns = self.clock.now_ns();
        self.tally.lost += owed;
        self.remove_waiting(owed, now_ns);
        match &mut self.share {
            Some(share) => share.used -= due,
            None => self.recorder.remove_waiting(due, now_ns),
        }
        if self.phase == Phase::Handshake {
            self.trouble = Some(reason.to_owned());
        }
        self.report(Progress::Closed {
            datapath_id,
            reason: reason.to_owned(),
        });
    }
}

fn send_times(config: &LoadConfig) -> SendTimes {
    match config.mode {
        Mode::Rate(rate) => SendTimes::Schedule {
            first_ns: 0,
            interval_ns: 1e9 / rate,
        },
        _ => SendTimes::Clock(VecDeque::new()),
    }
}

fn pin(cores: &[usize], thread: usize) -> Result<(), Error> {
    let Some(&core) = (!cores.is_empty()).then(|| &cores[thread % cores.len()]) else {
        return Ok(());
    };
    let mut set = CpuSet::new();
    if core >= CpuSet::MAX_CPU {
        return Err(Error::invalid(format!(
            "cannot pin a thread to core {core}, which does not exist"
        )));
    }
    set.set(core);
    sched_setaffinity(None, &set).map_err(Error::system(format!("pin a thread to core {core}")))
}

#[cfg(test)]
mod tests;
