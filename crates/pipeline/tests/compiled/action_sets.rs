//! Tests that entries with an action set and no next table, and entries with several outputs, are compiled.

use crate::support::differential::{Comparison, ComparisonConfig};
use urtica_wire::{FlowMod, FlowModCommand, PortNo};

/// A UDP packet over IPv4. `last` is the last byte of its destination, and its TTL.
fn packet(last: u8) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 1, 1, 8, 0];
    frame.extend([0x45, 0, 0, 40, 0, 0, 0, 0, last, 17, 0, 0]);
    frame.extend([10, 0, 0, 1, 10, 0, 0, last, 0, 80, 0, 81, 0, 20, 0, 0]);
    frame.resize(60, 0);
    frame
}

/// Returns the number of frames that were left to the plain form, with these entries.
#[track_caller]
fn punted(entries: &[&str]) -> u64 {
    let mut comparison = Comparison::new(ComparisonConfig::default());
    comparison.set_queue(2, 1);
    for text in entries {
        let flow_mod = FlowMod::parse(FlowModCommand::Add, text).expect(text);
        comparison.flow_mod(&flow_mod).expect(text);
    }
    let frames: Vec<_> = (1..=3).map(|last| (PortNo(1), packet(last))).collect();
    comparison.send(&frames);
    comparison.compare_counters();
    comparison.punted / comparison.subjects.len() as u64
}

#[test]
fn action_sets_follow_the_applied_actions() {
    let compiled = [
        "actions=write_actions(output:2)",
        "actions=clear_actions,output:2",
        "actions=clear_actions,write_actions(output:2)",
        "actions=push_vlan:0x8100,set_field:4101->vlan_vid,write_actions(output:3,set_field:2->vlan_pcp)",
        "udp,udp_src=80,actions=set_field:7->udp_dst,write_actions(output:in_port,set_field:8->udp_dst,pop_vlan)",
        "ip,actions=write_metadata:5,write_actions(set_field:02:00:00:00:00:09->eth_dst)",
    ];
    for entry in compiled {
        assert_eq!(punted(&[entry]), 0, "{entry}");
    }
    let behind = "table=1,actions=write_actions(output:2)";
    let cleared = "actions=clear_actions,write_metadata:5,goto_table:1";
    assert_eq!(punted(&[cleared, behind]), 0);
}

#[test]
fn packets_are_sent_through_queues() {
    let compiled = [
        "actions=set_queue:7,output:2",
        "actions=output:2,set_queue:7,output:3,output:in_port,set_queue:0,output:4",
        "actions=write_actions(output:2,set_queue:65535)",
        "ip,actions=set_queue:7,push_vlan:0x8100,dec_ttl,output:1,output:2",
        "actions=set_queue:7",
        "actions=output:2,set_queue:7",
        "actions=set_queue:7,output:all",
        "actions=set_queue:7,FLOOD,controller,output:2,normal",
        "actions=write_actions(set_queue:7,output:FLOOD)",
        "actions=enqueue:2:1,output:3",
        "actions=output:3,enqueue:2:1",
    ];
    for entry in compiled {
        let ttl_is_low = entry.contains("dec_ttl");
        assert_eq!(punted(&[entry]), ttl_is_low.into(), "{entry}");
    }
    for entry in [
        "actions=set_queue:65536,output:2",
        "actions=set_queue:7,normal",
    ] {
        assert_eq!(punted(&[entry]), 3, "{entry}");
    }
}

#[test]
fn a_ttl_too_low_for_applied_and_written_actions_uses_the_plain_form() {
    let entry = "ip,actions=dec_ttl,write_actions(output:2,dec_ttl)";
    assert_eq!(punted(&[entry]), 2);
}

#[test]
fn frames_leave_several_times() {
    let compiled = [
        "actions=output:2,output:3",
        "actions=output:1,output:2,in_port,output:2",
        "actions=output:2,write_actions(output:3)",
        "actions=FLOOD",
        "actions=set_field:02:00:00:00:00:09->eth_dst,ALL,output:2",
        "cookie=7,udp,actions=dec_ttl,push_vlan:0x8100,controller:20,output:3,in_port",
        "priority=0,actions=output:2,controller",
        "actions=output:4,normal",
    ];
    for entry in compiled {
        let too_low = u64::from(entry.contains("dec_ttl"));
        assert_eq!(punted(&[entry]), too_low, "{entry}");
    }
    assert_eq!(punted(&["actions=controller"]), 3);
}

#[test]
fn copies_leave_before_further_changes() {
    let compiled = [
        "actions=output:2,set_field:02:00:00:00:00:09->eth_dst,output:3",
        "actions=output:2,push_vlan:0x8100,output:3,set_field:4101->vlan_vid,output:4,pop_vlan,in_port",
        "udp,udp_src=80,actions=set_field:10.0.0.9->ip_src,output:2,set_field:9->udp_dst,output:3,set_field:10.9.9.9->ip_dst,set_field:8->udp_src,output:4",
        "cookie=9,ip,actions=controller:30,dec_ttl,output:2,FLOOD",
        "actions=output:2,controller,write_metadata:7",
        "actions=set_queue:3,output:2,set_queue:0,pop_vlan,output:3",
        "udp,actions=dec_ttl,output:2,set_field:10.0.0.9->ip_src,output:3",
        "udp,actions=output:1,set_field:02:00:00:00:00:09->eth_src",
    ];
    for entry in compiled {
        let too_low = u64::from(entry.contains("dec_ttl"));
        assert_eq!(punted(&[entry]), too_low, "{entry}");
    }
}

#[test]
fn copies_leave_before_the_next_table() {
    let behind =
        "table=1,actions=set_field:02:00:00:00:00:09->eth_dst,output:3,push_vlan:0x8100,output:4";
    let before = [
        "actions=output:2,goto_table:1",
        "cookie=5,actions=output:2,push_vlan:0x8100,controller,write_metadata:6,goto_table:1",
        "actions=normal,goto_table:1",
    ];
    for entry in before {
        assert_eq!(punted(&[entry, behind]), 0, "{entry}");
    }
    let plain = "table=1,actions=push_mpls:0x8847,goto_table:2";
    assert_eq!(punted(&[before[0], plain]), 3, "what has left leaves once");
}
