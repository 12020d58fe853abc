//! Finds message boundaries in a stream that starts anywhere.
//!
//! OpenFlow messages have no start marker, so a boundary is recognised by the bytes after it: consecutive messages of
//! one version that are well-formed to the last field. At the start of a TCP segment one message is enough, since most
//! messages start there; at other positions there must be three messages, or as many as fit up to the end.

use urtica_wire::{Header, Message, Version, split_frame};

/// Number of consecutive messages required at an arbitrary position.
const ENOUGH: usize = 3;

/// The input of a search.
pub(super) struct Search<'a> {
    /// The bytes, which may start within a message.
    pub bytes: &'a [u8],
    /// The positions at which segments start, in order.
    pub starts: &'a [usize],
    /// The version of earlier messages, if any.
    pub version: Option<u8>,
    /// Whether the input is complete.
    pub is_all: bool,
}

/// The result of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// A message starts here.
    Boundary(usize),
    /// No message starts before this position; the rest needs more input.
    NotBefore(usize),
}

impl Search<'_> {
    /// Finds the first boundary.
    pub fn run(&self) -> Found {
        let mut first_open = self.bytes.len();
        let mut starts = self.starts.iter().peekable();
        for at in 0..self.bytes.len() {
            while starts.next_if(|&&start| start < at).is_some() {}
            let is_start = starts.peek() == Some(&&at);
            match self.messages_at(at) {
                None => {}
                Some(count) if count >= ENOUGH || count > 0 && (is_start || self.is_all) => {
                    return Found::Boundary(at);
                }
                Some(0) => first_open = first_open.min(at),
                // Positions inside this message are not considered until it is decided.
                Some(_) => return Found::NotBefore(first_open.min(at)),
            }
        }
        Found::NotBefore(first_open)
    }

    /// Returns the number of consecutive whole messages from here on, if they are followed by the end or by a possible
    /// message. Counts no further than needed.
    fn messages_at(&self, at: usize) -> Option<usize> {
        let (mut rest, mut count) = (&self.bytes[at..], 0);
        let version = self.version.or(rest.first().copied())?;
        while count < ENOUGH && !rest.is_empty() {
            if !may_start(rest, version) {
                return None;
            }
            match split_frame(rest) {
                Ok(Some((frame, after))) => {
                    Message::decode(frame).ok()?;
                    (rest, count) = (after, count + 1);
                }
                Ok(None) => return Some(count),
                Err(_) => return None,
            }
        }
        Some(count)
    }
}

/// Returns `true` if these may be the first bytes of a message of this version.
fn may_start(bytes: &[u8], version: u8) -> bool {
    let last_type = match Version::from_wire(version) {
        Ok(Version::Of10) => 21,
        Ok(Version::Of13) => 29,
        Err(_) => return false,
    };
    let is_long_enough = |bytes: &[u8]| match bytes {
        [l0, l1, ..] => usize::from(u16::from_be_bytes([*l0, *l1])) >= Header::SIZE,
        _ => true,
    };
    match bytes {
        [] => true,
        [first] => *first == version,
        [first, message_type, length @ ..] => {
            *first == version && *message_type <= last_type && is_long_enough(length)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BARRIER: [u8; 8] = [4, 20, 0, 8, 0, 0, 0, 1];

    fn find(bytes: &[u8], starts: &[usize], is_all: bool) -> Found {
        let search = Search {
            bytes,
            starts,
            version: Some(4),
            is_all,
        };
        search.run()
    }

    #[test]
    fn one_message_is_enough_at_the_start_of_a_segment() {
        let bytes = [&[9; 5][..], &BARRIER, &[4]].concat();
        assert_eq!(find(&bytes, &[0, 5], false), Found::Boundary(5));
        assert_eq!(find(&bytes, &[0], false), Found::NotBefore(5));
    }

    #[test]
    fn three_messages_are_enough_anywhere_and_one_at_the_end() {
        let three = [&[9; 5][..], &BARRIER, &BARRIER, &BARRIER].concat();
        assert_eq!(find(&three, &[0], false), Found::Boundary(5));
        assert_eq!(find(&three[..13], &[0], false), Found::NotBefore(5));
        assert_eq!(find(&three[..13], &[0], true), Found::Boundary(5));
    }

    #[test]
    fn messages_without_a_successor_are_no_boundary() {
        let bytes = [&BARRIER[..], &[9; 8]].concat();
        assert_eq!(find(&bytes, &[0], true), Found::NotBefore(16));
    }

    #[test]
    fn the_version_must_equal_the_earlier_messages() {
        let old = [1, 18, 0, 8, 0, 0, 0, 1];
        assert_eq!(find(&old, &[0], true), Found::NotBefore(8));
        let search = Search {
            bytes: &old,
            starts: &[0],
            version: None,
            is_all: true,
        };
        assert_eq!(search.run(), Found::Boundary(0));
    }
}
