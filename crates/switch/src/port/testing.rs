//! Isolated network namespaces and frames, for the tests of back ends.

use super::PortIo;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const DEADLINE: Duration = Duration::from_secs(60);

/// Runs `test` on a thread in its own network namespace, which is removed when the thread ends. Without root, prints that
/// the test is skipped, or fails if `CI=true` is set.
pub fn in_namespace(test: impl FnOnce() + Send + 'static) {
    if !rustix::process::geteuid().is_root() {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "needs root");
        // Not println!, which cargo hides for tests that pass.
        let _ = writeln!(std::io::stderr(), "skipped: needs root");
        return;
    }
    let run = move || {
        // SAFETY: the call has no pointers, and changes only this thread's network namespace.
        assert_eq!(unsafe { libc::unshare(libc::CLONE_NEWNET) }, 0);
        test();
    };
    if let Err(panic) = std::thread::spawn(run).join() {
        std::panic::resume_unwind(panic);
    }
}

/// Runs `ip` with these arguments in the thread's namespace.
pub fn ip(arguments: &str) {
    let status = Command::new("ip").args(arguments.split(' ')).status();
    assert!(status.unwrap().success(), "ip {arguments}");
}

/// Creates a link between two new interfaces, both up, which sends no frames of IPv6 automatically.
pub fn veth(name: &str, peer: &str) {
    ip(&format!("link add {name} type veth peer name {peer}"));
    for end in [name, peer] {
        ip(&format!("link set {end} addrgenmode none"));
        ip(&format!("link set {end} up"));
    }
}

/// Creates a frame of `len` bytes of an unknown protocol, marked by a byte.
pub fn frame(len: usize, mark: u8) -> Vec<u8> {
    let mut frame = vec![mark; len];
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5]);
    frame
}

/// Number of flows that [`send_flows`] sends.
pub const FLOWS: u16 = 64;

/// Sends a datagram of each of [`FLOWS`] flows, from one port to the ports 1, 2, …; `number` distinguishes it from others of
/// its flow.
pub fn send_flows(host: &mut dyn PortIo, number: u16) {
    for flow in 0..FLOWS {
        assert!(host.send(&datagram(flow, number)));
    }
    host.flush();
}

/// An IPv4 packet with UDP, from 10.0.0.1 to 10.0.0.2.
fn datagram(flow: u16, number: u16) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
    frame.extend([0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0]);
    frame.extend([10, 0, 0, 1, 10, 0, 0, 2]);
    frame.extend([0x30, 0x39]);
    frame.extend((flow + 1).to_be_bytes());
    frame.extend([0, 26, 0, 0]);
    frame.extend(number.to_be_bytes());
    frame.resize(60, 0);
    frame
}

/// Returns the numbers of datagrams by flow, in order of arrival.
pub fn by_flow(frames: &[Vec<u8>]) -> BTreeMap<u16, Vec<u16>> {
    let mut flows = BTreeMap::<_, Vec<_>>::new();
    for frame in frames {
        let word = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
        flows.entry(word(36) - 1).or_default().push(word(42));
    }
    flows
}

/// Polls all ports round-robin until `count` frames have arrived in total, and then once more for surplus frames. Returns
/// each port's frames.
pub fn receive_from_all(ports: &mut [Box<dyn PortIo>], count: usize) -> Vec<Vec<Vec<u8>>> {
    let start = Instant::now();
    let mut frames = vec![Vec::new(); ports.len()];
    let mut are_all = false;
    while !are_all {
        let sum: usize = frames.iter().map(Vec::len).sum();
        assert!(start.elapsed() < DEADLINE, "{sum} of {count} frames came");
        are_all = sum >= count;
        for (port, frames) in ports.iter_mut().zip(&mut frames) {
            port.receive(32, &mut |frame| frames.push(frame.to_vec()))
                .unwrap();
        }
    }
    frames
}

/// Polls the port until it has received `count` frames.
pub fn receive(port: &mut dyn PortIo, count: usize) -> Vec<Vec<u8>> {
    let start = Instant::now();
    let mut frames = Vec::new();
    while frames.len() < count {
        assert!(
            start.elapsed() < DEADLINE,
            "{} of {count} frames came",
            frames.len()
        );
        port.receive(32, &mut |frame| frames.push(frame.to_vec()))
            .unwrap();
    }
    frames
}

/// Waits until `condition` holds.
pub fn eventually(mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(
            start.elapsed() < DEADLINE,
            "the condition did not come true"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Returns whether a port whose interface was deleted refuses or loses frames, and causes no wake-ups.
pub fn is_quiet_without_interface(port: &mut dyn PortIo) -> bool {
    ip(&format!("link delete {}", port.name()));
    for _ in 0..5000 {
        port.send(&frame(60, 1));
        port.flush();
    }
    let received = port.receive(32, &mut |_| {});
    !port.is_up() && received.is_ok_and(|count| count == 0) && !is_readable(port, 0)
}

/// Returns whether the port's descriptor becomes readable within the timeout.
pub fn is_readable(port: &dyn PortIo, timeout_ms: u32) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let fd = port.as_fd().unwrap();
    let timeout = Timespec {
        tv_sec: 0,
        tv_nsec: i64::from(timeout_ms) * 1_000_000,
    };
    poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&timeout)).unwrap() == 1
}

/// Starts `run` as a host: in a thread with its own network namespace, with the address 10.0.0.`number` on a link whose
/// other end is the interface `p<number>` of the caller's namespace.
fn start_host<T: Send + 'static>(
    number: u8,
    run: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    let (tell_thread, thread) = mpsc::channel();
    let (tell_plugged, plugged) = mpsc::channel::<()>();
    let host = std::thread::spawn(move || {
        // SAFETY: the call has no pointers, and changes only this thread's network namespace.
        assert_eq!(unsafe { libc::unshare(libc::CLONE_NEWNET) }, 0);
        tell_thread.send(rustix::thread::gettid()).unwrap();
        plugged.recv().unwrap();
        ip(&format!("address add 10.0.0.{number}/24 dev h{number}"));
        ip(&format!("link set h{number} up"));
        run()
    });
    let thread = thread.recv().unwrap().as_raw_nonzero();
    veth(&format!("p{number}"), &format!("h{number}"));
    ip(&format!("link set h{number} netns {thread}"));
    tell_plugged.send(()).unwrap();
    host
}

/// Sends some megabytes of TCP from one host to another through two ports opened by `open`, between which frames are
/// forwarded.
pub fn tcp_passes(open: impl Fn(&str) -> Box<dyn PortIo>) {
    const BYTES: usize = 4 << 20;
    let receiver = start_host(2, || {
        let (mut stream, _) = TcpListener::bind("10.0.0.2:5000")
            .unwrap()
            .accept()
            .unwrap();
        let mut received = Vec::new();
        stream.read_to_end(&mut received).unwrap();
        received
    });
    let sender = start_host(1, || {
        let start = Instant::now();
        let mut stream = loop {
            match TcpStream::connect("10.0.0.2:5000") {
                Ok(stream) => break stream,
                Err(error) => assert!(start.elapsed() < DEADLINE, "no connection: {error}"),
            }
        };
        let sent: Vec<u8> = (0..BYTES).map(|at| (at / 3) as u8).collect();
        stream.write_all(&sent).unwrap();
        sent
    });
    let (mut a, mut b) = (open("p1"), open("p2"));
    let start = Instant::now();
    while !receiver.is_finished() {
        assert!(start.elapsed() < 4 * DEADLINE, "the stream did not pass");
        exchange(&mut *a, &mut *b);
        exchange(&mut *b, &mut *a);
    }
    assert!(
        sender.join().unwrap() == receiver.join().unwrap(),
        "another stream came out"
    );
}

/// Forwards the frames that `from` receives to `to`, and asserts that they fit the MTU.
fn exchange(from: &mut dyn PortIo, to: &mut dyn PortIo) {
    from.receive(32, &mut |frame| {
        assert!(frame.len() <= 1514, "a frame of {} bytes", frame.len());
        to.send(frame);
    })
    .unwrap();
    to.flush();
}
