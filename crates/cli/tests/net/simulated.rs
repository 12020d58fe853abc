//! Tests of `urtica net simulate`.

use super::{text, urtica};

#[test]
fn seeds_hold_and_repeat() {
    let output = urtica(&["net", "simulate", "--seed", "7", "--seeds", "5"]);
    let told = text(&output.stdout);
    assert!(output.status.success(), "{told}");
    assert!(
        told.contains("5 seeds from 7 on: all invariants held"),
        "{told}"
    );
    let run = || text(&urtica(&["net", "simulate", "--seed", "9"]).stdout);
    let digest = |told: &str| told.lines().next().unwrap_or_default().to_owned();
    let (one, other) = (run(), run());
    assert!(one.starts_with("seed 9 ("), "{one}");
    assert_eq!(digest(&one), digest(&other));
}

#[test]
fn failing_seeds_are_reported_with_a_command_to_reproduce_them() {
    let arguments = [
        "net",
        "simulate",
        "--apps",
        "hub",
        "--topology",
        "mesh,4",
        "--seed",
        "1",
    ];
    let output = urtica(&arguments);
    let told = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("seed 1 (mesh,4) fails at"), "{told}");
    assert!(
        told.contains("urtica net simulate --seed 1 --trace --apps hub"),
        "{told}"
    );
}

#[test]
fn planted_faults_are_found_and_reproduced_by_their_seed() {
    let simulate = |arguments: &[&str]| {
        let output = urtica(&[&["net", "simulate", "--topology", "ring,3"], arguments].concat());
        (output.status.code(), text(&output.stdout))
    };
    let planted = ["--plant", "forgotten-entries"];
    let (status, told) = simulate(&[&planted[..], &["--seed", "1", "--seeds", "5"]].concat());
    assert_eq!(status, Some(1), "{told}");
    assert!(
        told.contains("nothing is left over when the network is quiescent")
            && told.contains(" --plant forgotten-entries"),
        "{told}"
    );
    let seed = told.split_whitespace().nth(1).unwrap();
    let again = simulate(&[&planted[..], &["--seed", seed]].concat());
    assert_eq!(again, (status, told.clone()));
    let (status, told) = simulate(&["--seed", seed]);
    assert_eq!(status, Some(0), "{told}");
}

#[test]
fn failures_are_reduced_to_the_necessary_faults_and_run_again() {
    let simulate = |arguments: &[&str]| {
        let planted = [
            "net",
            "simulate",
            "--topology",
            "ring,3",
            "--plant",
            "forgotten-entries",
        ];
        text(&urtica(&[&planted[..], arguments].concat()).stdout)
    };
    let told = simulate(&["--seed", "1", "--seeds", "5", "--minimise"]);
    // Every run tests the reachability of all hosts, which sends enough packets.
    assert!(
        told.contains("the smallest part that still fails, after ") && told.contains(": none\n"),
        "{told}"
    );
    let again = told.lines().last().unwrap();
    assert!(again.ends_with(" --only none"), "{told}");
    let seed = told.split_whitespace().nth(1).unwrap();
    let told_again = simulate(&["--seed", seed, "--only", "none"]);
    let [least, told_again] = [&told, &told_again].map(|told| {
        let least = told.rfind("\nseed ").map_or(0, |place| place + 1);
        told[least..].to_owned()
    });
    assert_eq!(least, told_again);
}

#[test]
fn programs_that_need_a_file_are_simulated() {
    for apps in [
        "l2,firewall",
        "routing,firewall",
        "l3,routing",
        "security,routing",
    ] {
        let output = urtica(&[
            "net", "simulate", "--apps", apps, "--seed", "1", "--seeds", "2",
        ]);
        let told = text(&output.stdout) + &text(&output.stderr);
        assert!(
            told.contains("2 seeds from 1 on: all invariants held"),
            "{apps}: {told}"
        );
    }
}
