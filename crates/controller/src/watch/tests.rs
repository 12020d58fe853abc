//! Tests of a controller in which a thread ends. Handlers, programs and switches cannot cause that, so a bug is simulated: a
//! shard is commanded to hand a switch over to a shard that does not exist.

use super::*;
use crate::{Controller, Running, Switch, SwitchHandler, SwitchInfo};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;
use urtica_socket::Address;
use urtica_wire::{Capabilities, DatapathId, Features, List, Message, Version};

/// Longer than any step, even on a busy machine.
const DEADLINE: Duration = Duration::from_secs(60);

/// Reports the end of its switch.
struct Telling(mpsc::Sender<DatapathId>);

impl SwitchHandler for Telling {
    fn switch_up(&mut self, _: &mut Switch) {}

    fn switch_down(&mut self, info: &SwitchInfo) {
        self.0.send(info.datapath_id).expect("the test listens");
    }
}

/// A controller with two shards and its own socket, and the switches that have disconnected.
struct Bench {
    _directory: tempfile::TempDir,
    socket: PathBuf,
    gone: mpsc::Receiver<DatapathId>,
    controller: Option<Controller>,
}

impl Bench {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let socket = directory.path().join("openflow");
        let (sender, gone) = mpsc::channel();
        let controller = Controller::new()
            .listen(Address::PassiveUnix(socket.clone()))
            .shards(2)
            .pin(false)
            .program(move |_: &SwitchInfo| Telling(sender.clone()));
        Self {
            _directory: directory,
            socket,
            gone,
            controller: Some(controller),
        }
    }

    fn start(&mut self) -> Running {
        let controller = self.controller.take().expect("it is started once");
        controller.start().expect("it starts")
    }
}

/// Connects a 1.0 switch, and reads the controller's messages until it has joined.
fn join(socket: &Path, id: u64) -> UnixStream {
    let mut switch = UnixStream::connect(socket).expect("the controller listens");
    switch.set_read_timeout(Some(DEADLINE)).expect("a time-out");
    let mut said = vec![1, 0, 0, 8, 0, 0, 0, 0];
    let features = Message::FeaturesReply(Features {
        datapath_id: DatapathId(id),
        n_buffers: 0,
        n_tables: 1,
        auxiliary_id: 0,
        capabilities: Capabilities::empty(),
        actions: 0,
        ports: List::default(),
    });
    let encoded = features.encode(Version::Of10, 0, &mut said);
    encoded.expect("1.0 has all of it");
    Message::EchoRequest(b"heard?")
        .encode(Version::Of10, 0x77, &mut said)
        .expect("1.0 has echo requests");
    switch.write_all(&said).expect("the controller reads");
    let mut received = Vec::new();
    while !received.ends_with(b"heard?") {
        let mut byte = [0];
        switch.read_exact(&mut byte).expect("an answer");
        received.extend(byte);
    }
    switch
}

/// Makes the shard that serves the first connection hand it over to a shard that does not exist, until `is_broken`. Repeats
/// the command, since a connection that has been quiet for a moment is not handed over.
fn break_first_shard(network: &Network, switch: &mut UnixStream, is_broken: impl Fn() -> bool) {
    while !is_broken() {
        // Fails if the shard has ended.
        let _ = switch.write_all(&[1, 3, 0, 8, 0, 0, 0, 0]);
        let give = Command::Give { to: 99, share: 1.0 };
        let _ = network.shard(1).mailbox.push(give);
        thread::yield_now();
    }
}

#[test]
fn failed_shards_stop_the_controller_and_disconnect_all_switches() {
    let mut bench = Bench::new();
    let running = bench.start();
    let mut switches = [1, 2].map(|id| join(&bench.socket, id));
    assert!(running.failure().is_none());
    let (sender, told) = mpsc::channel();
    let again = sender.clone();
    running.on_failure(move || sender.send(()).expect("the test listens"));
    break_first_shard(running.network(), &mut switches[0], || {
        running.failure().is_some()
    });
    told.recv_timeout(DEADLINE).expect("the failure");
    for mut switch in switches {
        let mut rest = Vec::new();
        if let Err(error) = switch.read_to_end(&mut rest) {
            // Its last message was not read.
            assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        }
    }
    let ended = running.failure().expect("it has ended").to_string();
    assert!(
        ended.contains("its thread shard-1 ended: it panicked"),
        "{ended}"
    );
    assert!(ended.contains("restart it"), "{ended}");
    running.on_failure(move || again.send(()).expect("the test listens"));
    told.recv_timeout(DEADLINE).expect("the failure at once");
    let network = running.network().clone();
    assert_eq!(running.stop().expect_err("it has ended").to_string(), ended);
    assert_eq!(network.switches(), []);
    assert!(
        network
            .send(DatapathId(1), &Message::BarrierRequest)
            .is_err()
    );
    assert!(UnixStream::connect(&bench.socket).is_err());
    // The handlers of the switch that was being moved were dropped with it.
    assert_eq!(bench.gone.iter().collect::<Vec<_>>(), [DatapathId(2)]);
}

#[test]
fn run_returns_a_readable_error() {
    let mut bench = Bench::new();
    let (sender, started) = mpsc::channel();
    let controller = bench.controller.take().expect("it is started once");
    let controller = controller.program(Spy(sender));
    let running = thread::spawn(move || controller.run_programs());
    let network = started.recv_timeout(DEADLINE).expect("it starts");
    let mut switch = join(&bench.socket, 1);
    break_first_shard(&network, &mut switch, || running.is_finished());
    let ended = running.join().expect("no panic").expect_err("it has ended");
    assert!(matches!(ended, Error::Ended { .. }), "{ended}");
}

/// Sends its network to the test.
struct Spy(mpsc::Sender<Network>);

impl crate::Program for Spy {
    fn handler(&self, _: &SwitchInfo) -> Box<dyn SwitchHandler> {
        struct Quiet;
        impl SwitchHandler for Quiet {}
        Box::new(Quiet)
    }

    fn start(&self, background: &crate::Background) {
        let network = background.network().clone();
        self.0.send(network).expect("the test listens");
    }
}

#[test]
fn any_thread_that_ends_stops_all() {
    for run in [(|| panic!("by mistake")) as fn() -> io::Result<()>, || {
        Err(io::Error::other("by mistake"))
    }] {
        let network = Network::new(2, crate::stage::Tables::Shared).expect("mailboxes");
        let watch = Watch::new(network.clone()).expect("an event");
        let thread = watch.spawn("supervisor".into(), run).expect("a thread");
        thread.join().expect("what happens in it is contained");
        let failure = watch.failure().expect("it is known").to_string();
        assert!(failure.contains("its thread supervisor ended"), "{failure}");
        assert!(failure.contains("by mistake"), "{failure}");
        rustix::io::read(watch.stop_event(), &mut [0; 8]).expect("it is readable");
        for shard in network.shards() {
            assert!(matches!(shard.mailbox.close()[..], [Command::Stop]));
        }
    }
    let network = Network::new(1, crate::stage::Tables::Shared).expect("a mailbox");
    let watch = Watch::new(network).expect("an event");
    let thread = watch.spawn("clock".into(), || Ok(())).expect("a thread");
    thread.join().expect("it ends");
    assert!(watch.failure().is_none(), "it has ended well");
}
