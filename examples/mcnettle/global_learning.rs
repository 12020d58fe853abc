//! The global learning controller (McNettle section 4.2): as Figure 5, with one table of hosts that all switches share.
//! Here it is under a mutex; the app `global` is the same without locks, and with transactional variables.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use urtica::prelude::*;

type Hosts = Arc<Mutex<HashMap<MacAddr, (DatapathId, PortNo)>>>;

fn main() -> urtica::Result<()> {
    let hosts = Hosts::default();
    Controller::from_args().run(move |_: &SwitchInfo| learning(hosts.clone()))
}

fn learning(hosts: Hosts) -> impl SwitchHandler {
    on_packet(move |switch, packet| {
        let (here, mut hosts) = (switch.datapath_id(), hosts.lock().unwrap());
        hosts.insert(packet.eth_src(), (here, packet.in_port()));
        match hosts.get(&packet.eth_dst()) {
            Some(&(at, port)) if at == here => {
                switch.forward_with_rule(packet, Match::exact(packet), port, IDLE_5S)
            }
            _ => switch.forward(packet, PortNo::FLOOD),
        }
    })
}
