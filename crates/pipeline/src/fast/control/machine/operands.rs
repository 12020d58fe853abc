//! Operands for the structures that code reads and writes, each of which has a fixed register.

use crate::fast::datapath::frame::Frame;
use crate::fast::datapath::key::Base;
use iced_x86::Register;
use iced_x86::code_asm::{AsmMemoryOperand, AsmRegister64, rdi};
use std::mem::offset_of;

/// Returns a field of a structure: `place!(frame.len)` is that of the [`Frame`], to which `rdi` points.
macro_rules! place {
    (frame.$field:ident) => {
        iced_x86::code_asm::rdi + std::mem::offset_of!($crate::fast::datapath::frame::Frame, $field) as i32
    };
    (context.$field:ident) => {
        iced_x86::code_asm::rsi + std::mem::offset_of!($crate::fast::datapath::context::Context, $field) as i32
    };
    (header.$field:ident) => {
        iced_x86::code_asm::rcx + std::mem::offset_of!($crate::fast::datapath::table::Header, $field) as i32
    };
    (body.$field:ident) => {
        iced_x86::code_asm::rdx + std::mem::offset_of!($crate::fast::datapath::table::Body, $field) as i32
    };
    (record.$($field:ident).+) => {
        iced_x86::code_asm::rax + std::mem::offset_of!($crate::fast::datapath::table::FlowRecord, $($field).+) as i32
    };
}
pub(super) use place;

/// A value in [`Frame::kept`] during the search of a table, with its name in listings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// For a hash table: the number of the next slot. For a trie: the address of the next entry.
    At,
    /// The upper half of slots with this key.
    Tag,
    /// The address of the hash table.
    Slots,
    /// The address of the block in the slot with the tag, or of the flow record found.
    Block,
    /// The best flow record of the parts searched so far, or null.
    Best,
}

impl Kept {
    const ALL: [(Self, &str); 5] = [
        (Self::At, "kept.at"),
        (Self::Tag, "kept.tag"),
        (Self::Slots, "kept.slots"),
        (Self::Block, "kept.block"),
        (Self::Best, "kept.best"),
    ];

    fn offset(self) -> usize {
        offset_of!(Frame, kept) + 8 * self as usize
    }

    /// Returns its location.
    pub fn place(self) -> AsmMemoryOperand {
        rdi + self.offset() as i32
    }
}

/// Returns the location of a word of the key.
pub(super) fn key_word(index: usize) -> AsmMemoryOperand {
    rdi + (offset_of!(Frame, key) + 8 * index) as i32
}

/// Returns the location of a base's pointer in a frame; `None` for the frame itself.
pub(super) fn pointer_to(base: Base) -> Option<AsmMemoryOperand> {
    match base {
        Base::Frame => None,
        Base::Data => Some(place!(frame.data)),
        Base::Network => Some(place!(frame.network)),
        Base::Transport => Some(place!(frame.transport)),
    }
}

/// Returns the operand `at` bytes after `pointer`, or in the frame.
pub(super) fn within(base: Base, pointer: AsmRegister64, at: impl Into<i32>) -> AsmMemoryOperand {
    match base {
        Base::Frame => rdi + at.into(),
        _ => pointer + at.into(),
    }
}

/// Returns the name in listings of an offset from a register.
pub(super) fn name_of(register: Register, offset: usize) -> Option<&'static str> {
    macro_rules! names {
        ($kind:ty, $prefix:literal: $($($field:ident).+)*) => {
            [$((offset_of!($kind, $($field).+), concat!($prefix $(, ".", stringify!($field))+)),)*]
        };
    }
    use crate::fast::datapath::context::Context;
    use crate::fast::datapath::table::{Body, FlowRecord, Header};
    let find = |names: &[(usize, &'static str)]| {
        let mut names = names.iter();
        names.find(|(at, _)| *at == offset).map(|(_, name)| *name)
    };
    match register {
        Register::RDI => find(&names!(Frame, "frame":
            data network transport len kinds in_port vlan_vid vlan_pcp metadata resume header out_port table_id body floor))
        .or_else(|| {
            let mut kept = Kept::ALL.iter();
            kept.find(|(kept, _)| kept.offset() == offset).map(|(_, name)| *name)
        }),
        Register::RSI => {
            find(&names!(Context, "context": now_ns arena headers counts misses_punt has_left entry_counts))
        }
        Register::RCX => find(&names!(Header, "header": body index table_id)),
        Register::RDX => find(&names!(Body, "body": code default parts)),
        Register::RAX => {
            find(&names!(FlowRecord, "record": code rank counters.packets counters.bytes counters.last_used_ns target params))
        }
        _ => None,
    }
}
