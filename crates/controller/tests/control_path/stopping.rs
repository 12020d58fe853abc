//! The orderly shutdown: waiting output is sent, `switch_down` is called, sockets are closed.

use crate::support::*;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;
use urtica_controller::{Controller, Running, Switch, SwitchHandler, SwitchInfo};
use urtica_wire::{DatapathId, Experimenter, Message, PacketIn, Version};

#[test]
fn stopping_notifies_handlers_and_closes_connections() {
    let ([recorder], record) = recorders(["p"]);
    let program = move |_: &SwitchInfo| recorder.clone();
    let running = controller(2).program(program).start().unwrap();
    let address = running.addresses()[0].clone();
    let mut switches: Vec<_> = [1, 2]
        .map(|id| FakeSwitch::join(&running, Version::Of13, id))
        .into_iter()
        .collect();
    let mut stranger = FakeSwitch::over(connect(&running), Version::Of13);
    assert!(stranger.try_receive().is_some());
    assert_eq!(
        (record.next(), record.next()),
        ("p: up, 3 ports".into(), "p: up, 3 ports".into())
    );
    running.stop().unwrap();
    let mut told = [record.next(), record.next()];
    told.sort();
    assert_eq!(
        told,
        ["p: down 0000000000000001", "p: down 0000000000000002"]
    );
    assert!(stranger.try_receive().is_none());
    assert!(
        switches
            .iter_mut()
            .all(|switch| switch.try_receive().is_none())
    );
    // The address is free for another listener.
    let again = Controller::new()
        .listen(address)
        .shards(1)
        .pin(false)
        .program(|_: &SwitchInfo| Hub);
    again.start().unwrap().stop().unwrap();
}

#[test]
fn dropping_stops_the_controller() {
    let ([recorder], record) = recorders(["p"]);
    let running = controller(2)
        .program(move |_: &SwitchInfo| recorder.clone())
        .start()
        .unwrap();
    let network = running.network().clone();
    let mut switch = FakeSwitch::join(&running, Version::Of13, 1);
    assert_eq!(record.next(), "p: up, 3 ports");
    drop(running);
    assert_eq!(record.next(), "p: down 0000000000000001");
    assert!(network.switches().is_empty());
    assert!(switch.try_receive().is_none());
}

/// Drops the controller that it runs in when it handles a packet, and reports the end of its switch.
struct Ending(Arc<Mutex<Option<Running>>>, mpsc::Sender<DatapathId>);

impl SwitchHandler for Ending {
    fn packet_in(&mut self, _: &mut Switch, _: &PacketIn) {
        drop(self.0.lock().unwrap().take());
    }

    fn switch_down(&mut self, info: &SwitchInfo) {
        self.1.send(info.datapath_id).unwrap();
    }
}

#[test]
fn handlers_may_drop_their_controller() {
    let slot = Arc::new(Mutex::new(None));
    let (sender, gone) = mpsc::channel();
    let held = Arc::clone(&slot);
    let running = controller(2)
        .program(move |_: &SwitchInfo| Ending(Arc::clone(&held), sender.clone()))
        .start()
        .unwrap();
    let mut switch = FakeSwitch::join(&running, Version::Of10, 1);
    *slot.lock().unwrap() = Some(running);
    switch.send(0, &Message::PacketIn(packet_in(&UDP)));
    assert_eq!(gone.recv_timeout(DEADLINE).unwrap(), DatapathId(1));
    assert!(switch.try_receive().is_none());
}

/// Answers a packet with more than a socket accepts at once.
struct Verbose;

const ANSWERS: u32 = 200;

impl SwitchHandler for Verbose {
    fn packet_in(&mut self, switch: &mut Switch, _: &PacketIn) {
        for number in 0..ANSWERS {
            let answer = Experimenter {
                experimenter: number,
                data: &[0; 60_000],
            };
            switch.send(&Message::Experimenter(answer)).unwrap();
        }
    }
}

#[test]
fn queued_messages_are_sent_before_stopping() {
    let running = controller(1)
        .drain_timeout(Duration::MAX)
        .program(|_: &SwitchInfo| Verbose)
        .start()
        .unwrap();
    let mut switch = FakeSwitch::join(&running, Version::Of10, 1);
    let counters = running
        .network()
        .counters(urtica_wire::DatapathId(1))
        .unwrap();
    switch.send(0, &Message::PacketIn(packet_in(&UDP)));
    eventually("more waits than the socket takes", || {
        counters.stalls.get() > 0
    });
    let stopping = std::thread::spawn(move || running.stop());
    for number in 0..ANSWERS {
        let frame = switch.receive();
        let Message::Experimenter(answer) = frame.message() else {
            panic!("expected an answer");
        };
        assert_eq!(answer.experimenter, number);
    }
    assert!(switch.try_receive().is_none());
    stopping.join().unwrap().unwrap();
}

#[test]
fn switches_that_do_not_read_delay_the_end_briefly() {
    let running = controller(1)
        .drain_timeout(Duration::from_millis(10))
        .program(|_: &SwitchInfo| Verbose)
        .start()
        .unwrap();
    let mut switch = FakeSwitch::join(&running, Version::Of10, 1);
    let counters = running
        .network()
        .counters(urtica_wire::DatapathId(1))
        .unwrap();
    switch.send(0, &Message::PacketIn(packet_in(&UDP)));
    eventually("more waits than the socket takes", || {
        counters.stalls.get() > 0
    });
    let ([recorder], record) = recorders(["p"]);
    std::thread::spawn(move || recorder.tell(running.stop().is_ok()));
    assert_eq!(record.next(), "p: true");
}
