//! Sends flow entries faster than Open vSwitch handles them: no entry is lost.

use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use urtica::controller::{
    Background, Network, Program, RequestError, Switch, SwitchHandler, SwitchInfo,
};
use urtica::prelude::*;
use urtica::wire::{DatapathId, Message};

use crate::namespace::Namespace;
use crate::openvswitch::{self, OpenVswitch};
use crate::process::eventually;
use crate::require;

const BRIDGE: &str = "s1";

const ENTRIES: u64 = 200_000;

/// More than Open vSwitch needs for all entries on a busy machine.
const DEADLINE: Duration = Duration::from_secs(300);

/// A program that adds entries to the first switch on request, and reports the result.
struct Loader {
    start: Mutex<Option<Receiver<()>>>,
    done: Sender<Result<(), RequestError>>,
}

struct Quiet;

impl SwitchHandler for Quiet {
    fn packet_in(&mut self, _: &mut Switch, _: &PacketIn) {}
}

impl Program for Loader {
    fn handler(&self, _: &SwitchInfo) -> Box<dyn SwitchHandler> {
        Box::new(Quiet)
    }

    fn start(&self, background: &Background) {
        let (network, done) = (background.network().clone(), self.done.clone());
        let start = self.start.lock().unwrap().take().expect("it starts once");
        background.spawn("loader", async move {
            // The program has its own thread, and may block.
            if start.recv().is_ok() {
                let _ = done.send(load(&network).await);
            }
        });
    }
}

async fn load(network: &Network) -> Result<(), RequestError> {
    let switch = network.switches()[0];
    for host in 0..ENTRIES {
        let match_ = Match::any().eth_dst(MacAddr::from_u64(0x0200_0000_0000 + host));
        let install = || network.install(switch, match_.clone(), &[], EntryOptions::PERMANENT);
        network.when_ready(switch, install).await?;
    }
    let barrier = || network.request(switch, &Message::BarrierRequest);
    network.when_ready(switch, barrier).await?.await.map(drop)
}

#[test]
fn no_entry_of_200_000_is_lost_on_the_way_to_a_slow_open_vswitch() {
    if !require::root_and(openvswitch::TOOLS) {
        return;
    }
    let room = Namespace::new();
    let switch = OpenVswitch::start(&room);
    // Open vSwitch connects only to unix sockets of this name.
    let socket = switch.file("s1.controller");
    let (start, started) = mpsc::channel();
    let (done, outcome) = mpsc::channel();
    let loader = Loader {
        start: Mutex::new(Some(started)),
        done,
    };
    let running = Controller::new()
        .listen(format!("punix:{}", socket.display()).parse().unwrap())
        .shards(1)
        .program(loader)
        .start()
        .unwrap();
    let target = format!("unix:{}", socket.display());
    switch.add_bridge(BRIDGE, "OpenFlow13", &target, &[]);
    let network = running.network();
    eventually("the switch is up", DEADLINE, || {
        let ids = network.switches();
        let info = ids.first().and_then(|id| network.info(*id));
        info.is_some_and(|info| !info.ports.is_empty())
    });
    let counters: Arc<_> = counters_of_first(network);
    switch.pause();
    start.send(()).unwrap();
    eventually("it does not keep up", DEADLINE, || {
        counters.refused.get() > 0
    });
    switch.resume();
    let outcome = outcome.recv_timeout(DEADLINE).expect("it ends");
    assert_eq!(outcome, Ok(()));
    let sum = switch.dump_aggregate(BRIDGE, "OpenFlow13");
    // The added entries and the table-miss entry.
    let expected = format!("flow_count={}", ENTRIES + 1);
    assert!(sum.contains(&expected), "{sum}");
    drop(switch);
    running.stop().unwrap();
}

fn counters_of_first(network: &Network) -> Arc<urtica::controller::SwitchCounters> {
    let id: DatapathId = network.switches()[0];
    network.counters(id).unwrap()
}
