//! A controller in a separate process, which can be stopped and killed.

use crate::switch::PATIENCE;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Instant;
use urtica_controller::Running;

/// Set in a process in which a test must run a controller.
const CHILD: &str = "URTICA_TEST_CONTROLLER";

/// A controller in another process, which is killed when this is dropped.
pub struct Other {
    child: Child,
    port: u16,
}

impl Other {
    /// Runs this test in a separate process, where it calls [`serve`].
    pub fn start(name: &str) -> Self {
        let test = std::env::current_exe().expect("the test has a file");
        let mut child = Command::new(test)
            .args(["--exact", name, "--nocapture"])
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

    pub fn connect(&self) -> TcpStream {
        let socket = TcpStream::connect(("127.0.0.1", self.port)).expect("it listens");
        socket.set_nodelay(true).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket
    }

    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).expect("it is running");
    }

    /// Waits until the process no longer runs, because it was stopped.
    pub fn wait_until_stopped(&self) {
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

/// Returns whether this process must run a controller.
pub fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// Prints the controller's address, and waits until the process is killed.
pub fn serve(controller: &Running) {
    let address = controller.addresses()[0].to_string();
    let port = address.split(':').nth(1).expect("ptcp:PORT:HOST");
    println!("\nlistens at {port}");
    let _ = std::io::stdin().read(&mut [0]);
    std::thread::sleep(10 * PATIENCE);
}
