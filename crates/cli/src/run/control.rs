//! The socket on which a controller reports the changes of a configuration, and its client.
//!
//! A question is a line with the file's path. The answer is a line, `ok` or `error`, followed by text for users.

use crate::control_socket::{ControlSocket, bind};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{io, thread};

/// The longest question.
const MAX_LINE: u64 = 8 << 10;

/// The client's time for sending the question, and for reading the answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The maximum time for an answer: programs are tried for some seconds, and switches queried.
const ANSWER_WITHIN: Duration = Duration::from_secs(120);

/// A question about the changes of a file.
pub struct Question {
    pub file: PathBuf,
    stream: UnixStream,
}

impl Question {
    /// Answers the question. The client may have disconnected.
    pub fn answer(mut self, answer: Result<String, String>) {
        let (first, text) = match answer {
            Ok(text) => ("ok", text),
            Err(text) => ("error", text),
        };
        let _ = write!(self.stream, "{first}\n{text}");
    }
}

/// Listens at `file`, and passes questions to `pass_on` until it returns `false`. Replaces the socket of an earlier
/// controller, which may be handing over its connections.
///
/// # Errors
/// A message, if it cannot listen.
pub fn listen(
    file: &Path,
    pass_on: impl Fn(Question) -> bool + Send + 'static,
) -> Result<ControlSocket, String> {
    let cannot =
        |error: io::Error| format!("--control: cannot listen at {}: {error}", file.display());
    let (listener, socket) = bind(file).map_err(cannot)?;
    let serve = move || {
        for stream in listener.incoming() {
            // An empty or invalid question gets no answer.
            let question = stream.and_then(read_question);
            if question.is_ok_and(|question| !pass_on(question)) {
                return;
            }
        }
    };
    let thread = thread::Builder::new().name("control".into()).spawn(serve);
    thread.map_err(cannot)?;
    Ok(socket)
}

fn read_question(stream: UnixStream) -> io::Result<Question> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new((&stream).take(MAX_LINE)).read_line(&mut line)?;
    let path = line.strip_suffix('\n').ok_or(ErrorKind::InvalidData)?;
    Ok(Question {
        file: path.into(),
        stream,
    })
}

/// Requests from the controller at `socket` the changes of `file`.
///
/// # Errors
/// The controller's message, or the reason why it cannot be queried.
pub fn ask(socket: &Path, file: &Path) -> Result<String, String> {
    let cannot = |error: io::Error| {
        format!(
            "no controller answers at {}: {error}; expected one that runs with this --control",
            socket.display()
        )
    };
    let file = std::path::absolute(file).map_err(cannot)?;
    let path = file.to_str().filter(|path| !path.contains('\n'));
    let path = path.ok_or("the file's name is not UTF-8; expected another name")?;
    let mut stream = UnixStream::connect(socket).map_err(cannot)?;
    stream
        .set_read_timeout(Some(ANSWER_WITHIN))
        .map_err(cannot)?;
    writeln!(stream, "{path}").map_err(cannot)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).map_err(cannot)?;
    match answer.split_once('\n') {
        Some(("ok", text)) => Ok(text.to_owned()),
        Some(("error", text)) => Err(text.to_owned()),
        _ => Err("the controller ended before it answered".into()),
    }
}
