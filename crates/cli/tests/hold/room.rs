//! A holder and its programs, and ways to disturb them under load.

use crate::manager::Manager;
use crate::switch::FakeSwitch;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use urtica_wire::Version;

pub const URTICA: &str = env!("CARGO_BIN_EXE_urtica");

/// The timeout of all waits, long enough for a busy machine.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// The timeout of a start, which is slower: the kernel verifies programs while many other processes run.
const START_DEADLINE: Duration = Duration::from_secs(300);

pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < DEADLINE, "expected: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// The environment of a test: its folder, its program, and its service manager if any.
#[derive(Clone)]
pub struct Room {
    pub folder: Rc<tempfile::TempDir>,
    /// The program to run, with its options.
    program: &'static [&'static str],
    /// The `urtica` executable.
    binary: PathBuf,
    /// The service manager that keeps the connections, if no holder does.
    manager: Option<Rc<Manager>>,
}

impl Room {
    /// Creates a room for a program that floods each packet.
    pub fn new() -> Self {
        Self::running(&["hub"])
    }

    /// Creates a room for a program with these options.
    pub fn running(program: &'static [&'static str]) -> Self {
        let folder = Rc::new(tempfile::tempdir().unwrap());
        Self {
            folder,
            program,
            binary: URTICA.into(),
            manager: None,
        }
    }

    /// Uses a service manager, which starts the programs and keeps the connections.
    pub fn managed(self) -> Self {
        let manager = Manager::start(&self.folder.path().join("notify.sock"));
        Self {
            manager: Some(Rc::new(manager)),
            ..self
        }
    }

    /// Changes the program that starts next.
    pub fn with(&mut self, program: &'static [&'static str]) {
        self.program = program;
    }

    /// Changes the executable of programs started from now on.
    pub fn with_binary(&mut self, binary: PathBuf) {
        self.binary = binary;
    }

    /// Returns the service manager that keeps the connections.
    pub fn manager(&self) -> &Manager {
        self.manager.as_deref().expect("a managed room")
    }

    /// Returns the path of the holder's socket.
    pub fn file(&self) -> PathBuf {
        self.folder.path().join("hold.sock")
    }

    /// Returns the number of descriptors that the service manager keeps.
    pub fn stored(&self) -> usize {
        self.manager.as_ref().map_or(0, |manager| manager.stored())
    }

    /// Returns `true` if its program answers in the kernel if possible.
    pub fn has_kernel_half(&self) -> bool {
        let offloads = ["kernel", "auto"];
        (self.program.iter()).any(|argument| offloads.contains(argument))
    }

    /// Starts the program, and waits until it listens.
    pub fn start(&self, name: &str, options: &[&str]) -> Program {
        let command = match &self.manager {
            Some(manager) => manager.command(&self.binary),
            None => Command::new(&self.binary),
        };
        let program = self.spawn(command, name, options);
        program.wait_until_it_listens();
        program
    }

    /// Starts a program that is killed before one of its threads makes its `nth` call of `calls`.
    pub fn start_traced(&self, name: &str, calls: &str, nth: usize) -> Program {
        self.start_traced_with(name, calls, nth, &[])
    }

    /// Like `start_traced`, with these options.
    pub fn start_traced_with(
        &self,
        name: &str,
        calls: &str,
        nth: usize,
        options: &[&str],
    ) -> Program {
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
        self.spawn(strace, name, options)
    }

    fn spawn(&self, mut program: Command, name: &str, options: &[&str]) -> Program {
        let log = self.folder.path().join(name);
        let output = File::create(&log).unwrap();
        let keeper = match &self.manager {
            Some(_) => "systemd".to_owned(),
            None => self.file().display().to_string(),
        };
        let child = program
            .arg("run")
            .args(self.program)
            .args(["--listen", "ptcp:0:127.0.0.1", "--shards", "2"])
            .arg(format!("--hold={keeper}"))
            .args(options)
            .env("RUST_LOG", "info,urtica_controller::connection=debug")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(output)
            .spawn()
            .unwrap();
        Program { child, log }
    }
}

/// A running program; killed when dropped.
pub struct Program {
    pub child: Child,
    log: PathBuf,
}

impl Program {
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Waits until its log reports listening; fails if it ends.
    fn wait_until_it_listens(&self) {
        let flags = inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK;
        let writes = inotify::init(flags).unwrap();
        inotify::add_watch(&writes, &self.log, inotify::WatchFlags::MODIFY).unwrap();
        let pid = Pid::from_child(&self.child);
        let end = pidfd_open(pid, PidfdFlags::empty()).unwrap();
        let start = Instant::now();
        let mut has_ended = false;
        // Also read the rest of the log after the program's end.
        while self.port().is_none() {
            assert!(!has_ended, "it ended: {}", self.log());
            let left = START_DEADLINE.checked_sub(start.elapsed());
            let left = left.unwrap_or_else(|| panic!("it does not listen: {}", self.log()));
            let mut fds = [
                PollFd::new(&writes, PollFlags::IN),
                PollFd::new(&end, PollFlags::IN),
            ];
            // A signal may end the wait early, which does no harm.
            let _ = poll(&mut fds, Some(&Timespec::try_from(left).unwrap()));
            has_ended = !fds[1].revents().is_empty();
            while rustix::io::read(&writes, &mut [0; 4096]).is_ok_and(|count| count > 0) {}
        }
    }

    /// Waits until the kernel halves of `count` switches outlive the program.
    pub fn wait_for_kernel_halves(&self, count: usize) {
        eventually("kernel halves are kept", || self.kept_halves() >= count);
    }

    /// Makes the program answer a switch until the switch's kernel half outlives the program.
    pub fn answer_until_kept(&self, switch: &mut FakeSwitch) {
        eventually("a kernel half is kept", || {
            switch.send_packets(1);
            switch.settle();
            self.kept_halves() > 0
        });
    }

    /// Returns the number of switches whose kernel halves outlive the program.
    pub fn kept_halves(&self) -> usize {
        self.log()
            .matches("the holder keeps the kernel half")
            .count()
    }

    pub fn port(&self) -> Option<u16> {
        let log = self.log();
        let (_, after) = log.split_once("listening address=ptcp:")?;
        after.split(':').next()?.parse().ok()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub fn kill(mut self) {
        self.signal(Signal::KILL);
        self.child.wait().unwrap();
    }

    /// Waits until the program has ended, with any status.
    pub fn wait_for_end(mut self) {
        self.wait();
    }

    pub fn wait(&mut self) -> ExitStatus {
        let mut status = None;
        eventually("the program ends", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }

    /// Ends the program with its connections and its holder.
    pub fn interrupt(mut self, room: &Room) {
        self.signal(Signal::INT);
        assert!(self.wait().success(), "{}", self.log());
        eventually("the holder has ended", || !room.file().exists());
        eventually("nothing is stored", || room.stored() == 0);
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

/// Returns `true` if the room's program can leave kernel halves to the next one. Otherwise prints one line, or fails if
/// `CI=true` is set.
pub fn holds_kernel_halves(room: &Room, options: &[&str]) -> bool {
    let probe = room.start("probe.log", options);
    let log = probe.log();
    probe.interrupt(room);
    if log.contains("the kernel half is active") {
        assert!(log.contains("; its tables are held"), "{log}");
        return true;
    }
    assert!(std::env::var("CI").as_deref() != Ok("true"), "{log}");
    println!("skipped: the kernel half cannot be tested here");
    false
}

/// For some switches, the interval of packets that a kernel half does not answer.
const OTHERS: Option<u64> = Some(200);

/// Loads a program with switches of both versions while `disturb` disturbs it. `disturb` returns the program that runs
/// in the end; its argument is a function that waits until the given number of further requests has been answered.
pub fn under_load(room: &Room, disturb: impl FnOnce(Program, &dyn Fn(u64)) -> Program) {
    under_load_in(&mut room.clone(), |_, program, progress| {
        disturb(program, progress)
    });
}

/// Like `under_load`, for tests that change the room's program.
pub fn under_load_in(
    room: &mut Room,
    disturb: impl FnOnce(&mut Room, Program, &dyn Fn(u64)) -> Program,
) {
    let program = room.start("first.log", &[]);
    let join = |port, version, id: u8| {
        let mut switch = FakeSwitch::join(port, version, id.into());
        switch.frame_len += usize::from(id);
        switch.is_segmented = id > 2;
        switch.others = OTHERS.filter(|_| id % 4 > 1);
        switch
    };
    let load = |switch: FakeSwitch, stop: &_, answered: &_| drop(switch.load(stop, answered));
    let last = load_with(program, join, load, |program, progress| {
        if room.has_kernel_half() {
            program.wait_for_kernel_halves(4);
        }
        disturb(room, program, progress)
    });
    last.interrupt(room);
}

/// Like `under_load`, with four switches that are created by `join`, from the program's port, a version and a number. `load` keeps
/// a switch's requests outstanding until its flag is set, and counts the answers. Returns the program that runs in the end.
pub fn load_with<Switch: Send>(
    program: Program,
    join: impl Fn(u16, Version, u8) -> Switch,
    load: impl Fn(Switch, &AtomicBool, &AtomicU64) + Sync,
    disturb: impl FnOnce(Program, &dyn Fn(u64)) -> Program,
) -> Program {
    let port = program.port().unwrap();
    let (stop, answered) = (AtomicBool::new(false), AtomicU64::new(0));
    let progress = |count: u64| {
        let before = answered.load(Ordering::Relaxed);
        eventually("requests are answered", || {
            answered.load(Ordering::Relaxed) >= before + count
        });
    };
    let last = thread::scope(|scope| {
        let switches = [1, 2, 3, 4].map(|id| {
            let switch = join(port, Version::ALL[usize::from(id) % 2], id);
            scope.spawn(|| load(switch, &stop, &answered))
        });
        // The switches must end even if this panics.
        let last = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            progress(1000);
            let last = disturb(program, &progress);
            progress(1000);
            last
        }));
        stop.store(true, Ordering::Relaxed);
        for switch in switches {
            switch.join().expect("all requests are answered");
        }
        last.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    assert_eq!(last.port(), Some(port));
    last
}

/// Cuts a message at different positions, kills the program that received its start, and sends the rest to the next
/// program.
pub fn cut_messages(room: &Room, version: Version) {
    let mut program = room.start("first.log", &[]);
    let mut switch = FakeSwitch::join(program.port().unwrap(), version, 1);
    if room.has_kernel_half() {
        program.answer_until_kept(&mut switch);
    }
    for cut in [1, 7, 8, 30] {
        // Once the packet before it is answered, the program has received the start of this one.
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
    program.interrupt(room);
    while switch.take_frame() {}
}

/// Returns `true` if strace is installed. Otherwise prints one line, or fails if `CI=true` is set.
pub fn has_strace() -> bool {
    if Command::new("strace").arg("-V").output().is_ok() {
        return true;
    }
    let skipped = "skipped: needs strace (tools/setup)";
    assert!(std::env::var("CI").as_deref() != Ok("true"), "{skipped}");
    let _ = writeln!(std::io::stderr(), "{skipped}");
    false
}
