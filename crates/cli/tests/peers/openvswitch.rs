//! A test's own Open vSwitch: user-space datapath, private database, sockets and logs.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::namespace::Namespace;
use crate::process::{DEADLINE, Daemon, Signal, eventually, run};

/// The programs of Open vSwitch.
pub const TOOLS: &[&str] = &[
    "ip",
    "ovsdb-tool",
    "ovsdb-server",
    "ovs-vswitchd",
    "ovs-vsctl",
    "ovs-ofctl",
];

const SCHEMA: &str = "/usr/share/openvswitch/vswitch.ovsschema";

/// A running ovs-vswitchd with its database, inside a namespace. Both end when this is dropped.
pub struct OpenVswitch<'room> {
    room: &'room Namespace,
    // Declared before the database and the folder, since fields are dropped in this order.
    vswitchd: Daemon,
    _database: Daemon,
    folder: TempDir,
}

impl<'room> OpenVswitch<'room> {
    /// Starts it in `room` with an empty configuration.
    pub fn start(room: &'room Namespace) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let file = |name: &str| folder.path().join(name);
        run(Command::new("ovsdb-tool")
            .arg("create")
            .arg(file("conf.db"))
            .arg(SCHEMA));
        let remote = format!("--remote=punix:{}", file("db.sock").display());
        let database = Daemon::start(
            in_folder(
                room.command("ovsdb-server")
                    .arg(file("conf.db"))
                    .args([&remote, "--pidfile"]),
                folder.path(),
            ),
            &file("ovsdb-server.out"),
        );
        // Its socket exists before it listens.
        eventually("ovsdb-server listens", DEADLINE, || {
            UnixStream::connect(file("db.sock")).is_ok()
        });
        let vswitchd = Daemon::start(
            in_folder(room.command("ovs-vswitchd").arg("--pidfile"), folder.path()),
            &file("ovs-vswitchd.out"),
        );
        let switch = Self {
            room,
            vswitchd,
            _database: database,
            folder,
        };
        run(switch
            .command("ovs-vsctl")
            .args(["--timeout=120", "--no-wait", "init"]));
        switch
    }

    /// Returns the namespace that it runs in.
    pub fn room(&self) -> &'room Namespace {
        self.room
    }

    /// Returns a command whose environment makes it find only this Open vSwitch.
    pub fn command(&self, program: &str) -> Command {
        let mut command = self.room.command(program);
        in_folder(&mut command, self.folder.path());
        command
    }

    /// Adds a bridge that speaks `protocol` (`OpenFlow10`, `OpenFlow13`) with the controller at
    /// `target`, and has the devices `ports` as its ports 1, 2, ….
    pub fn add_bridge(&self, name: &str, protocol: &str, target: &str, ports: &[&str]) {
        let mut command = self.command("ovs-vsctl");
        command.args([
            "--timeout=120",
            "add-br",
            name,
            "--",
            "set",
            "bridge",
            name,
            "datapath_type=netdev",
        ]);
        command.args(["fail_mode=secure", &format!("protocols={protocol}")]);
        for port in ports {
            command.args(["--", "add-port", name, port]);
        }
        command.args(["--", "set-controller", name, target]);
        command.args([
            "--",
            "set",
            "controller",
            name,
            "connection_mode=out-of-band",
        ]);
        run(&mut command);
    }

    /// Stops the switch until [`OpenVswitch::resume`].
    pub fn pause(&self) {
        self.vswitchd.signal(Signal::STOP);
    }

    /// Continues the switch.
    pub fn resume(&self) {
        self.vswitchd.signal(Signal::CONT);
    }

    /// Waits until every bridge has its controller.
    pub fn wait_connected(&self) {
        eventually(
            "all bridges are connected to their controllers",
            DEADLINE,
            || {
                let states = run(self.command("ovs-vsctl").args([
                    "--bare",
                    "--columns=is_connected",
                    "list",
                    "controller",
                ]));
                states.contains("true") && !states.contains("false")
            },
        );
    }

    /// Returns the path of a file in its folder, which also has its sockets.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns the number of a bridge's flow entries and their counters, as ovs-ofctl prints them.
    pub fn dump_aggregate(&self, bridge: &str, protocol: &str) -> String {
        run(self
            .command("ovs-ofctl")
            .args(["-O", protocol, "dump-aggregate", bridge]))
    }

    /// Returns the flow entries of a bridge in ovs-ofctl's format, one per line.
    pub fn dump_flows(&self, bridge: &str, protocol: &str) -> String {
        run(self
            .command("ovs-ofctl")
            .args(["-O", protocol, "dump-flows", bridge]))
    }
}

/// Makes Open vSwitch's programs use only this folder.
fn in_folder<'command>(command: &'command mut Command, folder: &Path) -> &'command mut Command {
    command.envs(["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR"].map(|variable| (variable, folder)))
}
