//! `urtica decode`: OpenFlow bytes as text.

mod boundary;
mod capture;
mod outcome;
pub mod packets;
pub mod reassembly;
pub mod segment;
mod stream;

use crate::status;
use capture::CaptureError;
use outcome::Outcome;
use std::fmt;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::ExitCode;
use stream::MessageStream;

/// Options of `urtica decode`.
#[derive(clap::Args)]
pub struct DecodeArgs {
    /// Hex digits (blanks between them don't matter), a file of them or a capture, or - for standard input.
    #[arg(value_name = "HEX|FILE|-")]
    input: Vec<String>,
    /// The input is a pcap or pcapng capture. Captures are also known by their first bytes.
    #[arg(long)]
    pcap: bool,
    /// TCP ports of controllers in a capture.
    #[arg(long, value_name = "PORT", value_delimiter = ',', default_values_t = [6633, 6653])]
    port: Vec<u16>,
    /// Print all fields and payloads, over several lines, as ovs-ofctl ofp-print does.
    #[arg(short, long)]
    verbose: bool,
}

/// Prints every message that can be decoded, and an error for everything else; the exit status is 1 if there was any error.
pub fn run(args: DecodeArgs) -> ExitCode {
    let status = decode(&args, &mut io::stdout().lock()).map(|outcome| match outcome {
        Outcome::AllRead => ExitCode::SUCCESS,
        Outcome::SomeUnreadable => ExitCode::FAILURE,
    });
    status::of_printed(status, |error| match error {
        Error::Output(error) | Error::Capture(CaptureError::Output(error)) => Some(error),
        _ => None,
    })
}

/// Why the input could not be read, or the output not written.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("{path}: {error}")]
    File { path: String, error: io::Error },
    #[error("'{0}' is neither hex digits nor a file; expected either, or - for standard input")]
    NoInput(String),
    #[error("byte {at} of the input is {found}; expected hex digits and blanks, or a capture")]
    NotHex { at: usize, found: String },
    #[error("the input has an odd number of hex digits; expected two for each byte")]
    OddDigits,
    #[error(transparent)]
    Capture(#[from] CaptureError),
    #[error("the output cannot be written: {0}")]
    Output(#[from] io::Error),
}

fn decode(args: &DecodeArgs, out: &mut dyn Write) -> Result<Outcome, Error> {
    let input = read_input(&args.input)?;
    if args.pcap || packets::is_capture(&input) {
        return Ok(capture::decode(&input, &args.port, args.verbose, out)?);
    }
    let mut messages = MessageStream::new(String::new(), args.verbose);
    messages.push(&parse_hex(&input)?, out)?;
    messages.finish(out)?;
    Ok(messages.outcome())
}

/// The contents of a file or of standard input, or the arguments themselves if they are hex digits.
fn read_input(arguments: &[String]) -> Result<Vec<u8>, Error> {
    match arguments {
        [] => read_stdin(),
        [dash] if dash == "-" => read_stdin(),
        [path] if Path::new(path).is_file() => std::fs::read(path).map_err(|error| Error::File {
            path: path.clone(),
            error,
        }),
        words if words.iter().all(|word| is_hex(word)) => Ok(words.concat().into_bytes()),
        words => Err(Error::NoInput(words.join(" "))),
    }
}

fn read_stdin() -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let read = io::stdin().lock().read_to_end(&mut bytes);
    read.map_err(|error| Error::File {
        path: "standard input".to_owned(),
        error,
    })?;
    Ok(bytes)
}

fn is_hex(word: &str) -> bool {
    word.bytes()
        .all(|letter| letter.is_ascii_hexdigit() || letter.is_ascii_whitespace())
}

fn parse_hex(text: &[u8]) -> Result<Vec<u8>, Error> {
    let mut digits = Vec::with_capacity(text.len());
    for (at, &letter) in text.iter().enumerate() {
        match char::from(letter).to_digit(16) {
            Some(digit) => digits.push(digit as u8),
            None if letter.is_ascii_whitespace() => {}
            None => {
                let found = Letter(letter).to_string();
                return Err(Error::NotHex { at, found });
            }
        }
    }
    let pairs = digits.chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return Err(Error::OddDigits);
    }
    Ok(pairs.map(|pair| pair[0] << 4 | pair[1]).collect())
}

/// A byte that should have been text.
struct Letter(u8);

impl fmt::Display for Letter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_ascii_graphic() {
            write!(f, "'{}'", char::from(self.0))
        } else {
            write!(f, "{:#04x}", self.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode_words(words: &[&str]) -> (Result<Outcome, String>, String) {
        let args = DecodeArgs {
            input: words.iter().map(|&word| word.to_owned()).collect(),
            pcap: false,
            port: vec![6633, 6653],
            verbose: false,
        };
        let mut out = Vec::new();
        let outcome = decode(&args, &mut out).map_err(|error| error.to_string());
        (outcome, String::from_utf8(out).expect("text"))
    }

    #[test]
    fn hex_may_be_cut_up_in_any_way() {
        let barrier = "OFPT_BARRIER_REQUEST (xid=0x1):\n";
        let cut_up: [&[&str]; 3] = [
            &["0112000800000001"],
            &["01", "12", "0008", "00000001"],
            &["01 12 00 08\n0000 0001"],
        ];
        for words in cut_up {
            let (outcome, printed) = decode_words(words);
            assert_eq!(outcome, Ok(Outcome::AllRead));
            assert_eq!(printed, barrier);
        }
    }

    #[test]
    fn a_hello_may_be_of_any_version() {
        let (outcome, printed) = decode_words(&["0600001000000001", "0001000800000052"]);
        assert_eq!(outcome, Ok(Outcome::AllRead));
        let line = "OFPT_HELLO (OF1.5) (xid=0x1): version bitmap: 0x01, 0x04, 0x06\n";
        assert_eq!(printed, line);
    }

    #[test]
    fn what_follows_a_bad_message_is_printed() {
        let (outcome, printed) = decode_words(&["01ff000800000001", "0112000800000002"]);
        assert_eq!(outcome, Ok(Outcome::SomeUnreadable));
        assert_eq!(
            printed,
            "byte 0: message type 255 does not exist in OpenFlow 1.0 (8 bytes, xid=0x1)\n\
             OFPT_BARRIER_REQUEST (xid=0x2):\n"
        );
    }

    #[test]
    fn after_a_header_that_cannot_be_trusted_the_next_message_is_looked_for() {
        let (outcome, printed) =
            decode_words(&["0112000700000001", "0112000800000002", "0112000800000003"]);
        assert_eq!(outcome, Ok(Outcome::SomeUnreadable));
        assert_eq!(
            printed,
            "byte 0: the header gives its length as 7; expected at least 8, the size of the header itself\n\
             byte 0: the 8 bytes from here on are passed over; the next message begins at byte 8\n\
             OFPT_BARRIER_REQUEST (xid=0x2):\n\
             OFPT_BARRIER_REQUEST (xid=0x3):\n"
        );
    }

    #[test]
    fn bytes_after_a_header_that_cannot_be_trusted_are_told() {
        let (outcome, printed) = decode_words(&["0112000800000002", "0112000700000001"]);
        assert_eq!(outcome, Ok(Outcome::SomeUnreadable));
        assert_eq!(
            printed,
            "OFPT_BARRIER_REQUEST (xid=0x2):\n\
             byte 8: the header gives its length as 7; expected at least 8, the size of the header itself\n\
             byte 8: the 8 bytes from here on are passed over; no message was found in them\n"
        );
    }

    #[test]
    fn a_message_that_ends_too_early_is_told() {
        let (outcome, printed) = decode_words(&["011200100000000100"]);
        assert_eq!(outcome, Ok(Outcome::SomeUnreadable));
        assert_eq!(
            printed,
            "byte 0: the message ends after 9 bytes; expected 16, as its header says\n"
        );
    }

    #[test]
    fn other_input_is_refused_with_a_sentence() {
        let (outcome, _) = decode_words(&["0"]);
        let sentence = "the input has an odd number of hex digits; expected two for each byte";
        assert_eq!(outcome, Err(sentence.to_owned()));
        let (outcome, _) = decode_words(&["no-such-file"]);
        let sentence = "'no-such-file' is neither hex digits nor a file; expected either, or - for standard input";
        assert_eq!(outcome, Err(sentence.to_owned()));
        let error = parse_hex(b"01 x").expect_err("not hex").to_string();
        assert_eq!(
            error,
            "byte 3 of the input is 'x'; expected hex digits and blanks, or a capture"
        );
    }
}
