//! The controller's process is stopped, or dies in the middle of a batch.

use crate::packets::Packet;
use crate::support::kernel;
use crate::switch::{Channel, PATIENCE, headers, join, offloaded};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Instant;
use urtica_offload::Mode;
use urtica_wire::Version;

/// In a process with this variable, [`controller_in_a_process_of_its_own`] runs a controller.
const CHILD: &str = "URTICA_TEST_CONTROLLER";

/// A controller in another process, which is killed when this is dropped.
struct Other {
    child: Child,
    port: u16,
}

impl Other {
    fn start() -> Self {
        let test = std::env::current_exe().expect("the test has a file");
        let mut child = Command::new(test)
            .args([
                "--exact",
                "dying::controller_in_a_process_of_its_own",
                "--nocapture",
            ])
            .env(CHILD, "1")
            .stdout(Stdio::piped())
            .spawn()
            .expect("the test can be run again");
        let lines = BufReader::new(child.stdout.as_mut().expect("it is piped")).lines();
        let port = lines
            .map_while(Result::ok)
            .find_map(|line| line.rsplit_once("listens at ")?.1.parse().ok())
            .expect("it says where it listens");
        Self { child, port }
    }

    fn connect(&self) -> TcpStream {
        let mut socket = TcpStream::connect(("127.0.0.1", self.port)).expect("it listens");
        socket.set_nodelay(true).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        join(&mut socket, Version::Of13, 1);
        socket
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).expect("it is running");
    }

    /// Waits until it does not run any more, since it was stopped.
    fn wait_until_stopped(&self) {
        let start = Instant::now();
        let path = format!("/proc/{}/stat", self.child.id());
        while !std::fs::read_to_string(&path).is_ok_and(|stat| stat.contains(") T ")) {
            assert!(start.elapsed() < PATIENCE, "it does not stop");
            std::thread::yield_now();
        }
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Not a test by itself.
#[test]
fn controller_in_a_process_of_its_own() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let Some(kernel) = kernel() else { return };
    let controller = offloaded(&kernel, Mode::Auto, 64);
    let address = controller.addresses()[0].to_string();
    let port = address.split(':').nth(1).expect("ptcp:PORT:HOST");
    println!("\nlistens at {port}");
    let _ = std::io::stdin().read(&mut [0]);
    std::thread::sleep(10 * PATIENCE);
}

fn packet() -> Vec<u8> {
    let mut packet = Vec::new();
    Packet::udp(1, 2).encode(Version::Of13, 1, &mut packet);
    packet
}

/// Asks once, and returns whether an answer comes in `patience`.
fn is_answered(socket: &mut TcpStream, patience: std::time::Duration) -> bool {
    socket.set_read_timeout(Some(patience)).unwrap();
    socket.write_all(&packet()).unwrap();
    let mut reply = [0; 200];
    match socket.read(&mut reply) {
        Ok(count) => headers(&reply[..count]).count() == 1,
        Err(_) => false,
    }
}

/// While the process is stopped, the kernel answers all that it is asked.
#[test]
fn a_stopped_controller_answers() {
    if kernel().is_none() {
        return;
    }
    let controller = Other::start();
    let mut attempts = 0..20;
    // At the moment at which it is stopped the program may be the owner, for the time of a tick; another attempt will do.
    while !answers_while_stopped(&controller) {
        attempts
            .next()
            .expect("now and then the kernel is the owner");
    }
}

fn answers_while_stopped(controller: &Other) -> bool {
    let mut socket = controller.connect();
    for _ in 0..100 {
        assert!(is_answered(&mut socket, PATIENCE));
    }
    controller.signal(Signal::STOP);
    controller.wait_until_stopped();
    let is_kernels = is_answered(&mut socket, std::time::Duration::from_secs(2));
    if is_kernels {
        for _ in 0..1000 {
            assert!(is_answered(&mut socket, PATIENCE), "an answer is lost");
        }
    }
    controller.signal(Signal::CONT);
    if is_kernels {
        assert!(is_answered(&mut socket, PATIENCE), "it does not go on");
    }
    is_kernels
}

/// What a switch has received of a controller that is killed is in order, and then its connection ends; another can start.
#[test]
fn a_killed_controller_leaves_nothing_out() {
    if kernel().is_none() {
        return;
    }
    for after in [1, 100_000] {
        let controller = Other::start();
        let mut socket = controller.connect();
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
            // It may end with a reset.
            let _ = socket.read_to_end(&mut rest);
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
