//! Tests of `urtica top` with a running controller.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};

fn urtica(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_urtica"));
    command.args(arguments).env_remove("RUST_LOG");
    command.stdin(Stdio::null());
    command
}

/// A controller, killed on drop.
struct Controller {
    child: Child,
    /// The port that switches connect to.
    openflow: String,
    /// The address of its HTTP interface.
    http: String,
}

impl Controller {
    fn start(options: &[&str]) -> Self {
        let listen = [
            "run",
            "l2",
            "--listen",
            "ptcp:0:127.0.0.1",
            "--northbound=127.0.0.1:0",
        ];
        let mut command = urtica(&[&listen[..], options].concat());
        let mut child = command
            .stderr(Stdio::piped())
            .spawn()
            .expect("urtica starts");
        let stderr = child.stderr.take().expect("it is piped");
        let mut lines = BufReader::new(stderr).lines();
        let (mut openflow, mut http) = (None, None);
        while openflow.is_none() || http.is_none() {
            let line = lines
                .next()
                .expect("it says where it listens")
                .expect("text");
            let after = |start: &str| {
                let (_, rest) = line.split_once(start)?;
                let digits = rest.chars().take_while(char::is_ascii_digit);
                Some(digits.collect::<String>()).filter(|port| !port.is_empty())
            };
            openflow = openflow.or(after("ptcp:"));
            http = http.or(after("address=127.0.0.1:"));
        }
        // Read and discard the rest of the log, so that it does not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Self {
            child,
            openflow: format!("tcp:127.0.0.1:{}", openflow.unwrap_or_default()),
            http: http.unwrap_or_default(),
        }
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the success and output of `urtica top --once`.
fn top(arguments: &[&str]) -> (bool, String, String) {
    let once = ["top", "--once", "--interval", "1"];
    let command = [&once[..], arguments].concat();
    let Output {
        status,
        stdout,
        stderr,
    } = urtica(&command).output().expect("urtica starts");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (status.success(), text(stdout), text(stderr))
}

#[test]
fn a_loaded_controller_is_shown_with_its_switches_and_rates() {
    let controller = Controller::start(&[]);
    let load = "-s 3 -l 1000000 -m 100 -w 0 --openflow 1.3";
    let mut bench = urtica(&["bench", "-c", &controller.openflow]);
    let bench = bench.args(load.split(' '));
    let bench = bench.stdout(Stdio::null()).stderr(Stdio::null());
    let mut bench = bench.spawn().expect("urtica starts");
    // For any delay of the start, one of these tables shows load.
    let is_loaded = |text: &str| {
        let rows = text.lines().filter(|line| line.starts_with("000000"));
        let rates = rows.filter_map(|row| row.split_whitespace().nth(4)?.parse::<f64>().ok());
        let rates: Vec<_> = rates.collect();
        rates.len() == 3 && rates.iter().all(|rate| *rate > 0.0)
    };
    let (mut text, mut tries) = (String::new(), 0);
    while !is_loaded(&text) && tries < 60 {
        let (went_well, told, problem) = top(&[&controller.http]);
        assert!(went_well, "{problem}");
        (text, tries) = (told, tries + 1);
    }
    let _ = bench.kill();
    let _ = bench.wait();
    assert!(is_loaded(&text), "{text}");
    for words in ["3 switches", "programs: l2", "shards busy: 0 ", "p99 "] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn tokens_are_required_and_read_from_a_file() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tokens");
    std::fs::write(&path, "0123456789abcdef0123456789abcdef\n").expect("written");
    let owner_only = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(&path, owner_only).expect("permitted");
    let file = path.to_str().expect("text");
    let controller = Controller::start(&["--northbound-tokens", file]);
    let (went_well, _, problem) = top(&[&controller.http]);
    assert!(!went_well && problem.contains("--token FILE"), "{problem}");
    let (went_well, text, problem) = top(&[&controller.http, "--token", file]);
    assert!(went_well && text.contains("0 switches"), "{text}{problem}");
    let own = folder.path().join("own");
    for text in [
        "# mine\n\nread-only 0123456789abcdef0123456789abcdef\n",
        "0123456789abcdef0123456789abcdef",
    ] {
        std::fs::write(&own, text).expect("written");
        let (went_well, _, problem) =
            top(&[&controller.http, "--token", own.to_str().expect("text")]);
        assert!(went_well, "{problem}");
    }
    std::fs::write(&own, "# none\n").expect("written");
    let (went_well, _, problem) = top(&[&controller.http, "--token", own.to_str().expect("text")]);
    assert!(
        !went_well && problem.contains("it has no token"),
        "{problem}"
    );
}

#[test]
fn names_the_flag_if_the_controller_has_no_http_interface() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("bound");
    let port = free.local_addr().expect("an address").port().to_string();
    drop(free);
    let (went_well, text, problem) = top(&[&port]);
    assert!(!went_well && text.is_empty(), "{text}");
    assert!(
        problem.contains("`urtica run l2 --northbound`"),
        "{problem}"
    );
    let (went_well, _, problem) = top(&["nowhere"]);
    assert!(!went_well && problem.contains("HOST:PORT"), "{problem}");
    let (went_well, _, problem) = top(&["1", "--token", "/none/t"]);
    assert!(
        !went_well && problem.contains("/none/t: No such file"),
        "{problem}"
    );
}
