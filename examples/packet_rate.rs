//! Tells every ten seconds how many packets each switch has sent up: `cargo run --example packet_rate`.

use std::time::Duration;
use urtica::prelude::*;

const INTERVAL: Duration = Duration::from_secs(10);

/// Floods packets, and hands their number to `T`.
pub(crate) struct PacketRate<T> {
    pub(crate) packets: u64,
    pub(crate) tell: T,
}

impl<T: Fn(DatapathId, u64) + Send> SwitchHandler for PacketRate<T> {
    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        self.packets += 1;
        switch.forward(packet, PortNo::FLOOD);
    }

    fn tick_interval(&self) -> Option<Duration> {
        Some(INTERVAL)
    }

    fn tick(&mut self, switch: &mut Switch) {
        (self.tell)(switch.datapath_id(), std::mem::take(&mut self.packets));
    }
}

urtica::main!(|_: &SwitchInfo| PacketRate {
    packets: 0,
    tell: |switch, packets| println!("{switch}: {packets} packets in {INTERVAL:?}"),
});
