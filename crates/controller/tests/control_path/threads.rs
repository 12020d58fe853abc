//! Background programs on their own threads.

use crate::support::*;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use urtica_controller::{
    Background, NetworkEvent, Program, Running, Switch, SwitchHandler, SwitchInfo,
};
use urtica_wire::{DatapathId, Experimenter, Message, PacketIn, Version};

const ONE: DatapathId = DatapathId(1);

fn start(start: impl Fn(&Background) + Send + Sync + 'static) -> Running {
    controller(1).program(Beside(start)).start().unwrap()
}

/// Returns a function that returns `value` at its first call.
fn once<T>(value: T) -> impl Fn() -> T {
    let value = Mutex::new(Some(value));
    move || value.lock().unwrap().take().expect("asked for once")
}

#[test]
fn programs_sleep_and_time_out() {
    let ([recorder], record) = recorders(["p"]);
    let running = start(move |background| {
        let (recorder, own) = (recorder.clone(), background.clone());
        background.spawn("sleeps", async move {
            let start = own.now();
            own.sleep(Duration::from_millis(20)).await;
            assert!(own.now() - start >= Duration::from_millis(20));
            recorder.tell("slept");
            let never = std::future::pending::<()>();
            let given_up = own.timeout(Duration::from_millis(20), never).await;
            recorder.tell(format_args!("{given_up:?}"));
            let at_once = own.timeout(DEADLINE, async { 7 }).await;
            recorder.tell(format_args!("{at_once:?}"));
        });
    });
    for expected in ["p: slept", "p: None", "p: Some(7)"] {
        assert_eq!(record.next(), expected);
    }
    running.stop().unwrap();
}

/// A foreign waker, which panics.
struct Rude;

impl std::task::Wake for Rude {
    fn wake(self: Arc<Self>) {
        panic!("woken");
    }
}

#[test]
fn panicking_wakers_do_not_block_others() {
    let ([recorder], record) = recorders(["p"]);
    let running = start(move |background| {
        let deadline = background.now() + Duration::from_millis(10);
        let mut rude = Box::pin(background.sleep_until(deadline));
        let waker = std::task::Waker::from(Arc::new(Rude));
        let mut context = std::task::Context::from_waker(&waker);
        assert!(rude.as_mut().poll(&mut context).is_pending());
        let (recorder, own) = (recorder.clone(), background.clone());
        background.spawn("sleeps", async move {
            // Has the same deadline, and so fires after the other.
            own.sleep_until(deadline).await;
            own.sleep(Duration::from_millis(1)).await;
            recorder.tell("slept");
            drop(rude);
        });
    });
    assert_eq!(record.next(), "p: slept");
    assert!(running.failure().is_none());
    running.stop().unwrap();
}

/// Counts packets, for a background program.
struct Counting(Arc<AtomicU64>);

impl Program for Counting {
    fn handler(&self, _: &SwitchInfo) -> Box<dyn SwitchHandler> {
        Box::new(Counting(self.0.clone()))
    }

    fn start(&self, background: &Background) {
        background.spawn("reports", report(background.clone(), self.0.clone()));
    }
}

impl SwitchHandler for Counting {
    fn packet_in(&mut self, _: &mut Switch, _: &PacketIn) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Reports the number of packets to all switches again and again, and waits until they have processed it.
async fn report(background: Background, count: Arc<AtomicU64>) {
    let network = background.network();
    loop {
        background.sleep(Duration::from_millis(5)).await;
        let message = Message::Experimenter(Experimenter {
            experimenter: count.load(Ordering::Relaxed) as u32,
            data: &[],
        });
        for id in network.switches() {
            // A switch that has disconnected gets no message.
            let Ok(()) = network.send(id, &message) else {
                continue;
            };
            let Ok(reply) = network.barrier(id) else {
                continue;
            };
            let _ = reply.await;
        }
    }
}

#[test]
fn programs_share_state_with_handlers_and_send_to_all_switches() {
    let running = controller(2)
        .program(Counting(Arc::default()))
        .start()
        .unwrap();
    let mut switches = [(Version::Of10, 1), (Version::Of13, 2)]
        .map(|(version, id)| FakeSwitch::join(&running, version, id));
    for _ in 0..3 {
        switches[0].send(0, &Message::PacketIn(packet_in(&UDP)));
    }
    let mut knows = [false; 2];
    let start = Instant::now();
    while knows != [true; 2] {
        assert!(start.elapsed() < DEADLINE);
        for (switch, knows) in switches.iter_mut().zip(&mut knows) {
            let frame = switch.receive();
            let Message::Experimenter(message) = frame.message() else {
                panic!("expected a report");
            };
            *knows |= message.experimenter == 3;
            let asked = switch.receive();
            assert_eq!(asked.message(), Message::BarrierRequest);
            switch.send(asked.header().xid, &Message::BarrierReply);
        }
    }
    running.stop().unwrap();
}

#[test]
fn programs_learn_of_switches() {
    let ([recorder], record) = recorders(["p"]);
    let running = start(move |background| {
        let (recorder, mut events) = (recorder.clone(), background.network().events());
        background.spawn("watches", async move {
            while let Some(event) = events.next().await {
                match event {
                    NetworkEvent::Up(info) => {
                        recorder.tell(format_args!("up {}", info.peer.len() > 4))
                    }
                    NetworkEvent::Down(info) => {
                        recorder.tell(format_args!("down {}", info.datapath_id))
                    }
                    other => recorder.tell(format_args!("{other:?}")),
                }
            }
        });
    });
    let switch = FakeSwitch::join(&running, Version::Of13, 1);
    assert_eq!(record.next(), "p: up true");
    drop(switch);
    assert_eq!(record.next(), "p: down 0000000000000001");
    running.stop().unwrap();
}

#[test]
fn panicking_programs_are_counted_and_others_continue() {
    let ([recorder], record) = recorders(["p"]);
    let running = start(move |background| {
        background.spawn("fragile", async { panic!("it had to be") });
        let (recorder, own) = (recorder.clone(), background.clone());
        background.spawn("a name with\0 in it", async move {
            loop {
                own.sleep(Duration::from_millis(5)).await;
                recorder.tell("lives");
            }
        });
    });
    eventually("the panic is counted", || {
        running.background_counters().panics() == 1
    });
    eventually("the panic is kept", || {
        !running.network().panics().is_empty()
    });
    let panic = &running.network().panics()[0];
    assert_eq!(
        (panic.program.as_deref(), panic.switch, &*panic.reason),
        (Some("fragile"), None, "it had to be")
    );
    assert_eq!(record.next(), "p: lives");
    let mut switch = FakeSwitch::join(&running, Version::Of10, 1);
    switch.assert_served();
    running.stop().unwrap();
}

/// Blocks until the other end is dropped.
fn block(on: &Receiver<()>) {
    // Nothing is ever sent: this returns an error.
    let _ = on.recv();
}

#[test]
fn blocking_programs_are_reported_once_and_others_continue() {
    let ([recorder], record) = recorders(["p"]);
    let (release, blocked) = mpsc::channel();
    let blocked = once(blocked);
    let running = start(move |background| {
        let blocked = blocked();
        background.spawn("blocks", async move { block(&blocked) });
        let (recorder, own) = (recorder.clone(), background.clone());
        background.spawn("goes on", async move {
            own.sleep(Duration::from_millis(1500)).await;
            recorder.tell("goes on");
        });
    });
    let mut switch = FakeSwitch::join(&running, Version::Of10, 1);
    eventually("the stall is counted", || {
        running.background_counters().stalls() == 1
    });
    switch.assert_served();
    assert_eq!(record.next(), "p: goes on");
    assert_eq!(running.background_counters().stalls(), 1);
    drop(release);
    running.stop().unwrap();
}

/// Notes that it is dropped.
struct Guard(Arc<AtomicBool>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn stopping_drops_waiting_programs() {
    let dropped: [Arc<AtomicBool>; 3] = Default::default();
    let guards = once(dropped.clone().map(Guard));
    let running = start(move |background| {
        let [on_timer, on_reply, on_nothing] = guards();
        let own = background.clone();
        background.spawn("on a timer", async move {
            let _guard = on_timer;
            own.sleep(Duration::from_secs(3600)).await;
        });
        let own = background.clone();
        background.spawn("on a reply", async move {
            let _guard = on_reply;
            let mut events = own.network().events();
            events.next().await;
            let _ = own.network().barrier(ONE).unwrap().await;
        });
        let own = background.clone();
        background.spawn("on nothing", async move {
            let (_guard, _own) = (on_nothing, own);
            std::future::pending::<()>().await;
        });
    });
    let mut switch = FakeSwitch::join(&running, Version::Of10, 1);
    assert_eq!(switch.receive().message(), Message::BarrierRequest);
    let start = Instant::now();
    running.stop().unwrap();
    assert!(start.elapsed() < DEADLINE);
    for (index, is_dropped) in dropped.iter().enumerate() {
        assert!(is_dropped.load(Ordering::Relaxed), "future {index}");
    }
}

#[test]
fn stopping_does_not_wait_for_blocking_programs() {
    let (release, blocked) = mpsc::channel();
    let (entered, entering) = mpsc::channel();
    let blocked = once((blocked, entered));
    let running = start(move |background| {
        let (blocked, entered) = blocked();
        background.spawn("blocks", async move {
            let _ = entered.send(());
            block(&blocked);
        });
    });
    entering.recv_timeout(DEADLINE).unwrap();
    let start = Instant::now();
    running.stop().unwrap();
    assert!(start.elapsed() < DEADLINE);
    drop(release);
}

#[test]
fn messages_of_programs_are_sent_before_stopping() {
    let running = start(|background| {
        let own = background.clone();
        background.spawn("talks", async move {
            let mut events = own.network().events();
            events.next().await;
            for number in 0..100 {
                let data = &[];
                let message = Message::Experimenter(Experimenter {
                    experimenter: number,
                    data,
                });
                own.network().send(ONE, &message).unwrap();
            }
        });
    });
    let mut switch = FakeSwitch::join(&running, Version::Of10, 1);
    let first = switch.receive();
    running.stop().unwrap();
    let rest = switch.read_to_end();
    for (number, frame) in (0..100).zip(std::iter::once(first).chain(rest)) {
        let Message::Experimenter(message) = frame.message() else {
            panic!("expected an experimenter's message");
        };
        assert_eq!(message.experimenter, number);
    }
}

#[test]
fn programs_may_use_files_and_sockets() {
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let path = std::env::temp_dir().join(format!("urtica-background-{}", std::process::id()));
    let (file, theirs) = (path.clone(), once(theirs));
    let running = start(move |background| {
        let (mut socket, file) = (theirs(), file.clone());
        background.spawn("reads and writes", async move {
            let mut line = [0; 5];
            socket.read_exact(&mut line).unwrap();
            std::fs::write(&file, line).unwrap();
            socket.write_all(b"done").unwrap();
        });
    });
    ours.write_all(b"hello").unwrap();
    ours.set_read_timeout(Some(DEADLINE)).unwrap();
    let mut answer = [0; 4];
    ours.read_exact(&mut answer).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"hello");
    std::fs::remove_file(&path).unwrap();
    running.stop().unwrap();
}
