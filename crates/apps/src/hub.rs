//! The smallest control program: every packet goes out of every other port (McNettle section 4, "hello world").

use crate::registry::{About, Row};
use urtica_controller::{Switch, SwitchHandler, SwitchInfo};
use urtica_wire::{PacketIn, PortNo};

/// Floods every packet. Installs nothing, so the controller sees them all.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hub;

/// How `urtica run` knows it.
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
