//! Packets stay in order. Packets that the program answers, or that wait in it, leave in their position among those that the
//! kernel answers.

use crate::packets::Draw;
use crate::pair::{Pair, packet_in, take_routers};
use crate::plan::{
    PORTS, handed, header, ip_of, port_of, question_for_gateway, router, router_kernel,
};
use crate::switch::{Channel, connect, headers, join_with_ports, settle};
use std::net::{Ipv4Addr, TcpStream};
use urtica_offload::Mode;
use urtica_wire::Version;
use urtica_wire::packet::{EthernetView, Ipv4, Ipv4View, ether_type};

/// Appends a packet with this number from host 2 to another.
fn numbered(version: Version, dst: u8, number: u16, options: &[u8], stream: &mut Vec<u8>) {
    let header = Ipv4 {
        identification: number,
        options: options.to_vec(),
        ..header(2, ip_of(dst))
    };
    packet_in(port_of(2), handed(2, &header, b"payload")).encode(version, 1, stream);
}

/// The program forwards packets with options.
#[test]
fn packets_forwarded_by_the_program_stay_in_order() {
    for mode in [Mode::Kernel, Mode::Auto] {
        for version in Version::ALL {
            let Some(mut pair) = Pair::new(mode, version) else {
                return;
            };
            let mut draw = Draw::new(3);
            let mut number = 0;
            for round in 0..40 {
                let mut stream = Vec::new();
                for _ in 0..200 {
                    number += 1;
                    let needs_program = draw.below(1 + round) == 0;
                    let options = if needs_program {
                        &[0x94, 4, 0, 0][..]
                    } else {
                        &[]
                    };
                    numbered(version, 3, number, options, &mut stream);
                }
                pair.send_in_pieces(&stream, |stream| draw.cut(stream));
            }
            let counters = pair.counters();
            pair.finish();
            let kernel = counters.answered_in_kernel.get();
            assert!(kernel > 0, "{mode:?}: the kernel has forwarded nothing");
        }
    }
}

/// A switch of the tests, and the numbers of the packets that were forwarded to each address from there.
struct Receiver {
    socket: TcpStream,
    version: Version,
    said: Vec<u8>,
    packets: Vec<(Ipv4Addr, u16)>,
}

impl Receiver {
    fn new(socket: TcpStream, version: Version) -> Self {
        Self {
            socket,
            version,
            said: Vec::new(),
            packets: Vec::new(),
        }
    }

    /// Waits until `count` packets were forwarded to a host. Returns their numbers.
    fn wait_for(&mut self, host: u8, count: usize) -> Vec<u16> {
        loop {
            let to = self.packets.iter().filter(|(dst, _)| *dst == ip_of(host));
            let numbers: Vec<_> = to.map(|(_, number)| *number).collect();
            if numbers.len() >= count {
                return numbers;
            }
            self.said.extend(self.socket.receive());
            self.read();
        }
    }

    fn read(&mut self) {
        let data_at = match self.version {
            Version::Of10 => 24,
            Version::Of13 => 40,
        };
        let messages = take_routers(&mut self.said);
        let mut at = 0;
        for header in headers(&messages) {
            let message = &messages[at..at + usize::from(header.length)];
            let ethernet = EthernetView::new(&message[data_at..]).unwrap();
            if ethernet.ether_type() == ether_type::IPV4 {
                let packet = Ipv4View::new(ethernet.payload()).unwrap();
                self.packets.push((packet.dst(), packet.identification()));
            }
            at += message.len();
        }
    }
}

/// The first packets for a host wait until it is found. Later packets for it, and packets for other hosts, are forwarded.
#[test]
fn packets_waiting_for_a_next_hop_leave_in_order() {
    const MISSING: u8 = 4;
    for version in Version::ALL {
        let Some(kernel) = router_kernel(Mode::Kernel) else {
            return;
        };
        let (controller, _hosts) = router(Some(kernel));
        let controller = controller.listen("ptcp:0:127.0.0.1".parse().unwrap());
        let controller = controller.shards(1).start().unwrap();
        let mut socket = connect(&controller);
        join_with_ports(&mut socket, version, 1, PORTS);
        let mut receiver = Receiver::new(socket.try_clone().unwrap(), version);
        let announce = |host, stream: &mut Vec<u8>| {
            packet_in(port_of(host), question_for_gateway(host)).encode(version, 1, stream);
        };
        let mut stream = Vec::new();
        announce(2, &mut stream);
        announce(3, &mut stream);
        for number in 0..1000 {
            if number % 100 == 50 {
                numbered(version, MISSING, number, &[], &mut stream);
            }
            numbered(version, 3, number, &[], &mut stream);
        }
        let mut draw = Draw::new(1);
        draw.cut(&stream)
            .into_iter()
            .for_each(|piece| socket.send(piece));
        let numbers = receiver.wait_for(3, 1000);
        assert!(numbers.into_iter().eq(0..1000), "{version:?}");
        let mut stream = Vec::new();
        announce(MISSING, &mut stream);
        socket.send(&stream);
        let waited = receiver.wait_for(MISSING, 10);
        assert!(waited.into_iter().eq((0..10).map(|at| at * 100 + 50)));
        for number in 2000..3000 {
            let mut stream = Vec::new();
            numbered(version, MISSING, number, &[], &mut stream);
            socket.send(&stream);
        }
        let numbers = receiver.wait_for(MISSING, 1010).split_off(10);
        assert!(numbers.into_iter().eq(2000..3000), "{version:?}");
        drop((socket, receiver));
        controller.stop().unwrap();
    }
}

/// Packets for a host at another switch are left to the program, which sends them to that switch.
#[test]
fn the_program_reaches_hosts_at_another_switch() {
    for version in Version::ALL {
        let Some(kernel) = router_kernel(Mode::Kernel) else {
            return;
        };
        let (controller, _hosts) = router(Some(kernel));
        let controller = controller.listen("ptcp:0:127.0.0.1".parse().unwrap());
        let controller = controller.shards(1).start().unwrap();
        let [mut near, mut far] = [1, 2].map(|id| {
            let mut socket = connect(&controller);
            join_with_ports(&mut socket, version, id, PORTS);
            socket
        });
        let announce = |host, socket: &mut TcpStream| {
            let mut stream = Vec::new();
            packet_in(port_of(host), question_for_gateway(host)).encode(version, 1, &mut stream);
            socket.send(&stream);
            // The host is known when this returns.
            settle(socket, &mut Vec::new(), version);
        };
        announce(2, &mut near);
        announce(3, &mut near);
        announce(4, &mut far);
        let mut at_far = Receiver::new(far.try_clone().unwrap(), version);
        let mut at_near = Receiver::new(near.try_clone().unwrap(), version);
        for number in 0..500 {
            let mut stream = Vec::new();
            numbered(version, 3, number, &[], &mut stream);
            numbered(version, 4, number, &[], &mut stream);
            near.send(&stream);
        }
        assert!(at_near.wait_for(3, 500).into_iter().eq(0..500));
        assert!(at_far.wait_for(4, 500).into_iter().eq(0..500));
        drop((near, far, at_near, at_far));
        controller.stop().unwrap();
    }
}
