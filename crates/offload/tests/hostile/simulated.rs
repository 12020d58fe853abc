//! The peers of simulated networks (`urtica net simulate`), over sockets: strangers, whose input is malformed, and impostors,
//! which are switches with the datapath id of another.

use crate::in_every_form;
use crate::peers::wait_for_switches;
use crate::switch::connect;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Instant;
use urtica_net::simulate::malformed_input;
use urtica_switch::{Switch, SwitchConfig};
use urtica_wire::{DatapathId, Version};

const STRANGERS: u64 = 100;

#[test]
fn strangers_disturb_no_switch() {
    in_every_form(|scene| {
        let strangers = (0..STRANGERS).map(|seed| {
            let mut stranger = connect(&scene.controller);
            // Fails if the controller has closed the connection already.
            let _ = stranger.write_all(&malformed_input(seed));
            stranger
        });
        let strangers: Vec<_> = strangers.collect();
        scene.check_neighbour();
        drop(strangers);
        wait_for_switches(&scene.controller, 1);
    });
}

/// The displaced switch connects again, and gets its id back.
#[test]
fn impostors_are_displaced() {
    const VICTIM: u64 = 2;
    in_every_form(|scene| {
        for round in 0..3 {
            let version = Version::ALL[round % 2];
            let mut victim = scene.earned(version, VICTIM);
            let socket = connect(&scene.controller);
            let impostor = thread::spawn(move || be_switch(socket, DatapathId(VICTIM)));
            victim.read_to_end();
            let mut victim = scene.earned(version, VICTIM);
            impostor.join().unwrap();
            victim.assert_served();
        }
        wait_for_switches(&scene.controller, 1);
    });
}

/// Acts as a switch without ports until the controller closes the connection.
fn be_switch(mut socket: TcpStream, datapath_id: DatapathId) {
    let start = Instant::now();
    let mut switch = Switch::new(SwitchConfig {
        datapath_id,
        ..SwitchConfig::default()
    });
    let connection = switch.connect("the controller".into(), start.elapsed());
    let mut buffer = [0; 1 << 16];
    loop {
        let output = switch.output(connection).map(std::mem::take);
        if socket.write_all(&output.unwrap_or_default()).is_err() {
            return;
        }
        match socket.read(&mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(count) => {
                // The controller notices if this ends the connection.
                let _ = switch.handle_input(connection, &buffer[..count], start.elapsed());
            }
        }
    }
}
