//! The machine on which a reader follows a guide: Open vSwitch's bridges, two hosts that communicate, interfaces, a second
//! machine, and private `/etc`, `/run` and `/var/lib`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Output;
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::blocks::{Block, Step, is_shown};
use crate::namespace::{Host, Namespace};
use crate::openvswitch::OpenVswitch;
use crate::process::{DEADLINE, Daemon, Signal, eventually, run};

const URTICA: &str = env!("CARGO_BIN_EXE_urtica");
const VENV: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.venv/bin");

/// Subcommands of urtica that run until they are stopped; `switch` with ports does, too.
const PROGRAMS: [&str; 3] = ["run", "capture", "bench limit"];
/// Another program that runs until it is stopped.
const WEB_SERVER: &str = "python3 -m http.server";
/// The interval of retries until a command's output matches the guide, since switches take time to connect and entries to
/// expire.
const AGAIN: Duration = Duration::from_millis(200);
/// The time limit of a command: the longest one waits for ten seconds of a network's time.
const COMMAND_SECONDS: &str = "120";

/// The machine.
pub struct Machine<'room> {
    switch: OpenVswitch<'room>,
    other: &'room Namespace,
    folder: TempDir,
    programs: Vec<Program>,
    _talk: Daemon,
}

/// A running program, and the line that started it.
struct Program {
    daemon: Daemon,
    command: String,
}

impl<'room> Machine<'room> {
    /// Creates a machine with the bridges `br0`, with two hosts, and `s1`.
    pub fn new(room: &'room Namespace, other: &'room Namespace, hosts: &[Host; 2]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        symlink(URTICA, folder.path().join("urtica")).expect("a link can be made");
        symlink(URTICA, folder.path().join("urtica-new")).expect("a link can be made");
        let switch = OpenVswitch::start(room);
        let ports = hosts.each_ref().map(|host| &host.switch_port[..]);
        for (bridge, ports) in [("br0", &ports[..]), ("s1", &[])] {
            switch.add_bridge(bridge, "OpenFlow13", "tcp:127.0.0.1:6653", ports);
        }
        let mut ping = hosts[0].command("ping");
        ping.args(["-n", "-i", "0.2", &hosts[1].address]);
        Self {
            _talk: Daemon::start(&mut ping, &folder.path().join("ping.log")),
            switch,
            other,
            folder,
            programs: Vec::new(),
        }
    }

    /// Writes a file that the guide assumes.
    pub fn write(&self, path: &str, text: &str) {
        let path = self.folder.path().join(path);
        fs::write(path, text).expect("the folder can be written to");
    }

    /// Runs a command that the guide assumes.
    pub fn enter(&mut self, command: &str) {
        let step = Step {
            command: command.into(),
            shown: String::new(),
        };
        self.follow(&Block::of(step));
    }

    /// Links a folder of this checkout that commands of the guide read.
    pub fn link(&self, name: &str) {
        let target = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(name);
        symlink(target, self.folder.path().join(name)).expect("a link can be made");
    }

    /// Executes the commands of a block.
    ///
    /// # Panics
    /// If a command ends with an unexpected status, or its output keeps differing from the guide.
    pub fn follow(&mut self, block: &Block) {
        let mut folder = self.folder.path().to_path_buf();
        for step in &block.steps {
            match step.command.strip_prefix("cd ") {
                Some(target) => folder = folder.join(target),
                None if runs_until_stopped(&step.command) && !step.shown.contains("urtica: ") => {
                    self.start(step, &folder)
                }
                None => self.run(step, block, &folder),
            }
        }
    }

    /// Starts a program, as in another terminal, and waits until it is ready. First interrupts a running program of its kind by
    /// Ctrl-C, unless the guide runs that on another machine or hands its connections over.
    fn start(&mut self, step: &Step, folder: &Path) {
        let (command, _) = step.command.split_once(" &").unwrap_or((&step.command, ""));
        let on_another = command.contains("# on another");
        if !on_another && !command.contains("--hold") {
            self.interrupt(kind(command));
        }
        let script = self.script(&format!("exec {command}"), folder);
        let mut bash = match on_another {
            true => self.other.command("bash"),
            false => self.switch.command("bash"),
        };
        let log = self
            .folder
            .path()
            .join(format!("program-{}", self.programs.len()));
        let mut daemon = Daemon::start(bash.args(["-c", &script]), &log);
        eventually(&format!("'{command}' is ready"), DEADLINE, || {
            assert!(daemon.is_running(), "it ended: {}", daemon.log());
            daemon.log().contains("switching") || self.listens(&daemon)
        });
        self.programs.push(Program {
            daemon,
            command: command.into(),
        });
    }

    fn listens(&self, daemon: &Daemon) -> bool {
        let listening =
            |room: &Namespace| run(room.command("ss").args(["-H", "-l", "-t", "-n", "-p"]));
        let process = format!("pid={},", daemon.id());
        listening(self.switch.room()).contains(&process) || listening(self.other).contains(&process)
    }

    fn interrupt(&mut self, kind: &str) {
        let of_kind = |program: &&mut Program| self::kind(&program.command) == kind;
        for program in self.programs.iter_mut().filter(of_kind) {
            program.daemon.stop(Signal::INT);
        }
    }

    /// Runs a command to its end, and again until its output matches the guide, since switches take time to connect and
    /// entries to appear.
    fn run(&mut self, step: &Step, block: &Block, folder: &Path) {
        if runs_until_stopped(&step.command) {
            self.interrupt(kind(&step.command));
        }
        let command = match self.programs.last() {
            Some(last) => step.command.replace("PID", &last.daemon.id().to_string()),
            None => step.command.clone(),
        };
        let script = self.script(&command, folder);
        let start = Instant::now();
        loop {
            let mut bash = self.switch.command("timeout");
            let output = bash.args([COMMAND_SECONDS, "bash", "-c", &script]).output();
            let output = output.expect("a shell starts");
            let printed = printed(&output);
            let is_right = step.shown.is_empty() || block.varies || is_shown(&printed, &step.shown);
            if output.status.code() == Some(block.status) && is_right {
                return self.wait_for_controllers(&command);
            }
            assert!(
                start.elapsed() < DEADLINE,
                "line {}: '{command}' ended with {} and printed:\n{printed}\nexpected status {} and:\n{}\n{}",
                block.line,
                output.status,
                block.status,
                step.shown,
                self.logs()
            );
            thread::sleep(AGAIN);
        }
    }

    /// Waits until the bridge is connected to each controller, as a reader does after `ovs-vsctl set-controller`.
    fn wait_for_controllers(&self, command: &str) {
        let targets = command
            .split(' ')
            .filter(|word| word.starts_with("tcp:") || word.starts_with("ssl:"));
        for target in targets.filter(|_| command.contains("set-controller")) {
            let condition = format!("target=\"{target}\"");
            eventually(&format!("{target} is connected"), DEADLINE, || {
                let mut find = self.switch.command("ovs-vsctl");
                let find = find.args([
                    "--bare",
                    "--columns=is_connected",
                    "find",
                    "controller",
                    &condition,
                ]);
                let found = run(find);
                found.contains("true")
            });
        }
    }

    /// Returns the shell's script. Its path has this program first, then the programs that `tools/setup` installs.
    fn script(&self, command: &str, folder: &Path) -> String {
        let home = self.folder.path().display();
        format!(
            "export HOME={home} PATH={home}:{VENV}:$PATH; cd {} || exit; {command}",
            folder.display()
        )
    }

    fn logs(&self) -> String {
        let logs = self
            .programs
            .iter()
            .map(|program| format!("--- {}\n{}", program.command, program.daemon.log()));
        logs.collect()
    }
}

/// Returns `true` if a command runs until it is stopped, unless it cannot start.
fn runs_until_stopped(command: &str) -> bool {
    let is_switch = kind(command) == "switch"
        && !command.contains("switch ctl")
        && !command.contains("--explain");
    is_switch || PROGRAMS.contains(&kind(command)) || command.starts_with(WEB_SERVER)
}

/// Returns the subcommand of urtica; an empty string for other commands.
fn kind(command: &str) -> &str {
    let command = command
        .strip_prefix("./urtica-new ")
        .or(command.strip_prefix("urtica "));
    let words = command.unwrap_or_default();
    match words.starts_with("bench limit") {
        true => "bench limit",
        false => words.split(' ').next().unwrap_or_default(),
    }
}

fn printed(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}
