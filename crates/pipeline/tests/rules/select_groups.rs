//! The flows that move to another bucket when a select group changes (1.3.5 section 5.6.1 leaves the selection to the
//! switch).

use crate::support::{Bed, TCP, Tcp, port};
use urtica_pipeline::{Pipeline, PipelineConfig};
use urtica_wire::GroupModCommand::{Add, Modify};
use urtica_wire::{PortConfig, PortState};

const FLOWS: u16 = 1500;

/// A group whose buckets output to ports from 2 on, with these weights.
fn group(weights: &[u16]) -> String {
    let buckets = (2..)
        .zip(weights)
        .map(|(port, weight)| format!(",bucket=weight:{weight},watch_port:{port},output:{port}"));
    format!("group_id=1,type=select{}", buckets.collect::<String>())
}

fn bed(weights: &[u16]) -> Bed {
    let mut bed = Bed::new();
    bed.pipeline = Pipeline::new(PipelineConfig::default());
    for number in 1..=9 {
        bed.pipeline.set_port(port(number));
    }
    bed.try_group(Add, &group(weights)).unwrap();
    bed.add("actions=group:1");
    bed
}

/// Returns the port of each flow; 0 if the flow is dropped.
fn ports(bed: &Bed) -> Vec<u32> {
    let flows = (0..FLOWS).map(|tcp_src| Tcp { tcp_src, ..TCP });
    let sent = flows.map(|flow| bed.send(&flow.frame()).ports());
    sent.map(|ports| ports.first().copied().unwrap_or(0))
        .collect()
}

fn share(ports: &[u32], wanted: u32) -> f64 {
    let count = ports.iter().filter(|&&port| port == wanted).count();
    count as f64 / f64::from(FLOWS)
}

/// Three standard deviations of a share of `FLOWS` flows.
fn tolerance(share: f64) -> f64 {
    3.0 * (share * (1.0 - share) / f64::from(FLOWS)).sqrt()
}

#[test]
fn shares_follow_the_weights() {
    for weights in [
        &[1, 1, 1][..],
        &[1, 2, 5],
        &[65535, 1, 65535],
        &[100, 300],
        &[7; 8],
    ] {
        let ports = ports(&bed(weights));
        let total: f64 = weights.iter().copied().map(f64::from).sum();
        for (port, &weight) in (2..).zip(weights) {
            let expected = f64::from(weight) / total;
            let found = share(&ports, port);
            let is_near = (found - expected).abs() <= tolerance(expected) + 0.002;
            assert!(
                is_near,
                "{weights:?}: port {port} has {found}, not {expected}"
            );
        }
    }
}

#[test]
fn dead_buckets_move_only_their_flows_and_regain_them() {
    for weights in [&[1, 1, 1][..], &[5, 1, 3, 2], &[7; 8]] {
        let mut bed = bed(weights);
        let before = ports(&bed);
        for (dead, &weight) in (2..).zip(weights) {
            bed.set_port(dead, PortConfig::empty(), PortState::LINK_DOWN);
            let after = ports(&bed);
            let left: f64 = weights.iter().copied().map(f64::from).sum::<f64>() - f64::from(weight);
            for (&before, &after) in before.iter().zip(&after) {
                assert!(after != dead && (before == dead || before == after));
            }
            // Its flows move to the others in proportion to their weights.
            for (port, &other) in (2..).zip(weights).filter(|&(port, _)| port != dead) {
                let expected = f64::from(other) / left;
                let found = share(&after, port);
                assert!((found - expected).abs() <= tolerance(expected) + 0.002);
            }
            bed.set_port(dead, PortConfig::empty(), PortState::LIVE);
            assert_eq!(ports(&bed), before);
        }
    }
}

#[test]
fn adding_or_removing_a_bucket_moves_only_its_flows() {
    let mut bed = bed(&[1, 1, 1, 1]);
    let four = ports(&bed);
    // Without the first bucket, so that all others have other positions.
    let without = "group_id=1,type=select,bucket=output:3,bucket=output:4,bucket=output:5";
    bed.try_group(Modify, without).unwrap();
    let three = ports(&bed);
    for (&four, &three) in four.iter().zip(&three) {
        assert!(four == three || four == 2);
    }
    assert!((share(&four, 2) - 0.25).abs() <= tolerance(0.25));
}

#[test]
fn a_growing_weight_only_attracts_flows() {
    let mut bed = bed(&[2, 2, 2]);
    let before = ports(&bed);
    bed.try_group(Modify, &group(&[2, 6, 2])).unwrap();
    let after = ports(&bed);
    for (&before, &after) in before.iter().zip(&after) {
        assert!(before == after || after == 3);
    }
    assert!((share(&after, 3) - 0.6).abs() <= tolerance(0.6));
}

#[test]
fn equal_buckets_share() {
    let bucket = ",bucket=weight:1,output:2";
    let mut bed = bed(&[1]);
    let text = format!("group_id=1,type=select{bucket}{bucket},bucket=weight:2,output:3");
    bed.try_group(Modify, &text).unwrap();
    let ports = ports(&bed);
    assert!((share(&ports, 2) - 0.5).abs() <= tolerance(0.5));
    let stats = &bed.pipeline.group_stats(1, bed.now)[0];
    let counts: Vec<_> = stats
        .buckets
        .iter()
        .map(|bucket| bucket.packet_count)
        .collect();
    assert!(counts.iter().all(|&count| count > 0), "{counts:?}");
}

#[test]
fn buckets_without_weight_get_no_flows() {
    let ports = ports(&bed(&[0, 0]));
    assert!(ports.iter().all(|&port| port == 0));
}
