//! Flows of datagrams and streams.

use crate::support::{config, ms, net_with, plan};
use std::time::Duration;
use urtica_net::{Datagrams, Net};
use urtica_switch::FailMode;
use urtica_topology::spec::LinkProperties;

#[test]
fn datagrams_arrive_by_the_controllers_entries() {
    let mut net = net_with("linear,3", "l2");
    let (h1, h3) = (net.host("h1").unwrap(), net.host("h3").unwrap());
    let flow = Datagrams {
        count: 100,
        payload_bytes: 200,
        interval: ms(1),
    };
    let flow = net.start_datagrams(h1, h3, flow).unwrap();
    net.run_for(ms(500));
    let report = net.flow_report(flow).unwrap();
    assert!(report.is_done);
    assert_eq!(
        (report.sent, report.received, report.received_bytes),
        (100, 100, 20_000)
    );
}

/// Creates two self-learning switches with a narrow and lossy link between them.
fn narrow(loss: f64) -> Net {
    let mut plan = plan("linear,2");
    plan.links[0].properties = LinkProperties {
        delay: ms(2),
        loss,
        bandwidth_bps: Some(10_000_000),
        ..LinkProperties::default()
    };
    let mut config = config();
    config.switch.fail_mode = FailMode::Standalone;
    Net::new(&plan, config).unwrap()
}

#[test]
fn a_stream_fills_its_link() {
    let mut net = narrow(0.0);
    let (h1, h2) = (net.host("h1").unwrap(), net.host("h2").unwrap());
    let flow = net.start_stream(h1, h2, 2_000_000).unwrap();
    net.run_for(Duration::from_secs(10));
    let report = net.flow_report(flow).unwrap();
    assert!(report.is_done, "{report}");
    assert_eq!(report.received_bytes, 2_000_000);
    let took = report.took.unwrap();
    assert!(
        (ms(1_600)..ms(2_500)).contains(&took),
        "10 Mb/s carry it in 1.6 s: {report}"
    );
}

#[test]
fn a_stream_arrives_whole_over_a_lossy_link() {
    let mut net = narrow(0.02);
    let (h1, h2) = (net.host("h1").unwrap(), net.host("h2").unwrap());
    let flow = net.start_stream(h1, h2, 300_000).unwrap();
    net.run_for(Duration::from_secs(120));
    let report = net.flow_report(flow).unwrap();
    assert!(report.is_done, "{report}");
    assert_eq!(report.received_bytes, 300_000);
    assert!(report.sent_again > 0, "{report}");
}

#[test]
fn two_streams_share_a_link() {
    let mut net = narrow(0.0);
    let (h1, h2) = (net.host("h1").unwrap(), net.host("h2").unwrap());
    let one = net.start_stream(h1, h2, 3_000_000).unwrap();
    let other = net.start_stream(h1, h2, 3_000_000).unwrap();
    net.run_for(Duration::from_secs(30));
    for flow in [one, other] {
        assert!(net.flow_report(flow).unwrap().is_done);
    }
}
