//! Two controllers with equal input, whose answers and hosts are compared.

use crate::bench::{
    Channel, PATIENCE, Services, behind, connect, join, messages, settle, start, wait_for,
};
use crate::frames::{announcement, encode, request};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};
use urtica_controller::{ConnectionId, Controller, Embedded, Running, SwitchCounters};
use urtica_offload::Driven;
use urtica_services::Hosts;
use urtica_wire::{DatapathId, Version};

/// Time after which the second controller's ports are host ports.
const LATER: Duration = Duration::from_secs(10);

/// A controller whose services are in the kernel, and one whose services are in the program alone; both receive equal input.
pub struct Pair {
    pub driven: Driven,
    pub services: Services,
    pub running: Running,
    pub real: TcpStream,
    reference: InMemory,
    references: Services,
    version: Version,
    /// Output of the reference model, which must equal the real controller's.
    expected: Vec<u8>,
    /// The real controller's output so far.
    said: Vec<u8>,
    /// The flow mods of the reference model, and those of the real controller.
    flow_mods: [Vec<Vec<u8>>; 2],
}

impl Pair {
    /// Creates a pair, and returns when the kernel answers. Hosts 1 to 8 are known.
    pub fn new(driven: Driven, version: Version) -> Self {
        Self::with(driven, version, |services| services.controller(behind))
    }

    /// Creates a pair with routing behind the services.
    pub fn routing(driven: Driven, version: Version) -> Self {
        Self::with(driven, version, |services| {
            services.controller(services.routing())
        })
    }

    fn with(
        driven: Driven,
        version: Version,
        controller: impl Fn(&Services) -> Controller,
    ) -> Self {
        let (services, references) = (Services::new(), Services::new());
        services.offload_to(&driven);
        let running = start(&driven, controller(&services));
        let mut real = connect(&running);
        let mut reference = InMemory::new(controller(&references));
        join(&mut real, version, 1);
        join(&mut reference, version, 1);
        services.wait_for_host_ports(1);
        reference.pass(LATER);
        references.wait_for_host_ports(1);
        let mut pair = Self {
            driven,
            services,
            running,
            real,
            reference,
            references,
            version,
            expected: Vec::new(),
            said: Vec::new(),
            flow_mods: Default::default(),
        };
        pair.warm_up();
        pair
    }

    fn warm_up(&mut self) {
        for host in 1..=8 {
            self.send(&encode(self.version, &announcement(host)));
        }
        let offload = self.driven.offload();
        let start = Instant::now();
        while offload.counts().requests == 0 {
            assert!(start.elapsed() < PATIENCE, "the kernel answers in time");
            self.send(&encode(self.version, &request(1, 2)));
            self.compare();
        }
    }

    /// Sends input to both controllers, to the real one as this piece.
    pub fn send(&mut self, bytes: &[u8]) {
        self.expect(bytes);
        self.real.send(bytes);
    }

    /// Sends input to the reference model.
    pub fn expect(&mut self, bytes: &[u8]) {
        self.reference.send(bytes);
        self.expected.extend(self.reference.take());
    }

    /// Waits until as much output as expected has arrived, and compares.
    pub fn compare(&mut self) {
        let expected = ordered(&self.expected);
        while ordered(&self.said).len() < expected.len() {
            self.said.extend(self.real.receive());
        }
        let said = ordered(&self.said);
        if let Some(at) = (0..said.len()).find(|&at| said.get(at) != expected.get(at)) {
            panic!(
                "message {at} of {}, expected {}:\n{:02x?}\nexpected\n{:02x?}",
                said.len(),
                expected.len(),
                said.get(at),
                expected.get(at)
            );
        }
        for (all, bytes) in [(0, &self.expected), (1, &self.said)] {
            self.flow_mods[all].extend(flow_mods(bytes));
        }
        self.expected.clear();
        self.said.clear();
    }

    pub fn counters(&self) -> Arc<SwitchCounters> {
        let counters = self.running.network().counters(DatapathId(1));
        counters.expect("it is connected")
    }

    /// Checks that no further output follows, and that both controllers know equal hosts.
    pub fn finish(mut self) {
        let mut end = Vec::new();
        settle(&mut self.reference, &mut end, self.version);
        self.expected.extend(end);
        settle(&mut self.real, &mut self.said, self.version);
        self.compare();
        while self.flow_mods[1].len() < self.flow_mods[0].len() {
            let bytes = self.real.receive();
            self.flow_mods[1].extend(flow_mods(&bytes));
        }
        let [expected, said] = &self.flow_mods;
        assert_eq!(said, expected);
        let expected = known(&self.references.hosts);
        wait_for("both know the same hosts", || {
            known(&self.services.hosts) == expected
        });
        drop(self.real);
        self.running.stop().unwrap();
    }
}

/// Returns all hosts, as text.
fn known(hosts: &Hosts) -> Vec<String> {
    let hosts = hosts.all().into_iter().map(|host| {
        format!(
            "{} {:?} {} {:?} {:?} {}",
            host.mac, host.vlan, host.attached, host.ipv4s, host.ipv6s, host.is_router
        )
    });
    hosts.collect()
}

/// Returns the messages whose order is certain. That of messages sent outside of handlers is not, because they pass through a
/// mailbox; their xids are 0.
fn ordered(bytes: &[u8]) -> Vec<&[u8]> {
    let is_ordered = |message: &&[u8]| message[5..8] != [0; 3];
    messages(bytes).filter(is_ordered).collect()
}

/// Returns the flow mods of programs, in order.
fn flow_mods(bytes: &[u8]) -> Vec<Vec<u8>> {
    const FLOW_MOD: u8 = 14;
    let messages = messages(bytes).filter(|message| message[1] == FLOW_MOD);
    messages.map(<[u8]>::to_vec).collect()
}

/// A controller in memory, and its one switch.
struct InMemory {
    controller: Embedded,
    connection: ConnectionId,
    now: Duration,
}

impl InMemory {
    fn new(controller: Controller) -> Self {
        let mut controller = controller.embed().unwrap();
        let connection = controller.connect("a switch".into(), Duration::ZERO);
        Self {
            controller,
            connection,
            now: Duration::ZERO,
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        self.controller.handle_timeout(self.now);
        self.take();
    }

    fn take(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        loop {
            self.controller.poll(self.now);
            let output = self.controller.output(self.connection);
            let said = output.map(std::mem::take).unwrap_or_default();
            if said.is_empty() {
                return all;
            }
            all.extend(said);
        }
    }
}

impl Channel for InMemory {
    fn send(&mut self, bytes: &[u8]) {
        let heard = self
            .controller
            .handle_input(self.connection, bytes, self.now);
        heard.unwrap();
    }

    fn receive(&mut self) -> Vec<u8> {
        let bytes = self.take();
        assert!(!bytes.is_empty(), "the controller has something to say");
        bytes
    }
}
