//! A router whose kernel half outlives its controller: its facts are either still true, or not used.

use crate::pair::packet_in;
use crate::plan::{
    CONFIG, PORTS, XID, gateway_ip, handed, header, ip_of, mac_of, port_of, question,
    question_for_gateway, router_kernel, router_of,
};
use crate::switch::{Channel, PATIENCE, connect, headers, join_with_ports, port, settle};
use std::io::Read;
use std::net::{Ipv4Addr, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use urtica_controller::hold::{Held, Holder, attach};
use urtica_controller::{NetworkEvent, Running};
use urtica_offload::{Halves, Mode};
use urtica_services::Hosts;
use urtica_wire::packet::{EthernetView, Headers, Ipv4, Ipv4View, arp, ether_type};
use urtica_wire::{
    Capabilities, DatapathId, Features, List, Message, MultipartFlags, MultipartReply,
    MultipartReplyBody, MultipartRequestBody, Port, PortReason, PortState, PortStatus, Version,
};

const LONG: Duration = Duration::from_secs(600);
const SWITCH: DatapathId = DatapathId(1);

/// A holder on a thread instead of a process.
struct Room {
    folder: tempfile::TempDir,
    holder: JoinHandle<std::io::Result<usize>>,
}

/// A controller with the router.
struct Router {
    running: Running,
    hosts: Hosts,
    going_on: usize,
}

impl Room {
    /// Returns `None` if the machine has no kernel half.
    fn new() -> Option<Self> {
        router_kernel(Mode::Kernel)?;
        let folder = tempfile::tempdir().unwrap();
        let holder = Holder::bind(&folder.path().join("hold.sock")).unwrap();
        Some(Self {
            folder,
            holder: thread::spawn(move || holder.run()),
        })
    }

    fn attach(&self) -> Held {
        attach(&self.folder.path().join("hold.sock"), LONG).unwrap()
    }

    fn start(&self) -> Router {
        self.start_with(CONFIG, self.attach())
    }

    fn start_with(&self, config: &str, mut held: Held) -> Router {
        let mut halves = Halves::of(&mut held).mode(Mode::Kernel);
        let kernel = halves.start_router(&held.link).unwrap();
        let going_on = halves.going_on();
        let (controller, hosts) = router_of(config, Some(kernel));
        let address = "ptcp:0:127.0.0.1".parse().unwrap();
        let controller = controller.listen(address).shards(1).pin(false);
        let controller = controller.held_halves(halves).hold(held);
        Router {
            running: controller.start().unwrap(),
            hosts,
            going_on,
        }
    }

    /// Ends the router, the connections and the holder.
    fn end(self, router: Router) {
        router.running.stop().unwrap();
        self.holder.join().unwrap().unwrap();
    }
}

impl Router {
    /// Leaves the router to the kernel, which then forwards alone.
    fn leave(self, room: &Room, switch: &mut Switch) {
        let mut router = self;
        for _ in 0..20 {
            switch.settle();
            switch.forwards_in_kernel(&router, 2, 3);
            router.running.leave().unwrap();
            // The router may have sent a request just before. Then the switch's reply is waited for, and all input behind it
            // waits. The reply precedes the second packet, but not the first.
            if (0..2).all(|_| switch.is_forwarded_for(2, 3)) {
                return;
            }
            router = room.start();
            router.wait_until_up(switch);
        }
        panic!("the kernel forwards nothing alone");
    }

    fn answered_in_kernel(&self) -> u64 {
        let counters = self.running.network().counters(SWITCH);
        counters.map_or(0, |counters| counters.answered_in_kernel.get())
    }

    /// Waits until the switch has described its ports again.
    fn wait_until_up(&self, switch: &mut Switch) {
        let mut events = self.running.network().events();
        while !matches!(events.try_next(), Some(NetworkEvent::Up(_))) {
            switch.settle();
        }
    }
}

/// A message of the router to a host: a packet with this number, or the answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sent {
    Packet(u16),
    Answer,
    /// A request, because the router does not know the destination of a packet.
    Question,
}

/// A switch that answers requests.
struct Switch {
    socket: TcpStream,
    version: Version,
    received: Vec<u8>,
    sent: Vec<Sent>,
    number: u16,
    /// The port that is down.
    down: Option<u32>,
}

impl Switch {
    fn join(router: &Router, version: Version) -> Self {
        let mut socket = connect(&router.running);
        join_with_ports(&mut socket, version, SWITCH.0, PORTS);
        Self {
            socket,
            version,
            received: Vec::new(),
            sent: Vec::new(),
            number: 0,
            down: None,
        }
    }

    fn send(&mut self, message: &Message, xid: u32) {
        let mut bytes = Vec::new();
        message.encode(self.version, xid, &mut bytes).unwrap();
        self.socket.send(&bytes);
    }

    fn come(&mut self, host: u8, frame: Vec<u8>) {
        let mut bytes = Vec::new();
        packet_in(port_of(host), frame).encode(self.version, 1, &mut bytes);
        self.socket.send(&bytes);
    }

    /// Sends a host's request for an address. Returns whether it is answered after the controller has handled it.
    fn asks(&mut self, host: u8, address: Ipv4Addr) -> bool {
        self.sent.clear();
        self.come(host, question(host, address));
        self.settle();
        self.sent.contains(&Sent::Answer)
    }

    /// Sends a packet from one host to another.
    fn hands_over(&mut self, from: u8, to: u8) {
        self.number += 1;
        let header = Ipv4 {
            identification: self.number,
            ..header(from, ip_of(to))
        };
        self.come(from, handed(from, &header, b"a packet"));
    }

    /// Sends a packet from one host to another, which must be forwarded.
    fn forwards(&mut self, from: u8, to: u8) {
        self.hands_over(from, to);
        let packet = Sent::Packet(self.number);
        while !self.sent.contains(&packet) {
            self.take_message();
        }
        let count = self.sent.iter().filter(|sent| **sent == packet).count();
        assert_eq!(count, 1);
    }

    /// Sends a packet from one host to another. Returns whether it is forwarded, which it need not be.
    fn is_forwarded_for(&mut self, from: u8, to: u8) -> bool {
        self.hands_over(from, to);
        let packet = Sent::Packet(self.number);
        let patience = Duration::from_secs(2);
        self.socket.set_read_timeout(Some(patience)).unwrap();
        let mut bytes = [0; 4096];
        while !self.sent.contains(&packet) {
            if self.take_if_whole() {
                continue;
            }
            match self.socket.read(&mut bytes) {
                Ok(count) if count > 0 => self.received.extend_from_slice(&bytes[..count]),
                _ => break,
            }
        }
        self.socket.set_read_timeout(Some(PATIENCE)).unwrap();
        self.sent.contains(&packet)
    }

    /// Sends packets until a router's kernel half has forwarded some.
    fn forwards_in_kernel(&mut self, router: &Router, from: u8, to: u8) {
        let (before, start) = (router.answered_in_kernel(), Instant::now());
        while router.answered_in_kernel() == before {
            assert!(start.elapsed() < PATIENCE, "the kernel forwards nothing");
            self.forwards(from, to);
        }
    }

    /// Waits until all input has been handled, and other messages of handlers have arrived.
    fn settle(&mut self) {
        for _ in 0..3 {
            let mut said = std::mem::take(&mut self.received);
            settle(&mut self.socket, &mut said, self.version);
            self.received = said;
            while self.take_if_whole() {}
        }
    }

    fn take_message(&mut self) {
        while !self.take_if_whole() {
            let more = self.socket.receive();
            self.received.extend(more);
        }
    }

    /// Handles the next message, if it is complete. Returns whether it is.
    fn take_if_whole(&mut self) -> bool {
        let Some(header) = headers(&self.received).next() else {
            return false;
        };
        let rest = self.received.split_off(usize::from(header.length));
        let message = std::mem::replace(&mut self.received, rest);
        match Message::decode(&message).unwrap().1 {
            Message::PacketOut(packet_out) if header.xid == XID => self.note(packet_out.data),
            Message::PacketOut(_) => {}
            message => self.answer(header.xid, &message),
        }
        true
    }

    fn ports(&self) -> List<'static, Port> {
        let ports = (1..=PORTS).map(|number| self.port(number));
        List::from(ports.collect::<Vec<_>>())
    }

    fn port(&self, number: u32) -> Port {
        let mut port = port(number);
        if self.down == Some(number) {
            port.state = PortState::LINK_DOWN;
        }
        port
    }

    /// Answers requests of the services and the session.
    fn answer(&mut self, xid: u32, message: &Message) {
        let reply = match message {
            Message::FeaturesRequest => Message::FeaturesReply(Features {
                datapath_id: SWITCH,
                n_buffers: 256,
                n_tables: 1,
                auxiliary_id: 0,
                capabilities: Capabilities::empty(),
                actions: 0,
                ports: self.ports(),
            }),
            Message::MultipartRequest(request) => {
                let body = match &request.body {
                    MultipartRequestBody::PortDesc => MultipartReplyBody::PortDesc(self.ports()),
                    _ => MultipartReplyBody::Flow(List::default()),
                };
                let flags = MultipartFlags::empty();
                Message::MultipartReply(MultipartReply { flags, body })
            }
            Message::BarrierRequest => Message::BarrierReply,
            _ => return,
        };
        self.send(&reply, xid);
    }

    /// Records a message of the router.
    fn note(&mut self, data: &[u8]) {
        let frame = EthernetView::new(data).unwrap();
        if frame.ether_type() == ether_type::IPV4 {
            let packet = Ipv4View::new(frame.payload()).unwrap();
            self.sent.push(Sent::Packet(packet.identification()));
        }
        if let Some(said) = Headers::parse(data).arp {
            self.sent.push(match said.op {
                arp::REQUEST => Sent::Question,
                _ => Sent::Answer,
            });
        }
    }
}

/// Starts a router, and a switch with hosts 2 and 3 whose packets the kernel forwards.
fn begin(room: &Room, version: Version) -> (Router, Switch) {
    let router = room.start();
    assert_eq!(router.going_on, 0);
    let mut switch = Switch::join(&router, version);
    for host in [2, 3] {
        let gateway = gateway_ip(ip_of(host).octets()[2]);
        assert!(switch.asks(host, gateway));
    }
    switch.forwards_in_kernel(&router, 2, 3);
    (router, switch)
}

/// The kernel forwards while there is no controller. The next controller continues with the hosts in its tables, and requests
/// none of their addresses.
#[test]
fn tables_are_continued() {
    for version in Version::ALL {
        let Some(room) = Room::new() else { return };
        let (first, mut switch) = begin(&room, version);
        first.leave(&room, &mut switch);
        for round in 0..3 {
            for _ in 0..100 {
                switch.forwards(2, 3);
            }
            assert!(
                !switch.sent.contains(&Sent::Question),
                "{version:?} {round}"
            );
            let mut held = room.attach();
            if round == 1 {
                // Other programs of this layout are loaded for the existing maps.
                let label = &mut held.commons[0].attachment.label;
                let code = label.rfind(' ').unwrap() + 1;
                label.replace_range(code.., "0");
            }
            let next = room.start_with(CONFIG, held);
            assert_eq!(next.going_on, 1);
            next.wait_until_up(&mut switch);
            switch.forwards_in_kernel(&next, 2, 3);
            for host in [2, 3] {
                let known = next.hosts.find_ipv4(ip_of(host)).expect("it was known");
                assert_eq!(
                    (known.mac, known.attached.port_no.0),
                    (mac_of(host), port_of(host))
                );
            }
            assert!(!switch.sent.contains(&Sent::Question));
            next.leave(&room, &mut switch);
        }
        let last = room.start();
        room.end(last);
    }
}

/// Maps of another version are released: the connection stays, but hosts are learnt again.
#[test]
fn tables_of_another_version_are_released() {
    for version in Version::ALL {
        let Some(room) = Room::new() else { return };
        let (first, mut switch) = begin(&room, version);
        first.leave(&room, &mut switch);
        let mut held = room.attach();
        let label = &mut held.commons[0].attachment.label;
        *label = "urtica kernel half l3.4711 0".into();
        let second = room.start_with(CONFIG, held);
        assert_eq!(second.going_on, 0);
        second.wait_until_up(&mut switch);
        assert!(second.hosts.find(mac_of(3)).is_none());
        for host in [2, 3] {
            switch.come(host, question_for_gateway(host));
        }
        switch.forwards_in_kernel(&second, 2, 3);
        room.end(second);
    }
}

/// Facts that contradict a new plan of subnets are not used any longer.
#[test]
fn facts_of_an_old_plan_are_not_used() {
    let plan = CONFIG.replace("02:00:00:00:02:fe", "02:00:00:00:02:fd");
    for version in Version::ALL {
        let Some(room) = Room::new() else { return };
        // Host 3 is in subnet 1, host 2 in subnet 3, host 4 in subnet 2.
        let (first, mut switch) = begin(&room, version);
        assert!(switch.asks(4, gateway_ip(2)));
        switch.forwards_in_kernel(&first, 4, 3);
        first.leave(&room, &mut switch);
        let second = room.start_with(&plan, room.attach());
        assert_eq!(second.going_on, 1);
        second.wait_until_up(&mut switch);
        // By the gateway that still exists.
        switch.forwards_in_kernel(&second, 2, 3);
        // By the gateway that no longer exists.
        switch.sent.clear();
        for _ in 0..20 {
            switch.hands_over(4, 3);
            switch.settle();
        }
        assert_eq!(switch.sent, [], "nobody has that gateway");
        assert!(switch.asks(4, gateway_ip(2)), "another one has the address");
        room.end(second);
    }
}

/// The next controller notices changes of a port while there was no controller.
#[test]
fn hosts_behind_ports_that_are_down_receive_nothing() {
    for version in Version::ALL {
        let Some(room) = Room::new() else { return };
        let (first, mut switch) = begin(&room, version);
        first.leave(&room, &mut switch);
        switch.down = Some(port_of(3));
        let status = PortStatus {
            reason: PortReason::Modify,
            port: switch.port(port_of(3)),
        };
        switch.send(&Message::PortStatus(status), 1);
        let second = room.start();
        let start = Instant::now();
        while second.hosts.find(mac_of(3)).is_some() || second.hosts.find(mac_of(2)).is_none() {
            assert!(start.elapsed() < PATIENCE, "it is not given up");
            switch.settle();
        }
        switch.sent.clear();
        switch.hands_over(2, 3);
        while !switch.sent.contains(&Sent::Question) {
            switch.take_message();
        }
        assert!(!switch.sent.contains(&Sent::Packet(switch.number)));
        room.end(second);
    }
}
