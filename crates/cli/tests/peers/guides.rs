//! Executes the commands of the guides on a machine with Open vSwitch, and compares their output.

mod blocks;
mod machine;

use std::fs;
use std::path::{Path, PathBuf};

use self::blocks::blocks;
use self::machine::Machine;
use crate::controller::PYTHON;
use crate::namespace::{Host, Namespace};
use crate::process::run;
use crate::{openvswitch, pki, require};

/// The suffix of guides written by the measuring tools, whose commands `make` runs.
const WRITTEN_BY_TOOLS: &str = "-figures.md";
/// A guide whose commands `tools/package-test` executes on its own machine.
const TYPED_ELSEWHERE: &str = "docs/start.md";

/// Guides without a block that this test runs; each block gives the reason.
const NOT_RUN: [&str; 4] = [
    "docs/bench-switch.md",
    "docs/python.md",
    "docs/ryu.md",
    "docs/web.md",
];

/// The firewall's rules that guides assume.
const FIREWALL_RULES: &str = "deny tcp,tp_dst=22\ndefault allow\n";
const WRONG_RULES: &str = "allow icmp\ndeny  tpc,tp_dst=22\ndefault allow\n";
const WRONG_CONFIGURATION: &str = "programs = [\"l2\"]\nlisen = [\"ptcp:6653\"]\n";
const TLS_CONFIGURATION: &str = r#"programs = ["l2"]
listen = ["pssl:6653"]
northbound = "127.0.0.1:8080"
private-key = "/etc/urtica/ctl-privkey.pem"
certificate = "/etc/urtica/ctl-cert.pem"
ca-cert = "/etc/urtica/pki/switchca/cacert.pem"
"#;
const TOKENS: &str = "4f9ec7d0b6a1c5e2d3b8a7f60912c4de\n";

/// Defines a test for each guide, and their list.
macro_rules! guides {
    ($($test:ident: $path:literal $(, $prepare:expr)?;)*) => {
        const GUIDES: &[&str] = &[$($path),*];
        $(
            #[test]
            fn $test() {
                let prepare: &[fn(&mut Machine<'_>)] = &[$($prepare)?];
                follow($path, prepare);
            }
        )*
    };
}

guides! {
    readme: "README.md";
    apps: "docs/apps.md", prepare_apps;
    bandwidth: "docs/apps/bandwidth.md";
    bench: "docs/bench.md";
    capture: "docs/capture.md", prepare_capture;
    compiler: "docs/compiler.md";
    compiler_code: "docs/compiler-code.md";
    decode: "docs/decode.md";
    elephants: "docs/apps/elephants.md";
    flows: "docs/flows.md", prepare_flows;
    l3: "docs/apps/l3.md", prepare_l3;
    net: "docs/net.md", prepare_net;
    northbound: "docs/northbound.md";
    operating: "docs/operating.md", prepare_operating;
    rest: "docs/apps/rest.md";
    security: "docs/apps/security.md";
    switch: "docs/switch.md", prepare_switch;
    top: "docs/top.md", prepare_top;
}

fn prepare_apps(machine: &mut Machine<'_>) {
    machine.write("rules", FIREWALL_RULES);
    machine.write("new-rules", WRONG_RULES);
}

fn prepare_capture(machine: &mut Machine<'_>) {
    machine.enter("ovs-pki init");
    machine.enter("urtica run l2");
}

fn prepare_flows(machine: &mut Machine<'_>) {
    machine.enter("ovs-vsctl del-controller s1 -- set-fail-mode s1 standalone");
}

fn prepare_l3(machine: &mut Machine<'_>) {
    machine.write("subnets.toml", &toml_of("docs/apps/l3.md"));
}

fn prepare_net(machine: &mut Machine<'_>) {
    machine.write("net.toml", &toml_of("docs/net.md"));
    machine.enter("urtica run l2");
}

/// Prepares the findings of the last commands of the guide.
fn prepare_operating(machine: &mut Machine<'_>) {
    machine.write("urtica.toml", WRONG_CONFIGURATION);
    machine.write("etc.toml", TLS_CONFIGURATION);
    machine.enter("install -m 600 etc.toml /etc/urtica/urtica.toml");
    machine.enter("ovs-pki --dir=/etc/urtica/pki init && cd /etc/urtica && ovs-pki --dir=pki req+sign ctl controller");
    machine.enter("ovs-vsctl del-br s1 -- set-fail-mode br0 standalone");
    machine.enter("python3 -m http.server --bind 127.0.0.1 8080");
}

/// Prepares for the switch, which creates its own interface of this name.
fn prepare_switch(machine: &mut Machine<'_>) {
    machine.enter("ovs-vsctl del-br br0");
}

fn prepare_top(machine: &mut Machine<'_>) {
    machine.write("tokens", TOKENS);
    machine.enter("install -m 600 tokens /etc/urtica/tokens");
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn text(path: &str) -> String {
    fs::read_to_string(root().join(path)).expect(path)
}

fn follow(path: &str, prepare: &[fn(&mut Machine<'_>)]) {
    let blocks = blocks(&text(path));
    let run: Vec<_> = blocks
        .iter()
        .filter(|block| block.not_run.is_none())
        .collect();
    assert!(
        !run.is_empty(),
        "{path} has nothing to run: it belongs to NOT_RUN"
    );
    let needed = [
        openvswitch::TOOLS,
        &[pki::TOOL, "nsenter", "ping", "ss", "curl", PYTHON],
    ]
    .concat();
    if !require::root_and(&needed) {
        return;
    }
    let room = Namespace::with_own_files();
    let other = Namespace::new();
    connect(&room, &other);
    let hosts = [1, 2].map(|number| Host::new(&room, number));
    let mut machine = Machine::new(&room, &other, &hosts);
    machine.link("examples");
    for prepare in prepare {
        prepare(&mut machine);
    }
    for block in run {
        machine.follow(block);
    }
}

/// Gives the machine the interfaces `eth1` to `eth4`, and a cable to another machine.
fn connect(room: &Namespace, other: &Namespace) {
    let script = format!(
        "for n in 1 2 3 4; do ip link add eth$n type veth peer name peer$n; ip link set eth$n up; ip link set peer$n up; done
         ip link add cable type veth peer name cable netns {}; ip addr add 192.0.2.1/24 dev cable; ip link set cable up",
        other.name()
    );
    run(room.command("sh").args(["-ec", &script]));
    let script = "ip addr add 192.0.2.2/24 dev cable && ip link set cable up";
    run(other.command("sh").args(["-ec", script]));
}

/// Returns the first configuration in a guide.
fn toml_of(path: &str) -> String {
    let guide = text(path);
    let (_, rest) = guide.split_once("```toml\n").expect("a configuration");
    let (shown, _) = rest.split_once("```").expect("its end");
    shown.into()
}

/// A guide missing from the list would not be tested.
#[test]
fn each_guide_with_commands_is_in_the_list() {
    let mut paths = vec![PathBuf::from("README.md")];
    for folder in ["docs", "docs/apps"] {
        let files = fs::read_dir(root().join(folder)).expect(folder);
        let names = files.map(|file| file.expect("a file").file_name());
        paths.extend(names.map(|name| Path::new(folder).join(name)));
    }
    let paths = paths
        .iter()
        .map(|path| path.to_str().expect("a plain name"));
    let guides = paths.filter(|path| path.ends_with(".md") && !path.ends_with(WRITTEN_BY_TOOLS));
    let typed = guides.filter(|path| !["docs/figures.md", TYPED_ELSEWHERE].contains(path));
    let mut expected: Vec<&str> = typed
        .filter(|path| !blocks(&text(path)).is_empty())
        .collect();
    expected.sort_unstable();
    let mut listed = [GUIDES, &NOT_RUN].concat();
    listed.sort_unstable();
    assert_eq!(listed, expected);
}

/// A guide with a block that can run must be in the list.
#[test]
fn guides_that_are_not_run_give_a_reason_for_each_block() {
    for path in NOT_RUN {
        for block in blocks(&text(path)) {
            let reason = block.not_run.unwrap_or_default();
            assert!(!reason.is_empty(), "{path}, line {}", block.line);
        }
    }
}
