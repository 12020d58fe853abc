//! `urtica run --hold`: programs that are killed, stopped and replaced while switches wait for answers. Each request is answered
//! once and in order, and no connection ends.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use urtica_wire::{
    BufferId, Capabilities, DatapathId, Features, Header, List, MacAddr, Match, Message,
    MultipartFlags, MultipartReply, MultipartReplyBody, PacketIn, PacketInReason, Port, PortNo,
    Version, split_frame,
};

const URTICA: &str = env!("CARGO_BIN_EXE_urtica");

/// Longer than anything takes, also where the machine is busy.
const DEADLINE: Duration = Duration::from_secs(60);

/// How many requests of a switch wait for their answers at a time.
const OUTSTANDING: u64 = 64;

fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < DEADLINE, "expected: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// Where the programs of a test meet.
struct Room {
    folder: tempfile::TempDir,
}

impl Room {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder }
    }

    /// The holder's socket.
    fn file(&self) -> PathBuf {
        self.folder.path().join("hold.sock")
    }

    /// Starts a program that floods each packet, and waits until it listens.
    fn start(&self, name: &str, options: &[&str]) -> Program {
        let mut program = self.spawn(Command::new(URTICA), name, options);
        eventually("the program listens", || {
            let ended = program.child.try_wait().unwrap();
            assert!(ended.is_none(), "{}", program.log());
            program.port().is_some()
        });
        program
    }

    /// The same for a program that is killed before one of its threads makes its `nth` call of these.
    fn start_traced(&self, name: &str, calls: &str, nth: usize) -> Program {
        let mut strace = Command::new("strace");
        let kill = format!("inject={calls}:signal=SIGKILL:when={nth}");
        strace.args([
            "-f",
            "-qq",
            "-o",
            "/dev/null",
            "-e",
            &format!("trace={calls}"),
            "-e",
        ]);
        strace.args([&kill, URTICA]);
        self.spawn(strace, name, &[])
    }

    fn spawn(&self, mut program: Command, name: &str, options: &[&str]) -> Program {
        let log = self.folder.path().join(name);
        let output = File::create(&log).unwrap();
        let child = program
            .args([
                "run",
                "hub",
                "--listen",
                "ptcp:0:127.0.0.1",
                "--shards",
                "2",
            ])
            .arg(format!("--hold={}", self.file().display()))
            .args(options)
            .env("RUST_LOG", "info")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(output)
            .spawn()
            .unwrap();
        Program { child, log }
    }
}

/// A running program; killed when dropped.
struct Program {
    child: Child,
    log: PathBuf,
}

impl Program {
    fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    fn port(&self) -> Option<u16> {
        let log = self.log();
        let (_, after) = log.split_once("listening address=ptcp:")?;
        after.split(':').next()?.parse().ok()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn kill(mut self) {
        self.signal(Signal::KILL);
        self.child.wait().unwrap();
    }

    fn wait(&mut self) -> ExitStatus {
        let mut status = None;
        eventually("the program ends", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }

    /// Ends it with its connections and its holder.
    fn interrupt(mut self, room: &Room) {
        self.signal(Signal::INT);
        assert!(self.wait().success(), "{}", self.log());
        eventually("the holder has ended", || !room.file().exists());
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            eprintln!("--- {}\n{}", self.log.display(), self.log());
        }
    }
}

/// A switch with one port, whose packets have numbers.
struct FakeSwitch {
    socket: TcpStream,
    version: Version,
    id: u64,
    received: Vec<u8>,
    /// The number of the packet that was sent last, and of the last that was flooded.
    sent: u64,
    flooded: u64,
    /// How long its packets are.
    frame_len: usize,
    /// Whether only the beginning of a message has been sent, and the replies that wait for its end.
    is_cut: bool,
    replies: Vec<u8>,
}

impl FakeSwitch {
    /// Connects, and waits until the program floods its packets.
    fn join(port: u16, version: Version, id: u64) -> Self {
        let socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
        socket.set_read_timeout(Some(DEADLINE)).unwrap();
        socket.set_nodelay(true).unwrap();
        let mut switch = Self {
            socket,
            version,
            id,
            received: Vec::new(),
            sent: 0,
            flooded: 0,
            frame_len: 60,
            is_cut: false,
            replies: Vec::new(),
        };
        let hello = [version.to_wire(), 0, 0, 8, 0, 0, 0, 0];
        switch.socket.write_all(&hello).unwrap();
        while !switch.has_joined() {
            assert!(switch.take_frame(), "the connection ended");
        }
        switch
    }

    /// It has when the program has asked it for its identity, since packets are flooded from the answer on.
    fn has_joined(&self) -> bool {
        self.id == 0
    }

    fn packet(&mut self) -> Vec<u8> {
        self.sent += 1;
        let mut frame = vec![0; self.frame_len];
        frame[14..22].copy_from_slice(&self.sent.to_be_bytes());
        let packet = PacketIn {
            buffer_id: BufferId::NONE,
            total_len: self.frame_len as u16,
            reason: PacketInReason::NoMatch,
            table_id: 0,
            cookie: u64::MAX,
            in_port: PortNo(1),
            match_: Match::any().in_port(PortNo(1)),
            data: &frame,
        };
        encode(self.version, 0, &Message::PacketIn(packet))
    }

    fn send_packets(&mut self, count: u64) {
        let packets: Vec<_> = (0..count).flat_map(|_| self.packet()).collect();
        self.socket.write_all(&packets).unwrap();
    }

    /// Reads until all packets have been flooded.
    fn settle(&mut self) {
        while self.flooded < self.sent {
            assert!(self.take_frame(), "the connection ended");
        }
    }

    /// Handles the next message; returns whether there was one, and not the end of the connection.
    fn take_frame(&mut self) -> bool {
        loop {
            if let Some((frame, rest)) = split_frame(&self.received).unwrap() {
                let (frame, rest) = (frame.to_vec(), rest.to_vec());
                self.received = rest;
                self.handle(&frame);
                return true;
            }
            let mut buffer = [0; 16 << 10];
            match self.socket.read(&mut buffer).unwrap() {
                0 => return false,
                count => self.received.extend_from_slice(&buffer[..count]),
            }
        }
    }

    fn handle(&mut self, frame: &[u8]) {
        let xid = Header::peek(frame).unwrap().xid;
        let (_, message) = Message::decode(frame).unwrap();
        let reply = match message {
            Message::PacketOut(packet_out) => {
                let number = u64::from_be_bytes(packet_out.data[14..22].try_into().unwrap());
                assert_eq!(number, self.flooded + 1, "each packet, once and in order");
                self.flooded = number;
                return;
            }
            Message::FeaturesRequest => features(self.version, std::mem::take(&mut self.id)),
            Message::MultipartRequest(_) => {
                let body = MultipartReplyBody::PortDesc(List::from(vec![port()]));
                let flags = MultipartFlags::empty();
                Message::MultipartReply(MultipartReply { flags, body })
            }
            Message::EchoRequest(data) => Message::EchoReply(data),
            Message::Hello(_) | Message::SetConfig(_) | Message::FlowMod(_) => return,
            other => panic!("{other:?}"),
        };
        self.replies.extend(encode(self.version, xid, &reply));
        if !self.is_cut {
            self.socket.write_all(&self.replies).unwrap();
            self.replies.clear();
        }
    }

    /// Has requests outstanding until it is told to stop; returns how many were answered.
    fn load(mut self, stop: &AtomicBool, answered: &AtomicU64) -> Self {
        self.send_packets(OUTSTANDING);
        while !stop.load(Ordering::Relaxed) {
            let before = self.flooded;
            assert!(self.take_frame(), "the connection ended");
            answered.fetch_add(self.flooded - before, Ordering::Relaxed);
            self.send_packets(self.flooded - before);
        }
        self.settle();
        self
    }
}

fn encode(version: Version, xid: u32, message: &Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.encode(version, xid, &mut bytes).unwrap();
    bytes
}

fn port() -> Port {
    Port::new(PortNo(1), MacAddr::from_u64(0x0200_0000_0001), "eth1")
}

fn features(version: Version, id: u64) -> Message<'static> {
    let ports = match version {
        Version::Of10 => vec![port()],
        Version::Of13 => vec![],
    };
    Message::FeaturesReply(Features {
        datapath_id: DatapathId(id),
        n_buffers: 0,
        n_tables: 1,
        auxiliary_id: 0,
        capabilities: Capabilities::empty(),
        actions: 0,
        ports: List::from(ports),
    })
}

/// Loads a program with switches of both versions while `disturb` does something to it, which returns what runs in the end. It
/// is given a function that waits until so many more requests have been answered.
fn under_load(room: &Room, disturb: impl FnOnce(Program, &dyn Fn(u64)) -> Program) {
    let program = room.start("first.log", &[]);
    let port = program.port().unwrap();
    let (stop, answered) = (AtomicBool::new(false), AtomicU64::new(0));
    let progress = |count: u64| {
        let before = answered.load(Ordering::Relaxed);
        eventually("requests are answered", || {
            answered.load(Ordering::Relaxed) >= before + count
        });
    };
    let last = thread::scope(|scope| {
        let switches: Vec<_> = (1..=4)
            .map(|id| {
                let version = Version::ALL[id as usize % 2];
                let switch = FakeSwitch::join(port, version, id);
                scope.spawn(|| switch.load(&stop, &answered))
            })
            .collect();
        // Also where this panics, the switches are to end.
        let last = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            progress(1000);
            let last = disturb(program, &progress);
            progress(1000);
            last
        }));
        stop.store(true, Ordering::Relaxed);
        for switch in switches {
            switch.join().expect("every packet is flooded");
        }
        last.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    assert_eq!(last.port(), Some(port));
    last.interrupt(room);
}

#[test]
fn a_program_that_is_killed_at_any_moment_loses_nothing() {
    let room = Room::new();
    under_load(&room, |mut program, progress| {
        for round in 0..20_u64 {
            // Different moments: right at its start, under full load, and between.
            if round % 4 != 0 {
                progress(round * 37 % 200);
            }
            program.kill();
            program = room.start(&format!("after-{round}.log"), &[]);
            assert!(
                !program.log().contains("cannot be used"),
                "{}",
                program.log()
            );
        }
        program
    });
}

/// Whether a program is killed before it has looked at input, noted the replies, discarded the input, or sent: it loses nothing, and
/// sends nothing twice.
#[test]
fn a_program_that_is_killed_at_any_system_call_loses_nothing() {
    if !has_strace() {
        return;
    }
    let room = Room::new();
    under_load(&room, |program, _| {
        program.kill();
        for calls in ["recvfrom", "pwrite64,pwritev", "sendto"] {
            for nth in 1..=12 {
                let mut traced = room.start_traced(&format!("{calls}-{nth}.log"), calls, nth);
                assert_eq!(traced.wait().signal(), Some(9), "{}", traced.log());
            }
        }
        room.start("last.log", &[])
    });
}

/// Prints one line where there is none, and fails where `CI=true` is set.
fn has_strace() -> bool {
    if Command::new("strace").arg("-V").output().is_ok() {
        return true;
    }
    let skipped = "skipped: needs strace (tools/setup)";
    assert!(std::env::var("CI").as_deref() != Ok("true"), "{skipped}");
    let _ = writeln!(std::io::stderr(), "{skipped}");
    false
}

#[test]
fn a_program_that_is_stopped_loses_nothing() {
    let room = Room::new();
    under_load(&room, |program, _| {
        program.signal(Signal::STOP);
        thread::sleep(Duration::from_secs(1));
        program.signal(Signal::CONT);
        program
    });
}

#[test]
fn a_second_program_takes_over_and_the_first_one_ends() {
    let room = Room::new();
    under_load(&room, |mut first, progress| {
        let second = room.start("second.log", &[]);
        assert!(first.wait().success(), "{}", first.log());
        assert!(
            first.log().contains("another program takes over"),
            "{}",
            first.log()
        );
        assert!(
            second
                .log()
                .contains("took over the connections of an earlier program taken=4 closed=0"),
            "{}",
            second.log()
        );
        progress(1000);
        second
    });
}

#[test]
fn sigterm_leaves_the_connections_for_the_next_program() {
    let room = Room::new();
    under_load(&room, |mut first, _| {
        first.signal(Signal::TERM);
        assert!(first.wait().success(), "{}", first.log());
        room.start("second.log", &[])
    });
}

#[test]
fn a_message_that_was_cut_by_the_end_of_its_program_is_answered_by_the_next() {
    for version in Version::ALL {
        let room = Room::new();
        let mut program = room.start("first.log", &[]);
        let mut switch = FakeSwitch::join(program.port().unwrap(), version, 1);
        for cut in [1, 7, 8, 30] {
            // What is before it is answered, so that the program has seen this.
            let packets = [switch.packet(), switch.packet()].concat();
            let cut = packets.len() / 2 + cut;
            switch.socket.write_all(&packets[..cut]).unwrap();
            switch.is_cut = true;
            while switch.flooded + 1 < switch.sent {
                assert!(switch.take_frame());
            }
            program.kill();
            program = room.start(&format!("after-{cut}.log"), &[]);
            switch.socket.write_all(&packets[cut..]).unwrap();
            switch.is_cut = false;
            let replies = std::mem::take(&mut switch.replies);
            switch.socket.write_all(&replies).unwrap();
            switch.settle();
        }
        program.interrupt(&room);
        while switch.take_frame() {}
    }
}

/// What is owed to it, and what it has sent, fill all queues: its program dies with messages half sent.
#[test]
fn a_switch_that_does_not_read_gets_the_rest_from_the_next_program() {
    let room = Room::new();
    let mut program = room.start("first.log", &[]);
    let mut switch = FakeSwitch::join(program.port().unwrap(), Version::Of10, 1);
    // More than sockets of loopback take.
    switch.frame_len = 1400;
    let packets: Vec<_> = (0..20_000).flat_map(|_| switch.packet()).collect();
    let mut socket = switch.socket.try_clone().unwrap();
    // What it replies to the program waits until all packets are sent.
    switch.is_cut = true;
    thread::scope(|scope| {
        scope.spawn(move || socket.write_all(&packets).unwrap());
        for round in 0..4 {
            thread::sleep(Duration::from_millis(150));
            program.kill();
            program = room.start(&format!("after-{round}.log"), &[]);
        }
        switch.settle();
        program.interrupt(&room);
    });
}

#[test]
fn connections_end_when_no_program_comes_back_in_time() {
    let room = Room::new();
    let program = room.start("first.log", &["--hold-seconds=1"]);
    let mut switch = FakeSwitch::join(program.port().unwrap(), Version::Of13, 1);
    switch.send_packets(1);
    switch.settle();
    program.kill();
    assert!(room.file().exists());
    while switch.take_frame() {}
    eventually("the holder has ended", || !room.file().exists());
}

#[test]
fn where_connections_cannot_be_held_one_line_says_so() {
    let room = Room::new();
    fs::write(room.file(), "no socket").unwrap();
    let program = room.start("log", &[]);
    let warning = "connections end with this program, since no holder could be started";
    assert!(program.log().contains(warning), "{}", program.log());
    let mut switch = FakeSwitch::join(program.port().unwrap(), Version::Of10, 1);
    switch.send_packets(10);
    switch.settle();
    program.kill();
    assert!(!switch.take_frame(), "the connection ends with its program");
}

/// A holder that systemd has started tells it when programs may come, and ends with the first program that ends for good.
#[test]
fn a_holder_of_its_own_tells_when_it_is_ready() {
    let room = Room::new();
    let place = room.folder.path().join("systemd.sock");
    let systemd = UnixDatagram::bind(&place).unwrap();
    systemd.set_read_timeout(Some(DEADLINE)).unwrap();
    let mut holder = Command::new(URTICA)
        .arg("hold")
        .arg(room.file())
        .env("NOTIFY_SOCKET", &place)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut said = [0; 64];
    let count = systemd.recv(&mut said).unwrap();
    assert_eq!(&said[..count], b"READY=1\n");
    room.start("first.log", &[]).interrupt(&room);
    assert!(holder.wait().unwrap().success());
}

#[test]
fn what_makes_no_sense_is_refused() {
    let run = |arguments: &[&str]| {
        let output = Command::new(URTICA).args(arguments).output().unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let text = run(&["run", "l2", "--hold=/tmp/x", "--offload", "kernel"]);
    assert!(
        text.contains("--hold does not work with --offload kernel, driven or ring"),
        "{text}"
    );
    let text = run(&["run", "l2", "--hold-seconds=3"]);
    assert!(text.contains("--hold"), "{text}");
    let text = run(&["hold", "/nowhere/at/all"]);
    assert!(text.contains("cannot hold at /nowhere/at/all"), "{text}");
    let text = run(&[
        "hold",
        Path::new(env!("CARGO_MANIFEST_DIR")).to_str().unwrap(),
    ]);
    assert!(text.contains("not a socket"), "{text}");
}
