//! Flow mods that programs send, by [`Switch`](crate::Switch) or by [`Network`](crate::Network).

use crate::permanent::is_of_one_program;
use crate::{Actions, ProgramId};
use urtica_wire::{
    EncodeError, EntryOptions, FlowMod, FlowModCommand, Instruction, List, Match, Message,
    TABLE_ALL, Version,
};

/// Builds an add of an entry that applies `actions`, or drops packets if the list is empty.
pub(crate) fn with_addition<R>(
    match_: Match,
    actions: Actions,
    options: EntryOptions,
    send: impl FnOnce(FlowMod) -> R,
) -> R {
    actions.with_list(|actions| {
        let apply = (!actions.is_empty()).then(|| Instruction::apply(actions));
        send(FlowMod {
            match_,
            instructions: List::from(apply.as_slice()),
            ..options.flow_mod()
        })
    })
}

/// Builds an add of an entry that passes packets on to the programs with table 1: see [`Stage`](crate::Stage).
pub(crate) fn pass(match_: Match, options: EntryOptions) -> Message {
    Message::FlowMod(FlowMod {
        match_,
        instructions: List::from(vec![Instruction::GotoTable(1)]),
        ..options.flow_mod()
    })
}

/// Builds a delete of all entries of a program that `match_` includes.
pub(crate) fn deletion(match_: Match, program: ProgramId) -> Message {
    Message::FlowMod(program.restrict(FlowMod {
        table_id: TABLE_ALL,
        command: FlowModCommand::Delete,
        match_,
        ..FlowMod::default()
    }))
}

/// Encodes a program's message for its table, and marks the entries that it adds as the program's. In 1.0, a delete of one
/// program's entries deletes all programs' entries: see [`permanent`](crate::permanent).
pub(crate) fn encode(
    message: &Message,
    program: ProgramId,
    own_table: Option<u8>,
    version: Version,
    xid: u32,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    if let (Version::Of10, Message::FlowMod(flow_mod)) = (version, message) {
        if is_of_one_program(flow_mod).is_some() {
            let of_all = FlowMod {
                cookie: 0,
                cookie_mask: 0,
                ..flow_mod.clone()
            };
            let message = Message::FlowMod(of_all);
            return encode_for_table(&message, own_table, version, xid, out);
        }
    }
    let start = out.len();
    encode_for_table(message, own_table, version, xid, out)?;
    program.mark(message, version, &mut out[start..]);
    Ok(())
}

/// Encodes a message; if the program has its own table, flow mods for table 0 (the default) or for all tables apply to it.
fn encode_for_table(
    message: &Message,
    own_table: Option<u8>,
    version: Version,
    xid: u32,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let (Message::FlowMod(flow_mod), Some(own_table)) = (message, own_table) else {
        return message.encode(version, xid, out);
    };
    let table_id = match flow_mod.table_id {
        0 | TABLE_ALL => own_table,
        named => named,
    };
    let placed = FlowMod {
        table_id,
        ..flow_mod.clone()
    };
    Message::FlowMod(placed).encode(version, xid, out)
}
