//! Network namespaces: the room in which a test happens, and the hosts that ping each other.

use std::fs;
use std::path::Path;
use std::process::{self, Command};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::process::{DEADLINE, eventually, run};

/// How long `ping` waits for answers.
const PATIENCE_SECONDS: &str = "60";

/// A network namespace with its loopback up and IPv6 off (its neighbour discovery would be noise).
/// Gone when dropped.
pub struct Namespace {
    name: String,
}

impl Namespace {
    /// Makes one under a name that nothing else on the machine has.
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "urtica-{}-{}",
            process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        run(Command::new("ip").args(["netns", "add", &name]));
        let namespace = Self { name };
        let quiet = "echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6 && ip link set lo up";
        run(namespace.command("sh").args(["-c", quiet]));
        namespace
    }

    /// A command that will run inside.
    pub fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", &self.name])
            .arg(program.as_ref());
        command
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = Command::new("ip")
            .args(["netns", "delete", &self.name])
            .status();
    }
}

/// A host: a namespace with one network card and an address in 10.0.0.0/24.
pub struct Host {
    namespace: Namespace,
    /// Its IPv4 address.
    pub address: String,
    /// The other end of its link, in the room.
    pub switch_port: String,
}

impl Host {
    /// Makes host `number` (1 to 254), whose link ends in `room` as the device `p<number>`.
    pub fn new(room: &Namespace, number: u8) -> Self {
        let host = Self {
            namespace: Namespace::new(),
            address: format!("10.0.0.{number}"),
            switch_port: format!("p{number}"),
        };
        let card = [
            "type",
            "veth",
            "peer",
            "name",
            "eth0",
            "netns",
            &host.namespace.name,
        ];
        run(room
            .command("ip")
            .args(["link", "add", &host.switch_port])
            .args(card));
        run(room
            .command("ip")
            .args(["link", "set", &host.switch_port, "up"]));
        let subnet = format!("{}/24", host.address);
        run(host
            .namespace
            .command("ip")
            .args(["address", "add", &subnet, "dev", "eth0"]));
        run(host
            .namespace
            .command("ip")
            .args(["link", "set", "eth0", "up"]));
        host
    }

    /// A command that will run on it.
    pub fn command(&self, program: impl AsRef<Path>) -> Command {
        self.namespace.command(program)
    }

    /// Pings `peer` until there are five answers. These may take as long as they like: with `-w`, ping goes on meanwhile, where with `-c`
    /// alone, after the last request, it waits for twice the longest time that an answer took so far.
    ///
    /// # Panics
    /// If any of the first five pings is lost.
    pub fn ping(&self, peer: &Host) {
        let output = run(self.namespace.command("ping").args([
            "-n",
            "-c",
            "5",
            "-i",
            "0.2",
            "-w",
            PATIENCE_SECONDS,
            &peer.address,
        ]));
        let is_answered = |number: u8| output.contains(&format!("icmp_seq={number} "));
        assert!(
            (1..=5).all(is_answered),
            "{} to {}: {output}",
            self.address,
            peer.address
        );
    }

    /// Pings `peer` until it answers: what controllers of others lose at first is theirs.
    ///
    /// # Panics
    /// If it never does.
    pub fn reach(&self, peer: &Host) {
        eventually(
            &format!("{} answers {}", peer.address, self.address),
            DEADLINE,
            || {
                let mut ping = self.namespace.command("ping");
                let ping = ping.args(["-n", "-c", "1", &peer.address]);
                ping.output().is_ok_and(|output| output.status.success())
            },
        );
    }
}

/// Tests that fail must not litter the machine.
#[test]
fn a_dropped_namespace_is_gone() {
    if !crate::require::root_and(&["ip"]) {
        return;
    }
    let namespace = Namespace::new();
    let path = format!("/run/netns/{}", namespace.name);
    assert!(fs::exists(&path).unwrap());
    drop(namespace);
    assert!(!fs::exists(&path).unwrap());
}
