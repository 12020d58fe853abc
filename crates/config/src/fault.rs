//! Errors in a configuration file, with their positions.

use std::fmt;
use std::ops::Range;

/// A problem, and the expected value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    text: String,
    /// The word that was probably intended.
    meant: Option<String>,
}

impl Problem {
    /// Creates the problem of a misspelt word: appends a question with the intended word to `text`.
    pub fn misspelt(text: &str, meant: &str) -> Self {
        Self {
            text: format!("{text}; did you mean '{meant}'?"),
            meant: Some(meant.to_owned()),
        }
    }
}

impl<T: Into<String>> From<T> for Problem {
    fn from(text: T) -> Self {
        Self {
            text: text.into(),
            meant: None,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// An error in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The line, from 1.
    line: usize,
    /// The column in characters, from 1.
    column: usize,
    problem: Problem,
    /// The text of the line.
    source: String,
    /// The number of underlined characters.
    width: usize,
}

impl Fault {
    /// Creates a fault at these bytes of a text.
    pub fn new(text: &str, place: Range<usize>, problem: impl Into<Problem>) -> Self {
        let start = floor(text, place.start);
        let begin = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let source = text[begin..].lines().next().unwrap_or_default();
        let end = floor(
            text,
            place
                .end
                .clamp(start, begin + source.len().max(start - begin)),
        );
        Self {
            line: text[..start].matches('\n').count() + 1,
            column: text[begin..start].chars().count() + 1,
            problem: problem.into(),
            source: source.to_owned(),
            width: text[start..end].chars().count().max(1),
        }
    }
}

impl Fault {
    /// Returns the line and column, from 1, by which faults are ordered.
    pub fn position(&self) -> (usize, usize) {
        (self.line, self.column)
    }

    /// Returns the problem.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// Returns the misspelt word and its probable correction, if known. Both contain only letters, digits, `-` and `_`.
    pub fn correction(&self) -> Option<(&str, &str)> {
        let meant = self.problem.meant.as_deref()?;
        let from = self.source.char_indices().nth(self.column - 1)?.0;
        let wrong = &self.source[from..];
        let end = wrong.char_indices().nth(self.width);
        let wrong = &wrong[..end.map_or(wrong.len(), |(end, _)| end)];
        let wrong = wrong.trim_matches(['"', '\'']);
        let is_plain = |word: &str| {
            let mut chars = word.chars();
            !word.is_empty() && chars.all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
        };
        (is_plain(wrong) && is_plain(meant)).then_some((wrong, meant))
    }
}

/// Returns the last character boundary up to this byte.
fn floor(text: &str, byte: usize) -> usize {
    let at_most = byte.min(text.len());
    let mut boundaries = (0..=at_most).rev();
    boundaries
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0)
}

impl fmt::Display for Fault {
    /// Writes `LINE:COLUMN: problem`, and the line with the error underlined.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            line,
            column,
            problem,
            source,
            width,
        } = self;
        writeln!(f, "{line}:{column}: {problem}")?;
        writeln!(f, "{line:5} | {source}")?;
        write!(
            f,
            "      | {:indent$}{:^<width$}",
            "",
            "",
            indent = column - 1
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_are_counted_in_characters() {
        let text = "ä = 1\nöö = 2\n";
        let place = text.find('2').unwrap();
        let told = Fault::new(text, place..place + 1, "expected 3").to_string();
        assert_eq!(told, "2:6: expected 3\n    2 | öö = 2\n      |      ^");
    }

    #[test]
    fn misspelt_plain_words_have_a_correction() {
        let text = "a = 1\nlisen = 2\n";
        let fault = |problem| Fault::new(text, 6..11, problem);
        let meant = fault(Problem::misspelt("there is no 'lisen'", "listen"));
        assert_eq!(meant.correction(), Some(("lisen", "listen")));
        assert!(
            meant
                .to_string()
                .contains("there is no 'lisen'; did you mean 'listen'?")
        );
        assert_eq!(fault("did you mean 'listen'?".into()).correction(), None);
        let not_plain = Problem::misspelt("there is no 'lisen'", "a/b");
        assert_eq!(fault(not_plain).correction(), None);
    }

    #[test]
    fn any_place_in_any_text_has_a_line() {
        let text = "a\r\nöß\n";
        for start in 0..9 {
            for end in 0..9 {
                Fault::new(text, start..end, "").to_string();
            }
        }
        assert_eq!(Fault::new("", 0..0, "empty").line, 1);
    }
}
