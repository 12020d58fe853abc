//! Random flow mods, which make every template occur, and tables change from one template to another.

use super::choices::{Choices, SWITCH_PORTS};
use super::frames::{PORTS, TTLS, VIDS, ipv4, ipv6, mac};
use urtica_wire::{
    Action, Bucket, Field, FlowMod, FlowModCommand, FlowModFlags, GROUP_ANY, GroupMod,
    GroupModCommand, GroupType, Instruction, List, Match, MeterBand, MeterFlags, MeterMod,
    MeterModCommand, OxmField, PortNo, TABLE_ALL,
};

/// Number of tables.
pub const TABLES: u8 = 4;

/// The kind of entries in one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// Ethernet destinations with one priority: one hash table.
    Hosts,
    /// Addresses, ports and tags under few different masks: several hash tables.
    Lists,
    /// Both endpoints of TCP or UDP: one hash table per protocol.
    Flows,
    /// Prefixes whose priorities follow their lengths: a trie.
    Routes,
    /// Prefixes of IPv6 whose priorities follow their lengths: a trie.
    Routes6,
    /// Prefixes of any priority.
    MixedRoutes,
    /// Lists and prefixes for each port: several hash tables, or sub-tables.
    PortLists,
    /// Services that some addresses offer to certain networks: sub-tables of several hash tables, or cut again.
    Services,
    /// Any bits of addresses and ports: merged tuples.
    Masks,
    /// Any fields, including fields that only the plain form supports.
    Anything,
}

const PROFILES: [Profile; 10] = [
    Profile::Hosts,
    Profile::Lists,
    Profile::Flows,
    Profile::Routes,
    Profile::Routes6,
    Profile::MixedRoutes,
    Profile::PortLists,
    Profile::Services,
    Profile::Masks,
    Profile::Anything,
];

/// A match, and its priority.
type Chosen = (u16, Vec<Field<'static>>);

impl Profile {
    pub fn any(choices: &mut Choices) -> Self {
        choices.pick(&PROFILES)
    }

    /// Chooses an entry's priority and match.
    fn choose(self, choices: &mut Choices) -> Chosen {
        if choices.is_in(3) {
            let fields = match choices.below(3) {
                0 => vec![eth_type(choices.pick(&[0x0800, 0x86dd]))],
                _ => vec![],
            };
            return (choices.pick(&[0, 0, 0, 5, 32, 0xffff]), fields);
        }
        match self {
            Self::Hosts => (
                priority_of(choices, 90),
                vec![exact(OxmField::EthDst, mac(choices))],
            ),
            Self::Lists => list(choices),
            Self::Flows => (priority_of(choices, 80), flow(choices)),
            Self::Routes => route(choices, false),
            Self::Routes6 => route(choices, true),
            Self::MixedRoutes => {
                let is_v6 = choices.is_in(20);
                let (_, fields) = route(choices, is_v6);
                (choices.below(4) as u16, fields)
            }
            Self::PortLists => port_list(choices),
            Self::Services => service(choices),
            Self::Masks => masks(choices),
            Self::Anything => (choices.below(4) as u16, anything(choices)),
        }
    }
}

/// Returns 10 with this probability in percent, otherwise a random priority.
fn priority_of(choices: &mut Choices, percent: usize) -> u16 {
    match choices.is_in(100 - percent) {
        true => choices.pick(&[0, 1, 5, 11, 0xffff]),
        false => 10,
    }
}

fn exact(field: OxmField, value: impl Into<u128>) -> Field<'static> {
    Field::exact(field, value.into())
}

fn masked(field: OxmField, value: u128, mask: u128) -> Field<'static> {
    let mask = mask & field.full_mask();
    Field::masked(field, value & mask, mask)
}

fn eth_type(number: u16) -> Field<'static> {
    exact(OxmField::EthType, number)
}

fn list(choices: &mut Choices) -> Chosen {
    use OxmField::*;
    let priority = choices.below(5) as u16;
    let fields = match choices.below(9) {
        0 => vec![exact(EthDst, mac(choices)), exact(InPort, choices.port().0)],
        1 => vec![exact(EthSrc, mac(choices))],
        2 => vec![masked(
            EthDst,
            mac(choices).into(),
            choices.pick(&[0xff00_0000_000f, 0x8, 0xffff_ffff_fffe]),
        )],
        3 => vec![vlan_vid(choices)],
        4 => vec![
            vlan_vid(choices),
            exact(EthDst, mac(choices)),
            eth_type(choices.pick(&[0x0800, 0x86dd, 0x9999, 0x8847])),
        ],
        5 => flow(choices),
        6 => {
            let value = choices.below(8) as u128;
            vec![masked(Metadata, value, choices.pick(&[7, 3, 1]))]
        }
        7 => vec![exact(InPort, choices.port().0)],
        _ => {
            let (_, mut fields) = route(choices, false);
            fields.push(masked(Ipv4Src, ipv4(choices).into(), 0xff));
            fields
        }
    };
    (priority, fields)
}

/// An entry for one port, or for all ports.
fn port_list(choices: &mut Choices) -> Chosen {
    let (priority, mut fields) = match choices.below(6) {
        0 => list(choices),
        1 => (choices.below(3) as u16, vec![]),
        _ => route(choices, false),
    };
    let port = exact(OxmField::InPort, choices.below(5) as u32);
    let has_port = |field: &Field| {
        matches!(
            field,
            Field::Basic {
                field: OxmField::InPort,
                ..
            }
        )
    };
    if !fields.iter().any(has_port) && choices.is_in(92) {
        fields.push(port);
    }
    (priority, fields)
}

/// A match on one address or one of some networks, from anywhere or from some network.
fn service(choices: &mut Choices) -> Chosen {
    use OxmField::*;
    let mask = choices.pick(&[!0, !0, !0, !0, !0, !0, 0xffff_ff00, 0xffff_0000]);
    let mut fields = vec![
        eth_type(0x0800),
        masked(Ipv4Dst, ipv4(choices).into(), mask),
    ];
    let bits = choices.below(12);
    if bits > 0 {
        let mask = u128::MAX << (32 - 2 * bits);
        fields.push(masked(Ipv4Src, ipv4(choices).into(), mask));
    }
    let (proto, dst) = choices.pick(&[(6_u8, TcpDst), (6, TcpDst), (17, UdpDst)]);
    if choices.is_in(70) {
        fields.push(exact(IpProto, proto));
        if choices.is_in(80) {
            fields.push(exact(dst, choices.pick(&PORTS)));
        }
    }
    (choices.below(6) as u16, fields)
}

/// Bits of both addresses, ports and more, which few entries share.
fn masks(choices: &mut Choices) -> Chosen {
    use OxmField::*;
    let is_v6 = choices.is_in(15);
    let (number, [source, destination]) = match is_v6 {
        true => (0x86dd, [Ipv6Src, Ipv6Dst]),
        false => (0x0800, [Ipv4Src, Ipv4Dst]),
    };
    let mut fields = vec![eth_type(number)];
    for field in [source, destination] {
        let value = value_of(field, choices);
        let len = choices.below(field.bits() as usize + 1) as u32;
        let prefix = u128::MAX.checked_shl(field.bits() - len).unwrap_or(0);
        let mask = match choices.below(4) {
            0 => 0,
            1 => field.full_mask() & !0xff00,
            _ => prefix & field.full_mask(),
        };
        if mask != 0 {
            fields.push(masked(field, value, mask));
        }
    }
    let (proto, ports) = choices.pick(&[(6_u8, [TcpSrc, TcpDst]), (17, [UdpSrc, UdpDst])]);
    if choices.is_in(60) {
        fields.push(exact(IpProto, proto));
        for field in ports {
            let mask = choices.pick(&[0, 0, 0xffff, 0xfff0, 0xff00, 1]);
            if mask != 0 {
                fields.push(masked(field, value_of(field, choices), mask));
            }
        }
    }
    if choices.is_in(20) {
        fields.push(exact(InPort, choices.below(4) as u32));
    }
    (choices.below(8) as u16, fields)
}

fn vlan_vid(choices: &mut Choices) -> Field<'static> {
    let vid = 0x1000 | u128::from(choices.pick(&VIDS));
    match choices.below(5) {
        0 => exact(OxmField::VlanVid, 0_u8),
        1 => masked(OxmField::VlanVid, 0x1000, 0x1000),
        2 => masked(OxmField::VlanVid, vid, 0x1001),
        _ => exact(OxmField::VlanVid, vid),
    }
}

fn flow(choices: &mut Choices) -> Vec<Field<'static>> {
    use OxmField::*;
    let mut fields = match choices.is_in(20) {
        true => vec![
            eth_type(0x86dd),
            exact(Ipv6Src, ipv6(choices)),
            exact(Ipv6Dst, ipv6(choices)),
        ],
        false => vec![
            eth_type(0x0800),
            exact(Ipv4Src, ipv4(choices)),
            exact(Ipv4Dst, ipv4(choices)),
        ],
    };
    // Without some fields, the match has another set of fields, and packets match it more often.
    if choices.is_in(60) {
        fields.truncate(1);
    }
    let (proto, src, dst) = choices.pick(&[(6_u8, TcpSrc, TcpDst), (17, UdpSrc, UdpDst)]);
    fields.push(exact(IpProto, proto));
    fields.push(exact(dst, choices.pick(&PORTS)));
    if choices.is_in(30) {
        fields.push(exact(src, choices.pick(&PORTS)));
    }
    fields
}

/// A route; a longer prefix precedes a shorter one.
fn route(choices: &mut Choices, is_v6: bool) -> Chosen {
    let (field, number, len) = match is_v6 {
        false => (
            OxmField::Ipv4Dst,
            u128::from(ipv4(choices)),
            choices.pick(&[32_u32, 24, 25, 31, 16, 8, 9, 1]),
        ),
        true => (
            OxmField::Ipv6Dst,
            ipv6(choices),
            choices.pick(&[128, 64, 65, 127, 48, 32, 1]),
        ),
    };
    let mask = u128::MAX << (field.bits() - len);
    let network = eth_type(if is_v6 { 0x86dd } else { 0x0800 });
    (len as u16, vec![network, masked(field, number, mask)])
}

/// Fields with their prerequisites, with few different values in packets.
fn anything(choices: &mut Choices) -> Vec<Field<'static>> {
    let field = choices.pick(OxmField::ALL);
    let mut fields = needed_for(field, choices);
    fields.push(any_value(field, choices));
    if choices.is_in(40) {
        fields.push(exact(OxmField::InPort, choices.below(4) as u32));
    }
    fields
}

fn needed_for(field: OxmField, choices: &mut Choices) -> Vec<Field<'static>> {
    use OxmField::*;
    let ip = |choices: &mut Choices| eth_type(choices.pick(&[0x0800, 0x86dd]));
    let over = |eth: Field<'static>, proto: u8| vec![eth, exact(IpProto, proto)];
    match field {
        InPhyPort => vec![exact(InPort, choices.below(4) as u32)],
        VlanPcp => vec![masked(VlanVid, 0x1000, 0x1000)],
        IpDscp | IpEcn | IpProto => vec![ip(choices)],
        Ipv4Src | Ipv4Dst => vec![eth_type(0x0800)],
        TcpSrc | TcpDst => over(ip(choices), 6),
        UdpSrc | UdpDst => over(ip(choices), 17),
        SctpSrc | SctpDst => over(ip(choices), 132),
        Icmpv4Type | Icmpv4Code => over(eth_type(0x0800), 1),
        ArpOp | ArpSpa | ArpTpa | ArpSha | ArpTha => vec![eth_type(0x0806)],
        Ipv6Src | Ipv6Dst | Ipv6Flabel | Ipv6Exthdr => vec![eth_type(0x86dd)],
        Icmpv6Type | Icmpv6Code => over(eth_type(0x86dd), 58),
        Ipv6NdTarget | Ipv6NdSll => {
            [over(eth_type(0x86dd), 58), vec![exact(Icmpv6Type, 135_u8)]].concat()
        }
        Ipv6NdTll => [over(eth_type(0x86dd), 58), vec![exact(Icmpv6Type, 136_u8)]].concat(),
        MplsLabel | MplsTc | MplsBos => vec![eth_type(0x8847)],
        PbbIsid => vec![eth_type(0x88e7)],
        InPort | Metadata | EthDst | EthSrc | EthType | VlanVid | TunnelId => vec![],
    }
}

fn any_value(field: OxmField, choices: &mut Choices) -> Field<'static> {
    let value = value_of(field, choices);
    match field {
        OxmField::VlanVid => vlan_vid(choices),
        _ if field.maskable() && choices.is_in(40) => {
            let mask = choices.pick(&[1, 0xff00, u128::MAX << 8, 0xfff0_0000, !0xf]);
            masked(field, value, mask)
        }
        _ => Field::exact(field, value),
    }
}

/// A value that packets may have.
fn value_of(field: OxmField, choices: &mut Choices) -> u128 {
    use OxmField::*;
    let value = match field {
        InPort | InPhyPort => choices.below(4) as u128,
        Metadata | TunnelId => choices.below(8) as u128,
        EthDst | EthSrc | ArpSha | ArpTha | Ipv6NdSll | Ipv6NdTll => mac(choices).into(),
        EthType => choices.pick(&[0x0800, 0x86dd, 0x0806, 0x8847, 0x9999, 0x05ff]),
        VlanVid => 0x1000 | u128::from(choices.pick(&VIDS)),
        VlanPcp => choices.pick(&[0, 1, 7]),
        IpDscp => choices.pick(&[0, 10, 0x3f]),
        IpEcn => choices.pick(&[0, 3]),
        IpProto => choices.pick(&[6, 17, 1, 58, 132, 47, 44]),
        Ipv4Src | Ipv4Dst | ArpSpa | ArpTpa => ipv4(choices).into(),
        Ipv6Src | Ipv6Dst | Ipv6NdTarget => ipv6(choices),
        Ipv6Flabel => choices.pick(&[0, 5, 0xf_ffff]),
        TcpSrc | TcpDst | UdpSrc | UdpDst | SctpSrc | SctpDst => choices.pick(&PORTS).into(),
        Icmpv4Type | Icmpv6Type => choices.pick(&[8, 0, 135, 136]),
        Icmpv4Code | Icmpv6Code | ArpOp | MplsTc | MplsBos => choices.pick(&[0, 1]),
        MplsLabel | PbbIsid => choices.pick(&[0, 1, 0x10]),
        Ipv6Exthdr => choices.pick(&[0, 1, 0x10]),
    };
    value & field.full_mask()
}

/// Actions that are mostly valid for an entry with this match.
fn actions(choices: &mut Choices, fields: &[Field]) -> Vec<Action<'static>> {
    let count = choices.pick(&[0, 0, 0, 1, 1, 2, 3, 5]);
    let mut list: Vec<_> = (0..count).map(|_| action(choices, fields)).collect();
    match choices.below(10) {
        0..7 => list.push(Action::output(out_port(choices))),
        7 => list.push(Action::Group(1 + choices.below(3) as u32)),
        8 => {
            let ports = 2 + choices.below(3);
            list.extend((0..ports).map(|_| Action::output(out_port(choices))));
        }
        _ => {}
    }
    list
}

pub fn set_queue(choices: &mut Choices) -> Action<'static> {
    Action::SetQueue(choices.pick(&[0, 1, 7, 65_535]))
}

fn out_port(choices: &mut Choices) -> PortNo {
    match choices.below(24) {
        0 => PortNo::CONTROLLER,
        1 => PortNo::IN_PORT,
        2 => PortNo::FLOOD,
        3 => PortNo::ALL,
        4 => PortNo::NORMAL,
        5 => PortNo(0),
        number => SWITCH_PORTS[number % SWITCH_PORTS.len()],
    }
}

fn action(choices: &mut Choices, fields: &[Field]) -> Action<'static> {
    let settable = settable(fields);
    match choices.below(20) {
        0..9 => {
            let field = choices.pick(&settable);
            Action::SetField(Field::exact(field, value_of(field, choices)))
        }
        9 => Action::PushVlan(choices.pick(&[0x8100, 0x88a8])),
        10 => Action::PopVlan,
        11 | 12 => Action::DecNwTtl,
        13 => Action::SetNwTtl(choices.pick(&TTLS)),
        14 => Action::Group(choices.below(4) as u32),
        15 => Action::output(out_port(choices)),
        16 => Action::SetVlanVid(choices.pick(&VIDS)),
        _ => choices.pick(&[
            Action::CopyTtlOut,
            Action::CopyTtlIn,
            Action::DecMplsTtl,
            Action::PushMpls(0x8847),
            Action::PopMpls(0x0800),
            Action::PushPbb(0x88e7),
            Action::PopPbb,
            Action::SetQueue(3),
            Action::SetTpDst(80),
            Action::SetVlanPcp(3),
            Action::Enqueue {
                port: PortNo(1),
                queue_id: 1,
            },
        ]),
    }
}

/// Fields that can be set in packets with this match, and sometimes one that cannot.
fn settable(fields: &[Field]) -> Vec<OxmField> {
    use OxmField::*;
    let mut list = vec![EthDst, EthSrc, VlanVid, VlanPcp, TunnelId, EthType];
    let has = |wanted: OxmField, number: u128| {
        fields.iter().any(
            |field| matches!(field, Field::Basic { field, value, .. } if (*field, *value) == (wanted, number)),
        )
    };
    let groups: [(_, _, &[OxmField]); 7] = [
        (
            EthType,
            0x0800,
            &[Ipv4Src, Ipv4Dst, Ipv4Src, Ipv4Dst, IpDscp, IpEcn],
        ),
        (EthType, 0x86dd, &[Ipv6Src, Ipv6Dst, Ipv6Flabel]),
        (EthType, 0x0806, &[ArpOp, ArpSpa, ArpTha]),
        (IpProto, 6, &[TcpSrc, TcpDst, TcpSrc, TcpDst]),
        (IpProto, 17, &[UdpSrc, UdpDst, UdpSrc, UdpDst]),
        (IpProto, 132, &[SctpSrc, SctpDst]),
        (IpProto, 58, &[Icmpv6Type, Icmpv6Code]),
    ];
    for (field, value, more) in groups {
        if has(field, value) {
            list.extend(more);
        }
    }
    list
}

fn instructions(
    choices: &mut Choices,
    table_id: u8,
    fields: &[Field],
) -> List<'static, Instruction<'static>> {
    let mut list = Vec::new();
    let goes_on = table_id < TABLES - 1 && choices.is_in(40);
    if goes_on {
        let next = table_id + 1 + choices.below(2) as u8;
        list.push(Instruction::GotoTable(next.min(TABLES - 1)));
    }
    if choices.is_in(85) {
        let mut actions = actions(choices, fields);
        if goes_on && choices.is_in(80) {
            actions.retain(|action| !matches!(action, Action::Output { .. }));
        }
        if choices.is_in(10) {
            actions.insert(choices.below(actions.len() + 1), set_queue(choices));
        }
        list.push(Instruction::apply(actions));
    }
    if choices.is_in(20) {
        let mask = choices.pick(&[7, u64::MAX, 1, 0]);
        let metadata = choices.below(8) as u64;
        list.push(Instruction::WriteMetadata { metadata, mask });
    }
    if choices.is_in(5) {
        list.push(Instruction::WriteActions(actions(choices, fields).into()));
    }
    if choices.is_in(2) {
        list.push(Instruction::ClearActions);
    }
    if choices.is_in(3) {
        list.push(Instruction::Meter(1 + choices.below(2) as u32));
    }
    list.into()
}

/// A flow mod for a table whose entries mostly have this profile.
pub fn flow_mod(
    choices: &mut Choices,
    command: FlowModCommand,
    table_id: u8,
    profile: Profile,
) -> FlowMod<'static> {
    use FlowModCommand::*;
    let profile = match choices.is_in(2) {
        true => Profile::any(choices),
        false => profile,
    };
    let (priority, mut fields) = profile.choose(choices);
    if matches!(command, Delete | Modify) && choices.is_in(40) {
        fields.truncate(choices.below(2));
    }
    let is_rare = choices.is_in(10);
    let mut flow_mod = FlowMod {
        command,
        table_id,
        priority,
        cookie: choices.below(4) as u64,
        instructions: instructions(choices, table_id, &fields),
        match_: Match::from(fields),
        ..FlowMod::default()
    };
    if !matches!(command, Add) && is_rare {
        flow_mod.cookie_mask = choices.pick(&[1, 3]);
        flow_mod.out_port = choices.pick(&[PortNo::ANY, PortNo(1), PortNo(2)]);
        flow_mod.out_group = choices.pick(&[GROUP_ANY, 1]);
    }
    if matches!(command, Delete | DeleteStrict) && choices.is_in(5) {
        flow_mod.table_id = TABLE_ALL;
    }
    let flags = [
        (30, FlowModFlags::SEND_FLOW_REM),
        (5, FlowModFlags::CHECK_OVERLAP),
        (15, FlowModFlags::RESET_COUNTS),
        (5, FlowModFlags::NO_PKT_COUNTS),
        (5, FlowModFlags::NO_BYT_COUNTS),
    ];
    for (percent, flag) in flags {
        flow_mod.flags.set(flag, choices.is_in(percent));
    }
    if choices.is_in(15) {
        flow_mod.idle_timeout = choices.below(4) as u16;
        flow_mod.hard_timeout = choices.below(6) as u16;
    }
    flow_mod
}

/// An entry of table 0 for one of many hosts, some of which occur in packets, with a goto to the routes.
pub fn far_host(number: u32) -> FlowMod<'static> {
    let host = 0x0200_0000_0000_u64 + u64::from(number);
    FlowMod {
        priority: 10,
        match_: Match::from(vec![exact(OxmField::EthDst, host)]),
        instructions: vec![Instruction::GotoTable(1)].into(),
        ..FlowMod::default()
    }
}

/// An entry of table 1 for one of many networks, some of which occur in packets.
pub fn far_route(number: u32) -> FlowMod<'static> {
    let len = 16 + number % 17;
    let network = 10_u128 << 24 | u128::from(number.wrapping_mul(0x1f) & 0x1_ffff) << 7;
    let mask = u128::MAX << (32 - len);
    let actions = vec![
        Action::SetField(exact(OxmField::EthSrc, number)),
        Action::DecNwTtl,
        Action::output(PortNo(1 + number % 4)),
    ];
    FlowMod {
        table_id: 1,
        priority: len as u16,
        match_: Match::from(vec![
            eth_type(0x0800),
            masked(OxmField::Ipv4Dst, network, mask),
        ]),
        instructions: vec![Instruction::apply(actions)].into(),
        ..FlowMod::default()
    }
}

pub fn command(choices: &mut Choices) -> FlowModCommand {
    use FlowModCommand::*;
    choices.pick(&[
        Add,
        Add,
        Add,
        Add,
        Add,
        Modify,
        ModifyStrict,
        Delete,
        DeleteStrict,
        DeleteStrict,
    ])
}

pub fn group_mod(choices: &mut Choices) -> GroupMod<'static> {
    let group_type = choices.pick(&[
        GroupType::All,
        GroupType::Indirect,
        GroupType::Select,
        GroupType::Select,
        GroupType::FastFailover,
    ]);
    let count = match group_type {
        GroupType::Indirect => choices.pick(&[1, 1, 1, 2]),
        _ => choices.below(5),
    };
    let buckets: Vec<_> = (0..count).map(|_| bucket(choices, group_type)).collect();
    GroupMod {
        command: choices.pick(&[
            GroupModCommand::Add,
            GroupModCommand::Add,
            GroupModCommand::Modify,
            GroupModCommand::Modify,
            GroupModCommand::Delete,
        ]),
        group_type,
        group_id: choices.below(4) as u32,
        buckets: buckets.into(),
    }
}

/// A bucket that is usually valid for a group of this type.
fn bucket(choices: &mut Choices, group_type: GroupType) -> Bucket<'static> {
    let weight = match group_type {
        GroupType::Select => choices.pick(&[1, 1, 2, 7, 0]),
        _ => choices.pick(&[0; 16]),
    };
    let watch_port = match choices.is_in(70) {
        true => choices.port(),
        false => PortNo::ANY,
    };
    let watch_group = match choices.is_in(10) {
        true => choices.below(4) as u32,
        false => GROUP_ANY,
    };
    Bucket {
        weight,
        watch_port,
        watch_group,
        actions: bucket_actions(choices).into(),
    }
}

/// Mostly actions that are compiled, sometimes any.
pub fn bucket_actions(choices: &mut Choices) -> Vec<Action<'static>> {
    use OxmField::*;
    const FIELDS: [OxmField; 10] = [
        EthDst, EthSrc, VlanVid, VlanPcp, Ipv4Src, Ipv4Dst, TcpSrc, TcpDst, UdpSrc, UdpDst,
    ];
    if choices.is_in(10) {
        return actions(choices, &[]);
    }
    let count = choices.below(4);
    let mut list: Vec<_> = (0..count)
        .map(|_| match choices.below(10) {
            0 => Action::PushVlan(0x8100),
            1 => Action::PopVlan,
            2 => Action::DecNwTtl,
            _ => {
                let field = choices.pick(&FIELDS);
                Action::SetField(exact(field, value_of(field, choices)))
            }
        })
        .collect();
    match choices.below(10) {
        0 => list.push(Action::Group(choices.below(4) as u32)),
        1 => list.push(Action::output(PortNo::IN_PORT)),
        2 => {}
        3 => list.push(Action::output(out_port(choices))),
        _ => list.push(Action::output(choices.port())),
    }
    list
}

pub fn meter_mod(choices: &mut Choices) -> MeterMod<'static> {
    MeterMod {
        command: choices.pick(&[MeterModCommand::Add, MeterModCommand::Delete]),
        flags: MeterFlags::PKTPS,
        meter_id: 1 + choices.below(2) as u32,
        bands: vec![MeterBand::Drop {
            // This rate is never exceeded: which packets of a burst pass depends on their order, which differs if some use the
            // plain form.
            rate: choices.pick(&[100_000, 1_000_000, 10_000_000]),
            burst_size: 0,
        }]
        .into(),
    }
}

/// A flow mod for table 0 and one of the ports.
pub fn far_route_of_port(number: u32) -> FlowMod<'static> {
    let route = far_route(number / 3);
    let port = exact(OxmField::InPort, 1 + number % 3);
    let fields = route.match_.fields().chain([port]);
    FlowMod {
        table_id: 0,
        match_: fields.collect::<Vec<_>>().into(),
        ..route
    }
}
