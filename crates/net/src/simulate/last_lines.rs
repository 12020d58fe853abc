//! The last lines of a long text.

use std::collections::VecDeque;
use std::io::{self, Write};

/// A writer that keeps a limited number of lines, the last ones.
pub(super) struct LastLines {
    lines: VecDeque<String>,
    /// The bytes of the incomplete last line.
    begun: Vec<u8>,
    count: usize,
}

impl LastLines {
    /// Creates a writer that keeps the last `count` lines.
    pub fn new(count: usize) -> Self {
        Self {
            lines: VecDeque::new(),
            begun: Vec::new(),
            count,
        }
    }

    /// Returns the lines, oldest first.
    pub fn lines(&self) -> Vec<String> {
        self.lines.iter().cloned().collect()
    }

    fn finish_line(&mut self) {
        if self.lines.len() == self.count {
            self.lines.pop_front();
        }
        let line = String::from_utf8_lossy(&self.begun).into_owned();
        self.lines.push_back(line);
        self.begun.clear();
    }
}

impl Write for LastLines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut pieces = bytes.split(|&byte| byte == b'\n').peekable();
        while let Some(piece) = pieces.next() {
            self.begun.extend_from_slice(piece);
            if pieces.peek().is_some() {
                self.finish_line();
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_last_lines_for_any_writes() {
        let mut lines = LastLines::new(2);
        for piece in ["a\nb", "b\n", "c", "\nd"] {
            lines.write_all(piece.as_bytes()).unwrap();
        }
        assert_eq!(lines.lines(), ["bb", "c"]);
    }
}
