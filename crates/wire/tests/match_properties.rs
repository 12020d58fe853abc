//! Compares matches that methods build with plain lists of the same fields.
//!
//! The former are stored in their encoding; the latter are encoded field by field, and are the reference model. Both must have
//! the same fields in the same order, and the same bytes or errors in both versions.

use proptest::prelude::*;
use urtica_wire::{
    Action, EncodeError, EntryOptions, Field, FlowMod, Instruction, List, Match, Message, OxmField,
    PortNo, RawField, Version,
};

/// A step of building a match.
#[derive(Clone, Copy, Debug)]
enum Step {
    With(Field<'static>),
    WithExact(OxmField, u128),
    WithMasked(OxmField, u128, u128),
    Without(OxmField),
}

/// The fields of a match after some steps, as a plain list.
#[derive(Default)]
struct Reference(Vec<Field<'static>>);

impl Reference {
    fn apply(&mut self, step: Step) {
        match step {
            Step::With(field) => self.add(field),
            Step::WithExact(field, value) => self.add(Field::exact(field, value)),
            Step::WithMasked(field, value, mask) => self.add(Field::masked(field, value, mask)),
            Step::Without(field) => self.remove(field),
        }
    }

    fn add(&mut self, added: Field<'static>) {
        if let Some(field) = added.oxm_field() {
            self.remove(field);
        }
        self.0.push(added);
    }

    fn remove(&mut self, removed: OxmField) {
        self.0.retain(|field| field.oxm_field() != Some(removed));
    }
}

fn apply(match_: Match<'static>, step: Step) -> Match<'static> {
    match step {
        Step::With(field) => match_.with(field),
        Step::WithExact(field, value) => match_.with_exact(field, value),
        Step::WithMasked(field, value, mask) => match_.with_masked(field, value, mask),
        Step::Without(field) => match_.without(field),
    }
}

/// Fields that 1.0 has, often with values that are prerequisites of others, or any fields.
fn field_and_value() -> impl Strategy<Value = (OxmField, u128)> {
    use OxmField::*;
    let of10 = vec![
        InPort, EthDst, EthSrc, VlanVid, VlanPcp, IpDscp, Ipv4Src, Ipv4Dst, TcpSrc, TcpDst, UdpSrc,
        UdpDst, Icmpv4Type, Icmpv4Code, ArpOp, ArpSpa, ArpTpa,
    ];
    prop_oneof![
        3 => prop::sample::select(vec![0x0800_u128, 0x0806, 0x86dd]).prop_map(|value| (EthType, value)),
        2 => prop::sample::select(vec![6_u128, 17, 1]).prop_map(|value| (IpProto, value)),
        1 => (0..0x2000_u128).prop_map(|value| (VlanVid, value)),
        1 => (0..0x300_u128).prop_map(|value| (ArpOp, value)),
        1 => any::<u16>().prop_map(|value| (InPort, value.into())),
        8 => (prop::sample::select(of10), any::<u128>()),
        2 => (prop::sample::select(OxmField::ALL), any::<u128>()),
    ]
}

/// A mask: a prefix of the field, all bits, no bits, or any bits, even beyond the field's width.
fn mask(field: OxmField) -> impl Strategy<Value = u128> {
    let full = field.full_mask();
    prop_oneof![
        3 => (0..=field.bits()).prop_map(move |bits| full & !(full.checked_shr(bits).unwrap_or(0))),
        1 => Just(u128::MAX),
        1 => any::<u128>(),
    ]
}

fn masked() -> impl Strategy<Value = (OxmField, u128, u128)> {
    field_and_value()
        .prop_flat_map(|(field, value)| mask(field).prop_map(move |mask| (field, value, mask)))
}

fn step() -> impl Strategy<Value = Step> {
    let raw = Field::Raw(RawField {
        class: 0xffff,
        field: 1,
        has_mask: false,
        body: &[0, 0, 0, 9],
    });
    prop_oneof![
        8 => field_and_value().prop_map(|(field, value)| Step::WithExact(field, value)),
        3 => masked().prop_map(|(field, value, mask)| Step::WithMasked(field, value, mask)),
        1 => masked().prop_map(|(field, value, mask)| Step::With(Field::Basic { field, value, mask })),
        1 => prop::sample::select(OxmField::ALL).prop_map(Step::Without),
        1 => Just(Step::With(raw)),
    ]
}

/// Steps that are mostly valid, so that most matches can be encoded.
fn sensible_step() -> impl Strategy<Value = Step> {
    step().prop_filter("a raw or invalid field", |step| {
        !matches!(step, Step::With(_))
    })
}

fn action() -> impl Strategy<Value = Action<'static>> {
    prop_oneof![
        any::<u16>().prop_map(|port| Action::output(PortNo(port.into()))),
        Just(Action::controller()),
        Just(Action::PopVlan),
        any::<u32>().prop_map(Action::Group),
        field_and_value().prop_map(|(field, value)| Action::SetField(Field::exact(field, value))),
        (field_and_value(), any::<u128>()).prop_map(|((field, value), mask)| {
            Action::SetField(Field::masked(field, value, mask))
        }),
    ]
}

fn encoded(match_: Match, actions: &[Action], version: Version) -> Result<Vec<u8>, EncodeError> {
    let instructions = [Instruction::apply(actions)];
    let flow_mod = FlowMod {
        match_,
        instructions: List::from(&instructions),
        ..EntryOptions::idle(5).flow_mod()
    };
    let mut out = Vec::new();
    Message::FlowMod(flow_mod).encode(version, 7, &mut out)?;
    Ok(out)
}

/// Compares a match with the list of fields that it must have.
fn check(match_: &Match<'static>, reference: &[Field<'static>]) {
    assert_eq!(match_.fields().collect::<Vec<_>>(), reference);
    let list = Match::from(reference.to_vec());
    assert_eq!(match_, &list);
    for &field in OxmField::ALL {
        assert_eq!(match_.get(field), list.get(field));
    }
    for version in Version::ALL {
        let (actual, expected) = (
            encoded(match_.clone(), &[], version),
            encoded(list.clone(), &[], version),
        );
        assert_eq!(actual, expected, "{match_:?} in OpenFlow {version}");
    }
}

fn build_and_check(steps: &[Step]) {
    let (mut match_, mut reference) = (Match::any(), Reference::default());
    for &step in steps {
        match_ = apply(match_, step);
        reference.apply(step);
        check(&match_, &reference.0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    #[test]
    fn built_matches_equal_lists(steps in prop::collection::vec(step(), 0..12)) {
        build_and_check(&steps);
    }

    #[test]
    fn built_matches_without_raw_fields_equal_lists(
        steps in prop::collection::vec(sensible_step(), 0..12),
    ) {
        build_and_check(&steps);
    }

    /// All actions that can be encoded are decoded as the same actions, however they are encoded.
    #[test]
    fn written_actions_are_read_back(actions in prop::collection::vec(action(), 1..5)) {
        let Ok(bytes) = encoded(Match::any(), &actions, Version::Of13) else {
            return Ok(());
        };
        let (_, message) = Message::decode(&bytes).expect("what we write, we read");
        let Message::FlowMod(flow_mod) = message else {
            panic!("expected a flow mod, got {message:?}");
        };
        let expected = [Instruction::apply(&actions[..])];
        prop_assert_eq!(flow_mod.instructions, List::from(&expected));
    }
}

/// More fields than fit into the buffer of a built match.
#[test]
fn matches_of_all_fields_equal_lists() {
    let exact: Vec<_> = OxmField::ALL
        .iter()
        .map(|&field| Step::WithExact(field, 1))
        .collect();
    build_and_check(&exact);
    let masked = OxmField::ALL
        .iter()
        .map(|&field| Step::WithMasked(field, 2_u128, 3_u128));
    build_and_check(&masked.collect::<Vec<_>>());
}
