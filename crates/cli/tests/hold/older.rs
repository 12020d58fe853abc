//! Tests that the state of an older program is taken over. The messages to its holder and a connection's journal are written
//! here byte by byte, as programs of these layouts do. If a layout changes, it gets another number, and programs refuse the
//! old one with a message, so that its switches reconnect. Then add the new layout's bytes here, and keep the old ones, whose
//! connections must end.

use crate::room::*;
use crate::switch::*;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{pread, pwrite};
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, connect, recv, sendmsg, socket_with,
};
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use urtica_hold::Progress;
use urtica_wire::Version;

/// The layout of an older program's messages to the holder.
const MESSAGES: u32 = 2;

/// The first word of journals: "urtica" and the number of their layout.
const JOURNALS: [u8; 8] = *b"urtica\0\x02";
const OLDER_JOURNALS: [u8; 8] = *b"urtica\0\x01";

/// The position of the journal's header: after the record, and before the output.
const HEADER_AT: u64 = 65536;
const OUTPUT_AT: u64 = HEADER_AT + 128;

/// A 1.3 features reply of the switch 0xd1, which has one table.
const FEATURES: [u8; 32] = [
    4, 6, 0, 32, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0xd1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0,
];

/// The counter of the last xid that the older program used.
const LAST_XID: u32 = 5;

/// A 1.3 session that is up: its one table has a table-miss entry, and its role is equal.
const WORD: u64 = (LAST_XID as u64) | 3 << 32 | 4 << 40 | 1 << 48;

/// An older program's connection to a holder.
struct OlderProgram {
    holder: OwnedFd,
}

impl OlderProgram {
    /// Attaches to the holder, and requests that everything is kept for a minute.
    fn attach(file: &Path) -> Self {
        let flags = SocketFlags::CLOEXEC;
        let holder = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
        let address = SocketAddrUnix::new(file).unwrap();
        eventually("the holder listens", || connect(&holder, &address).is_ok());
        let program = Self { holder };
        program.say(
            &[&b"A"[..], &MESSAGES.to_le_bytes(), &60_u32.to_le_bytes()],
            &[],
        );
        let mut answer = [0; 64];
        let (_, count) = recv(
            &program.holder,
            &mut answer[..],
            rustix::net::RecvFlags::empty(),
        )
        .unwrap();
        assert_eq!(&answer[..count], b"D", "it is attached");
        program
    }

    fn say(&self, parts: &[&[u8]], fds: &[&OwnedFd]) {
        let fds: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(fds.is_empty() || control.push(SendAncillaryMessage::ScmRights(&fds)));
        let bytes = parts.concat();
        sendmsg(
            &self.holder,
            &[IoSlice::new(&bytes)],
            &mut control,
            SendFlags::empty(),
        )
        .unwrap();
    }

    fn keep_listener(&self, id: u64, label: &str, socket: &OwnedFd) {
        self.say(&[b"L", &id.to_le_bytes(), label.as_bytes()], &[socket]);
    }

    fn keep_connection(&self, id: u64, label: &str, socket: &OwnedFd, journal: &OwnedFd) {
        self.say(
            &[b"C", &id.to_le_bytes(), label.as_bytes()],
            &[socket, journal],
        );
    }
}

/// Writes the journal of a connection with unsent output from which no input was read.
fn journal(magic: [u8; 8], written_before: u64, output: &[u8]) -> OwnedFd {
    let file = memfd_create("older", MemfdFlags::CLOEXEC).unwrap();
    let mut words = [0; 16];
    words[0] = u64::from_be_bytes(magic);
    words[1] = written_before;
    words[3] = FEATURES.len() as u64;
    // The state before the last input, and the state after it: position, length of the output, three words.
    for at in [5, 10] {
        words[at + 1] = output.len() as u64;
        words[at + 2] = WORD;
    }
    let sum = words[..15]
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |sum, word| {
            (sum ^ word)
                .wrapping_mul(0x0000_0100_0000_01b3)
                .rotate_left(29)
        });
    words[15] = sum;
    let header: Vec<_> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    for (bytes, at) in [
        (&FEATURES[..], 0),
        (&header, HEADER_AT),
        (output, OUTPUT_AT),
    ] {
        assert_eq!(pwrite(&file, bytes, at), Ok(bytes.len()));
    }
    assert_eq!(pread(&file, &mut [0; 8], HEADER_AT), Ok(8));
    file
}

/// Returns a 1.3 packet-out that floods packet number 1 of a [`FakeSwitch`], with the older program's last xid.
fn packet_out() -> Vec<u8> {
    let mut bytes = vec![4, 13, 0, 100, 1, 0, 0, LAST_XID as u8];
    bytes.extend([0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1, 0, 16, 0, 0, 0, 0, 0, 0]);
    bytes.extend([0, 0, 0, 16, 0xff, 0xff, 0xff, 0xfb, 0, 0, 0, 0, 0, 0, 0, 0]);
    let mut frame = [0; 60];
    frame[..6].fill(0xff);
    frame[21] = 1;
    bytes.extend(frame);
    bytes
}

/// Starts a holder, and leaves a connection there as an older program does.
fn leave(room: &Room, magic: [u8; 8]) -> FakeSwitch {
    let mut holder = Command::new(URTICA)
        .arg("hold")
        .arg(room.file())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::spawn(move || holder.wait());
    let older = OlderProgram::attach(&room.file());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (accepted, peer) = listener.accept().unwrap();
    listener.set_nonblocking(true).unwrap();
    accepted.set_nonblocking(true).unwrap();
    let listener = OwnedFd::from(listener);
    older.keep_listener(1, "ptcp:0:127.0.0.1", &listener);
    let accepted = OwnedFd::from(accepted);
    let written = Progress::of(accepted.as_fd()).unwrap().written;
    let journal = journal(magic, written, &packet_out());
    older.keep_connection(2, &format!("tcp:{peer}"), &accepted, &journal);
    let mut switch = FakeSwitch::joined(socket, Version::Of13, LAST_XID - 1);
    // The older program has read the switch's packet, and noted the answer without sending it.
    switch.sent = 1;
    switch
}

#[test]
fn connections_of_an_older_program_are_taken_over() {
    let room = Room::new();
    let mut switch = leave(&room, JOURNALS);
    // Sent while no program runs.
    switch.send_packets(10);
    let program = room.start("next.log", &[]);
    switch.settle();
    assert!(
        program.log().contains("taken=1 closed=0"),
        "{}",
        program.log()
    );
    assert!(!program.log().contains("WARN"), "{}", program.log());
    assert_eq!(switch.senders.len(), 1, "they are of one program");
    program.interrupt(&room);
}

/// The connection ends with a message in the log, and the switch reconnects.
#[test]
fn journals_of_another_layout_end_their_connections() {
    let room = Room::new();
    let mut switch = leave(&room, OLDER_JOURNALS);
    let program = room.start("next.log", &[]);
    while switch.take_frame() {}
    let log = program.log();
    assert!(log.contains("it was written by another version"), "{log}");
    assert!(log.contains("taken=0 closed=1"), "{log}");
    let mut switch = FakeSwitch::join(program.port().unwrap(), Version::Of13, 0xd1);
    switch.send_packets(10);
    switch.settle();
    program.interrupt(&room);
}

/// The program makes a holder of another layout end, and starts its own.
#[test]
fn a_holder_of_another_version_is_replaced() {
    let room = Room::new();
    let flags = SocketFlags::CLOEXEC;
    let listener = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
    rustix::net::bind(&listener, &SocketAddrUnix::new(room.file()).unwrap()).unwrap();
    rustix::net::listen(&listener, 4).unwrap();
    let file = room.file();
    let holder = std::thread::spawn(move || {
        let program = rustix::net::accept(&listener).unwrap();
        let mut said = [0; 64];
        let none = rustix::net::RecvFlags::empty();
        let (_, count) = recv(&program, &mut said[..], none).unwrap();
        assert_eq!((said[0], count), (b'A', 9));
        let refusal = [&b"R"[..], &1_u32.to_le_bytes(), b"another time"].concat();
        rustix::net::send(&program, &refusal, SendFlags::empty()).unwrap();
        let (_, count) = recv(&program, &mut said[..], none).unwrap();
        assert_eq!(&said[..count], b"E", "it is told to end");
        drop(listener);
        std::fs::remove_file(file).unwrap();
    });
    let program = room.start("next.log", &[]);
    holder.join().unwrap();
    let log = program.log();
    assert!(
        log.contains("has another version: another time; it closes its connections"),
        "{log}"
    );
    assert!(log.contains("a holder keeps the connections"), "{log}");
    program.interrupt(&room);
}
