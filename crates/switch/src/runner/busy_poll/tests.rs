use super::*;
use crate::port::PortIo;
use crate::port::memory::{self, MemoryPort};
use crate::port::testing::{eventually, frame, receive};
use crate::{FailMode, Runner, Switch, SwitchConfig, Threads};
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use urtica_wire::{MacAddr, PortNo};

const LIMIT: Duration = Duration::from_micros(50);

/// Simulates frames that arrive after these pauses, in microseconds; returns the number of polls in vain.
fn polls_in_vain(busy_poll: &mut BusyPoll, pauses_us: &[u64]) -> usize {
    let (mut now, mut asked) = (busy_poll.last_input, 0);
    for &pause_us in pauses_us {
        let end = now + Duration::from_micros(pause_us);
        while now < end {
            now += Duration::from_micros(1);
            match busy_poll.keeps_polling(false, now) {
                true => asked += 1,
                false => now = end,
            }
        }
        busy_poll.keeps_polling(true, now);
    }
    asked
}

#[test]
fn short_pauses_are_spent_polling() {
    let mut busy_poll = BusyPoll::new(LIMIT);
    assert_eq!(polls_in_vain(&mut busy_poll, &[20; 4]), 0);
    assert_eq!(polls_in_vain(&mut busy_poll, &[20; 100]), 20 * 100);
}

#[test]
fn the_thread_sleeps_during_long_pauses() {
    let mut busy_poll = BusyPoll::new(LIMIT);
    assert_eq!(polls_in_vain(&mut busy_poll, &[1000; 100]), 0);
    polls_in_vain(&mut busy_poll, &[20; 8]);
    let asked = polls_in_vain(&mut busy_poll, &[1000; 100]);
    assert!(asked <= 5 * 50, "{asked} times: soon it was given up");
}

#[test]
fn an_endless_pause_ends_polling() {
    let mut busy_poll = BusyPoll::new(LIMIT);
    polls_in_vain(&mut busy_poll, &[20; 8]);
    let start = busy_poll.last_input;
    assert!(busy_poll.keeps_polling(false, start + Duration::from_micros(49)));
    assert!(!busy_poll.keeps_polling(false, start + LIMIT));
    assert!(!busy_poll.keeps_polling(false, start + Duration::from_secs(1)));
}

#[test]
fn back_to_back_frames_make_no_pauses() {
    let mut busy_poll = BusyPoll::new(LIMIT);
    let now = Duration::from_secs(1);
    (0..100).for_each(|_| assert!(!busy_poll.keeps_polling(true, now)));
    assert!(!busy_poll.keeps_polling(false, now));
}

#[test]
fn zero_switches_it_off() {
    let mut busy_poll = BusyPoll::new(Duration::ZERO);
    assert_eq!(polls_in_vain(&mut busy_poll, &[1; 100]), 0);
    assert!(!busy_poll.keeps_polling(true, busy_poll.last_input));
}

/// A port that counts how often it is polled for frames, and for its link, which is once per tick.
struct Counting {
    port: MemoryPort,
    asked: Arc<AtomicUsize>,
    ticks: Arc<AtomicUsize>,
}

impl PortIo for Counting {
    fn name(&self) -> &str {
        self.port.name()
    }

    fn hw_addr(&self) -> MacAddr {
        self.port.hw_addr()
    }

    fn is_up(&self) -> bool {
        self.ticks.fetch_add(1, SeqCst);
        self.port.is_up()
    }

    fn speed_kbps(&self) -> u32 {
        0
    }

    fn receive(&mut self, max: usize, handle: &mut dyn FnMut(&[u8])) -> io::Result<usize> {
        self.asked.fetch_add(1, SeqCst);
        self.port.receive(max, handle)
    }

    fn send(&mut self, frame: &[u8]) -> bool {
        self.port.send(frame)
    }

    fn flush(&mut self) {
        self.port.flush();
    }

    fn as_fd(&self) -> Option<rustix::fd::BorrowedFd<'_>> {
        self.port.as_fd()
    }
}

#[test]
fn a_switch_without_traffic_sleeps() {
    for count in [0, 1] {
        let mut switch = Switch::new(SwitchConfig {
            fail_mode: FailMode::Standalone,
            ..SwitchConfig::default()
        });
        let counts = [Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0))];
        let [asked, ticks] = &counts;
        let addr = |last| MacAddr::new([2, 0, 0, 0, 1, last]);
        let (port, mut a) = memory::pair(("p1", addr(1)), ("a", addr(2)), 64);
        let counting = Counting {
            port,
            asked: Arc::clone(asked),
            ticks: Arc::clone(ticks),
        };
        switch.add_port(PortNo(1), Box::new(counting), Duration::ZERO);
        let (port, mut b) = memory::pair(("p2", addr(3)), ("b", addr(4)), 64);
        switch.add_port(PortNo(2), Box::new(port), Duration::ZERO);
        let threads = Threads {
            count,
            cores: Vec::new(),
        };
        let runner = Runner::new(switch, &[]).unwrap();
        let runner = runner.with_threads(&threads).unwrap();
        let runner = runner.with_busy_poll(Duration::from_millis(1));
        let stop = runner.stop_handle();
        let thread = std::thread::spawn(|| runner.run());
        // Pauses are as short as possible, so that polling is worthwhile; the last one is endless.
        for mark in 0..50 {
            a.send(&frame(100, mark));
            a.flush();
            assert_eq!(receive(&mut b, 1), [frame(100, mark)]);
        }
        let past = ticks.load(SeqCst) + 1;
        eventually(|| ticks.load(SeqCst) > past);
        let (asked_before, ticks_before) = (asked.load(SeqCst), ticks.load(SeqCst));
        eventually(|| ticks.load(SeqCst) >= ticks_before + 5);
        let (asked, ticks) = (asked.load(SeqCst), ticks.load(SeqCst));
        stop.stop();
        thread.join().unwrap().unwrap();
        let (asked, ticks) = (asked - asked_before, ticks - ticks_before);
        assert!(asked <= 3 * ticks, "{asked} times in {ticks} ticks");
    }
}
