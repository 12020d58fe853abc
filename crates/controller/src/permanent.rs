//! A record of all programs' entries in OpenFlow 1.0 switches, needed to delete one program's entries.
//!
//! **How.** A 1.0 switch deletes by match alone, from any program. So the framework records each permanent entry that
//! programs send to it. If one program deletes entries, the framework adds the other programs' entries again in the same
//! write. Their counters restart.
//!
//! **Not recorded.** Entries with a time-out, which are added again with the packets that they are for; entries that
//! [`Switch::forward_with_rule`](crate::Switch::forward_with_rule) adds, for the same reason; and entries that a switch had
//! when it connected. A modified entry is removed from the record. An entry that the switch has refused, or that was removed
//! without a flow mod of this controller, is added again as if the switch had it.
//!
//! **Cost.** About 250 bytes per entry, for at most [`MAX_ENTRIES`] per switch. Entries beyond that are installed but not
//! recorded: [`SwitchCounters::unprotected`](crate::SwitchCounters::unprotected) counts them.

use crate::{OWN_COOKIE_BITS, ProgramId};
use std::collections::BTreeMap;
use urtica_wire::{Field, FlowMod, FlowModCommand, Match, Message};

/// The maximum number of permanent entries recorded for one switch.
pub(crate) const MAX_ENTRIES: usize = 4096;

/// Offsets of fields in `ofp_flow_mod` of 1.0 (section 5.3.3).
mod field {
    use std::ops::Range;

    pub const XID: Range<usize> = 4..8;
    pub const MATCH: Range<usize> = 8..48;
    pub const PRIORITY: Range<usize> = 62..64;
    pub const BUFFER_ID: Range<usize> = 64..68;
}

/// An entry's match and priority, encoded as in its flow mod: they identify it within its switch.
type Place = (Vec<u8>, [u8; 2]);

/// An entry that one program has installed.
struct Noted {
    program: ProgramId,
    /// The flow mod that adds it.
    frame: Vec<u8>,
}

/// The permanent entries of a 1.0 switch that programs have installed.
#[derive(Default)]
pub(crate) struct PermanentEntries {
    entries: BTreeMap<Place, Noted>,
}

impl PermanentEntries {
    /// Appends messages that add again other programs' entries that the flow mod of one program at `start` would also delete.
    /// Returns the number of messages.
    pub fn add_again(&self, flow_mod: &FlowMod, out: &mut Vec<u8>, start: usize) -> u64 {
        let Some(deleted) = is_of_one_program(flow_mod) else {
            return 0;
        };
        let deletion = out[start..].to_vec();
        let Some(wide) = match_of(&deletion) else {
            return 0;
        };
        let others = self.entries.values().filter(|it| it.program != deleted);
        let mut count = 0;
        for noted in others.filter(|noted| noted.is_in(&wide)) {
            let begin = out.len();
            out.extend_from_slice(&noted.frame);
            // Has the xid of the program's message, since an error is about that.
            out[begin..][field::XID].copy_from_slice(&deletion[field::XID]);
            count += 1;
        }
        count
    }

    /// Records the changes of a program's flow mod, encoded as `frame`.
    ///
    /// # Errors
    /// [`Full`] if it adds an entry that the record has no space for.
    pub fn note(
        &mut self,
        program: ProgramId,
        flow_mod: &FlowMod,
        frame: &[u8],
    ) -> Result<(), Full> {
        match flow_mod.command {
            FlowModCommand::Add => return self.add(program, flow_mod, frame),
            FlowModCommand::ModifyStrict | FlowModCommand::DeleteStrict => {
                self.entries.remove(&place(frame));
            }
            FlowModCommand::Modify | FlowModCommand::Delete => {
                let concerned = is_of_one_program(flow_mod);
                self.forget(frame, |it| concerned.is_none_or(|program| program == it));
            }
            FlowModCommand::Other(_) => {}
        }
        Ok(())
    }

    fn add(&mut self, program: ProgramId, flow_mod: &FlowMod, frame: &[u8]) -> Result<(), Full> {
        let place = place(frame);
        // An earlier entry is overwritten.
        self.entries.remove(&place);
        if (flow_mod.idle_timeout, flow_mod.hard_timeout) != (0, 0) {
            return Ok(());
        }
        if self.entries.len() == MAX_ENTRIES {
            return Err(Full);
        }
        let mut frame = frame.to_vec();
        frame[field::BUFFER_ID].fill(0xff);
        self.entries.insert(place, Noted { program, frame });
        Ok(())
    }

    /// Removes the entries of some programs that the match of a flow mod includes.
    fn forget(&mut self, frame: &[u8], is_concerned: impl Fn(ProgramId) -> bool) {
        if let Some(wide) = match_of(frame) {
            self.entries
                .retain(|_, noted| !(is_concerned(noted.program) && noted.is_in(&wide)));
        }
    }
}

impl Noted {
    fn is_in(&self, wide: &Match) -> bool {
        match_of(&self.frame).is_some_and(|narrow| includes(wide, &narrow))
    }
}

/// The error of a record without space for another entry.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// Returns the program whose entries a delete selects; `None` if it deletes all programs' entries.
pub(crate) fn is_of_one_program(flow_mod: &FlowMod) -> Option<ProgramId> {
    let names_program = flow_mod.cookie_mask == !OWN_COOKIE_BITS;
    names_program
        .then(|| ProgramId::of_cookie(flow_mod.cookie))
        .flatten()
}

fn place(frame: &[u8]) -> Place {
    let mut priority = [0; 2];
    priority.copy_from_slice(&frame[field::PRIORITY]);
    (frame[field::MATCH].to_vec(), priority)
}

/// Returns the match of an encoded flow mod, as a switch reads it.
fn match_of(frame: &[u8]) -> Option<Match<'_>> {
    match Message::decode(frame).ok()?.1 {
        Message::FlowMod(flow_mod) => Some(flow_mod.match_),
        _ => None,
    }
}

/// Returns `true` if `wide` matches every packet that `narrow` matches (1.0 section 3.4).
pub(crate) fn includes(wide: &Match, narrow: &Match) -> bool {
    wide.fields().all(|wanted| match wanted {
        Field::Basic { field, value, mask } => {
            let found = narrow.get(field);
            found.is_some_and(|(found, bits)| bits & mask == mask && found & mask == value & mask)
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use urtica_wire::{EntryOptions, Version, split_frame};

    const OURS: ProgramId = ProgramId::OUTSIDE;

    fn theirs() -> ProgramId {
        ProgramId::of_cookie(1 << 56).unwrap()
    }

    fn frame(flow_mod: &FlowMod) -> Vec<u8> {
        let mut frame = Vec::new();
        let flow_mod = FlowMod {
            cookie_mask: 0,
            ..flow_mod.clone()
        };
        let message = Message::FlowMod(flow_mod);
        message.encode(Version::Of10, 7, &mut frame).unwrap();
        frame
    }

    fn add(match_: Match, options: EntryOptions) -> FlowMod {
        FlowMod {
            match_,
            ..options.flow_mod()
        }
    }

    fn delete(command: FlowModCommand, match_: Match) -> FlowMod {
        FlowMod {
            command,
            match_,
            ..FlowMod::default()
        }
    }

    fn note(entries: &mut PermanentEntries, program: ProgramId, flow_mod: &FlowMod) {
        entries.note(program, flow_mod, &frame(flow_mod)).unwrap();
    }

    /// Returns the destinations of other programs' entries that a delete of ours for this type of packet also deletes.
    fn added_again(entries: &PermanentEntries, eth_type: u16) -> Vec<u128> {
        let by_match = delete(FlowModCommand::Delete, Match::any().eth_type(eth_type));
        let deletion = OURS.restrict(by_match);
        let mut out = frame(&deletion);
        let count = entries.add_again(&deletion, &mut out, 0);
        let (_, mut rest) = split_frame(&out).unwrap().unwrap();
        let mut found = Vec::new();
        while let Some((frame, after)) = split_frame(rest).unwrap() {
            let narrow = match_of(frame).unwrap();
            found.push(narrow.get(urtica_wire::OxmField::EthDst).unwrap().0);
            rest = after;
        }
        assert_eq!(found.len() as u64, count);
        found
    }

    /// Matches IPv4 packets to a host.
    fn to_host(host: u8) -> Match<'static> {
        let host = urtica_wire::MacAddr::from([0, 0, 0, 0, 0, host]);
        Match::any().eth_type(0x0800).eth_dst(host)
    }

    #[test]
    fn permanent_entries_of_other_programs_are_added_again() {
        let mut entries = PermanentEntries::default();
        let permanent = EntryOptions::PERMANENT;
        note(&mut entries, theirs(), &add(to_host(1), permanent));
        note(&mut entries, theirs(), &add(to_host(2), permanent));
        note(&mut entries, OURS, &add(to_host(3), permanent));
        note(
            &mut entries,
            theirs(),
            &add(to_host(4), EntryOptions::idle(5)),
        );
        assert_eq!(added_again(&entries, 0x0800), [1, 2]);
        assert_eq!(added_again(&entries, 0x0806), [], "that was not deleted");

        // Overwritten by us, and by one that does not stay.
        note(&mut entries, OURS, &add(to_host(1), permanent));
        note(
            &mut entries,
            theirs(),
            &add(to_host(2), EntryOptions::idle(5)),
        );
        assert_eq!(added_again(&entries, 0x0800), []);
    }

    #[test]
    fn deleted_entries_are_not_added_again() {
        use FlowModCommand::{Delete, DeleteStrict};
        let permanent = EntryOptions::PERMANENT;
        let one_program = |match_| theirs().restrict(delete(Delete, match_));
        for (deletion, left) in [
            (delete(Delete, Match::any()), vec![]),
            (delete(DeleteStrict, to_host(1)), vec![2]),
            (delete(DeleteStrict, Match::any()), vec![1, 2]),
            (one_program(to_host(2)), vec![1]),
            (OURS.restrict(delete(Delete, Match::any())), vec![1, 2]),
        ] {
            let mut entries = PermanentEntries::default();
            note(&mut entries, theirs(), &add(to_host(1), permanent));
            note(&mut entries, theirs(), &add(to_host(2), permanent));
            note(&mut entries, OURS, &deletion);
            assert_eq!(added_again(&entries, 0x0800), left, "{deletion:?}");
        }
    }

    #[test]
    fn records_are_bounded() {
        let mut entries = PermanentEntries::default();
        let numbered = |number: usize| {
            let host = urtica_wire::MacAddr::from_u64(number as u64);
            add(Match::any().eth_dst(host), EntryOptions::PERMANENT)
        };
        for number in 0..MAX_ENTRIES {
            note(&mut entries, OURS, &numbered(number));
        }
        let more = numbered(MAX_ENTRIES);
        assert_eq!(entries.note(OURS, &more, &frame(&more)), Err(Full));
        note(&mut entries, OURS, &numbered(0));
        note(
            &mut entries,
            OURS,
            &delete(FlowModCommand::DeleteStrict, numbered(0).match_),
        );
        note(&mut entries, OURS, &more);
    }
}
