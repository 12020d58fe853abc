//! The kernel forwards while the controller's process is stopped.

use crate::pair::{packet_in, take_routers};
use crate::plan::{
    PORTS, handed, header, ip_of, port_of, question_for_gateway, router, router_kernel,
};
use crate::process::{Other, is_child, serve};
use crate::switch::{PATIENCE, join_with_ports};
use rustix::process::Signal;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;
use urtica_offload::Mode;
use urtica_wire::Version;

/// Runs only as a child process.
#[test]
fn router_in_a_child_process() {
    if !is_child() {
        return;
    }
    let Some(kernel) = router_kernel(Mode::Auto) else {
        return;
    };
    let (controller, _hosts) = router(Some(kernel));
    let controller = controller.listen("ptcp:0:127.0.0.1".parse().unwrap());
    serve(&controller.shards(1).start().unwrap());
}

#[test]
fn a_stopped_router_forwards() {
    if router_kernel(Mode::Auto).is_none() {
        return;
    }
    let controller = Other::start("stopped::router_in_a_child_process");
    for version in Version::ALL {
        let mut attempts = 0..20;
        // At the moment it is stopped, the program may be the owner, for the duration of a tick. Another attempt will succeed.
        while !forwards_while_stopped(&controller, version) {
            attempts
                .next()
                .expect("now and then the kernel is the owner");
        }
    }
}

fn forwards_while_stopped(controller: &Other, version: Version) -> bool {
    let mut socket = controller.connect();
    join_with_ports(&mut socket, version, 1, PORTS);
    for host in [2, 3] {
        assert!(is_answered(
            &mut socket,
            version,
            host,
            question_for_gateway(host),
            PATIENCE
        ));
    }
    let packet = || handed(2, &header(2, ip_of(3)), b"to 3");
    for _ in 0..100 {
        assert!(is_answered(&mut socket, version, 2, packet(), PATIENCE));
    }
    controller.signal(Signal::STOP);
    controller.wait_until_stopped();
    let is_answered_by_kernel =
        is_answered(&mut socket, version, 2, packet(), Duration::from_secs(2));
    if is_answered_by_kernel {
        for _ in 0..500 {
            assert!(
                is_answered(&mut socket, version, 2, packet(), PATIENCE),
                "a packet is lost"
            );
            let question = question_for_gateway(3);
            assert!(
                is_answered(&mut socket, version, 3, question, PATIENCE),
                "a question is lost"
            );
        }
    }
    controller.signal(Signal::CONT);
    if is_answered_by_kernel {
        assert!(
            is_answered(&mut socket, version, 2, packet(), PATIENCE),
            "it does not go on"
        );
    }
    is_answered_by_kernel
}

/// Sends a host's frame, and returns whether the router sends a message within `patience`.
fn is_answered(
    socket: &mut TcpStream,
    version: Version,
    host: u8,
    frame: Vec<u8>,
    patience: Duration,
) -> bool {
    let mut message = Vec::new();
    packet_in(port_of(host), frame).encode(version, 1, &mut message);
    socket.set_read_timeout(Some(patience)).unwrap();
    socket.write_all(&message).unwrap();
    let mut said = Vec::new();
    loop {
        let mut bytes = [0; 4096];
        match socket.read(&mut bytes) {
            Ok(count) if count > 0 => said.extend_from_slice(&bytes[..count]),
            _ => return false,
        }
        // The services send messages, too.
        if !take_routers(&mut said).is_empty() {
            return true;
        }
    }
}
