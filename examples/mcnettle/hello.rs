//! "A complete but minimal hello world controller" (McNettle section 4): every packet goes out of all other ports.

use urtica::prelude::*;

urtica::main!(|_: &SwitchInfo| on_packet(|switch, packet| switch.forward(packet, PortNo::ALL)));
