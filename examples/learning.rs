//! A whole control program: a switch that learns. Run it with `cargo run --release --example learning`.

use urtica::prelude::*;

#[derive(Default)]
struct Learning {
    table: MacTable,
}

impl SwitchHandler for Learning {
    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        let now = switch.now_s();
        self.table.learn(packet.eth_src(), packet.in_port(), now);
        match self.table.port_of(packet.eth_dst(), now) {
            None => switch.forward(packet, PortNo::FLOOD),
            Some(port) => switch.forward_with_rule(packet, Match::exact(packet), port, IDLE_5S),
        }
    }
}

urtica::main!(|_: &SwitchInfo| Learning::default());
