//! Any frame: the flow mod that its exact match is written with is that of the general encoder, in every version.

#![no_main]

use libfuzzer_sys::fuzz_target;
use urtica_wire::{
    Action, BufferId, EncodeError, EntryOptions, ExactFlowMod, ExactMatch, FlowMod, Instruction,
    List, Match, Message, PortNo, Version,
};

fuzz_target!(|frame: &[u8]| {
    let flow_mod = ExactFlowMod {
        match_: ExactMatch {
            in_port: PortNo(1),
            frame,
        },
        port: PortNo(2),
        buffer_id: BufferId(3),
        options: EntryOptions::idle(5),
        table_id: 0,
    };
    for version in Version::ALL {
        let (mut fast, mut naive) = (Vec::new(), Vec::new());
        let written = flow_mod.write(version, 1, &mut fast);
        assert_eq!(written, encode(&flow_mod, version, &mut naive));
        assert_eq!(fast, naive);
    }
});

/// The reference: the match as a list of fields.
fn encode(exact: &ExactFlowMod, version: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let actions = [Action::output(exact.port)];
    let instructions = [Instruction::apply(&actions)];
    let flow_mod = FlowMod {
        buffer_id: exact.buffer_id,
        match_: Match::from(exact.match_.fields_in(version)),
        instructions: List::from(&instructions),
        ..exact.options.flow_mod()
    };
    Message::FlowMod(flow_mod).encode(version, 1, out)
}
