//! The smallest control program: outputs every packet to every other port (McNettle section 4, "hello world").

use crate::registry::{About, Row};
use urtica_controller::{Switch, SwitchHandler, SwitchInfo};
use urtica_wire::{PacketIn, PortNo};

/// A program that floods every packet. It installs no entries, so the controller receives all packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hub;

/// The program's row in the registry of `urtica run`.
pub(crate) static ROW: Row = Row {
    about: About::forwarder("hub", "floods every packet"),
    add: |setup, ()| {
        setup.add(|_: &SwitchInfo| Hub);
        Ok(())
    },
};

impl SwitchHandler for Hub {
    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        switch.forward(packet, PortNo::FLOOD);
    }
}
