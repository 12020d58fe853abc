use super::*;
use crate::port::memory::{self, MemoryPort};
use crate::port::testing::{frame, receive};
use std::io::Write;
use std::process::Command;
use urtica_wire::{FlowMod, FlowModCommand, MacAddr};

/// Marks the child process of the test below, which gives up machine code permanently.
const CHILD: &str = "URTICA_TEST_WITHOUT_CODE";

/// The warning that is logged.
const WARNING: &str = "compiled tables are interpreted";

/// Creates a switch with two ports, and the other ends of their links.
fn with_hosts() -> (Switch, [MemoryPort; 2]) {
    let mut switch = Switch::new(SwitchConfig::default());
    let hosts = [1, 2].map(|number| {
        let mac = MacAddr::from_u64(number.into());
        let (port, host) = memory::pair(("port", mac), ("host", mac), 64);
        switch.add_port(PortNo(number), Box::new(port), Duration::ZERO);
        host
    });
    (switch, hosts)
}

fn add(switch: &Switch, text: &str) {
    let flow_mod = FlowMod::parse(FlowModCommand::Add, text).unwrap();
    let add =
        |pipeline: &mut Pipeline| pipeline.flow_mod(&flow_mod, Duration::ZERO, &mut Vec::new());
    switch.shared.change(add).unwrap();
}

fn passes(switch: &mut Switch, from: &mut MemoryPort, to: &mut MemoryPort) {
    assert!(from.send(&frame(60, 1)));
    from.flush();
    switch.poll_ports(Duration::ZERO);
    assert_eq!(receive(to, 1), [frame(60, 1)]);
}

/// This needs its own process, since the change is permanent.
#[test]
fn refused_machine_code_is_interpreted_and_logged_once() {
    if std::env::var_os(CHILD).is_some() {
        return without_code();
    }
    let zero: libc::c_ulong = 0;
    // SAFETY: the arguments are no pointers.
    if unsafe { libc::prctl(libc::PR_GET_MDWE, zero, zero, zero, zero) } < 0 {
        let skipped = "skipped: needs Linux 6.3 (PR_SET_MDWE)";
        assert!(std::env::var("CI").as_deref() != Ok("true"), "{skipped}");
        // Not println!, which cargo hides for tests that pass.
        let _ = writeln!(std::io::stderr(), "{skipped}");
        return;
    }
    let name = "switch::tests::refused_machine_code_is_interpreted_and_logged_once";
    let child = Command::new(std::env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let log = String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success(), "{log}");
    assert_eq!(log.matches(WARNING).count(), 1, "{log}");
}

fn without_code() {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .init();
    let (mut switch, [mut one, mut two]) = with_hosts();
    add(&switch, "in_port=1,actions=output:2");
    passes(&mut switch, &mut one, &mut two);
    let refuse = libc::c_ulong::from(libc::PR_MDWE_REFUSE_EXEC_GAIN);
    let zero: libc::c_ulong = 0;
    // SAFETY: the arguments are no pointers.
    let set = unsafe { libc::prctl(libc::PR_SET_MDWE, refuse, zero, zero, zero) };
    assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
    add(&switch, "in_port=2,ip,actions=dec_ttl,output:1");
    add(&switch, "in_port=2,actions=output:1");
    for seconds in 1..5 {
        switch.handle_timeout(Duration::from_secs(seconds));
    }
    passes(&mut switch, &mut one, &mut two);
    passes(&mut switch, &mut two, &mut one);
    assert_eq!(switch.plain_packets(), 0);
}
