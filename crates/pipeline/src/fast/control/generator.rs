//! The generator of code, or of the interpreter's data, for tables and actions.

#[cfg(target_arch = "x86_64")]
use super::machine::{Assembler, Code, CodeCache, CodeError, CodeKey};
#[cfg(target_arch = "x86_64")]
use super::perf_map;
use crate::fast::datapath::action_program::ActionProgram;
use crate::fast::datapath::backend::Backend;
use crate::fast::datapath::table::Template;
use std::io;
use std::sync::Arc;

/// The maximum size of all machine code, in bytes. Each table and each action program needs at least a page.
#[cfg(target_arch = "x86_64")]
const CODE_BYTES_MAX: usize = 64 << 20;

/// The code, or the interpreter's data, of a table or of a flow record's actions.
#[derive(Clone, Debug)]
pub(super) enum Executor {
    /// The interpreter searches the table by its template.
    Template,
    /// The interpreter executes the action program.
    Program(Arc<ActionProgram>),
    /// Machine code.
    #[cfg(target_arch = "x86_64")]
    Code(Arc<Code>),
}

impl Executor {
    /// Returns the value of [`Body::code`](crate::fast::datapath::table::Body::code) or
    /// [`FlowRecord::code`](crate::fast::datapath::table::FlowRecord::code).
    pub fn address(&self) -> u64 {
        match self {
            Self::Template => 0,
            Self::Program(program) => Arc::as_ptr(program) as u64,
            #[cfg(target_arch = "x86_64")]
            Self::Code(code) => code.address(),
        }
    }

    /// Returns the instructions of machine code, one per line; `None` for the interpreter.
    pub fn listing(&self) -> Option<String> {
        match self {
            Self::Template | Self::Program(_) => None,
            #[cfg(target_arch = "x86_64")]
            Self::Code(code) => Some(code.listing()),
        }
    }
}

/// A generator of executors.
#[derive(Debug)]
pub(super) enum Generator {
    Interpreter,
    #[cfg(target_arch = "x86_64")]
    Machine {
        assembler: Assembler,
        cache: CodeCache,
        /// Whether the system has refused memory for code.
        is_refused: bool,
    },
}

impl Generator {
    /// Creates a generator. `is_shared` means that several threads count in the same flow records.
    pub fn new(backend: Backend, is_shared: bool) -> Self {
        match backend {
            #[cfg(target_arch = "x86_64")]
            Backend::MachineCode => Self::Machine {
                assembler: Assembler::new(CODE_BYTES_MAX, is_shared),
                cache: CodeCache::default(),
                is_refused: false,
            },
            _ => Self::Interpreter,
        }
    }

    /// Returns the size of the code in bytes, in whole pages.
    pub fn used_bytes(&self) -> usize {
        match self {
            Self::Interpreter => 0,
            #[cfg(target_arch = "x86_64")]
            Self::Machine { assembler, .. } => assembler.used_bytes(),
        }
    }

    /// Returns `true` if the system has refused memory for code. The interpreter needs none.
    pub fn is_refused(&self) -> bool {
        match self {
            Self::Interpreter => false,
            #[cfg(target_arch = "x86_64")]
            Self::Machine { is_refused, .. } => *is_refused,
        }
    }

    /// Generates the code of actions.
    ///
    /// # Errors
    /// The system's error if it has no memory for code; [`io::ErrorKind::OutOfMemory`] if the maximum is reached.
    pub fn actions(&mut self, program: &ActionProgram) -> io::Result<Executor> {
        match self {
            Self::Interpreter => Ok(Executor::Program(Arc::new(program.clone()))),
            #[cfg(target_arch = "x86_64")]
            Self::Machine {
                assembler,
                cache,
                is_refused,
            } => {
                let code = cache.get(assembler, &CodeKey::Actions(program.clone()));
                *is_refused |= matches!(code, Err(CodeError::Refused(_)));
                finish(code, || {
                    format!("actions {:?} {:?}", program.ops, program.end)
                })
            }
        }
    }

    /// Generates the code of a table. `programs` are the action programs of a direct template's rules.
    ///
    /// # Errors
    /// As for [`Generator::actions`].
    pub fn table(
        &mut self,
        template: &Template,
        programs: &[&ActionProgram],
    ) -> io::Result<Executor> {
        match self {
            Self::Interpreter => Ok(Executor::Template),
            #[cfg(target_arch = "x86_64")]
            Self::Machine {
                assembler,
                cache,
                is_refused,
            } => {
                let code = match template {
                    Template::Direct(rules) if rules.is_empty() => {
                        cache.get(assembler, &CodeKey::Nothing)
                    }
                    Template::Direct(rules) => {
                        let rules: Vec<_> = rules.iter().zip(programs.iter().copied()).collect();
                        assembler.direct(&rules).map(Arc::new)
                    }
                    Template::Hash(parts) => cache.get(assembler, &CodeKey::Hash(parts.clone())),
                    Template::Lpm(part) => cache.get(assembler, &CodeKey::Lpm(part.clone())),
                    Template::Cut(mask) => cache.get(assembler, &CodeKey::Cut(mask.clone())),
                    Template::Merged(_) => cache.get(assembler, &CodeKey::Merged),
                    Template::Plain => cache.get(assembler, &CodeKey::Plain),
                };
                *is_refused |= matches!(code, Err(CodeError::Refused(_)));
                finish(code, || kind(template).to_owned())
            }
        }
    }
}

/// Names new code for `perf`.
#[cfg(target_arch = "x86_64")]
fn finish(
    code: Result<Arc<Code>, CodeError>,
    name: impl FnOnce() -> String,
) -> io::Result<Executor> {
    let code = code.map_err(refused)?;
    // Shared code has already been counted.
    if Arc::strong_count(&code) == 1 {
        perf_map::note(code.bytes(), name);
    }
    Ok(Executor::Code(code))
}

/// Returns the name of a table's code in `perf`.
#[cfg(target_arch = "x86_64")]
fn kind(template: &Template) -> &'static str {
    match template {
        Template::Direct(_) => "direct code",
        Template::Hash(parts) if parts.len() == 1 => "compound hash",
        Template::Hash(_) => "tuple space",
        Template::Merged(_) => "merged tuple space",
        Template::Lpm(_) => "longest prefix match",
        Template::Cut(_) => "decomposition",
        Template::Plain => "plain form",
    }
}

#[cfg(target_arch = "x86_64")]
fn refused(error: CodeError) -> io::Error {
    match error {
        CodeError::Refused(error) => error,
        error => io::Error::new(io::ErrorKind::OutOfMemory, error),
    }
}
