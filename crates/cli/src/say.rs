//! Lines on standard output and standard error.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

/// Writes a line. Where the reader has gone away, as in `| head`, the program ends: see [`end_unread`].
pub fn say(line: impl Display) {
    say_bare(format_args!("{line}\n"));
}

/// The same without the end of a line.
pub fn say_bare(text: impl Display) {
    // What else can go wrong, such as a full disk, is not the business of what tells something.
    let _ = write!(Told, "{text}").and_then(|()| Told.flush());
}

/// Standard output for what would go on writing: with its reader, the program ends.
pub struct Told;

impl Write for Told {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        io::stdout().write(bytes).inspect_err(end_if_unread)
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().flush().inspect_err(end_if_unread)
    }
}

fn end_if_unread(error: &io::Error) {
    if error.kind() == ErrorKind::BrokenPipe {
        end_unread();
    }
}

/// Writes a line to standard error, where that can be read: what cannot be told is no reason to end.
pub fn complain(line: impl Display) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Ends the program as SIGPIPE does, in silence: nobody reads what it says. That is how tools of Unix end; the signal itself
/// is ignored, so that the end of a connection is no reason to.
pub fn end_unread() -> ! {
    use signal_hook::consts::SIGPIPE;
    let _ = signal_hook::low_level::emulate_default_handler(SIGPIPE);
    // Not reached while signals do what they are for.
    std::process::exit(128 + SIGPIPE)
}
