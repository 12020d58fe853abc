//! A learning switch that reads packet-ins from a ring: the example of Shalimov and Ivashchenko's paper (section IV).

use std::collections::HashMap;
use std::time::Duration;
use urtica_controller::IDLE_5S;
use urtica_offload::ring::{MessageType, Record, Replies, RingSettings, Rings};
use urtica_wire::{DatapathId, EncodeError, MacAddr, PortNo};

type Hosts = HashMap<(DatapathId, MacAddr), PortNo>;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Loads the kernel's half and listens.
    let rings = Rings::start(&["ptcp:6653".parse()?], RingSettings::default())?;
    // Registers this thread for the first ring, and maps it.
    let mut ring = rings.register(0)?;
    ring.subscribe(MessageType::PacketIn)?;
    let mut hosts = Hosts::new();
    loop {
        let ready = ring.poll(Duration::from_secs(2))?;
        if ready.input {
            // New packet-ins.
            while let Some((packet, mut replies)) = ring.next_record() {
                l2(&mut hosts, &packet, &mut replies)?;
            }
        } else if ready.output {
            // All input has been handled: send the replies.
            ring.flush();
        }
    }
}

fn l2(hosts: &mut Hosts, packet: &Record, replies: &mut Replies) -> Result<(), EncodeError> {
    let switch = packet.datapath_id();
    hosts.insert((switch, packet.eth_src()), packet.in_port());
    match hosts.get(&(switch, packet.eth_dst())) {
        Some(&port) => replies.forward_with_rule(packet, port, IDLE_5S),
        None => replies.forward(packet, PortNo::FLOOD),
    }
}
