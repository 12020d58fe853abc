//! Links whose probes are settled in the kernel.

use crate::bench::{Channel, Services, behind, connect, driven, join, messages, start, wait_for};
use crate::frames::{Packet, encode};
use std::io::Read;
use std::net::TcpStream;
use std::time::{Duration, Instant};
use urtica_services::DiscoveryConfig;
use urtica_wire::{Action, DatapathId, Message, Version};

const PROBE_INTERVAL: Duration = Duration::from_millis(50);

/// Passes packets that the controller sends out of port 1 to port 2, and vice versa, until `is_done`.
fn relay(switch: &mut TcpStream, version: Version, mut is_done: impl FnMut() -> bool) {
    let mut said = Vec::new();
    let start = Instant::now();
    while !is_done() {
        assert!(start.elapsed() < Duration::from_secs(60), "not in time");
        let mut bytes = [0; 65536];
        let Ok(count @ 1..) = switch.read(&mut bytes) else {
            continue;
        };
        said.extend(&bytes[..count]);
        let mut taken = 0;
        let mut arriving = Vec::new();
        for message in messages(&said) {
            taken += message.len();
            arriving.extend(arriving_of(version, message));
        }
        said.drain(..taken);
        switch.send(&arriving);
    }
}

/// Returns the packet-in of the frame that arrives over the link because of this message.
fn arriving_of(version: Version, message: &[u8]) -> Vec<u8> {
    let Ok((_, Message::PacketOut(packet))) = Message::decode(message) else {
        return Vec::new();
    };
    let in_port = match packet.actions.iter().next() {
        Some(Action::Output { port, .. }) if port.0 == 1 => 2,
        Some(Action::Output { port, .. }) if port.0 == 2 => 1,
        _ => return Vec::new(),
    };
    encode(
        version,
        &Packet {
            in_port,
            buffer_id: u32::MAX,
            frame: packet.data.to_vec(),
        },
    )
}

#[test]
fn probes_settled_in_the_kernel_keep_a_link_up() {
    for version in Version::ALL {
        let Some(driven) = driven() else { return };
        let services = Services::with(DiscoveryConfig {
            probe_interval: PROBE_INTERVAL,
            missed_probes: 60,
            ..DiscoveryConfig::default()
        });
        services.offload_to(&driven);
        let controller = start(&driven, services.controller(behind));
        let mut switch = connect(&controller);
        join(&mut switch, version, 1);
        switch
            .set_read_timeout(Some(Duration::from_millis(5)))
            .unwrap();
        let links = || services.discovery.topology().load().directed_links().len();
        relay(&mut switch, version, || links() == 2);

        // Long enough for the link to time out if these probes were not noticed.
        let offload = driven.offload();
        let (before, start) = (offload.counts().probes, Instant::now());
        let lasts = PROBE_INTERVAL * 70;
        relay(&mut switch, version, || {
            assert_eq!(links(), 2, "the link stays up");
            offload.counts().probes >= before + 60 && start.elapsed() > lasts
        });

        wait_for("the link is given up", || links() == 0);
        relay(&mut switch, version, || links() == 2);
        assert!(controller.network().info(DatapathId(1)).is_some());
        drop(switch);
        controller.stop().unwrap();
    }
}
