//! `urtica decode`: OpenFlow bytes as text.

use crate::status;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::ExitCode;
use urtica_recordings::decode::{
    CaptureError, HexError, Outcome, parse_hex, print_capture, print_messages,
};
use urtica_recordings::is_capture;

/// Options of `urtica decode`.
#[derive(clap::Args)]
pub struct DecodeArgs {
    /// Hex digits (blanks are ignored), a file of them or a capture, or - for standard input.
    #[arg(value_name = "HEX|FILE|-")]
    input: Vec<String>,
    /// Read the input as a pcap or pcapng capture. Captures are also recognised by their first bytes.
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
    #[error(transparent)]
    Hex(#[from] HexError),
    #[error(transparent)]
    Capture(#[from] CaptureError),
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
}

fn decode(args: &DecodeArgs, out: &mut dyn Write) -> Result<Outcome, Error> {
    let input = read_input(&args.input)?;
    match args.pcap || is_capture(&input) {
        true => Ok(print_capture(&input, &args.port, args.verbose, out)?),
        false => Ok(print_messages(&parse_hex(&input)?, args.verbose, out)?),
    }
}

/// Returns the contents of a file or of standard input, or the arguments themselves if they are hex digits.
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
    fn hex_may_be_split_anywhere() {
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
    fn other_input_is_refused_with_a_message() {
        let (outcome, _) = decode_words(&["0"]);
        let sentence = "the input has an odd number of hex digits; expected two for each byte";
        assert_eq!(outcome, Err(sentence.to_owned()));
        let (outcome, _) = decode_words(&["no-such-file"]);
        let sentence = "'no-such-file' is neither hex digits nor a file; expected either, or - for standard input";
        assert_eq!(outcome, Err(sentence.to_owned()));
    }
}
