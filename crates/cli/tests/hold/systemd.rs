//! Tests with the real systemd, which keeps the connections: a user's manager in its own namespaces, with one unit.
//!
//! The other tests use `manager.rs` instead, which is quick, runs everywhere, and can change the stored descriptors. Only
//! systemd itself shows that it accepts our names and messages, how it handles descriptors beyond `FileDescriptorStoreMax=`,
//! in which order it passes descriptors, and how a restart, a crash and a stop change its store.

use crate::kernel::KERNEL;
use crate::room::*;
use crate::switch::*;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use urtica_wire::Version;

const SYSTEMD: &str = "/usr/lib/systemd/systemd";
const UNIT: &str = "urtica.service";

/// Paths where control groups may be mounted: the newer one, and two older ones.
const GROUPS: [&str; 3] = [
    "/sys/fs/cgroup",
    "/sys/fs/cgroup/systemd",
    "/sys/fs/cgroup/unified",
];

/// Moves into a new control group, so that the manager's groups are below it.
const ENTER: &str = r#"
set -e
for root in /sys/fs/cgroup /sys/fs/cgroup/systemd /sys/fs/cgroup/unified; do
    [ -e $root/cgroup.procs ] || continue
    mkdir -p $root/$NAME
    echo $$ > $root/$NAME/cgroup.procs
done
exec unshare --mount --cgroup --pid --fork --kill-child --mount-proc sh -c "$MANAGE"
"#;

/// Sets up the namespaces as a machine that systemd has booted, as far as its manager checks.
const MANAGE: &str = r#"
set -e
mount --make-rprivate /
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/system
# The control groups again, from this one on.
if [ -e /sys/fs/cgroup/cgroup.procs ]; then
    umount --lazy /sys/fs/cgroup
    mount -t cgroup2 cgroup2 /sys/fs/cgroup
else
    umount --lazy /sys/fs/cgroup/systemd
    mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/systemd
    if [ -e /sys/fs/cgroup/unified/cgroup.procs ]; then
        umount --lazy /sys/fs/cgroup/unified
        mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified
    fi
fi
/usr/lib/systemd/systemd --user --log-target=console --log-level=info &
wait
"#;

/// A manager with the unit; killed on drop, with all its processes.
struct Manager {
    folder: tempfile::TempDir,
    name: String,
    namespaces: Child,
}

impl Manager {
    /// Starts a manager with a program's unit, which keeps at most `most` descriptors. Without systemd or the privilege, prints a
    /// line and returns `None`, or fails with CI=true.
    fn start(program: &[&str], most: u32) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let is_root = rustix::process::geteuid().is_root();
        if !is_root || !Path::new(SYSTEMD).exists() {
            let skipped = "skipped: needs root and systemd (tools/setup)";
            assert!(std::env::var("CI").as_deref() != Ok("true"), "{skipped}");
            let _ = writeln!(std::io::stderr(), "{skipped}");
            return None;
        }
        let units = folder.path().join("units");
        fs::create_dir(&units).unwrap();
        let log = folder.path().join("log");
        let unit = format!(
            "[Unit]\nDefaultDependencies=no\nStartLimitIntervalSec=0\n\
             [Service]\nType=notify\nRestart=always\nTimeoutStartSec=300\nFileDescriptorStoreMax={most}\n\
             Environment=RUST_LOG=info,urtica_controller::connection=debug\nStandardError=append:{log}\n\
             ExecStart={URTICA} run {program} --hold=systemd --listen ptcp:0:127.0.0.1 --shards 2\n",
            log = log.display(),
            program = program.join(" "),
        );
        fs::write(units.join(UNIT), unit).unwrap();
        let name = format!("urtica-test-{}", folder.path().file_name()?.to_str()?);
        let namespaces = Command::new("sh")
            .args(["-c", ENTER])
            .env("NAME", &name)
            .env("MANAGE", MANAGE)
            .env("XDG_RUNTIME_DIR", folder.path())
            .env("HOME", folder.path())
            .env(
                "SYSTEMD_UNIT_PATH",
                format!("{}:/usr/lib/systemd/user", units.display()),
            )
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(folder.path().join("systemd.log")).unwrap())
            .spawn()
            .unwrap();
        let manager = Self {
            folder,
            name,
            namespaces,
        };
        eventually("systemd listens", || {
            manager.path("systemd/private").exists()
        });
        manager.control(&["start", UNIT]);
        Some(manager)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs `systemctl`, which must succeed.
    fn control(&self, arguments: &[&str]) -> String {
        // The first process in the namespaces.
        let id = self.namespaces.id();
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
        let output = Command::new("nsenter")
            .args(["--mount", "--pid", "--target", children.trim()])
            .args(["systemctl", "--user"])
            .args(arguments)
            .env("XDG_RUNTIME_DIR", self.folder.path())
            .env_remove("DBUS_SESSION_BUS_ADDRESS")
            .output();
        let Output {
            status,
            stdout,
            stderr,
        } = output.unwrap();
        let said = String::from_utf8_lossy(&stderr);
        assert!(status.success(), "{arguments:?}: {said}{}", self.logs());
        String::from_utf8(stdout).unwrap()
    }

    /// Returns a property of the unit.
    fn property(&self, name: &str) -> String {
        let property = format!("--property={name}");
        let value = self.control(&["show", "--value", &property, UNIT]);
        value.trim().to_owned()
    }

    /// Returns the number of descriptors that the manager keeps.
    fn stored(&self) -> usize {
        self.property("NFileDescriptorStore").parse().unwrap()
    }

    /// Returns the log of all programs so far.
    fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    fn logs(&self) -> String {
        let own = fs::read_to_string(self.path("systemd.log")).unwrap_or_default();
        format!("\n--- systemd\n{own}\n--- programs\n{}", self.log())
    }

    /// Waits until the log has the port: the program writes its log in a separate thread, perhaps after it notifies systemd.
    fn port(&self) -> u16 {
        let port = || {
            let log = self.log();
            let (_, after) = log.split_once("listening address=ptcp:")?;
            let (port, _) = after.split_once(':')?;
            Some(port.parse().unwrap())
        };
        eventually("the log names the port", || port().is_some());
        port().unwrap()
    }

    /// Returns the number of lines in the log with this sentence, which reports a take-over.
    fn times(&self, sentence: &str) -> usize {
        self.log().matches(sentence).count()
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("{}", self.logs());
        }
        let _ = self.namespaces.kill();
        let _ = self.namespaces.wait();
        let groups = GROUPS.map(|root| Path::new(root).join(&self.name));
        let is_gone = || groups.iter().all(|group| remove_group(group));
        // The last processes may still be ending. A failed test must not panic again.
        let start = Instant::now();
        while !is_gone() && start.elapsed() < DEADLINE {
            thread::sleep(Duration::from_millis(10));
        }
        assert!(thread::panicking() || is_gone(), "its control groups stay");
    }
}

/// Removes a control group and the groups below it; returns `true` if it is gone.
fn remove_group(group: &Path) -> bool {
    let below = fs::read_dir(group).into_iter().flatten().flatten();
    for entry in below.filter(|entry| entry.path().is_dir()) {
        remove_group(&entry.path());
    }
    let _ = fs::remove_dir(group);
    !group.exists()
}

/// Restarts, crashes and `systemctl kill` keep all connections, under load; `systemctl stop` ends them.
#[test]
fn systemd_keeps_connections_until_the_unit_is_stopped() {
    let Some(manager) = Manager::start(KERNEL, 512) else {
        return;
    };
    let port = manager.port();
    let has_half = manager.log().contains("; its tables are held");
    assert!(
        has_half || std::env::var("CI").as_deref() != Ok("true"),
        "{}",
        manager.log()
    );
    let (stop, answered) = (AtomicBool::new(false), AtomicU64::new(0));
    let progress = |count| {
        let before = answered.load(Ordering::Relaxed);
        eventually("requests are answered", || {
            answered.load(Ordering::Relaxed) >= before + count
        });
    };
    thread::scope(|scope| {
        let switches: Vec<_> = (1..=3)
            .map(|id| {
                let mut switch = FakeSwitch::join(port, Version::ALL[id as usize % 2], id);
                switch.others = Some(200);
                scope.spawn(|| switch.load(&stop, &answered))
            })
            .collect();
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            progress(1000);
            if has_half {
                let kept = "the holder keeps the kernel half";
                eventually("kernel halves are kept", || manager.times(kept) == 3);
            }
            // A listener, the maps, and for each switch a socket, a journal and its kernel half.
            let expected = if has_half { 1 + 7 + 3 * 6 } else { 1 + 3 * 2 };
            eventually("all is stored", || manager.stored() == expected);
            for round in 1..=6 {
                match round % 3 {
                    0 => drop(manager.control(&["restart", UNIT])),
                    1 => drop(manager.control(&["kill", "--signal=KILL", UNIT])),
                    _ => drop(manager.control(&["kill", "--signal=TERM", UNIT])),
                }
                eventually("the next program takes over", || {
                    manager.times("taken=3 closed=0") == round
                });
                progress(1000);
                assert_eq!(manager.stored(), expected);
            }
        }));
        stop.store(true, Ordering::Relaxed);
        let switches = switches
            .into_iter()
            .map(|switch| switch.join().expect("every packet is flooded"));
        let switches: Vec<_> = switches.collect();
        ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        // A build without the kernel half logs a warning at each start.
        let log = manager.log();
        let mut warnings = log.lines().filter(|line| line.contains("WARN"));
        let is_expected = |line: &str| !has_half && line.contains("the kernel half is not active");
        assert!(warnings.all(is_expected), "{log}");
        manager.control(&["stop", UNIT]);
        assert_eq!(manager.stored(), 0);
        for mut switch in switches {
            while switch.take_frame() {}
        }
    });
}

/// systemd discards descriptors beyond its maximum: their connections end with their program, and the others stay.
#[test]
fn connections_beyond_the_maximum_of_systemd_end_with_their_program() {
    // There is room for a listener, one switch's socket and journal, and the next switch's socket, but not for its journal.
    let Some(manager) = Manager::start(&["hub"], 1 + 2 + 1) else {
        return;
    };
    let join = |id| FakeSwitch::join(manager.port(), Version::Of13, id);
    let mut first = join(1);
    eventually("the first is stored", || manager.stored() == 3);
    let mut second = join(2);
    eventually("half of the second is stored", || manager.stored() == 4);
    for switch in [&mut first, &mut second] {
        switch.send_packets(3);
        switch.settle();
    }
    manager.control(&["kill", "--signal=KILL", UNIT]);
    while second.take_frame() {}
    eventually("the first is taken over", || {
        manager.times("taken=1 closed=0") == 1
    });
    first.send_packets(3);
    first.settle();
    eventually("the half is removed", || manager.stored() == 3);
}
