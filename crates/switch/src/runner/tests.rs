mod threads;

use super::*;
use crate::port::af_packet::AfPacketPort;
use crate::port::memory::{self, MemoryPort};
use crate::port::testing::{frame, receive};
use crate::{FrameMemory, PortSpec, SwitchConfig};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;
use urtica_wire::{
    Action, BufferId, CONTROLLER_NO_BUFFER, FlowMod, FlowModCommand, FlowModFlags,
    FlowStatsRequest, GroupMod, GroupModCommand, Instruction, List, MacAddr, Match, Message,
    MultipartFlags, MultipartReplyBody, MultipartRequest, MultipartRequestBody, OxmField,
    PacketOut, PortConfig, PortFeatures, PortMod, PortNo, PortState, Version, split_frame,
};

/// The version and type of the first message in OpenFlow 1.3.
const HELLO: [u8; 2] = [4, 0];

/// A running runner, which is stopped on drop; this also reports its panics.
struct Running {
    stop: StopHandle,
    thread: Option<JoinHandle<Result<(), RunError>>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.stop();
        let ended = self.thread.take().map(JoinHandle::join);
        if !std::thread::panicking() {
            ended.unwrap().expect("no panic").expect("an orderly end");
        }
    }
}

fn start(switch: Switch, controllers: &[Address]) -> (Running, Vec<Address>) {
    start_with(switch, controllers, 0)
}

/// Starts a runner with `count` threads that forward packets.
fn start_with(switch: Switch, controllers: &[Address], count: usize) -> (Running, Vec<Address>) {
    let threads = Threads {
        count,
        cores: Vec::new(),
    };
    let runner = Runner::new(switch, controllers).unwrap();
    let runner = runner.with_threads(&threads).unwrap();
    let addresses = runner.listen_addresses().cloned().collect();
    let stop = runner.stop_handle();
    let thread = Some(std::thread::spawn(|| runner.run()));
    (Running { stop, thread }, addresses)
}

fn switch(fail_mode: crate::FailMode) -> Switch {
    Switch::new(SwitchConfig {
        fail_mode,
        ..SwitchConfig::default()
    })
}

fn expect_hello(stream: &mut TcpStream) {
    let mut start = [0; 2];
    stream
        .set_read_timeout(Some(Duration::from_secs(5)))
        .unwrap();
    stream.read_exact(&mut start).unwrap();
    assert_eq!(start, HELLO);
}

/// Accepts a connection. Times out, so that the failure of a dead runner is reported.
fn accept(listener: &TcpListener) -> TcpStream {
    let patience = Timespec {
        tv_sec: 5,
        tv_nsec: 0,
    };
    let mut ready = [PollFd::new(listener, PollFlags::IN)];
    let count = poll(&mut ready, Some(&patience)).unwrap();
    assert_eq!(count, 1, "expected the runner to connect");
    listener.accept().unwrap().0
}

#[test]
fn sources_are_found_by_their_keys() {
    for source in [
        Source::Stop,
        Source::Port,
        Source::Packets,
        Source::Links,
        Source::Tasks,
        Source::Acceptor,
        Source::Target(2),
        Source::Connection(3),
    ] {
        assert_eq!(Source::from_key(source.key()), source);
    }
}

#[test]
fn controllers_can_connect() {
    let (_running, addresses) = start(
        switch(crate::FailMode::Secure),
        &["ptcp:0:127.0.0.1".parse().unwrap()],
    );
    let mut stream = TcpStream::connect(addresses[0].listen_addr().unwrap()).unwrap();
    expect_hello(&mut stream);
}

/// This needs its own process, which has no descriptors left.
#[test]
fn a_lack_of_descriptors_causes_no_busy_loop_and_passes() {
    const CHILD: &str = "URTICA_TEST_WITHOUT_DESCRIPTORS";
    if std::env::var_os(CHILD).is_some() {
        return without_descriptors();
    }
    let name = "runner::tests::a_lack_of_descriptors_causes_no_busy_loop_and_passes";
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    assert!(
        child.status.success(),
        "{}",
        String::from_utf8_lossy(&child.stderr)
    );
}

fn without_descriptors() {
    let (_running, addresses) = start(
        switch(crate::FailMode::Secure),
        &["ptcp:0:127.0.0.1".parse().unwrap()],
    );
    let address = addresses[0].listen_addr().unwrap();
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None);
    let socket = socket.unwrap();
    let mut taken = Vec::new();
    while let Ok(another) = socket.try_clone() {
        taken.push(another);
    }
    socket.connect(&address.into()).unwrap();
    // This sleeps for a little more than a second: the switch either also sleeps, or polls the listener constantly.
    let processor_time = || rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let before = processor_time();
    std::thread::sleep(Duration::from_secs(1));
    let after = processor_time();
    let used_ns = (after.tv_sec - before.tv_sec) * 1_000_000_000 + after.tv_nsec - before.tv_nsec;
    assert!(used_ns < 200_000_000, "{used_ns} ns of processor time");
    drop(taken);
    expect_hello(&mut socket.into());
}

#[test]
fn the_switch_reconnects_to_controllers() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let address = format!("tcp:127.0.0.1:{port}").parse().unwrap();
    let (_running, _) = start(switch(crate::FailMode::Secure), &[address]);
    let mut first = accept(&listener);
    expect_hello(&mut first);
    // This is not OpenFlow, so the switch closes the connection.
    first.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut second = accept(&listener);
    expect_hello(&mut second);
}

/// Creates a switch with ports 1 to `count`, and the other ends of their links.
fn with_hosts(fail_mode: crate::FailMode, count: u8) -> (Switch, Vec<MemoryPort>) {
    let mut switch = switch(fail_mode);
    let hosts = (1..=count).map(|number| {
        let mac = MacAddr::new([2, 0, 0, 0, 1, number]);
        let (port, host) = memory::pair(("port", mac), ("host", mac), 4096);
        switch.add_port(PortNo(number.into()), Box::new(port), Duration::ZERO);
        host
    });
    let hosts = hosts.collect();
    (switch, hosts)
}

#[test]
fn frames_are_forwarded_without_a_controller() {
    for threads in 0..=3 {
        let (switch, mut hosts) = with_hosts(crate::FailMode::Standalone, 3);
        let (_running, _) = start_with(switch, &[], threads);
        hosts[0].send(&frame(100, 7));
        hosts[0].flush();
        assert_eq!(receive(&mut hosts[1], 1), [frame(100, 7)]);
        assert_eq!(receive(&mut hosts[2], 1), [frame(100, 7)]);
    }
}

/// A 1.3 controller that has sent its hello.
struct Controller<S = TcpStream> {
    stream: S,
    input: Vec<u8>,
}

impl Controller {
    fn connect(address: &Address) -> Self {
        let stream = TcpStream::connect(address.listen_addr().unwrap()).unwrap();
        let patience = Some(Duration::from_secs(5));
        stream.set_read_timeout(patience).unwrap();
        Self::on(stream)
    }
}

impl<S: Read + Write> Controller<S> {
    fn on(mut stream: S) -> Self {
        stream.write_all(&[4, 0, 0, 8, 0, 0, 0, 1]).unwrap();
        let mut hello = [0; 16];
        stream.read_exact(&mut hello).unwrap();
        assert_eq!(hello[..2], HELLO);
        Self {
            stream,
            input: Vec::new(),
        }
    }

    fn say(&mut self, message: &Message) {
        let mut bytes = Vec::new();
        message.encode(Version::Of13, 7, &mut bytes).unwrap();
        self.stream.write_all(&bytes).unwrap();
    }

    /// Reads messages until `choose` returns a value for one.
    fn hear<T>(&mut self, choose: impl Fn(&Message) -> Option<T>) -> T {
        loop {
            while let Some((frame, rest)) = split_frame(&self.input).unwrap() {
                let chosen = choose(&Message::decode(frame).unwrap().1);
                let consumed = self.input.len() - rest.len();
                self.input.drain(..consumed);
                if let Some(chosen) = chosen {
                    return chosen;
                }
            }
            let mut more = [0; 4096];
            // A read with a timeout is not restarted after a signal, such as that for a child's end.
            let len = match self.stream.read(&mut more) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read.unwrap(),
            };
            assert_ne!(len, 0, "the switch hung up");
            self.input.extend_from_slice(&more[..len]);
        }
    }

    /// Makes the switch send all frames by this port, before this returns.
    fn forward_to(&mut self, port: PortNo) {
        self.forward(Match::any(), port);
    }

    /// Makes the switch send matching frames by this port, before this returns.
    fn forward(&mut self, match_: Match<'static>, port: PortNo) {
        let max_len = CONTROLLER_NO_BUFFER;
        let instructions = [Instruction::apply(vec![Action::Output { port, max_len }])];
        self.say(&Message::FlowMod(FlowMod {
            match_,
            instructions: List::from(&instructions),
            ..FlowMod::default()
        }));
        self.say(&Message::BarrierRequest);
        self.hear(|message| matches!(message, Message::BarrierReply).then_some(()));
    }
}

/// A port that keeps frames during the first flushes, like one whose socket is full.
struct Stubborn {
    port: MemoryPort,
    kept: Vec<Vec<u8>>,
    refusals: usize,
}

impl PortIo for Stubborn {
    fn name(&self) -> &str {
        self.port.name()
    }

    fn hw_addr(&self) -> MacAddr {
        self.port.hw_addr()
    }

    fn is_up(&self) -> bool {
        self.port.is_up()
    }

    fn speed_kbps(&self) -> u32 {
        0
    }

    fn receive(&mut self, max: usize, handle: &mut dyn FnMut(&[u8])) -> io::Result<usize> {
        self.port.receive(max, handle)
    }

    fn send(&mut self, frame: &[u8]) -> bool {
        self.kept.push(frame.to_vec());
        true
    }

    fn flush(&mut self) {
        if self.refusals > 0 {
            self.refusals -= 1;
            return;
        }
        for frame in self.kept.drain(..) {
            self.port.send(&frame);
        }
        self.port.flush();
    }

    fn has_unsent(&self) -> bool {
        !self.kept.is_empty()
    }

    fn as_fd(&self) -> Option<rustix::fd::BorrowedFd<'_>> {
        self.port.as_fd()
    }
}

#[test]
fn frames_kept_by_a_port_leave_without_other_traffic() {
    for threads in 0..=2 {
        let (mut switch, mut hosts) = with_hosts(crate::FailMode::Standalone, 1);
        let mac = MacAddr::new([2, 0, 0, 0, 1, 2]);
        let (port, mut host) = memory::pair(("port", mac), ("host", mac), 4096);
        let stubborn = Stubborn {
            port,
            kept: Vec::new(),
            refusals: 3,
        };
        switch.add_port(PortNo(2), Box::new(stubborn), Duration::ZERO);
        let (_running, _) = start_with(switch, &[], threads);
        hosts[0].send(&frame(100, 7));
        hosts[0].flush();
        assert_eq!(receive(&mut host, 1), [frame(100, 7)]);
    }
}

/// Returns the marks of frames that this host receives when another sends `count` frames, through a switch that floods or has
/// learnt the host's port.
fn passed(from: &mut AfPacketPort, to: &mut AfPacketPort, count: u8) -> Vec<u8> {
    for mark in 0..count {
        assert!(from.send(&frame(60, mark)));
        from.flush();
    }
    let frames = receive(to, count.into());
    frames.iter().map(|frame| frame[20]).collect()
}

#[test]
fn frames_for_other_threads_interfaces_stay_in_order() {
    use crate::port::testing::{eventually, in_namespace, ip, veth};
    in_namespace(|| {
        for (kind, threads) in [("afpacket", 2), ("afxdp", 1), ("afxdp", 2)] {
            let mut switch = switch(crate::FailMode::Standalone);
            let mut memory = FrameMemory::for_ports(2);
            let mut hosts = Vec::new();
            for number in 1..=2 {
                veth(&format!("p{number}"), &format!("h{number}"));
                let spec: PortSpec = format!("{kind}:p{number}").parse().unwrap();
                let port = spec.open_sharing(&mut memory).unwrap();
                eventually(|| port.is_up());
                switch.add_port(PortNo(number), port, Duration::ZERO);
                hosts.push(AfPacketPort::open(&format!("h{number}")).unwrap());
            }
            let (running, _) = start_with(switch, &[], threads);
            let [a, b] = &mut hosts[..] else {
                panic!("two hosts");
            };
            for _ in 0..5 {
                assert!(
                    passed(a, b, 200).into_iter().eq(0..200),
                    "{kind}, {threads}"
                );
                assert!(
                    passed(b, a, 200).into_iter().eq(0..200),
                    "{kind}, {threads}"
                );
            }
            drop(running);
            drop(hosts);
            (1..=2).for_each(|number| ip(&format!("link delete p{number}")));
        }
    });
}

#[test]
fn a_cut_link_is_left_for_the_other_bucket() {
    use crate::port::testing::{eventually, in_namespace, ip, veth};
    in_namespace(|| {
        for threads in [0, 2] {
            let mut switch = switch(crate::FailMode::Secure);
            let mut hosts = Vec::new();
            for number in 1..=3 {
                veth(&format!("p{number}"), &format!("h{number}"));
                let open = |name: String| AfPacketPort::open(&name).unwrap();
                let port = Box::new(open(format!("p{number}")));
                eventually(|| port.is_up());
                switch.add_port(PortNo(number), port, Duration::ZERO);
                hosts.push(open(format!("h{number}")));
            }
            let file = tempfile::tempdir().unwrap();
            let path = format!("punix:{}", file.path().join("of.sock").display());
            let (running, _) = start_with(switch, &[path.parse().unwrap()], threads);
            let stream = UnixStream::connect(file.path().join("of.sock")).unwrap();
            let mut controller = Controller::on(stream);
            let failover = "group_id=1,type=fast_failover,bucket=watch_port:2,output:2,bucket=watch_port:3,output:3";
            let group = GroupMod::parse(GroupModCommand::Add, failover).unwrap();
            controller.say(&Message::GroupMod(group));
            let entry = FlowMod::parse(FlowModCommand::Add, "in_port=1,actions=group:1");
            controller.say(&Message::FlowMod(entry.unwrap()));
            controller.say(&Message::BarrierRequest);
            controller.hear(|message| matches!(message, Message::BarrierReply).then_some(()));
            hosts[0].send(&frame(100, 1));
            hosts[0].flush();
            assert_eq!(receive(&mut hosts[1], 1), [frame(100, 1)]);
            ip("link set h2 down");
            let mut came = false;
            eventually(|| {
                hosts[0].send(&frame(100, 2));
                hosts[0].flush();
                hosts[2]
                    .receive(32, &mut |got| came |= got == frame(100, 2))
                    .unwrap();
                came
            });
            drop(running);
            drop(hosts);
            (1..=3).for_each(|number| ip(&format!("link delete p{number}")));
        }
    });
}

#[test]
fn long_replies_arrive_whole() {
    const ENTRIES: u64 = 2000;
    let (_running, _hosts, mut controller) = threads::two_threads();
    for number in 0..ENTRIES {
        controller.say(&Message::FlowMod(FlowMod {
            match_: Match::any().with_exact(OxmField::EthDst, 0x0200_0000_0000 + number),
            ..FlowMod::default()
        }));
    }
    for _ in 0..2 {
        controller.say(&Message::MultipartRequest(MultipartRequest {
            flags: MultipartFlags::empty(),
            body: MultipartRequestBody::Flow(FlowStatsRequest::default()),
        }));
    }
    controller.say(&Message::BarrierRequest);
    let told = std::cell::Cell::new(0);
    controller.hear(|message| {
        if let Message::MultipartReply(reply) = message {
            if let MultipartReplyBody::Flow(rows) = &reply.body {
                told.set(told.get() + rows.iter().count() as u64);
            }
        }
        matches!(message, Message::BarrierReply).then_some(())
    });
    assert_eq!(told.get(), 2 * ENTRIES);
}

#[test]
fn a_barrier_is_answered_after_a_long_delete() {
    const ENTRIES: u64 = 2000;
    for threads in 0..=2 {
        let (switch, _hosts) = with_hosts(crate::FailMode::Secure, 2);
        let listen = ["ptcp:0:127.0.0.1".parse().unwrap()];
        let (_running, addresses) = start_with(switch, &listen, threads);
        let mut controller = Controller::connect(&addresses[0]);
        for number in 0..ENTRIES {
            controller.say(&Message::FlowMod(FlowMod {
                match_: Match::any().with_exact(OxmField::EthDst, 0x0200_0000_0000 + number),
                flags: FlowModFlags::SEND_FLOW_REM,
                ..FlowMod::default()
            }));
        }
        controller.say(&Message::FlowMod(FlowMod {
            command: FlowModCommand::Delete,
            ..FlowMod::default()
        }));
        controller.say(&Message::BarrierRequest);
        let removed = std::cell::Cell::new(0);
        controller.hear(|message| match message {
            Message::FlowRemoved(_) => {
                removed.set(removed.get() + 1);
                None
            }
            Message::BarrierReply => Some(()),
            _ => None,
        });
        assert_eq!(removed.get(), ENTRIES);
    }
}

#[test]
fn errors_name_what_was_expected() {
    let refuse = |address: &str| {
        let address = address.parse().unwrap();
        let switch = switch(crate::FailMode::Secure);
        Runner::new(switch, &[address]).err().unwrap().to_string()
    };
    let held = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = held.local_addr().unwrap().port();
    let in_use = refuse(&format!("ptcp:{port}:127.0.0.1"));
    assert!(in_use.contains("the address is in use"), "{in_use}");
    assert!(refuse("tcp:no.such.host.invalid").contains("cannot find the controller"));
}
