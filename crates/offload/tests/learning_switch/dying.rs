//! The controller's process is stopped, or dies in the middle of a batch.

use crate::packets::Packet;
use crate::process::{Other, is_child, serve};
use crate::support::kernel;
use crate::switch::{Channel, PATIENCE, headers, join, offloaded};
use rustix::process::Signal;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use urtica_offload::Mode;
use urtica_wire::Version;

/// Runs only as a child process.
#[test]
fn controller_in_a_child_process() {
    if !is_child() {
        return;
    }
    let Some(kernel) = kernel() else { return };
    serve(&offloaded(&kernel, Mode::Auto, 64));
}

/// Starts a controller that runs the learning switch.
fn start() -> Other {
    Other::start("dying::controller_in_a_child_process")
}

fn join_other(controller: &Other) -> TcpStream {
    let mut socket = controller.connect();
    join(&mut socket, Version::Of13, 1);
    socket
}

fn packet() -> Vec<u8> {
    let mut packet = Vec::new();
    Packet::udp(1, 2).encode(Version::Of13, 1, &mut packet);
    packet
}

/// Sends one request, and returns whether an answer arrives within `patience`.
fn is_answered(socket: &mut TcpStream, patience: std::time::Duration) -> bool {
    socket.set_read_timeout(Some(patience)).unwrap();
    socket.write_all(&packet()).unwrap();
    let mut reply = [0; 200];
    match socket.read(&mut reply) {
        Ok(count) => headers(&reply[..count]).count() == 1,
        Err(_) => false,
    }
}

/// The kernel answers all requests while the process is stopped.
#[test]
fn a_stopped_controller_answers() {
    if kernel().is_none() {
        return;
    }
    let controller = start();
    let mut attempts = 0..20;
    // At the moment it is stopped, the program may be the owner, for the duration of a tick. Another attempt will succeed.
    while !answers_while_stopped(&controller) {
        attempts
            .next()
            .expect("now and then the kernel is the owner");
    }
}

fn answers_while_stopped(controller: &Other) -> bool {
    let mut socket = join_other(controller);
    for _ in 0..100 {
        assert!(is_answered(&mut socket, PATIENCE));
    }
    controller.signal(Signal::STOP);
    controller.wait_until_stopped();
    let is_answered_by_kernel = is_answered(&mut socket, std::time::Duration::from_secs(2));
    if is_answered_by_kernel {
        for _ in 0..1000 {
            assert!(is_answered(&mut socket, PATIENCE), "an answer is lost");
        }
    }
    controller.signal(Signal::CONT);
    if is_answered_by_kernel {
        assert!(is_answered(&mut socket, PATIENCE), "it does not go on");
    }
    is_answered_by_kernel
}

/// The output of a killed controller is in order until its connection ends. Another controller can start.
#[test]
fn output_of_a_killed_controller_is_in_order() {
    if kernel().is_none() {
        return;
    }
    for after in [1, 100_000] {
        let controller = start();
        let mut socket = join_other(&controller);
        let mut sender = socket.try_clone().unwrap();
        let window = packet().repeat(300);
        let said = std::thread::scope(|scope| {
            scope.spawn(move || while sender.write_all(&window).is_ok() {});
            let mut said = Vec::new();
            while said.len() < after {
                said.extend(socket.receive());
            }
            controller.signal(Signal::KILL);
            let mut rest = Vec::new();
            // The connection may end with a reset.
            let _ = socket.read_to_end(&mut rest);
            // Otherwise, the sender waits at a closed window for a minute, until the kernel forgets the dead socket.
            let _ = socket.shutdown(Shutdown::Both);
            said.extend(rest);
            said
        });
        let xids: Vec<_> = headers(&said)
            .map(|header| header.xid & 0xff_ffff)
            .collect();
        assert!(
            xids.windows(2).all(|pair| pair[1] == pair[0] + 1),
            "replies are lost or out of order"
        );
    }
}
