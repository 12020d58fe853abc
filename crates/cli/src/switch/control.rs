//! The socket for querying and changing a running switch, with `urtica switch ctl` at the other end.
//!
//! **Protocol.** A request is a line of JSON, a [`Request`]. The answer is lines of JSON, each an [`Answer`]: items, and
//! finally `done` or `error`. Then the connection is closed.
//!
//! **Limits.** Each conversation has its own thread, and their number is limited. Long conversations are ended; a slow
//! or dead client only delays its own thread.

mod answer;
mod place;
mod protocol;

pub use place::ControlPlace;
pub use protocol::{
    Answer, Controller, Counter, Flow, Port, QueueRow, Request, Show, Table, Templates,
};

use crate::control_socket::{ControlSocket, bind};
use answer::answer;
use std::io::{self, BufRead, BufReader, BufWriter, ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::{Duration, Instant};
use urtica_switch::Remote;

/// The longest request.
const MAX_LINE: u64 = 8 << 10;

/// The maximum number of concurrent conversations.
const MAX_CONVERSATIONS: usize = 8;

/// The client's time for sending the request, and for reading each part of the answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The maximum time of a conversation.
const LONGEST: Duration = Duration::from_secs(60);

/// The pause of accepting when no descriptors are left.
const PAUSE: Duration = Duration::from_millis(200);

/// Listens at `file`, and answers for the switch. The file is removed when the returned value is dropped.
///
/// # Errors
/// A message, if it cannot listen, or if another switch answers there.
pub fn serve(file: &Path, remote: Remote) -> Result<ControlSocket, String> {
    if UnixStream::connect(file).is_ok() {
        return Err(format!(
            "another switch answers at {}; expected another --control, or another --name",
            file.display()
        ));
    }
    let cannot = |error: io::Error| format!("cannot listen at {}: {error}", file.display());
    let (listener, socket) = bind(file).map_err(cannot)?;
    let thread = thread::Builder::new().name("control".into());
    thread
        .spawn(move || accept(&listener, &remote))
        .map_err(cannot)?;
    Ok(socket)
}

fn accept(listener: &UnixListener, remote: &Remote) {
    let places = Arc::new(AtomicUsize::new(MAX_CONVERSATIONS));
    for stream in listener.incoming() {
        let Ok(stream) = stream else {
            // No file descriptors are left, for now.
            thread::sleep(PAUSE);
            continue;
        };
        let place = ConversationSlot::take(&places);
        let remote = remote.clone();
        let thread = thread::Builder::new().name("control client".into());
        // If the system cannot start a thread, the connection is closed.
        let _ = thread.spawn(move || converse(stream, place, &remote));
    }
}

/// A slot for one of the concurrent conversations.
struct ConversationSlot(Arc<AtomicUsize>);

impl ConversationSlot {
    fn take(places: &Arc<AtomicUsize>) -> Option<Self> {
        let taken = places.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1));
        taken.is_ok().then(|| Self(Arc::clone(places)))
    }
}

impl Drop for ConversationSlot {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// Answers one request. The client may have disconnected.
fn converse(stream: UnixStream, place: Option<ConversationSlot>, remote: &Remote) {
    let deadline = Instant::now() + LONGEST;
    let mut replies = Replies(BufWriter::new(Patient { stream, deadline }));
    let request = match place {
        Some(_) => read_request(&replies.0.get_ref().stream),
        None => Err(format!(
            "the switch is answering {MAX_CONVERSATIONS} other requests; try again"
        )),
    };
    let outcome = request.and_then(|request| answer(&request, remote, &mut replies));
    let last = match outcome {
        Ok(()) => Answer::Done(true),
        Err(sentence) => Answer::Error(sentence),
    };
    let _ = replies.send(&last).and_then(|()| replies.0.flush());
}

fn read_request(stream: &UnixStream) -> Result<Request, String> {
    let mut line = String::new();
    let mut read = || {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        BufReader::new(stream.take(MAX_LINE)).read_line(&mut line)
    };
    let expected = "expected a line of JSON, such as {\"command\":\"show\"}";
    match read() {
        Err(error) => Err(format!("the request cannot be read: {error}; {expected}")),
        Ok(_) if !line.ends_with('\n') => Err(format!(
            "the request is incomplete, or longer than {MAX_LINE} bytes; {expected}"
        )),
        Ok(_) => serde_json::from_str(&line)
            .map_err(|error| format!("unknown request: {error}; {expected}")),
    }
}

/// Answers to a client.
pub struct Replies(BufWriter<Patient>);

impl Replies {
    /// Sends a part of an answer, no later than its end.
    ///
    /// # Errors
    /// If the client does not read it.
    fn send(&mut self, answer: &Answer) -> io::Result<()> {
        serde_json::to_writer(&mut self.0, answer)?;
        self.0.write_all(b"\n")
    }
}

/// A stream with a deadline.
struct Patient {
    stream: UnixStream,
    deadline: Instant,
}

impl Write for Patient {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match Instant::now() < self.deadline {
            true => self.stream.write(bytes),
            false => Err(ErrorKind::TimedOut.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}
