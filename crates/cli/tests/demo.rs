//! Tests of `urtica demo`, the README's first command, in lines of text and on a terminal; and a short `urtica demo throughput`.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The scenes of all topologies with loops, in this order.
const SCENES: [&str; 7] = [
    "\n1. Switches join",
    "\n2. Every host pings every other. No switch has entries yet.",
    "\n3. Every host pings every other again",
    "\n4. Hosts send 100 new flows",
    "\n5. The busiest link, ",
    "\n6. Every host pings every other, around the cut.",
    "\n7. ",
];

/// The time limit for the live view. Only a failing test waits for it.
const PATIENCE_S: u32 = 60;

fn urtica(arguments: &[&str]) -> Output {
    let mut urtica = Command::new(env!("CARGO_BIN_EXE_urtica"));
    urtica.arg("demo").args(arguments).stdin(Stdio::null());
    urtica.output().unwrap()
}

/// Runs to the end without waiting, which must succeed; returns the output.
fn told(arguments: &[&str]) -> String {
    let output = urtica(&[&["--simulated"], arguments].concat());
    let told = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{arguments:?}\n{told}{errors}");
    assert_eq!(errors, "");
    told
}

/// Returns the number before some words.
fn number_before(told: &str, words: &str) -> f64 {
    let (before, _) = told
        .split_once(words)
        .unwrap_or_else(|| panic!("no '{words}' in\n{told}"));
    let number = before.rsplit([' ', '\n']).next().unwrap();
    number
        .parse()
        .unwrap_or_else(|_| panic!("'{number}' before '{words}' in\n{told}"))
}

#[test]
fn scenes_are_in_order_and_their_figures_plausible() {
    let told = told(&[]);
    let places: Vec<_> = SCENES.iter().map(|scene| told.find(scene)).collect();
    assert!(
        places.is_sorted() && places[0].is_some(),
        "{places:?}\n{told}"
    );
    assert_eq!(told.matches("72 of 72 pings answered").count(), 3, "{told}");
    assert!(
        told.contains("9 of 9 switches have joined and 18 of 18 links are found"),
        "{told}"
    );
    assert!(number_before(&told, " flows/s") > 0.0);
    assert!(number_before(&told, " packets/s") > number_before(&told, " flows/s"));
    assert!(number_before(&told, " flow entries") > 0.0);
    let lost = number_before(&told, " packets lost; all traffic flowed again after");
    assert!(lost < number_before(&told, " packets/s"));
    assert!(
        told.contains("the controller has found the link again"),
        "{told}"
    );
    let next = told.rfind("\nWhat to try next:");
    assert!(next > places[6], "{told}");
    let hints = &told[next.unwrap()..];
    assert!(hints.lines().all(|line| line.len() <= 80), "{hints}");
}

#[test]
fn first_packets_have_longer_latencies() {
    let told = told(&[]);
    let medians: Vec<f64> = told
        .lines()
        .filter_map(|line| line.strip_prefix("   median round trip")?.rsplit_once(": "))
        .map(|(_, median)| median.trim_end_matches(" ms").parse().unwrap())
        .collect();
    assert!(
        medians.len() == 2 && medians[0] > medians[1] && medians[1] > 0.0,
        "{medians:?}"
    );
}

#[test]
fn equal_seeds_give_equal_output() {
    let [one, again] = [told(&["--seed", "7"]), told(&["--seed", "7"])];
    assert_eq!(one, again);
}

#[test]
fn other_specs_are_shown_too() {
    for spec in ["ring,5", "mesh,4", "fattree,4", "torus,3,4"] {
        let told = told(&["--topology", spec]);
        assert!(
            told.starts_with(spec) && told.contains("all traffic flowed again"),
            "{told}"
        );
    }
}

#[test]
fn loop_free_networks_are_not_cut() {
    for spec in ["single,3", "linear,4", "tree,depth=2,fanout=2"] {
        let told = told(&["--topology", spec]);
        assert!(told.contains("No link is cut"), "{told}");
        assert!(!told.contains("busiest"), "{told}");
    }
}

#[test]
fn unsupported_networks_are_refused_with_a_message() {
    for (spec, expected) in [
        ("single,1", "expected 2 to 64 hosts"),
        ("linear,90", "expected 2 to 64 hosts"),
        ("star,4", "is not a topology"),
    ] {
        let output = urtica(&["--topology", spec]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && output.stdout.is_empty(),
            "{spec}"
        );
        assert!(errors.contains(expected), "{spec}: {errors}");
    }
}

#[test]
fn the_readme_shows_the_real_output() {
    let readme = include_str!("../../../README.md");
    let (_, shown) = readme.split_once("$ cargo run -- demo\n").unwrap();
    let (shown, _) = shown.split_once("```").unwrap();
    let without_figures = |text: &str| text.replace(|c: char| c.is_ascii_digit(), "#");
    let told = without_figures(&told(&[]));
    // The busiest link, and so the path of packets, may change with the program.
    let is_fixed = |line: &&str| *line != "…" && !line.contains("went by");
    for line in shown.lines().filter(is_fixed) {
        let start = line.trim_end_matches('…');
        assert!(
            told.contains(&without_figures(start)),
            "not told: {line}\n{told}"
        );
    }
}

/// Runs the live view in a terminal of util-linux's `script`; `None` if it is not installed.
fn live(keys: &[u8]) -> Option<(String, Option<i32>)> {
    let command = format!(
        "stty cols 80 rows 24; exec timeout --foreground {PATIENCE_S} {} demo",
        env!("CARGO_BIN_EXE_urtica")
    );
    let child = Command::new("script")
        .args(["-qefc", &command, "/dev/null"])
        .env("TERM", "xterm-256color")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        println!("skipped: there is no script(1)");
        return None;
    };
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let (mut shown, mut block) = (Vec::new(), [0; 4096]);
    // Press keys once the view is shown. Blanks are not redrawn, so search for a single word.
    while !String::from_utf8_lossy(&shown).contains("network") {
        let count = stdout.read(&mut block).unwrap();
        assert!(count > 0, "{}", String::from_utf8_lossy(&shown));
        shown.extend_from_slice(&block[..count]);
    }
    stdin.write_all(keys).unwrap();
    stdout.read_to_end(&mut shown).unwrap();
    let status = child.wait().unwrap();
    Some((String::from_utf8_lossy(&shown).into_owned(), status.code()))
}

#[test]
fn a_key_ends_the_live_view_and_restores_the_terminal() {
    for keys in ["q", "c \u{1b}[C?q", "\u{3}"] {
        let Some((shown, status)) = live(keys.as_bytes()) else {
            return;
        };
        assert_eq!(status, Some(0), "{shown}");
        let [entered, left] = ["\u{1b}[?1049h", "\u{1b}[?1049l"].map(|code| shown.find(code));
        assert!(entered.is_some() && left > entered, "{shown:?}");
        assert!(
            shown.contains("s1x1") && shown.contains("flows/s"),
            "{shown:?}"
        );
        let next = shown.find("What to try next:");
        assert!(next > left, "{shown:?}");
    }
}

fn throughput(report: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_urtica"))
        .args([
            "demo",
            "throughput",
            "--seconds",
            "1",
            "--switches",
            "2",
            "--report",
        ])
        .arg(report)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[test]
fn every_answer_is_valid_and_the_report_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let report = directory.path().join("demo.html");
    let output = throughput(&report);
    let (told, errors) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{told}{errors}");
    assert_eq!(
        told.matches("answers checked: all right").count(),
        2,
        "{told}"
    );
    assert!(told.contains("the bottleneck"), "{told}");
    assert!(told.contains("ovs-vsctl set-controller"), "{told}");
    assert_eq!(errors, "");
    let page = std::fs::read_to_string(report).unwrap();
    assert!(page.contains("2 switches against tcp:127.0.0.1:"));
}

#[test]
fn an_unwritable_report_fails_with_a_message() {
    let directory = tempfile::tempdir().unwrap();
    let output = throughput(&directory.path().join("missing").join("demo.html"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        errors.starts_with("urtica: cannot write ") && errors.contains("demo.html"),
        "{errors}"
    );
}
