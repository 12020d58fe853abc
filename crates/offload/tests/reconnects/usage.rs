//! Resources of the process: descriptors, maps of the kernel with their entries and memory, and its own memory.

use crate::switch::PATIENCE;
use libbpf_rs::{MapCore, MapHandle, MapType};
use std::collections::BTreeMap;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// Memory that may be added, since allocators keep some free.
const MEMORY_SLACK_KIB: u64 = 16 << 10;

/// The counts at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Descriptors by the kind of their file.
    fds: BTreeMap<String, usize>,
    /// Memory of all maps in bytes, as the kernel counts it.
    map_bytes: u64,
    /// Sockets that have an entry in a map by their cookies.
    sockets: usize,
    /// Resident memory.
    memory_kib: u64,
}

impl Usage {
    /// Returns the current counts.
    fn now() -> Self {
        let mut usage = Self {
            fds: BTreeMap::new(),
            map_bytes: 0,
            sockets: 0,
            memory_kib: memory_kib(),
        };
        for entry in fs::read_dir("/proc/self/fd").unwrap().flatten() {
            let Ok(target) = fs::read_link(entry.path()) else {
                continue;
            };
            let target = target.to_string_lossy().into_owned();
            let kind = target.split_once(":[").map_or(&*target, |(kind, _)| kind);
            *usage.fds.entry(kind.to_owned()).or_default() += 1;
            if target == "anon_inode:bpf-map" {
                let number = entry.file_name().into_string().unwrap();
                usage.add_map(&number);
            }
        }
        usage
    }

    fn add_map(&mut self, fd: &str) {
        let info = fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).unwrap_or_default();
        let field = |name: &str| {
            let line = info.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim().parse::<u64>().ok()
        };
        self.map_bytes += field("memlock:").unwrap_or(0);
        let id = field("map_id:").and_then(|id| u32::try_from(id).ok());
        let map = id.and_then(|id| MapHandle::from_map_id(id).ok());
        if let Some(map) = map.filter(|map| map.map_type() == MapType::Hash) {
            self.sockets += map.keys().count();
        }
    }

    /// Returns the counts when they have not changed for a while, since threads still clear what switches have left.
    pub fn settled() -> Self {
        let (start, mut last) = (Instant::now(), Self::now());
        loop {
            thread::sleep(Duration::from_millis(100));
            let now = Self::now();
            if last.has_all_but_memory(&now) {
                return now;
            }
            assert!(start.elapsed() < PATIENCE, "{last:?} and then {now:?}");
            last = now;
        }
    }

    /// Waits until the counts equal these again.
    pub fn wait_until_again(&self, what: &str) {
        let start = Instant::now();
        loop {
            let now = Self::now();
            let grown = now.memory_kib.saturating_sub(self.memory_kib);
            if self.has_all_but_memory(&now) && grown < MEMORY_SLACK_KIB {
                return;
            }
            assert!(
                start.elapsed() < PATIENCE,
                "{what}: {self:?} before, and now {now:?}"
            );
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn has_all_but_memory(&self, other: &Self) -> bool {
        let without = |usage: &Self| Self {
            memory_kib: 0,
            ..usage.clone()
        };
        without(self) == without(other)
    }
}

fn memory_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap()
}
