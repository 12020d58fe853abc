//! Joining lines.

use std::fmt::{self, Write};

/// A writer that joins lines: it replaces every line break with the blanks after it by a space (after a colon or comma), by
/// nothing (after a blank or an equals sign) or by `; ` (otherwise), and several consecutive blanks by one.
pub(super) struct OneLine<'o> {
    out: &'o mut dyn Write,
    /// Whether the last text was a line break.
    broken: bool,
    last: char,
}

impl<'o> OneLine<'o> {
    pub(super) fn new(out: &'o mut dyn Write) -> Self {
        Self {
            out,
            broken: false,
            last: ':',
        }
    }

    fn write_letter(&mut self, letter: char) -> fmt::Result {
        if letter == '\n' {
            self.broken = true;
            return Ok(());
        }
        if letter == ' ' && (self.broken || self.last == ' ') {
            return Ok(());
        }
        if self.broken {
            self.broken = false;
            self.out.write_str(match self.last {
                ' ' | '=' => "",
                ':' | ',' => " ",
                _ => "; ",
            })?;
        }
        self.last = letter;
        self.out.write_char(letter)
    }
}

impl Write for OneLine<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.chars()
            .try_for_each(|letter| self.write_letter(letter))
    }
}

/// Writes text from a peer with escaped control characters, so that it can neither break lines nor control a terminal.
pub(super) fn write_foreign(out: &mut dyn Write, text: &str) -> fmt::Result {
    text.chars().try_for_each(|letter| {
        if letter.is_control() {
            write!(out, "{}", letter.escape_default())
        } else {
            out.write_char(letter)
        }
    })
}

/// Writes bytes sixteen to a line with their offsets, each line after a line break, as `ovs-ofctl` dumps them.
pub(super) fn write_hex_dump(out: &mut dyn Write, bytes: &[u8]) -> fmt::Result {
    for (index, line) in bytes.chunks(16).enumerate() {
        write!(out, "\n{:08x} ", index * 16)?;
        for (column, byte) in line.iter().enumerate() {
            let separator = if column == 8 { '-' } else { ' ' };
            write!(out, "{separator}{byte:02x}")?;
        }
        let blanks = 3 * (16 - line.len());
        write!(out, "{:blanks$} |", "")?;
        for &byte in line {
            let is_text = byte.is_ascii_graphic() || byte == b' ';
            out.write_char(if is_text { byte.into() } else { '.' })?;
        }
        write!(out, "{:1$}|", "", 16 - line.len())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_breaks_become_semicolons() {
        let mut text = String::new();
        let mut one_line = OneLine::new(&mut text);
        one_line
            .write_str("head:\n first\n     second:   2\n bands=\ntype=drop\n")
            .expect("writing to a string");
        assert_eq!(text, "head: first; second: 2; bands=type=drop");
    }

    #[test]
    fn foreign_text_is_escaped() {
        let mut text = String::new();
        write_foreign(&mut text, "é\n\x1b[2J").expect("writing to a string");
        assert_eq!(text, "é\\n\\u{1b}[2J");
    }

    #[test]
    fn hex_dumps_have_offset_bytes_and_text() {
        let mut text = String::new();
        write_hex_dump(&mut text, b"%ST\x1a\x9d").expect("writing to a string");
        assert_eq!(
            text,
            "\n00000000  25 53 54 1a 9d                                  |%ST..           |"
        );
    }
}
