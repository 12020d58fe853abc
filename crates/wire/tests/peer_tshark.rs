//! Tests that Wireshark's dissector finds no errors in this crate's messages.

mod corpus;

use corpus::peer;
use urtica_wire::Version;

fn check_all(version: Version) {
    if !peer::has_all(&["tshark", "python3"]) {
        return;
    }
    for verdict in peer::verdicts("python3", "tshark_check.py", &corpus::of(version)) {
        // The script tolerates the dissector's own errors, each of which it names.
        let good = ["dissected", "tolerated"].contains(&verdict.verdict.as_str());
        assert!(good, "{}", verdict.details);
    }
}

#[test]
fn tshark_dissects_our_messages_of_1_0() {
    check_all(Version::Of10);
}

#[test]
fn tshark_dissects_our_messages_of_1_3() {
    check_all(Version::Of13);
}
