//! Peers that are given up in every mode, because they do not become switches or stop in the middle of a message; and programs
//! that panic.

use crate::modes::{FORMS, Form};
use crate::peers::{Peer, wait_for_switches};
use crate::switch::connect;
use crate::{Scene, in_every_form};
use std::io::{Read, Write};
use std::time::Duration;
use urtica_controller::{Running, SessionConfig, Switch, SwitchHandler, SwitchInfo};
use urtica_offload::DEFAULT_MAX_SWITCHES;
use urtica_wire::{DatapathId, ErrorCode, Header, Message, PacketIn, Version};

/// Returns settings of sessions that give up soon.
fn impatient() -> SessionConfig {
    let mut session = SessionConfig::default();
    session.handshake_timeout = Duration::from_millis(300);
    session.echo_interval = Duration::from_millis(200);
    session.dead_interval = Duration::from_millis(600);
    session
}

/// Starts an impatient controller.
fn start_impatient(form: Form) -> Option<Running> {
    form.start_as(DEFAULT_MAX_SWITCHES, |controller| {
        controller.session(impatient())
    })
}

/// The peer does not answer an echo request, even if the kernel has the start of a message.
#[test]
fn incomplete_messages_are_abandoned() {
    for form in FORMS {
        let Some(controller) = start_impatient(form) else {
            return;
        };
        let peers = [(Version::Of10, 1), (Version::Of13, 1), (Version::Of13, 20)];
        let peers = peers.into_iter().zip(1..).map(|((version, length), id)| {
            let mut peer = Peer::earned(&controller, form, version, id);
            let requests = peer.requests(2);
            let whole = requests.len() / 2;
            peer.send(&requests[..requests.len().min(whole + length + 1) - 1]);
            peer
        });
        for mut peer in peers.collect::<Vec<_>>() {
            assert_eq!(peer.read_to_end(), 1, "{form}");
        }
        wait_for_switches(&controller, 0);
        controller.stop().unwrap();
    }
}

#[test]
fn silent_peers_and_other_protocols_are_closed() {
    const PROBES: [&[u8]; 5] = [
        b"",
        b"echo A\n",
        b"GET / HTTP/1.1\r\n\r\n",
        &[0; 64],
        &[0x16, 3, 1],
    ];
    for form in FORMS {
        let Some(controller) = start_impatient(form) else {
            return;
        };
        let sockets = PROBES.map(|probe| {
            let mut socket = connect(&controller);
            socket.write_all(probe).unwrap();
            socket
        });
        for (mut socket, probe) in sockets.into_iter().zip(PROBES) {
            let mut said = Vec::new();
            // A reset also ends the connection.
            let _ = socket.read_to_end(&mut said);
            let hello_alone = said.is_empty() || (said.len() == 16 && said[1] == 0);
            assert!(hello_alone, "{form}: {probe:?} gets {said:?}");
        }
        Peer::earned(&controller, form, Version::Of13, 1);
        controller.stop().unwrap();
    }
}

#[test]
fn versions_without_a_common_one_are_refused() {
    in_every_form(|scene| {
        let mut socket = connect(&scene.controller);
        socket.write_all(&[2, 0, 0, 8, 0, 0, 0, 9]).unwrap();
        let mut said = Vec::new();
        socket.read_to_end(&mut said).unwrap();
        let hello = Header::peek(&said).unwrap();
        let (_, refusal) = Message::decode(&said[usize::from(hello.length)..]).unwrap();
        let Message::Error(error) = refusal else {
            panic!("{}: {refusal:?}", scene.form);
        };
        assert_eq!(error.code, ErrorCode::HelloFailedIncompatible);
    });
}

/// Panics at each packet of all switches except the neighbour.
struct Clumsy(DatapathId);

impl SwitchHandler for Clumsy {
    fn packet_in(&mut self, _: &mut Switch, _: &PacketIn) {
        assert_eq!(self.0, DatapathId(crate::NEIGHBOUR));
    }
}

/// In the forms in which the kernel does not answer instead of all programs.
#[test]
fn a_handler_that_panics_loses_its_switch_and_nothing_else() {
    for form in FORMS {
        if ["auto", "kernel"].contains(&form.mode) {
            continue;
        }
        let clumsy = |info: &SwitchInfo| Clumsy(info.datapath_id);
        let Some(controller) = form.start_as(DEFAULT_MAX_SWITCHES, |controller| {
            controller.program(clumsy)
        }) else {
            return;
        };
        let neighbour = Peer::join(&controller, form, Version::Of13, crate::NEIGHBOUR);
        let mut scene = Scene {
            form,
            controller,
            neighbour,
        };
        scene.check_neighbour();
        let mut other = connect(&scene.controller);
        crate::join(&mut other, Version::Of13, 2);
        let mut packet = Vec::new();
        crate::packets::Packet::udp(1, 2).encode(Version::Of13, 1, &mut packet);
        other.write_all(&packet).unwrap();
        let mut said = Vec::new();
        let _ = other.read_to_end(&mut said);
        scene.check_neighbour();
        wait_for_switches(&scene.controller, 1);
        assert_eq!(scene.controller.network().panics().len(), 1, "{form}");
        scene.controller.stop().unwrap();
    }
}
