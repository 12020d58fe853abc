//! Tests of the command line for scripts and operators: exit status, and error messages.

use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStderr, Command, Output, Stdio};

fn urtica(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_urtica"));
    command
        .args(arguments)
        .env_remove("RUST_LOG")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs a command that must fail; returns its message on standard error.
fn refusal(arguments: &[&str]) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = urtica(arguments).output().unwrap();
    assert!(!status.success(), "{arguments:?} was accepted");
    assert!(
        stdout.is_empty(),
        "an error was printed as if it were output"
    );
    String::from_utf8(stderr).unwrap()
}

/// A controller that listens on a port chosen by the system.
struct Running {
    child: Child,
    stderr: BufReader<ChildStderr>,
    port: u16,
}

impl Running {
    fn start() -> Self {
        Self::start_programs("l2").0
    }

    /// Starts the controller with these programs. Also returns its log up to the start of listening.
    fn start_programs(programs: &str) -> (Self, String) {
        Self::start_with(programs, &[])
    }

    /// Like `start_programs`, with these options.
    fn start_with(programs: &str, options: &[&str]) -> (Self, String) {
        Self::spawn(urtica(&Self::arguments(programs, options)))
    }

    /// Like `start_with`, without root's capabilities.
    fn start_unprivileged(programs: &str, options: &[&str]) -> (Self, String) {
        let plain = urtica(&Self::arguments(programs, options));
        if !rustix::process::geteuid().is_root() {
            return Self::spawn(plain);
        }
        let mut command = Command::new("setpriv");
        command
            .args(["--bounding-set", "-all", "--inh-caps", "-all", "--"])
            .arg(plain.get_program())
            .args(plain.get_args())
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .stderr(Stdio::piped());
        Self::spawn(command)
    }

    fn arguments<'a>(programs: &'a str, options: &[&'a str]) -> Vec<&'a str> {
        let listen = ["--listen", "ptcp:0:127.0.0.1", "--shards", "1"];
        [&["run", programs], &listen[..], options].concat()
    }

    fn spawn(mut command: Command) -> (Self, String) {
        let mut child = command.spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        let port = loop {
            let before = said.len();
            let read = stderr.read_line(&mut said).unwrap();
            assert!(read > 0, "expected to be told where it listens: {said}");
            let port = said[before..]
                .split_once("ptcp:")
                .and_then(|(_, rest)| rest.split(':').next()?.parse().ok());
            if let Some(port) = port {
                break port;
            }
        };
        let running = Self {
            child,
            stderr,
            port,
        };
        (running, said)
    }

    /// Reads the log until it contains this text.
    fn read_until(&mut self, text: &str, said: &mut String) {
        while !said.contains(text) {
            let read = self.stderr.read_line(said).unwrap();
            assert!(read > 0, "expected {text}: {said}");
        }
    }

    /// Ends the controller by a signal; returns the rest of its log.
    fn end_by(mut self, signal: Signal) -> String {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        let mut said = String::new();
        self.stderr.read_to_string(&mut said).unwrap();
        let status = self.child.wait().unwrap();
        assert!(
            status.success(),
            "it ended with {status} after {signal:?}: {said}"
        );
        said
    }
}

#[test]
fn signals_end_the_controller_in_order() {
    for signal in [Signal::INT, Signal::TERM] {
        let running = Running::start();
        let mut switch = TcpStream::connect(("127.0.0.1", running.port)).unwrap();
        let mut hello = [0; 8];
        switch.read_exact(&mut hello).unwrap();
        assert_eq!(hello[..2], [4, 0]);
        let said = running.end_by(signal);
        assert!(said.contains("stopping"), "{said}");
        assert!(
            said.contains("connections=1"),
            "what it did is told: {said}"
        );
        // The switch notices by the end of its connection.
        switch.read_to_end(&mut Vec::new()).unwrap();
    }
}

#[test]
fn an_unknown_program_is_refused_with_the_known_ones() {
    let known: Vec<_> = urtica_apps::names().collect();
    assert_eq!(
        refusal(&["run", "l2,l2000"]),
        format!(
            "urtica: there is no control program 'l2000'; expected one of: {}\n",
            known.join(", ")
        )
    );
}

#[test]
fn only_l2_alone_and_l3_answer_in_the_kernel() {
    for programs in [
        "hub",
        "l2,hub",
        "discovery,l2",
        "firewall,l3",
        "l3,security",
    ] {
        assert_eq!(
            refusal(&["run", programs, "--offload", "kernel"])
                .lines()
                .last(),
            Some(&*format!(
                "urtica: --offload kernel: {programs} has no kernel form; expected l2, alone, or l3 before a program that forwards the rest, or --offload none"
            ))
        );
    }
    let refused = refusal(&["run", "l2", "--offload", "kernel", "--bandwidth-paths", "4"]);
    assert!(refused.contains("but it does not run"), "{refused}");
}

#[test]
fn the_kernel_settles_only_for_services() {
    assert_eq!(
        refusal(&["run", "l2", "--offload", "driven"])
            .lines()
            .last(),
        Some(
            "urtica: --offload driven: l2 runs without services; expected a program that brings discovery along, such as routing, or --offload none"
        )
    );
    let refused = refusal(&["run", "security,routing", "--offload", "driven"]);
    assert!(refused.contains("security must see"), "{refused}");
}

#[test]
fn logs_whether_the_kernel_half_is_active() {
    for mode in ["auto", "kernel"] {
        let (mut running, mut said) = Running::start_with("l2", &["--offload", mode]);
        running.read_until("the kernel half is", &mut said);
        said += &running.end_by(Signal::INT);
        let lines = said.matches("the kernel half is").count();
        assert_eq!(lines, 1, "{said}");
    }
    let mut subnets = tempfile::NamedTempFile::new().unwrap();
    let interface = "[[interface]]\naddress = \"10.0.1.254/24\"\nmac = \"02:00:00:00:01:fe\"";
    subnets.write_all(interface.as_bytes()).unwrap();
    let file = subnets.path().to_str().unwrap();
    for (programs, mode) in [("l3", "auto"), ("l3,routing", "kernel")] {
        let options = ["--l3-config", file, "--offload", mode];
        let (mut running, mut said) = Running::start_with(programs, &options);
        running.read_until("the kernel half is", &mut said);
        said += &running.end_by(Signal::INT);
        let lines = said.matches("the kernel half is").count();
        assert_eq!(lines, 1, "{said}");
    }
    let (running, said) = Running::start_with("routing", &["--offload", "driven"]);
    assert_eq!(said.matches("the kernel half is").count(), 1, "{said}");
    running.end_by(Signal::INT);
    let (running, said) = Running::start_with("discovery,l2", &["--offload", "ring"]);
    assert_eq!(said.matches("rings are").count(), 1, "{said}");
    running.end_by(Signal::INT);
    // By default no program has a kernel half, and programs other than these never have one; the log mentions none.
    for (programs, options) in [
        ("l2", &[][..]),
        ("l2", &["--offload", "none"]),
        ("hub", &[]),
        ("hub", &["--offload", "auto"]),
    ] {
        let (running, said) = Running::start_with(programs, options);
        assert!(
            !said.contains("kernel half") && !said.contains("rings"),
            "{said}"
        );
        running.end_by(Signal::INT);
    }
}

/// Without the privilege the program answers alone; the log warns only if the kernel half was requested.
#[test]
fn reports_a_machine_without_kernel_half() {
    for (program, mode, level) in [
        ("l2", "auto", " INFO "),
        ("l2", "kernel", " WARN "),
        ("routing", "driven", " WARN "),
    ] {
        let (running, said) = Running::start_unprivileged(program, &["--offload", mode]);
        let line = said.lines().find(|line| line.contains("kernel half is"));
        let line = line.expect("one line tells it");
        assert!(line.contains(level), "{line}");
        assert!(line.contains("not active"), "{line}");
        assert!(line.ends_with("the program answers alone"), "{line}");
        running.end_by(Signal::INT);
    }
}

#[test]
fn errors_name_the_missing_option() {
    assert_eq!(
        refusal(&["run", "routing,firewall"]).lines().last(),
        Some(
            "urtica: the control program 'firewall' cannot run: it needs its rules; expected --firewall-rules FILE"
        )
    );
    assert!(refusal(&["run", "l2,l2"]).contains("was named twice"));
}

#[test]
fn options_of_a_program_that_does_not_run_are_refused() {
    let rules = ["--firewall-rules", "/nowhere"];
    for (name, option) in [
        ("firewall", &rules[..]),
        ("l3", &["--l3-config", "/nowhere"]),
        ("global", &["--global-write-each"]),
        ("bandwidth", &["--bandwidth-paths", "4"]),
        ("bandwidth", &["--bandwidth-best-effort"]),
        ("security", &["--security-ports", "100"]),
        ("elephants", &["--elephants-share", "10"]),
    ] {
        let expected = format!(
            "urtica: options of the control program '{name}' (--{name}-…) were given, but it does not run; expected {name} \
             among the programs, or none of its options\n"
        );
        assert_eq!(refusal(&[&["run", "l2"], option].concat()), expected);
        let net = [&["net", "single,2", "--apps", "l2"], option].concat();
        assert_eq!(refusal(&net), expected);
    }
    let beside_discovery = refusal(&["run", "discovery,global-stm", "--global-write-each"]);
    assert!(
        beside_discovery.contains("one of the two"),
        "{beside_discovery}"
    );
    let alone = refusal(&[&["net", "single,2"], &rules[..]].concat());
    assert!(alone.contains("'firewall'"), "{alone}");
}

#[test]
fn programs_without_forwarding_are_reported() {
    for (programs, expected) in [
        ("security", Some("no program forwards packets: hosts will")),
        (
            "discovery,hosts",
            Some("no program forwards packets: hosts"),
        ),
        (
            "bandwidth",
            Some("no program forwards packets but flows with a demand (bandwidth): hosts will"),
        ),
        ("bandwidth,l2", None),
        ("security,routing", None),
    ] {
        let (running, said) = Running::start_programs(programs);
        running.end_by(Signal::TERM);
        assert_eq!(
            said.contains("no program forwards"),
            expected.is_some(),
            "{said}"
        );
        assert!(said.contains(expected.unwrap_or_default()), "{said}");
        if expected.is_some() {
            assert!(
                said.contains("expected one of these programs, too: hub, l2, global"),
                "{said}"
            );
        }
    }
}

#[test]
fn bandwidth_without_a_demand_is_reported() {
    let (running, said) = Running::start_programs("bandwidth,routing");
    running.end_by(Signal::TERM);
    assert!(said.contains("reserves nothing"), "{said}");
    assert!(said.contains("expected --bandwidth-demand"), "{said}");
}

#[test]
fn a_missing_program_is_reported() {
    assert!(refusal(&["run"]).contains("no control program given"));
}

#[test]
fn an_unknown_flag_or_command_is_refused_by_name() {
    assert!(refusal(&["run", "l2", "--spanning-tree"]).contains("'--spanning-tree'"));
    assert!(refusal(&["dance"]).contains("'dance'"));
}

#[test]
fn invalid_values_are_refused_with_the_expected_ones() {
    for (arguments, expected) in [
        (["--listen", "6653"], "ptcp:[PORT][:HOST]"),
        (
            ["--listen", "pssl:6653"],
            "uses TLS, which needs a private key",
        ),
        (
            ["--listen", "tcp:127.0.0.1"],
            "which is an address to connect to; to listen there use ptcp:6653:127.0.0.1",
        ),
        (["--listen", "tcp:6653"], "to listen there use ptcp:6653\n"),
        (["--listen", "tcp:[::1]:7"], "use ptcp:7:[::1]"),
        (["--listen", "unix:/s"], "use punix:/s"),
        (["--openflow", "1.4"], "expected 1.0 or 1.3"),
        (["--shards", "0"], "1..=1024"),
        (["--shards", "many"], "invalid digit"),
    ] {
        let sentence = refusal(&[&["run", "l2"][..], &arguments].concat());
        assert!(sentence.contains(expected), "{arguments:?}: {sentence}");
    }
}

#[test]
fn a_port_in_use_is_named() {
    let other = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = format!("ptcp:{}:127.0.0.1", other.local_addr().unwrap().port());
    let said = refusal(&["run", "l2", "--listen", &address]);
    let sentence = said.lines().last().expect("a reason");
    let expected = format!("urtica: cannot listen at {address}: the address is in use;");
    assert!(sentence.starts_with(&expected), "{sentence}");
}

#[test]
fn help_names_the_programs() {
    let output = urtica(&["run", "--help"]).output().unwrap();
    assert!(output.status.success());
    let help = String::from_utf8(output.stdout).unwrap();
    for name in ["hub", "l2"] {
        assert!(help.contains(&format!("  {name} ")), "{help}");
    }
}

#[test]
fn invalid_flows_are_refused_with_the_expected_input() {
    for (arguments, expected) in [
        (
            &["add", "tcp:127.0.0.1:1"][..],
            "nothing to add; expected an entry or --file",
        ),
        (
            &["add", "tcp:127.0.0.1:1", "in_port=one,actions=drop"],
            "'in_port=one,actions=drop': column 9",
        ),
        (&["add", "tcp:127.0.0.1:1", "in_port=1"], "actions="),
        (
            &["add", "tcp:127.0.0.1:1", "--file", "/nowhere"],
            "/nowhere: ",
        ),
        (
            &["add-group", "tcp:127.0.0.1:1", "group_id=1,type=some"],
            "type",
        ),
        (
            &["dump", "tcp:127.0.0.1:1", "nw_dst=10.0.0.256"],
            "10.0.0.256",
        ),
        (&["dump", "ptcp:6653"], "expected one to connect to"),
        (&["dump", "nobridge"], "there is no bridge 'nobridge' in "),
        (&["dump-flows", "ptcp:6653"], "expected one to connect to"),
        (
            &["add-flow", "tcp:127.0.0.1:1", "in_port=eth1,actions=drop"],
            "'eth1' is not a port; expected a number",
        ),
        (
            &["add-flow", "tcp:127.0.0.1:1", "actions=output:eth1"],
            "if it is a port's name, its number cannot be read from the switch: cannot connect to tcp:127.0.0.1:1",
        ),
        (
            &["show", "tcp:127.0.0.1:1"],
            "expected a switch that listens there",
        ),
        (
            &["show", "-O", "1.4", "tcp:127.0.0.1:1"],
            "expected 1.0 or 1.3",
        ),
    ] {
        let sentence = refusal(&[&["flows"], arguments].concat());
        assert!(sentence.contains(expected), "{arguments:?}: {sentence}");
    }
}

/// Like other tools, commands end without a message when their pipe is closed, as in `| head`.
#[test]
fn a_closed_pipe_ends_every_command_silently() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let flows = file("flows.txt", "in_port=1,actions=output:2\n");
    for arguments in [
        &["net", "single,2", "--ping-all", "--simulated"][..],
        &[
            "net",
            "single,2",
            "--apps",
            "l2",
            "--trace",
            "--simulated",
            "--seconds",
            "9",
        ],
        &["net", "simulate", "--seed", "1", "--topology", "single,2"],
        &[
            "net",
            "simulate",
            "--seed",
            "1",
            "--topology",
            "single,2",
            "--trace",
        ],
        &["demo", "--plain", "--simulated", "--topology", "ring,3"],
        &["decode", "04000008 00000001"],
        &["trace", "--flows", &flows, "in_port=1"],
        &["switch", "--explain", &flows],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let Output { status, stderr, .. } = urtica(arguments).stdout(writer).output().unwrap();
        let stderr = String::from_utf8(stderr).unwrap();
        assert_eq!(
            status.signal(),
            Some(Signal::PIPE.as_raw()),
            "{arguments:?}: {status}: {stderr}"
        );
        assert!(!stderr.contains("pipe"), "{arguments:?}: {stderr}");
    }
}

/// A controller keeps running after the pipe of its log is closed.
#[test]
fn an_unread_log_does_not_end_the_program() {
    let running = Running::start();
    let Running {
        mut child,
        stderr,
        port,
    } = running;
    drop(stderr);
    for _ in 0..3 {
        let mut switch = TcpStream::connect(("127.0.0.1", port)).unwrap();
        switch.write_all(&[4, 0, 0, 3, 0, 0, 0, 0]).unwrap();
        switch.read_to_end(&mut Vec::new()).unwrap();
    }
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let status = child.wait().unwrap();
    assert!(status.success(), "{status}");
}

#[test]
fn entries_are_explained_from_a_file_or_standard_input() {
    let mut command = urtica(&["switch", "--explain", "-"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let entries = b"# two ports\n\nin_port=1,actions=output:2\nin_port=2,actions=output:1\n";
    child.stdin.take().unwrap().write_all(entries).unwrap();
    let Output { status, stdout, .. } = child.wait_with_output().unwrap();
    assert!(status.success());
    let told = String::from_utf8(stdout).unwrap();
    assert!(
        told.contains("table 0: direct code\n  why: 2 entries;"),
        "{told}"
    );
    assert!(told.contains("actions: output:* (2 entries)"), "{told}");
    assert!(!told.contains("code of"), "{told}");
}

#[test]
fn unexplainable_input_is_refused_with_a_message() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bad.txt");
    std::fs::write(&file, "in_port=1,actions=output:2\nin_prt=1,actions=drop\n").unwrap();
    let bad = file.to_str().unwrap();
    for (arguments, expected) in [
        (
            &["switch", "--explain", bad][..],
            "bad.txt:2: column 1: 'in_prt'",
        ),
        (&["switch", "--explain", "/nowhere"], "/nowhere: "),
        (&["switch", "--explain-code"], "<FILE|->"),
        (
            &["switch", "--explain-code", bad, "--explain", bad],
            "cannot be used with",
        ),
        (&["switch", "--explain", bad, "eth1"], "cannot be used with"),
    ] {
        let sentence = refusal(arguments);
        assert!(sentence.contains(expected), "{arguments:?}: {sentence}");
    }
}

/// Returns a capture of a 1.3 barrier request to port 6653.
fn capture() -> Vec<u8> {
    let ip = "450000300001000040060000 0a000001 0a000002";
    let tcp = "a8ca 19fd 00000064 00000001 5018ffff00000000";
    let frame = format!("{}0800{ip}{tcp}0414000800000001", "00".repeat(12));
    let digits: Vec<u8> = frame.bytes().filter(u8::is_ascii_hexdigit).collect();
    let frame: Vec<u8> = digits
        .chunks_exact(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect();
    let mut file = pcap_file::pcap::PcapWriter::new(Vec::new()).unwrap();
    let packet = pcap_file::pcap::PcapPacket::new(Default::default(), frame.len() as u32, &frame);
    file.write_packet(&packet).unwrap();
    file.into_writer()
}

#[test]
fn captures_are_decoded_and_undecodable_messages_fail() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, part) = (folder.path().join("whole"), folder.path().join("part"));
    std::fs::write(&whole, capture()).unwrap();
    std::fs::write(&part, &capture()[..90]).unwrap();
    let (whole, part) = (whole.to_str().unwrap(), part.to_str().unwrap());

    let output = urtica(&["decode", whole]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let printed = String::from_utf8(output.stdout).unwrap();
    assert_eq!(
        printed,
        "10.0.0.1:43210 > 10.0.0.2:6653: OFPT_BARRIER_REQUEST (OF1.3) (xid=0x1):\n"
    );
    for (arguments, expected) in [
        (
            &["decode", "--port", "6633", whole][..],
            "is from or to port 6633; its connections are from and to port 6653 (1 segment)",
        ),
        (&["decode", part], "(packets read: 0; bytes read: 24 of 90)"),
    ] {
        let sentence = refusal(arguments);
        assert!(sentence.contains(expected), "{sentence}");
    }
}
