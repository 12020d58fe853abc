//! Tests of a connection's kernel half: its start, its program, and the shard that it wakes.

use super::*;
use crate::kernel_half::Threshold;
use crate::{Handover, KernelHalf, KernelHalves, Reclaimed, Switch, Taken};
use parking_lot::Mutex;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd};
use std::io;
use urtica_wire::PacketIn;

/// The recorded calls of a kernel half, and its scripted state.
#[derive(Default)]
struct Log {
    calls: Vec<&'static str>,
    /// Whether something has been passed to the program.
    has_passed: bool,
    /// Settled packet-ins that contain news.
    events: Vec<Vec<u8>>,
    /// The kernel's counts.
    done: Reclaimed,
    /// The number of passed bytes that have not been read.
    unread: u64,
    /// Whether its answers are still unwritten.
    is_answering: bool,
}

/// A kernel half whose answers a test determines.
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
        let mut log = self.log.lock();
        if log.unread > 0 {
            return Ok(Taken::NotYet);
        }
        log.calls.push("hand over");
        Ok(Taken::Yes)
    }

    fn reclaim(&mut self, _: &mut Vec<u8>) -> Reclaimed {
        let mut log = self.log.lock();
        log.calls.push("reclaim");
        log.has_passed = false;
        std::mem::take(&mut log.done)
    }

    fn may_write(&mut self, _: BorrowedFd) -> bool {
        !self.log.lock().is_answering
    }

    fn note_read(&mut self, count: usize) {
        let mut log = self.log.lock();
        log.unread = log.unread.saturating_sub(count as u64);
    }

    fn unread(&self) -> u64 {
        self.log.lock().unread
    }

    fn note_written(&mut self, _: usize) {}

    fn max_fragment(&self) -> usize {
        100
    }

    fn memory_bytes(&self) -> usize {
        1000
    }

    fn has_events(&self) -> bool {
        !self.log.lock().events.is_empty()
    }

    fn take_events(&mut self, tell: &mut dyn FnMut(&[u8])) {
        let events = std::mem::take(&mut self.log.lock().events);
        events.iter().for_each(|event| tell(event));
    }
}

struct Handler(Option<Scripted>);

impl SwitchHandler for Handler {
    fn kernel_half(&mut self) -> Option<Box<dyn KernelHalf>> {
        let half = self.0.take()?;
        Some(Box::new(half))
    }
}

/// Returns a bench with a program that has such a kernel half, the calls of the kernel half, and its wake-up.
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

/// Reads once, after which a kernel half can be attached. Returns the connection's key.
fn read_once(bench: &mut Bench, switch: &mut UnixStream) -> usize {
    switch.write_all(&[1, 3, 0, 8, 0, 0, 0, 0]).unwrap();
    let key = bench.shards[0].by_token[&1];
    bench.shards[0].serve(key, EventFlags::IN);
    key
}

#[test]
fn kernel_half_gets_no_switch_of_another_controller() {
    let (mut bench, log, _) = scripted();
    let mut switch = bench.join(1, 7);
    let key = read_once(&mut bench, &mut switch);
    received(&mut switch);
    assert_eq!(log.lock().calls, ["attach", "hand over"]);
    let mut lost = Vec::new();
    let version = urtica_wire::Version::Of10;
    urtica_wire::ErrorMessage::write_is_slave(version, 9, &[], &mut lost).unwrap();
    switch.write_all(&lost).unwrap();
    log.lock().has_passed = true;
    bench.shards[0].serve(key, EventFlags::IN);
    assert_eq!(log.lock().calls[2..], ["reclaim"]);
}

/// A threshold of 1 s and two packet-ins.
const SOME: Threshold = Threshold {
    uptime: Duration::from_secs(1),
    packet_ins: 2,
};

#[test]
fn forged_datapath_ids_get_no_kernel_half() {
    let (mut bench, log, _) = scripted();
    bench.shards[0].batch.half_threshold = SOME;
    let switches: Vec<_> = (1..=100).map(|id| bench.join(id, id)).collect();
    bench.shards[0].batch.now += Duration::from_secs(5);
    bench.shards[0].tick();
    assert_eq!(bench.network.switches().len(), switches.len());
    assert_eq!(log.lock().calls, [""; 0]);
    let totals = bench.network.kernel_half_totals();
    assert_eq!((totals.switches(), totals.bytes()), (0, 0));
}

#[test]
fn kernel_half_starts_after_some_time_and_packet_ins() {
    let (mut bench, log, _) = scripted();
    bench.shards[0].batch.half_threshold = SOME;
    let mut switch = bench.join(1, 7);
    let key = read_once(&mut bench, &mut switch);
    let mut send = |bench: &mut Bench, message: &[u8]| {
        switch.write_all(message).unwrap();
        bench.shards[0].serve(key, EventFlags::IN);
        bench.network.kernel_half_totals().switches()
    };
    assert_eq!(send(&mut bench, &packet_in(1)), 0, "one packet-in");
    assert_eq!(send(&mut bench, &packet_in(2)), 0, "not long enough");
    bench.shards[0].batch.now += Duration::from_secs(1);
    for _ in 0..2 {
        assert_eq!(send(&mut bench, &[1, 3, 0, 8, 0, 0, 0, 0]), 1);
    }
    assert_eq!(log.lock().calls, ["attach", "hand over"]);
    let totals = Arc::clone(bench.network.kernel_half_totals());
    assert_eq!(totals.bytes(), 1000);
    drop(switch);
    bench.shards[0].serve(key, EventFlags::IN | EventFlags::RDHUP);
    assert!(bench.shards[0].close_left().is_continue());
    assert_eq!((totals.switches(), totals.bytes()), (0, 0));
}

#[test]
fn kernel_half_wakes_the_shard_of_its_switch() {
    let (mut bench, log, wakeup) = scripted();
    let mut switch = bench.join(1, 7);
    read_once(&mut bench, &mut switch);
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

/// One of several programs, whose kernel half answers for all.
struct OneForAll(Handler);

impl SwitchHandler for OneForAll {
    fn kernel_half_for_all(&mut self) -> Option<Box<dyn KernelHalf>> {
        self.0.kernel_half()
    }
}

/// A program that has a kernel half only if no other program runs.
fn alone(log: &Arc<Mutex<Log>>) -> impl Fn(&SwitchInfo) -> Handler + use<> {
    let log = Arc::clone(log);
    move |_| Handler(Some(that_notes(&log)))
}

fn for_all(log: &Arc<Mutex<Log>>) -> impl Fn(&SwitchInfo) -> OneForAll + use<> {
    let log = Arc::clone(log);
    move |_| OneForAll(Handler(Some(that_notes(&log))))
}

fn that_notes(log: &Arc<Mutex<Log>>) -> Scripted {
    Scripted {
        log: Arc::clone(log),
        wakeup: Arc::new(eventfd(0, EventfdFlags::NONBLOCK).unwrap()),
    }
}

#[test]
fn one_of_several_programs_has_the_kernel_half() {
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
fn kernel_half_waits_for_mailbox_messages() {
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

/// Kernel halves for all switches, with one log.
struct ForAll {
    log: Arc<Mutex<Log>>,
    wakeup: Arc<OwnedFd>,
}

impl KernelHalves for ForAll {
    fn open(&self, _: &SwitchInfo) -> Option<Box<dyn KernelHalf>> {
        let (log, wakeup) = (Arc::clone(&self.log), Arc::clone(&self.wakeup));
        Some(Box::new(Scripted { log, wakeup }))
    }
}

/// Records messages by the first byte of the packet.
struct Observer(Arc<Mutex<Vec<(&'static str, u8)>>>);

impl SwitchHandler for Observer {
    fn packet_in(&mut self, _: &mut Switch, packet: &PacketIn) {
        self.0.lock().push(("packet-in", packet.data[0]));
    }

    fn settled(&mut self, switch: &mut Switch, packet: &PacketIn) {
        self.0.lock().push(("settled", packet.data[0]));
        let message = Message::Experimenter(Experimenter {
            experimenter: packet.data[0].into(),
            data: &[],
        });
        switch.send(&message).unwrap();
    }
}

/// Builds a packet-in of OpenFlow 1.0 whose frame starts with this byte.
fn packet_in(first: u8) -> Vec<u8> {
    let mut message = vec![
        1, 10, 0, 32, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 14, 0, 1, 0, 0,
    ];
    message.push(first);
    message.resize(32, 0);
    message
}

#[test]
fn handlers_see_events_before_later_messages() {
    let log = Arc::new(Mutex::new(Log::default()));
    let wakeup = Arc::new(eventfd(0, EventfdFlags::NONBLOCK).unwrap());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let mut bench = Bench::with_program(Arc::new({
        let seen = Arc::clone(&seen);
        move |_: &SwitchInfo| Observer(Arc::clone(&seen))
    }));
    bench.shards[0].batch.kernel_halves = Some(Arc::new(ForAll {
        log: Arc::clone(&log),
        wakeup,
    }));
    let mut switch = bench.join(1, 7);
    let key = read_once(&mut bench, &mut switch);
    received(&mut switch);
    assert_eq!(log.lock().calls, ["attach", "hand over"]);

    // Two events with input after them, and one without input.
    log.lock().events = vec![packet_in(2), packet_in(3)];
    log.lock().has_passed = true;
    switch.write_all(&packet_in(4)).unwrap();
    bench.shards[0].serve(key, EventFlags::IN);
    let expected = [("settled", 2), ("settled", 3), ("packet-in", 4)];
    assert_eq!(*seen.lock(), expected);
    assert_eq!(received(&mut switch), (vec![2, 3], false));
    log.lock().events = vec![packet_in(5)];
    bench.shards[0].serve(key, EventFlags::IN);
    assert_eq!(seen.lock()[3..], [("settled", 5)]);

    // Events are also handled if the connection is reclaimed to send something, or because time has passed.
    log.lock().events = vec![packet_in(6)];
    bench.send(7, 60);
    assert!(bench.shards[0].handle_commands().is_continue());
    assert_eq!(seen.lock()[4..], [("settled", 6)]);
    log.lock().events = vec![packet_in(7)];
    bench.shards[0].tick();
    assert_eq!(seen.lock()[5..], [("settled", 7)]);
    let (mut told, closed) = received(&mut switch);
    told.sort_unstable();
    assert_eq!((told, closed), (vec![5, 6, 7, 60], false));

    // So they are if the switch disconnects.
    log.lock().events = vec![packet_in(8)];
    drop(switch);
    bench.shards[0].serve(key, EventFlags::IN | EventFlags::RDHUP);
    assert!(bench.network.info(DatapathId(7)).is_none());
    assert_eq!(seen.lock()[6..], [("settled", 8)]);
}

#[test]
fn echo_requests_answered_in_the_kernel_keep_switches_alive() {
    let log = Arc::new(Mutex::new(Log::default()));
    let wakeup = Arc::new(eventfd(0, EventfdFlags::NONBLOCK).unwrap());
    let mut bench = Bench::new();
    bench.shards[0].batch.kernel_halves = Some(Arc::new(ForAll {
        log: Arc::clone(&log),
        wakeup,
    }));
    let mut switch = bench.join(1, 7);
    read_once(&mut bench, &mut switch);
    let counters = bench.network.counters(DatapathId(7)).unwrap();
    let before = counters.received.get();
    for _ in 0..10 {
        log.lock().done.others = 2;
        // Nearly as long as a switch may be silent.
        bench.shards[0].batch.now += Duration::from_secs(14);
        bench.shards[0].tick();
        assert!(bench.network.info(DatapathId(7)).is_some());
    }
    assert_eq!(counters.received.get() - before, 20);
    assert_eq!(counters.packet_ins.get(), 0);
    for _ in 0..2 {
        bench.shards[0].batch.now += Duration::from_secs(14);
        bench.shards[0].tick();
    }
    assert!(bench.network.info(DatapathId(7)).is_none(), "it is silent");
}

/// The socket may report the end of the stream before passed input arrives in its queue.
#[test]
fn the_end_of_the_stream_waits_for_passed_input() {
    let (mut bench, log, wakeup) = scripted();
    let mut switch = bench.join(1, 7);
    let key = read_once(&mut bench, &mut switch);
    received(&mut switch);
    (log.lock().has_passed, log.lock().unread) = (true, 8);
    rustix::io::write(&*wakeup, &1_u64.to_ne_bytes()).unwrap();
    switch.shutdown(std::net::Shutdown::Write).unwrap();
    let flags = EventFlags::IN | EventFlags::RDHUP;
    bench.shards[0].serve(key, flags);
    assert!(bench.shards[0].close_left().is_continue());
    assert!(bench.shards[0].by_token.contains_key(&1), "more comes");
    let interest = bench.shards[0].connections[key].interest();
    assert_eq!(interest.input, Awaited::More, "it does not poll for it");
    log.lock().unread = 0;
    bench.shards[0].serve(key, flags);
    assert!(bench.shards[0].close_left().is_continue());
    assert!(!bench.shards[0].by_token.contains_key(&1), "that was all");
}

/// A connection that has ended stays open until its kernel half's answers are written.
#[test]
fn a_closed_connection_waits_for_its_answers() {
    let (mut bench, log, _) = scripted();
    let mut switch = bench.join(1, 7);
    let key = read_once(&mut bench, &mut switch);
    received(&mut switch);
    let totals = Arc::clone(bench.network.kernel_half_totals());
    log.lock().is_answering = true;
    switch.shutdown(std::net::Shutdown::Write).unwrap();
    bench.shards[0].serve(key, EventFlags::RDHUP);
    assert!(bench.shards[0].close_left().is_continue());
    assert!(bench.network.switches().is_empty(), "the switch has left");
    let mut wait = || {
        let mut events = Vec::with_capacity(EVENTS);
        bench.shards[0].next_tick = Instant::now() + TICK;
        bench.shards[0].wait(&mut events).unwrap();
        bench.shards[0].next_tick > Instant::now() + TICK / 2
    };
    assert!(wait(), "it is checked often");
    assert_eq!(totals.switches(), 1);
    log.lock().is_answering = false;
    while totals.switches() > 0 {
        wait();
    }
    assert_eq!(switch.read(&mut [0; 8]).unwrap(), 0, "the end");
}
