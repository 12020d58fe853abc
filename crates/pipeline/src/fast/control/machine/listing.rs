//! Code as text, for readers and tests.

use super::operands;
use iced_x86::{
    Decoder, DecoderOptions, Formatter, Instruction, IntelFormatter, OpKind, SymbolResolver,
    SymbolResult,
};

/// Names for listings.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    /// The names of instructions, by their offset.
    pub places: Vec<(u64, String)>,
    /// The names of numbers that are addresses, and so differ between runs.
    pub constants: Vec<(u64, String)>,
}

/// Returns all instructions, with a separate line for each named position.
pub(super) fn of(bytes: &[u8], names: &Names) -> String {
    let mut formatter = formatter(names.clone());
    let mut text = String::new();
    for instruction in Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE).iter() {
        for name in names.at(instruction.ip()) {
            text.push_str(name);
            text.push_str(":\n");
        }
        text.push_str("    ");
        formatter.format(&instruction, &mut text);
        text.push('\n');
    }
    text
}

fn formatter(names: Names) -> IntelFormatter {
    let mut formatter = IntelFormatter::with_options(Some(Box::new(names)), None);
    let options = formatter.options_mut();
    options.set_first_operand_char_index(10);
    options.set_space_after_operand_separator(true);
    options.set_hex_prefix("0x");
    options.set_hex_suffix("");
    options.set_uppercase_hex(false);
    options.set_small_hex_numbers_in_decimal(true);
    options.set_rip_relative_addresses(false);
    options.set_show_branch_size(false);
    formatter
}

impl Names {
    fn at(&self, ip: u64) -> impl Iterator<Item = &str> {
        let places = self.places.iter();
        places
            .filter(move |(at, _)| *at == ip)
            .map(|(_, name)| name.as_str())
    }

    fn constant(&self, number: u64) -> Option<&str> {
        let mut constants = self.constants.iter();
        let found = constants.find(|(constant, _)| *constant == number);
        found.map(|(_, name)| name.as_str())
    }
}

impl SymbolResolver for Names {
    fn symbol(
        &mut self,
        instruction: &Instruction,
        _: u32,
        operand: Option<u32>,
        address: u64,
        _: u32,
    ) -> Option<SymbolResult<'_>> {
        let kind = operand.map(|operand| instruction.op_kind(operand));
        let is_place = instruction.is_ip_rel_memory_operand();
        let name = match kind? {
            OpKind::NearBranch64 => self.at(address).next(),
            OpKind::Memory if is_place => self.at(address).next(),
            OpKind::Memory => operands::name_of(instruction.memory_base(), address as usize),
            OpKind::Immediate64 => self.constant(address),
            _ => None,
        };
        name.map(|name| SymbolResult::with_str(address, name))
    }
}
