//! The effects of links on frames.

use crate::support::{config, learning_net, ms, plan};
use std::time::Duration;
use urtica_net::{Net, NetConfig};
use urtica_switch::FailMode;
use urtica_topology::spec::LinkProperties;

/// Creates two learning switches whose link has these properties.
fn two_switches(properties: LinkProperties) -> Net {
    let mut plan = plan("linear,2");
    plan.links[0].properties = properties;
    let mut config = config();
    config.switch.fail_mode = FailMode::Standalone;
    Net::new(&plan, config).unwrap()
}

#[test]
fn round_trips_are_the_sum_of_all_delays() {
    let mut net = two_switches(LinkProperties {
        delay: ms(5),
        ..LinkProperties::default()
    });
    let (h1, h2) = (net.host("h1").unwrap(), net.host("h2").unwrap());
    net.ping(h1, h2).unwrap();
    let report = net.ping(h1, h2).unwrap();
    let switches = 4 * NetConfig::default().switch_delay;
    assert_eq!(report.rtt_max, 2 * ms(5) + switches);
}

#[test]
fn limited_bandwidth_queues_and_then_drops_frames() {
    let mut net = two_switches(LinkProperties {
        bandwidth_bps: Some(8_000_000),
        ..LinkProperties::default()
    });
    let (h1, h2) = (net.host("h1").unwrap(), net.host("h2").unwrap());
    net.ping(h1, h2).unwrap();
    let rtt = net.ping(h1, h2).unwrap().rtt_max;
    // A request has 98 bytes plus the trailer's 12, and a byte needs a microsecond.
    let expected = Duration::from_micros(2 * 110) + 4 * NetConfig::default().switch_delay;
    assert_eq!(rtt, expected);
    let flood = urtica_net::Datagrams {
        count: 2_000,
        payload_bytes: 1_000,
        interval: Duration::from_micros(100),
    };
    let flow = net.start_datagrams(h1, h2, flood).unwrap();
    net.run_for(ms(10_000));
    let report = net.flow_report(flow).unwrap();
    let link = net.link("s1", "s2").unwrap();
    let lost: u64 = net
        .link_counters(link)
        .unwrap()
        .iter()
        .map(|link| link.lost_queue_full)
        .sum();
    assert_eq!(report.sent, 2_000);
    assert_eq!(report.lost(), lost);
    assert!(
        (900..1_500).contains(&lost),
        "half a megabyte waits, the rest is lost: {lost}"
    );
}

#[test]
fn a_lossy_link_has_the_given_loss() {
    let mut net = two_switches(LinkProperties {
        loss: 0.2,
        ..LinkProperties::default()
    });
    let (h1, h2) = (net.host("h1").unwrap(), net.host("h2").unwrap());
    let ping = net.start_ping(h1, h2, 500).unwrap();
    net.run_for(Duration::from_secs(510));
    let report = net.ping_report(ping).unwrap();
    // A ping succeeds if both directions do: 64 %.
    assert_eq!(report.sent, 500);
    assert!((270..370).contains(&report.received), "{report}");
}

#[test]
fn jitter_never_reorders_a_link() {
    let mut net = two_switches(LinkProperties {
        delay: ms(5),
        jitter: ms(4),
        ..LinkProperties::default()
    });
    let (h1, h2) = (net.host("h1").unwrap(), net.host("h2").unwrap());
    net.ping(h1, h2).unwrap();
    let flow = urtica_net::Datagrams {
        count: 500,
        payload_bytes: 100,
        interval: Duration::from_micros(300),
    };
    let flow = net.start_datagrams(h1, h2, flow).unwrap();
    net.run_for(ms(1_000));
    let report = net.flow_report(flow).unwrap();
    assert_eq!((report.received, report.reordered), (500, 0));
}

#[test]
fn a_cut_link_carries_nothing_until_it_is_repaired() {
    let mut net = learning_net("linear,3");
    let (h1, h3) = (net.host("h1").unwrap(), net.host("h3").unwrap());
    let link = net.link("s2", "s3").unwrap();
    assert_eq!(net.ping(h1, h3).unwrap().received, 1);
    net.cut(link).unwrap();
    assert!(net.is_cut(link).unwrap());
    assert_eq!(net.ping(h1, h3).unwrap().received, 0);
    net.repair(link).unwrap();
    net.run_for(ms(200));
    assert_eq!(net.ping(h1, h3).unwrap().received, 1);
}

#[test]
fn links_of_a_switch_that_is_off_are_down() {
    let mut net = learning_net("linear,3");
    let (h1, h3) = (net.host("h1").unwrap(), net.host("h3").unwrap());
    let s2 = net.switch("s2").unwrap();
    net.stop_switch(s2).unwrap();
    net.run_for(ms(200));
    assert_eq!(net.ping(h1, h3).unwrap().received, 0);
    net.start_switch(s2).unwrap();
    net.run_for(ms(200));
    assert_eq!(net.ping(h1, h3).unwrap().received, 1);
}
