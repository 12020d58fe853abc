//! Lines on standard output.

use std::io::Write;

/// Writes a line. A reader that has gone away, as in `| head`, is no failure of what tells it something.
pub fn say(line: impl std::fmt::Display) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
