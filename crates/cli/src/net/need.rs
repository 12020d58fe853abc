//! Estimates a network's memory, and checks it against what is available.
//!
//! **Figures.** Measured by the peak of resident memory, in November 2026 on x86-64, and rounded up: they only need to
//! distinguish a network that fits from one that exhausts the machine.

use rustix::process::{Resource, getrlimit};
use std::fs;
use urtica_topology::spec::Plan;

/// The program itself.
const PROGRAM_BYTES: u64 = 32 << 20;

/// A switch with its control channel, a port at either end of a link, and a host with its link.
const SWITCH_BYTES: u64 = 64 << 10;
const LINK_BYTES: u64 = 4 << 10;
const HOST_BYTES: u64 = 4 << 10;

/// The memory of one host about another that it has pinged.
const PAIR_BYTES: u64 = 128;

/// The amount of memory above which a message is printed before it is allocated.
const WORTH_TELLING_BYTES: u64 = 100 << 20;

/// Returns the approximate memory of a network in bytes, with all hosts pinging each other or not.
fn bytes(plan: &Plan, ping_all: bool) -> u64 {
    let [switches, links, hosts] =
        [plan.switches.len(), plan.links.len(), plan.hosts.len()].map(|count| count as u64);
    let pairs = hosts.saturating_mul(hosts.saturating_sub(1));
    let of_pairs = if ping_all {
        PAIR_BYTES.saturating_mul(pairs)
    } else {
        0
    };
    let of_parts = switches * SWITCH_BYTES + links * LINK_BYTES + hosts * HOST_BYTES;
    (PROGRAM_BYTES + of_parts).saturating_add(of_pairs)
}

/// Refuses a network that needs more memory than is available; returns a message for a large network.
pub(super) fn check(spec: &str, plan: &Plan, ping_all: bool) -> Result<Option<String>, String> {
    assess(spec, bytes(plan, ping_all), ping_all, available())
}

fn assess(
    spec: &str,
    needed: u64,
    ping_all: bool,
    available: Option<u64>,
) -> Result<Option<String>, String> {
    let pinging = if ping_all { " with --ping-all" } else { "" };
    let needed_mb = megabytes(needed);
    match available {
        Some(available) if needed > available => Err(format!(
            "{spec}{pinging} needs about {needed_mb} of memory, and {} are available; expected a smaller network{}",
            megabytes(available),
            if ping_all {
                ", or one without --ping-all"
            } else {
                ""
            },
        )),
        _ => Ok((needed >= WORTH_TELLING_BYTES)
            .then(|| format!("{spec}{pinging} needs about {needed_mb} of memory"))),
    }
}

/// Returns the available memory, or this process's limit if that is less; `None` if neither is known.
fn available() -> Option<u64> {
    let may_take = getrlimit(Resource::As).current;
    let table = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    may_take.into_iter().chain(spare(&table)).min()
}

fn spare(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes * 1024)
}

fn megabytes(bytes: u64) -> String {
    match bytes >> 20 {
        mb @ 0..10_000 => format!("{mb} MB"),
        mb => format!("{} GB", mb >> 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use urtica_topology::spec::TopologySpec;

    fn check_spec(text: &str, ping_all: bool, available: u64) -> Result<Option<String>, String> {
        let spec: TopologySpec = text.parse().unwrap();
        let needed = bytes(&spec.plan().unwrap(), ping_all);
        assess(text, needed, ping_all, Some(available))
    }

    #[test]
    fn oversized_topologies_are_refused_and_large_ones_announced() {
        let machine = 16 << 30;
        assert_eq!(check_spec("torus,10,10", true, machine), Ok(None));
        assert_eq!(
            check_spec("single,2000", true, machine),
            Ok(Some(
                "single,2000 with --ping-all needs about 527 MB of memory".to_owned()
            ))
        );
        assert_eq!(
            check_spec("single,100000", true, machine),
            Err("single,100000 with --ping-all needs about 1192 GB of memory, and 16 GB are available; expected a smaller network, or \
                 one without --ping-all".to_owned())
        );
        assert_eq!(
            check_spec("single,100000", false, 100 << 20),
            Err("single,100000 needs about 422 MB of memory, and 100 MB are available; expected a smaller network".to_owned())
        );
    }

    #[test]
    fn reads_the_available_resources() {
        let meminfo = "MemTotal:       16384 kB\nMemFree:  1 kB\nMemAvailable:   8192 kB\n";
        assert_eq!(spare(meminfo), Some(8 << 20));
        assert_eq!(spare("MemAvailable: many\n"), None);
        assert!(available().is_some_and(|bytes| bytes > 0));
    }
}
