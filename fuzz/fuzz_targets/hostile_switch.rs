//! A controller with services and an application, two switches that do as they should, and one that lies, floods, stalls and
//! never reads: nothing panics; what the hostile switch says costs memory, work and replies in proportion; the others' packets
//! and echo requests are answered all the while, and no link of theirs is made up or lost.
//!
//! Work is measured in bytes allocated: unlike time it is the same in every run.

#![no_main]

#[path = "../../crates/services/tests/hosts/net.rs"]
#[allow(
    dead_code,
    reason = "the tests that this is shared with use more of it"
)]
mod net;
mod hostile_switch {
    pub mod allocator;
    pub mod switch;
}

use hostile_switch::allocator;
use hostile_switch::switch::{HostileSwitch, Said};
use libfuzzer_sys::arbitrary::{self, Arbitrary, Unstructured};
use libfuzzer_sys::fuzz_target;
use net::{Net, ToSwitch, port};
use std::time::Duration;
use urtica_apps::{EdgeLearning, L2, LockFree, Routing};
use urtica_services::{
    Discovery, DiscoveryConfig, Hosts, HostsConfig, NeighbourProxy, Routes,
};
use urtica_controller::{Controller, SwitchInfo};
use urtica_wire::{Message, Version};

/// How many switches do as they should; their ids are 1 and 2.
const OTHERS: u64 = 2;

/// The most that the hostile switch says in one run, so that a run is short.
const MAX_SAID: u64 = 1 << 20;

/// The most that passes at a time: what is due every half second is done then.
const TICK: Duration = Duration::from_millis(500);

/// The most that a run may cost: so much for the switches that do as they should, for each byte that the hostile one says, and
/// for either in each second, as ports are probed and hosts are asked for.
struct Price {
    base: u64,
    per_byte: u64,
    per_second: u64,
    per_byte_second: u64,
}

/// Bytes that are in use.
const MEMORY: Price = Price {
    base: 2 << 20,
    per_byte: 32,
    per_second: 0,
    per_byte_second: 0,
};

/// Bytes that have been allocated, freed or not.
const WORK: Price = Price {
    base: 4 << 20,
    per_byte: 1024,
    per_second: 256 << 10,
    per_byte_second: 16,
};

/// Bytes that have been sent to all switches.
const OUTPUT: Price = Price {
    base: 16 << 10,
    per_byte: 32,
    per_second: 4 << 10,
    per_byte_second: 2,
};

/// One run. Its steps reach to the input's end.
#[derive(Debug)]
struct Plan {
    application: Application,
    is_newest: bool,
    steps: Vec<Step>,
}

impl<'a> Arbitrary<'a> for Plan {
    fn arbitrary(input: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        let mut plan = Self {
            application: input.arbitrary()?,
            is_newest: input.arbitrary()?,
            steps: Vec::new(),
        };
        while !input.is_empty() {
            plan.steps.push(input.arbitrary()?);
        }
        Ok(plan)
    }
}

#[derive(Arbitrary, Debug)]
enum Application {
    Learning,
    LearningAlongTree,
    Routing,
}

#[derive(Arbitrary, Debug)]
enum Step {
    /// It connects, after hanging up where it was connected, and says nothing.
    Connect {
        is_newest: bool,
    },
    /// It connects and joins as a switch should.
    Join {
        is_newest: bool,
        id: u8,
        ports: u8,
    },
    Say(Said),
    /// It says the same again and again, all at once.
    Flood {
        said: Said,
        count: u16,
    },
    /// Whether it takes what it is sent, from now on.
    Read(bool),
    /// It takes a part of what waits.
    Take(u16),
    Pass {
        ms: u16,
    },
}

fuzz_target!(|plan: Plan| {
    let mut bench = Bench::new(&plan.application, plan.is_newest);
    for step in &plan.steps {
        bench.carry_out(step);
        bench.check();
    }
});

struct Bench {
    net: Net,
    discovery: Discovery,
    hostile: HostileSwitch,
    start: Duration,
    live_before: u64,
    allocated_before: u64,
    sent_before: u64,
    /// How often the other switches have been asked for.
    rounds: u32,
}

impl Bench {
    fn new(application: &Application, is_newest: bool) -> Self {
        let version = match is_newest {
            true => Version::Of13,
            false => Version::Of10,
        };
        let discovery = Discovery::new(DiscoveryConfig {
            secret: Some([7; 32]),
            ..DiscoveryConfig::default()
        });
        let hosts = Hosts::new(&discovery, HostsConfig::default());
        let routes = Routes::new(&discovery);
        let controller = Controller::new()
            .program(discovery.clone())
            .program(hosts.clone())
            .program(NeighbourProxy::new(&hosts))
            .program(routes.clone());
        let controller = match application {
            Application::Learning => controller.program(|_: &SwitchInfo| L2::default()),
            Application::LearningAlongTree => {
                controller.program(EdgeLearning::<LockFree>::along_tree(&discovery))
            }
            Application::Routing => controller.program(Routing::new(&hosts, &routes)),
        };
        let (live_before, allocated_before) = (allocator::live(), allocator::allocated());
        let mut net = Net::line(controller, version, OTHERS);
        net.advance(Duration::from_secs(1));
        let mut bench = Self {
            start: net.now,
            net,
            discovery,
            hostile: HostileSwitch::default(),
            live_before,
            allocated_before,
            sent_before: 0,
            rounds: 0,
        };
        bench.sent_before = bench.sent();
        bench
    }

    fn carry_out(&mut self, step: &Step) {
        match step {
            Step::Connect { is_newest } => self.hostile.connect(&mut self.net, *is_newest),
            Step::Join {
                is_newest,
                id,
                ports,
            } => self.hostile.join(&mut self.net, *is_newest, *id, *ports),
            Step::Say(said) => self.say(said, 1),
            Step::Flood { said, count } => self.say(said, *count % 1024),
            Step::Read(reads) => self.hostile.reads = *reads,
            Step::Take(bytes) => self.hostile.take(&mut self.net, usize::from(*bytes)),
            Step::Pass { ms } => self.pass(Duration::from_millis(u64::from(*ms))),
        }
        self.net.settle();
        self.hostile.take_if_it_reads(&mut self.net);
    }

    fn say(&mut self, said: &Said, count: u16) {
        let message = self.hostile.put(said);
        let count = usize::from(count);
        if self.hostile.said + (count * message.len()) as u64 <= MAX_SAID {
            self.hostile.say(&mut self.net, &message.repeat(count));
        }
    }

    fn pass(&mut self, mut duration: Duration) {
        while !duration.is_zero() {
            let tick = duration.min(TICK);
            duration -= tick;
            self.net.advance(tick);
            for (ended, reason) in self.net.controller.handle_timeout(self.net.now) {
                assert!(self.hostile.is(ended), "another's connection: {reason}");
            }
            self.net.settle();
            self.hostile.take_if_it_reads(&mut self.net);
        }
    }

    fn check(&mut self) {
        self.check_others();
        let background = self.net.controller.background_counters();
        assert_eq!((background.panics(), background.stalls()), (0, 0));
        let live = allocator::live().saturating_sub(self.live_before);
        let allocated = allocator::allocated() - self.allocated_before;
        self.check_price("memory", &MEMORY, live);
        self.check_price("work", &WORK, allocated);
        self.check_price("output", &OUTPUT, self.sent() - self.sent_before);
    }

    /// A packet of each other switch is answered, its echo request too, and the link between them is known.
    fn check_others(&mut self) {
        self.net.told.clear();
        self.net.delivered.clear();
        self.rounds += 1;
        for id in 1..=OTHERS {
            let frame = frame_of(id, self.rounds);
            self.net.packet_in(port(id, 3), &frame);
            let is_answer = |told: &(u64, ToSwitch)| match told {
                (to, ToSwitch::PacketOut { data, .. }) => *to == id && *data == frame,
                _ => false,
            };
            assert!(self.net.told.iter().any(is_answer), "{:?}", self.net.told);
            let echo = Message::EchoRequest(b"still there?");
            self.net.send_message(id, self.rounds, &echo);
            self.net.settle();
            let answer = (id, ToSwitch::EchoReply { xid: self.rounds });
            assert!(self.net.told.contains(&answer), "{:?}", self.net.told);
        }
        let topology = self.discovery.topology().load();
        let links = topology.directed_links().iter();
        let among_others = links
            .filter(|link| link.from.switch.0 <= OTHERS || link.to.switch.0 <= OTHERS)
            .map(|link| (link.from, link.to));
        let link = [port(1, 2), port(2, 1)];
        assert_eq!(
            among_others.collect::<Vec<_>>(),
            [(link[0], link[1]), (link[1], link[0])]
        );
    }

    fn check_price(&self, of: &str, price: &Price, used: u64) {
        let seconds = 1 + (self.net.now - self.start).as_secs();
        let said = self.hostile.said;
        let most = price.base
            + price.per_second * (seconds + u64::from(self.rounds))
            + said * (price.per_byte + price.per_byte_second * seconds);
        assert!(
            used <= most,
            "{of}: {used} bytes, expected at most {most} for {said} bytes said and {seconds} s"
        );
    }

    fn sent(&self) -> u64 {
        let shards = self.net.controller.network().shard_counters();
        shards.map(|shard| shard.sent_bytes.get()).sum()
    }
}

/// From the host at port 3 of this switch to one that nobody knows; no two are the same, as a packet that goes in circles is.
fn frame_of(id: u64, round: u32) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0xff, id as u8, 2, 0, 0, 0, 0, id as u8];
    frame.extend([0x88, 0xb5]);
    frame.extend(round.to_be_bytes());
    frame.resize(60, 0);
    frame
}
