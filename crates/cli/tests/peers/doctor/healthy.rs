//! Tests of valid set-ups, and of the doctor's output for people.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{URTICA, examine, shell};
use crate::controller::{Controller, TLS_TARGET};
use crate::namespace::{Host, Namespace};
use crate::openvswitch::{OpenVswitch, TOOLS};
use crate::pki::{self, Pki};
use crate::process::run;
use crate::require;

#[test]
fn a_network_by_the_guide_has_no_problem() {
    if !require::root_and(&[TOOLS, &[pki::TOOL, "ss"]].concat()) {
        return;
    }
    let pki = Pki::new(&[("ctl", "controller"), ("s1", "switch")]);
    let files = pki::options(&pki.controller("ctl"));
    let files: Vec<_> = files.iter().map(String::as_str).collect();
    let room = Namespace::new();
    let hosts = [1, 2].map(|number| Host::new(&room, number));
    let ports = hosts.each_ref().map(|host| host.switch_port.as_str());
    let switch = OpenVswitch::start(&room);
    let mut command = switch.command("ovs-vsctl");
    run(command
        .args(["--timeout=120", "set-ssl"])
        .args(pki.switch("s1")));
    let controller = Controller::urtica_tls(&room, &files);
    switch.add_bridge("s1", "OpenFlow13", TLS_TARGET, &ports);
    switch.wait_connected();
    let shell = || switch.command("sh");
    let options = [
        &["--listen", "pssl:6653:127.0.0.1", "--switches", "10"][..],
        &files,
    ]
    .concat();
    let found = examine(&shell, &options);
    assert_eq!(found.problems(), 0, "{found:#?}");
    assert!(found.find("port-taken-by-urtica").is_some(), "{found:#?}");
    let ok = found.names("ok");
    for name in ["openvswitch", "certificates", "mtu", "open-files"] {
        assert!(ok.contains(&name), "no {name}: {found:#?}");
    }
    // The machine's own warnings do not concern this network.
    let warnings = found.names("warning");
    let others: Vec<_> = warnings
        .iter()
        .filter(|name| **name != "clock-not-synchronised")
        .collect();
    assert!(others.is_empty(), "{found:#?}");
    controller.interrupt();
    let found = examine(&shell, &["ports", "--listen", "pssl:6653:127.0.0.1"]);
    assert_eq!(found.names("ok"), ["ports-free"]);
}

#[test]
fn prints_messages_and_commands() {
    let mut command = Command::new(URTICA);
    command.args([
        "doctor",
        "ports",
        "configuration",
        "--listen",
        "ptcp:0:192.0.2.77",
    ]);
    let output = command.output().expect("urtica starts");
    assert_eq!(output.status.code(), Some(1));
    let printed = String::from_utf8(output.stdout).expect("text");
    let lines: Vec<_> = printed.lines().collect();
    assert!(
        lines[0].starts_with("problem: ptcp:0:192.0.2.77: no interface"),
        "{printed}"
    );
    assert!(lines[0].ends_with(" [address-not-here]"), "{printed}");
    assert_eq!(lines[1], "    urtica run l2 --listen ptcp:0");
    assert_eq!(lines.last(), Some(&"problems: 1, warnings: 0"));
}

#[test]
fn invalid_input_is_refused_with_a_message() {
    for (arguments, words) in [
        (&["--listen", "localhost"][..], "ptcp:[PORT][:HOST]"),
        (&["teeth"], "openvswitch"),
        (&["--switches", "many"], "--switches"),
        (&["--private-key", "k"], "--certificate"),
    ] {
        let mut command = Command::new(URTICA);
        let output = command.arg("doctor").args(arguments).output();
        let output = output.expect("urtica starts");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
    let found = examine(
        &shell,
        &["configuration", "ports", "--config", "/none/urtica.toml"],
    );
    found.commands(
        "configuration-unreadable",
        "problem",
        &["/none/urtica.toml", "expected a file"],
    );
}

/// Returns the names of findings in a source: the first argument of each constructor.
fn names_in(source: &str) -> Vec<String> {
    let makers = [
        "Finding::note(",
        "Finding::warning(",
        "Finding::problem(",
        "Advice::new(",
    ];
    let without_tests = source.split("#[cfg(test)]").next().unwrap_or(source);
    let places = makers
        .iter()
        .flat_map(|maker| without_tests.split(maker).skip(1));
    let names = places.filter_map(|rest| rest.trim_start().strip_prefix('"')?.split('"').next());
    names.map(str::to_owned).collect()
}

#[test]
fn the_guide_lists_every_finding() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let guide = fs::read_to_string(root.join("../../docs/operating.md")).expect("the guide");
    let mut folders = vec![root.join("../doctor/src")];
    let mut names = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder").flatten() {
            match entry.path() {
                path if path.is_dir() => folders.push(path),
                path => names.extend(names_in(&fs::read_to_string(path).expect("a source"))),
            }
        }
    }
    assert!(names.len() > 50, "{names:?}");
    for name in names
        .iter()
        .filter(|name| !name.ends_with("-not-looked-at"))
    {
        assert!(
            guide.contains(&format!("`{name}`")),
            "docs/operating.md has no `{name}`"
        );
    }
}
