//! Tests of mistakes on the machine: ports, firewall, limits, devices, and the configuration file.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::process::{self, Child, Command, Stdio};

use super::{examine, examine_after, find_and_fix, shell, shown, type_in};
use crate::namespace::{Host, Namespace};
use crate::process::run;
use crate::require;

/// A program with a listening socket, killed on drop.
struct Holder {
    child: Child,
    address: SocketAddr,
}

impl Holder {
    /// Listens at an address that only this test process uses, so that no other process can bind the port once it is free.
    fn new(last: u8) -> Self {
        let [.., high, low] = process::id().to_be_bytes();
        let host = Ipv4Addr::new(127, high, low, last);
        let listener = TcpListener::bind((host, 0)).expect("a socket can be had");
        let address = listener.local_addr().expect("it has an address");
        let mut command = Command::new("sleep");
        let child = command
            .arg("3600")
            .stdin(Stdio::from(OwnedFd::from(listener)))
            .spawn()
            .expect("sleep starts");
        Self { child, address }
    }

    fn listen(&self) -> String {
        format!("ptcp:{}:{}", self.address.port(), self.address.ip())
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn finds_a_port_of_another_program() {
    let holder = Holder::new(77);
    let listen = holder.listen();
    let words = [listen.as_str(), "sleep (process "];
    find_and_fix(
        &shell,
        &["ports", "--listen", &listen],
        "port-taken",
        "problem",
        &words,
    );
}

#[test]
fn finds_another_program_on_the_http_port() {
    let holder = Holder::new(78);
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let file = folder.path().join("urtica.toml");
    let text = format!(
        "programs = [\"l2\"]\nlisten = [\"ptcp:0:127.0.0.1\"]\nnorthbound = \"{}\"\n",
        holder.address
    );
    fs::write(&file, text).expect("the file can be written");
    let options = ["ports", "--config", shown(&file)];
    find_and_fix(
        &shell,
        &options,
        "http-port-taken",
        "problem",
        &["--northbound", "sleep"],
    );
}

#[test]
fn finds_addresses_that_cannot_be_bound() {
    let found = examine(&shell, &["ports", "--listen", "tcp:6653"]);
    found.commands("address-to-connect-to", "problem", &["ptcp:6653"]);
    let found = examine(&shell, &["ports", "--listen", "ptcp:6653:192.0.2.77"]);
    let commands = found.commands("address-not-here", "problem", &["192.0.2.77"]);
    assert_eq!(commands, ["urtica run l2 --listen ptcp:6653"]);
}

#[test]
fn finds_a_missing_folder_of_a_socket() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let socket = format!("punix:{}", shown(&folder.path().join("run/of.sock")));
    let options = ["ports", "--listen", &socket];
    find_and_fix(
        &shell,
        &options,
        "socket-folder-missing",
        "problem",
        &["does not exist"],
    );
    fs::write(folder.path().join("run/of.sock"), "").expect("a file can be written");
    find_and_fix(
        &shell,
        &options,
        "socket-file-taken",
        "problem",
        &["not a socket"],
    );
}

#[test]
fn finds_a_mistake_in_the_configuration_file() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let file = folder.path().join("urtica.toml");
    let text = "programs = [\"l2\"]\nlisen = [\"ptcp:0:127.0.0.1\"]\n";
    fs::write(&file, text).expect("the file can be written");
    let options = ["configuration", "--config", shown(&file)];
    let words = ["line 2", "'lisen'", "did you mean 'listen'"];
    find_and_fix(&shell, &options, "configuration-wrong", "problem", &words);
    assert_eq!(examine(&shell, &options).names("ok"), ["configuration"]);
    fs::write(&file, "programs = [\"l2\"]\nshards = \"many\"\n").expect("the file can be written");
    let commands =
        examine(&shell, &options).commands("configuration-wrong", "problem", &["line 2"]);
    assert_eq!(commands, [format!("${{EDITOR:-vi}} +2 {}", shown(&file))]);
}

#[test]
fn finds_too_few_open_files_for_the_switches() {
    let options = ["limits", "--switches", "100"];
    let found = examine_after("ulimit -n 100", &shell, &options);
    let words = ["100 files", "100 switches", "LimitNOFILE=164"];
    let commands = found.commands("too-few-open-files", "problem", &words);
    assert_eq!(commands, ["ulimit -n 164"]);
    let mended = examine_after(&commands[0], &shell, &options);
    assert_eq!(mended.names("ok"), ["open-files"]);
}

/// Finds rules of nftables with these words, and fixes them by the printed commands.
fn firewall_mistake(rules: &[&str], words: &[&str]) {
    if !require::root_and(&["ip", "nft"]) {
        return;
    }
    let room = Namespace::new();
    let shell = || room.command("sh");
    for rule in rules {
        run(room.command("nft").args(["add", rule]));
    }
    let options = ["firewall", "--listen", "ptcp:6653"];
    find_and_fix(&shell, &options, "firewall-drops", "problem", words);
    // Packets from the machine itself pass.
    let local = examine(&shell, &["firewall", "--listen", "ptcp:6633:127.0.0.1"]);
    assert_eq!(local.names("ok"), ["firewall"]);
}

#[test]
fn finds_a_firewall_rule_that_rejects_the_port() {
    let rules = [
        "table inet guard",
        "chain inet guard in { type filter hook input priority 0; policy accept; }",
        "table ip6 six",
        "chain ip6 six in { type filter hook input priority 0; policy drop; }",
        "rule inet guard in iifname lo accept",
        "rule inet guard in tcp dport 6000-6700 reject",
    ];
    let words = ["table inet guard rejects connections to port 6653"];
    firewall_mistake(&rules, &words);
}

#[test]
fn finds_a_set_of_rejected_ports() {
    let rules = [
        "table inet guard",
        "set inet guard closed { type inet_service; elements = { 6653, 7000 }; }",
        "chain inet guard more",
        "chain inet guard in { type filter hook input priority 0; policy accept; }",
        "rule inet guard more tcp dport @closed reject with tcp reset",
        "rule inet guard in iifname != lo jump more",
    ];
    firewall_mistake(&rules, &["table inet guard rejects"]);
}

#[test]
fn finds_a_firewall_that_drops_replies() {
    let rules = [
        "table inet guard",
        "chain inet guard out { type filter hook output priority 0; policy drop; }",
        "rule inet guard out oifname lo accept",
        "rule inet guard out meta l4proto { icmp, icmpv6 } accept",
    ];
    firewall_mistake(&rules, &["table inet guard drops"]);
}

#[test]
fn finds_a_firewall_that_drops_by_default() {
    let rules = [
        "table ip filter",
        "chain ip filter INPUT { type filter hook input priority 0; policy drop; }",
        "rule ip filter INPUT iif lo accept",
        "rule ip filter INPUT ct state established,related accept",
        "rule ip filter INPUT tcp dport { 22, 80 } accept",
    ];
    firewall_mistake(&rules, &["table ip filter drops"]);
}

/// The printed commands copy rules that name interfaces, and use the interface's address.
#[test]
fn finds_a_firewall_for_one_of_two_networks() {
    if !require::root_and(&["ip", "nft"]) {
        return;
    }
    let room = Namespace::new();
    for line in [
        "link add inside type veth peer name peer1",
        "link add outside type veth peer name peer2",
        "address add 10.1.0.1/24 dev inside",
        "address add 203.0.113.1/24 dev outside",
        "link set inside up",
        "link set outside up",
    ] {
        run(room.command("ip").args(line.split(' ')));
    }
    for rule in [
        "table ip edge",
        "chain ip edge in { type filter hook input priority 0; policy drop; }",
        "rule ip edge in iif inside accept",
    ] {
        run(room.command("nft").args(["add", rule]));
    }
    let shell = || room.command("sh");
    let found = examine(&shell, &["firewall", "--listen", "ptcp:6653"]);
    let words = [
        "drops connections to port 6653 from 203.0.113.3 through outside",
        "may accept",
    ];
    let commands = found.commands("firewall-drops-some", "note", &words);
    assert_eq!(
        commands,
        ["nft insert rule ip edge in tcp dport 6653 accept"]
    );
    let found = examine(&shell, &["firewall", "--listen", "ptcp:6653:10.1.0.1"]);
    assert_eq!(found.names("ok"), ["firewall"]);
    let found = examine(&shell, &["firewall", "--listen", "ptcp:6653:203.0.113.1"]);
    found.commands("firewall-drops", "problem", &["table ip edge drops"]);
}

fn iptables_mistake(shell: &dyn Fn() -> Command, room: &Namespace, words: &[&str]) {
    for rule in [
        "-A INPUT -m conntrack --ctstate ESTABLISHED -j ACCEPT",
        "-A INPUT ! -i lo -p tcp -m multiport --dports 6000,6653 -j DROP",
    ] {
        run(room.command("iptables").args(rule.split(' ')));
    }
    let options = ["firewall", "--listen", "ptcp:6653"];
    find_and_fix(&shell, &options, "firewall-drops", "problem", words);
}

#[test]
fn finds_iptables_rules_through_nft() {
    if !require::root_and(&["ip", "nft", "iptables"]) {
        return;
    }
    let room = Namespace::new();
    let words = ["table ip filter drops connections to port 6653"];
    iptables_mistake(&|| room.command("sh"), &room, &words);
}

#[test]
fn finds_iptables_rules_without_nft() {
    if !require::root_and(&["ip", "iptables", "unshare"]) {
        return;
    }
    let room = Namespace::new();
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let copy = "cp --archive /usr/sbin/. . && rm --force nft";
    run(Command::new("sh").args(["-c", copy]).current_dir(&folder));
    let script = format!(
        "mount --bind {} /usr/sbin && exec sh \"$@\"",
        shown(folder.path())
    );
    let shell = || {
        let mut command = room.command("unshare");
        command.args(["--mount", "sh", "-c", &script, "sh"]);
        command
    };
    let words = ["table iptables drops connections to port 6653"];
    iptables_mistake(&shell, &room, &words);
}

/// Checks that need root are reported, with the command that shows their result.
#[test]
fn reports_firewall_checks_that_need_root() {
    if !require::root_and(&["ip", "nft", "setpriv"]) {
        return;
    }
    let room = Namespace::new();
    let shell = || {
        let mut command = room.command("setpriv");
        command.args(["--bounding-set", "-all", "--inh-caps", "-all", "--", "sh"]);
        command
    };
    let found = examine(&shell, &["firewall", "--listen", "ptcp:6653"]);
    let words = ["were not checked", "not permitted"];
    let commands = found.commands("firewall-not-looked-at", "note", &words);
    assert_eq!(commands, ["sudo nft list ruleset"]);
}

#[test]
fn finds_devices_down_missing_or_with_a_short_mtu() {
    if !require::root_and(&["ip"]) {
        return;
    }
    let room = Namespace::new();
    let hosts = [1, 2].map(|number| Host::new(&room, number));
    let [first, second] = hosts.each_ref().map(|host| host.switch_port.as_str());
    let shell = || room.command("sh");
    run(room
        .command("ip")
        .args(["link", "set", second, "mtu", "1400"]));
    run(room.command("ip").args(["link", "set", second, "down"]));
    let options = ["mtu", "--device", first, "--device", second];
    find_and_fix(
        &shell,
        &options,
        "mtu-differs",
        "warning",
        &["1400 bytes", "1500"],
    );
    find_and_fix(&shell, &options, "device-down", "problem", &["p2 is down"]);
    let found = examine(&shell, &["mtu", "--device", "p9"]);
    type_in(
        &shell,
        &found.commands("device-missing", "problem", &["p9"]),
    );
}
