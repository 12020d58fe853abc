//! The smallest control program: every packet goes out of every other port (McNettle section 4, "hello world").

use urtica_controller::{Switch, SwitchHandler};
use urtica_wire::{PacketIn, PortNo};

/// Floods every packet. Installs nothing, so the controller sees them all.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hub;

impl SwitchHandler for Hub {
    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        switch.forward(packet, PortNo::FLOOD);
    }
}
