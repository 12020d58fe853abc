//! Parses the bodies of requests: JSON, and Python literals, which Ryu also accepted.
//!
//! Ryu read bodies with Python's `ast.literal_eval`, so scripts send `{'dpid': 1, 'match': {'dl_type': 0x800},}` as well as
//! JSON. This parser reads both: strings in either quote, hexadecimal, octal and binary numbers, tuples, `True`, `False`,
//! `None`, trailing commas and comments.

use serde_json::{Map, Number, Value};

/// The maximum depth of nested lists and objects.
const DEEPEST: usize = 32;

/// The reason why a body cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the body cannot be read at line {line}, column {column}: expected {expected}")]
pub(crate) struct LiteralError {
    line: usize,
    column: usize,
    expected: &'static str,
}

/// Parses a body.
///
/// # Errors
/// If it is neither JSON nor a Python literal. The error contains the position and the expected input.
pub(crate) fn parse(text: &str) -> Result<Value, LiteralError> {
    let mut parser = Parser {
        text,
        rest: text,
        depth: 0,
    };
    let value = parser.value()?;
    parser.skip_space();
    match parser.rest.is_empty() {
        true => Ok(value),
        false => Err(parser.error("nothing after the first value")),
    }
}

struct Parser<'t> {
    text: &'t str,
    rest: &'t str,
    depth: usize,
}

impl<'t> Parser<'t> {
    fn value(&mut self) -> Result<Value, LiteralError> {
        self.skip_space();
        match self.rest.bytes().next() {
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(|parser| parser.list('[', ']')),
            Some(b'(') => self.nested(|parser| parser.list('(', ')')),
            Some(b'"' | b'\'') => self.string().map(Value::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b'a'..=b'z' | b'A'..=b'Z') => self.word(),
            _ => Err(self.error("a value, such as {\"dpid\": 1}")),
        }
    }

    fn nested(
        &mut self,
        parse: impl FnOnce(&mut Self) -> Result<Value, LiteralError>,
    ) -> Result<Value, LiteralError> {
        if self.depth == DEEPEST {
            return Err(self.error("lists and objects that are less deeply nested"));
        }
        self.depth += 1;
        let value = parse(self);
        self.depth -= 1;
        value
    }

    fn object(&mut self) -> Result<Value, LiteralError> {
        self.take('{');
        let mut map = Map::new();
        while !self.take('}') {
            let key = self.string()?;
            if !self.take(':') {
                return Err(self.error("':' after a name"));
            }
            let value = self.value()?;
            map.insert(key, value);
            if !self.take(',') && !self.is_next('}') {
                return Err(self.error("',' or '}'"));
            }
        }
        Ok(Value::Object(map))
    }

    fn list(&mut self, open: char, close: char) -> Result<Value, LiteralError> {
        self.take(open);
        let mut list = Vec::new();
        while !self.take(close) {
            list.push(self.value()?);
            if !self.take(',') && !self.is_next(close) {
                return Err(self.error("',' or the end of the list"));
            }
        }
        Ok(Value::Array(list))
    }

    fn string(&mut self) -> Result<String, LiteralError> {
        self.skip_space();
        let quote = match self.rest.chars().next() {
            Some(quote @ ('"' | '\'')) => quote,
            _ => return Err(self.error("a name in quotes")),
        };
        self.advance(1);
        let mut string = String::new();
        loop {
            match self.next_char() {
                Some(char) if char == quote => return Ok(string),
                Some('\\') => string.push(self.escape()?),
                Some('\n') | None => return Err(self.error("the quote that ends the text")),
                Some(char) => string.push(char),
            }
        }
    }

    fn escape(&mut self) -> Result<char, LiteralError> {
        match self.next_char() {
            Some(char @ ('"' | '\'' | '\\' | '/')) => Ok(char),
            Some('n') => Ok('\n'),
            Some('t') => Ok('\t'),
            Some('r') => Ok('\r'),
            Some('b') => Ok('\u{8}'),
            Some('f') => Ok('\u{c}'),
            Some('x') => self.code(2),
            Some('u') => self.code(4),
            _ => Err(self.error("an escape, such as \\n or \\u00e9")),
        }
    }

    /// Parses a character of `digits` hexadecimal digits, or a pair of surrogates.
    fn code(&mut self, digits: usize) -> Result<char, LiteralError> {
        let mut units = [self.hex(digits)?, 0];
        let is_first_half = (0xd800..0xdc00).contains(&units[0]);
        let mut count = 1;
        if is_first_half && self.rest.starts_with("\\u") {
            self.advance(2);
            units[1] = self.hex(4)?;
            count = 2;
        }
        let mut decoded = char::decode_utf16(units[..count].iter().copied());
        match (decoded.next(), decoded.next()) {
            (Some(Ok(char)), None) => Ok(char),
            _ => Err(self.error("the code of a character")),
        }
    }

    fn hex(&mut self, digits: usize) -> Result<u16, LiteralError> {
        let code = self
            .rest
            .get(..digits)
            .filter(|code| code.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let code = code.and_then(|code| u16::from_str_radix(code, 16).ok());
        let code = code.ok_or_else(|| self.error("hexadecimal digits"))?;
        self.advance(digits);
        Ok(code)
    }

    fn number(&mut self) -> Result<Value, LiteralError> {
        let token = self.token(|byte| byte.is_ascii_alphanumeric() || b"+-._".contains(&byte));
        let number = integer(token).or_else(|| float(token));
        match number {
            Some(number) => {
                self.advance(token.len());
                Ok(Value::Number(number))
            }
            None => Err(self.error("a number, such as 10 or 0x800")),
        }
    }

    fn word(&mut self) -> Result<Value, LiteralError> {
        let word = self.token(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let value = match word {
            "true" | "True" => Value::Bool(true),
            "false" | "False" => Value::Bool(false),
            "null" | "None" => Value::Null,
            _ => return Err(self.error("a value; text needs quotes")),
        };
        self.advance(word.len());
        Ok(value)
    }

    fn token(&self, belongs: impl Fn(u8) -> bool) -> &'t str {
        let end = self.rest.bytes().position(|byte| !belongs(byte));
        &self.rest[..end.unwrap_or(self.rest.len())]
    }

    fn is_next(&mut self, char: char) -> bool {
        self.skip_space();
        self.rest.starts_with(char)
    }

    fn take(&mut self, char: char) -> bool {
        let is_next = self.is_next(char);
        if is_next {
            self.advance(char.len_utf8());
        }
        is_next
    }

    fn next_char(&mut self) -> Option<char> {
        let char = self.rest.chars().next()?;
        self.advance(char.len_utf8());
        Some(char)
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start();
        while self.rest.starts_with('#') {
            let end = self.rest.find('\n').unwrap_or(self.rest.len());
            self.rest = self.rest[end..].trim_start();
        }
    }

    fn advance(&mut self, bytes: usize) {
        self.rest = &self.rest[bytes..];
    }

    fn error(&self, expected: &'static str) -> LiteralError {
        let before = &self.text[..self.text.len() - self.rest.len()];
        let line = before.rfind('\n').map_or(before, |end| &before[end + 1..]);
        LiteralError {
            line: before.matches('\n').count() + 1,
            column: line.chars().count() + 1,
            expected,
        }
    }
}

fn integer(token: &str) -> Option<Number> {
    match token.strip_prefix('-') {
        Some(_) => token.parse::<i64>().ok().map(Number::from),
        None => crate::number::parse_integer(token).map(Number::from),
    }
}

fn float(token: &str) -> Option<Number> {
    let is_float = token.bytes().any(|byte| b".eE".contains(&byte))
        && token
            .bytes()
            .all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    is_float
        .then(|| token.parse().ok())
        .flatten()
        .and_then(Number::from_f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn python_literals_are_read_as_python_reads_them() {
        for (text, value) in [
            ("{}", json!({})),
            (
                "{'dpid': 1, 'match': {'dl_type': 0x800},}",
                json!({"dpid": 1, "match": {"dl_type": 2048}}),
            ),
            ("(1, 'a', True, None)", json!([1, "a", true, null])),
            ("# a flow\n{\"a\": [1,],} # that is all", json!({"a": [1]})),
            ("[-5, 1.5, 1e3, 0b11]", json!([-5, 1.5, 1000.0, 3])),
            (r#"'it\'s \x41\u00e9\ud83d\ude00'"#, json!("it's Aé😀")),
            ("18446744073709551615", json!(u64::MAX)),
        ] {
            assert_eq!(parse(text), Ok(value), "{text}");
        }
    }

    #[test]
    fn errors_name_position_and_expected_input() {
        for (text, expected) in [
            (
                "",
                "line 1, column 1: expected a value, such as {\"dpid\": 1}",
            ),
            (
                "{\"a\": }",
                "line 1, column 7: expected a value, such as {\"dpid\": 1}",
            ),
            ("{\n 'a' 1}", "line 2, column 6: expected ':' after a name"),
            ("{'a': 1 'b': 2}", "line 1, column 9: expected ',' or '}'"),
            ("{dpid: 1}", "line 1, column 2: expected a name in quotes"),
            (
                "[1, x]",
                "line 1, column 5: expected a value; text needs quotes",
            ),
            (
                "'abc",
                "line 1, column 5: expected the quote that ends the text",
            ),
            (
                "{} {}",
                "line 1, column 4: expected nothing after the first value",
            ),
            (
                "0y5",
                "line 1, column 1: expected a number, such as 10 or 0x800",
            ),
            (
                "'\\ud800'",
                "line 1, column 8: expected the code of a character",
            ),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert_eq!(
                error,
                format!("the body cannot be read at {expected}"),
                "{text}"
            );
        }
    }

    #[test]
    fn deep_nesting_is_refused() {
        let text = "[".repeat(1_000_000);
        assert!(
            parse(&text)
                .unwrap_err()
                .to_string()
                .contains("less deeply nested")
        );
        let deepest = "[".repeat(DEEPEST) + &"]".repeat(DEEPEST);
        assert!(parse(&deepest).is_ok());
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            let list = prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from);
            let object = prop::collection::btree_map(any::<String>(), inner, 0..4);
            prop_oneof![list, object.prop_map(|map| map.into_iter().collect())]
        })
    }

    proptest! {
        #[test]
        fn json_is_read_as_serde_reads_it(value in any_json()) {
            prop_assert_eq!(parse(&value.to_string()), Ok(value.clone()));
            prop_assert_eq!(parse(&format!("{value:#}")), Ok(value));
        }

        #[test]
        fn arbitrary_text_is_harmless(text in ".*", tokens in r#"([\[\](){}'",:#\\ \n0-9xute-]|True|None)*"#) {
            let _ = (parse(&text), parse(&tokens));
        }
    }
}
