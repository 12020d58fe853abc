//! Network namespaces: a test's room, and the hosts that ping each other.

use std::fs;
use std::path::Path;
use std::process::{self, Command};
use std::sync::atomic::{AtomicU32, Ordering};

use tempfile::TempDir;

use crate::process::{DEADLINE, Daemon, eventually, run};

/// The time that `ping` waits for replies.
const PATIENCE_SECONDS: &str = "60";

/// A network namespace with its loopback up and IPv6 off (its neighbour discovery would be noise). Removed when
/// dropped.
pub struct Namespace {
    name: String,
    files: Option<Files>,
}

/// Mounts in a namespace, invisible to the rest of the machine, as long as the process that holds the namespace lives.
struct Files {
    holder: Daemon,
    _folder: TempDir,
}

impl Namespace {
    /// Creates a namespace with a unique name.
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "urtica-{}-{}",
            process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        run(Command::new("ip").args(["netns", "add", &name]));
        let namespace = Self { name, files: None };
        let quiet = "echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6 && ip link set lo up";
        run(namespace.command("sh").args(["-c", quiet]));
        namespace
    }

    /// Creates a namespace with a copy of `/etc`, and empty `/run` and `/var/lib`, which are removed with it.
    pub fn with_own_files() -> Self {
        let mut namespace = Self::new();
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        // Keep the names of network namespaces.
        let script = "cp -a /etc etc; mount --bind etc /etc; mkdir -p /etc/urtica names
            mount --rbind /run/netns names; mount -t tmpfs tmpfs /run; mkdir /run/netns; mount --rbind names /run/netns
            mount -t tmpfs tmpfs /var/lib; mkdir /var/lib/openvswitch /var/lib/urtica-switch; echo ready; exec sleep infinity";
        let mut shell = namespace.command("sh");
        let shell = shell.args(["-ec", script]).current_dir(folder.path());
        let holder = Daemon::start(shell, &folder.path().join("holder.log"));
        eventually("the folders are mounted", DEADLINE, || {
            holder.log().contains("ready")
        });
        namespace.files = Some(Files {
            holder,
            _folder: folder,
        });
        namespace
    }

    /// Returns a command that will run inside.
    pub fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command;
        if let Some(files) = &self.files {
            command = Command::new("nsenter");
            let holder = files.holder.id().to_string();
            command.args(["--net", "--mount", "--target", &holder]);
        } else {
            command = Command::new("ip");
            command.args(["netns", "exec", &self.name]);
        }
        command.arg(program.as_ref());
        command
    }

    /// Returns its name, for commands that put an interface there.
    pub fn name(&self) -> &str {
        &self.name
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
    /// Creates host `number` (1 to 254) with a link that ends in `room` as the device `p<number>`.
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

    /// Returns a command that will run on the host.
    pub fn command(&self, program: impl AsRef<Path>) -> Command {
        self.namespace.command(program)
    }

    /// Pings `peer` until five replies have arrived, without a limit on their delay: with `-w`, ping keeps waiting; with
    /// only `-c`, after the last request, it waits for only twice the longest delay so far.
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

    /// Pings `peer` until it replies: other controllers may lose the first packets.
    ///
    /// # Panics
    /// If it never replies.
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

/// Failing tests must not litter the machine.
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
