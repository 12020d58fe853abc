//! The kernel's half is removed from connections that use it.

use crate::application::{Application, start};
use crate::controller::behind_rings;
use crate::packets::Packet;
use crate::switch::{Channel, connect, headers, join};
use libbpf_rs::query::MapInfoIter;
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType};
use std::io::Write;
use std::net::TcpStream;
use std::os::fd::BorrowedFd;
use urtica_apps::L2;
use urtica_controller::SwitchInfo;
use urtica_offload::ring::MessageType;
use urtica_wire::Version;

/// Removes the other end of this connection, which is in this process, from the kernel's map, as another process with the
/// privilege could do. Returns whether it was in the map.
fn take_out(socket: &TcpStream) -> bool {
    let cookie = cookie_of_other_end(socket).expect("the other end is in this process");
    let mut maps = MapInfoIter::default().filter(|map| map.ty == MapType::Sockmap);
    maps.any(|map| {
        let map = MapHandle::from_map_id(map.id).expect("the map is there");
        let mut slots = 0..map.max_entries();
        let slot = slots.find(|slot| {
            let found = map.lookup(&slot.to_ne_bytes(), MapFlags::ANY);
            found.is_ok_and(|found| found == Some(cookie.to_ne_bytes().to_vec()))
        });
        slot.is_some_and(|slot| map.delete(&slot.to_ne_bytes()).is_ok())
    })
}

fn cookie_of_other_end(socket: &TcpStream) -> Option<u64> {
    let ours = socket.local_addr().unwrap();
    (3..4096).find_map(|number| {
        // SAFETY: if the descriptor is not open, the system reports it; it is used only for this query.
        let other = unsafe { BorrowedFd::borrow_raw(number) };
        let peer = rustix::net::getpeername(other).ok()??;
        let peer = std::net::SocketAddr::try_from(peer).ok()?;
        let cookie = || rustix::net::sockopt::socket_cookie(other).ok();
        (peer == ours).then(cookie)?
    })
}

/// Sends packet-ins one by one, each of which is answered, and removes the socket in between, while no message is in transit:
/// the system discards passed but unread input of a socket that leaves its map.
fn exchange_while_lost(socket: &mut TcpStream) {
    for xid in 0..40 {
        if xid == 20 {
            assert!(take_out(socket), "the socket was in no map");
        }
        let mut bytes = Vec::new();
        Packet::udp(1, 2).encode(Version::Of13, xid, &mut bytes);
        socket.write_all(&bytes).unwrap();
        let mut said = Vec::new();
        while headers(&said).next().is_none() {
            said.extend(socket.receive());
        }
    }
}

#[test]
fn a_ring_continues_without_the_kernel() {
    let Some(rings) = start(1, 1 << 18) else {
        return;
    };
    let application = Application::run(rings, &[MessageType::PacketIn]);
    let mut socket = application.connect();
    join(&mut socket, Version::Of13, 1);
    exchange_while_lost(&mut socket);
    application.stop();
}

#[test]
fn a_controller_continues_without_the_kernel() {
    let Some(controller) = behind_rings(|_: &SwitchInfo| L2::default(), 1) else {
        return;
    };
    let mut socket = connect(&controller);
    join(&mut socket, Version::Of13, 1);
    exchange_while_lost(&mut socket);
    controller.stop().unwrap();
}
