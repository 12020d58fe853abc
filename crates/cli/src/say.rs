//! Lines on standard output and standard error.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

/// Writes a line. If the reader has closed the pipe, as in `| head`, the program ends: see [`end_unread`].
pub fn say(line: impl Display) {
    say_bare(format_args!("{line}\n"));
}

/// Writes text without a newline.
pub fn say_bare(text: impl Display) {
    // Other errors, such as a full disk, are ignored here.
    let _ = write!(PipedOutput, "{text}").and_then(|()| PipedOutput.flush());
}

/// Standard output for long output: the program ends when the pipe is closed.
pub struct PipedOutput;

impl Write for PipedOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        UntilUnread(io::stdout()).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        UntilUnread(io::stdout()).flush()
    }
}

/// An output that ends the program when its reader closes the pipe.
pub struct UntilUnread<W>(pub W);

impl<W: Write> Write for UntilUnread<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).inspect_err(end_if_unread)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().inspect_err(end_if_unread)
    }
}

fn end_if_unread(error: &io::Error) {
    if error.kind() == ErrorKind::BrokenPipe {
        end_unread();
    }
}

/// Writes a line to standard error if possible: failing to report something is no reason to end.
pub fn complain(line: impl Display) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Ends the program silently, like SIGPIPE, as Unix tools do; the signal itself is ignored, so that a closed connection does
/// not end the program.
pub fn end_unread() -> ! {
    use signal_hook::consts::SIGPIPE;
    let _ = signal_hook::low_level::emulate_default_handler(SIGPIPE);
    // Not reached unless signals are blocked.
    std::process::exit(128 + SIGPIPE)
}
