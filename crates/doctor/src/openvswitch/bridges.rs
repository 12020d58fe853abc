//! A bridge's own settings.

use super::database::{OpenVswitch, Row};
use crate::Finding;
use crate::finding::quoted;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The versions that Urtica speaks, as `protocols` names them.
const SPOKEN: [&str; 2] = ["OpenFlow10", "OpenFlow13"];

pub fn look(switch: &OpenVswitch, bridge: &Row) -> Vec<Finding> {
    let name = bridge.text("name").unwrap_or_default();
    if bridge.text("datapath_id").is_none() && switch.daemon().is_ok() {
        return vec![not_made(bridge, name)];
    }
    let mut findings = Vec::new();
    findings.extend(protocols(bridge, name));
    let has_controller = !bridge.texts("controller").is_empty();
    findings.extend(fail_mode(bridge, name, has_controller));
    for interface in switch.interfaces(bridge) {
        findings.extend(port(interface, name));
    }
    for port in switch.ports(bridge) {
        findings.extend(spanning_tree(port, name));
    }
    findings
}

/// Finds a port that the bridge's own spanning tree blocks, regardless of flow entries.
fn spanning_tree(port: &Row, bridge: &str) -> Option<Finding> {
    let states = [
        ("STP", "stp_enable", port.entry("status", "stp_state")),
        (
            "RSTP",
            "rstp_enable",
            port.entry("rstp_status", "rstp_port_state"),
        ),
    ];
    let is_blocked = |state: &str| !["forwarding", "disabled"].contains(&state);
    let mut states = states
        .into_iter()
        .filter_map(|(name, setting, state)| Some((name, setting, state?.to_ascii_lowercase())));
    let (name, setting, state) = states.find(|(_, _, state)| is_blocked(state))?;
    let shown = port.text("name").unwrap_or_default();
    let sentence = format!(
        "Port {shown} of bridge {bridge} is {state} in {name}, so it forwards nothing, regardless of its flow entries; a \
         controller that knows the network's loops needs no {name}."
    );
    let command = format!("ovs-vsctl set bridge {} {setting}=false", quoted(bridge));
    Some(Finding::warning("bridge-spanning-tree", sentence).command(command))
}

/// Reports a bridge without a datapath id, which ovs-vswitchd assigns once it has created the bridge.
fn not_made(bridge: &Row, name: &str) -> Finding {
    let to_user_space = format!("ovs-vsctl set bridge {} datapath_type=netdev", quoted(name));
    if bridge
        .text("datapath_type")
        .is_some_and(|kind| kind != "system")
    {
        let sentence = format!(
            "Bridge {name} could not be created, so it forwards nothing; see ovs-vswitchd's log."
        );
        return Finding::problem("bridge-not-made", sentence)
            .command("tail /var/log/openvswitch/ovs-vswitchd.log");
    }
    let sentence = format!(
        "Bridge {name} could not be created, so it forwards nothing: it is set to use the kernel's datapath \
         (datapath_type), but the kernel has no module openvswitch loaded; the datapath in user space needs none."
    );
    let finding = Finding::problem("bridge-without-kernel-module", sentence);
    match has_module() {
        true => finding.command("modprobe openvswitch"),
        false => finding.command(to_user_space),
    }
}

/// Returns `true` if the module can be loaded.
fn has_module() -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let modules = Path::new("/lib/modules").join(release.trim());
    modules.join("kernel/net/openvswitch").exists()
}

fn protocols(bridge: &Row, name: &str) -> Option<Finding> {
    let protocols = bridge.texts("protocols");
    if protocols.is_empty() || protocols.contains(&SPOKEN[1]) {
        return None;
    }
    let quoted = quoted(name);
    let shown = protocols.join(",");
    if protocols.contains(&SPOKEN[0]) {
        let sentence = format!(
            "Bridge {name} only speaks OpenFlow 1.0 (protocols={shown}): it has no groups, no meters and only one \
             table for programs, and filters see every packet."
        );
        let command = format!(
            "ovs-vsctl set bridge {quoted} protocols={}",
            SPOKEN.join(",")
        );
        return Some(Finding::note("bridge-speaks-1.0-alone", sentence).command(command));
    }
    let sentence = format!(
        "Bridge {name} speaks no version of OpenFlow that Urtica supports (protocols={shown}), so it cannot connect to \
         the controller; expected OpenFlow13 or OpenFlow10 among them."
    );
    let command = format!(
        "ovs-vsctl set bridge {quoted} protocols={}",
        SPOKEN.join(",")
    );
    Some(Finding::problem("bridge-protocols", sentence).command(command))
}

fn fail_mode(bridge: &Row, name: &str, has_controller: bool) -> Option<Finding> {
    let is_secure = bridge.text("fail_mode") == Some("secure");
    let bridge = quoted(name);
    match (has_controller, is_secure) {
        (true, true) => None,
        (true, false) => {
            let sentence = format!(
                "Bridge {name} has the fail mode standalone: without its controller it forwards on its own, as a learning switch, past every firewall \
                 rule, and in a loop endlessly. In fail mode secure it keeps its flow entries and nothing else."
            );
            let command = format!("ovs-vsctl set-fail-mode {bridge} secure");
            Some(Finding::warning("bridge-fail-mode", sentence).command(command))
        }
        (false, true) => {
            let sentence = format!(
                "Bridge {name} has the fail mode secure and no controller: it drops every packet without a flow entry."
            );
            let command = format!("ovs-vsctl set-controller {bridge} tcp:127.0.0.1:6653");
            Some(Finding::warning("bridge-secure-without-controller", sentence).command(command))
        }
        (false, false) => {
            let sentence = format!(
                "Bridge {name} has no controller: it forwards on its own, as a learning switch."
            );
            let command = format!("ovs-vsctl set-controller {bridge} tcp:127.0.0.1:6653");
            Some(Finding::note("bridge-without-controller", sentence).command(command))
        }
    }
}

/// Reports a port that could not be added.
fn port(interface: &Row, bridge: &str) -> Option<Finding> {
    let error = interface.text("error")?;
    let name = interface.text("name").unwrap_or_default();
    let sentence = format!("Port {name} of bridge {bridge} does not work: {error}.");
    let command = format!("ovs-vsctl del-port {} {}", quoted(bridge), quoted(name));
    Some(Finding::problem("bridge-port-broken", sentence).command(command))
}

/// Finds bridges with equal datapath ids.
pub fn same_datapath_ids(switch: &OpenVswitch) -> Vec<Finding> {
    let bridges = switch
        .bridges()
        .filter_map(|bridge| Some((bridge.text("datapath_id")?, bridge.text("name")?)));
    let mut owners: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (id, name) in bridges {
        owners.entry(id).or_default().push(name);
    }
    let mut findings = Vec::new();
    for (id, names) in owners.iter().filter(|(_, names)| names.len() > 1) {
        let sentence = format!(
            "Bridges {} have the same datapath id, {id}: controllers treat them as one switch, so they disconnect each \
             other.",
            names.join(" and ")
        );
        let first = u64::from_str_radix(id, 16).unwrap_or(0);
        let others = (1..=u64::MAX).map(|more| format!("{:016x}", first.wrapping_add(more)));
        let unused = others.filter(|id| !owners.contains_key(id.as_str()));
        let finding = Finding::problem("bridge-datapath-id", sentence);
        let commands = names.iter().skip(1).zip(unused);
        findings.push(commands.fold(finding, |finding, (name, id)| {
            let name = quoted(name);
            finding.command(format!(
                "ovs-vsctl set bridge {name} other_config:datapath-id={id}"
            ))
        }));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(bridge: &str) -> Vec<&'static str> {
        let headings =
            r#"["datapath_id","datapath_type","protocols","fail_mode","controller","name"]"#;
        let tables =
            format!(r#"{{"data":[],"headings":[]}}{{"data":[{bridge}],"headings":{headings}}}"#);
        let switch = OpenVswitch::of(&tables);
        let bridge = switch.bridges().next().unwrap();
        look(&switch, bridge)
            .iter()
            .map(|finding| finding.name)
            .collect()
    }

    #[test]
    fn settings_are_judged_one_by_one() {
        let none = r#"["set",[]]"#;
        let controller = r#"["uuid","c"]"#;
        for (bridge, expected) in [
            (
                format!(r#"["1","netdev",{none},"secure",{controller},"b"]"#),
                vec![],
            ),
            (
                format!(r#"["1","","OpenFlow13","secure",{controller},"b"]"#),
                vec![],
            ),
            (
                format!(r#"["1","","OpenFlow14","secure",{controller},"b"]"#),
                vec!["bridge-protocols"],
            ),
            (
                format!(r#"["1","","OpenFlow10","secure",{controller},"b"]"#),
                vec!["bridge-speaks-1.0-alone"],
            ),
            (
                format!(r#"["1","",{none},{none},{controller},"b"]"#),
                vec!["bridge-fail-mode"],
            ),
            (
                format!(r#"["1","",{none},{none},{none},"b"]"#),
                vec!["bridge-without-controller"],
            ),
            (
                format!(r#"["1","",{none},"secure",{none},"b"]"#),
                vec!["bridge-secure-without-controller"],
            ),
            (
                format!(r#"[{none},"",{none},"secure",{controller},"b"]"#),
                vec!["bridge-without-kernel-module"],
            ),
            (
                format!(r#"[{none},"netdev",{none},"secure",{controller},"b"]"#),
                vec!["bridge-not-made"],
            ),
        ] {
            assert_eq!(names(&bridge), expected, "{bridge}");
        }
    }

    #[test]
    fn ports_that_a_spanning_tree_blocks_are_found() {
        for (status, rstp, expected) in [
            ("", "", None),
            (r#"["stp_state","forwarding"]"#, "", None),
            (r#"["stp_state","blocking"]"#, "", Some("stp_enable")),
            (r#"["stp_state","listening"]"#, "", Some("stp_enable")),
            (
                "",
                r#"["rstp_port_state","Discarding"]"#,
                Some("rstp_enable"),
            ),
            ("", r#"["rstp_port_state","Forwarding"]"#, None),
        ] {
            let printed = format!(
                r#"{{"data":[],"headings":[]}}{{"data":[],"headings":[]}}{{"data":[],"headings":[]}}
                   {{"data":[[["uuid","p"],["map",[{status}]],["map",[{rstp}]],"p1"]],"headings":["_uuid","status","rstp_status","name"]}}"#
            );
            let switch = OpenVswitch::of(&printed);
            let found = spanning_tree(switch.table("Port").first().unwrap(), "b");
            let commands = found.map(|finding| finding.commands);
            let expected =
                expected.map(|setting| vec![format!("ovs-vsctl set bridge b {setting}=false")]);
            assert_eq!(commands, expected, "{status} {rstp}");
        }
    }

    #[test]
    fn bridges_with_one_datapath_id_get_others_that_are_free() {
        let rows = [
            ("1", "a"),
            ("0000000000000001", "b"),
            ("0000000000000001", "c"),
            ("0000000000000002", "d"),
        ];
        let rows = rows
            .map(|(id, name)| format!(r#"["{id}","{name}"]"#))
            .join(",");
        let headings = r#"["datapath_id","name"]"#;
        let tables =
            format!(r#"{{"data":[],"headings":[]}}{{"data":[{rows}],"headings":{headings}}}"#);
        let found = same_datapath_ids(&OpenVswitch::of(&tables));
        assert_eq!(found.len(), 1);
        let command = "ovs-vsctl set bridge c other_config:datapath-id=0000000000000003";
        assert_eq!(found[0].commands, [command]);
    }
}
