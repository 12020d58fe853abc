//! The controller under test, and one to compare it with.

use tempfile::TempDir;

use crate::namespace::Namespace;
use crate::process::{DEADLINE, Daemon, Signal, eventually, run};

/// The listening address of controllers; each has its own namespace.
pub const LISTEN: &str = "ptcp:6653:127.0.0.1";
/// The address that switches connect to.
pub const TARGET: &str = "tcp:127.0.0.1:6653";
/// The listening address with TLS.
const TLS_LISTEN: &str = "pssl:6653:127.0.0.1";
pub const TLS_TARGET: &str = "ssl:127.0.0.1:6653";

/// The Python that has os-ken.
pub const PYTHON: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.venv/bin/python");
const OS_KEN_SWITCH: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../bench/src/os_ken_learning_switch.py"
);
const OS_KEN_MASTER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/peers/os_ken_master.py");

/// A running controller; ends when dropped.
pub struct Controller {
    daemon: Daemon,
    _folder: TempDir,
}

impl Controller {
    /// Starts `urtica run l2`.
    pub fn urtica_l2(room: &Namespace) -> Self {
        Self::urtica(room, "l2")
    }

    /// Starts our learning switch, answering in the kernel.
    pub fn urtica_l2_in_the_kernel(room: &Namespace) -> Self {
        let controller = Self::urtica_with(room, "l2", &["--offload", "kernel"]);
        eventually("the kernel half is active", DEADLINE, || {
            controller
                .daemon
                .log()
                .contains("the kernel half is active")
        });
        controller
    }

    /// Starts our learning switch, reading from rings.
    pub fn urtica_l2_behind_rings(room: &Namespace) -> Self {
        Self::urtica_with(room, "l2", &["--offload", "ring"])
    }

    /// Starts `urtica run` with these programs.
    pub fn urtica(room: &Namespace, apps: &str) -> Self {
        Self::urtica_with(room, apps, &[])
    }

    /// Starts our controller with these programs and options.
    pub fn urtica_with(room: &Namespace, apps: &str, options: &[&str]) -> Self {
        let arguments = [&["run", apps, "--listen", LISTEN], options].concat();
        Self::start(room, env!("CARGO_BIN_EXE_urtica"), &arguments)
    }

    /// Starts our controller at another port.
    pub fn urtica_at(room: &Namespace, port: u16, apps: &str, options: &[&str]) -> Self {
        let listen = format!("ptcp:{port}:127.0.0.1");
        let arguments = [&["run", apps, "--listen", &listen], options].concat();
        Self::start_at(room, port, env!("CARGO_BIN_EXE_urtica"), &arguments)
    }

    /// Starts Open vSwitch's learning switch: if a test fails under it, too, the test bed is at fault.
    pub fn ovs_testcontroller(room: &Namespace) -> Self {
        Self::start(room, "ovs-testcontroller", &[LISTEN])
    }

    /// Starts `urtica run l2` over TLS, with these options.
    pub fn urtica_tls(room: &Namespace, options: &[&str]) -> Self {
        let arguments = [&["run", "l2", "--listen", TLS_LISTEN], options].concat();
        Self::start(room, env!("CARGO_BIN_EXE_urtica"), &arguments)
    }

    /// Starts Open vSwitch's learning switch over TLS, with these files.
    pub fn ovs_testcontroller_tls(room: &Namespace, files: &[&str]) -> Self {
        Self::start(room, "ovs-testcontroller", &[&[TLS_LISTEN], files].concat())
    }

    /// Starts a learning switch on os-ken, which answers like its former simple_switch.
    pub fn os_ken(room: &Namespace) -> Self {
        Self::start(room, PYTHON, &[OS_KEN_SWITCH, "6653"])
    }

    /// Starts a learning switch on os-ken at another port, which becomes the master of each 1.3 switch by a role request.
    pub fn os_ken_master_at(room: &Namespace, port: u16) -> Self {
        Self::start_at(room, port, PYTHON, &[OS_KEN_MASTER, &port.to_string()])
    }

    fn start(room: &Namespace, program: &str, arguments: &[&str]) -> Self {
        Self::start_at(room, 6653, program, arguments)
    }

    fn start_at(room: &Namespace, port: u16, program: &str, arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let mut command = room.command(program);
        command.args(arguments).env("OVS_RUNDIR", folder.path());
        let daemon = Daemon::start(&mut command, &folder.path().join("controller.out"));
        let mut controller = Self {
            daemon,
            _folder: folder,
        };
        eventually(&format!("{program} listens"), DEADLINE, || {
            assert!(controller.daemon.is_running(), "{program} ended at once");
            is_listening(room, port)
        });
        controller
    }

    /// Returns its log so far.
    pub fn log(&self) -> String {
        self.daemon.log()
    }

    /// Ends it by Ctrl-C, like an operator.
    ///
    /// # Panics
    /// If it does not end in time or does not end with status 0.
    pub fn interrupt(self) {
        self.interrupt_and_read();
    }

    /// Like `interrupt`, for a controller that answers in the kernel.
    ///
    /// # Panics
    /// As `interrupt`, or if it has answered nothing in the kernel.
    pub fn interrupt_offloaded(self) {
        self.interrupt_and_find("answered_in_kernel=");
    }

    /// Like `interrupt`, for a controller that reads from rings.
    ///
    /// # Panics
    /// As `interrupt`, or if it has received nothing through rings.
    pub fn interrupt_behind_rings(self) {
        self.interrupt_and_find("through_rings=");
    }

    /// Ends it, and checks that this counter is not 0.
    fn interrupt_and_find(self, counter: &str) {
        let log = self.interrupt_and_read();
        let none = format!("{counter}0");
        let mut lines = log.lines();
        let found = lines.any(|line| line.contains(counter) && !line.contains(&none));
        assert!(found, "expected {counter} not to be 0:\n{log}");
    }

    /// Ends it by this signal, with any status.
    pub fn end_by(&mut self, signal: Signal) {
        let ended = self.daemon.stop(signal);
        assert!(ended.is_some(), "the controller ends after {signal:?}");
    }

    /// Ends it, and returns its log.
    fn interrupt_and_read(mut self) -> String {
        let status = self
            .daemon
            .stop(Signal::INT)
            .expect("the controller ends after SIGINT");
        assert!(
            status.success(),
            "the controller ended with {status} after SIGINT\n{}",
            self.daemon.log()
        );
        self.daemon.log()
    }
}

fn is_listening(room: &Namespace, port: u16) -> bool {
    let listening = run(room.command("ss").args(["-H", "-l", "-t", "-n"]));
    listening.contains(&format!("127.0.0.1:{port}"))
}
