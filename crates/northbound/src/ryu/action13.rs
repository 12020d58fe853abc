//! Actions and instructions of OpenFlow 1.3, which Ryu writes in one list.

use super::field::Kind;
use super::match13::{oxm_named, oxm_names};
use super::payload::Payloads;
use super::typed::{Type, reader_of};
use crate::error::ApiError;
use crate::number::{GROUPS, MAX_LENS, METERS, PORTS_13, QUEUES, TABLES};
use crate::object::{Object, did_you_mean};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use urtica_wire::{Action, Field, Instruction, List, PortNo};

const EXPECTED: &str =
    "an action or instruction of OpenFlow 1.3, such as OUTPUT, SET_FIELD or GOTO_TABLE";
const EXAMPLE: &str = "{\"type\": \"OUTPUT\", \"port\": 2}";

/// Reads an action.
pub(super) type ReadAction = for<'a> fn(&Object<'a>, &'a Payloads) -> Result<Action<'a>, ApiError>;

/// Reads an instruction.
pub(super) type ReadInstruction =
    for<'a> fn(&Object<'a>, &'a Payloads) -> Result<Instruction<'a>, ApiError>;

pub(super) const ACTIONS: &[Type<ReadAction>] = &[
    ("OUTPUT", &["port", "max_len"], |object, _| {
        Ok(Action::Output {
            port: PortNo(object.named("port", &PORTS_13, PortNo::ANY.0)?),
            max_len: max_len(object)?,
        })
    }),
    ("COPY_TTL_OUT", &[], |_, _| Ok(Action::CopyTtlOut)),
    ("COPY_TTL_IN", &[], |_, _| Ok(Action::CopyTtlIn)),
    ("SET_MPLS_TTL", &["mpls_ttl"], |object, _| {
        object.needed_number("mpls_ttl").map(Action::SetMplsTtl)
    }),
    ("DEC_MPLS_TTL", &[], |_, _| Ok(Action::DecMplsTtl)),
    ("PUSH_VLAN", &["ethertype"], |object, _| {
        object.needed_number("ethertype").map(Action::PushVlan)
    }),
    ("POP_VLAN", &[], |_, _| Ok(Action::PopVlan)),
    ("PUSH_MPLS", &["ethertype"], |object, _| {
        object.needed_number("ethertype").map(Action::PushMpls)
    }),
    ("POP_MPLS", &["ethertype"], |object, _| {
        object.needed_number("ethertype").map(Action::PopMpls)
    }),
    ("SET_QUEUE", &["queue_id"], |object, _| {
        let queue = object.needed_named("queue_id", &QUEUES)?;
        Ok(Action::SetQueue(queue))
    }),
    ("GROUP", &["group_id"], |object, _| {
        let group = object.needed_named("group_id", &GROUPS)?;
        Ok(Action::Group(group))
    }),
    ("SET_NW_TTL", &["nw_ttl"], |object, _| {
        object.needed_number("nw_ttl").map(Action::SetNwTtl)
    }),
    ("DEC_NW_TTL", &[], |_, _| Ok(Action::DecNwTtl)),
    ("SET_FIELD", &["field", "value"], |object, _| {
        set_field(object).map(Action::SetField)
    }),
    ("PUSH_PBB", &["ethertype"], |object, _| {
        object.needed_number("ethertype").map(Action::PushPbb)
    }),
    ("POP_PBB", &[], |_, _| Ok(Action::PopPbb)),
    (
        "EXPERIMENTER",
        &["experimenter", "data", "data_type"],
        |object, payloads| {
            Ok(Action::Experimenter {
                experimenter: object.needed_number("experimenter")?,
                data: payloads.data(object)?,
            })
        },
    ),
];

pub(super) const INSTRUCTIONS: &[Type<ReadInstruction>] = &[
    ("WRITE_ACTIONS", &["actions"], |object, payloads| {
        let actions = parse_actions(&object.objects("actions")?, payloads)?;
        Ok(Instruction::WriteActions(actions.into()))
    }),
    ("CLEAR_ACTIONS", &[], |_, _| Ok(Instruction::ClearActions)),
    ("GOTO_TABLE", &["table_id"], |object, _| {
        table(object, "table_id").map(Instruction::GotoTable)
    }),
    (
        "WRITE_METADATA",
        &["metadata", "metadata_mask"],
        |object, _| {
            Ok(Instruction::WriteMetadata {
                metadata: object.needed_number("metadata")?,
                mask: object.number("metadata_mask", u64::MAX)?,
            })
        },
    ),
    ("METER", &["meter_id"], |object, _| {
        let meter = object.needed_named("meter_id", &METERS)?;
        Ok(Instruction::Meter(meter))
    }),
];

/// Reads a flow's actions: its instructions, followed by an instruction to apply the other actions.
pub(super) fn parse_instructions<'a>(
    objects: &[Object<'a>],
    payloads: &'a Payloads,
) -> Result<Vec<Instruction<'a>>, ApiError> {
    let (mut instructions, mut apply) = (Vec::new(), Vec::new());
    for object in objects {
        let name = object
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if is_instruction(name) {
            let read = reader_of(object, INSTRUCTIONS, EXPECTED, EXAMPLE)?;
            instructions.push(read(object, payloads)?);
        } else {
            apply.push(parse_action(object, payloads)?);
        }
    }
    if !apply.is_empty() {
        instructions.push(Instruction::apply(apply));
    }
    Ok(instructions)
}

/// Returns `true` for the type of an instruction, or for a name that resembles one and no action. The error then names the
/// instruction.
fn is_instruction(name: &str) -> bool {
    let is_action = ACTIONS.iter().any(|(known, ..)| *known == name);
    let names: Vec<_> = INSTRUCTIONS.iter().map(|(known, ..)| *known).collect();
    names.contains(&name) || (!is_action && !did_you_mean(name, &names).is_empty())
}

/// Reads a list of actions, such as a bucket's.
pub(super) fn parse_actions<'a>(
    objects: &[Object<'a>],
    payloads: &'a Payloads,
) -> Result<Vec<Action<'a>>, ApiError> {
    let parse = |object| parse_action(object, payloads);
    objects.iter().map(parse).collect()
}

fn parse_action<'a>(object: &Object<'a>, payloads: &'a Payloads) -> Result<Action<'a>, ApiError> {
    reader_of(object, ACTIONS, EXPECTED, EXAMPLE)?(object, payloads)
}

/// Reads the number of a table, which may be given by name.
pub(super) fn table(object: &Object, key: &str) -> Result<u8, ApiError> {
    let table = object.needed_named(key, &TABLES)?;
    table
        .try_into()
        .map_err(|_| object.wrong(key, &TABLES.expected()))
}

fn max_len(object: &Object) -> Result<u16, ApiError> {
    let max_len = object.named("max_len", &MAX_LENS, 0xffe5)?;
    max_len
        .try_into()
        .map_err(|_| object.wrong("max_len", &MAX_LENS.expected()))
}

fn set_field(object: &Object) -> Result<Field<'static>, ApiError> {
    let expected = "a field of OpenFlow 1.3, such as eth_dst";
    let name = object.text("field", expected)?;
    let field = oxm_named(name).ok_or_else(|| {
        let names: Vec<_> = oxm_names().collect();
        let expected = format!("{expected}{}", did_you_mean(name, &names));
        object
            .wrong("field", &expected)
            .example("\"field\": \"eth_dst\"")
    })?;
    // Here the number must include OFPVID_PRESENT; it is only added to decimal numbers in matches.
    let kind = match Kind::of(field) {
        Kind::Vlan => Kind::Number,
        kind => kind,
    };
    let value = object
        .get("value")
        .and_then(|value| kind.parse(field, value));
    let is_whole = |value: &Field| *value == Field::exact(field, bits(value));
    value.filter(is_whole).ok_or_else(|| {
        let (expected, _) = kind.expected();
        let expected = expected.trim_end_matches(", maybe with a mask");
        object.wrong("value", &format!("{expected} for {name}"))
    })
}

fn bits(field: &Field) -> u128 {
    match field {
        Field::Basic { value, .. } => *value,
        Field::Raw(_) => 0,
    }
}

/// Prints a flow's instructions as Ryu does. Apply-Actions is printed as its actions.
pub(super) fn print_instructions(instructions: &List<Instruction>) -> Vec<Value> {
    let mut printed = Vec::new();
    for instruction in instructions {
        match instruction {
            Instruction::ApplyActions(actions) => printed.extend(print_actions(&actions)),
            Instruction::WriteActions(actions) if actions.is_empty() => {}
            Instruction::WriteActions(actions) => {
                printed.push(json!({ "WRITE_ACTIONS": print_actions(&actions) }));
            }
            Instruction::ClearActions => printed.push("CLEAR_ACTIONS".into()),
            Instruction::GotoTable(table) => {
                printed.push(format!("GOTO_TABLE:{}", TABLES.text(table.into())).into());
            }
            Instruction::WriteMetadata { metadata, mask: 0 } => {
                printed.push(format!("WRITE_METADATA:0x{metadata:x}").into());
            }
            Instruction::WriteMetadata { metadata, mask } => {
                printed.push(format!("WRITE_METADATA:0x{metadata:x}/0x{mask:x}").into());
            }
            Instruction::Meter(meter) => {
                printed.push(format!("METER:{}", METERS.text(meter)).into());
            }
            Instruction::Experimenter { .. } => {}
        }
    }
    printed
}

/// Prints actions as Ryu does.
pub(super) fn print_actions(actions: &List<Action>) -> Vec<Value> {
    actions
        .iter()
        .map(|action| print_action(&action).into())
        .collect()
}

fn print_action(action: &Action) -> String {
    match *action {
        Action::Output { port, .. } => format!("OUTPUT:{}", PORTS_13.text(port.0)),
        Action::CopyTtlOut => "COPY_TTL_OUT".into(),
        Action::CopyTtlIn => "COPY_TTL_IN".into(),
        Action::SetMplsTtl(ttl) => format!("SET_MPLS_TTL:{ttl}"),
        Action::DecMplsTtl => "DEC_MPLS_TTL".into(),
        Action::PushVlan(ethertype) => format!("PUSH_VLAN:{ethertype}"),
        Action::PopVlan => "POP_VLAN".into(),
        Action::PushMpls(ethertype) => format!("PUSH_MPLS:{ethertype}"),
        Action::PopMpls(ethertype) => format!("POP_MPLS:{ethertype}"),
        Action::SetQueue(queue) => format!("SET_QUEUE:{}", QUEUES.text(queue)),
        Action::Group(group) => format!("GROUP:{}", GROUPS.text(group)),
        Action::SetNwTtl(ttl) => format!("SET_NW_TTL:{ttl}"),
        Action::DecNwTtl => "DEC_NW_TTL".into(),
        Action::SetField(Field::Basic { field, value, .. }) => {
            format!(
                "SET_FIELD: {{{}:{}}}",
                field.name(),
                Kind::of(field).text(value)
            )
        }
        Action::PushPbb(ethertype) => format!("PUSH_PBB:{ethertype}"),
        Action::PopPbb => "POP_PBB".into(),
        Action::Experimenter { experimenter, data } => {
            let data = STANDARD.encode(data);
            format!("EXPERIMENTER: {{experimenter:{experimenter}, data:{data}}}")
        }
        _ => "UNKNOWN".into(),
    }
}
