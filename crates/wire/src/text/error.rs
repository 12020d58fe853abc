//! Errors in texts, with their positions.

/// The error that a text is not a valid match, action or flow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {found} {problem}; {hint}")]
pub struct ParseError {
    column: usize,
    found: Found,
    problem: &'static str,
    hint: Hint,
}

/// The text at the column.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Found {
    Text(String),
    Nothing,
}

/// The hint that ends the message.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Hint {
    Expected(String),
    DidYouMean(&'static str),
}

/// The problem of a text that should be a port.
pub(super) const NOT_A_PORT: &str = "is not a port";

/// The problem of a text that should be an action, or just a port.
pub(super) const NOT_AN_ACTION: &str = "is not an action";

impl ParseError {
    /// Creates an error about `found` at byte offset `at`. In the message, `problem` follows the text found ("is not a number"),
    /// and `expected` follows "expected".
    pub(super) fn new(
        at: usize,
        found: &str,
        problem: &'static str,
        expected: impl Into<String>,
    ) -> Self {
        let found = if found.is_empty() {
            Found::Nothing
        } else {
            Found::Text(found.to_owned())
        };
        Self {
            column: at + 1,
            found,
            problem,
            hint: Hint::Expected(expected.into()),
        }
    }

    /// Suggests the word in `words` that is most similar to the found text, if any.
    pub(super) fn or_did_you_mean(mut self, words: impl Iterator<Item = &'static str>) -> Self {
        let suggestion = match &self.found {
            Found::Text(found) => most_alike(found, words),
            Found::Nothing => None,
        };
        if let Some(word) = suggestion {
            self.hint = Hint::DidYouMean(word);
        }
        self
    }

    /// Returns the column of the error: bytes from the start of the text, counted from 1.
    pub fn column(&self) -> usize {
        self.column
    }

    /// Returns `true` if a port number would be valid there. A port's name causes such an error, since only its switch knows
    /// the number.
    pub fn may_be_a_port(&self) -> bool {
        [NOT_A_PORT, NOT_AN_ACTION].contains(&self.problem)
    }

    /// Returns the text at the error; empty if something is missing there.
    pub fn found(&self) -> &str {
        match &self.found {
            Found::Text(text) => text,
            Found::Nothing => "",
        }
    }
}

impl std::fmt::Display for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => write!(f, "'{text}'"),
            Self::Nothing => f.write_str("nothing"),
        }
    }
}

impl std::fmt::Display for Hint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Expected(expected) => write!(f, "expected {expected}"),
            Self::DidYouMean(word) => write!(f, "did you mean '{word}'?"),
        }
    }
}

/// The maximum length of words with suggestions; longer words are not typing errors.
const LONGEST_TYPO: usize = 24;

/// Returns the word with the fewest edits from `found`, if these are at most a third of its letters.
fn most_alike(found: &str, words: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    if found.len() > LONGEST_TYPO {
        return None;
    }
    let found = found.to_ascii_lowercase();
    let (edits, word) = words
        .map(|word| {
            (
                strsim::levenshtein(&found, &word.to_ascii_lowercase()),
                word,
            )
        })
        .min_by_key(|(edits, _)| *edits)?;
    (edits <= word.len().div_ceil(3)).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_a_sentence_with_column_and_suggestion() {
        let error = ParseError::new(12, "in_prt", "is not a match field or keyword", "one");
        assert_eq!(
            error.clone().to_string(),
            "column 13: 'in_prt' is not a match field or keyword; expected one"
        );
        let error = error.or_did_you_mean(["tp_src", "in_port"].into_iter());
        assert_eq!(
            error.to_string(),
            "column 13: 'in_prt' is not a match field or keyword; did you mean 'in_port'?"
        );
    }

    #[test]
    fn suggests_only_similar_words() {
        assert_eq!(most_alike("zzzzzz", ["in_port", "ip"].into_iter()), None);
    }

    #[test]
    fn upper_and_lower_case_are_alike() {
        assert_eq!(
            most_alike("NW_SCR", ["nw_src", "ip"].into_iter()),
            Some("nw_src")
        );
    }
}
