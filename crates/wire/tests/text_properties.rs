//! Tests that written text is parsed as an equal value, and that no text makes the parsers panic.

use proptest::prelude::*;
use urtica_wire::text::{Actions, Instructions};
use urtica_wire::{
    Action, Bucket, BufferId, Field, FlowMod, FlowModCommand, FlowModFlags, GROUP_ANY, GroupMod,
    GroupModCommand, GroupType, Instruction, List, Match, MeterBand, MeterFlags, MeterMod,
    MeterModCommand, OxmField, PortNo, QUEUE_ALL,
};

fn oxm_field() -> impl Strategy<Value = OxmField> {
    proptest::sample::select(OxmField::ALL)
}

/// A value for a field. Values of protocols are frequent, so that names that depend on them are, too.
fn value_of(field: OxmField) -> BoxedStrategy<u128> {
    let usual: &[u128] = match field {
        OxmField::EthType => &[0x0800, 0x0806, 0x8035, 0x86dd, 0x8847, 0x8848],
        OxmField::IpProto => &[1, 6, 17, 58, 132],
        OxmField::VlanVid => &[0, 0x1000, 0x1005, 5],
        OxmField::InPort => &[1, 0xffff_fffe, 0xffff_fffd],
        _ => return any::<u128>().boxed(),
    };
    prop_oneof![4 => proptest::sample::select(usual), 1 => any::<u128>()].boxed()
}

fn match_field() -> impl Strategy<Value = Field<'static>> {
    let masks = prop_oneof![
        Just(u128::MAX),
        any::<u128>(),
        (0u32..128).prop_map(|zeros| u128::MAX << zeros),
    ];
    let masked =
        oxm_field().prop_flat_map(move |field| (Just(field), value_of(field), masks.clone()));
    masked.prop_map(|(field, value, mask)| {
        let mask = mask & field.full_mask();
        let whole = !field.maskable() || mask == 0;
        Field::masked(field, value, if whole { u128::MAX } else { mask })
    })
}

fn any_match() -> impl Strategy<Value = Match<'static>> {
    let fields = proptest::collection::vec(match_field(), 0..8);
    fields.prop_map(|fields| fields.into_iter().fold(Match::any(), Match::with))
}

fn port() -> impl Strategy<Value = PortNo> {
    prop_oneof![any::<u32>(), 0u32..100, 0xffff_fff8..=u32::MAX].prop_map(PortNo)
}

fn output() -> impl Strategy<Value = Action<'static>> {
    (port(), any::<u16>()).prop_map(|(port, max_len)| match port {
        PortNo::CONTROLLER => Action::Output { port, max_len },
        port => Action::output(port),
    })
}

fn action() -> impl Strategy<Value = Action<'static>> {
    let set = oxm_field().prop_flat_map(|field| (Just(field), value_of(field)));
    prop_oneof![
        4 => output(),
        4 => set.prop_map(|(field, value)| Action::SetField(Field::exact(field, value))),
        1 => any::<u16>().prop_map(Action::PushVlan),
        1 => any::<u16>().prop_map(Action::PushMpls),
        1 => any::<u16>().prop_map(Action::PopMpls),
        1 => any::<u16>().prop_map(Action::PushPbb),
        1 => any::<u32>().prop_map(Action::SetQueue),
        1 => any::<u32>().prop_map(Action::Group),
        1 => any::<u8>().prop_map(Action::SetNwTtl),
        1 => any::<u8>().prop_map(Action::SetMplsTtl),
        1 => (0u16..4096).prop_map(Action::SetVlanVid),
        1 => (0u8..8).prop_map(Action::SetVlanPcp),
        1 => any::<u16>().prop_map(Action::SetTpSrc),
        1 => any::<u16>().prop_map(Action::SetTpDst),
        1 => (port(), 0..QUEUE_ALL).prop_map(|(port, queue_id)| Action::Enqueue { port, queue_id }),
        3 => proptest::sample::select(vec![
            Action::CopyTtlOut,
            Action::CopyTtlIn,
            Action::DecMplsTtl,
            Action::PopVlan,
            Action::DecNwTtl,
            Action::PopPbb,
        ]),
    ]
}

fn actions(least: usize) -> impl Strategy<Value = List<'static, Action<'static>>> {
    proptest::collection::vec(action(), least..6).prop_map(List::from)
}

/// Instructions in the order of execution, each at most once.
fn instructions() -> impl Strategy<Value = List<'static, Instruction<'static>>> {
    use proptest::option::of;
    let meter = of(any::<u32>()).prop_map(|id| id.map(Instruction::Meter));
    let apply = of(actions(1)).prop_map(|list| list.map(Instruction::ApplyActions));
    let clear = of(Just(Instruction::ClearActions));
    let write = of(actions(0)).prop_map(|list| list.map(Instruction::WriteActions));
    let metadata = of(any::<(u64, u64)>()).prop_map(|pair| {
        pair.map(|(metadata, mask)| Instruction::WriteMetadata { metadata, mask })
    });
    let goto = of(any::<u8>()).prop_map(|table| table.map(Instruction::GotoTable));
    (meter, apply, clear, write, metadata, goto)
        .prop_map(|(a, b, c, d, e, f)| [a, b, c, d, e, f].into_iter().flatten().collect())
}

fn command() -> impl Strategy<Value = FlowModCommand> {
    (0u8..5).prop_map(FlowModCommand::from)
}

fn flow() -> impl Strategy<Value = FlowMod<'static>> {
    let numbers = any::<(u64, u64, u8, u16, u16, u16)>();
    let restrictions = (
        prop_oneof![Just(PortNo::ANY), port()],
        prop_oneof![Just(GROUP_ANY), any::<u32>()],
        prop_oneof![Just(BufferId::NONE), any::<u32>().prop_map(BufferId)],
        any::<u16>().prop_map(FlowModFlags::from_bits_retain),
    );
    (
        command(),
        numbers,
        restrictions,
        any_match(),
        instructions(),
    )
        .prop_map(|(command, numbers, restrictions, match_, instructions)| {
            let (cookie, mask, table_id, priority, idle_timeout, hard_timeout) = numbers;
            let (out_port, out_group, buffer_id, flags) = restrictions;
            let cookie_mask = if command == FlowModCommand::Add {
                0
            } else {
                mask
            };
            FlowMod {
                cookie,
                cookie_mask,
                table_id,
                command,
                idle_timeout,
                hard_timeout,
                priority,
                buffer_id,
                out_port,
                out_group,
                flags,
                match_,
                instructions,
            }
        })
}

fn group() -> impl Strategy<Value = GroupMod<'static>> {
    let bucket = (any::<u16>(), port(), any::<u32>(), actions(0));
    let bucket = bucket.prop_map(|(weight, watch_port, watch_group, actions)| Bucket {
        weight,
        watch_port,
        watch_group,
        actions,
    });
    let buckets = proptest::collection::vec(bucket, 0..4);
    (any::<u32>(), any::<u8>(), buckets).prop_map(|(group_id, group_type, buckets)| GroupMod {
        command: GroupModCommand::Add,
        group_type: GroupType::from(group_type % 6),
        group_id,
        buckets: List::from(buckets),
    })
}

fn meter() -> impl Strategy<Value = MeterMod<'static>> {
    let band = any::<(u32, u32, u8, bool)>().prop_map(|(rate, burst_size, prec_level, drop)| {
        if drop {
            MeterBand::Drop { rate, burst_size }
        } else {
            MeterBand::DscpRemark {
                rate,
                burst_size,
                prec_level,
            }
        }
    });
    let bands = proptest::collection::vec(band, 0..4);
    (any::<u32>(), any::<u16>(), bands).prop_map(|(meter_id, flags, bands)| MeterMod {
        command: MeterModCommand::Add,
        flags: MeterFlags::from_bits_retain(flags),
        meter_id,
        bands: List::from(bands),
    })
}

/// Words in the syntax.
const WORDS: &[&str] = &[
    "tcp",
    "arp",
    "nw_src",
    "dl_vlan",
    "vlan_tci",
    "tp_dst",
    "in_port",
    "output",
    "drop",
    "set_field",
    "->",
    "actions",
    "write_actions",
    "controller",
    "enqueue",
    "bucket",
    "weight",
    "group_id",
    "meter",
    "bands",
    "type",
    "rate",
    "cookie",
    "=",
    ":",
    ",",
    "(",
    ")",
    "/",
    " ",
    "0",
    "1",
    "0x1000",
    "65536",
    "10.0.0.1",
    "::1",
    "ff:ff:ff:ff:ff:ff",
    "*",
    "é",
    "max_len=",
    "ip_dst",
    "goto_table",
];

/// Texts of these words in any order, which get further in the parsers than random letters.
fn wordy() -> impl Strategy<Value = String> {
    proptest::collection::vec(proptest::sample::select(WORDS), 0..16)
        .prop_map(|words| words.concat())
}

fn parse_all(text: &str) {
    let _ = text.parse::<Match>();
    let _ = text.parse::<Action>();
    let _ = text.parse::<Actions>();
    let _ = text.parse::<Instructions>();
    for command in 0..5 {
        let _ = FlowMod::parse(FlowModCommand::from(command), text);
    }
    let _ = GroupMod::parse(GroupModCommand::Add, text);
    let _ = MeterMod::parse(MeterModCommand::Add, text);
}

proptest! {
    #[test]
    fn matches_read_back(match_ in any_match()) {
        prop_assert_eq!(match_.to_string().parse(), Ok(match_));
    }

    #[test]
    fn actions_read_back(action in action()) {
        prop_assert_eq!(action.to_string().parse(), Ok(action));
    }

    #[test]
    fn instructions_read_back(instructions in instructions()) {
        let instructions = Instructions(instructions);
        prop_assert_eq!(instructions.to_string().parse(), Ok(instructions));
    }

    #[test]
    fn flows_read_back(flow in flow()) {
        prop_assert_eq!(FlowMod::parse(flow.command, &flow.to_string()), Ok(flow));
    }

    #[test]
    fn groups_read_back(group in group()) {
        prop_assert_eq!(GroupMod::parse(group.command, &group.to_string()), Ok(group));
    }

    #[test]
    fn meters_read_back(meter in meter()) {
        prop_assert_eq!(MeterMod::parse(meter.command, &meter.to_string()), Ok(meter));
    }

    #[test]
    fn no_text_panics(text: String) {
        parse_all(&text);
    }

    #[test]
    fn no_words_panic(text in wordy()) {
        parse_all(&text);
    }

    #[test]
    fn errors_point_into_the_text(text in wordy()) {
        if let Err(error) = FlowMod::parse(FlowModCommand::Add, &text) {
            let at = error.column() - 1;
            prop_assert!(text[at..].starts_with(error.found()), "{}", error);
        }
    }
}
