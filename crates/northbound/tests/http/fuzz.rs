//! Schemathesis sends valid and invalid requests that it derives from the interface's own description.

use crate::lab::Lab;
use crate::require;
use std::process::Command;
use urtica_wire::Version;

const PYTHON: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.venv/bin/schemathesis");
const TOOL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/api-fuzz");

/// The number of requests per path. If `tools/api-fuzz` is run directly, it sends many more.
const FEW: &str = "5";

/// Runs `tools/api-fuzz` on the interface of these programs, for the paths that match a regular expression.
fn send_requests(programs: &[&str], paths: &str) {
    if !require::tool(PYTHON) {
        return;
    }
    let lab = Lab::new("linear,2", Version::Of13, programs);
    let url = format!("http://{}", lab.address);
    let output = Command::new(TOOL)
        .args(["--url", &url, "--examples", FEW, "--seed", "1"])
        .args(["--paths", paths])
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    assert_eq!(lab.get("/stats/switches").body, "[1,2]");
}

#[test]
fn described_requests_are_harmless() {
    let programs = ["discovery", "hosts", "rest_qos", "rest_firewall"];
    send_requests(&programs, ".");
}

/// The router cannot run together with the firewall, since both forward everything.
#[test]
fn described_router_requests_are_harmless() {
    send_requests(&["rest_router"], "^/router");
}
