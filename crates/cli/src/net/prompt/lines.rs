//! The source of commands: an editor on a terminal, or lines from standard input.
//!
//! A thread reads, so that the network keeps running. It reads a line only on request: while a command runs, the
//! editor does not control the terminal, and Ctrl-C is a signal.

use super::complete::Completion;
use super::names::Names;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{CompletionType, Config, Editor};
use std::io::{BufRead, IsTerminal, stdin, stdout};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

const PROMPT: &str = "urtica> ";

/// The history file, in the home directory.
const HISTORY: &str = ".urtica_net_history";

/// A line, or the end of the input.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Text(String),
    /// Ctrl-C: the line was abandoned.
    GivenUp,
    /// The end of the input.
    End,
    /// It cannot be read.
    Failed(String),
}

/// Lines, one after the other.
pub(super) struct Lines {
    wanted: Sender<()>,
    read: Receiver<Line>,
    terminal: Option<TerminalMode>,
}

impl Lines {
    /// Opens standard input, with an editor if it and standard output are terminals.
    pub fn open(names: &Names) -> Self {
        let is_terminal = stdin().is_terminal() && stdout().is_terminal();
        let (wanted, wishes) = channel();
        let (give, read) = channel();
        let names = names.clone();
        thread::spawn(move || match is_terminal {
            true => edit(names, &wishes, &give),
            false => pass_on(stdin().lock(), &wishes, &give),
        });
        Self {
            wanted,
            read,
            terminal: is_terminal.then(TerminalMode::of_stdin).flatten(),
        }
    }

    /// Returns `true` if a user types the lines.
    pub fn are_typed(&self) -> bool {
        self.terminal.is_some()
    }

    /// Requests a line.
    pub fn ask(&self) {
        // If the reader has ended, receiving the line reports it.
        let _ = self.wanted.send(());
    }

    /// Returns the requested line, if it arrives within this time.
    pub fn take(&self, within: Duration) -> Option<Line> {
        match self.read.recv_timeout(within) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Line::End),
        }
    }
}

/// Reads a line per request.
fn pass_on(mut input: impl BufRead, wishes: &Receiver<()>, give: &Sender<Line>) {
    for () in wishes {
        let mut text = String::new();
        let line = match input.read_line(&mut text) {
            Ok(0) => Line::End,
            Ok(_) => Line::Text(text),
            Err(error) => Line::Failed(error.to_string()),
        };
        if give.send(line).is_err() {
            return;
        }
    }
}

/// Reads a line per request with the editor.
fn edit(names: Names, wishes: &Receiver<()>, give: &Sender<Line>) {
    let mut editor = match editor(names) {
        Ok(editor) => editor,
        Err(error) => {
            let _ = give.send(Line::Failed(error.to_string()));
            return;
        }
    };
    let history = history_file();
    if let Some(file) = &history {
        // The first time, the file does not exist.
        let _ = editor.load_history(file);
    }
    for () in wishes {
        let line = match editor.readline(PROMPT) {
            Ok(text) => Line::Text(text),
            Err(ReadlineError::Interrupted) => Line::GivenUp,
            Err(ReadlineError::Eof) => Line::End,
            Err(error) => Line::Failed(error.to_string()),
        };
        if let (Line::Text(_), Some(file)) = (&line, &history) {
            // Failing to save the history is no reason to stop.
            let _ = editor.append_history(file);
        }
        if give.send(line).is_err() {
            return;
        }
    }
}

fn editor(names: Names) -> rustyline::Result<Editor<Completion, FileHistory>> {
    let config = Config::builder()
        .auto_add_history(true)
        .completion_type(CompletionType::List)
        .build();
    let mut editor = Editor::with_config(config)?;
    editor.set_helper(Some(Completion(names)));
    Ok(editor)
}

fn history_file() -> Option<PathBuf> {
    Some(PathBuf::from(std::env::var_os("HOME")?).join(HISTORY))
}

/// The terminal's original state. The editor's thread may be in the middle of a line when the command ends.
struct TerminalMode(Termios);

impl TerminalMode {
    fn of_stdin() -> Option<Self> {
        tcgetattr(stdin()).ok().map(Self)
    }
}

impl Drop for TerminalMode {
    fn drop(&mut self) {
        let _ = tcsetattr(stdin(), OptionalActions::Drain, &self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_lines_on_demand() {
        let (wanted, wishes) = channel();
        let (give, read) = channel();
        let reader = thread::spawn(move || pass_on(&b"pingall\nexit"[..], &wishes, &give));
        for expected in [
            Line::Text("pingall\n".to_owned()),
            Line::Text("exit".to_owned()),
            Line::End,
        ] {
            assert!(read.try_recv().is_err());
            wanted.send(()).unwrap();
            assert_eq!(read.recv().unwrap(), expected);
        }
        drop(wanted);
        reader.join().unwrap();
    }
}
