//! The options of programs, compared to find out which programs a change concerns.

use std::any::{Any, TypeId};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The settings of a program.
pub(crate) trait ProgramOptions: Any + Default + PartialEq + Send + Sync {
    /// The files that the program reads only when it starts: when one has changed, so have the settings.
    fn files(&self) -> Vec<&Path> {
        Vec::new()
    }
}

/// No options.
impl ProgramOptions for () {}

/// Everything that determines how a program works: its options, and the content of the files that it reads when it starts.
#[derive(Clone)]
pub(crate) struct Settings {
    options: Arc<dyn Comparable>,
    files: Vec<(PathBuf, Option<Vec<u8>>)>,
}

impl Settings {
    /// Reads the files. One that cannot be read is the program's to complain about.
    pub fn read(options: impl ProgramOptions) -> Self {
        let content = |file: &Path| (file.to_owned(), std::fs::read(file).ok());
        Self {
            files: options.files().into_iter().map(content).collect(),
            options: Arc::new(options),
        }
    }

    /// Whether the user has set anything.
    pub fn is_given(&self) -> bool {
        !self.options.is_default()
    }

    /// Which options these are.
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
