//! The writer of code of actions, which tracks the contents of registers and facts about the frame.

use super::emit::Emitter;
use super::operands::place;
use crate::fast::datapath::kinds::Kinds;
use iced_x86::IcedError;
use iced_x86::code_asm::*;

/// The state of code generation at the current position.
pub(super) struct Writer<'a> {
    pub emitter: &'a mut Emitter,
    /// The headers that the frame is known to have.
    pub known: Kinds,
    /// The contents of `r8`.
    pub pointer: Option<Pointer>,
    /// Whether `network` is in `r9`.
    pub has_network: bool,
}

/// The possible contents of `r8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pointer {
    Data,
    Transport,
}

impl<'a> Writer<'a> {
    /// Creates a writer for frames that have these headers.
    pub fn new(emitter: &'a mut Emitter, require: Kinds) -> Self {
        Self {
            emitter,
            known: require,
            pointer: None,
            has_network: false,
        }
    }

    /// Emits a jump for frames that do not have this single header.
    pub fn unless(&mut self, kind: Kinds, otherwise: CodeLabel) -> Result<(), IcedError> {
        super::words::require(self.emitter, kind, otherwise)
    }

    /// Places a label at which branches join.
    pub fn here(&mut self, label: &mut CodeLabel, name: &str) -> Result<(), IcedError> {
        self.emitter.here(label, name)
    }

    /// Emits loading a pointer into `r8`, unless it is loaded.
    pub fn point_to(&mut self, pointer: Pointer) -> Result<(), IcedError> {
        if self.pointer == Some(pointer) {
            return Ok(());
        }
        self.pointer = Some(pointer);
        let place = match pointer {
            Pointer::Data => place!(frame.data),
            Pointer::Transport => place!(frame.transport),
        };
        self.emitter.asm.mov(r8, qword_ptr(place))
    }

    /// Emits loading the pointer to the network header into `r9`, unless it is loaded.
    pub fn point_to_network(&mut self) -> Result<(), IcedError> {
        if self.has_network {
            return Ok(());
        }
        self.has_network = true;
        self.emitter.asm.mov(r9, qword_ptr(place!(frame.network)))
    }
}

/// Returns the location of a parameter at this offset in the flow record.
pub(super) fn param(offset: usize) -> AsmMemoryOperand {
    rax + offset as i32
}
