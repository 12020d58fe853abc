//! The state of a connection for the next program: the output owed to the peer, and the program's own words and record.
//!
//! **What.** A [`Journal`] is a file in memory that the program writes, and that the holder keeps open together with the
//! socket. The rest of the state that survives is in the kernel: the socket's queues and counters.
//!
//! **How.** The program peeks at its input, which stays in the socket's queue, and handles it. Then, in this order:
//!
//! 1. [`Journal::note`] writes the replies and the state after this input, next to the state before it,
//! 2. [`discard`](crate::discard) removes the input from the queue: from this moment on, the input counts as handled,
//! 3. the replies are sent.
//!
//! The kernel counts the bytes read from the queue and the bytes written. So [`Journal::recover`] finds one of two states,
//! whenever the program died: the state before, with the input still in the queue; or the state after, with the number of bytes
//! of the replies that were written. No reply is lost or sent twice, and no message is torn. The start of a message stays in
//! the queue until the rest has arrived.
//!
//! Code other than the program may also read input and write replies, if it counts both: the next program subtracts these
//! counts from the kernel's ([`Journal::recover_at`]). The journal's mark tells whether there are any ([`Journal::set_mark`]).
//!
//! **Cost.** A peek instead of a read, one more system call to discard, one or two to write to the file: about a microsecond
//! per batch. The file has three pages, plus the output that waits for a peer that does not read. Without a holder, there is no
//! cost.
//!
//! **Requirements on the kernel.** A write of the header, which lies within one page, happens completely or not at all, since a
//! process is killed only between two pages; a longer write may have happened up to any byte.

use crate::progress::Progress;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{MemfdFlags, fstat, ftruncate, memfd_create};
use rustix::io::{Errno, pread, pwrite, pwritev};
use std::io::{self, IoSlice};

/// "urtica" and the number of this layout.
const MAGIC: u64 = u64::from_be_bytes(*b"urtica\0\x02");

/// The longest record.
pub const RECORD_BYTES: usize = 64 << 10;

/// The offset of the header, after the record.
const HEADER_AT: u64 = RECORD_BYTES as u64;

const HEADER_WORDS: usize = 16;
const HEADER_BYTES: usize = 8 * HEADER_WORDS;

/// The offset of the output, which follows the header so that one call can write both.
const OUTPUT_AT: u64 = HEADER_AT + HEADER_BYTES as u64;

/// Number of sent bytes after which the remaining output is moved to the front, and the file is truncated.
const SPARE_BYTES: u64 = 1 << 20;

/// Values for a program's own use.
pub type Words = [u64; 3];

/// The state at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct State {
    /// Number of output bytes before those in the file.
    position: u64,
    /// Number of output bytes in the file, sent or not.
    len: u64,
    /// The program's words.
    words: Words,
}

/// The file's header. Its words are the fields, in order; the last is a checksum of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Header {
    /// The kernel's count of written bytes before the first byte of output.
    written_before: u64,
    /// Number of input bytes read from the queue if `after` holds.
    input: u64,
    record_len: u64,
    /// The program's mark, in either state.
    mark: u64,
    before: State,
    after: State,
}

impl Header {
    fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let Self { before, after, .. } = self;
        let mut words = [
            MAGIC,
            self.written_before,
            self.input,
            self.record_len,
            self.mark,
            before.position,
            before.len,
            before.words[0],
            before.words[1],
            before.words[2],
            after.position,
            after.len,
            after.words[0],
            after.words[1],
            after.words[2],
            0,
        ];
        words[HEADER_WORDS - 1] = sum(&words);
        let mut bytes = [0; HEADER_BYTES];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    fn from_bytes(bytes: &[u8; HEADER_BYTES]) -> Result<Self, Damaged> {
        let mut words = [0; HEADER_WORDS];
        for (word, place) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_ne_bytes(place.try_into().unwrap_or_default());
        }
        if words[0] != MAGIC {
            return Err(Damaged::OtherLayout);
        }
        if words[HEADER_WORDS - 1] != sum(&words) {
            return Err(Damaged::Inconsistent("its checksum does not match"));
        }
        let state = |at: usize| State {
            position: words[at],
            len: words[at + 1],
            words: [words[at + 2], words[at + 3], words[at + 4]],
        };
        Ok(Self {
            written_before: words[1],
            input: words[2],
            record_len: words[3],
            mark: words[4],
            before: state(5),
            after: state(10),
        })
    }
}

impl Header {
    /// Returns the number of output bytes in the file that have been sent, if this state holds.
    fn sent(&self, state: &State, progress: Progress) -> Result<u64, Damaged> {
        let overflow = Damaged::Inconsistent("its counts are too large");
        let least = self.written_before.checked_add(state.position);
        let least = least.ok_or(overflow)?;
        let most = least.checked_add(state.len).ok_or(overflow)?;
        match (least..=most).contains(&progress.written) {
            true => Ok(progress.written - least),
            false => Err(Damaged::OtherSocket {
                written: progress.written,
                least,
                most,
                consumed: progress.consumed,
                noted: self.input,
            }),
        }
    }
}

/// Computes a checksum that detects torn headers; not cryptographic.
fn sum(words: &[u64; HEADER_WORDS]) -> u64 {
    let words = words[..HEADER_WORDS - 1].iter();
    words.fold(0xcbf2_9ce4_8422_2325, |sum, word| {
        (sum ^ word)
            .wrapping_mul(0x0000_0100_0000_01b3)
            .rotate_left(29)
    })
}

/// The reason why a journal cannot be used. The connection must then be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Damaged {
    /// A program with another layout has written it.
    #[error("it was written by another version of this program")]
    OtherLayout,
    /// It contradicts itself.
    #[error("its journal is inconsistent: {0}")]
    Inconsistent(&'static str),
    /// It contradicts the socket.
    #[error(
        "its journal contradicts its socket: {written} bytes have been written to it, which is not from {least} to {most}; \
         {consumed} bytes have been read, of which {noted} were noted"
    )]
    OtherSocket {
        /// Number of bytes that the program has written to the socket, by the kernel's count.
        written: u64,
        /// Minimum number of bytes written, by the journal.
        least: u64,
        /// Maximum number of bytes written, by the journal.
        most: u64,
        /// Number of bytes that the program has read from the socket, by the kernel's count.
        consumed: u64,
        /// Number of bytes that the journal had noted as read.
        noted: u64,
    },
    /// It belongs to a connection whose attachment is missing: see [`Link::attach`](crate::Link::attach).
    #[error("the descriptors that belong to its kernel half are missing")]
    NotAttached,
    /// The system refuses access.
    #[error("it cannot be read: {0}")]
    Io(Errno),
}

impl From<Errno> for Damaged {
    fn from(error: Errno) -> Self {
        Self::Io(error)
    }
}

impl From<io::Error> for Damaged {
    fn from(error: io::Error) -> Self {
        Self::Io(Errno::from_io_error(&error).unwrap_or(Errno::IO))
    }
}

/// One connection's journal.
#[derive(Debug)]
pub struct Journal {
    file: OwnedFd,
    written_before: u64,
    /// Number of input bytes read from the queue once the caller has discarded the noted ones.
    input: u64,
    record_len: u64,
    mark: u64,
    state: State,
    /// An upper bound of the file's length.
    file_len: u64,
}

/// The changes since the last note.
#[derive(Clone, Copy, Debug)]
pub struct Note<'a> {
    /// Number of input bytes that were handled. The caller discards them right after noting this.
    pub input: usize,
    /// Output that was noted before and has not been sent.
    pub unsent: &'a [u8],
    /// New output, which must be sent after the input has been discarded.
    pub output: &'a [u8],
    /// The state for the next program.
    pub words: Words,
}

/// The state left by a connection's last program.
#[derive(Debug)]
pub struct Recovered {
    /// The journal, which can be continued.
    pub journal: Journal,
    /// Output that still must be sent.
    pub unsent: Vec<u8>,
    /// The last words; 0 if nothing was noted.
    pub words: Words,
    /// The record; empty if there is none.
    pub record: Vec<u8>,
}

impl Journal {
    /// Creates the journal of a new TCP connection, from which nothing has been read and to which nothing has been
    /// written.
    ///
    /// # Errors
    /// If the system has no memory for it, or the socket is not TCP.
    pub fn create(socket: BorrowedFd) -> io::Result<Self> {
        let written_before = Progress::of(socket)?.written;
        let mut journal = Self {
            file: memfd_create("urtica-hold", MemfdFlags::CLOEXEC)?,
            written_before,
            input: 0,
            record_len: 0,
            mark: 0,
            state: State::default(),
            file_len: OUTPUT_AT,
        };
        journal.write_header(State::default(), State::default(), 0)?;
        Ok(journal)
    }

    /// Continues the journal of a connection whose program is gone.
    ///
    /// # Errors
    /// [`Damaged`] if that is not possible.
    pub fn recover(file: OwnedFd, socket: BorrowedFd) -> Result<Recovered, Damaged> {
        Self::recover_at(file, Progress::of(socket)?)
    }

    /// Continues the journal of a connection with this progress. If code other than the program reads input or writes, the
    /// progress must be the kernel's counts minus those of that code.
    ///
    /// # Errors
    /// Those of [`Journal::recover`].
    pub fn recover_at(file: OwnedFd, progress: Progress) -> Result<Recovered, Damaged> {
        let header = read_header(&file)?;
        let state = match progress.consumed >= header.input {
            true => header.after,
            false => header.before,
        };
        let sent = header.sent(&state, progress)?;
        let file_len = fstat(&file)?.st_size as u64;
        let end = OUTPUT_AT.checked_add(state.len);
        // The file may be truncated after output is sent, before the header is updated.
        let is_cut = sent < state.len && end.is_none_or(|end| end > file_len);
        if is_cut || header.record_len > HEADER_AT {
            return Err(Damaged::Inconsistent("it is shorter than its length field"));
        }
        let mut unsent = vec![0; (state.len - sent) as usize];
        read_at(&file, &mut unsent, OUTPUT_AT + sent)?;
        let mut record = vec![0; header.record_len as usize];
        read_at(&file, &mut record, 0)?;
        let journal = Self {
            file,
            written_before: header.written_before,
            input: progress.consumed,
            record_len: header.record_len,
            mark: header.mark,
            state,
            file_len,
        };
        Ok(Recovered {
            journal,
            unsent,
            words: state.words,
            record,
        })
    }

    /// Reads the mark in a journal: see [`Journal::set_mark`].
    ///
    /// # Errors
    /// [`Damaged`] if it cannot be read.
    pub fn mark_in(file: &OwnedFd) -> Result<u64, Damaged> {
        Ok(read_header(file)?.mark)
    }

    /// Changes the mark at once; it is 0 at first. All noted input must have been discarded. `others` are the bytes of other
    /// code that the kernel's counts include, and that the next program no longer subtracts from now on.
    ///
    /// # Errors
    /// If the system refuses to write it.
    pub fn set_mark(&mut self, mark: u64, others: Progress) -> Result<(), Errno> {
        self.mark = mark;
        self.input += others.consumed;
        self.written_before += others.written;
        self.write_header(self.state, self.state, 0)
    }

    /// Stores a record; can be done once. It takes effect with the next note.
    ///
    /// # Errors
    /// If it is longer than [`RECORD_BYTES`], or the system has no memory for it.
    pub fn set_record(&mut self, record: &[u8]) -> Result<(), Errno> {
        if record.len() > RECORD_BYTES {
            return Err(Errno::MSGSIZE);
        }
        write_at(&self.file, record, 0)?;
        self.record_len = record.len() as u64;
        Ok(())
    }

    /// Notes the handled input and its output, before the input is discarded and the output sent.
    ///
    /// # Errors
    /// If the system has no memory for it. The connection can then no longer outlive the program.
    pub fn note(&mut self, note: Note) -> Result<(), Errno> {
        if note.output.is_empty() && note.words == self.state.words {
            self.input += note.input as u64;
            return Ok(());
        }
        if note.unsent.is_empty() {
            self.restart_output()?;
        } else if self.state.len - note.unsent.len() as u64 > SPARE_BYTES {
            self.move_to_front(note.unsent)?;
        }
        let before = self.state;
        let after = State {
            len: before.len + note.output.len() as u64,
            words: note.words,
            ..before
        };
        self.write(before, after, note)?;
        self.state = after;
        self.input += note.input as u64;
        Ok(())
    }

    fn write(&mut self, before: State, after: State, note: Note) -> Result<(), Errno> {
        let end = OUTPUT_AT + after.len;
        self.file_len = self.file_len.max(end);
        // If the program is killed during this, it has not discarded the input. The state before then holds, in which all
        // output is sent.
        if note.input > 0 && before.len == 0 {
            let header = self.header(before, after, note.input).to_bytes();
            let both = [IoSlice::new(&header), IoSlice::new(note.output)];
            let length = HEADER_BYTES + note.output.len();
            return match pwritev(&self.file, &both, HEADER_AT)? {
                written if written == length => Ok(()),
                _ => Err(Errno::NOSPC),
            };
        }
        write_at(&self.file, note.output, OUTPUT_AT + before.len)?;
        self.write_header(before, after, note.input)
    }

    /// Notes that all output has been sent, so that new output overwrites it.
    fn restart_output(&mut self) -> Result<(), Errno> {
        self.state.position += self.state.len;
        self.state.len = 0;
        self.cut()
    }

    /// Moves unsent output to the front, over the sent output.
    fn move_to_front(&mut self, unsent: &[u8]) -> Result<(), Errno> {
        let sent = self.state.len - unsent.len() as u64;
        if sent < unsent.len() as u64 {
            return Ok(());
        }
        write_at(&self.file, unsent, OUTPUT_AT)?;
        let moved = State {
            position: self.state.position + sent,
            len: unsent.len() as u64,
            ..self.state
        };
        self.write_header(moved, moved, 0)?;
        self.state = moved;
        self.cut()
    }

    /// Frees memory if the output was much longer before.
    fn cut(&mut self) -> Result<(), Errno> {
        let end = OUTPUT_AT + self.state.len;
        if self.file_len > end + SPARE_BYTES {
            ftruncate(&self.file, end)?;
            self.file_len = end;
        }
        Ok(())
    }

    fn header(&self, before: State, after: State, input: usize) -> Header {
        Header {
            written_before: self.written_before,
            input: self.input + input as u64,
            record_len: self.record_len,
            mark: self.mark,
            before,
            after,
        }
    }

    fn write_header(&mut self, before: State, after: State, input: usize) -> Result<(), Errno> {
        let header = self.header(before, after, input);
        write_at(&self.file, &header.to_bytes(), HEADER_AT)
    }
}

impl AsFd for Journal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn read_header(file: &OwnedFd) -> Result<Header, Damaged> {
    let mut header = [0; HEADER_BYTES];
    read_at(file, &mut header, HEADER_AT)?;
    Header::from_bytes(&header)
}

fn write_at(file: &OwnedFd, mut bytes: &[u8], mut at: u64) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match pwrite(file, bytes, at)? {
            0 => return Err(Errno::NOSPC),
            written => {
                bytes = &bytes[written..];
                at += written as u64;
            }
        }
    }
    Ok(())
}

fn read_at(file: &OwnedFd, mut bytes: &mut [u8], mut at: u64) -> Result<(), Damaged> {
    while !bytes.is_empty() {
        match pread(file, &mut *bytes, at)? {
            0 => return Err(Damaged::Inconsistent("it is shorter than its length field")),
            count => {
                bytes = &mut bytes[count..];
                at += count as u64;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
