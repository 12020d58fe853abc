//! The settings of programs, which are compared to find the programs that a change affects.

use std::any::{Any, TypeId};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The settings of a program.
pub(crate) trait ProgramOptions: Any + Default + PartialEq + Send + Sync {
    /// Returns the files that the program reads only when it starts: a changed file is a changed setting.
    fn files(&self) -> Vec<&Path> {
        Vec::new()
    }
}

/// No options.
impl ProgramOptions for () {}

/// The settings of a program: its options, and the content of the files that it reads when it starts.
#[derive(Clone)]
pub(crate) struct Settings {
    options: Arc<dyn Comparable>,
    files: Vec<(PathBuf, Option<Vec<u8>>)>,
}

impl Settings {
    /// Reads the files. The program itself reports a file that cannot be read.
    pub fn read(options: impl ProgramOptions) -> Self {
        let content = |file: &Path| (file.to_owned(), std::fs::read(file).ok());
        Self {
            files: options.files().into_iter().map(content).collect(),
            options: Arc::new(options),
        }
    }

    /// Returns `true` if the user has set any option.
    pub fn is_given(&self) -> bool {
        !self.options.is_default()
    }

    /// Returns the type of the options.
    pub fn options_type(&self) -> TypeId {
        self.options.options_type()
    }
}

impl PartialEq for Settings {
    fn eq(&self, other: &Self) -> bool {
        self.options.is_same(&*other.options) && self.files == other.files
    }
}

/// [`ProgramOptions`] of any type.
trait Comparable: Any + Send + Sync {
    fn is_same(&self, other: &dyn Comparable) -> bool;
    fn is_default(&self) -> bool;
    fn options_type(&self) -> TypeId;
}

impl<T: ProgramOptions> Comparable for T {
    fn is_same(&self, other: &dyn Comparable) -> bool {
        let other: &dyn Any = other;
        other.downcast_ref() == Some(self)
    }

    fn is_default(&self) -> bool {
        *self == Self::default()
    }

    fn options_type(&self) -> TypeId {
        TypeId::of::<Self>()
    }
}
