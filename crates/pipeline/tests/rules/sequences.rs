//! Random sequences of all events that controllers and hosts can cause: nothing panics, and the invariants hold.

use crate::support::{Bed, IN, Recorder, TCP, Tcp, port};
use proptest::collection::vec;
use proptest::prelude::*;
use urtica_pipeline::Packet;
use urtica_wire::{
    Action, Bucket, Field, FlowMod, FlowModCommand, FlowModFlags, GROUP_ALL, GROUP_ANY, GroupMod,
    GroupModCommand, GroupType, Instruction, METER_ALL, Match, MeterBand, MeterFlags, MeterMod,
    MeterModCommand, OxmField, PortConfig, PortNo, PortState,
};

#[derive(Clone, Debug)]
enum Event {
    Flow(FlowMod<'static>),
    Group(GroupMod<'static>),
    Meter(MeterMod<'static>),
    SetPort(u32, PortConfig, PortState),
    RemovePort(u32),
    Packet(u32, Vec<u8>),
    PacketOut(Vec<Action<'static>>),
    Wait(u64),
}

fn any_port() -> impl Strategy<Value = PortNo> {
    prop_oneof![
        4 => (0_u32..6).prop_map(PortNo),
        1 => (0xffff_fff0_u32..=u32::MAX).prop_map(PortNo),
    ]
}

/// A field, often one that occurs in packets.
fn any_field() -> impl Strategy<Value = Field<'static>> {
    let field = prop_oneof![
        1 => proptest::sample::select(OxmField::ALL),
        1 => Just(OxmField::EthType),
        1 => Just(OxmField::VlanVid),
    ];
    let value = prop_oneof![
        Just(0x0800_u128),
        Just(0x8847),
        Just(0x1005),
        Just(6),
        any::<u128>()
    ];
    let mask = prop_oneof![3 => Just(u128::MAX), 1 => any::<u128>()];
    (field, value, mask).prop_map(|(field, value, mask)| match field.maskable() {
        true => Field::masked(field, value, mask),
        false => Field::exact(field, value),
    })
}

fn any_action() -> impl Strategy<Value = Action<'static>> {
    prop_oneof![
        3 => any_port().prop_map(Action::output),
        3 => (0_u32..5).prop_map(Action::Group),
        3 => any_field().prop_map(Action::SetField),
        1 => Just(Action::CopyTtlOut),
        1 => Just(Action::CopyTtlIn),
        1 => any::<u8>().prop_map(Action::SetMplsTtl),
        1 => Just(Action::DecMplsTtl),
        1 => Just(Action::PushVlan(0x8100)),
        1 => Just(Action::PopVlan),
        1 => Just(Action::PushMpls(0x8847)),
        1 => Just(Action::PopMpls(0x0800)),
        1 => Just(Action::PushPbb(0x88e7)),
        1 => Just(Action::PopPbb),
        1 => any::<u32>().prop_map(Action::SetQueue),
        1 => any::<u8>().prop_map(Action::SetNwTtl),
        2 => Just(Action::DecNwTtl),
        1 => any::<u16>().prop_map(Action::SetVlanVid),
        1 => any::<u16>().prop_map(Action::SetTpDst),
    ]
}

fn any_instruction() -> impl Strategy<Value = Instruction<'static>> {
    let actions = || vec(any_action(), 0..4);
    prop_oneof![
        (0_u8..4).prop_map(Instruction::GotoTable),
        (any::<u64>(), any::<u64>())
            .prop_map(|(metadata, mask)| Instruction::WriteMetadata { metadata, mask }),
        actions().prop_map(|actions| Instruction::WriteActions(actions.into())),
        actions().prop_map(Instruction::apply),
        Just(Instruction::ClearActions),
        (0_u32..4).prop_map(Instruction::Meter),
    ]
}

fn any_flow_mod() -> impl Strategy<Value = FlowMod<'static>> {
    let numbers = (0_u8..7, 0_u8..4, 0_u16..3, 0_u16..3, 0_u16..0x40);
    let lists = (vec(any_field(), 0..3), vec(any_instruction(), 0..4));
    (numbers, lists).prop_map(
        |((command, table_id, priority, timeout, flags), (fields, instructions))| FlowMod {
            // Adds are the most frequent.
            command: FlowModCommand::from(command.saturating_sub(1)),
            table_id,
            priority,
            idle_timeout: timeout,
            hard_timeout: 2 * timeout,
            flags: FlowModFlags::from_bits_retain(flags),
            match_: Match::from(fields),
            instructions: instructions.into(),
            ..FlowMod::default()
        },
    )
}

fn any_group_mod() -> impl Strategy<Value = GroupMod<'static>> {
    let bucket = (0_u16..3, any_port(), 0_u32..6, vec(any_action(), 0..3));
    let bucket = bucket.prop_map(|(weight, port, group, actions)| Bucket {
        weight,
        watch_port: if port.0 == 0 { PortNo::ANY } else { port },
        watch_group: if group == 5 { GROUP_ANY } else { group },
        actions: actions.into(),
    });
    let group_id = prop_oneof![9 => 0_u32..5, 1 => Just(GROUP_ALL)];
    (0_u16..4, 0_u8..5, group_id, vec(bucket, 0..3)).prop_map(
        |(command, group_type, group_id, buckets)| GroupMod {
            command: GroupModCommand::from(command),
            group_type: GroupType::from(group_type),
            group_id,
            buckets: buckets.into(),
        },
    )
}

fn any_meter_mod() -> impl Strategy<Value = MeterMod<'static>> {
    let numbers = || {
        (
            prop_oneof![0_u32..4, any::<u32>()],
            prop_oneof![0_u32..4, any::<u32>()],
        )
    };
    let band = prop_oneof![
        numbers().prop_map(|(rate, burst_size)| MeterBand::Drop { rate, burst_size }),
        (numbers(), any::<u8>()).prop_map(|((rate, burst_size), prec_level)| {
            MeterBand::DscpRemark {
                rate,
                burst_size,
                prec_level,
            }
        }),
    ];
    let meter_id = prop_oneof![9 => 0_u32..4, 1 => Just(METER_ALL)];
    (0_u16..4, 0_u16..16, meter_id, vec(band, 0..3)).prop_map(
        |(command, flags, meter_id, bands)| MeterMod {
            command: MeterModCommand::from(command),
            flags: MeterFlags::from_bits_retain(flags),
            meter_id,
            bands: bands.into(),
        },
    )
}

fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let tcp = (0_u8..3, 0_u8..64, any::<u16>()).prop_map(|(ttl, dscp, tcp_dst)| {
        Tcp {
            ttl,
            dscp,
            tcp_dst,
            ..TCP
        }
        .frame()
    });
    prop_oneof![tcp, vec(any::<u8>(), 14..80)]
}

fn any_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => any_flow_mod().prop_map(Event::Flow),
        2 => any_group_mod().prop_map(Event::Group),
        1 => any_meter_mod().prop_map(Event::Meter),
        1 => (1_u32..6, 0_u32..128, 0_u32..8).prop_map(|(number, config, state)| {
            Event::SetPort(number, PortConfig::from_bits_retain(config), PortState::from_bits_retain(state))
        }),
        1 => (1_u32..6).prop_map(Event::RemovePort),
        4 => (0_u32..6, any_frame()).prop_map(|(port, frame)| Event::Packet(port, frame)),
        1 => vec(any_action(), 0..4).prop_map(Event::PacketOut),
        1 => (0_u64..5000).prop_map(Event::Wait),
    ]
}

/// Executes an event; returns the packets sent.
fn happen(bed: &mut Bed, event: &Event) -> Recorder {
    let mut sink = Recorder::default();
    let (pipeline, now, removed) = (&mut bed.pipeline, bed.now, &mut bed.removed);
    match event {
        Event::Flow(flow_mod) => drop(pipeline.flow_mod(flow_mod, now, removed)),
        Event::Group(group_mod) => drop(pipeline.group_mod(group_mod, now, removed)),
        Event::Meter(meter_mod) => drop(pipeline.meter_mod(meter_mod, now, removed)),
        Event::SetPort(number, config, state) => bed.set_port(*number, *config, *state),
        Event::RemovePort(number) => drop(pipeline.remove_port(PortNo(*number))),
        Event::Packet(number, frame) => {
            pipeline.process(Packet::new(PortNo(*number), frame), now, &mut sink);
        }
        Event::PacketOut(actions) => {
            pipeline.packet_out(Packet::new(IN, &TCP.frame()), actions, now, &mut sink);
        }
        Event::Wait(milliseconds) => {
            bed.wait(*milliseconds);
            bed.expire();
        }
    }
    sink
}

/// Counts the entries and groups that send packets to a group, by visiting all of them.
fn users_of_group(bed: &Bed, group_id: u32) -> u32 {
    let tables = bed.pipeline.tables().iter();
    let entries = tables.flat_map(|table| table.entries());
    let entries = entries.filter(|entry| entry.instructions.use_group(group_id));
    let wanted = Action::Group(group_id);
    let groups = bed.pipeline.groups().iter();
    let groups = groups.filter(|(_, group)| {
        let mut buckets = group.buckets.iter();
        buckets.any(|bucket| bucket.actions.contains(&wanted))
    });
    (entries.count() + groups.count()) as u32
}

/// Counts the entries that use a meter, by visiting all of them.
fn users_of_meter(bed: &Bed, meter_id: u32) -> u32 {
    let tables = bed.pipeline.tables().iter();
    let entries = tables.flat_map(|table| table.entries());
    let entries = entries.filter(|entry| entry.instructions.meter == Some(meter_id));
    entries.count() as u32
}

proptest! {
    #[test]
    fn references_are_valid(events in vec(any_event(), 0..60)) {
        let mut bed = Bed::new();
        for event in &events {
            let out = happen(&mut bed, event);
            for (port_no, ..) in &out.sent {
                prop_assert!(bed.pipeline.port(*port_no).is_some());
            }
        }
        let (groups, meters) = (bed.pipeline.groups(), bed.pipeline.meters());
        for entry in bed.pipeline.tables().iter().flat_map(|table| table.entries()) {
            prop_assert!(entry.instructions.meter.is_none_or(|id| meters.get(id).is_some()));
            for action in entry.instructions.actions() {
                if let Action::Group(id) = action {
                    prop_assert!(groups.get(*id).is_some());
                }
            }
        }
        for (id, _) in groups.iter() {
            prop_assert_eq!(bed.pipeline.group_ref_count(id), users_of_group(&bed, id));
        }
        for (id, _) in meters.iter() {
            prop_assert_eq!(bed.pipeline.meter_flow_count(id), users_of_meter(&bed, id));
        }
        let flags = FlowModFlags::SEND_FLOW_REM;
        prop_assert!(bed.removed.iter().all(|removed| removed.entry.flags.contains(flags)));
    }

    #[test]
    fn a_table_counts_no_more_matches_than_lookups(events in vec(any_event(), 0..60)) {
        let mut bed = Bed::new();
        for event in &events {
            happen(&mut bed, event);
        }
        for table in bed.pipeline.table_stats() {
            prop_assert!(table.matched_count <= table.lookup_count);
        }
    }
}

#[test]
fn a_port_that_is_added_again_is_used() {
    let mut bed = Bed::with(&["actions=2"]);
    bed.pipeline.remove_port(PortNo(2));
    assert!(bed.send(&TCP.frame()).is_dropped());
    bed.pipeline.set_port(port(2));
    assert_eq!(bed.send(&TCP.frame()).ports(), [2]);
}
