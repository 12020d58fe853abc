//! Programs that die at any step of their work, over real sockets. The peer must always read the bytes that it would read if
//! the program had not died.

use super::*;
use crate::discard;
use proptest::prelude::*;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    peer.set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let (socket, _) = listener.accept().unwrap();
    socket.set_nonblocking(true).unwrap();
    (peer, socket)
}

/// Waits until `count` bytes can be peeked from the socket's queue.
fn look(socket: &TcpStream, count: usize) -> Vec<u8> {
    let mut seen = vec![0; count];
    while !matches!(socket.peek(&mut seen), Ok(seen) if seen == count) {
        std::thread::yield_now();
    }
    seen
}

fn assert_contradiction(recovered: Result<Vec<u8>, Damaged>) {
    assert!(
        matches!(recovered, Err(Damaged::Inconsistent(_))),
        "{recovered:?}"
    );
}

fn copy(file: &OwnedFd) -> Vec<u8> {
    let mut bytes = vec![0; fstat(file).unwrap().st_size as usize];
    read_at(file, &mut bytes, 0).unwrap();
    bytes
}

/// The moment at which a program dies that answers one request of 8 bytes.
#[derive(Clone, Copy, Debug)]
enum Death {
    /// When this number of bytes of its note, header and output, has been written.
    Noting(usize),
    /// Before it discards the request.
    Noted,
    /// Before it sends the reply.
    Discarded,
    /// When this number of bytes of the reply has been sent.
    Sent(usize),
    /// It does not die.
    None,
}

/// A program that reads requests of 8 bytes and answers each with its bytes, repeated.
struct Program {
    journal: Journal,
    unsent: Vec<u8>,
    answered: u64,
}

impl Program {
    fn recover(file: OwnedFd, socket: &TcpStream) -> Self {
        let recovered = Journal::recover(file, socket.as_fd()).unwrap();
        Self {
            journal: recovered.journal,
            unsent: recovered.unsent,
            answered: recovered.words[0],
        }
    }

    fn flush(&mut self, mut socket: &TcpStream) {
        // Sockets on loopback accept this many bytes at once.
        socket.write_all(&self.unsent).unwrap();
        self.unsent.clear();
    }

    /// Answers a request, and returns the journal for a successor.
    fn answer(mut self, mut socket: &TcpStream, length: usize, death: Death) -> OwnedFd {
        let request = look(socket, 8);
        let reply = request.repeat(length);
        let before = copy(&self.journal.file);
        let note = Note {
            input: 8,
            unsent: &self.unsent,
            output: &reply,
            words: [self.answered + 1, 0, 0],
        };
        let at_front = self.unsent.is_empty();
        self.journal.note(note).unwrap();
        if let Death::Noting(written) = death {
            let after = copy(&self.journal.file);
            write_at(&self.journal.file, &before, 0).unwrap();
            // In the order of writing.
            let header = HEADER_AT as usize..OUTPUT_AT as usize;
            let output = OUTPUT_AT as usize..after.len();
            let parts = match at_front {
                true => [header, output],
                false => [output, header],
            };
            let mut left = written.max(HEADER_BYTES);
            for part in parts {
                let is_header = part.len() == HEADER_BYTES;
                let count = if is_header && left < HEADER_BYTES {
                    0
                } else {
                    left.min(part.len())
                };
                write_at(
                    &self.journal.file,
                    &after[part.clone()][..count],
                    part.start as u64,
                )
                .unwrap();
                left -= count;
            }
            return self.journal.file;
        }
        if matches!(death, Death::Noted) {
            return self.journal.file;
        }
        discard(socket.as_fd(), 8, &mut [0; 3]).unwrap();
        if matches!(death, Death::Discarded) {
            return self.journal.file;
        }
        self.unsent.extend(reply);
        if let Death::Sent(count) = death {
            let count = count.min(self.unsent.len());
            socket.write_all(&self.unsent[..count]).unwrap();
            return self.journal.file;
        }
        self.flush(socket);
        self.journal.file
    }
}

fn death() -> impl Strategy<Value = Death> {
    prop_oneof![
        (0..3000_usize).prop_map(Death::Noting),
        Just(Death::Noted),
        Just(Death::Discarded),
        (0..3000_usize).prop_map(Death::Sent),
        Just(Death::None),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_reply_is_lost_or_torn_or_sent_twice(
        turns in prop::collection::vec((death(), 0..300_usize, any::<bool>()), 1..20),
    ) {
        let (mut peer, socket) = pair();
        let mut journal = Journal::create(socket.as_fd()).unwrap();
        journal.set_record(b"record").unwrap();
        let note = Note { input: 0, unsent: &[], output: &[], words: [1, 0, 0] };
        journal.note(note).unwrap();
        let mut file = journal.file;
        let mut expected = Vec::new();
        for (number, &(death, length, flushes)) in (1_u64..).zip(&turns) {
            let request = number.to_be_bytes();
            peer.write_all(&request).unwrap();
            expected.extend(request.repeat(length));
            let mut program = Program::recover(file, &socket);
            if flushes {
                program.flush(&socket);
            }
            file = program.answer(&socket, length, death);
            // Its successor answers the remaining requests.
            let program = Program::recover(file, &socket);
            file = match program.answered {
                answered if answered == number => program.answer(&socket, length, Death::None),
                answered => {
                    prop_assert_eq!(answered, number + 1);
                    program.journal.file
                }
            };
        }
        let recovered = Journal::recover(file, socket.as_fd()).unwrap();
        prop_assert_eq!(recovered.record, b"record");
        (&socket).write_all(&recovered.unsent).unwrap();
        drop(socket);
        let mut received = Vec::new();
        peer.read_to_end(&mut received).unwrap();
        prop_assert_eq!(received, expected);
    }
}

/// Output can be noted forever for a slow peer, and the file does not grow forever.
#[test]
fn sent_output_leaves_the_file() {
    let (mut peer, mut socket) = pair();
    let mut journal = Journal::create(socket.as_fd()).unwrap();
    let mut unsent = Vec::new();
    let piece = [7; 64 << 10];
    let mut longest = 0;
    for word in 1..200 {
        let note = Note {
            input: 0,
            unsent: &unsent,
            output: &piece,
            words: [word, 0, 0],
        };
        journal.note(note).unwrap();
        unsent.extend(piece);
        // All but a few bytes are sent, so that the output never starts again at the front.
        let sent = unsent.len() - 100;
        socket.write_all(&unsent[..sent]).unwrap();
        unsent.drain(..sent);
        peer.read_exact(&mut vec![0; sent]).unwrap();
        longest = longest.max(fstat(&journal.file).unwrap().st_size as u64);
    }
    assert!(longest < OUTPUT_AT + 2 * SPARE_BYTES, "{longest}");
    let recovered = Journal::recover(journal.file, socket.as_fd()).unwrap();
    assert_eq!((recovered.unsent.len(), recovered.words[0]), (100, 199));
    // When everything is sent, the memory is released.
    let mut journal = recovered.journal;
    socket.write_all(&recovered.unsent).unwrap();
    let big = vec![1; 3 << 20];
    for (output, word) in [(&big[..], 200), (&piece[..], 201)] {
        let note = Note {
            input: 0,
            unsent: &[],
            output,
            words: [word, 0, 0],
        };
        journal.note(note).unwrap();
    }
    let length = fstat(&journal.file).unwrap().st_size as u64;
    assert_eq!(length, OUTPUT_AT + piece.len() as u64);
}

#[test]
fn damage_is_noticed() {
    let (_peer, mut socket) = pair();
    let mut journal = Journal::create(socket.as_fd()).unwrap();
    let note = Note {
        input: 0,
        unsent: &[],
        output: b"12345678",
        words: [1, 0, 0],
    };
    journal.note(note).unwrap();
    let sound = copy(&journal.file);
    let recover = |bytes: &[u8], socket: &TcpStream| {
        let file = memfd_create("test", MemfdFlags::CLOEXEC).unwrap();
        write_at(&file, bytes, 0).unwrap();
        Journal::recover(file, socket.as_fd()).map(|recovered| recovered.unsent)
    };
    assert_eq!(recover(&sound, &socket), Ok(b"12345678".to_vec()));
    assert_contradiction(recover(b"", &socket));
    assert_contradiction(recover(&sound[..sound.len() - 1], &socket));
    // A program that has sent all of a long output truncates the file before it writes the next header.
    socket.write_all(b"12345678").unwrap();
    assert_eq!(recover(&sound[..OUTPUT_AT as usize], &socket), Ok(vec![]));
    let mut other = sound.clone();
    other[HEADER_AT as usize] ^= 1;
    assert_eq!(recover(&other, &socket), Err(Damaged::OtherLayout));
    for at in (8..HEADER_BYTES).step_by(8) {
        let mut wrong = sound.clone();
        wrong[HEADER_AT as usize + at] ^= 1;
        assert_contradiction(recover(&wrong, &socket));
    }
    // More bytes were sent than were noted.
    socket.write_all(b"9").unwrap();
    let error = recover(&sound, &socket).unwrap_err();
    let Damaged::OtherSocket {
        written,
        least,
        most,
        ..
    } = error
    else {
        panic!("{error}");
    };
    assert_eq!((most - least, written - most), (8, 1));
}

/// The header of this layout, word by word. Another build may have written it, so a change needs another number in the first
/// word.
#[test]
fn a_header_has_golden_words() {
    let (_peer, socket) = pair();
    let mut journal = Journal::create(socket.as_fd()).unwrap();
    journal.written_before = 0x11;
    journal.set_record(b"record").unwrap();
    journal.set_mark(0x22, Progress::default()).unwrap();
    let first = Note {
        input: 0,
        unsent: &[],
        output: b"12345",
        words: [1, 2, 3],
    };
    journal.note(first).unwrap();
    let second = Note {
        input: 8,
        unsent: b"12345",
        output: b"678",
        words: [4, 5, 6],
    };
    journal.note(second).unwrap();
    let bytes = copy(&journal.file);
    let words = bytes[65_536..65_536 + 128].chunks_exact(8);
    let words: Vec<_> = words
        .map(|word| u64::from_ne_bytes(word.try_into().unwrap()))
        .collect();
    let magic = u64::from_be_bytes(*b"urtica\0\x02");
    let expected = [magic, 0x11, 8, 6, 0x22, 0, 5, 1, 2, 3, 0, 8, 4, 5, 6];
    assert_eq!(words[..15], expected);
    assert_eq!(
        words[15], 0xea81_a10b_4cc7_5815,
        "the checksum of these words"
    );
    assert_eq!(
        (&bytes[..6], &bytes[65_664..]),
        (&b"record"[..], &b"12345678"[..])
    );
}

#[test]
fn a_record_has_a_bound() {
    let (_peer, socket) = pair();
    let mut journal = Journal::create(socket.as_fd()).unwrap();
    assert_eq!(
        journal.set_record(&[0; RECORD_BYTES + 1]),
        Err(Errno::MSGSIZE)
    );
    assert_eq!(journal.set_record(&[0; RECORD_BYTES]), Ok(()));
}

/// Another process reads input and writes; its counts are subtracted at first, and later no longer.
#[test]
fn other_readers_and_writers_are_not_counted_as_the_program() {
    let (mut peer, socket) = pair();
    let mut journal = Journal::create(socket.as_fd()).unwrap();
    assert_eq!(Journal::mark_in(&journal.file), Ok(0));
    journal.set_mark(7, Progress::default()).unwrap();
    assert_eq!(Journal::mark_in(&journal.file), Ok(7));
    // The program reads 8 bytes and owes 5; another process has read the next 8 and written 3.
    peer.write_all(&[1; 16]).unwrap();
    look(&socket, 16);
    let note = Note {
        input: 8,
        unsent: &[],
        output: b"hello",
        words: [1, 2, 3],
    };
    journal.note(note).unwrap();
    discard(socket.as_fd(), 16, &mut [0; 16]).unwrap();
    (&socket).write_all(b"abc").unwrap();
    let others = Progress {
        consumed: 8,
        written: 3,
    };
    let all = Progress::of(socket.as_fd()).unwrap();
    let ours = Progress {
        consumed: all.consumed - others.consumed,
        written: all.written - others.written,
    };
    let recovered = Journal::recover_at(journal.file, ours).unwrap();
    assert_eq!(recovered.unsent, b"hello");
    assert_eq!(recovered.words, [1, 2, 3]);
    let mut journal = recovered.journal;
    journal.set_mark(0, others).unwrap();
    let recovered = Journal::recover(journal.file, socket.as_fd()).unwrap();
    assert_eq!(recovered.unsent, b"hello");
    assert_eq!(recovered.words, [1, 2, 3]);
    assert_eq!(Journal::mark_in(&recovered.journal.file), Ok(0));
}
