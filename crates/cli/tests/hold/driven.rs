//! Tests of held connections with services in the kernel (`--offload driven`): while no program runs, the kernel answers echo
//! requests and requests for the addresses of hosts; the next program knows the hosts of the earlier one.

use crate::connection::Connection;
use crate::kernel::room;
use crate::room::*;
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::process::ExitStatusExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use urtica_wire::packet::{Arp, Ethernet, Headers, arp, ether_type, ethernet};
use urtica_wire::{Action, MacAddr, Message, Version};

const DRIVEN: &[&str] = &[
    "neighbour-proxy,routing",
    "--offload",
    "driven",
    "--northbound=127.0.0.1:0",
];
const WITHOUT: &[&str] = &["neighbour-proxy,routing", "--northbound=127.0.0.1:0"];

/// The host at port 1, which sends requests for the addresses of all others, at port 2.
const CLIENT: u8 = 1;
const FIRST: u8 = 2;
const TARGETS: u64 = 64;

/// The number of a switch's outstanding requests, less than that of targets.
const OUTSTANDING: u64 = 16;

/// The ports that a cable connects.
const CABLE: [u32; 2] = [3, 4];

/// A switch with hosts at ports 1 and 2, and a cable from port 3 to port 4. Each of its requests is an echo request, which
/// must be answered once and in order, and an ARP request, which a program may ignore before it knows the ports.
struct Switch {
    connection: Connection,
    id: u8,
    /// The number of the last request, of the last echo reply, and of the last request that was answered by ARP.
    sent: u64,
    echoed: u64,
    resolved: u64,
    /// The number of its answers by ARP, and of those to other hosts.
    answers: u64,
    others: u64,
}

impl Switch {
    /// Connects, and announces all hosts until the program knows them.
    fn join(port: u16, version: Version, id: u8) -> Self {
        let mut switch = Self {
            connection: Connection::join(port, version, id, 4),
            id,
            sent: 0,
            echoed: 0,
            resolved: 0,
            answers: 0,
            others: 0,
        };
        switch.announce(CLIENT);
        (0..TARGETS).for_each(|number| switch.announce(target(number)));
        while switch.answers < TARGETS {
            switch.request();
            switch.settle();
        }
        switch
    }

    /// Sends requests until the kernel half outlives the program.
    fn answer_until_kept(&mut self, program: &Program) {
        eventually("a kernel half is kept", || {
            self.request();
            self.settle();
            program.kept_halves() > 0
        });
    }

    fn mac(&self, host: u8) -> MacAddr {
        MacAddr::new([2, 0, 0, self.id, 0, host])
    }

    fn address(&self, host: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 0, self.id, host)
    }

    fn port_of(host: u8) -> u32 {
        match (FIRST..FIRST + TARGETS as u8).contains(&host) {
            true => 2,
            false => 1,
        }
    }

    /// Sends an ARP request from one host for another's address.
    fn ask(&mut self, host: u8, other: u8) {
        let request = Arp::request(self.mac(host), self.address(host), self.address(other));
        let mut frame = Vec::new();
        let header = Ethernet {
            dst: MacAddr::BROADCAST,
            src: self.mac(host),
            ether_type: ether_type::ARP,
        };
        header.write(&mut frame);
        request.write(&mut frame);
        ethernet::pad_frame(&mut frame, 0);
        self.connection.packet_in(Self::port_of(host), &frame);
    }

    fn announce(&mut self, host: u8) {
        self.ask(host, host);
    }

    /// Sends the next request.
    fn request(&mut self) {
        self.sent += 1;
        self.ask(CLIENT, target(self.sent));
        let number = self.sent.to_be_bytes();
        self.connection.send(0, &Message::EchoRequest(&number));
    }

    /// Handles the next message. Returns `false` if none arrives in time.
    fn take_frame(&mut self) -> bool {
        let Some(message) = self.connection.receive() else {
            return false;
        };
        match Message::decode(&message).unwrap().1 {
            Message::PacketOut(packet) => {
                if let Some(Action::Output { port, .. }) = packet.actions.iter().next() {
                    self.send_out(port.0, packet.data);
                }
            }
            Message::EchoReply(number) => {
                let number = u64::from_be_bytes(number.try_into().unwrap());
                assert_eq!(number, self.echoed + 1, "each request, once and in order");
                self.echoed = number;
            }
            _ => self.connection.answer(&message),
        }
        true
    }

    /// Handles a frame that leaves by a port: the cable carries probes, and the client receives answers.
    fn send_out(&mut self, port: u32, frame: &[u8]) {
        let is_probe = frame[12..14] == ether_type::LLDP.to_be_bytes();
        if let Some(end) = CABLE.iter().position(|end| *end == port) {
            if is_probe {
                self.connection.packet_in(CABLE[1 - end], frame);
            }
            return;
        }
        let said = Headers::parse(frame).arp;
        let Some(said) = said.filter(|said| said.op == arp::REPLY && port == 1) else {
            return;
        };
        if said.tha != self.mac(CLIENT) {
            self.others += 1;
            return;
        }
        let oldest = self.sent.saturating_sub(TARGETS) + 1;
        let answered = (oldest.max(self.resolved + 1)..=self.sent)
            .find(|number| self.address(target(*number)) == said.spa)
            .expect("each request is answered at most once, and in order");
        assert_eq!(said.sha, self.mac(target(answered)));
        self.resolved = answered;
        self.answers += 1;
    }

    /// Waits until all requests have been answered.
    fn settle(&mut self) {
        while self.echoed < self.sent {
            assert!(self.take_frame(), "request {} is answered", self.sent);
        }
    }

    /// Returns whether the kernel answers, although no program runs.
    fn is_answered_by_kernel(&mut self) -> bool {
        self.connection.wait_at_most(Duration::from_secs(2));
        self.request();
        while self.echoed < self.sent && self.take_frame() {}
        self.connection.wait_at_most(DEADLINE);
        self.echoed == self.sent
    }

    /// Handles messages for a while.
    fn run_for(&mut self, time: Duration) {
        self.connection.wait_at_most(time);
        while self.take_frame() {}
        self.connection.wait_at_most(DEADLINE);
    }

    /// Keeps requests outstanding until `stop` is set, and counts the answers.
    fn load(mut self, stop: &AtomicBool, echoed: &AtomicU64) {
        while !stop.load(Ordering::Relaxed) {
            while self.sent < self.echoed + OUTSTANDING {
                self.request();
            }
            let before = self.echoed;
            assert!(self.take_frame(), "requests are answered");
            echoed.fetch_add(self.echoed - before, Ordering::Relaxed);
        }
        self.settle();
    }
}

/// Returns the host whose address is requested by this number.
fn target(number: u64) -> u8 {
    FIRST + (number % TARGETS) as u8
}

/// Reads JSON from the program's northbound interface.
fn get(program: &Program, path: &str) -> serde_json::Value {
    let log = program.log();
    let (_, after) = log
        .split_once("the northbound interface listens address=")
        .expect("it listens");
    let address = after.lines().next().unwrap().trim();
    let mut socket = TcpStream::connect(address).unwrap();
    let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n");
    socket.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"))
}

/// Returns the hosts that the program knows, each as its MAC address, its port and its addresses.
fn hosts(program: &Program) -> BTreeSet<String> {
    let hosts = get(program, "/api/v1/hosts");
    let hosts = hosts.as_array().unwrap().iter();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    hosts
        .map(|host| {
            let (mac, port) = (text(&host["mac"]), text(&host["port"]));
            format!("{mac} {port} {}", host["ipv4"])
        })
        .collect()
}

/// Returns a host as in [`hosts`].
fn known(id: u8, host: u8) -> String {
    let mac = MacAddr::new([2, 0, 0, id, 0, host]);
    let port = Switch::port_of(host);
    format!("{mac} {id:016x}:{port} [\"10.0.{id}.{host}\"]")
}

/// Checks that the program continues with the connections and the kernel half of this number of switches, knows their hosts
/// at once, and finds the links again.
fn check_taken_over(program: &Program, count: u8) {
    let log = program.log();
    assert!(!log.contains("cannot be used"), "{log}");
    // A probe of the earlier program may arrive, which this one cannot authenticate.
    let mut warnings = log.lines().filter(|line| line.contains("WARN"));
    assert!(
        warnings.all(|line| line.contains("refusal=Authenticator")),
        "{log}"
    );
    assert!(log.contains(&format!("taken={count} closed=0")), "{log}");
    let going_on = format!("include {count} of an earlier program");
    assert!(log.contains(&going_on), "{log}");
    check_hosts_and_links(program, count);
}

fn check_hosts_and_links(program: &Program, count: u8) {
    let of_switch = |id: u8| {
        let targets = (0..TARGETS).map(move |number| known(id, target(number)));
        targets.chain([known(id, CLIENT)])
    };
    let expected: BTreeSet<_> = (1..=count).flat_map(of_switch).collect();
    eventually("all hosts are known at their ports", || {
        expected.is_subset(&hosts(program))
    });
    eventually("both directions of each cable are links", || {
        let links = get(program, "/api/v1/links");
        links.as_array().unwrap().len() == 2 * usize::from(count)
    });
}

/// Loads a program with switches of both versions while `disturb` disturbs it, as in `room.rs`.
fn under_load(room: &mut Room, disturb: impl FnOnce(&mut Room, Program, &dyn Fn(u64)) -> Program) {
    let program = room.start("first.log", &[]);
    let last = load_with(program, Switch::join, Switch::load, |program, progress| {
        program.wait_for_kernel_halves(4);
        check_hosts_and_links(&program, 4);
        disturb(room, program, progress)
    });
    last.interrupt(room);
}

#[test]
fn services_that_are_killed_at_any_moment_lose_nothing() {
    let Some(mut room) = room(DRIVEN) else { return };
    under_load(&mut room, |room, mut program, progress| {
        for round in 0..12_u64 {
            if round % 4 != 0 {
                progress(round * 170 % 1000);
            }
            program.kill();
            program = room.start(&format!("after-{round}.log"), &[]);
            check_taken_over(&program, 4);
        }
        program
    });
}

/// The program is killed before it reads input, notes or discards it, sends, or queries the kernel for the last program's
/// progress.
#[test]
fn services_that_are_killed_at_any_system_call_lose_nothing() {
    let Some(mut room) = room(DRIVEN) else { return };
    if !has_strace() {
        return;
    }
    under_load(&mut room, |room, mut program, progress| {
        let moments = [
            ("recvfrom", [1, 4]),
            ("pwrite64,pwritev", [1, 5]),
            ("sendto", [1, 3]),
            ("ioctl", [1, 6]),
        ];
        for (calls, times) in moments {
            for nth in times {
                program.kill();
                let mut traced = room.start_traced(&format!("{calls}-{nth}.log"), calls, nth);
                assert_eq!(traced.wait().signal(), Some(9), "{}", traced.log());
                program = room.start(&format!("after-{calls}-{nth}.log"), &[]);
                let log = program.log();
                assert!(log.contains("taken=4 closed=0"), "{log}");
                progress(1000);
            }
        }
        check_hosts_and_links(&program, 4);
        program
    });
}

/// The kernel answers while no program runs.
#[test]
fn sigterm_leaves_the_connections_and_the_kernel_half() {
    let Some(mut room) = room(DRIVEN) else { return };
    under_load(&mut room, |room, mut first, progress| {
        progress(20_000);
        first.signal(Signal::TERM);
        assert!(first.wait().success(), "{}", first.log());
        progress(1000);
        let second = room.start("second.log", &[]);
        check_taken_over(&second, 4);
        assert!(!second.log().contains("answered_in_kernel=0 "));
        second
    });
}

#[test]
fn a_second_program_takes_over_and_the_first_one_ends() {
    let Some(mut room) = room(DRIVEN) else { return };
    under_load(&mut room, |room, mut first, _| {
        let second = room.start("second.log", &[]);
        assert!(first.wait().success(), "{}", first.log());
        check_taken_over(&second, 4);
        second
    });
}

/// From then on the program and its successor answer alone.
#[test]
fn programs_without_a_kernel_half_release_it_without_loss() {
    let Some(mut room) = room(DRIVEN) else { return };
    under_load(&mut room, |room, program, progress| {
        program.kill();
        room.with(WITHOUT);
        let without = room.start("without.log", &[]);
        let log = without.log();
        assert!(log.contains("taken=4 closed=0"), "{log}");
        assert!(log.contains("releasing them"), "{log}");
        progress(1000);
        without.kill();
        let next = room.start("next.log", &[]);
        let log = next.log();
        assert!(log.contains("taken=4 closed=0"), "{log}");
        next
    });
}

/// Hosts that appear while no program runs become known to the next program, whether it answers in the kernel or not.
#[test]
fn news_while_no_program_runs_reaches_the_next_one() {
    for version in Version::ALL {
        for next in [DRIVEN, WITHOUT] {
            let Some(mut room) = room(DRIVEN) else { return };
            let mut program = room.start("first.log", &[]);
            let mut switch = Switch::join(program.port().unwrap(), version, 1);
            switch.answer_until_kept(&program);
            let mut attempts = 0..20;
            loop {
                switch.run_for(Duration::from_millis(100));
                program.kill();
                if switch.is_answered_by_kernel() {
                    break;
                }
                // If the program was the owner at that moment, try again.
                let attempt = attempts.next().expect("the kernel is the owner at times");
                program = room.start(&format!("attempt-{attempt}.log"), &[]);
                switch.settle();
            }
            const NEW: u8 = 200;
            switch.ask(NEW, target(5));
            let before = switch.answers;
            (0..TARGETS).for_each(|_| switch.request());
            switch.settle();
            assert_eq!(switch.answers, before + TARGETS, "all requests");
            assert_eq!(switch.others, 1, "the new host's request");
            room.with(next);
            let second = room.start("second.log", &[]);
            let (stop, echoed) = (AtomicBool::new(false), AtomicU64::new(0));
            thread::scope(|scope| {
                let load = scope.spawn(|| switch.load(&stop, &echoed));
                let known = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    eventually("the new host is known", || {
                        hosts(&second).contains(&known(1, NEW))
                    });
                    if next == DRIVEN {
                        check_taken_over(&second, 1);
                    }
                }));
                stop.store(true, Ordering::Relaxed);
                load.join().expect("its connection stays");
                known.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            });
            second.interrupt(&room);
        }
    }
}
