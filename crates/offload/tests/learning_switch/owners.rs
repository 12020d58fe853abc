//! Kernel and program use one connection, which has one owner at a time.

use crate::packets::Packet;
use crate::support::kernel;
use crate::switch::{connect, headers, join, offloaded};
use std::io::{Read, Write};
use std::net::TcpStream;
use urtica_offload::Mode;
use urtica_wire::{DatapathId, Message, Version};

/// Number of packet-ins that are sent at a time.
const WINDOW: usize = 32;

/// The program's own messages are sent between complete replies of the kernel, and both use one series of xids.
#[test]
fn messages_of_the_program_are_sent_between_kernel_replies() {
    let Some(kernel) = kernel() else { return };
    for version in Version::ALL {
        let controller = offloaded(&kernel, Mode::Kernel, 1024);
        let mut socket = connect(&controller);
        join(&mut socket, version, 1);
        let mut window = Vec::new();
        Packet::udp(2, 1).encode(version, 1, &mut window);
        for _ in 1..WINDOW {
            Packet::udp(1, 2).encode(version, 1, &mut window);
        }

        let mut said = Vec::new();
        let counters = controller.network().counters(DatapathId(1)).unwrap();
        let mut windows = 0..50_000;
        // Until there were enough messages of both.
        while windows.start < 500 || counters.answered_in_kernel.get() < 100 {
            windows.next().expect("the kernel answers now and then");
            socket.write_all(&window).unwrap();
            let network = controller.network();
            let pending = network.request(DatapathId(1), &Message::BarrierRequest);
            drop(pending.expect("the switch is connected"));
            // The last earlier message is kept, so that its successor can be checked.
            let before = headers(&said).count();
            read_until(&mut socket, &mut said, before + WINDOW + 1);
            let xids = headers(&said).map(|header| header.xid & 0xff_ffff);
            let xids: Vec<_> = xids.collect();
            assert!(
                xids.windows(2).all(|pair| pair[1] == pair[0] + 1),
                "{xids:?}"
            );
            let last = headers(&said).last().expect("there are some");
            said.drain(..said.len() - usize::from(last.length));
        }
        drop(socket);
        controller.stop().unwrap();
    }
}

/// Receives until `count` messages have arrived.
fn read_until(socket: &mut TcpStream, said: &mut Vec<u8>, count: usize) {
    let mut bytes = [0; 65536];
    while headers(said).count() < count {
        let read = socket.read(&mut bytes).expect("something comes in time");
        assert!(read > 0, "the controller has closed the connection");
        said.extend(&bytes[..read]);
    }
}
