//! "A complete but minimal hello world controller" (McNettle section 4): every packet goes out of all other ports.

use urtica::prelude::*;

fn main() -> urtica::Result<()> {
    let hello = |_: &SwitchInfo| on_packet(|switch, packet| switch.forward(packet, PortNo::ALL));
    Controller::from_args().run(hello)
}
