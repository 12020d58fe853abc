//! Refused instructions and actions, each with its error code (1.3.5 section 7.4.4).

use crate::support::{Bed, TCP};
use urtica_wire::text::Actions;
use urtica_wire::{Action, ErrorCode, Field, FlowMod, Instruction, OxmField, PortNo, RawField};

#[track_caller]
fn refused(instructions: Vec<Instruction>) -> ErrorCode {
    let flow_mod = FlowMod {
        instructions: instructions.into(),
        ..FlowMod::default()
    };
    let mut bed = Bed::new();
    let code = bed.try_flow_mod(&flow_mod).expect_err("a bad flow mod");
    assert!(bed.dump().is_empty());
    code
}

#[track_caller]
fn refused_action(action: Action) -> ErrorCode {
    let written = vec![Instruction::WriteActions(vec![action].into())];
    let code = refused(vec![Instruction::apply(vec![action])]);
    assert_eq!(refused(written), code);
    code
}

#[test]
fn a_goto_leads_only_to_later_tables() {
    let mut bed = Bed::with(&["table=0,actions=goto_table:2"]);
    let code = ErrorCode::BadInstructionBadTableId;
    assert_eq!(bed.refused("table=1,actions=goto_table:1"), code);
    assert_eq!(bed.refused("table=1,actions=goto_table:0"), code);
    assert_eq!(bed.refused("table=1,actions=goto_table:3"), code);
}

#[test]
fn a_meter_must_exist() {
    let mut bed = Bed::new();
    let code = ErrorCode::MeterModFailedInvalidMeter;
    assert_eq!(bed.refused("actions=meter:1,output:2"), code);
    bed.add_meter("meter=1,kbps,band=type=drop,rate=1");
    bed.add("actions=meter:1,output:2");
}

#[test]
fn experimenters_are_unknown() {
    let instruction = Instruction::Experimenter {
        experimenter: 1,
        data: &[],
    };
    let code = ErrorCode::BadInstructionBadExperimenter;
    assert_eq!(refused(vec![instruction]), code);
    let action = Action::Experimenter {
        experimenter: 1,
        data: &[],
    };
    let code = ErrorCode::BadActionBadExperimenter;
    assert_eq!(refused_action(action), code);
}

#[test]
fn an_instruction_may_occur_once() {
    let twice = vec![Instruction::ClearActions, Instruction::ClearActions];
    assert_eq!(refused(twice), ErrorCode::BadInstructionUnsupInst);
    let twice = vec![Instruction::GotoTable(1), Instruction::GotoTable(2)];
    assert_eq!(refused(twice), ErrorCode::BadInstructionUnsupInst);
}

#[test]
fn ports_must_exist_or_be_reserved() {
    for port in [
        PortNo(0),
        PortNo(5),
        PortNo::MAX,
        PortNo(0xffff_fff0),
        PortNo::TABLE,
        PortNo::LOCAL,
        PortNo::ANY,
    ] {
        let code = ErrorCode::BadActionBadOutPort;
        assert_eq!(refused_action(Action::output(port)), code, "{port}");
        let enqueue = Action::Enqueue { port, queue_id: 1 };
        assert_eq!(refused_action(enqueue), code, "{port}");
    }
    Bed::with(&["actions=output:4,in_port,normal,flood,all,controller"]);
}

#[test]
fn ports_have_no_queues() {
    let enqueue = Action::Enqueue {
        port: PortNo(1),
        queue_id: 1,
    };
    assert_eq!(refused_action(enqueue), ErrorCode::BadActionBadQueue);
}

#[test]
fn groups_must_exist() {
    let code = ErrorCode::BadActionBadOutGroup;
    assert_eq!(refused_action(Action::Group(1)), code);
    assert_eq!(refused_action(Action::Group(0xffff_ffff)), code);
}

#[test]
fn pushed_headers_have_their_types() {
    let code = ErrorCode::BadActionBadArgument;
    assert_eq!(refused_action(Action::PushVlan(0x0800)), code);
    assert_eq!(refused_action(Action::PushMpls(0x8100)), code);
    assert_eq!(refused_action(Action::PushPbb(0x88a8)), code);
    assert_eq!(refused_action(Action::SetVlanVid(0x1000)), code);
    assert_eq!(refused_action(Action::SetVlanPcp(8)), code);
}

#[test]
fn fields_of_the_pipeline_cannot_be_set() {
    let code = ErrorCode::BadActionBadSetType;
    for field in [
        OxmField::InPort,
        OxmField::InPhyPort,
        OxmField::Metadata,
        OxmField::Ipv6Exthdr,
    ] {
        let action = Action::SetField(Field::exact(field, 1));
        assert_eq!(refused_action(action), code, "{field:?}");
    }
    let unknown = Field::Raw(RawField {
        class: 0x8000,
        field: 44,
        has_mask: false,
        body: &[0; 4],
    });
    assert_eq!(refused_action(Action::SetField(unknown)), code);
}

#[test]
fn fields_are_set_whole_to_values_of_their_width() {
    let basic = |field, value, mask| Action::SetField(Field::Basic { field, value, mask });
    let code = ErrorCode::BadActionBadSetArgument;
    let full = OxmField::EthDst.full_mask();
    assert_eq!(refused_action(basic(OxmField::EthDst, 1, 1)), code);
    assert_eq!(
        refused_action(basic(OxmField::EthDst, full + 1, full)),
        code
    );
    assert_eq!(refused_action(basic(OxmField::VlanVid, 5, 0x1fff)), code);
}

#[test]
fn a_field_can_be_set_if_the_match_ensures_it() {
    let mut bed = Bed::with(&[
        "tcp,actions=set_field:10.0.0.1->ipv4_src,set_field:80->tcp_dst",
        "actions=set_field:02:00:00:00:00:01->eth_src,set_field:7->tunnel_id",
    ]);
    let code = ErrorCode::BadActionMatchInconsistent;
    assert_eq!(bed.refused("actions=set_field:10.0.0.1->ipv4_src"), code);
    assert_eq!(bed.refused("udp,actions=set_field:80->tcp_dst"), code);
    assert_eq!(bed.refused("arp,actions=dec_ttl"), code);
    assert_eq!(bed.refused("ip,actions=pop_mpls:0x800"), code);
    assert_eq!(bed.refused("ip,actions=pop_pbb"), code);
}

#[test]
fn earlier_actions_may_add_or_remove_a_field() {
    let mut bed = Bed::with(&[
        "ip,actions=push_mpls:0x8847,set_field:5->mpls_label",
        "mpls,actions=pop_mpls:0x800,set_field:10.0.0.1->ipv4_src,dec_ttl",
        "arp,actions=push_vlan:0x8100,set_field:3->vlan_pcp",
        "priority=1,actions=push_pbb:0x88e7,set_field:3->pbb_isid",
    ]);
    let code = ErrorCode::BadActionMatchInconsistent;
    let mpls = "ip,actions=push_mpls:0x8847,set_field:10.0.0.1->ipv4_src";
    assert_eq!(bed.refused(mpls), code);
    let popped = "dl_vlan=5,actions=pop_vlan,set_field:3->vlan_pcp";
    assert_eq!(bed.refused(popped), code);
    let twice = "dl_vlan=5,actions=push_vlan:0x8100,pop_vlan,set_field:3->vlan_pcp";
    bed.add(twice);
}

/// The action set is executed after the applied actions, whatever the order of the instructions.
#[test]
fn an_action_set_applies_after_applied_actions() {
    let mut bed = Bed::with(&[
        "in_port=1,actions=push_vlan:0x8100,write_actions(set_field:3->vlan_pcp,output:2)",
        "in_port=2,ip,actions=push_mpls:0x8847,write_actions(set_field:5->mpls_label,output:2)",
    ]);
    let out = bed.send(&TCP.frame());
    assert_eq!(out.ports(), [2]);
    assert_eq!(out.frame_at(2)[12..16], [0x81, 0, 0x60, 0]);
    let set = Instruction::WriteActions(
        vec![Action::SetField(Field::exact(OxmField::VlanPcp, 3))].into(),
    );
    let push = Instruction::apply(vec![Action::PushVlan(0x8100)]);
    let flow_mod = FlowMod {
        instructions: vec![set, push].into(),
        ..FlowMod::default()
    };
    assert_eq!(bed.try_flow_mod(&flow_mod), Ok(()));
    let code = ErrorCode::BadActionMatchInconsistent;
    let gone = "dl_vlan=5,actions=pop_vlan,write_actions(set_field:3->vlan_pcp)";
    assert_eq!(bed.refused(gone), code);
}

#[test]
fn an_action_set_is_checked_in_its_own_order() {
    let mut bed = Bed::new();
    bed.add("ip,actions=write_actions(set_field:5->mpls_label,push_mpls:0x8847)");
    let code = ErrorCode::BadActionMatchInconsistent;
    let listed = "priority=1,ip,actions=set_field:5->mpls_label,push_mpls:0x8847";
    assert_eq!(bed.refused(listed), code);
}

#[test]
fn a_packet_out_is_checked_like_an_entry_but_may_use_the_tables() {
    let bed = Bed::new();
    let check = |actions: &str| {
        let actions: Actions = actions.parse().expect(actions);
        bed.pipeline.check_packet_out(&actions.0)
    };
    assert_eq!(check("set_field:10.0.0.1->ipv4_src,TABLE,output:2"), Ok(()));
    assert_eq!(check("output:9"), Err(ErrorCode::BadActionBadOutPort));
    assert_eq!(check("group:9"), Err(ErrorCode::BadActionBadOutGroup));
}
