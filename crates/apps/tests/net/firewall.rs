//! The firewall in front of other apps: what it denies stays out, and nothing else does.

use crate::support::{APPS, ms, net_with, net_with_controller, options};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;
use urtica_apps::{Firewall, Options};
use urtica_controller::{Controller, SessionConfig};
use urtica_net::{Datagrams, Net};
use urtica_wire::Version;

const GUARDED: &[&str] = &["discovery", "hosts", "routing", "firewall"];

/// A file of rules, and options that name it.
fn rules(text: &str) -> (TempDir, PathBuf, Options) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rules");
    fs::write(&file, text).unwrap();
    let mut options = options();
    options.firewall.firewall_rules = Some(file.clone());
    (folder, file, options)
}

/// Whether `from` gets answers from `to`.
fn pings(net: &mut Net, from: &str, to: &str) -> bool {
    let (from, to) = (net.host(from).unwrap(), net.host(to).unwrap());
    net.ping(from, to).unwrap().received == 1
}

/// How many of ten datagrams to UDP port 5001 come through.
fn datagrams(net: &mut Net, from: &str, to: &str) -> u64 {
    let (from, to) = (net.host(from).unwrap(), net.host(to).unwrap());
    let datagrams = Datagrams {
        count: 10,
        payload_bytes: 64,
        interval: ms(10),
    };
    let flow = net.start_datagrams(from, to, datagrams).unwrap();
    net.run_for(ms(500));
    net.flow_report(flow).unwrap().received
}

#[test]
fn it_drops_what_it_denies_and_nothing_else() {
    let text = "deny icmp,nw_src=10.0.0.1,nw_dst=10.0.0.3,icmp_type=8\n\
                allow udp,nw_src=10.0.0.2,tp_dst=5001\n\
                deny udp,tp_dst=5001\n\
                default allow";
    for apps in [
        GUARDED,
        &["discovery", "l2", "firewall"],
        &["global", "firewall"],
    ] {
        let (_folder, _, options) = rules(text);
        let mut net = net_with("linear,3", apps, &options);
        // Twice, as the first packets may meet no entries yet.
        for _ in 0..2 {
            assert!(!pings(&mut net, "h1", "h3"), "{apps:?}");
            assert!(pings(&mut net, "h3", "h1"), "{apps:?}: the other way");
            assert!(pings(&mut net, "h1", "h2"), "{apps:?}: another host");
            assert_eq!(datagrams(&mut net, "h1", "h3"), 0, "{apps:?}");
            assert_eq!(
                datagrams(&mut net, "h2", "h3"),
                10,
                "{apps:?}: the rule before"
            );
        }
    }
}

#[test]
fn what_is_not_allowed_is_denied_by_default() {
    let text = "allow icmp,nw_src=10.0.0.1\nallow icmp,nw_dst=10.0.0.1\ndefault deny";
    let (_folder, _, options) = rules(text);
    let mut net = net_with("ring,3", GUARDED, &options);
    assert!(pings(&mut net, "h1", "h2") && pings(&mut net, "h3", "h1"));
    assert!(!pings(&mut net, "h2", "h3"));
    assert_eq!(datagrams(&mut net, "h1", "h2"), 0);
}

#[test]
fn a_new_file_counts_at_once_and_a_wrong_one_not_at_all() {
    let (_folder, file, options) = rules("default allow");
    let mut net = net_with("ring,3", GUARDED, &options);
    assert!(net.ping_all().unwrap().is_complete());
    fs::write(&file, "deny icmp,nw_src=10.0.0.1\ndefault allow").unwrap();
    net.run_for(ms(1_100));
    assert!(
        !pings(&mut net, "h1", "h2"),
        "the entries of routing are there, but nobody comes to them"
    );
    assert!(pings(&mut net, "h2", "h3"));
    fs::write(&file, "default allow\ndeny icmp").unwrap();
    net.run_for(ms(1_100));
    assert!(!pings(&mut net, "h1", "h2"), "the old rules hold");
    fs::remove_file(&file).unwrap();
    net.run_for(ms(1_100));
    assert!(!pings(&mut net, "h1", "h2"), "the old rules hold");
    fs::write(&file, "default allow").unwrap();
    net.run_for(ms(1_100));
    assert!(net.ping_all().unwrap().is_complete());
}

#[test]
fn a_switch_that_was_restarted_is_guarded_again() {
    let (_folder, _, options) = rules("deny icmp,nw_src=10.0.0.1\ndefault allow");
    let mut net = net_with("linear,2", GUARDED, &options);
    net.restart_switch(net.switch("s1").unwrap()).unwrap();
    net.run_for(Duration::from_secs(3));
    assert!(!pings(&mut net, "h1", "h2"));
    assert_eq!(datagrams(&mut net, "h1", "h2"), 10);
}

#[test]
fn openflow_1_0_is_guarded_by_the_controller() {
    let session = SessionConfig {
        versions: vec![Version::Of10],
        ..SessionConfig::default()
    };
    let rules = "deny icmp,nw_src=10.0.0.1\ndefault allow".parse().unwrap();
    let controller = Controller::new()
        .session(session)
        .program(Firewall::new(rules));
    let controller = urtica_apps::add_all(controller, APPS, &options()).unwrap();
    let mut net = net_with_controller("ring,3", controller);
    for _ in 0..2 {
        assert!(!pings(&mut net, "h1", "h2"));
        assert!(pings(&mut net, "h2", "h3"));
        assert_eq!(datagrams(&mut net, "h1", "h2"), 10);
    }
}

#[test]
fn it_says_what_it_lacks() {
    let error = |options: &Options| {
        let result = urtica_apps::add_all(Controller::new(), &["firewall"], options);
        result.err().expect("no rules").to_string()
    };
    assert_eq!(
        error(&Options::default()),
        "the control program 'firewall' cannot run: it needs its rules; expected --firewall-rules FILE"
    );
    let (_folder, file, wrong) = rules("deny tcp\ndefault perhaps");
    assert_eq!(
        error(&wrong),
        format!(
            "the control program 'firewall' cannot run: {}: line 2, column 9: 'perhaps' is not a verdict; expected allow or deny",
            file.display()
        )
    );
    fs::remove_file(&file).unwrap();
    assert!(error(&wrong).contains("the rules cannot be read from"));
}
