//! Replaces `served.rs` in a program without the northbound interface.

use urtica_net::Net;
use urtica_socket::Address;

/// Has no values: without the interface, no controller runs outside of the network's time.
pub enum Served {}

impl Served {
    pub fn address(&self) -> &Address {
        match *self {}
    }

    pub fn obey(&mut self, _: &mut Net) {
        match *self {}
    }
}
