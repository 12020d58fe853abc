//! A connection with a kernel half: when that gets it, from which program, and where it is woken.

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

#[test]
fn it_is_woken_in_the_shard_that_it_moved_to() {
    let log = Arc::new(Mutex::new(Log::default()));
    let wakeup = Arc::new(eventfd(0, EventfdFlags::NONBLOCK).unwrap());
    let mut bench = Bench::with_program(Arc::new({
        let (log, wakeup) = (Arc::clone(&log), Arc::clone(&wakeup));
        move |_: &SwitchInfo| {
            let (log, wakeup) = (Arc::clone(&log), Arc::clone(&wakeup));
            Handler(Some(Scripted { log, wakeup }))
        }
    }));
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

/// A program among others, which has one for all.
struct ForAll(Handler);

impl SwitchHandler for ForAll {
    fn kernel_half_for_all(&mut self) -> Option<Box<dyn KernelHalf>> {
        self.0.kernel_half()
    }
}

/// One that only has one where it is alone.
fn alone(log: &Arc<Mutex<Log>>) -> impl Fn(&SwitchInfo) -> Handler + use<> {
    let log = Arc::clone(log);
    move |_| Handler(Some(scripted(&log)))
}

fn for_all(log: &Arc<Mutex<Log>>) -> impl Fn(&SwitchInfo) -> ForAll + use<> {
    let log = Arc::clone(log);
    move |_| ForAll(Handler(Some(scripted(&log))))
}

fn scripted(log: &Arc<Mutex<Log>>) -> Scripted {
    Scripted {
        log: Arc::clone(log),
        wakeup: Arc::new(eventfd(0, EventfdFlags::NONBLOCK).unwrap()),
    }
}

/// Reads once, as the first read after which it can be attached.
fn read_once(bench: &mut Bench, switch: &mut UnixStream) {
    switch.write_all(&[1, 3, 0, 8, 0, 0, 0, 0]).unwrap();
    let key = bench.shards[0].by_token[&1];
    bench.shards[0].serve(key, epoll::EventFlags::IN);
}

#[test]
fn of_several_programs_one_has_it_for_all() {
    let (one, other) = (Arc::default(), Arc::default());
    let mut bench = Bench::with_programs(vec![
        Arc::new(alone(&one)),
        Arc::new(for_all(&other)),
        Arc::new(|_: &SwitchInfo| Quiet),
    ]);
    let mut switch = bench.join(1, 7);
    read_once(&mut bench, &mut switch);
    assert!(one.lock().calls.is_empty(), "it would answer for itself");
    assert_eq!(other.lock().calls, ["attach", "hand over"]);
}

#[test]
fn it_waits_for_what_was_sent_by_way_of_the_mailbox() {
    let log = Arc::default();
    let mut bench = Bench::with_program(Arc::new(alone(&log)));
    let mut switch = bench.join(1, 7);
    let network = bench.network.clone();
    network
        .send(DatapathId(7), &Message::BarrierRequest)
        .unwrap();
    read_once(&mut bench, &mut switch);
    assert_eq!(log.lock().calls, ["attach"]);
    assert!(bench.shards[0].handle_commands().is_continue());
    assert_eq!(log.lock().calls, ["attach", "hand over"]);
}
