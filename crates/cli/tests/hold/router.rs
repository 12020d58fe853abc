//! Tests of held connections with `l3` and its kernel half: it continues with the hosts and routes of the earlier
//! program.

use crate::connection::Connection;
use crate::room::*;
use rustix::process::Signal;
use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::process::ExitStatusExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use urtica_wire::packet::{
    Arp, Ethernet, EthernetView, Headers, Ipv4, Ipv4View, arp, ether_type, ethernet, ip_proto,
};
use urtica_wire::{MacAddr, Message, Version};

const PLAN: &str = r#"
[[interface]]
address = "10.0.1.254/24"
mac = "02:00:00:00:01:fe"

[[interface]]
address = "10.0.2.254/24"
mac = "02:00:00:00:02:fe"
"#;

/// The number of a switch's outstanding packets.
const OUTSTANDING: u64 = 32;

/// The time after which an unanswered packet counts as lost with its program, and the next one is sent.
const LOST_AFTER: Duration = Duration::from_millis(500);

/// A room with the router's plan of subnets.
struct Scene {
    room: Room,
    plan: String,
}

impl Scene {
    /// Creates a scene. If kernel halves cannot be tested here, prints a line, or fails with CI=true.
    fn new(program: &'static [&'static str]) -> Option<Self> {
        let room = Room::running(program);
        let plan = room.folder.path().join("subnets.toml");
        fs::write(&plan, PLAN).unwrap();
        let plan = format!("--l3-config={}", plan.display());
        let scene = Self { room, plan };
        holds_kernel_halves(&scene.room, &[&scene.plan]).then_some(scene)
    }

    fn start(&self, name: &str) -> Program {
        self.room.start(name, &[&self.plan])
    }
}

/// A switch with two hosts: at port 1, in the first subnet, and at port 2, in the second. The first sends numbered
/// packets to the second.
struct RoutedSwitch {
    connection: Connection,
    id: u8,
    sent: u64,
    /// The numbers of the packets forwarded since the last clear.
    forwarded: Vec<u64>,
    highest: u64,
    /// The numbers of the router's ARP requests and replies.
    questions: u64,
    answers: u64,
}

impl RoutedSwitch {
    /// Connects, and resolves both hosts' gateways.
    fn join(port: u16, version: Version, id: u8) -> Self {
        let mut switch = Self {
            connection: Connection::join(port, version, id, 2),
            id,
            sent: 0,
            forwarded: Vec::new(),
            highest: 0,
            questions: 0,
            answers: 0,
        };
        for host in [1, 2] {
            let before = switch.answers;
            while switch.answers == before {
                // The router ignores packets until it knows the ports.
                switch.ask_for_gateway(host);
                assert!(switch.take_frame(), "it is answered");
            }
        }
        switch.questions = 0;
        switch
    }

    /// Makes the program answer until the kernel half outlives it and knows both hosts.
    fn answer_until_kept(&mut self, program: &Program) {
        eventually("a kernel half is kept", || {
            self.forward(1);
            program.kept_halves() > 0
        });
        for host in [1, 2] {
            let before = self.answers;
            self.ask_for_gateway(host);
            while self.answers == before {
                assert!(self.take_frame(), "it is answered");
            }
        }
    }

    fn mac(&self, host: u8) -> MacAddr {
        MacAddr::new([2, 0, 0, self.id, 0, host])
    }

    fn address(&self, host: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 0, host, self.id)
    }

    fn ask_for_gateway(&mut self, host: u8) {
        let gateway = Ipv4Addr::new(10, 0, host, 254);
        let request = Arp::request(self.mac(host), self.address(host), gateway);
        self.come_arp(host, MacAddr::BROADCAST, &request);
    }

    fn come_arp(&mut self, host: u8, dst: MacAddr, packet: &Arp) {
        let mut bytes = Vec::new();
        packet.write(&mut bytes);
        self.come(host, dst, ether_type::ARP, &bytes);
    }

    /// Sends the next numbered packet.
    fn send_packet(&mut self) {
        self.sent += 1;
        let mut packet = Vec::new();
        let header = Ipv4::new(self.address(1), self.address(2), ip_proto::UDP);
        header.write(&mut packet, &self.sent.to_be_bytes()).unwrap();
        let gateway = MacAddr::new([2, 0, 0, 0, 1, 0xfe]);
        self.come(1, gateway, ether_type::IPV4, &packet);
    }

    fn come(&mut self, host: u8, dst: MacAddr, ether_type: u16, payload: &[u8]) {
        let mut frame = Vec::new();
        let src = self.mac(host);
        let header = Ethernet {
            dst,
            src,
            ether_type,
        };
        header.write(&mut frame);
        frame.extend_from_slice(payload);
        ethernet::pad_frame(&mut frame, 0);
        self.connection.packet_in(host.into(), &frame);
    }

    /// Handles the next message. Returns `true` if one arrived in time.
    fn take_frame(&mut self) -> bool {
        let Some(message) = self.connection.receive() else {
            return false;
        };
        match Message::decode(&message).unwrap().1 {
            Message::PacketOut(packet_out) => self.handle_packet_out(packet_out.data),
            _ => self.connection.answer(&message),
        }
        true
    }

    fn handle_packet_out(&mut self, data: &[u8]) {
        let Ok(frame) = EthernetView::new(data) else {
            return;
        };
        if let Some(said) = Headers::parse(data).arp {
            return self.handle_arp(&said);
        }
        let packet = Ipv4View::new(frame.payload());
        if let Some(packet) = packet.ok().filter(|packet| packet.dst() == self.address(2)) {
            assert_eq!((packet.ttl(), packet.proto()), (63, ip_proto::UDP));
            assert_eq!(data[..6], self.mac(2).octets());
            let number = u64::from_be_bytes(frame.payload()[20..28].try_into().unwrap());
            assert!(number <= self.sent);
            self.highest = self.highest.max(number);
            self.forwarded.push(number);
        }
    }

    /// Answers ARP requests for the hosts' addresses.
    fn handle_arp(&mut self, said: &Arp) {
        if said.op == arp::REPLY {
            self.answers += 1;
        }
        for host in [1, 2] {
            if said.op == arp::REQUEST && said.tpa == self.address(host) {
                self.questions += 1;
                let reply = Arp {
                    op: arp::REPLY,
                    sha: self.mac(host),
                    spa: said.tpa,
                    tha: said.sha,
                    tpa: said.spa,
                };
                self.come_arp(host, said.sha, &reply);
            }
        }
    }

    /// Sends `count` packets one by one, each of which must be forwarded once.
    fn forward(&mut self, count: u64) {
        self.catch_up();
        for _ in 0..count {
            self.forwarded.clear();
            self.send_packet();
            self.catch_up();
            assert_eq!(self.forwarded, [self.sent]);
        }
    }

    /// Waits until all packets were forwarded.
    fn catch_up(&mut self) {
        while self.highest < self.sent {
            assert!(self.take_frame(), "packet {} is forwarded", self.sent);
        }
    }

    /// Returns `true` if the next packet is forwarded although no program runs.
    fn is_forwarded_by_kernel(&mut self) -> bool {
        self.connection.wait_at_most(Duration::from_secs(2));
        self.send_packet();
        while self.highest < self.sent && self.take_frame() {}
        self.connection.wait_at_most(DEADLINE);
        self.highest == self.sent
    }

    /// Keeps packets outstanding until `stop` is set. Packets not yet answered by a killed program may be lost with
    /// it.
    fn load(mut self, stop: &AtomicBool, answered: &AtomicU64) {
        self.connection.wait_at_most(LOST_AFTER);
        let mut expected = 0;
        while !stop.load(Ordering::Relaxed) {
            while self.sent < expected + OUTSTANDING {
                self.send_packet();
            }
            match self.take_frame() {
                true => expected = expected.max(self.highest),
                false => expected = self.sent,
            }
            answered.fetch_add(self.forwarded.len() as u64, Ordering::Relaxed);
            self.forwarded.clear();
        }
    }
}

/// Checks that the program takes all connections over without a warning.
fn check_taken_over(program: &Program, count: usize) {
    let log = program.log();
    assert!(!log.contains("cannot be used"), "{log}");
    assert!(log.contains(&format!("taken={count} closed=0")), "{log}");
    let going_on = format!("include {count} of an earlier program");
    assert!(log.contains(&going_on), "{log}");
}

/// Loads a program with switches of both versions while `disturb` disturbs it, as in `room.rs`.
fn under_load(scene: &Scene, disturb: impl FnOnce(Program, &dyn Fn(u64)) -> Program) {
    let program = scene.start("first.log");
    let last = load_with(
        program,
        RoutedSwitch::join,
        RoutedSwitch::load,
        |program, progress| {
            program.wait_for_kernel_halves(4);
            disturb(program, progress)
        },
    );
    last.interrupt(&scene.room);
}

#[test]
fn a_router_that_is_killed_at_any_moment_keeps_its_connections() {
    for offload in [
        &["l3", "--offload", "kernel"],
        &["l3", "--offload", "auto"][..],
    ] {
        let Some(scene) = Scene::new(offload) else {
            return;
        };
        under_load(&scene, |mut program, progress| {
            for round in 0..15_u64 {
                if round % 4 != 0 {
                    progress(round * 170 % 1000);
                }
                program.kill();
                program = scene.start(&format!("after-{round}.log"));
                check_taken_over(&program, 4);
            }
            program
        });
    }
}

/// The program is killed before it reads input, notes or discards it, sends, or queries the kernel for the last
/// program's progress.
#[test]
fn a_router_that_is_killed_at_any_system_call_keeps_its_connections() {
    let Some(scene) = Scene::new(&["l3", "--offload", "kernel"]) else {
        return;
    };
    if !has_strace() {
        return;
    }
    under_load(&scene, |mut program, progress| {
        let moments = [
            ("recvfrom", [1, 4]),
            ("pwrite64,pwritev", [1, 5]),
            ("sendto", [1, 3]),
            ("ioctl", [1, 6]),
        ];
        for (calls, times) in moments {
            for nth in times {
                program.kill();
                let name = format!("{calls}-{nth}.log");
                let mut traced = scene
                    .room
                    .start_traced_with(&name, calls, nth, &[&scene.plan]);
                assert_eq!(traced.wait().signal(), Some(9), "{}", traced.log());
                program = scene.start(&format!("after-{calls}-{nth}.log"));
                check_taken_over(&program, 4);
                progress(500);
            }
        }
        program
    });
}

/// The kernel answers while the program is stopped.
#[test]
fn packets_are_forwarded_while_the_router_is_stopped() {
    let Some(scene) = Scene::new(&["l3", "--offload", "kernel"]) else {
        return;
    };
    under_load(&scene, |program, progress| {
        program.signal(Signal::STOP);
        progress(1000);
        program.signal(Signal::CONT);
        program
    });
}

#[test]
fn a_second_router_takes_over_and_the_first_one_ends() {
    let Some(scene) = Scene::new(&["l3", "--offload", "auto"]) else {
        return;
    };
    under_load(&scene, |mut first, progress| {
        let second = scene.start("second.log");
        assert!(first.wait().success(), "{}", first.log());
        check_taken_over(&second, 4);
        progress(1000);
        second
    });
}

/// While no program runs, the kernel forwards each packet once, and the next program needs no ARP request.
#[test]
fn the_next_router_knows_the_hosts() {
    let Some(scene) = Scene::new(&["l3", "--offload", "kernel"]) else {
        return;
    };
    for version in Version::ALL {
        let mut program = scene.start("first.log");
        let mut switch = RoutedSwitch::join(program.port().unwrap(), version, 7);
        switch.answer_until_kept(&program);
        let (mut rounds, mut attempts) = (0, 0..20);
        while rounds < 3 {
            switch.forward(200);
            program.signal(Signal::TERM);
            assert!(program.wait().success(), "{}", program.log());
            // If the program has just sent an ARP request, all packets wait for the next program.
            if switch.is_forwarded_by_kernel() {
                rounds += 1;
                switch.forward(200);
                let answers = switch.answers;
                switch.ask_for_gateway(2);
                while switch.answers == answers {
                    assert!(switch.take_frame(), "the kernel answers for the gateway");
                }
            }
            let attempt = attempts.next().expect("the kernel forwards");
            program = scene.start(&format!("after-{attempt}.log"));
            check_taken_over(&program, 1);
            switch.forward(200);
            assert_eq!(switch.questions, 0, "{version:?} {attempt}");
        }
        program.interrupt(&scene.room);
    }
}

/// From then on the program and its successor forward alone.
#[test]
fn routers_without_a_kernel_half_release_it() {
    let Some(mut scene) = Scene::new(&["l3", "--offload", "kernel"]) else {
        return;
    };
    let program = scene.start("first.log");
    let mut switch = RoutedSwitch::join(program.port().unwrap(), Version::Of10, 7);
    switch.answer_until_kept(&program);
    switch.forward(200);
    program.kill();
    scene.room.with(&["l3", "--offload", "none"]);
    let without = scene.start("without.log");
    switch.send_packet();
    switch.catch_up();
    let log = without.log();
    assert!(log.contains("releasing them"), "{log}");
    switch.forward(500);
    without.interrupt(&scene.room);
}
