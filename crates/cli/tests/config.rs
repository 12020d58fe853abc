//! Tests of the configuration file of `urtica run`: checks, precedence, and changes while the controller runs.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The timeout of all waits, long enough for a busy machine.
const DEADLINE: Duration = Duration::from_secs(60);

fn urtica(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_urtica"));
    command.args(arguments).stdin(Stdio::null());
    command.env_remove("RUST_LOG");
    command
}

/// A folder with a configuration in it.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new(configuration: &str) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        folder.write("urtica.toml", configuration);
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    /// Writes a file that only its owner may read.
    fn write_secret(&self, name: &str, text: &str) {
        self.write(name, text);
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o600)).unwrap();
    }

    fn configuration(&self) -> PathBuf {
        self.path("urtica.toml")
    }

    /// Returns the success and output of `urtica check`, without the folder's name.
    fn check(&self) -> (bool, String) {
        let file = self.configuration();
        let output = urtica(&["check", file.to_str().unwrap()]).output().unwrap();
        let Output { status, stderr, .. } = output;
        let said = String::from_utf8(stderr).unwrap();
        let folder = format!("{}/", self.0.path().display());
        (status.success(), said.replace(&folder, ""))
    }
}

#[test]
fn all_faults_are_reported_with_place_and_expected_value() {
    let folder = Folder::new(
        r#"programs = ["firewal", "routing", "routing"]
lisen = ["ptcp:6653"]
shards = "two"
openflow = ["1.3", 1.0]
offload = "non"
hold = 3
firewall-rules = "x"
[program.firewall]
rule = "x"
[program.hub]
[program.elephants]
share = 300
"#,
    );
    let (is_good, said) = folder.check();
    assert!(!is_good);
    let faults: Vec<_> = said
        .lines()
        .filter(|line| line.starts_with("urtica.toml:"))
        .collect();
    let expected = [
        "1:13: there is no control program 'firewal'; did you mean 'firewall'?",
        "1:35: the program 'routing' is named twice; expected each once",
        "2:1: there is no setting 'lisen'; did you mean 'listen'?",
        "3:10: shards is a string; expected a whole number",
        "4:20: openflow is a number with a point; expected an array of strings",
        "5:11: 'non' is no offload; did you mean 'none'?",
        "6:8: hold is a whole number; expected a string, true or false",
        "7:1: 'firewall-rules' is a setting of a program; expected 'rules' in [program.firewall]",
        "9:1: there is no setting 'rule' of the program firewall; did you mean 'rules'?",
        "10:10: the program 'hub' has no settings; expected one of: bandwidth, firewall, elephants, global, l2, l3, routing, security",
        "12:9: '300' is no elephants-share: 300 is not in 1..=100",
    ];
    let expected: Vec<_> = expected
        .iter()
        .map(|fault| format!("urtica.toml:{fault}"))
        .collect();
    assert_eq!(faults, expected);
    assert!(
        said.contains("    2 | lisen = [\"ptcp:6653\"]\n      | ^^^^^\n"),
        "{said}"
    );
}

#[test]
fn invalid_toml_has_one_fault() {
    let (is_good, said) = Folder::new("programs = [\"l2\"\nlisten = 3\n").check();
    assert!(!is_good);
    assert_eq!(
        said.lines()
            .filter(|line| line.starts_with("urtica.toml:2:"))
            .count(),
        1,
        "{said}"
    );
}

#[test]
fn unrunnable_programs_are_reported_at_their_position() {
    let folder = Folder::new(
        "programs = [\"firewall\", \"l2\"]\n[program.firewall]\nrules = \"/nowhere\"\n",
    );
    let (is_good, said) = folder.check();
    assert!(!is_good);
    assert!(
        said.contains("urtica.toml:1:13: the control program 'firewall' cannot run"),
        "{said}"
    );
    let folder = Folder::new("programs = [\"l2\"]\n[program.elephants]\nshare = 3\n");
    let (_, said) = folder.check();
    assert!(
        said.contains("urtica.toml:2:1: options of the control program 'elephants'"),
        "{said}"
    );
}

#[test]
fn a_valid_file_is_reported_as_valid() {
    let folder = Folder::new(
        "programs = [\"discovery\", \"l2\"]\nlisten = \"ptcp:0\"\nshards = 2\nhold = false\n",
    );
    assert_eq!(folder.check(), (true, String::new()));
    let missing = urtica(&["check", "/nowhere/urtica.toml"]).output().unwrap();
    assert_eq!(missing.status.code(), Some(1));
    let sentence = String::from_utf8(missing.stderr).unwrap();
    assert!(sentence.contains("/nowhere/urtica.toml"), "{sentence}");
}

/// Settings that are valid alone, but with which `urtica run` does not start: a file, the line and column of the value,
/// and the error.
const REFUSED: [(&str, &str, &str); 8] = [
    ("listen = [\"pssl:0\"]\n", "2:10", "uses TLS"),
    (
        "private-key = \"no.key\"\ncertificate = \"no.pem\"\nca-cert = \"ca.pem\"\n",
        "3:15",
        "no.pem",
    ),
    ("datapath-ids = \"/nowhere/ids\"\n", "2:16", "/nowhere/ids"),
    ("northbound = \"0.0.0.0:0\"\n", "2:14", "no token is set"),
    (
        "northbound = \"127.0.0.1:0\"\nnorthbound-tokens = \"FOLDER/tokens\"\n",
        "3:21",
        "others can read the tokens",
    ),
    ("control = \"/nowhere/control\"\n", "2:11", "/nowhere"),
    ("offload = \"kernel\"\n", "2:11", "hub has no kernel form"),
    (
        "hold = true\noffload = \"ring\"\n",
        "2:8",
        "--hold does not work",
    ),
];

/// Creates a folder with one of these files.
fn folder_with(settings: &str) -> Folder {
    let folder = Folder::new("");
    folder.write("tokens", "0123456789abcdef\n");
    fs::set_permissions(folder.path("tokens"), fs::Permissions::from_mode(0o644)).unwrap();
    let place = folder.0.path().to_str().unwrap();
    let settings = settings.replace("FOLDER", place);
    folder.write("urtica.toml", &format!("programs = [\"hub\"]\n{settings}"));
    folder
}

#[test]
fn check_run_and_doctor_refuse_the_same_settings() {
    for (settings, place, problem) in REFUSED {
        let folder = folder_with(settings);
        let (is_good, said) = folder.check();
        let fault = format!("urtica.toml:{place}: ");
        assert!(
            !is_good && said.contains(&fault) && said.contains(problem),
            "{settings}: {said}"
        );

        let file = folder.configuration();
        let file = file.to_str().unwrap();
        let run = urtica(&["run", "--config", file]).output().unwrap();
        let log = String::from_utf8(run.stderr).unwrap();
        assert!(
            !run.status.success() && log.contains(problem),
            "{settings}: {log}"
        );

        let doctor = urtica(&["doctor", "configuration", "--config", file]);
        let doctor = { doctor }.output().unwrap();
        let found = String::from_utf8(doctor.stdout).unwrap();
        assert!(
            !doctor.status.success() && found.contains(problem),
            "{settings}: {found}"
        );
    }
}

#[test]
fn doctor_takes_the_options_that_run_takes() {
    let folder = folder_with("");
    let tokens = folder.path("tokens");
    let tokens = tokens.to_str().unwrap();
    for (options, problem) in [
        (vec!["--northbound=0.0.0.0:0"], "no token is set"),
        (
            vec!["--northbound", "--northbound-tokens", tokens],
            "others can read the tokens",
        ),
        (vec!["--datapath-ids", "/nowhere/ids"], "/nowhere/ids"),
    ] {
        let mut doctor = urtica(&["doctor", "configuration"]);
        let output = doctor.args(&options).output().unwrap();
        let found = String::from_utf8(output.stdout).unwrap();
        assert!(found.contains(problem), "{options:?}: {found}");
    }
}

#[test]
fn sighup_and_dry_runs_refuse_the_same_settings_as_run() {
    let folder = Folder::new("");
    let control = folder.path("control");
    let named = format!("control = \"{}\"\n", control.display());
    let good = format!("{}{named}", with_programs("\"hub\""));
    folder.write("urtica.toml", &good);
    let mut running = Running::start(&folder, &[], &[]);
    running.wait_for("listening");
    let bad = format!("{}northbound = \"0.0.0.0:0\"\n", good.replace("hub", "l2"));
    folder.write("urtica.toml", &bad);
    let log = running.reload("keeping the old configuration");
    assert!(log.contains("no token is set"), "{log}");
    let file = folder.configuration();
    let dry_run = urtica(&["check", "--dry-run", file.to_str().unwrap()]).output();
    let said = String::from_utf8(dry_run.unwrap().stderr).unwrap();
    assert!(said.contains("no token is set"), "{said}");
}

#[test]
fn the_schema_names_every_setting() {
    let output = urtica(&["check", "--schema"]).output().unwrap();
    let schema: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let properties = &schema["properties"];
    assert_eq!(properties["shards"]["type"], "integer");
    assert_eq!(schema["additionalProperties"], false);
    let firewall = &properties["program"]["properties"]["firewall"];
    assert_eq!(firewall["properties"]["rules"]["type"], "string");
    let program = &properties["programs"]["items"]["enum"];
    assert!(program.as_array().unwrap().contains(&"routing".into()));
}

/// A controller with its log in a file, killed when the test ends.
struct Running {
    child: Child,
    log: PathBuf,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    fn start(folder: &Folder, options: &[&str], variables: &[(&str, &str)]) -> Self {
        let file = folder.configuration();
        let mut command = urtica(&["run", "--config", file.to_str().unwrap()]);
        command.args(options).envs(variables.iter().copied());
        Self::start_command(folder, command)
    }

    fn start_command(folder: &Folder, mut command: Command) -> Self {
        let log = folder.path("log");
        command
            .stderr(fs::File::create(&log).unwrap())
            .stdout(Stdio::null());
        let child = command.spawn().unwrap();
        let mut running = Self { child, log };
        running.wait_for("listening");
        running
    }

    fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// Waits until the log contains this text; returns the log.
    fn wait_for(&mut self, text: &str) -> String {
        let start = Instant::now();
        loop {
            let log = self.log();
            if log.contains(text) {
                return log;
            }
            let ended = self.child.try_wait().unwrap();
            assert!(
                ended.is_none() && start.elapsed() < DEADLINE,
                "no '{text}' in: {log}"
            );
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Makes the controller reload its file, and waits until the log contains this text.
    fn reload(&mut self, text: &str) -> String {
        let before = self.log().len();
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::HUP).unwrap();
        let start = Instant::now();
        loop {
            let log = self.log().split_off(before);
            if log.contains(text) {
                return log;
            }
            assert!(start.elapsed() < DEADLINE, "no '{text}' in: {log}");
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Returns the address of its northbound interface.
    fn northbound(&mut self) -> String {
        let log = self.wait_for("the northbound interface listens");
        let (_, address) = log
            .split_once("northbound interface listens address=")
            .unwrap();
        address.lines().next().unwrap().trim().to_owned()
    }

    /// Returns the port that it listens on, chosen by the system.
    fn port(&self) -> u16 {
        let log = self.log();
        let (_, rest) = log
            .split_once("address=ptcp:")
            .expect("it says where it listens");
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().unwrap()
    }
}

/// Sends a GET request with a token to the northbound interface; returns the response's status and body.
fn get(address: &str, token: &str, path: &str) -> (String, String) {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(DEADLINE)).unwrap();
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
    );
    socket.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    socket.read_to_string(&mut response).unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap();
    (status.to_owned(), body.to_owned())
}

#[test]
fn the_northbound_interface_follows_the_configuration() {
    const OLD: &str = "0123456789abcdef";
    const NEW: &str = "fedcba9876543210";
    let folder = Folder::new("");
    let secret = |name: &str, token: &str| folder.write_secret(name, token);
    let configure = |programs: &str, tokens: &str| {
        let tokens = folder.path(tokens);
        let northbound = format!(
            "northbound = \"127.0.0.1:0\"\nnorthbound-tokens = \"{}\"\n",
            tokens.display()
        );
        let text = with_programs(programs) + &northbound;
        folder.write("urtica.toml", &text);
    };
    secret("tokens", OLD);
    configure("\"discovery\", \"hub\"", "tokens");
    let mut running = Running::start(&folder, &[], &[]);
    let address = running.northbound();
    let list = |token: &str, path: &str| get(&address, token, path);
    let programs = (OLD, "/api/v1/programs");
    assert_eq!(list(programs.0, programs.1).1, "[\"discovery\",\"hub\"]");

    // Hosts are tracked at first, and no longer after the change.
    let shows = |name: &str| list(OLD, "/metrics").1.contains(&format!("urtica_{name} "));
    assert!(!shows("hosts") && shows("directed_links"));
    configure("\"hosts\", \"hub\"", "tokens");
    running.reload("reloaded the configuration");
    assert_eq!(list(programs.0, programs.1).1, "[\"hosts\",\"hub\"]");
    assert!(shows("hosts") && shows("directed_links"));
    configure("\"hub\"", "tokens");
    running.reload("reloaded the configuration");
    assert!(!shows("hosts") && !shows("directed_links"));

    // Change the file's tokens, then name another file.
    secret("tokens", NEW);
    assert_eq!(list(OLD, "/api/v1/programs").0, "200");
    running.reload("reloaded the configuration");
    assert_eq!(list(OLD, "/api/v1/programs").0, "401");
    assert_eq!(list(NEW, "/api/v1/programs").0, "200");
    secret("others", OLD);
    configure("\"hub\"", "others");
    let log = running.reload("reloaded the configuration");
    assert!(!log.contains("cannot change"), "{log}");
    assert_eq!(list(OLD, "/api/v1/programs").0, "200");
    assert_eq!(list(NEW, "/api/v1/programs").0, "401");
}

#[test]
fn tokens_are_reloaded_without_a_configuration_file() {
    const OLD: &str = "0123456789abcdef";
    const NEW: &str = "fedcba9876543210";
    let folder = Folder::new("");
    folder.write_secret("tokens", OLD);
    let tokens = folder.path("tokens");
    let mut command = urtica(&["run", "hub", "--listen", "ptcp:0:127.0.0.1"]);
    command.args(["--northbound=127.0.0.1:0", "--northbound-tokens"]);
    command.arg(tokens);
    let mut running = Running::start_command(&folder, command);
    let address = running.northbound();
    folder.write_secret("tokens", NEW);
    running.reload("reloaded the configuration");
    assert_eq!(get(&address, OLD, "/api/v1/programs").0, "401");
    assert_eq!(get(&address, NEW, "/api/v1/programs").0, "200");
}

/// Returns a 1.0 switch without ports that has joined.
fn join(port: u16) -> TcpStream {
    let mut switch = TcpStream::connect(("127.0.0.1", port)).unwrap();
    switch.set_read_timeout(Some(DEADLINE)).unwrap();
    let mut said = vec![1, 0, 0, 8, 0, 0, 0, 0];
    said.extend([1, 6, 0, 32, 0, 0, 0, 2]);
    said.extend([
        0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ]);
    switch.write_all(&said).unwrap();
    switch
}

/// Returns `true` if the controller still answers over this connection.
fn is_served(switch: &mut TcpStream) -> bool {
    switch.write_all(&[1, 2, 0, 8, 0, 0, 0, 99]).unwrap();
    let mut read = Vec::new();
    let mut buffer = [0; 4096];
    while !read
        .windows(8)
        .any(|bytes| bytes == [1, 3, 0, 8, 0, 0, 0, 99])
    {
        match switch.read(&mut buffer) {
            Ok(count) if count > 0 => read.extend_from_slice(&buffer[..count]),
            _ => return false,
        }
    }
    true
}

const LISTEN: &str = "listen = \"ptcp:0:127.0.0.1\"\nshards = 1\noffload = \"none\"\n";

fn with_programs(programs: &str) -> String {
    format!("programs = [{programs}]\n{LISTEN}")
}

#[test]
fn sighup_applies_what_differs_and_connections_stay() {
    let folder = Folder::new(&with_programs("\"hub\""));
    let mut running = Running::start(&folder, &[], &[]);
    let mut switch = join(running.port());
    running.wait_for("switch joined");
    assert!(is_served(&mut switch));

    folder.write("urtica.toml", &with_programs("\"hosts\", \"l2\""));
    let log = running.reload("reloaded the configuration");
    for change in [
        "discovery is added",
        "hosts is added",
        "l2 is added",
        "hub is removed",
    ] {
        assert!(log.contains(change), "no '{change}' in {log}");
    }
    assert!(is_served(&mut switch));

    // An invalid file changes nothing.
    folder.write("urtica.toml", "programs = [\"hubb\"]\nshard = 1\n");
    let log = running.reload("urtica.toml:2:1");
    assert!(log.contains("keeping the old configuration"), "{log}");
    assert!(log.contains("did you mean 'hub'?"), "{log}");

    // The log reports settings that cannot change; the others are applied.
    let moved = with_programs("\"hosts\", \"hub\"").replace("shards = 1", "shards = 3");
    folder.write("urtica.toml", &format!("log = \"debug\"\n{moved}"));
    let log = running.reload("reloaded the configuration");
    assert!(
        log.contains("shards cannot change while the controller runs: it stays 1"),
        "{log}"
    );
    assert!(
        log.contains("l2 is removed") && log.contains("hub is added"),
        "{log}"
    );
    let log = running.reload("no program changes");
    assert!(log.contains("it stays 1"), "again, since it is so: {log}");
    assert!(is_served(&mut switch));
    let log = running.log();
    assert_eq!(log.matches("switch joined").count(), 1, "{log}");
    assert!(
        !log.contains("switch left") && !log.contains("switch lost"),
        "{log}"
    );
}

#[test]
fn late_filters_are_reported_and_change_nothing() {
    let folder = Folder::new(&with_programs("\"l2\""));
    let mut running = Running::start(&folder, &[], &[]);
    folder.write("rules", "default allow\n");
    let rules = format!(
        "[program.firewall]\nrules = \"{}\"\n",
        folder.path("rules").display()
    );
    folder.write(
        "urtica.toml",
        &(with_programs("\"firewall\", \"l2\"") + &rules),
    );
    let log = running.reload("keeping the old configuration");
    assert!(log.contains("restart the controller"), "{log}");
    folder.write("urtica.toml", &with_programs("\"l2\""));
    running.reload("no program changes");
}

#[test]
fn the_command_line_precedes_the_environment_and_the_environment_the_file() {
    let folder = Folder::new(&format!(
        "programs = [\"hub\"]\n{LISTEN}log = \"error\"\nhold = false\n"
    ));
    let variables = [
        ("URTICA_LOG", "info"),
        ("URTICA_PROGRAMS", "l2;hosts"),
        ("URTICA_LISTEN", "ptcp:0:127.0.0.2"),
    ];
    let options = ["--listen", "ptcp:0:127.0.0.3", "--listen=ptcp:0:127.0.0.4"];
    let running = Running::start(&folder, &options, &variables);
    let log = running.log();
    assert!(
        log.contains("l2 needs") || log.contains("hosts needs discovery"),
        "{log}"
    );
    for (address, is_used) in [
        ("127.0.0.1", false),
        ("127.0.0.2", false),
        ("127.0.0.3", true),
        ("127.0.0.4", true),
    ] {
        assert_eq!(log.contains(address), is_used, "{address} in {log}");
    }
}

/// Killed when the test ends.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the output of `urtica check --dry-run`, or its error message.
fn dry_run(file: &Path) -> Result<String, String> {
    let output = urtica(&["check", "--dry-run", file.to_str().unwrap()])
        .output()
        .unwrap();
    match output.status.success() {
        true => Ok(String::from_utf8(output.stdout).unwrap()),
        false => Err(String::from_utf8(output.stderr).unwrap()),
    }
}

#[test]
fn a_dry_run_lists_changes_and_makes_none() {
    let folder = Folder::new("");
    let control = format!("control = \"{}\"\n", folder.path("control").display());
    let with = |programs: &str| with_programs(programs) + &control;
    folder.write("urtica.toml", &with("\"hub\""));
    let next = folder.path("next.toml");
    folder.write(
        "next.toml",
        &with("\"discovery\", \"hub\"").replace("shards = 1", "shards = 2"),
    );
    let sentence = dry_run(&next).unwrap_err();
    assert!(sentence.contains("no controller answers at"), "{sentence}");

    let mut running = Running::start(&folder, &[], &[]);
    let controller = format!("tcp:127.0.0.1:{}", running.port());
    let port = format!("pcap:,{}", folder.path("out.pcap").display());
    let mut switch = urtica(&["switch", &port, "--controller", &controller]);
    let _switch = Killed(switch.stderr(Stdio::null()).spawn().unwrap());
    running.wait_for("switch joined");
    let told = dry_run(&next).unwrap();
    assert!(told.starts_with("discovery is added\n"), "{told}");
    assert!(told.contains(": discovery: add "), "{told}");
    assert!(told.contains("1 flow entry would change"), "{told}");
    assert!(
        told.contains("shards cannot change while the controller runs: it stays 1"),
        "{told}"
    );
    assert!(!running.log().contains("reloaded the configuration"));
    let told = dry_run(&folder.configuration()).unwrap();
    assert_eq!(told, "no flow entry would change\n");

    // The output also lists removed programs.
    folder.write("urtica.toml", &with("\"discovery\", \"hub\""));
    running.reload("discovery is added");
    folder.write("next.toml", &with("\"hub\""));
    let start = Instant::now();
    let told = loop {
        let told = dry_run(&next).unwrap();
        if told.contains(": discovery: delete ") || start.elapsed() > DEADLINE {
            break told;
        }
    };
    assert!(told.starts_with("discovery is removed\n"), "{told}");
    assert!(told.contains("1 flow entry would change"), "{told}");
    folder.write("next.toml", "programs = [\"hub\"]\n");
    let sentence = dry_run(&next).unwrap_err();
    assert!(sentence.contains("expected control"), "{sentence}");
}

/// Returns the exit code and message of a controller that does not start.
fn refused(file: &Path, options: &[&str], variables: &[(&str, &str)]) -> (Option<i32>, String) {
    let mut command = urtica(&["run", "--config", file.to_str().unwrap()]);
    let output = command
        .args(options)
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

#[test]
fn invalid_options_are_refused_with_their_source() {
    let folder = Folder::new("programs = [\"l2\"]\nprivate-key = \"key.pem\"\n");
    let (code, sentence) = refused(&folder.configuration(), &[], &[]);
    assert_eq!(code, Some(2));
    assert!(sentence.contains("--certificate"), "{sentence}");
    folder.write("urtica.toml", LISTEN);
    let (code, sentence) = refused(&folder.configuration(), &[], &[]);
    assert_eq!(code, Some(2));
    assert!(sentence.contains("no control program given"), "{sentence}");
    let variables = [("URTICA_PROGRAMS", "l2;l22")];
    let (code, sentence) = refused(&folder.configuration(), &[], &variables);
    assert_eq!(code, Some(1));
    assert!(
        sentence.contains("URTICA_PROGRAMS") && sentence.contains("'l22'"),
        "{sentence}"
    );
    let (code, sentence) = refused(Path::new("/nowhere"), &["l2"], &[]);
    assert_eq!(code, Some(1));
    assert!(sentence.contains("/nowhere"), "{sentence}");
}
