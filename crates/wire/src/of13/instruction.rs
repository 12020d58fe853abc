//! Instructions (1.3.5 section 7.2.4). The length of every instruction is a multiple of eight bytes.

use crate::{
    Action, DecodeError, EncodeError, ErrorCode, Instruction, List, Put, Reader, Structure, Version,
};

const OFPIT_GOTO_TABLE: u16 = 1;
const OFPIT_WRITE_METADATA: u16 = 2;
const OFPIT_WRITE_ACTIONS: u16 = 3;
const OFPIT_APPLY_ACTIONS: u16 = 4;
const OFPIT_CLEAR_ACTIONS: u16 = 5;
const OFPIT_METER: u16 = 6;
/// An experimenter's instruction. In lists of supported instructions, the experimenter's id follows.
pub(crate) const OFPIT_EXPERIMENTER: u16 = 0xffff;

/// The size of the smallest instruction.
const MIN_SIZE: usize = 8;

pub(crate) fn decode<'a>(reader: &mut Reader<'a>) -> Result<Instruction<'a>, DecodeError> {
    let mut body = reader.sized_by_8(2, MIN_SIZE, Structure::Instruction)?;
    let instruction_type = body.u16()?;
    body.skip(2)?;
    let (instruction, padding) = match instruction_type {
        OFPIT_GOTO_TABLE => (Instruction::GotoTable(body.u8()?), 3),
        OFPIT_WRITE_METADATA => (decode_write_metadata(&mut body)?, 0),
        OFPIT_WRITE_ACTIONS => (Instruction::WriteActions(decode_actions(&mut body)?), 0),
        OFPIT_APPLY_ACTIONS => (Instruction::ApplyActions(decode_actions(&mut body)?), 0),
        OFPIT_CLEAR_ACTIONS => (Instruction::ClearActions, 4),
        OFPIT_METER => (Instruction::Meter(body.u32()?), 0),
        OFPIT_EXPERIMENTER => (decode_experimenter(&mut body)?, 0),
        other => return Err(unknown_type(other)),
    };
    body.skip(padding)?;
    body.finish()?;
    Ok(instruction)
}

fn decode_write_metadata<'a>(body: &mut Reader<'a>) -> Result<Instruction<'a>, DecodeError> {
    body.skip(4)?;
    Ok(Instruction::WriteMetadata {
        metadata: body.u64()?,
        mask: body.u64()?,
    })
}

fn decode_actions<'a>(body: &mut Reader<'a>) -> Result<List<'a, Action<'a>>, DecodeError> {
    body.skip(4)?;
    List::decode(Version::Of13, body)
}

fn decode_experimenter<'a>(body: &mut Reader<'a>) -> Result<Instruction<'a>, DecodeError> {
    Ok(Instruction::Experimenter {
        experimenter: body.u32()?,
        data: body.rest(),
    })
}

fn unknown_type(instruction_type: u16) -> DecodeError {
    DecodeError::BadValue {
        what: "instruction type",
        value: instruction_type.into(),
        expected: "one of OFPIT_*",
        code: ErrorCode::BadInstructionUnknownInst,
    }
}

/// Encodes an instruction. An experimenter's data is padded with zeros to a multiple of eight bytes.
pub(crate) fn encode(instruction: &Instruction, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let start = out.len();
    out.put_u16(instruction_type(instruction));
    out.put_u16(0);
    match instruction {
        Instruction::GotoTable(table_id) => out.put_u8(*table_id),
        Instruction::WriteMetadata { metadata, mask } => {
            out.put_zeros(4);
            out.put_u64(*metadata);
            out.put_u64(*mask);
        }
        Instruction::WriteActions(actions) | Instruction::ApplyActions(actions) => {
            out.put_zeros(4);
            actions.encode(Version::Of13, out)?;
        }
        Instruction::ClearActions => out.put_zeros(4),
        Instruction::Meter(meter_id) => out.put_u32(*meter_id),
        Instruction::Experimenter { experimenter, data } => {
            out.put_u32(*experimenter);
            out.put(data);
        }
    }
    out.pad_to_8(start);
    out.set_length(start + 2, start, "instruction")
}

fn instruction_type(instruction: &Instruction) -> u16 {
    match instruction {
        Instruction::GotoTable(_) => OFPIT_GOTO_TABLE,
        Instruction::WriteMetadata { .. } => OFPIT_WRITE_METADATA,
        Instruction::WriteActions(_) => OFPIT_WRITE_ACTIONS,
        Instruction::ApplyActions(_) => OFPIT_APPLY_ACTIONS,
        Instruction::ClearActions => OFPIT_CLEAR_ACTIONS,
        Instruction::Meter(_) => OFPIT_METER,
        Instruction::Experimenter { .. } => OFPIT_EXPERIMENTER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PortNo;
    use crate::of13::golden::{decode_element, element, hex, refused};

    #[track_caller]
    fn code(bytes: &str) -> ErrorCode {
        decode_element::<Instruction>(&hex(bytes))
            .unwrap_err()
            .code()
    }

    #[test]
    fn every_instruction_both_ways() {
        element(&hex("0001 0008 03 000000"), Instruction::GotoTable(3));
        element(
            &hex("0002 0018 00000000 0000000000000011 00000000000000ff"),
            Instruction::WriteMetadata {
                metadata: 0x11,
                mask: 0xff,
            },
        );
        element(
            &hex("0003 0010 00000000 0016 0008 00000004"),
            Instruction::WriteActions(vec![Action::Group(4)].into()),
        );
        element(
            &hex("0004 0020 00000000 0012 0008 00000000
                 0000 0010 00000001 0000 000000000000"),
            Instruction::apply(&[Action::PopVlan, Action::output(PortNo(1))]),
        );
        element(&hex("0005 0008 00000000"), Instruction::ClearActions);
        element(&hex("0006 0008 00000009"), Instruction::Meter(9));
        element(
            &hex("ffff 0010 00002320 0102030405060708"),
            Instruction::Experimenter {
                experimenter: 0x2320,
                data: &[1, 2, 3, 4, 5, 6, 7, 8],
            },
        );
    }

    #[test]
    fn wrong_lengths_are_errors() {
        for length in ["0000", "0004", "000c", "0010"] {
            let bytes = format!("0001 {length} 03 000000");
            assert_eq!(code(&bytes), ErrorCode::BadInstructionBadLen, "{length}");
        }
        assert_eq!(
            code("0002 0010 00000000 0000000000000011"),
            ErrorCode::BadInstructionBadLen
        );
        assert_eq!(
            code("0005 0010 00000000 0016 0008 00000004"),
            ErrorCode::BadInstructionBadLen
        );
    }

    #[test]
    fn errors_of_actions_are_returned() {
        assert_eq!(
            code("0004 0010 00000000 0016 0000 00000004"),
            ErrorCode::BadActionBadLen
        );
        let enqueue = Action::Enqueue {
            port: PortNo(1),
            queue_id: 2,
        };
        assert!(matches!(
            refused(Instruction::apply(&[enqueue])),
            EncodeError::Unsupported { .. }
        ));
    }

    #[test]
    fn unknown_types_are_errors() {
        assert_eq!(
            code("0007 0008 00000000"),
            ErrorCode::BadInstructionUnknownInst
        );
    }
}
