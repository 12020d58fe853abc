//! Background programs of an embedded controller: interleaved on one thread, in time that a test advances.

use crate::in_memory::*;
use crate::support::*;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use urtica_controller::{Background, EntryOptions, Events, NetworkEvent, RequestError};
use urtica_state::{TVar, atomically};
use urtica_wire::{DatapathId, Experimenter, Match, Message, PortReason, PortStatus, Version};

const ONE: DatapathId = DatapathId(1);

const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

#[test]
fn sleepers_wake_in_order_of_time_and_registration() {
    let ([a, b, c, d], record) = recorders(["a", "b", "c", "d"]);
    let mut bench = Bench::new(beside(move |background| {
        for (recorder, sleep) in [(&a, 10), (&b, 5), (&c, 5), (&d, 0)] {
            let (recorder, own) = (recorder.clone(), background.clone());
            background.spawn("sleeper", async move {
                let start = own.now();
                own.sleep(ms(sleep)).await;
                recorder.tell(format_args!("{:?}", own.now() - start));
            });
        }
    }));
    bench.poll();
    assert_eq!(record.next(), "d: 0ns");
    assert!(record.is_empty());
    assert_eq!(bench.controller.next_timeout(), Some(ms(5)));
    bench.run_until(ms(4));
    assert!(record.is_empty());
    bench.run_until(ms(100));
    for expected in ["b: 5ms", "c: 5ms", "a: 10ms"] {
        assert_eq!(record.next(), expected);
    }
    assert_eq!(bench.controller.next_timeout(), None);
}

#[test]
fn unbounded_sleeps_never_end() {
    let ([sleeper, waiter], record) = recorders(["sleeper", "waiter"]);
    let mut bench = Bench::new(beside(move |background| {
        let (recorder, own) = (sleeper.clone(), background.clone());
        background.spawn("sleeper", async move {
            own.sleep(Duration::MAX).await;
            recorder.tell("awake");
        });
        let (recorder, own) = (waiter.clone(), background.clone());
        background.spawn("waiter", async move {
            let done = own.timeout(Duration::MAX, own.sleep(ms(5))).await;
            recorder.tell(format_args!("{done:?}"));
        });
    }));
    bench.run_until(Duration::from_secs(365 * 24 * 60 * 60));
    assert_eq!(record.next(), "waiter: Some(())");
    assert!(record.is_empty());
}

#[test]
fn polled_timers_keep_their_position() {
    let ([a, b], record) = recorders(["a", "b"]);
    let mut bench = Bench::new(beside(move |background| {
        let (recorder, own) = (a.clone(), background.clone());
        background.spawn("looks around", async move {
            // The inner timer causes a poll of the outer one after the other program's timer was set.
            own.timeout(ms(10), async {
                own.sleep(ms(5)).await;
                std::future::pending::<()>().await;
            })
            .await;
            recorder.tell("awake");
        });
        let (recorder, own) = (b.clone(), background.clone());
        background.spawn("sleeps", async move {
            own.sleep(ms(10)).await;
            recorder.tell("awake");
        });
    }));
    bench.run_until(ms(20));
    assert_eq!(record.next(), "a: awake");
    assert_eq!(record.next(), "b: awake");
}

#[test]
fn timeouts_end_only_slow_futures() {
    let ([recorder], record) = recorders(["p"]);
    let mut bench = Bench::new(beside(move |background| {
        let (recorder, own) = (recorder.clone(), background.clone());
        background.spawn("patient", async move {
            let slept = own.timeout(ms(10), own.sleep(ms(9))).await;
            recorder.tell(format_args!("{slept:?}"));
            let slept = own.timeout(ms(10), own.sleep(ms(11))).await;
            recorder.tell(format_args!("{slept:?}"));
            let slept = own.timeout(ms(10), own.sleep(Duration::MAX)).await;
            recorder.tell(format_args!("{slept:?}"));
        });
    }));
    bench.run_until(ms(19));
    assert_eq!(record.next(), "p: Some(())");
    assert_eq!(record.next(), "p: None");
    bench.run_until(ms(29));
    assert_eq!(record.next(), "p: None");
    assert_eq!(
        bench.controller.next_timeout(),
        None,
        "no timer is left over"
    );
}

#[test]
fn a_program_awaits_the_reply_of_a_switch() {
    let ([recorder], record) = recorders(["p"]);
    let mut bench = Bench::new(beside(move |background| {
        let (recorder, own) = (recorder.clone(), background.clone());
        background.spawn("asks", async move {
            own.sleep(ms(5)).await;
            let reply = own.network().barrier(ONE).unwrap().await;
            recorder.tell(format_args!(
                "{:?}",
                reply.map(|reply| reply.messages().count())
            ));
        });
    }));
    let switch = bench.connect();
    bench.input(switch, &said_by_hand());
    bench.take_bytes(switch);
    bench.run_until(ms(5));
    assert_eq!(bench.take_bytes(switch), hex("01 12 0008 ff000004"));
    assert!(record.is_empty());
    bench.input(switch, &hex("01 13 0008 ff000004"));
    assert_eq!(bench.controller.next_timeout(), Some(ms(5)), "at once");
    bench.poll();
    assert_eq!(record.next(), "p: Ok(1)");
}

#[test]
fn requests_to_a_lost_switch_fail_in_order() {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let (recorders, record) = recorders(names);
    let mut bench = Bench::new(beside(move |background| {
        for recorder in recorders.clone() {
            let own = background.clone();
            background.spawn("asks", async move {
                own.sleep(ms(5)).await;
                let reply = own.network().barrier(ONE).unwrap().await;
                recorder.tell(reply.unwrap_err());
            });
        }
    }));
    let switch = bench.join(Version::Of10, 1);
    bench.run_until(ms(5));
    assert_eq!(bench.take(switch).len(), names.len());
    bench.controller.disconnect(switch, bench.now);
    bench.poll();
    for name in names {
        let expected = format!("{name}: the switch disconnected before it replied");
        assert_eq!(record.next(), expected);
    }
}

#[test]
fn messages_sent_together_arrive_together() {
    let mut bench = Bench::new(beside(|_| ()));
    let switch = bench.join(Version::Of10, 1);
    let network = bench.controller.network().clone();
    let counters = network.counters(ONE).unwrap();
    let numbered = |experimenter| {
        let data = &[];
        Message::Experimenter(Experimenter { experimenter, data })
    };
    let messages: Vec<_> = (0..5).map(numbered).collect();
    let before = counters.sent.get();
    network.send_all(ONE, &messages).unwrap();
    network.send_all(ONE, &[]).unwrap();
    // One of them cannot be sent, so neither is.
    let refused = network.send_all(ONE, &[numbered(9), Message::GetAsyncRequest]);
    assert!(matches!(refused, Err(RequestError::Encode(_))));
    bench.poll();
    let sent = bench.take(switch);
    assert_eq!(sent.len(), 5);
    for (frame, message) in sent.iter().zip(&messages) {
        assert_eq!(&frame.message(), message);
    }
    assert_eq!(counters.sent.get() - before, 5);
}

#[test]
fn busy_programs_are_reported_and_others_continue() {
    let ([recorder], record) = recorders(["p"]);
    let mut bench = Bench::new(beside(move |background| {
        background.spawn("restless", async {
            loop {
                yield_now().await;
            }
        });
        let (recorder, own) = (recorder.clone(), background.clone());
        background.spawn("calm", async move {
            loop {
                own.sleep(ms(1)).await;
                recorder.tell("awake");
            }
        });
    }));
    for round in 1..=3 {
        bench.poll();
        assert_eq!(bench.controller.background_counters().stalls(), round);
        let next = bench.controller.next_timeout().unwrap();
        assert_eq!(next, ms(round), "they rest until time has passed");
        bench.now = next;
    }
    assert_eq!(
        (record.next(), record.next()),
        ("p: awake".into(), "p: awake".into())
    );
    assert!(record.is_empty());
}

/// Yields to the other programs.
async fn yield_now() {
    let mut has_yielded = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut has_yielded, true) {
            return std::task::Poll::Ready(());
        }
        context.waker().wake_by_ref();
        std::task::Poll::Pending
    })
    .await;
}

/// Notes that it is dropped, and then panics if requested.
struct Guard {
    is_dropped: Arc<AtomicBool>,
    panics: bool,
}

impl Guard {
    fn new() -> (Self, Arc<AtomicBool>) {
        let is_dropped = Arc::new(AtomicBool::new(false));
        let guard = Self {
            is_dropped: is_dropped.clone(),
            panics: false,
        };
        (guard, is_dropped)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.is_dropped.store(true, Ordering::Relaxed);
        assert!(!self.panics, "at the end");
    }
}

#[test]
fn panicking_programs_are_counted_and_dropped_and_others_continue() {
    let ([recorder], record) = recorders(["p"]);
    let (guard, is_dropped) = Guard::new();
    let guard = Mutex::new(Some(guard));
    let mut bench = Bench::new(beside(move |background| {
        let (own, guard) = (background.clone(), guard.lock().unwrap().take().unwrap());
        background.spawn("fragile", async move {
            let _guard = guard;
            own.sleep(ms(1)).await;
            panic!("in the middle");
        });
        let (mut ends_badly, _) = Guard::new();
        ends_badly.panics = true;
        background.spawn("ends badly", async move {
            drop(ends_badly);
        });
        let (recorder, own) = (recorder.clone(), background.clone());
        background.spawn("lives", async move {
            own.sleep(ms(2)).await;
            recorder.tell("lives");
        });
    }));
    bench.run_until(ms(2));
    assert_eq!(record.next(), "p: lives");
    assert!(is_dropped.load(Ordering::Relaxed));
    assert_eq!(bench.controller.background_counters().panics(), 2);
}

/// Spawns futures that wait for something of the controller, each with a guard.
fn waiting(background: &Background, guards: [Guard; 5]) {
    let [on_timer, on_reply, on_event, on_nothing, never_polled] = guards;
    let own = background.clone();
    background.spawn("on a timer", async move {
        let _guard = on_timer;
        own.sleep(Duration::from_secs(3600)).await;
    });
    let own = background.clone();
    background.spawn("on a reply", async move {
        let _guard = on_reply;
        own.sleep(ms(1)).await;
        let _ = own.network().barrier(ONE).unwrap().await;
    });
    let own = background.clone();
    background.spawn("on an event", async move {
        let _guard = on_event;
        let mut events = own.network().events();
        while events.next().await.is_some() {}
    });
    let own = background.clone();
    background.spawn("on nothing", async move {
        let _guard = on_nothing;
        let _own = own;
        std::future::pending::<()>().await;
    });
    let own = background.clone();
    background.spawn("starts another", async move {
        own.sleep(ms(1)).await;
        own.clone().spawn("never polled", async move {
            let _guard = never_polled;
            let _own = own;
        });
        // The other program is ready when the end comes: this one keeps the controller busy until then.
        loop {
            yield_now().await;
        }
    });
}

#[test]
fn stopping_drops_every_waiting_program() {
    for is_dropped in [false, true] {
        let (guards, dropped): (Vec<_>, Vec<_>) = (0..5).map(|_| Guard::new()).unzip();
        let guards: [Guard; 5] = guards.try_into().ok().unwrap();
        let guards = Mutex::new(Some(guards));
        let (kept, program) = Guard::new();
        let late: Arc<Mutex<Option<Background>>> = Arc::default();
        let keep = late.clone();
        let mut bench = Bench::new(beside(move |background| {
            let _of_the_program = &kept;
            *keep.lock().unwrap() = Some(background.clone());
            waiting(background, guards.lock().unwrap().take().unwrap());
        }));
        let switch = bench.join(Version::Of10, 1);
        bench.now = ms(1);
        bench.poll();
        bench.take(switch);
        if is_dropped {
            drop(bench);
        } else {
            bench.controller.stop();
        }
        for (index, is_dropped) in dropped.iter().enumerate() {
            assert!(is_dropped.load(Ordering::Relaxed), "future {index}");
        }
        assert!(program.load(Ordering::Relaxed), "the program itself");
        // A program spawned now would never run.
        let (guard, is_dropped) = Guard::new();
        let background = late.lock().unwrap().take().unwrap();
        background.spawn("late", async move { drop(guard) });
        assert!(is_dropped.load(Ordering::Relaxed));
    }
}

#[test]
fn equal_calls_have_equal_output() {
    let run = || {
        let mut bench = Bench::new(beside(|background| {
            for number in 1..=3_u32 {
                let own = background.clone();
                background.spawn("talks", chatter(own, number));
            }
        }));
        let switches = [1, 2, 3, 4].map(|id| bench.join(Version::Of13, id));
        let mut said = Vec::new();
        for step in 1..=50 {
            bench.run_until(ms(step));
            for switch in switches {
                said.push(bench.take_bytes(switch));
            }
        }
        said
    };
    let first = run();
    assert!(first.concat().len() > 1000);
    assert_eq!(run(), first);
}

/// Sends a message to each switch, every few milliseconds.
async fn chatter(background: Background, number: u32) {
    let network = background.network();
    loop {
        background.sleep(ms(u64::from(number))).await;
        for id in network.switches() {
            let data = &[0; 4];
            let message = Message::Experimenter(Experimenter {
                experimenter: number,
                data,
            });
            network.send(id, &message).unwrap();
            network
                .install(id, Match::any(), &[], EntryOptions::idle(number as u16))
                .unwrap();
        }
    }
}

/// Returns the events since the last call.
fn happened(bench: &mut Bench, events: &mut Events<NetworkEvent>) -> Vec<String> {
    bench.poll();
    let mut happened = Vec::new();
    while let Some(Some(event)) = now_or_never(events.next()) {
        happened.push(match event {
            NetworkEvent::Up(info) => format!("up {} {}", info.datapath_id.0, info.ports.len()),
            NetworkEvent::Port(info, status) => {
                let port = status.port.port_no;
                format!(
                    "port {port} of {}, has {}",
                    info.datapath_id.0,
                    info.ports.len()
                )
            }
            NetworkEvent::Down(info) => format!("down {}", info.datapath_id.0),
            NetworkEvent::Missed(count) => format!("missed {count}"),
            other => format!("{other:?}"),
        });
    }
    happened
}

/// Returns a future's output if it is ready at once.
fn now_or_never<F: Future>(future: F) -> Option<F::Output> {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::pin!(future).poll(&mut context) {
        std::task::Poll::Ready(output) => Some(output),
        std::task::Poll::Pending => None,
    }
}

fn port_status(reason: PortReason, number: u32) -> Message<'static> {
    let port = port(number);
    Message::PortStatus(PortStatus { reason, port })
}

#[test]
fn events_report_joined_changed_and_left_switches() {
    let mut bench = Bench::new(beside(|_| ()));
    let mut events = bench.controller.network().events();
    let switches = [(Version::Of10, 2), (Version::Of13, 1)].map(|(version, id)| {
        let switch = bench.join(version, id);
        assert_eq!(happened(&mut bench, &mut events), [format!("up {id} 3")]);
        (version, switch)
    });
    for (version, switch) in switches {
        bench.input(
            switch,
            &encode(version, 0, &port_status(PortReason::Add, 4)),
        );
    }
    let expected = ["port 4 of 2, has 4", "port 4 of 1, has 4"];
    assert_eq!(happened(&mut bench, &mut events), expected);
    // A late subscriber receives the current state, in order, and nothing else.
    let mut late = bench.controller.network().events();
    assert_eq!(happened(&mut bench, &mut late), ["up 1 4", "up 2 4"]);
    // A newer connection replaces an older one.
    bench.connect();
    let newer = bench.controller.connect("newer".into(), bench.now);
    bench.input(newer, &said_by_hand());
    assert_eq!(bench.controller.poll(bench.now).len(), 1);
    for events in [&mut events, &mut late] {
        assert_eq!(happened(&mut bench, events), ["down 1", "up 1 0"]);
    }
    bench.controller.disconnect(switches[0].1, bench.now);
    let network = bench.controller.network().clone();
    bench.controller.stop();
    for mut events in [events, late] {
        let first = now_or_never(events.next()).unwrap().unwrap();
        let second = now_or_never(events.next()).unwrap().unwrap();
        assert!(matches!(first, NetworkEvent::Down(info) if info.datapath_id.0 == 2));
        assert!(matches!(second, NetworkEvent::Down(info) if info.datapath_id.0 == 1));
        assert!(now_or_never(events.next()).is_none());
    }
    drop(network);
}

#[test]
fn events_end_with_the_network() {
    let bench = Bench::new(beside(|_| ()));
    let mut events = bench.controller.network().events();
    drop(bench);
    assert!(now_or_never(events.next()).unwrap().is_none());
}

#[test]
fn switches_join_once_their_ports_are_known() {
    let mut bench = Bench::new(beside(|_| ()));
    let mut events = bench.controller.network().events();
    let switch = bench.connect();
    let version = Version::Of13;
    bench.input(switch, &[4, 0, 0, 8, 0, 0, 0, 0]);
    bench.input(switch, &encode(version, 0, &features(version, 1)));
    bench.input(
        switch,
        &encode(version, 0, &port_status(PortReason::Add, 1)),
    );
    assert!(bench.is_connected(1));
    assert!(happened(&mut bench, &mut events).is_empty());
    let mut late = bench.controller.network().events();
    assert!(happened(&mut bench, &mut late).is_empty());
    // So its end is not reported either.
    bench.controller.disconnect(switch, bench.now);
    assert!(happened(&mut bench, &mut events).is_empty());
}

#[test]
fn slow_receivers_get_the_number_of_missed_events() {
    let mut bench = Bench::new(beside(|_| ()));
    let switch = bench.join(Version::Of10, 1);
    let mut events = bench.controller.network().events();
    assert_eq!(happened(&mut bench, &mut events), ["up 1 3"]);
    let status = encode(Version::Of10, 0, &port_status(PortReason::Modify, 1));
    for _ in 0..5000 {
        bench.input(switch, &status);
    }
    let told = happened(&mut bench, &mut events);
    assert_eq!(told[0], "missed 904");
    assert_eq!(told.len(), 1 + 4096);
}

#[test]
fn transactions_have_no_effects_besides_their_variables() {
    let mut bench = Bench::new(beside(|_| ()));
    let switch = bench.join(Version::Of10, 1);
    bench.take(switch);
    let network = bench.controller.network().clone();
    let variable = TVar::new(1_u64);
    let refused = atomically(|transaction| {
        variable.write(transaction, 2)?;
        let sent = network.send(ONE, &Message::BarrierRequest);
        let asked = network.barrier(ONE).err();
        let installed = network.install(ONE, Match::any(), &[], EntryOptions::PERMANENT);
        Ok([sent.err(), asked, installed.err()])
    });
    assert_eq!(refused, [const { Some(RequestError::InTransaction) }; 3]);
    let sentence = RequestError::InTransaction.to_string();
    assert!(sentence.starts_with("messages cannot be sent inside a transaction"));
    bench.poll();
    assert!(bench.take(switch).is_empty());
    network.send(ONE, &Message::BarrierRequest).unwrap();
    bench.poll();
    assert_eq!(bench.take(switch).len(), 1);
}

#[test]
fn transactions_cannot_start_programs() {
    let ([recorder], record) = recorders(["p"]);
    let mut bench = Bench::new(beside(move |background| {
        atomically(|_| {
            let recorder = recorder.clone();
            background.spawn("hasty", async move { recorder.tell("started") });
            Ok(())
        });
    }));
    bench.poll();
    assert!(record.is_empty());
    assert_eq!(bench.controller.background_counters().panics(), 1);
}
