//! Checks of kernel features for the kernel half and the switch's AF_XDP ports.

use crate::{Facts, Finding};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, socket};
use rustix::process::{Resource, getrlimit};
use rustix::thread::{CapabilitySet, capabilities};
use urtica_offload::{Kernel, Unavailable};

/// The memory of an AF_XDP port per receive queue (docs/switch.md).
const QUEUE_BYTES: u64 = 13 << 20;

/// This memory in huge pages of 2 MiB.
const QUEUE_HUGE_PAGES: u64 = QUEUE_BYTES.div_ceil(2 << 20);

const HUGE_PAGES: &str = "/proc/sys/vm/nr_hugepages";

pub fn look(facts: &Facts) -> Vec<Finding> {
    let mut findings = vec![kernel_half(facts.plan.wants_kernel)];
    match xdp() {
        Ok(()) => {
            findings.extend(locked_memory());
            findings.extend(huge_pages());
        }
        Err(finding) => findings.push(*finding),
    }
    findings
}

/// Loads the programs briefly without attaching them, since only the kernel's verifier decides.
fn kernel_half(is_wanted: bool) -> Finding {
    let reason = match Kernel::start() {
        Ok(_) => {
            let sentence = "The kernel accepts the kernel half's programs.";
            return Finding::ok("kernel-half", sentence);
        }
        Err(reason) => reason,
    };
    let sentence =
        format!("The kernel half is not available: {reason}; the program answers alone.");
    let finding = match is_wanted {
        true => Finding::warning("kernel-half-unavailable", sentence),
        false => Finding::note("kernel-half-unavailable", sentence),
    };
    match reason {
        Unavailable::NoJit => finding.command("sysctl -w net.core.bpf_jit_enable=1"),
        Unavailable::NotPermitted => finding.command("sudo urtica doctor kernel"),
        Unavailable::NotBuilt(_) => {
            finding.command("cargo install --path crates/cli --features kernel-half")
        }
        _ => finding.command("uname -r"),
    }
}

fn xdp() -> Result<(), Box<Finding>> {
    let error = match socket(AddressFamily::XDP, SocketType::RAW, None) {
        Ok(_) => return Ok(()),
        Err(error) => error,
    };
    Err(Box::new(match error {
        Errno::PERM | Errno::ACCESS => Finding::note(
            "xdp-not-looked-at",
            "Cannot check whether urtica switch can use AF_XDP: this needs CAP_NET_RAW.",
        )
        .command("sudo urtica doctor kernel"),
        _ => Finding::note(
            "xdp-unavailable",
            format!("The kernel has no AF_XDP ({error}): afxdp: ports of urtica switch use AF_PACKET, which is slower."),
        )
        .command("grep XDP_SOCKETS /boot/config-$(uname -r)"),
    }))
}

fn locked_memory() -> Option<Finding> {
    let may_lock =
        capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::IPC_LOCK));
    let most = getrlimit(Resource::Memlock).current?;
    if may_lock || most >= QUEUE_BYTES {
        return None;
    }
    let sentence = format!(
        "The process may lock {} KiB of memory, but an AF_XDP port of urtica switch locks {} KiB for each receive \
         queue: it would use AF_PACKET.",
        most >> 10,
        QUEUE_BYTES >> 10
    );
    Some(Finding::note("locked-memory", sentence).command("ulimit -l unlimited"))
}

fn huge_pages() -> Option<Finding> {
    let reserved = std::fs::read_to_string(HUGE_PAGES).ok()?;
    if reserved.trim() != "0" {
        return None;
    }
    let sentence = "No huge pages are reserved: AF_XDP ports of urtica switch use small pages, and are a little slower.";
    let command = format!("sysctl -w vm.nr_hugepages={QUEUE_HUGE_PAGES}");
    Some(Finding::note("no-huge-pages", sentence).command(command))
}
