//! Idle and hard timeouts (1.3.5 section 5.5).

use crate::support::{Bed, any_frame};
use urtica_wire::FlowRemovedReason;

#[track_caller]
fn assert_gone(bed: &mut Bed, reason: FlowRemovedReason) {
    bed.expire();
    assert!(bed.dump().is_empty());
    assert_eq!(bed.removed.len(), 1);
    assert_eq!(bed.removed[0].reason, reason);
}

#[test]
fn a_hard_timeout_is_exact_and_ignores_packets() {
    let mut bed = Bed::with(&["hard_timeout=2,send_flow_rem,actions=2"]);
    bed.wait(1999);
    bed.send(&any_frame());
    bed.expire();
    assert_eq!(bed.dump().len(), 1);
    bed.wait(1);
    assert_gone(&mut bed, FlowRemovedReason::HardTimeout);
}

#[test]
fn an_idle_timeout_starts_again_with_each_packet() {
    let mut bed = Bed::with(&["idle_timeout=2,send_flow_rem,actions=2"]);
    bed.wait(1500);
    bed.send(&any_frame());
    bed.wait(1999);
    bed.expire();
    assert_eq!(bed.dump().len(), 1);
    bed.wait(1);
    assert_gone(&mut bed, FlowRemovedReason::IdleTimeout);
}

#[test]
fn packets_keep_entries_without_counters_alive() {
    let mut bed = Bed::with(&["idle_timeout=2,no_packet_counts,no_byte_counts,actions=2"]);
    bed.wait(1500);
    bed.send(&any_frame());
    bed.wait(1500);
    bed.expire();
    assert_eq!(bed.dump().len(), 1);
}

#[test]
fn of_two_timeouts_the_first_is_reported() {
    let flow = "idle_timeout=2,hard_timeout=5,send_flow_rem,actions=2";
    let mut bed = Bed::with(&[flow]);
    bed.wait(60_000);
    assert_gone(&mut bed, FlowRemovedReason::IdleTimeout);

    let mut bed = Bed::with(&[flow]);
    bed.wait(4000);
    bed.send(&any_frame());
    bed.wait(60_000);
    assert_gone(&mut bed, FlowRemovedReason::HardTimeout);
}

#[test]
fn table_miss_entries_expire_and_others_without_word() {
    let mut bed = Bed::with(&[
        "priority=0,idle_timeout=1,actions=controller",
        "in_port=1,actions=2",
    ]);
    bed.wait(1000);
    bed.expire();
    assert_eq!(bed.dump(), ["0 packets: in_port=1 actions=output:2"]);
    assert!(bed.removed.is_empty());
}

#[test]
fn modify_does_not_extend_timeouts() {
    let mut bed = Bed::with(&["hard_timeout=2,send_flow_rem,actions=2"]);
    bed.wait(1000);
    bed.flow(urtica_wire::FlowModCommand::Modify, "actions=3");
    bed.wait(1000);
    assert_gone(&mut bed, FlowRemovedReason::HardTimeout);
}

/// Expiry has steps so that packets can be processed between them.
#[test]
fn many_entries_expire_in_steps_that_report_more_due() {
    let mut bed = Bed::new();
    bed.pipeline.set_max_entries(3000);
    for number in 0..3000 {
        bed.add(&format!("hard_timeout=1,metadata={number},actions=2"));
    }
    bed.wait(1000);
    let mut steps = 0;
    while bed
        .pipeline
        .next_expiry()
        .is_some_and(|next| next <= bed.now)
    {
        bed.expire();
        steps += 1;
    }
    assert!(bed.dump().is_empty());
    assert_eq!(steps, 12);
}
