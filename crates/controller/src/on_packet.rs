//! A handler that is one function.

use crate::{Switch, SwitchHandler};
use urtica_wire::PacketIn;

/// Creates a handler that only calls `handle` with each packet-in (McNettle section 4, `defaultHandler { onPacket = … }`).
///
/// Values that the function owns are per switch.
///
/// ```no_run
/// use urtica_controller::{Controller, SwitchInfo, on_packet};
/// use urtica_wire::PortNo;
///
/// # fn main() -> Result<(), urtica_controller::Error> {
/// Controller::new().run(|_: &SwitchInfo| on_packet(|switch, packet| switch.forward(packet, PortNo::FLOOD)))
/// # }
/// ```
pub fn on_packet<F>(handle: F) -> impl SwitchHandler + 'static
where
    F: FnMut(&mut Switch, &PacketIn) + Send + 'static,
{
    OnPacket(handle)
}

struct OnPacket<F>(F);

impl<F: FnMut(&mut Switch, &PacketIn) + Send> SwitchHandler for OnPacket<F> {
    #[inline]
    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        (self.0)(switch, packet);
    }
}
