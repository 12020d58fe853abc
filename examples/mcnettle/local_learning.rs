//! The local learning controller (McNettle Figure 5): each switch learns for itself where hosts are.

use urtica::prelude::*;

fn main() -> urtica::Result<()> {
    Controller::from_args().run(|_: &SwitchInfo| learning())
}

fn learning() -> impl SwitchHandler {
    let mut table = MacTable::new();
    on_packet(move |switch, packet| {
        table.learn(packet.eth_src(), packet.in_port(), switch.now_s());
        match table.port_of(packet.eth_dst(), switch.now_s()) {
            None => switch.forward(packet, PortNo::FLOOD),
            Some(port) => switch.forward_with_rule(packet, Match::exact(packet), port, IDLE_5S),
        }
    })
}
