//! Events of packets that the kernel has answered, while the program is busy and afterwards.

use crate::bench::{
    Behind, Channel, Services, connect, driven, join, messages, settle, start, wait_for,
};
use crate::frames::{Packet, announcement, datagram, encode, ipv4, mac, request};
use parking_lot::{Mutex, MutexGuard};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use urtica_controller::{Running, Switch, SwitchHandler, SwitchInfo};
use urtica_offload::Driven;
use urtica_wire::packet::Arp;
use urtica_wire::{DatapathId, MacAddr, Message, PacketIn, Version};

/// A program that waits for a lock before it handles a packet, so a test can keep its shard busy.
struct Slow {
    lock: Arc<Mutex<()>>,
    is_busy: Arc<AtomicBool>,
}

impl SwitchHandler for Slow {
    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        self.is_busy.store(true, Ordering::Release);
        drop(self.lock.lock());
        self.is_busy.store(false, Ordering::Release);
        Behind.packet_in(switch, packet);
    }
}

/// Two switches of one shard. The kernel answers the second.
struct Bench {
    driven: Driven,
    services: Services,
    controller: Running,
    first: TcpStream,
    second: TcpStream,
    lock: Arc<Mutex<()>>,
    is_busy: Arc<AtomicBool>,
}

impl Bench {
    fn new(driven: Driven, version: Version) -> Self {
        let services = Services::new();
        services.offload_to(&driven);
        let lock = Arc::new(Mutex::new(()));
        let is_busy = Arc::new(AtomicBool::new(false));
        let slow = (Arc::clone(&lock), Arc::clone(&is_busy));
        let program = move |_: &SwitchInfo| Slow {
            lock: Arc::clone(&slow.0),
            is_busy: Arc::clone(&slow.1),
        };
        let controller = start(&driven, services.controller(program));
        let mut switches = [1, 2].map(|id| {
            let mut switch = connect(&controller);
            join(&mut switch, version, id);
            services.wait_for_host_ports(id);
            switch
        });
        for host in 1..=8 {
            switches[1].send(&encode(version, &announcement(host)));
        }
        let offload = driven.offload();
        wait_for("the kernel answers", || {
            switches[1].send(&encode(version, &request(1, 2)));
            settle(&mut switches[1], &mut Vec::new(), version);
            offload.counts().requests > 0
        });
        let [first, second] = switches;
        Self {
            driven,
            services,
            controller,
            first,
            second,
            lock,
            is_busy,
        }
    }

    /// Keeps the program busy with a packet of the first switch until the guard is dropped.
    fn keep_busy<'l>(&mut self, lock: &'l Mutex<()>, version: Version) -> MutexGuard<'l, ()> {
        let guard = lock.lock();
        // From a host that the second switch does not have.
        self.first.send(&encode(version, &datagram(50, 51)));
        wait_for("the program is at work", || {
            self.is_busy.load(Ordering::Acquire)
        });
        guard
    }
}

fn asker(number: u16) -> MacAddr {
    let [high, low] = number.to_be_bytes();
    MacAddr::new([2, 0, 0, 1, high, low])
}

/// Returns the receiver of an answer.
fn receiver(message: &[u8]) -> MacAddr {
    match Message::decode(message) {
        Ok((_, Message::PacketOut(packet))) => {
            MacAddr::new(*packet.data.first_chunk().expect("it has a frame"))
        }
        other => panic!("expected an answer, not {other:?}"),
    }
}

/// Returns a request of an unknown host with this number.
fn unknown(number: u16, target: u8) -> Packet {
    let [high, low] = number.to_be_bytes();
    let src = asker(number);
    let mut packet = request(1, target);
    let address = std::net::Ipv4Addr::new(10, 1, high, low);
    let arp = Arp::request(src, address, ipv4(target));
    packet.frame[6..12].copy_from_slice(&src.octets());
    let mut bytes = Vec::new();
    arp.write(&mut bytes);
    packet.frame[14..42].copy_from_slice(&bytes);
    packet
}

/// Waits until `count` answers have arrived since `said` was empty.
fn receive_answers(switch: &mut TcpStream, said: &mut Vec<u8>, count: usize) {
    while messages(said).count() < count {
        said.extend(switch.receive());
    }
}

#[test]
fn a_new_host_is_answered_while_the_program_is_busy_and_known_afterwards() {
    for version in Version::ALL {
        let Some(driven) = driven() else { return };
        let mut bench = Bench::new(driven, version);
        let lock = Arc::clone(&bench.lock);
        let guard = bench.keep_busy(&lock, version);
        let before = bench.driven.offload().counts().requests;
        bench.second.send(&encode(version, &unknown(7, 2)));
        receive_answers(&mut bench.second, &mut Vec::new(), 1);
        let offload = bench.driven.offload();
        wait_for("it is counted", || offload.counts().requests > before);
        drop(guard);
        let hosts = bench.services.hosts.clone();
        wait_for("the host is known", || {
            hosts.find_ipv4([10, 1, 0, 7].into()).is_some()
        });
        // Other hosts can find it.
        bench.second.send(&encode(version, &{
            let mut packet = request(1, 1);
            packet.frame[38..42].copy_from_slice(&[10, 1, 0, 7]);
            packet
        }));
        receive_answers(&mut bench.second, &mut Vec::new(), 1);
        assert!(hosts.find(mac(1)).is_some());
        bench.controller.stop().unwrap();
    }
}

#[test]
fn packets_of_events_without_space_reach_the_program_in_order() {
    const HOSTS: u16 = 1000;
    for version in Version::ALL {
        let Some(driven) = driven() else { return };
        let mut bench = Bench::new(driven, version);
        let lock = Arc::clone(&bench.lock);
        let guard = bench.keep_busy(&lock, version);
        for number in 0..HOSTS {
            bench.second.send(&encode(version, &unknown(number, 2)));
        }
        // Some answers arrive while the program is busy, and the others, for whose events there is no space, afterwards.
        let mut said = Vec::new();
        receive_answers(&mut bench.second, &mut said, 100);
        drop(guard);
        receive_answers(&mut bench.second, &mut said, HOSTS.into());
        let answers: Vec<_> = (0..HOSTS).map(asker).collect();
        let to: Vec<_> = messages(&said).map(receiver).collect();
        let wrong = (0..to.len()).find(|&at| to.get(at) != answers.get(at));
        assert_eq!(wrong, None, "in the order of the requests: {to:?}");
        let hosts = bench.services.hosts.clone();
        wait_for("all hosts are known", || {
            hosts.count() == usize::from(HOSTS) + 9
        });
        let counters = bench.controller.network().counters(DatapathId(2)).unwrap();
        assert!(counters.fell_back.get() > 0, "not all had room");
        bench.controller.stop().unwrap();
    }
}
