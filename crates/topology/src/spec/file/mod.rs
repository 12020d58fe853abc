//! Networks described in files: in TOML, or in GraphML (see the module `graphml`).
//!
//! ```toml
//! [[switches]]
//! name = "s1"
//! datapath_id = "0000000000000001" # the first number in the name, if left out
//!
//! [[switches]]
//! name = "s2"
//!
//! [[hosts]]
//! name = "h1"
//! mac = "00:00:00:00:00:01" # the host's number in the file, if left out
//! ipv4 = "10.0.0.1"         # 10.0.0.0 and the host's number, if left out
//! attached = "s1:1"
//!
//! [[links]]
//! a = "s1:2"
//! b = "s2:2"
//! delay = "5ms"        # ns, us, ms or s
//! jitter = "500us"     # by how much more or less
//! loss = 0.01          # from 0 to 1
//! bandwidth = "10Mbit" # bit, kbit, Mbit or Gbit a second
//! ```
//!
//! The four properties of a link may be omitted; then it is ideal. A file is checked completely, and errors contain the
//! position.

mod graphml;
mod quantity;
mod reader;
mod sections;
#[cfg(test)]
mod tests;
mod writer;

pub use quantity::{ParseQuantityError, bandwidth_bps, bandwidth_text};

use super::plan::Plan;
use reader::Reader;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;
use writer::Writer;

/// The maximum size of a file.
const MAX_FILE_BYTES: u64 = 32 << 20;

/// An error in a file, with its position.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{line}:{column}: {problem}")]
pub struct PlanError {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
    /// The problem, and the expected input.
    pub problem: String,
}

/// An error at a range of bytes in a text.
struct Wrong {
    place: Range<usize>,
    problem: String,
}

type Checked<T> = Result<T, Wrong>;

/// The reason why a file is refused.
pub(super) enum FileError {
    /// The file cannot be read.
    Read(io::Error),
    /// The file does not describe a network.
    Content(PlanError),
}

/// Reads the plan that a file describes.
pub(super) fn read(path: &Path) -> Result<Plan, FileError> {
    let text = text_of(path).map_err(FileError::Read)?;
    let plan = match graphml::is_xml(&text) {
        true => Plan::from_graphml(&text),
        false => Plan::from_toml(&text),
    };
    plan.map_err(FileError::Content)
}

fn text_of(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let mut file = File::open(path)?.take(MAX_FILE_BYTES + 1);
    if file.read_to_string(&mut text)? as u64 > MAX_FILE_BYTES {
        let problem = format!("it is longer than {MAX_FILE_BYTES} bytes");
        return Err(io::Error::other(problem));
    }
    Ok(text)
}

impl Plan {
    /// Reads a plan from TOML, in the form shown in the module's documentation.
    ///
    /// # Errors
    /// [`PlanError`]: the first error, with its position and the expected input.
    pub fn from_toml(text: &str) -> Result<Self, PlanError> {
        let sections = toml::from_str(text).map_err(|error: toml::de::Error| Wrong {
            place: error.span().unwrap_or_default(),
            problem: error.message().replace('\n', ", "),
        });
        sections
            .and_then(|sections| Reader::new(text).plan(sections))
            .map_err(|wrong| wrong.within(text))
    }

    /// Reads a plan from GraphML: nodes are switches with a host each, and edges are links.
    ///
    /// # Errors
    /// [`PlanError`]: the first error, with its position and the expected input.
    pub fn from_graphml(text: &str) -> Result<Self, PlanError> {
        graphml::plan(text).map_err(|wrong| wrong.within(text))
    }

    /// Writes the plan in TOML, from which [`Self::from_toml`] reads the same plan.
    ///
    /// The plan must be valid: names, numbers and properties are written without checks. A port of an unknown switch is written
    /// with that switch's datapath id.
    pub fn to_toml(&self) -> String {
        toml::to_string(&Writer::new(self).sections()).expect("strings and numbers can be written")
    }
}

impl Wrong {
    fn new(place: Range<usize>, problem: impl Into<String>) -> Self {
        Self {
            place,
            problem: problem.into(),
        }
    }

    fn within(self, text: &str) -> PlanError {
        let at = self.place.start.min(text.len());
        let at = (0..=at).rev().find(|at| text.is_char_boundary(*at));
        let before = &text[..at.unwrap_or(0)];
        let line_begins = before.rfind('\n').map_or(0, |end| end + 1);
        PlanError {
            line: line_at(text, before.len()),
            column: before[line_begins..].chars().count() + 1,
            problem: self.problem,
        }
    }
}

/// Returns the number of the line that contains a byte of a text, from 1.
fn line_at(text: &str, place: usize) -> usize {
    text.as_bytes()[..place]
        .iter()
        .filter(|&&byte| byte == b'\n')
        .count()
        + 1
}
