//! Splitting a text into `key=value` items, each with its column.

use super::ParseError;

/// A piece of the text, with its byte offset.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span<'t> {
    text: &'t str,
    at: usize,
}

/// Returns `true` for separators of items: commas and white space, as in `ovs-ofctl`.
fn is_separator(letter: char) -> bool {
    letter == ',' || letter.is_ascii_whitespace()
}

impl<'t> Span<'t> {
    /// Returns the whole text.
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    pub(super) fn text(self) -> &'t str {
        self.text
    }

    pub(super) fn is_empty(self) -> bool {
        self.text.is_empty()
    }

    /// Returns the part from byte `start` on; `start` is a character boundary.
    pub(super) fn from(self, start: usize) -> Self {
        Self {
            text: &self.text[start..],
            at: self.at + start,
        }
    }

    fn to(self, end: usize) -> Self {
        Self {
            text: &self.text[..end],
            at: self.at,
        }
    }

    /// Returns the parts before and after the first `separator`.
    pub(super) fn split_once(self, separator: &str) -> Option<(Self, Self)> {
        let at = self.text.find(separator)?;
        Some((self.to(at), self.from(at + separator.len())))
    }

    /// Creates an error about this piece.
    pub(super) fn error(self, problem: &'static str, expected: impl Into<String>) -> ParseError {
        ParseError::new(self.at, self.text, problem, expected)
    }

    /// Returns the pieces between separators; commas within parentheses do not separate.
    pub(super) fn items(self) -> Items<'t> {
        Items { rest: self }
    }

    /// Parses this piece: `key`, `key=value`, `key:value` or `key(value)`.
    pub(super) fn item(self) -> Result<Item<'t>, ParseError> {
        let Some(end) = self.text.find(['=', ':', '(']) else {
            return Ok(Item {
                key: self,
                value: None,
            });
        };
        let (key, value) = (self.to(end), self.from(end + 1));
        let value = if self.text[end..].starts_with('(') {
            value.without_closing_parenthesis()?
        } else {
            value
        };
        Ok(Item {
            key,
            value: Some(value),
        })
    }

    fn without_closing_parenthesis(self) -> Result<Self, ParseError> {
        match self.text.strip_suffix(')') {
            Some(inner) => Ok(self.to(inner.len())),
            None => Err(self.error("has no closing parenthesis", "')' after it")),
        }
    }

    /// Parses an unsigned number of up to `bits` bits, decimal or with `0x`.
    pub(super) fn number(self, bits: u32) -> Result<u128, ParseError> {
        let digits = self.text.strip_prefix("0x");
        let digits = digits.or_else(|| self.text.strip_prefix("0X"));
        let (digits, radix) = digits.map_or((self.text, 10), |digits| (digits, 16));
        // `from_str_radix` would also accept a sign.
        let number = (!digits.starts_with('+'))
            .then(|| u128::from_str_radix(digits, radix).ok())
            .flatten();
        match number {
            Some(number) if bits >= 128 || number >> bits == 0 => Ok(number),
            Some(_) => Err(self.error("is too large", format!("a number of at most {bits} bits"))),
            None => Err(self.error("is not a number", "decimal digits, or 0x and hex digits")),
        }
    }

    pub(super) fn u8(self) -> Result<u8, ParseError> {
        self.number(8).map(|number| number as u8)
    }

    pub(super) fn u16(self) -> Result<u16, ParseError> {
        self.number(16).map(|number| number as u16)
    }

    pub(super) fn u32(self) -> Result<u32, ParseError> {
        self.number(32).map(|number| number as u32)
    }

    pub(super) fn u64(self) -> Result<u64, ParseError> {
        self.number(64).map(|number| number as u64)
    }

    /// Parses a number, or one of these names, in any case.
    pub(super) fn u32_or(self, names: &[(&str, u32)]) -> Result<u32, ParseError> {
        let named = names
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(self.text));
        named.map_or_else(|| self.u32(), |&(_, number)| Ok(number))
    }

    /// Parses a type with `FromStr`.
    pub(super) fn parse<T: std::str::FromStr>(
        self,
        problem: &'static str,
        expected: &str,
    ) -> Result<T, ParseError> {
        self.text.parse().map_err(|_| self.error(problem, expected))
    }
}

/// The iterator of [`Span::items`], whose rest can be read as a whole at any time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Items<'t> {
    rest: Span<'t>,
}

impl<'t> Items<'t> {
    /// Returns the unread rest, without separators at its start.
    pub(super) fn rest(&self) -> Span<'t> {
        let rest = self.rest;
        rest.from(rest.text.len() - rest.text.trim_start_matches(is_separator).len())
    }

    /// If the rest starts with `prefix`, reads all of it, and returns the part after the prefix.
    pub(super) fn take_rest_after(&mut self, prefix: &str) -> Option<Span<'t>> {
        let rest = self.rest();
        rest.text.starts_with(prefix).then(|| {
            self.rest = rest.from(rest.text.len());
            rest.from(prefix.len())
        })
    }
}

impl<'t> Iterator for Items<'t> {
    type Item = Span<'t>;

    fn next(&mut self) -> Option<Span<'t>> {
        let rest = self.rest();
        let end = item_end(rest.text);
        self.rest = rest.from(end);
        (end > 0).then(|| rest.to(end))
    }
}

/// Returns the end of the first item of `text`: a separator outside of parentheses.
fn item_end(text: &str) -> usize {
    let mut depth = 0usize;
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ if depth == 0 && is_separator(letter) => return at,
            _ => {}
        }
    }
    text.len()
}

/// One `key`, `key=value`, `key:value` or `key(value)`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item<'t> {
    pub(super) key: Span<'t>,
    value: Option<Span<'t>>,
}

impl<'t> Item<'t> {
    pub(super) fn name(&self) -> &'t str {
        self.key.text
    }

    /// Returns the required value.
    pub(super) fn value(&self) -> Result<Span<'t>, ParseError> {
        self.value.ok_or_else(|| {
            let key = self.name();
            self.key.error("has no value", format!("{key}=VALUE"))
        })
    }

    /// Returns the value, if any.
    pub(super) fn value_if_any(&self) -> Option<Span<'t>> {
        self.value
    }

    /// Returns an error if there is a value.
    pub(super) fn no_value(&self) -> Result<(), ParseError> {
        match self.value {
            Some(value) if !value.is_empty() => {
                let key = self.name();
                Err(value.error("is one value too many", format!("'{key}' alone")))
            }
            _ => Ok(()),
        }
    }

    /// Returns the value, and the mask after a slash, if any.
    pub(super) fn value_and_mask(&self) -> Result<(Span<'t>, Option<Span<'t>>), ParseError> {
        let value = self.value()?;
        Ok(match value.split_once("/") {
            Some((value, mask)) => (value, Some(mask)),
            None => (value, None),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_end_at_separators_outside_of_parentheses() {
        let items = Span::new(" a=1,, b(c,d),\te").items();
        let items: Vec<_> = items.map(|item| (item.at, item.text)).collect();
        assert_eq!(items, [(1, "a=1"), (7, "b(c,d)"), (15, "e")]);
    }

    #[test]
    fn keys_end_at_the_first_sign() {
        let item = Span::new("dl_src=00:01").item().expect("an item");
        assert_eq!(
            (item.name(), item.value().unwrap().text),
            ("dl_src", "00:01")
        );
        let item = Span::new("write_actions(a:1)").item().expect("an item");
        assert_eq!(item.value().unwrap().text, "a:1");
        let error = Span::new("write_actions(a").item().expect_err("open");
        assert_eq!(
            error.to_string(),
            "column 15: 'a' has no closing parenthesis; expected ')' after it"
        );
    }

    #[test]
    fn errors_of_numbers_name_the_problem() {
        assert_eq!(Span::new("0x1f").u8(), Ok(31));
        let problems = ["256", "+1", "", "0x", "1x"].map(|text| {
            let error = Span::new(text).u8().expect_err(text);
            error.to_string()
        });
        assert_eq!(
            problems,
            [
                "column 1: '256' is too large; expected a number of at most 8 bits",
                "column 1: '+1' is not a number; expected decimal digits, or 0x and hex digits",
                "column 1: nothing is not a number; expected decimal digits, or 0x and hex digits",
                "column 1: '0x' is not a number; expected decimal digits, or 0x and hex digits",
                "column 1: '1x' is not a number; expected decimal digits, or 0x and hex digits",
            ]
        );
    }
}
