//! The reasons why packets are left to the plain form.

use super::why_plain;
use crate::fast::control::compiler::Compiler;
use crate::fast::control::match_key::Key;
use crate::fast::control::translate::BoundProgram;
use crate::fast::datapath::action_program::End;
use crate::fast::datapath::burst::{Burst, Processed, Verdict};
use crate::fast::datapath::kinds::{Depth, Kinds};
use crate::fast::datapath::parse::parse;
use crate::fast::datapath::way::Origin;
use crate::{FlowEntry, FlowTable, Instructions, Packet};
use std::borrow::Cow;
use urtica_wire::Action;

/// The reason why the compiled form left a frame to the plain form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainReason {
    /// The table at which the plain form starts.
    pub table_id: u8,
    /// Whether the compiled form searched this table before it left the frame.
    pub is_searched: bool,
    /// The reason, as a clause such as `its entry does group:1`.
    pub why: Cow<'static, str>,
}

impl Compiler {
    /// Returns why the compiled form of these tables left a frame to the plain form; `None` if it did not.
    pub fn why_plain(&self, tables: &[FlowTable], frame: Processed<'_>) -> Option<PlainReason> {
        if frame.verdict() != Verdict::Punt {
            return None;
        }
        let table_id = frame.table_id();
        let table = tables.get(usize::from(table_id))?;
        let reason = |is_searched, why| PlainReason {
            table_id,
            is_searched,
            why,
        };
        if let Err(why) = self.forms[usize::from(table_id)].template() {
            return Some(reason(false, why_plain(why, table).into()));
        }
        if table_id == 0 && !is_parsed(frame, self.store.compiled.depth()) {
            return Some(reason(false, NOT_PARSED.into()));
        }
        let mut packet = Packet::new(frame.in_port(), frame.bytes());
        packet.metadata = frame.metadata();
        let why = match table.find(&packet) {
            Some(entry) => why_not_carried_out(entry, self.store.brings_state_to(table_id)),
            None => NO_ENTRY.into(),
        };
        Some(reason(true, why))
    }
}

const NOT_PARSED: &str = "the compiled form does not parse its headers: it has more than two tags, is cut short, or is \
                          no valid IP or ARP";
const NO_ENTRY: &str = "no entry matches, and somebody wants to know of such packets";

const GROUP_NOT_CARRIED_OUT: &str = "its group, or a group behind it, does something that the compiled form does not carry \
                                     out, or its TTL is too low to be decremented";

const SET_NOT_CARRIED_OUT: &str = "its action set has a group that the compiled form does not carry out, or is \
                                   combined with another group; or the packet has too low a TTL, is too long for a copy, or has no \
                                   space for a tag";

/// Returns whether the compiled form can parse a frame.
fn is_parsed(frame: Processed<'_>, depth: Depth) -> bool {
    let mut burst = Burst::new();
    let is_in = burst.push(frame.in_port(), frame.bytes());
    is_in
        && burst
            .parts_mut()
            .0
            .iter_mut()
            .all(|frame| parse(frame, depth))
}

/// Returns why an entry's instructions were left to the plain form, for a packet that matches the entry.
fn why_not_carried_out(entry: &FlowEntry, brings_state: bool) -> Cow<'static, str> {
    let require = Key::new(&entry.match_).map_or(Kinds::empty(), |key| key.mask.require);
    let bound = BoundProgram::new(entry, require, brings_state);
    if bound.program.end != End::Punt {
        if bound.program.end == End::Group {
            return GROUP_NOT_CARRIED_OUT.into();
        }
        if bound.program.set.is_some() {
            return SET_NOT_CARRIED_OUT.into();
        }
        return match bound.program.ttl_decrements() {
            0 if bound.program.is_metered() && bound.program.headroom() == 0 => {
                "the meter of its entry has not been taken over yet, or a frame before it was left to the plain form".into()
            }
            0 if bound.program.headroom() > 0 => {
                "there is no space before it for another tag".into()
            }
            0 => "it is too long for a copy, and its entry sends it before other actions".into(),
            _ => "its TTL is too low to be decremented".into(),
        };
    }
    let instructions = &entry.instructions;
    let written = instructions.write.as_deref().unwrap_or_default();
    let mut actions = instructions.apply.iter().flatten().chain(written);
    match actions.find(|action| !is_compiled(action, require)) {
        Some(action) => format!("its entry does {action}").into(),
        None => {
            "its entry has a group before other actions, or does more than a flow record has room for"
                .into()
        },
    }
}

/// Returns `true` if the compiled form supports an action on its own.
fn is_compiled(action: &Action<'static>, require: Kinds) -> bool {
    let alone = Instructions {
        apply: Some(vec![*action]),
        ..Instructions::default()
    };
    BoundProgram::of(&alone, require, false, Origin::default()).is_some()
}
