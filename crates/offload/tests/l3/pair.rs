//! Two controllers with equal input, whose routers' output is compared.

use crate::packets::Packet;
use crate::plan::{HOSTS, PORTS, XID, port_of, question_for_gateway, router, router_kernel};
use crate::switch::{
    Channel, InMemory, PATIENCE, SETTLE_XID, connect, headers, join_with_ports, settle,
};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Instant;
use urtica_controller::{Running, SwitchCounters};
use urtica_offload::{Mode, RouterKernel};
use urtica_services::Hosts;
use urtica_wire::{DatapathId, Header, Version};

const ERROR: u8 = 1;
const ECHO_REPLY: u8 = 3;
const PACKET_OUT: u8 = 13;

/// Appends an answer of the session: an error or an echo reply. The messages on which routes depend, such as the
/// provisioner's entries, come from other threads, and are not answers.
fn note(session: &mut Vec<u8>, header: &Header, message: &[u8]) {
    match header.message_type {
        ERROR => session.extend_from_slice(message),
        ECHO_REPLY if header.xid != SETTLE_XID => session.extend_from_slice(message),
        _ => {}
    }
}

/// A switch whose controller answers in the kernel, and one whose controller is the program alone; both receive equal
/// input.
pub struct Pair {
    controller: Arc<Running>,
    pub hosts: Hosts,
    pub kernel: RouterKernel,
    pub real: TcpStream,
    id: DatapathId,
    pub version: Version,
    reference: InMemory,
    /// Output of the real controller that has not been compared yet.
    said: Vec<u8>,
    /// Output of the router in the reference model, which must equal the real one's.
    expected: Vec<u8>,
    /// Number of bytes that have been compared.
    compared: usize,
    /// The session's answers of the real controller, and those of the reference model.
    session: Vec<u8>,
    expected_session: Vec<u8>,
}

impl Pair {
    /// Creates a pair that knows all hosts. Returns `None` if the machine has no kernel half.
    pub fn new(mode: Mode, version: Version) -> Option<Self> {
        Self::with_hosts(mode, version, 1..=HOSTS)
    }

    /// Creates a pair in which both controllers know these hosts.
    pub fn with_hosts(
        mode: Mode,
        version: Version,
        hosts: impl IntoIterator<Item = u8>,
    ) -> Option<Self> {
        let mut pair = Self::with_unknown_hosts(mode, version)?;
        pair.introduce(hosts);
        Some(pair)
    }

    /// Sends hosts' requests for their gateways.
    pub fn introduce(&mut self, hosts: impl IntoIterator<Item = u8>) {
        for host in hosts {
            self.come(host, question_for_gateway(host));
        }
        self.compare();
    }

    fn with_unknown_hosts(mode: Mode, version: Version) -> Option<Self> {
        let kernel = router_kernel(mode)?;
        let (controller, hosts) = router(Some(kernel.clone()));
        let controller = controller.listen("ptcp:0:127.0.0.1".parse().unwrap());
        let controller = Arc::new(controller.shards(2).start().unwrap());
        Some(Self::join(controller, hosts, kernel, version, 1))
    }

    /// Adds another switch to the controller. Its hosts are not known yet.
    pub fn beside(&self, id: u64) -> Self {
        let (hosts, kernel) = (self.hosts.clone(), self.kernel.clone());
        Self::join(self.controller.clone(), hosts, kernel, self.version, id)
    }

    fn join(
        controller: Arc<Running>,
        hosts: Hosts,
        kernel: RouterKernel,
        version: Version,
        id: u64,
    ) -> Self {
        let (mut real, mut reference) = (connect(&controller), InMemory::of(router(None).0));
        join_with_ports(&mut real, version, id, PORTS);
        join_with_ports(&mut reference, version, id, PORTS);
        Self {
            controller,
            hosts,
            kernel,
            real,
            id: DatapathId(id),
            version,
            reference,
            said: Vec::new(),
            expected: Vec::new(),
            compared: 0,
            session: Vec::new(),
            expected_session: Vec::new(),
        }
    }

    /// Sends a host's frame.
    pub fn come(&mut self, host: u8, frame: Vec<u8>) {
        self.come_in(port_of(host), frame);
    }

    /// Sends a frame that arrives at a port.
    pub fn come_in(&mut self, in_port: u32, frame: Vec<u8>) {
        let mut message = Vec::new();
        packet_in(in_port, frame).encode(self.version, 1, &mut message);
        self.send(&message);
    }

    /// Sends input to both controllers, to the real one as this piece.
    pub fn send(&mut self, bytes: &[u8]) {
        self.expect(bytes);
        self.real.send(bytes);
    }

    /// Sends input to the reference model.
    pub fn expect(&mut self, bytes: &[u8]) {
        self.reference.send(bytes);
        loop {
            let mut said = self.reference.take();
            if said.is_empty() {
                return;
            }
            let session = &mut self.expected_session;
            let routers = take(&mut said, |header, message| note(session, header, message));
            self.expected.extend(routers);
        }
    }

    /// Waits until the router has sent as much as expected, and compares.
    pub fn compare(&mut self) {
        let mut said = self.take_said();
        while said.len() < self.expected.len() || self.session.len() < self.expected_session.len() {
            self.said.extend(self.real.receive());
            said.extend(self.take_said());
        }
        assert_same(&said, &self.expected);
        assert_same(&self.session, &self.expected_session);
        self.compared += said.len();
        self.expected.clear();
        self.session.clear();
        self.expected_session.clear();
    }

    /// Removes the real controller's messages; returns the router's packet-outs.
    fn take_said(&mut self) -> Vec<u8> {
        let session = &mut self.session;
        take(&mut self.said, |header, message| {
            note(session, header, message)
        })
    }

    /// Sends input to both controllers, and reads from the real one in between.
    pub fn send_in_pieces<'s>(
        &mut self,
        stream: &'s [u8],
        cut: impl FnOnce(&'s [u8]) -> Vec<&'s [u8]>,
    ) {
        self.expect(stream);
        let (pieces, mut socket) = (cut(stream), self.real.try_clone().unwrap());
        std::thread::scope(|scope| {
            scope.spawn(move || pieces.into_iter().for_each(|piece| socket.send(piece)));
            self.compare();
        });
    }

    /// Waits until the controller has forgotten all other switches and their hosts.
    pub fn wait_until_alone(&self) {
        let start = Instant::now();
        while self.controller.network().switches() != [self.id] || !self.hosts.all().is_empty() {
            assert!(start.elapsed() < PATIENCE, "they are forgotten");
            std::thread::yield_now();
        }
    }

    pub fn counters(&self) -> Arc<SwitchCounters> {
        let network = self.controller.network();
        network.counters(self.id).expect("it is connected")
    }

    /// Checks that no further output follows.
    pub fn finish(mut self) {
        self.compare();
        // Handlers' other messages are sent with the next opportunity after an echo reply.
        for _ in 0..3 {
            let mut said = Vec::new();
            settle(&mut self.real, &mut said, self.version);
            self.said.extend(said);
        }
        assert_same(&self.take_said(), &[]);
        assert!(self.compared > 0, "nothing was to be said");
        drop(self.real);
        // The last of the controller's switches stops it.
        if let Some(controller) = Arc::into_inner(self.controller) {
            controller.stop().unwrap();
        }
    }
}

/// Creates a packet-in with a packet that the switch has not buffered.
pub fn packet_in(in_port: u32, frame: Vec<u8>) -> Packet {
    Packet {
        buffer_id: u32::MAX,
        in_port,
        frame,
    }
}

/// Removes the complete messages at the front. Returns the router's packet-outs.
pub fn take_routers(bytes: &mut Vec<u8>) -> Vec<u8> {
    take(bytes, |_, _| {})
}

/// Like `take_routers`, but passes the other messages to `other`.
fn take(bytes: &mut Vec<u8>, mut other: impl FnMut(&Header, &[u8])) -> Vec<u8> {
    let (mut at, mut routers) = (0, Vec::new());
    for header in headers(bytes) {
        let message = &bytes[at..at + usize::from(header.length)];
        match (header.message_type, header.xid) == (PACKET_OUT, XID) {
            true => routers.extend_from_slice(message),
            false => other(&header, message),
        }
        at += message.len();
    }
    bytes.drain(..at);
    routers
}

/// Fails if the outputs differ, and prints the first different message.
pub fn assert_same(said: &[u8], expected: &[u8]) {
    let (mut at, mut number) = (0, 0);
    while at < said.len().max(expected.len()) {
        let (one, other) = (message_at(said, at), message_at(expected, at));
        assert!(
            one == other,
            "message {number}, of {} bytes in all and not {}:\n{one:02x?}\nexpected\n{other:02x?}",
            said.len(),
            expected.len(),
        );
        at += one.len();
        number += 1;
    }
}

fn message_at(bytes: &[u8], at: usize) -> &[u8] {
    let rest = bytes.get(at..).unwrap_or_default();
    let length = headers(rest).next().map_or(0, |header| header.length);
    &rest[..usize::from(length).min(rest.len())]
}
