//! A straight-line writer of flow mods that programs build from fields, instructions and actions.
//!
//! A program that reacts to packets sends one flow mod for each flow. The match is stored in 1.3's encoding, so the message
//! is a head of constant size, which is filled in, and an append for each action. The writer refuses unusual flow mods, and
//! those that the version cannot express: the general encoder ([`Message::encode`](crate::Message::encode)) then writes them
//! or returns the error. It is the reference model, with which tests compare every message.

use super::{FlowMod, FlowModFlags};
use crate::matching::Repr;
use crate::matching::inline::{CAPACITY, InlineFields};
use crate::message_type::OFPT_FLOW_MOD;
use crate::of10::matching::inline::{fill, wire_port};
use crate::{Action, Element, Field, GROUP_ANY, Instruction, OxmField, Version};

/// Appends the flow mod with its header, and returns `true`. Returns `false` if it does not have the frequent form; then `out`
/// is unchanged.
pub(crate) fn write(flow_mod: &FlowMod, version: Version, xid: u32, out: &mut Vec<u8>) -> bool {
    let (Repr::Inline(fields), Some(instructions)) =
        (&flow_mod.match_.0, flow_mod.instructions.values())
    else {
        return false;
    };
    let start = out.len();
    let is_written = match version {
        Version::Of10 => of10(flow_mod, fields, instructions, xid, out),
        Version::Of13 => of13(flow_mod, fields, instructions, xid, out),
    };
    let is_written = is_written && set_length(start, start + 2, out);
    if !is_written {
        out.truncate(start);
    }
    is_written
}

/// Writes the number of bytes from `start` on into the two bytes at `at`. Returns `false` if the number is too large.
#[inline(always)]
fn set_length(start: usize, at: usize, out: &mut [u8]) -> bool {
    let length = out.len() - start;
    let Some(field) = out.get_mut(at..at + 2) else {
        return false;
    };
    field.copy_from_slice(&(length as u16).to_be_bytes());
    length <= usize::from(u16::MAX)
}

/// Appends `N` zeros and returns a reference to them.
#[inline(always)]
fn append<const N: usize>(out: &mut Vec<u8>) -> &mut [u8; N] {
    out.extend_from_slice(&[0; N]);
    out.last_chunk_mut()
        .expect("N bytes were appended just now")
}

/// The size of `ofp_flow_mod` of 1.0 in bytes.
const OF10_SIZE: usize = 72;

/// Appends `ofp_flow_mod` of 1.0 (section 5.3.3) and its actions, without filling in its length.
fn of10(
    flow_mod: &FlowMod,
    fields: &InlineFields,
    instructions: &[Instruction],
    xid: u32,
    out: &mut Vec<u8>,
) -> bool {
    let Some(out_port) = wire_port(flow_mod.out_port) else {
        return false;
    };
    if !fits_of10(flow_mod) {
        return false;
    }
    let head: &mut [u8; OF10_SIZE] = append(out);
    head[0..2].copy_from_slice(&[1, OFPT_FLOW_MOD]);
    head[4..8].copy_from_slice(&xid.to_be_bytes());
    let match_ = head[8..].first_chunk_mut().expect("it is longer");
    if !fill(fields, match_) {
        return false;
    }
    head[48..56].copy_from_slice(&flow_mod.cookie.to_be_bytes());
    head[57] = flow_mod.command.into();
    head[58..60].copy_from_slice(&flow_mod.idle_timeout.to_be_bytes());
    head[60..62].copy_from_slice(&flow_mod.hard_timeout.to_be_bytes());
    head[62..64].copy_from_slice(&flow_mod.priority.to_be_bytes());
    head[64..68].copy_from_slice(&flow_mod.buffer_id.0.to_be_bytes());
    head[68..70].copy_from_slice(&out_port);
    head[70..72].copy_from_slice(&flow_mod.flags.bits().to_be_bytes());
    instructions
        .iter()
        .all(|instruction| of10_instruction(instruction, out))
}

/// Returns `true` if the flow mod has nothing that 1.0 lacks, and only flags with the same bits in both versions.
#[inline]
fn fits_of10(flow_mod: &FlowMod) -> bool {
    const SAME_BITS: FlowModFlags = FlowModFlags::SEND_FLOW_REM.union(FlowModFlags::CHECK_OVERLAP);
    flow_mod.cookie_mask == 0
        && flow_mod.table_id == 0
        && flow_mod.out_group == GROUP_ANY
        && SAME_BITS.contains(flow_mod.flags)
}

/// Appends the actions of an apply-actions instruction. 1.0 has no other actions.
#[inline]
fn of10_instruction(instruction: &Instruction, out: &mut Vec<u8>) -> bool {
    let Instruction::ApplyActions(actions) = instruction else {
        return false;
    };
    let Some(actions) = actions.values() else {
        return false;
    };
    actions
        .iter()
        .all(|action| of10_action(action, out) || action.encode(Version::Of10, out).is_ok())
}

/// Appends an action, and returns `true`, if it is of a frequent kind.
#[inline]
fn of10_action(action: &Action, out: &mut Vec<u8>) -> bool {
    match *action {
        Action::Output { port, max_len } => {
            let Some([p0, p1]) = wire_port(port) else {
                return false;
            };
            let [m0, m1] = max_len.to_be_bytes();
            out.extend_from_slice(&[0, 0, 0, 8, p0, p1, m0, m1]);
            true
        }
        Action::SetField(Field::Basic { field, value, mask }) if mask == field.full_mask() => {
            of10_set_field(field, value, out)
        }
        _ => false,
    }
}

/// Appends `ofp_action_dl_addr` or `ofp_action_nw_addr`, and returns `true`, if there is one for this field.
#[inline]
fn of10_set_field(field: OxmField, value: u128, out: &mut Vec<u8>) -> bool {
    let (action_type, is_mac) = match field {
        OxmField::EthSrc => (4, true), // OFPAT_SET_DL_SRC
        OxmField::EthDst => (5, true),
        OxmField::Ipv4Src => (6, false), // OFPAT_SET_NW_SRC
        OxmField::Ipv4Dst => (7, false),
        _ => return false,
    };
    if is_mac {
        let action: &mut [u8; 16] = append(out);
        action[..4].copy_from_slice(&[0, action_type, 0, 16]);
        action[4..12].copy_from_slice(&((value as u64) << 16).to_be_bytes());
    } else {
        let [a0, a1, a2, a3] = (value as u32).to_be_bytes();
        out.extend_from_slice(&[0, action_type, 0, 8, a0, a1, a2, a3]);
    }
    true
}

/// The offset of the match in `ofp_flow_mod` of 1.3.
const OF13_MATCH: usize = 48;

/// The offset of the fields in the match.
const OF13_FIELDS: usize = OF13_MATCH + 4;

/// Appends `ofp_flow_mod` of 1.3 (section 7.3.4.1) and its instructions, without filling in its length.
fn of13(
    flow_mod: &FlowMod,
    fields: &InlineFields,
    instructions: &[Instruction],
    xid: u32,
    out: &mut Vec<u8>,
) -> bool {
    if flow_mod.flags.contains(FlowModFlags::EMERG) {
        return false;
    }
    // The whole buffer is copied, since a copy of constant size is faster; then it is truncated after the padding.
    let match_len = 4 + fields.len();
    let end = out.len() + OF13_MATCH + match_len.next_multiple_of(8);
    let head: &mut [u8; OF13_FIELDS + CAPACITY] = append(out);
    head[0..2].copy_from_slice(&[4, OFPT_FLOW_MOD]);
    head[4..8].copy_from_slice(&xid.to_be_bytes());
    head[8..16].copy_from_slice(&flow_mod.cookie.to_be_bytes());
    head[16..24].copy_from_slice(&flow_mod.cookie_mask.to_be_bytes());
    head[24] = flow_mod.table_id;
    head[25] = flow_mod.command.into();
    head[26..28].copy_from_slice(&flow_mod.idle_timeout.to_be_bytes());
    head[28..30].copy_from_slice(&flow_mod.hard_timeout.to_be_bytes());
    head[30..32].copy_from_slice(&flow_mod.priority.to_be_bytes());
    head[32..36].copy_from_slice(&flow_mod.buffer_id.0.to_be_bytes());
    head[36..40].copy_from_slice(&flow_mod.out_port.0.to_be_bytes());
    head[40..44].copy_from_slice(&flow_mod.out_group.to_be_bytes());
    head[44..46].copy_from_slice(&flow_mod.flags.bits().to_be_bytes());
    head[49] = 1; // OFPMT_OXM
    head[50..52].copy_from_slice(&(match_len as u16).to_be_bytes());
    head[OF13_FIELDS..].copy_from_slice(fields.padded());
    out.truncate(end);
    instructions
        .iter()
        .all(|instruction| of13_instruction(instruction, out))
}

/// Appends an instruction.
#[inline]
fn of13_instruction(instruction: &Instruction, out: &mut Vec<u8>) -> bool {
    let Instruction::ApplyActions(actions) = instruction else {
        return instruction.encode(Version::Of13, out).is_ok();
    };
    let Some(actions) = actions.values() else {
        return instruction.encode(Version::Of13, out).is_ok();
    };
    let start = out.len();
    out.extend_from_slice(&[0, 4, 0, 0, 0, 0, 0, 0]); // OFPIT_APPLY_ACTIONS
    let are_written = actions
        .iter()
        .all(|action| of13_action(action, out) || action.encode(Version::Of13, out).is_ok());
    are_written && set_length(start, start + 2, out)
}

/// Appends an action, and returns `true`, if it is of a frequent kind.
#[inline]
fn of13_action(action: &Action, out: &mut Vec<u8>) -> bool {
    match *action {
        Action::Output { port, max_len } => {
            let action: &mut [u8; 16] = append(out);
            action[3] = 16;
            action[4..8].copy_from_slice(&port.0.to_be_bytes());
            action[8..10].copy_from_slice(&max_len.to_be_bytes());
            true
        }
        Action::SetField(Field::Basic { field, value, mask }) => {
            of13_set_field(field, value, mask, out)
        }
        _ => false,
    }
}

/// The size of each field in bytes, by field number.
const WIDTHS: [u8; OxmField::ALL.len()] = {
    let mut widths = [0; OxmField::ALL.len()];
    let mut at = 0;
    while at < widths.len() {
        widths[OxmField::ALL[at] as usize] = OxmField::ALL[at].bytes() as u8;
        at += 1;
    }
    widths
};

/// Appends `ofp_action_set_field`, and returns `true`, if the field has at most eight bytes, and all of them are set.
#[inline]
fn of13_set_field(field: OxmField, value: u128, mask: u128, out: &mut Vec<u8>) -> bool {
    let width = WIDTHS[field as usize];
    if width > 8 {
        return false;
    }
    let full = u64::MAX >> (64 - field.bits());
    if mask != u128::from(full) || value > mask {
        return false;
    }
    let number = (field as u8) << 1;
    let action: &mut [u8; 16] = append(out);
    action[..8].copy_from_slice(&[0, 25, 0, 16, 0x80, 0, number, width]); // OFPAT_SET_FIELD, 16 bytes, and the TLV
    action[8..].copy_from_slice(&((value as u64) << (64 - 8 * u32::from(width))).to_be_bytes());
    true
}

#[cfg(test)]
mod tests;
