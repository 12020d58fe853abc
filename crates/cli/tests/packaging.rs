//! Tests of the parts of packages: version, completions, manual pages, and the notification of the service manager.

use std::collections::BTreeSet;
use std::io::Write;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

fn urtica(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_urtica"));
    command.args(arguments).stdin(Stdio::null());
    command
}

fn stdout(arguments: &[&str]) -> String {
    let Output { status, stdout, .. } = urtica(arguments).output().unwrap();
    assert!(status.success(), "{arguments:?} failed");
    String::from_utf8(stdout).unwrap()
}

/// Killed when the test ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_long_version_lists_compiled_features() {
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(stdout(&["-V"]), format!("urtica {version}\n"));
    let long = stdout(&["--version"]);
    assert!(long.starts_with(&format!("urtica {version}\n")), "{long}");
    for line in [
        "OpenFlow: ",
        "TLS: yes",
        "kernel half: ",
        if cfg!(feature = "web") {
            "page: yes\n"
        } else {
            "page: no, since the feature web is not enabled: "
        },
        "switch: ",
        "built for ",
    ] {
        assert!(long.contains(&format!("\n{line}")), "no '{line}' in {long}");
    }
}

#[test]
fn completions_know_the_subcommands_and_their_options() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = stdout(&["completions", shell]);
        for word in ["urtica", "switch", "fail-mode", "simulate"] {
            assert!(script.contains(word), "no {word} for {shell}");
        }
    }
    let refused = urtica(&["completions", "csh"]).output().unwrap();
    assert!(!refused.status.success());
    let sentence = String::from_utf8(refused.stderr).unwrap();
    assert!(sentence.contains("bash"), "it names the shells: {sentence}");
}

#[test]
fn bash_accepts_its_completions() {
    let script = stdout(&["completions", "bash"]);
    let complete = format!(
        "{script}\nCOMP_WORDS=(urtica sw)\nCOMP_CWORD=1\n_urtica urtica sw urtica\necho \"${{COMPREPLY[@]}}\""
    );
    // Passed by standard input, since the script is longer than an argument may be.
    let mut bash = Command::new("bash")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = bash.stdin.take().unwrap();
    stdin.write_all(complete.as_bytes()).unwrap();
    drop(stdin);
    let Output { stdout, stderr, .. } = bash.wait_with_output().unwrap();
    let error = String::from_utf8_lossy(&stderr);
    assert_eq!(String::from_utf8(stdout).unwrap(), "switch\n", "{error}");
}

#[test]
fn there_is_a_manual_page_for_each_subcommand() {
    let directory = tempfile::tempdir().unwrap();
    let pages = directory.path().join("new/man1");
    stdout(&["man", pages.to_str().unwrap()]);
    let written: BTreeSet<_> = std::fs::read_dir(&pages)
        .unwrap()
        .map(|page| page.unwrap().file_name().into_string().unwrap())
        .collect();
    for page in [
        "urtica",
        "urtica-run",
        "urtica-flows-add",
        "urtica-net-simulate",
    ] {
        assert!(
            written.contains(&format!("{page}.1")),
            "no {page} in {written:?}"
        );
    }
    let run = std::fs::read_to_string(pages.join("urtica-run.1")).unwrap();
    assert!(
        run.contains(r"\-\-listen") && run.contains("routing"),
        "{run}"
    );
}

#[test]
fn manual_pages_that_cannot_be_written_are_an_error_with_the_path() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = Path::new(file.path()).join("man1");
    let refused = urtica(&["man", path.to_str().unwrap()]).output().unwrap();
    assert!(!refused.status.success());
    let sentence = String::from_utf8(refused.stderr).unwrap();
    assert!(sentence.contains(path.to_str().unwrap()), "{sentence}");
    assert!(sentence.contains("expected a directory"), "{sentence}");
}

/// Starts a command, and waits until it has sent the service manager these messages.
fn notifies(arguments: &[&str], messages: &[&str]) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let mut command = urtica(arguments);
    command
        .env("NOTIFY_SOCKET", &path)
        .env("WATCHDOG_USEC", "20000")
        .env_remove("WATCHDOG_PID")
        .stderr(Stdio::null());
    let _running = Running(command.spawn().unwrap());
    for expected in messages {
        let mut message = [0; 64];
        let length = socket.recv(&mut message).expect("it notifies");
        assert_eq!(std::str::from_utf8(&message[..length]), Ok(*expected));
    }
}

#[test]
fn the_controller_notifies_the_service_manager() {
    let run = ["run", "l2", "--listen", "ptcp:0:127.0.0.1", "--shards", "1"];
    notifies(&run, &["READY=1\n", "WATCHDOG=1\n", "WATCHDOG=1\n"]);
}

#[test]
fn the_switch_notifies_the_service_manager() {
    let directory = tempfile::tempdir().unwrap();
    let port = format!("pcap:,{}", directory.path().join("out.pcap").display());
    let switch = ["switch", &port, "--controller", "ptcp:0:127.0.0.1"];
    notifies(&switch, &["READY=1\n", "WATCHDOG=1\n", "WATCHDOG=1\n"]);
}

#[test]
fn services_are_restarted_if_they_no_longer_answer() {
    let units = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/systemd");
    for unit in ["urtica.service", "urtica-switch.service"] {
        let text = std::fs::read_to_string(units.join(unit)).unwrap();
        assert!(text.contains("\nWatchdogSec="), "{unit}");
    }
}

/// Returns all links of a guide to files of the repository, without their anchors.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| {
        let (target, _) = rest.split_once(')')?;
        target.split('#').next()
    });
    targets.filter(|target| !target.is_empty() && !target.contains("://"))
}

#[test]
fn the_package_has_the_guides_and_the_files_they_mention() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = tempfile::tempdir().unwrap();
    let installed = Command::new("tools/install-docs")
        .arg(folder.path())
        .current_dir(&root)
        .status();
    assert!(installed.unwrap().success());
    let mut guides = vec![folder.path().join("README.md")];
    for of in ["docs", "docs/apps"] {
        let files = std::fs::read_dir(folder.path().join(of)).unwrap();
        guides.extend(files.map(|file| file.unwrap().path()));
    }
    for guide in guides
        .iter()
        .filter(|guide| guide.extension() == Some("md".as_ref()))
    {
        let text = std::fs::read_to_string(guide).unwrap();
        for link in links(&text) {
            // Links to source code lead to the repository.
            let is_source = link.contains("crates/") || link.ends_with(".rs");
            let target = guide.parent().unwrap().join(link);
            assert!(is_source || target.exists(), "{}: {link}", guide.display());
        }
    }
}

fn read(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(name)).unwrap()
}

/// Returns the features that a script builds first.
fn features(script: &str) -> Vec<&str> {
    let (_, rest) = script.split_once(" --features ").unwrap();
    let features = rest.split_whitespace().next().unwrap_or_default();
    features.split(',').collect()
}

#[test]
fn packages_have_the_page() {
    let package = read("tools/debian-package");
    assert!(features(&package).contains(&"web"));
    // Artefacts that the build embeds are built before it.
    let page = package.find("\n        tools/web ").unwrap();
    assert!(page < package.find(" --features ").unwrap());
    let makefile = read("Makefile");
    let (_, tested) = makefile.split_once("\npackage-test: web ").unwrap();
    assert!(features(tested).contains(&"web"));
    assert!(read("tools/package-test").contains("page: yes"));
}

/// Returns the container's file, with continuation lines joined.
fn container_file() -> String {
    read("packaging/container/Containerfile").replace("\\\n", "")
}

/// Returns the argument of this instruction in the container's file.
fn instruction<'a>(file: &'a str, name: &str) -> &'a str {
    let mut lines = file.lines().filter_map(|line| line.strip_prefix(name));
    lines.next().unwrap_or_else(|| panic!("no {name}"))
}

/// Returns the words of an instruction in JSON form.
fn words(text: &str) -> Vec<String> {
    serde_json::from_str(text.trim()).unwrap()
}

const CONTAINERS_CONFIGURATION: &str = "/etc/urtica/urtica.toml";

#[test]
fn the_containers_command_serves_and_its_health_check_reports_failure() {
    let file = container_file();
    let directory = tempfile::tempdir().unwrap();
    let (toml, control) = (
        directory.path().join("urtica.toml"),
        directory.path().join("control"),
    );
    let path = |text: &str| text.replace(CONTAINERS_CONFIGURATION, toml.to_str().unwrap());
    // The package's own configuration, with other addresses to listen on and another control socket.
    let own = read("packaging/debian/urtica.toml")
        .replace("ptcp:6653:127.0.0.1", "ptcp:0:127.0.0.1")
        .replace("/run/urtica/control", control.to_str().unwrap());
    std::fs::write(&toml, &own).unwrap();

    let [program] = &words(instruction(&file, "ENTRYPOINT "))[..] else {
        panic!("expected the program alone");
    };
    assert_eq!(program, "/usr/bin/urtica");
    let arguments: Vec<_> = words(instruction(&file, "CMD "));
    let arguments: Vec<_> = arguments.iter().map(|word| path(word)).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut running = Running(urtica(&arguments).stderr(Stdio::null()).spawn().unwrap());
    let health = instruction(&file, "HEALTHCHECK ")
        .split_once("CMD ")
        .unwrap();
    let folder = Path::new(env!("CARGO_BIN_EXE_urtica")).parent().unwrap();
    let mut health_check = Command::new("sh");
    health_check
        .args(["-c", &path(health.1)])
        .env("PATH", format!("{}:/usr/bin:/bin", folder.display()));
    let is_healthy = |command: &mut Command| command.output().unwrap().status.success();
    while !control.exists() {
        assert!(running.0.try_wait().unwrap().is_none(), "it has ended");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(is_healthy(&mut health_check));
    std::fs::write(&toml, "programs = [").unwrap();
    assert!(is_healthy(&mut health_check), "a fault in the file alone");
    std::fs::write(&toml, &own).unwrap();
    drop(running);
    assert!(!is_healthy(&mut health_check));
}

#[test]
fn the_container_is_made_of_the_packages_files() {
    let file = container_file();
    let package = read("tools/debian-package");
    let (from, to) = instruction(&file, "COPY ").split_once(' ').unwrap();
    assert_eq!(from, "target/debian/urtica_*.deb");
    assert!(package.contains("readonly OUT=target/debian") && package.contains("$OUT/urtica_"));
    assert!(package.contains("$TREE/usr/bin/urtica"));
    assert!(package.contains(&format!("$TREE{CONTAINERS_CONFIGURATION}")));
    let user = instruction(&file, "USER ");
    assert!(
        read("packaging/debian/postinst")
            .contains(&format!("/var/lib/urtica --no-create-home {user}"))
    );
    let steps = instruction(&file, "RUN ");
    assert!(steps.contains(&format!("{to}urtica_*.deb")));
    let checked = Command::new("sh").args(["-n", "-c", steps]).status();
    assert!(checked.unwrap().success(), "the shell takes the steps");
    // The user may write to the folder of the socket in the packaged configuration.
    assert!(read("packaging/debian/urtica.toml").contains("\"/run/urtica/control\""));
    assert!(steps.contains("--owner=urtica --group=urtica /run/urtica"));
}

/// The build has everything else: the program reports the missing part, and serves switches.
#[test]
#[ignore = "takes long: make nightly"]
fn a_build_without_clang_runs_without_a_kernel_half() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = root.join("target/without-clang");
    let built = Command::new(env!("CARGO"))
        .args(["build", "--locked", "--package", "urtica-cli"])
        .args(["--no-default-features", "--features", "kernel-half"])
        .arg("--target-dir")
        .arg(&target)
        .current_dir(&root)
        .env("CLANG", "/nonexistent/clang")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "{said}");
    let reason = "/nonexistent/clang cannot be run (No such file or directory (os error 2))";
    let warning = format!("the kernel half is left out: {reason}");
    assert!(
        said.contains(&warning) || said.contains("Finished"),
        "{said}"
    );
    let program = target.join("debug/urtica");
    let version = Command::new(&program).arg("--version").output().unwrap();
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    assert!(
        version.contains(&format!("\nkernel half: no, since {reason}\n")),
        "{version}"
    );
    for (offload, level) in [("kernel", "WARN"), ("auto", "INFO")] {
        let mut child = Command::new(&program)
            .args([
                "run",
                "l2",
                "--listen",
                "ptcp:0:127.0.0.1",
                "--offload",
                offload,
            ])
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = std::io::BufReader::new(child.stderr.take().unwrap());
        let _running = Running(child);
        let lines = std::io::BufRead::lines(log).map_while(Result::ok);
        let sentence = format!(
            "the kernel half is not active: it was built without the kernel's programs, since {reason}"
        );
        let lines: Vec<_> = lines
            .take_while(|line| !line.contains("listening address="))
            .collect();
        let is_it = |line: &&String| line.contains(level) && line.contains(&sentence);
        assert!(lines.iter().any(|line| is_it(&line)), "{lines:?}");
    }
}
