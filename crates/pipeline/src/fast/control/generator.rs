//! Where what carries out tables and actions comes from.

#[cfg(target_arch = "x86_64")]
use super::machine::{Assembler, Code, CodeCache, CodeError, Shape};
use crate::fast::datapath::action_program::ActionShape;
use crate::fast::datapath::backend::Backend;
use crate::fast::datapath::table::Template;
use std::io;
use std::sync::Arc;

/// How many bytes machine code may take altogether. A piece takes a page.
#[cfg(target_arch = "x86_64")]
const CODE_BYTES_MAX: usize = 64 << 20;

/// What carries out a table or the actions of a cell, and owns what that takes.
#[derive(Clone, Debug)]
pub(super) enum Runner {
    /// The interpreter carries out tables by their template.
    Template,
    /// The interpreter carries out actions by their shape.
    Shape(Arc<ActionShape>),
    /// Machine code.
    #[cfg(target_arch = "x86_64")]
    Code(Arc<Code>),
}

impl Runner {
    /// What stands in [`Body::code`](crate::fast::datapath::table::Body::code) or [`Cell::run`](crate::fast::datapath::table::Cell::run).
    pub fn address(&self) -> u64 {
        match self {
            Self::Template => 0,
            Self::Shape(shape) => Arc::as_ptr(shape) as u64,
            #[cfg(target_arch = "x86_64")]
            Self::Code(code) => code.address(),
        }
    }

    /// The instructions of machine code, one a line; `None` for the interpreter.
    pub fn listing(&self) -> Option<String> {
        match self {
            Self::Template | Self::Shape(_) => None,
            #[cfg(target_arch = "x86_64")]
            Self::Code(code) => Some(code.listing()),
        }
    }
}

/// Makes runners.
#[derive(Debug)]
pub(super) enum Generator {
    Interpreter,
    #[cfg(target_arch = "x86_64")]
    Machine {
        assembler: Assembler,
        cache: CodeCache,
    },
}

impl Generator {
    /// `is_shared` is whether several threads count in the same cells.
    pub fn new(backend: Backend, is_shared: bool) -> Self {
        match backend {
            #[cfg(target_arch = "x86_64")]
            Backend::MachineCode => Self::Machine {
                assembler: Assembler::new(CODE_BYTES_MAX, is_shared),
                cache: CodeCache::default(),
            },
            _ => Self::Interpreter,
        }
    }

    /// How many bytes the code takes, in whole pages.
    pub fn used_bytes(&self) -> usize {
        match self {
            Self::Interpreter => 0,
            #[cfg(target_arch = "x86_64")]
            Self::Machine { assembler, .. } => assembler.used_bytes(),
        }
    }

    /// What carries out actions.
    ///
    /// # Errors
    /// The system's, if it has no memory for code; [`io::ErrorKind::OutOfMemory`] where code takes all that it may.
    pub fn actions(&mut self, shape: &ActionShape) -> io::Result<Runner> {
        match self {
            Self::Interpreter => Ok(Runner::Shape(Arc::new(shape.clone()))),
            #[cfg(target_arch = "x86_64")]
            Self::Machine { assembler, cache } => {
                let code = cache.get(assembler, &Shape::Actions(shape.clone()));
                code.map(Runner::Code).map_err(refused)
            }
        }
    }

    /// What searches a table. `shapes` are those of the actions of a direct template's rules.
    ///
    /// # Errors
    /// As for [`Generator::actions`].
    pub fn table(&mut self, template: &Template, shapes: &[&ActionShape]) -> io::Result<Runner> {
        match self {
            Self::Interpreter => Ok(Runner::Template),
            #[cfg(target_arch = "x86_64")]
            Self::Machine { assembler, cache } => {
                let code = match template {
                    Template::Direct(rules) if rules.is_empty() => {
                        cache.get(assembler, &Shape::Nothing)
                    }
                    Template::Direct(rules) => {
                        let rules: Vec<_> = rules.iter().zip(shapes.iter().copied()).collect();
                        assembler.direct(&rules).map(Arc::new)
                    }
                    Template::Hash(parts) => cache.get(assembler, &Shape::Hash(parts.clone())),
                    Template::Lpm(part) => cache.get(assembler, &Shape::Lpm(part.clone())),
                    Template::Cut(shape) => cache.get(assembler, &Shape::Cut(shape.clone())),
                    Template::Plain => cache.get(assembler, &Shape::Plain),
                };
                code.map(Runner::Code).map_err(refused)
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn refused(error: CodeError) -> io::Error {
    match error {
        CodeError::Refused(error) => error,
        error => io::Error::new(io::ErrorKind::OutOfMemory, error),
    }
}
