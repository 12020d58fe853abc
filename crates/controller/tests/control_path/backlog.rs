//! The backlog of slow switches: accepted messages are not lost, senders of too many get an error, and a switch with a full
//! backlog is still read from.

use crate::in_memory::*;
use crate::support::*;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use urtica_controller::{
    Background, ConnectionId, Controller, EntryOptions, Network, RequestError, Switch,
    SwitchHandler, SwitchInfo,
};
use urtica_wire::{Action, DatapathId, Experimenter, Match, Message, PacketIn, PortNo, Version};

const ONE: DatapathId = DatapathId(1);

/// As many as in an example that lost 14,000 of them.
const MANY: u32 = 60_000;

/// Returns a message with a number and 60,000 more bytes.
fn large(number: u32) -> Message<'static> {
    Message::Experimenter(Experimenter {
        experimenter: number,
        data: &[0; 60_000],
    })
}

/// Sends large messages, numbered from 0, until one is refused. Returns the number of accepted ones.
fn send_until_busy(network: &Network) -> u32 {
    for number in 0.. {
        match network.send(ONE, &large(number)) {
            Ok(()) => {}
            Err(error) => {
                assert_eq!(error, RequestError::Busy(ONE));
                return number;
            }
        }
    }
    panic!("a switch that never reads takes four billion messages");
}

fn number_of(frame: &Frame) -> Option<u32> {
    match frame.message() {
        Message::Experimenter(message) => Some(message.experimenter),
        _ => None,
    }
}

/// Adds an entry for each of these ports until one is refused. Returns the ports of accepted entries, and the error.
fn install(network: &Network, ports: Range<u32>) -> (Range<u32>, Option<RequestError>) {
    for port in ports.clone() {
        if let Err(error) = install_one(network, port) {
            return (ports.start..port, Some(error));
        }
    }
    (ports, None)
}

fn install_one(network: &Network, port: u32) -> Result<(), RequestError> {
    let match_ = Match::any().in_port(PortNo(port));
    let to_two = [Action::output(PortNo(2))];
    network.install(ONE, match_, &to_two, EntryOptions::PERMANENT)
}

/// Returns the ingress port of an added entry.
fn port_of(frame: &Frame) -> Option<u32> {
    match frame.message() {
        Message::FlowMod(entry) => entry.match_.get(urtica_wire::OxmField::InPort),
        _ => None,
    }
    .map(|(port, _)| port as u32)
}

/// Removes a switch's output little by little, until none is left. Returns the messages.
fn take_slowly(bench: &mut Bench, switch: ConnectionId) -> Vec<Frame> {
    let mut bytes = Vec::new();
    loop {
        let output = bench.controller.output(switch).unwrap();
        let taken = output.len().min(50_000);
        bytes.extend(output.drain(..taken));
        if taken == 0 {
            break frames(&bytes);
        }
        bench.poll();
    }
}

/// Returns a program that sends 60 MB to the first switch, waiting for space, and records when it is done.
fn bulk_sender(recorder: Recorder) -> impl urtica_controller::Program {
    Beside(move |background: &Background| {
        let (recorder, own) = (recorder.clone(), background.clone());
        background.spawn("sender", async move {
            let network = own.network();
            network.events().next().await;
            for number in 0..1000 {
                let send = || network.send(ONE, &large(number));
                if let Err(error) = network.when_ready(ONE, send).await {
                    return recorder.tell(error);
                }
            }
            recorder.tell("done");
        });
    })
}

#[test]
fn switches_are_busy_until_they_read() {
    let ([recorder], record) = recorders(["sender"]);
    let program = bulk_sender(recorder);
    let running = controller(1).program(program).start().unwrap();
    let mut switch = FakeSwitch::join(&running, Version::Of13, 1);
    let counters = running.network().counters(ONE).unwrap();
    eventually("a message is refused", || counters.refused.get() > 0);
    assert!(record.is_empty(), "no socket takes so much");
    for number in 0..1000 {
        assert_eq!(number_of(&switch.receive()), Some(number));
    }
    assert_eq!(record.next(), "sender: done");
    running.stop().unwrap();
}

#[test]
fn waiting_senders_learn_of_disconnections() {
    let ([recorder], record) = recorders(["sender"]);
    let program = bulk_sender(recorder);
    let running = controller(1).program(program).start().unwrap();
    let unknown = block_on(running.network().ready(ONE));
    assert_eq!(unknown, Err(RequestError::UnknownSwitch(ONE)));
    let switch = FakeSwitch::join(&running, Version::Of13, 1);
    let counters = running.network().counters(ONE).unwrap();
    eventually("a message is refused", || counters.refused.get() > 0);
    drop(switch);
    let told = record.next();
    let [left, gone] = [RequestError::Disconnected, RequestError::UnknownSwitch(ONE)];
    // The second error if the sender was about to send.
    assert!(
        [left, gone]
            .map(|error| format!("sender: {error}"))
            .contains(&told),
        "{told}"
    );
    running.stop().unwrap();
}

#[test]
fn entries_added_in_one_turn_are_sent_or_refused() {
    for version in Version::ALL {
        let result = Arc::new(Mutex::new(None));
        let shared = Arc::clone(&result);
        let mut bench = Bench::new(beside(move |background| {
            let (own, shared) = (background.clone(), Arc::clone(&shared));
            background.spawn("sender", async move {
                own.network().events().next().await;
                *shared.lock().unwrap() = Some(install(own.network(), 0..MANY));
            });
        }));
        let switch = bench.join(version, 1);
        bench.poll();
        let (taken, error) = result.lock().unwrap().take().unwrap();
        assert_eq!(error, Some(RequestError::Busy(ONE)));
        let got: Vec<_> = take_slowly(&mut bench, switch)
            .iter()
            .filter_map(port_of)
            .collect();
        assert!(got.into_iter().eq(taken));
    }
}

#[test]
fn slow_switches_get_all_entries_of_waiting_senders() {
    for version in Version::ALL {
        let ([recorder], record) = recorders(["sender"]);
        let mut bench = Bench::new(beside(move |background| {
            let (recorder, own) = (recorder.clone(), background.clone());
            background.spawn("sender", async move {
                let network = own.network();
                network.events().next().await;
                for port in 0..MANY {
                    let install = || install_one(network, port);
                    network.when_ready(ONE, install).await.unwrap();
                }
                recorder.tell("done");
            });
        }));
        let switch = bench.join(version, 1);
        assert!(record.is_empty(), "it is taken faster than it is read");
        let got: Vec<_> = take_slowly(&mut bench, switch)
            .iter()
            .filter_map(port_of)
            .collect();
        assert!(got.into_iter().eq(0..MANY));
        assert_eq!(record.next(), "sender: done");
    }
}

#[test]
fn batches_are_accepted_whole_or_refused() {
    let mut bench = Bench::new(beside(|_| ()));
    let switch = bench.join(Version::Of13, 1);
    let network = bench.controller.network().clone();
    let many: Vec<_> = (0..200).map(large).collect();
    network.send_all(ONE, &many).unwrap();
    let refused = network.send_all(ONE, &many[..2]);
    assert_eq!(refused, Err(RequestError::Busy(ONE)));
    assert_eq!(network.barrier(ONE).err(), Some(RequestError::Busy(ONE)));
    bench.poll();
    let got: Vec<_> = take_slowly(&mut bench, switch)
        .iter()
        .filter_map(number_of)
        .collect();
    assert!(got.into_iter().eq(0..200));
    network.send_all(ONE, &many[..2]).unwrap();
}

/// Adds entries to switch 1 for packets from other switches, and records the number of accepted ones.
struct Filler(Recorder);

impl SwitchHandler for Filler {
    fn packet_in(&mut self, switch: &mut Switch, _: &PacketIn) {
        let (taken, error) = install(switch.network(), 0..MANY);
        self.0.tell(format_args!("{} {error:?}", taken.len()));
    }
}

#[test]
fn handlers_get_an_error_for_full_queues_of_other_switches() {
    let ([recorder], record) = recorders(["handler"]);
    let program = move |_: &SwitchInfo| Filler(recorder.clone());
    let mut bench = Bench::new(Controller::new().program(program));
    let [one, two] = [1, 2].map(|id| bench.join(Version::Of10, id));
    bench.packet_in(two, Version::Of10);
    bench.poll();
    let got = take_slowly(&mut bench, one)
        .iter()
        .filter_map(port_of)
        .count();
    assert!(got < MANY as usize);
    let busy = RequestError::Busy(ONE);
    assert_eq!(record.next(), format!("handler: {got} Some({busy:?})"));
}

/// Returns a switch with a full backlog of messages from elsewhere, and a full output.
fn overfull(bench: &mut Bench) -> (ConnectionId, u32) {
    let switch = bench.join(Version::Of10, 1);
    let taken = send_until_busy(bench.controller.network());
    bench.poll();
    (switch, taken)
}

#[test]
fn switches_are_read_while_their_queue_is_long() {
    let ([recorder], record) = recorders(["p"]);
    let program = move |_: &SwitchInfo| recorder.clone();
    let mut bench = Bench::new(Controller::new().program(program));
    let (switch, _) = overfull(&mut bench);
    assert_eq!(record.next(), "p: up, 3 ports");
    bench.packet_in(switch, Version::Of10);
    assert_eq!(record.next(), "p: packet of 46 from 1");
    assert!(bench.controller.wants_input(switch));
}

#[test]
fn replies_follow_queued_messages_and_pause_reading() {
    let mut bench = Bench::new(Controller::new().program(|_: &SwitchInfo| Hub));
    let (switch, taken) = overfull(&mut bench);
    let mut got = bench.take_bytes(switch);
    // The output has space now, but the waiting messages have not been moved there.
    bench.packet_in(switch, Version::Of10);
    assert!(!bench.controller.wants_input(switch), "a reply waits");
    bench.packet_in(switch, Version::Of10);
    bench.poll();
    while !bench.controller.output(switch).unwrap().is_empty() {
        got.extend(bench.take_bytes(switch));
        bench.poll();
    }
    let got = frames(&got);
    let (before, replies) = got.split_at(taken as usize);
    assert!(before.iter().filter_map(number_of).eq(0..taken));
    assert_eq!(replies.len(), 2);
    for reply in replies {
        assert!(matches!(reply.message(), Message::PacketOut(_)));
    }
}

#[test]
fn switches_that_never_read_use_bounded_memory() {
    let mut bench = Bench::new(Controller::new().program(|_: &SwitchInfo| Hub));
    let (switch, taken) = overfull(&mut bench);
    let mut said = 0;
    while bench.controller.wants_input(switch) {
        bench.packet_in(switch, Version::Of10);
        said += 1;
    }
    let got = take_slowly(&mut bench, switch);
    assert_eq!(got.len(), taken as usize + said);
}

#[test]
fn slow_readers_stay_connected_and_non_readers_do_not() {
    let mut bench = Bench::new(Controller::new().program(|_: &SwitchInfo| Quiet));
    let (slow, _) = overfull(&mut bench);
    let dead = bench.join(Version::Of10, 2);
    for second in 1..=60 {
        bench.now = Duration::from_secs(second);
        if second % 5 == 0 {
            bench.controller.output(slow).unwrap().drain(..10_000);
        }
        let ended = bench.controller.handle_timeout(bench.now);
        let ended: Vec<_> = ended.iter().map(|(switch, _)| *switch).collect();
        let expected = if second == 15 { vec![dead] } else { vec![] };
        assert_eq!(ended, expected, "after {second} s");
    }
}

/// Such as a switch whose agent hangs, while its system still accepts input.
#[test]
fn sent_messages_do_not_keep_silent_switches_alive() {
    let mut bench = Bench::new(Controller::new().program(|_: &SwitchInfo| Quiet));
    let mute = bench.join(Version::Of10, 1);
    for second in 1..=15 {
        bench.now = Duration::from_secs(second);
        let sent = bench
            .controller
            .network()
            .send(DatapathId(1), &Message::BarrierRequest);
        assert_eq!(sent, Ok(()));
        let ended = bench.controller.handle_timeout(bench.now);
        let ended: Vec<_> = ended.iter().map(|(switch, _)| *switch).collect();
        let expected = if second == 15 { vec![mute] } else { vec![] };
        assert_eq!(ended, expected, "after {second} s");
        bench.take_bytes(mute);
    }
}

#[test]
fn slow_switches_over_sockets_get_all_messages_and_are_read() {
    let ([recorder], record) = recorders(["p"]);
    let program = move |_: &SwitchInfo| recorder.clone();
    let running = controller(1).program(program).start().unwrap();
    let mut switch = FakeSwitch::join(&running, Version::Of13, 1);
    assert_eq!(record.next(), "p: up, 3 ports");
    let network = running.network();
    let taken = send_until_busy(network);
    switch.send(0, &Message::PacketIn(packet_in(&UDP)));
    assert_eq!(record.next(), "p: packet of 46 from 1");
    for number in 0..taken {
        assert_eq!(number_of(&switch.receive()), Some(number));
    }
    switch.assert_served();
    running.stop().unwrap();
}
