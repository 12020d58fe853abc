//! The resources used by the controller's process: CPU time, memory, energy. They are read from `/proc` and `/sys`, and so only
//! available for controllers on this machine.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::Pid;
use rustix::thread::sched_getaffinity;
use serde::Serialize;

use crate::analysis::Busy;

/// The time that a thread ran, and the time that it was runnable but waited for a core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchedTimes {
    /// The time on a core, in nanoseconds.
    pub run_ns: u64,
    /// The time of waiting for a core, in nanoseconds.
    pub wait_ns: u64,
}

impl SchedTimes {
    /// Returns the calling thread's times so far; zero if the kernel does not report them.
    pub fn of_this_thread() -> Self {
        Self::read(Path::new("/proc/thread-self")).unwrap_or_default()
    }

    fn read(directory: &Path) -> Option<Self> {
        let text = fs::read_to_string(directory.join("schedstat")).ok()?;
        let mut fields = text.split_whitespace();
        let mut next_ns = || fields.next()?.parse().ok();
        Some(Self {
            run_ns: next_ns()?,
            wait_ns: next_ns()?,
        })
    }

    /// Returns the difference from an earlier reading.
    pub fn since(self, before: Self) -> Self {
        Self {
            run_ns: self.run_ns.saturating_sub(before.run_ns),
            wait_ns: self.wait_ns.saturating_sub(before.wait_ns),
        }
    }
}

/// A process whose resources are measured.
#[derive(Clone, Debug)]
pub struct ControllerProcess {
    pid: u32,
    /// The unit of CPU times in `/proc`.
    tick: Duration,
    energy_files: Vec<PathBuf>,
}

/// A reading of the resources that the process has used so far.
#[derive(Clone, Debug)]
pub struct Reading {
    at: Instant,
    user: Duration,
    kernel: Duration,
    rss_bytes: u64,
    /// Each thread's times, by thread id.
    threads: Vec<(u32, SchedTimes)>,
    energy_uj: Option<u64>,
}

/// The resources that a process used between two readings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Usage {
    /// The process.
    pub pid: u32,
    /// Its name, as the kernel shows it.
    pub name: String,
    /// The duration of the measurement.
    pub elapsed_s: f64,
    /// CPU time in user space.
    pub user_s: f64,
    /// CPU time in the kernel.
    pub kernel_s: f64,
    /// The average number of cores that it used.
    pub cores: f64,
    /// The number of cores that it may use.
    pub cores_allowed: usize,
    /// The share of the time in which its busiest thread ran.
    pub busiest_thread: f64,
    /// The share of the time in which this thread waited for a core that another thread used.
    pub busiest_thread_waited: f64,
    /// The number of threads that used more than a tenth of a core.
    pub busy_threads: usize,
    /// The resident memory at the end.
    pub rss_bytes: u64,
    /// The energy used by the machine's processors, if powercap reports it.
    pub joules: Option<f64>,
}

impl Usage {
    /// Returns how it used its time: the values of its busiest thread, or those of all threads together if these are closer to
    /// using up the cores that it may use.
    pub fn busy(&self) -> Busy {
        let busiest = Busy {
            ran: self.busiest_thread,
            waited: self.busiest_thread_waited,
        };
        let together = Busy {
            ran: self.cores / self.cores_allowed.max(1) as f64,
            waited: 0.0,
        };
        if together.total() > busiest.total() {
            together
        } else {
            busiest
        }
    }
}

impl ControllerProcess {
    /// Creates a watch of the process with this id; `None` if it does not exist, or `/proc` does not show it.
    pub fn watch(pid: u32) -> Option<Self> {
        let ticks_per_s = rustix::param::clock_ticks_per_second();
        let process = Self {
            pid,
            tick: Duration::from_secs(1) / u32::try_from(ticks_per_s).ok()?,
            energy_files: energy_files(),
        };
        process.read()?;
        Some(process)
    }

    /// Creates a watch of the process at the other end of a connected socket, if it is on this machine.
    pub fn at_other_end(socket: impl AsFd) -> Option<Self> {
        let local = SocketAddr::try_from(rustix::net::getsockname(&socket).ok()?);
        let pid = match local {
            Ok(local) => {
                let peer = SocketAddr::try_from(rustix::net::getpeername(&socket).ok()??).ok()?;
                process_with_socket(inode_of(peer, local)?)?
            }
            // A Unix domain socket.
            Err(_) => rustix::net::sockopt::socket_peercred(&socket)
                .ok()?
                .pid
                .as_raw_nonzero()
                .get()
                .try_into()
                .ok()?,
        };
        Self::watch(pid)
    }

    /// Reads the resources used so far; `None` if the process has ended.
    pub fn read(&self) -> Option<Reading> {
        let directory = PathBuf::from(format!("/proc/{}", self.pid));
        let (user, kernel) = self.cpu_times(&directory)?;
        let threads = fs::read_dir(directory.join("task"))
            .ok()?
            .filter_map(|entry| {
                let path = entry.ok()?.path();
                let id = path.file_name()?.to_str()?.parse().ok()?;
                Some((id, SchedTimes::read(&path)?))
            });
        Some(Reading {
            at: Instant::now(),
            user,
            kernel,
            rss_bytes: rss_bytes(&directory)?,
            threads: threads.collect(),
            energy_uj: self.energy_uj(),
        })
    }

    /// Returns the resources used between two readings of this process.
    pub fn usage(&self, before: &Reading, after: &Reading) -> Usage {
        let elapsed_s = (after.at - before.at).as_secs_f64().max(1e-9);
        let user_s = after.user.saturating_sub(before.user).as_secs_f64();
        let kernel_s = after.kernel.saturating_sub(before.kernel).as_secs_f64();
        let threads: Vec<SchedTimes> = after
            .threads
            .iter()
            .map(|&(id, times)| {
                let earlier = before.threads.iter().find(|thread| thread.0 == id);
                times.since(earlier.map_or(SchedTimes::default(), |thread| thread.1))
            })
            .collect();
        let share = |ns: u64| ns as f64 / 1e9 / elapsed_s;
        let busiest = threads
            .iter()
            .copied()
            .max_by_key(|times| times.run_ns + times.wait_ns)
            .unwrap_or_default();
        let energy = before
            .energy_uj
            .zip(after.energy_uj)
            .and_then(|(before, after)| after.checked_sub(before));
        Usage {
            pid: self.pid,
            name: fs::read_to_string(format!("/proc/{}/comm", self.pid))
                .unwrap_or_default()
                .trim()
                .to_owned(),
            elapsed_s,
            user_s,
            kernel_s,
            cores: (user_s + kernel_s) / elapsed_s,
            cores_allowed: self.cores_allowed(),
            busiest_thread: share(busiest.run_ns),
            busiest_thread_waited: share(busiest.wait_ns),
            busy_threads: threads
                .iter()
                .filter(|times| share(times.run_ns) > 0.1)
                .count(),
            rss_bytes: after.rss_bytes,
            joules: energy.map(|uj| uj as f64 / 1e6),
        }
    }

    /// Reads user and kernel time from a `stat` file (`proc_pid_stat(5)`, fields 14 and 15).
    fn cpu_times(&self, directory: &Path) -> Option<(Duration, Duration)> {
        let stat = fs::read_to_string(directory.join("stat")).ok()?;
        // The name in parentheses may contain any characters.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
        let mut ticks = || fields.next()?.parse::<u32>().ok();
        Some((self.tick * ticks()?, self.tick * ticks()?))
    }

    fn cores_allowed(&self) -> usize {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        sched_getaffinity(pid).map_or(1, |cores| cores.count() as usize)
    }

    fn energy_uj(&self) -> Option<u64> {
        let readings: Option<Vec<u64>> = self
            .energy_files
            .iter()
            .map(|file| fs::read_to_string(file).ok()?.trim().parse().ok())
            .collect();
        readings
            .filter(|readings| !readings.is_empty())
            .map(|readings| readings.iter().sum())
    }
}

/// Returns the energy counters of whole processor packages. Zones within them (`intel-rapl:0:1`) would be counted twice.
fn energy_files() -> Vec<PathBuf> {
    let Ok(zones) = fs::read_dir("/sys/class/powercap") else {
        return Vec::new();
    };
    zones
        .filter_map(|zone| Some(zone.ok()?.path()))
        .filter(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().matches(':').count() == 1)
        })
        .map(|path| path.join("energy_uj"))
        .filter(|file| fs::read_to_string(file).is_ok())
        .collect()
}

fn rss_bytes(directory: &Path) -> Option<u64> {
    let status = fs::read_to_string(directory.join("status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

/// Returns the inode of the TCP socket on this machine with the local address `local` and the peer `peer`
/// (`proc_pid_net(5)`).
fn inode_of(local: SocketAddr, peer: SocketAddr) -> Option<u64> {
    // An IPv4 connection to a dual-stack listener is in the IPv6 table.
    let tables = [
        ("/proc/net/tcp", local, peer),
        ("/proc/net/tcp6", mapped(local), mapped(peer)),
    ];
    tables.into_iter().find_map(|(table, local, peer)| {
        let (local, peer) = (hexadecimal(local), hexadecimal(peer));
        fs::read_to_string(table).ok()?.lines().find_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let ends = *fields.get(1)? == local && *fields.get(2)? == peer;
            ends.then(|| fields.get(9)?.parse().ok())
                .flatten()
                .filter(|&inode| inode != 0)
        })
    })
}

fn mapped(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) => SocketAddr::new(ip.to_ipv6_mapped().into(), address.port()),
        IpAddr::V6(_) => address,
    }
}

/// Formats an address as the kernel does: each 32-bit word in the machine's byte order.
fn hexadecimal(address: SocketAddr) -> String {
    let octets = match address.ip() {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let words = octets
        .chunks_exact(4)
        .map(|word| u32::from_ne_bytes([word[0], word[1], word[2], word[3]]));
    let address_part: String = words.map(|word| format!("{word:08X}")).collect();
    format!("{address_part}:{:04X}", address.port())
}

fn process_with_socket(inode: u64) -> Option<u32> {
    let wanted = PathBuf::from(format!("socket:[{inode}]"));
    let processes = fs::read_dir("/proc")
        .ok()?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    processes.into_iter().find(|pid| {
        let Ok(files) = fs::read_dir(format!("/proc/{pid}/fd")) else {
            return false;
        };
        files
            .filter_map(|file| fs::read_link(file.ok()?.path()).ok())
            .any(|link| link == wanted)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn finds_the_process_at_the_other_end() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else {
                continue;
            };
            let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let _accepted = listener.accept().unwrap();
            assert_eq!(
                ControllerProcess::at_other_end(&stream).unwrap().pid,
                std::process::id()
            );
        }
    }

    #[test]
    fn usage_counts_cpu_time_and_memory() {
        let process = ControllerProcess::watch(std::process::id()).unwrap();
        let before = process.read().unwrap();
        let deadline = Instant::now() + Duration::from_millis(60);
        while Instant::now() < deadline {
            std::hint::black_box(before.rss_bytes);
        }
        let usage = process.usage(&before, &process.read().unwrap());
        assert_eq!(usage.pid, std::process::id());
        assert!(usage.rss_bytes > 100_000);
        assert!(usage.user_s + usage.kernel_s > 0.0);
        assert!(usage.elapsed_s >= 0.06);
    }

    #[test]
    fn addresses_are_written_as_the_kernel_does() {
        if cfg!(target_endian = "little") {
            assert_eq!(
                hexadecimal("127.0.0.1:6653".parse().unwrap()),
                "0100007F:19FD"
            );
            assert_eq!(
                hexadecimal("[::1]:1".parse().unwrap()),
                "00000000000000000000000001000000:0001"
            );
        }
    }

    #[test]
    fn no_such_process() {
        assert!(ControllerProcess::watch(u32::MAX).is_none());
    }
}
