//! The emitter of code.

use super::code::Code;
use super::error::CodeError;
use super::listing::Names;
use super::memory::Room;
use super::operands::place;
use iced_x86::code_asm::{CodeAssembler, CodeLabel, ptr, qword_ptr, rdx};
use iced_x86::{BlockEncoderOptions, IcedError};
use std::sync::Arc;

/// Instructions, and names of positions for listings.
pub(super) struct Emitter {
    pub asm: CodeAssembler,
    places: Vec<(CodeLabel, String)>,
    constants: Vec<(u64, String)>,
}

impl Emitter {
    pub fn new() -> Result<Self, CodeError> {
        Ok(Self {
            asm: CodeAssembler::new(64)?,
            places: Vec::new(),
            constants: Vec::new(),
        })
    }

    /// Creates a label for a later position.
    pub fn label(&mut self) -> CodeLabel {
        self.asm.create_label()
    }

    /// Places a label at the next instruction.
    pub fn here(
        &mut self,
        label: &mut CodeLabel,
        name: impl Into<String>,
    ) -> Result<(), IcedError> {
        self.asm.set_label(label)?;
        self.places.push((*label, name.into()));
        Ok(())
    }

    /// Sets the name of a number for listings.
    pub fn name_constant(&mut self, constant: u64, name: String) {
        self.constants.push((constant, name));
    }

    /// Emits a pause until memory has arrived, during which other frames are processed. All registers except `rdi` and `rsi`
    /// are lost.
    pub fn pause(&mut self, name: impl Into<String>) -> Result<(), IcedError> {
        let mut resumed = self.label();
        self.asm.lea(rdx, ptr(resumed))?;
        self.asm.mov(qword_ptr(place!(frame.resume)), rdx)?;
        self.asm.ret()?;
        self.here(&mut resumed, name)
    }

    /// Returns the code, ready to run.
    pub fn finish(mut self, room: &Arc<Room>) -> Result<Code, CodeError> {
        let options = BlockEncoderOptions::RETURN_NEW_INSTRUCTION_OFFSETS;
        let assembled = self.asm.assemble_options(0, options)?;
        let places = self.places.into_iter();
        let places = places.map(|(label, name)| Ok((assembled.label_ip(&label)?, name)));
        let names = Names {
            places: places.collect::<Result<_, IcedError>>()?,
            constants: self.constants,
        };
        Code::new(&assembled.inner.code_buffer, names, room)
    }
}
