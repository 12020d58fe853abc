//! Instructions, in the list that follows `actions=`: `meter:1,output:2,clear_actions,goto_table:3`.

use super::ParseError;
use super::action::{DROP, parse_action, parse_actions, write_actions, write_experimenter};
use super::item::{Item, Span};
use crate::{Action, Instruction, List, Version};
use std::fmt::{self, Write};
use std::str::FromStr;

/// A flow entry's instructions as text. Plain actions are those of apply-actions; no instructions are `drop`.
///
/// They are parsed and written in the order in which a switch executes them (1.3.5 section 5.9): meter, apply-actions,
/// clear-actions, write-actions, write-metadata, goto-table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Instructions<'a>(pub List<'a, Instruction<'a>>);

impl FromStr for Instructions<'static> {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        parse_instructions(Span::new(text)).map(Self)
    }
}

impl fmt::Display for Instructions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_instructions(f, &self.0, Version::Of13)
    }
}

/// Returns an instruction's position in the order of 1.3.5 section 5.9.
fn rank(instruction: &Instruction<'_>) -> u8 {
    match instruction {
        Instruction::Meter(_) => 0,
        Instruction::ApplyActions(_) => 1,
        Instruction::ClearActions => 2,
        Instruction::WriteActions(_) => 3,
        Instruction::WriteMetadata { .. } => 4,
        Instruction::Experimenter { .. } => 5,
        Instruction::GotoTable(_) => 6,
    }
}

type Parse = fn(&Item<'_>) -> Result<Instruction<'static>, ParseError>;

const INSTRUCTIONS: &[(&str, Parse)] = &[
    ("meter", |item| item.value()?.u32().map(Instruction::Meter)),
    ("clear_actions", |item| {
        item.no_value().map(|()| Instruction::ClearActions)
    }),
    ("write_actions", |item| {
        parse_actions(item.value()?).map(Instruction::WriteActions)
    }),
    ("write_metadata", write_metadata),
    ("goto_table", |item| {
        item.value()?.u8().map(Instruction::GotoTable)
    }),
];

/// The explicit form of plain actions; it may occur several times.
const APPLY_ACTIONS: &str = "apply_actions";

fn write_metadata(item: &Item<'_>) -> Result<Instruction<'static>, ParseError> {
    let (value, mask) = item.value_and_mask()?;
    Ok(Instruction::WriteMetadata {
        metadata: value.u64()?,
        mask: mask.map_or(Ok(u64::MAX), Span::u64)?,
    })
}

/// Parses the text after `actions=`.
pub(super) fn parse_instructions(
    text: Span<'_>,
) -> Result<List<'static, Instruction<'static>>, ParseError> {
    let spans: Vec<_> = text.items().collect();
    if matches!(spans[..], [only] if only.text() == DROP) {
        return Ok(List::default());
    }
    let mut parts = Parts::default();
    for span in spans {
        parts.add(&span.item()?)?;
    }
    Ok(parts.finish())
}

/// Instructions, with the actions to apply kept separately.
#[derive(Default)]
struct Parts {
    instructions: Vec<Instruction<'static>>,
    actions: Vec<Action<'static>>,
}

impl Parts {
    fn add(&mut self, item: &Item<'_>) -> Result<(), ParseError> {
        let named = INSTRUCTIONS.iter().find(|(name, _)| *name == item.name());
        if let Some((_, parse)) = named {
            return self.add_instruction(item, parse(item)?);
        }
        if item.name() == APPLY_ACTIONS {
            let actions = parse_actions(item.value()?)?;
            self.actions.extend(actions.iter());
            return Ok(());
        }
        let words = INSTRUCTIONS.iter().map(|(name, _)| *name);
        self.actions.push(parse_action(item, words)?);
        Ok(())
    }

    fn add_instruction(
        &mut self,
        item: &Item<'_>,
        added: Instruction<'static>,
    ) -> Result<(), ParseError> {
        let twice = self
            .instructions
            .iter()
            .any(|earlier| rank(earlier) == rank(&added));
        if twice {
            return Err(item.key.error("is repeated", "each instruction once"));
        }
        self.instructions.push(added);
        Ok(())
    }

    fn finish(mut self) -> List<'static, Instruction<'static>> {
        if !self.actions.is_empty() {
            self.instructions.push(Instruction::apply(self.actions));
        }
        self.instructions.sort_by_key(rank);
        List::from(self.instructions)
    }
}

/// Writes the text after `actions=`, in the words of `version`.
pub(super) fn write_instructions<'a>(
    out: &mut dyn Write,
    instructions: &List<'a, Instruction<'a>>,
    version: Version,
) -> fmt::Result {
    let mut sorted: Vec<_> = instructions.iter().filter(says_something).collect();
    if sorted.is_empty() {
        return out.write_str(DROP);
    }
    sorted.sort_by_key(rank);
    for (index, instruction) in sorted.iter().enumerate() {
        if index > 0 {
            out.write_char(',')?;
        }
        write_instruction(out, instruction, version)?;
    }
    Ok(())
}

/// Returns `false` for an empty apply-actions, which has no effect.
fn says_something(instruction: &Instruction<'_>) -> bool {
    !matches!(instruction, Instruction::ApplyActions(actions) if actions.is_empty())
}

fn write_instruction(
    out: &mut dyn Write,
    instruction: &Instruction<'_>,
    version: Version,
) -> fmt::Result {
    match instruction {
        Instruction::GotoTable(table_id) => write!(out, "goto_table:{table_id}"),
        Instruction::WriteMetadata { metadata, mask } => {
            write!(out, "write_metadata:{metadata:#x}")?;
            match *mask {
                u64::MAX => Ok(()),
                mask => write!(out, "/{mask:#x}"),
            }
        }
        Instruction::WriteActions(actions) => {
            out.write_str("write_actions(")?;
            write_actions(out, actions, version)?;
            out.write_char(')')
        }
        Instruction::ApplyActions(actions) => write_actions(out, actions, version),
        Instruction::ClearActions => out.write_str("clear_actions"),
        Instruction::Meter(meter_id) => write!(out, "meter:{meter_id}"),
        Instruction::Experimenter { experimenter, data } => {
            write_experimenter(out, *experimenter, data)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_come_in_the_order_of_execution() {
        let parsed: Instructions = "goto_table:3,output:1,meter:5,apply_actions(output:2,output:3)"
            .parse()
            .expect("instructions");
        assert_eq!(
            parsed.to_string(),
            "meter:5,output:1,output:2,output:3,goto_table:3"
        );
    }

    #[test]
    fn empty_sets_are_not_empty_lists() {
        let parsed: Instructions = "write_actions(drop)".parse().expect("instructions");
        assert_eq!(parsed.to_string(), "write_actions(drop)");
        let parsed: Instructions = "drop".parse().expect("instructions");
        assert_eq!(parsed, Instructions::default());
    }

    #[test]
    fn errors_are_sentences_with_a_column() {
        let error = |text: &str| text.parse::<Instructions>().expect_err(text).to_string();
        assert_eq!(
            error("goto_table:1,goto_table:2"),
            "column 14: 'goto_table' is repeated; expected each instruction once"
        );
        assert_eq!(
            error("goto_tabel:1"),
            "column 1: 'goto_tabel' is not an action; did you mean 'goto_table'?"
        );
        assert_eq!(
            error("write_actions(output:x)"),
            "column 22: 'x' is not a port; expected a number or one of IN_PORT, TABLE, NORMAL, FLOOD, ALL, CONTROLLER, \
             LOCAL, ANY"
        );
    }
}
