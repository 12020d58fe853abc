//! The cost of replacing one of four programs while the controller runs.
//!
//! `cargo bench -p urtica-net --bench changes` runs four programs with 25 entries each on each of 200 switches, and replaces
//! one of them while packets are in flight. It prints the number of flow mods, the number of redundant ones, the number of lost
//! packets, and the time on this machine. Under `cargo test` there are few switches, and it prints nothing.
//!
//! Not measured: sockets, and switches that are slow to list their entries.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use urtica_controller::{
    Controller, EntryOptions, Program, ProgramSlot, Switch, SwitchHandler, SwitchInfo,
};
use urtica_net::watch::{Event, Violation, Watcher};
use urtica_net::{Datagrams, Net, NetConfig};
use urtica_topology::spec::TopologySpec;
use urtica_wire::{Match, Message, PortNo, split_frame};

/// The number of entries of each program in a switch.
const ENTRIES: u16 = 25;

/// The first UDP port of each program's entries.
const FIRSTS: [u16; 4] = [1000, 2000, 3000, 4000];

/// The number of switches in a measurement and under `cargo test`.
const SWITCHES: usize = 200;
const SWITCHES_IN_TESTS: usize = 2;

/// Drops packets to some UDP ports. The first program also floods all other packets.
#[derive(Clone, Copy)]
struct Drops(u16);

impl Program for Drops {
    fn handler(&self, _: &SwitchInfo) -> Box<dyn SwitchHandler> {
        Box::new(*self)
    }
}

impl SwitchHandler for Drops {
    fn switch_up(&mut self, switch: &mut Switch) {
        let _ = switch.delete(Match::any());
        if self.0 < FIRSTS[1] {
            let lowest = EntryOptions {
                priority: 1,
                ..EntryOptions::PERMANENT
            };
            let _ = switch.install(Match::any(), PortNo::FLOOD, lowest);
        }
        for port in (self.0..).take(ENTRIES.into()) {
            let udp = Match::any().eth_type(0x0800).ip_proto(17);
            let _ = switch.install(udp.udp_dst(port), &[], EntryOptions::PERMANENT);
        }
    }
}

/// Counts the flow mods that arrive at switches.
#[derive(Default)]
struct Count(usize);

impl Watcher for Count {
    fn see(&mut self, _: Duration, event: &Event<'_>) -> Result<(), Violation> {
        let Event::ToSwitch(_, mut rest) = *event else {
            return Ok(());
        };
        while let Ok(Some((frame, after))) = split_frame(rest) {
            rest = after;
            self.0 += usize::from(matches!(
                Message::decode(frame),
                Ok((_, Message::FlowMod(_)))
            ));
        }
        Ok(())
    }
}

fn main() {
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let switches = if is_bench {
        SWITCHES
    } else {
        SWITCHES_IN_TESTS
    };
    for moved in [0, 5, ENTRIES] {
        let differing = 2 * switches * usize::from(moved);
        let (sent, lost, took) = measure(switches, moved);
        if is_bench {
            println!(
                "{moved:>2} of {ENTRIES} entries differ on {switches} switches: {sent:>6} flow mods, {} that did not differ, {lost} packets lost; {took:.3?}",
                sent.saturating_sub(differing)
            );
        }
    }
}

/// Replaces a program by one with `moved` different entries. Returns the flow mods, the lost packets, and the time.
fn measure(switches: usize, moved: u16) -> (usize, u64, Duration) {
    let spec: TopologySpec = format!("linear,{switches}").parse().expect("a topology");
    let plan = spec.plan().expect("a plan");
    let mut net = Net::new(&plan, NetConfig::default()).expect("the plan is a network");
    let controller = FIRSTS
        .into_iter()
        .fold(Controller::new(), |controller, first| {
            controller.program(Drops(first))
        });
    net.start_controller(controller).expect("it has programs");
    net.run_for(Duration::from_secs(5));
    let (from, to) = (net.host("h1").expect("h1"), net.host("h2").expect("h2"));
    let flow = Datagrams {
        count: 200,
        payload_bytes: 100,
        interval: Duration::from_millis(20),
    };
    let flow = net.start_datagrams(from, to, flow).expect("a flow");
    net.run_for(Duration::from_millis(200));
    let count = Rc::new(RefCell::new(Count::default()));
    net.watch(Rc::clone(&count));
    let ids = net.program_ids();
    let mut slots: Vec<_> = ids.iter().copied().map(ProgramSlot::Keep).collect();
    slots[0] = ProgramSlot::Replace(ids[0], Arc::new(Drops(FIRSTS[0] + moved)));
    let start = Instant::now();
    net.set_programs(&slots).expect("they can run");
    net.run_for(Duration::from_secs(6));
    let took = start.elapsed();
    let report = net.flow_report(flow).expect("the flow");
    let sent = count.borrow().0;
    (sent, report.sent - report.received, took)
}
