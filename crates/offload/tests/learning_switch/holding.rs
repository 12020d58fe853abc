//! Kernel halves that outlive their controller: tables of a known layout continue to be used, others are released.

use crate::back_pressure::unacknowledged_bytes;
use crate::packets::Packet;
use crate::support::kernel;
use crate::switch::{Channel, PATIENCE, connect, connect_with_room, headers, join};
use libbpf_rs::libbpf_sys::bpf_map_delete_elem;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use socket2::SockRef;
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use urtica_controller::hold::{Held, Holder, attach};
use urtica_controller::{Controller, Running};
use urtica_offload::{Halves, LearningSwitch, Mode};
use urtica_wire::{
    Capabilities, DatapathId, Features, Header, List, Message, MultipartFlags, MultipartReply,
    MultipartReplyBody, Version,
};

const LONG: Duration = Duration::from_secs(600);

const ECHO_REPLY: u8 = 3;
const FEATURES_REQUEST: u8 = 5;
const PACKET_OUT: u8 = 13;
const FLOW_MOD: u8 = 14;
const MULTIPART_REQUEST: u8 = 18;

/// A holder on a thread instead of a process.
struct Room {
    folder: tempfile::TempDir,
    holder: JoinHandle<std::io::Result<usize>>,
}

impl Room {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let holder = Holder::bind(&folder.path().join("hold.sock")).unwrap();
        Self {
            folder,
            holder: thread::spawn(move || holder.run()),
        }
    }

    fn attach(&self) -> Held {
        attach(&self.folder.path().join("hold.sock"), LONG).unwrap()
    }

    /// Starts a controller with the learning switch. Also returns the number of connections whose tables it continues to use.
    fn start(&self, mut held: Held) -> (Running, usize) {
        let mut halves = Halves::of(&mut held).mode(Mode::Kernel);
        let kernel = halves.start(&held.link).unwrap();
        let going_on = halves.going_on();
        let program = LearningSwitch::new(kernel).mode(Mode::Kernel).places(64);
        let controller = controller().held_halves(halves).hold(held);
        (controller.program(program).start().unwrap(), going_on)
    }
}

fn controller() -> Controller {
    let address = "ptcp:0:127.0.0.1".parse().unwrap();
    let controller = Controller::new().kernel_half_after(Duration::ZERO, 0);
    controller.listen(address).shards(1).pin(false)
}

/// A switch that answers requests.
struct Switch {
    socket: TcpStream,
    version: Version,
    received: Vec<u8>,
}

impl Switch {
    fn join(running: &Running, version: Version) -> Self {
        Self::join_by(connect(running), version)
    }

    fn join_by(mut socket: TcpStream, version: Version) -> Self {
        join(&mut socket, version, 1);
        Self {
            socket,
            version,
            received: Vec::new(),
        }
    }

    /// Sends a packet from one host to another. Returns the type of the controller's answer.
    fn ask(&mut self, src: u8, dst: u8) -> u8 {
        let mut packet = Vec::new();
        Packet::udp(src, dst).encode(self.version, 1, &mut packet);
        self.socket.send(&packet);
        self.next_answer().message_type
    }

    /// Returns the next message that answers a packet or an echo request. Replies to requests that arrive before it.
    fn next_answer(&mut self) -> Header {
        loop {
            let header = self.next();
            match header.message_type {
                PACKET_OUT | FLOW_MOD | ECHO_REPLY => return header,
                FEATURES_REQUEST | MULTIPART_REQUEST => self.answer(header.xid),
                _ => {}
            }
        }
    }

    fn next(&mut self) -> Header {
        loop {
            let header = headers(&self.received).next();
            if let Some(header) = header {
                self.received.drain(..usize::from(header.length));
                return header;
            }
            let more = self.socket.receive();
            self.received.extend(more);
        }
    }

    /// Describes the switch's ports again.
    fn answer(&mut self, xid: u32) {
        let message = match self.version {
            Version::Of10 => Message::FeaturesReply(Features {
                datapath_id: DatapathId(1),
                n_buffers: 256,
                n_tables: 1,
                auxiliary_id: 0,
                capabilities: Capabilities::empty(),
                actions: 0,
                ports: List::default(),
            }),
            Version::Of13 => Message::MultipartReply(MultipartReply {
                flags: MultipartFlags::empty(),
                body: MultipartReplyBody::PortDesc(List::default()),
            }),
        };
        let mut reply = Vec::new();
        message.encode(self.version, xid, &mut reply).unwrap();
        self.socket.send(&reply);
    }
}

/// Hosts that a controller has learnt stay known, both to the kernel while there is no controller and to the next controller.
#[test]
fn tables_are_continued() {
    if kernel().is_none() {
        return;
    }
    for version in Version::ALL {
        let room = Room::new();
        let (first, _) = room.start(room.attach());
        let mut switch = Switch::join(&first, version);
        assert_eq!(switch.ask(1, 2), PACKET_OUT, "nobody knows host 2");
        first.leave().unwrap();
        assert_eq!(switch.ask(2, 1), FLOW_MOD, "the kernel knows host 1");
        for round in 0..3 {
            let mut held = room.attach();
            if round == 1 {
                // Other programs of this layout are loaded for the existing maps.
                let label = &mut held.commons[0].attachment.label;
                let code = label.rfind(' ').unwrap() + 1;
                label.replace_range(code.., "0");
            }
            let (next, going_on) = room.start(held);
            assert_eq!(going_on, 1);
            assert_eq!(switch.ask(3, 2), FLOW_MOD, "host 2 is known");
            assert_eq!(switch.ask(4, 9), PACKET_OUT, "host 9 is not");
            next.leave().unwrap();
            assert_eq!(switch.ask(5, 4), FLOW_MOD);
        }
        let (last, _) = room.start(room.attach());
        last.stop().unwrap();
        room.holder.join().unwrap().unwrap();
    }
}

/// Maps of another version are released: the connection stays, and hosts are learnt again, also in the kernel.
#[test]
fn tables_of_another_version_are_released() {
    if kernel().is_none() {
        return;
    }
    for version in Version::ALL {
        let room = Room::new();
        let (first, _) = room.start(room.attach());
        let mut switch = Switch::join(&first, version);
        assert_eq!(switch.ask(1, 2), PACKET_OUT);
        first.leave().unwrap();
        let mut held = room.attach();
        let label = &mut held.commons[0].attachment.label;
        *label = "urtica kernel half 4711 0".into();
        let (second, going_on) = room.start(held);
        assert_eq!(going_on, 0);
        assert_eq!(switch.ask(2, 1), PACKET_OUT, "host 1 is unknown again");
        assert_eq!(switch.ask(1, 2), FLOW_MOD);
        let counters = second.network().counters(DatapathId(1)).unwrap();
        // Answers of the first program's kernel half count, too.
        let (before, start) = (counters.answered_in_kernel.get(), Instant::now());
        assert_eq!(switch.ask(3, 2), FLOW_MOD);
        while counters.answered_in_kernel.get() == before {
            assert!(start.elapsed() < crate::switch::PATIENCE);
            assert_eq!(switch.ask(3, 2), FLOW_MOD);
        }
        second.leave().unwrap();
        let (third, going_on) = room.start(room.attach());
        assert_eq!(going_on, 1);
        assert_eq!(switch.ask(4, 3), FLOW_MOD);
        third.stop().unwrap();
    }
}

/// Another layout with one more map, and one more descriptor for each connection, is released nevertheless.
#[test]
fn tables_with_further_descriptors_are_released() {
    if kernel().is_none() {
        return;
    }
    let room = Room::new();
    let (first, _) = room.start(room.attach());
    let mut switch = Switch::join(&first, Version::Of13);
    assert_eq!(switch.ask(1, 2), PACKET_OUT);
    first.leave().unwrap();
    let mut held = room.attach();
    let maps = &mut held.commons[0].attachment;
    maps.label = "urtica kernel half l2.4711 0".into();
    maps.fds.push(maps.fds[0].try_clone().unwrap());
    let of_connection = held.connections[0].attachment.as_mut().unwrap();
    let further = of_connection.fds[0].try_clone().unwrap();
    of_connection.fds.push(further);
    let (second, going_on) = room.start(held);
    assert_eq!(going_on, 0);
    assert_eq!(switch.ask(2, 1), PACKET_OUT, "host 1 is unknown again");
    assert_eq!(switch.ask(1, 2), FLOW_MOD);
    second.stop().unwrap();
    room.holder.join().unwrap().unwrap();
}

/// A program that replaces others reports to the holder which are loaded, so a program that returns does not mistake others for
/// its own.
#[test]
fn the_holder_knows_which_programs_are_loaded() {
    if kernel().is_none() {
        return;
    }
    let room = Room::new();
    let (first, _) = room.start(room.attach());
    let mut switch = Switch::join(&first, Version::Of13);
    switch.ask(1, 2);
    first.leave().unwrap();
    let mut held = room.attach();
    let own = held.commons[0].attachment.label.clone();
    let code = own.rfind(' ').unwrap() + 1;
    // The programs of another build.
    let other = format!("{}4711", &own[..code]);
    held.commons[0].attachment.label.clone_from(&other);
    let renamed = held
        .link
        .replace_common(held.commons[0].id, other, &fds(&held));
    renamed.unwrap();
    let (second, going_on) = room.start(held);
    assert_eq!(going_on, 1);
    second.leave().unwrap();
    let held = room.attach();
    assert_eq!(held.commons[0].attachment.label, own);
    assert_eq!(held.commons.len(), 1);
    let (third, _) = room.start(held);
    third.stop().unwrap();
    room.holder.join().unwrap().unwrap();
}

fn fds(held: &Held) -> Vec<BorrowedFd<'_>> {
    let fds = held.commons[0].attachment.fds.iter();
    fds.map(AsFd::as_fd).collect()
}

/// Waits until the other side's kernel has received all bytes.
fn wait_until_acknowledged(socket: &TcpStream) {
    let start = Instant::now();
    while unacknowledged_bytes(socket) > 0 {
        assert!(start.elapsed() < PATIENCE, "the kernel takes all");
        thread::yield_now();
    }
}

/// Returns whether the socket has no input.
fn is_empty(socket: BorrowedFd) -> bool {
    let found = recv(socket, &mut [0; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT);
    matches!(found, Err(Errno::AGAIN))
}

/// While there is no controller, the kernel answers, and passes a message that waits in the kernel behind replies that the
/// switch does not read. The next controller must not count that message as read.
#[test]
fn a_message_behind_unread_replies_is_handled_once() {
    const REQUESTS: usize = 150;
    if kernel().is_none() {
        return;
    }
    for version in Version::ALL {
        let room = Room::new();
        let (first, _) = room.start(room.attach());
        let mut switch = Switch::join_by(connect_with_room(&first, 2048), version);
        assert_eq!(switch.ask(1, 2), PACKET_OUT, "nobody knows host 2");
        first.leave().unwrap();
        assert_eq!(switch.ask(2, 1), FLOW_MOD, "the kernel owns the connection");
        let held = room.attach();
        let socket = held.connections[0].socket.try_clone().unwrap();
        SockRef::from(&socket).set_send_buffer_size(2048).unwrap();

        let mut requests = Vec::new();
        for _ in 0..REQUESTS {
            Packet::udp(1, 2).encode(version, 1, &mut requests);
        }
        switch.socket.send(&requests);
        // The first replies have arrived, but there is no space for all.
        switch.socket.peek(&mut [0]).unwrap();
        let mut echo = Vec::new();
        let request = Message::EchoRequest(&[]);
        request.encode(version, 2, &mut echo).unwrap();
        switch.socket.send(&echo);
        wait_until_acknowledged(&switch.socket);
        assert!(is_empty(socket.as_fd()), "replies are in front of it");

        let (second, _) = room.start(held);
        SockRef::from(&socket)
            .set_send_buffer_size(1 << 20)
            .unwrap();
        let wide = SockRef::from(&switch.socket).set_recv_buffer_size(1 << 20);
        wide.unwrap();
        for _ in 0..REQUESTS {
            assert_eq!(switch.next_answer().message_type, FLOW_MOD);
        }
        let reply = switch.next_answer();
        assert_eq!((reply.message_type, reply.xid), (ECHO_REPLY, 2));
        assert_eq!(switch.ask(3, 2), FLOW_MOD, "host 2 is known");
        second.leave().unwrap();
        assert_eq!(switch.ask(4, 3), FLOW_MOD, "the kernel owns the connection");
        let (third, _) = room.start(room.attach());
        assert_eq!(switch.ask(5, 9), PACKET_OUT, "host 9 is unknown");
        third.stop().unwrap();
        room.holder.join().unwrap().unwrap();
    }
}

/// The kernel answers, but drops the input that signals the reply. The next controller signals it again.
#[test]
fn a_reply_whose_signal_was_lost_is_sent_by_the_next_controller() {
    if kernel().is_none() {
        return;
    }
    for version in Version::ALL {
        let room = Room::new();
        let (first, _) = room.start(room.attach());
        let mut switch = Switch::join(&first, version);
        assert_eq!(switch.ask(1, 2), PACKET_OUT, "nobody knows host 2");
        first.leave().unwrap();
        assert_eq!(switch.ask(2, 1), FLOW_MOD, "the kernel owns the connection");
        let held = room.attach();
        empty_relay(&held);
        let mut packet = Vec::new();
        Packet::udp(1, 2).encode(version, 1, &mut packet);
        switch.socket.send(&packet);
        wait_until_acknowledged(&switch.socket);
        let (second, _) = room.start(held);
        assert_eq!(switch.next_answer().message_type, FLOW_MOD);
        assert_eq!(switch.ask(3, 2), FLOW_MOD, "host 2 is known");
        second.stop().unwrap();
        room.holder.join().unwrap().unwrap();
    }
}

/// Makes signals of the only connection ineffective, by removing its socket from the map `relays`.
fn empty_relay(held: &Held) {
    const RELAYS: usize = 5;
    let relays = held.commons[0].attachment.fds[RELAYS].as_raw_fd();
    let is_emptied = |slot: &u32| {
        // SAFETY: the kernel reads a key, which has the size of this map's keys.
        let result = unsafe { bpf_map_delete_elem(relays, std::ptr::from_ref(slot).cast()) };
        result == 0
    };
    assert_eq!((0..100).filter(is_emptied).count(), 1);
}

/// A controller that does not take over kernel halves closes their connections.
#[test]
fn a_connection_without_a_successor_is_closed() {
    if kernel().is_none() {
        return;
    }
    let room = Room::new();
    let (first, _) = room.start(room.attach());
    let mut switch = Switch::join(&first, Version::Of13);
    switch.ask(1, 2);
    first.leave().unwrap();
    let held = room.attach();
    let program = |_: &urtica_controller::SwitchInfo| urtica_apps::L2::default();
    let second = controller().hold(held).program(program).start().unwrap();
    let mut rest = Vec::new();
    std::io::Read::read_to_end(&mut switch.socket, &mut rest).unwrap();
    second.stop().unwrap();
}
