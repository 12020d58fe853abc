//! A connection whose kernel half owns it moves to another shard, and is woken there.

use super::*;
use crate::{Handover, KernelHalf, Reclaimed, Taken};
use parking_lot::Mutex;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd};
use std::io;

/// What was asked of the kernel half.
#[derive(Default)]
struct Log {
    calls: Vec<&'static str>,
    /// Something is passed to the program.
    has_passed: bool,
}

/// A kernel half that does nothing but pass on what a test tells it to.
struct Scripted {
    log: Arc<Mutex<Log>>,
    wakeup: Arc<OwnedFd>,
}

impl KernelHalf for Scripted {
    fn attach(&mut self, _: BorrowedFd) -> io::Result<()> {
        self.log.lock().calls.push("attach");
        Ok(())
    }

    fn wakeup(&self) -> BorrowedFd<'_> {
        self.wakeup.as_fd()
    }

    fn has_passed(&self) -> bool {
        self.log.lock().has_passed
    }

    fn hand_over(&mut self, _: BorrowedFd, _: Handover) -> io::Result<Taken> {
        self.log.lock().calls.push("hand over");
        Ok(Taken::Yes)
    }

    fn reclaim(&mut self, _: &mut Vec<u8>) -> Reclaimed {
        let mut log = self.log.lock();
        log.calls.push("reclaim");
        log.has_passed = false;
        Reclaimed::default()
    }

    fn may_write(&mut self, _: BorrowedFd) -> bool {
        true
    }

    fn note_read(&mut self, _: usize) {}

    fn note_written(&mut self, _: usize) {}

    fn max_fragment(&self) -> usize {
        100
    }
}

struct Handler(Option<Scripted>);

impl SwitchHandler for Handler {
    fn kernel_half(&mut self) -> Option<Box<dyn KernelHalf>> {
        let half = self.0.take()?;
        Some(Box::new(half))
    }
}

/// A bench with such a program, and what is asked of its kernel half.
fn scripted() -> (Bench, Arc<Mutex<Log>>, Arc<OwnedFd>) {
    let log = Arc::new(Mutex::new(Log::default()));
    let wakeup = Arc::new(eventfd(0, EventfdFlags::NONBLOCK).unwrap());
    let bench = Bench::with_program(Arc::new({
        let (log, wakeup) = (Arc::clone(&log), Arc::clone(&wakeup));
        move |_: &SwitchInfo| {
            let (log, wakeup) = (Arc::clone(&log), Arc::clone(&wakeup));
            Handler(Some(Scripted { log, wakeup }))
        }
    }));
    (bench, log, wakeup)
}

#[test]
fn it_gets_nothing_of_a_switch_that_another_controller_has_taken_over() {
    let (mut bench, log, _) = scripted();
    let mut switch = bench.join(1, 7);
    switch.write_all(&[1, 3, 0, 8, 0, 0, 0, 0]).unwrap();
    let key = bench.shards[0].by_token[&1];
    bench.shards[0].serve(key, epoll::EventFlags::IN);
    received(&mut switch);
    assert_eq!(log.lock().calls, ["attach", "hand over"]);
    let mut lost = Vec::new();
    let version = urtica_wire::Version::Of10;
    urtica_wire::ErrorMessage::write_is_slave(version, 9, &[], &mut lost).unwrap();
    switch.write_all(&lost).unwrap();
    log.lock().has_passed = true;
    bench.shards[0].serve(key, epoll::EventFlags::IN);
    assert_eq!(log.lock().calls[2..], ["reclaim"]);
}

#[test]
fn it_is_woken_in_the_shard_that_it_moved_to() {
    let (mut bench, log, wakeup) = scripted();
    let mut switch = bench.join(1, 7);
    // It is attached after a read that began after the switch had joined, and brought all there was.
    switch.write_all(&[1, 3, 0, 8, 0, 0, 0, 0]).unwrap();
    let key = bench.shards[0].by_token[&1];
    bench.shards[0].serve(key, epoll::EventFlags::IN);
    received(&mut switch);
    assert_eq!(log.lock().calls, ["attach", "hand over"]);

    bench.shards[0].give(1, 1.0);
    assert!(bench.shards[1].handle_commands().is_continue());
    assert!(bench.shards[1].by_token.contains_key(&1));
    assert_eq!(log.lock().calls.len(), 2, "the kernel half owns it still");

    // An echo request, which the kernel half passes on.
    switch.write_all(&[1, 2, 0, 8, 0, 0, 0, 9]).unwrap();
    log.lock().has_passed = true;
    rustix::io::write(&*wakeup, &1_u64.to_ne_bytes()).unwrap();
    let mut events = Vec::with_capacity(EVENTS);
    bench.shards[1].wait(&mut events).unwrap();
    assert_eq!(events.len(), 1, "one event wakes the new shard");
    let key = bench.shards[1].by_token[&1];
    bench.shards[1].serve(key, events[0].flags);
    let mut reply = [0; 8];
    switch.read_exact(&mut reply).unwrap();
    assert_eq!(reply, [1, 3, 0, 8, 0, 0, 0, 9]);
    assert_eq!(log.lock().calls[2..], ["reclaim", "hand over"]);

    events.clear();
    bench.shards[0].wait(&mut events).unwrap();
    assert!(events.is_empty(), "the old shard watches it no longer");
}
