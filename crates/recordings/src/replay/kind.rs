//! The kind of a message, without its content.

use urtica_wire::text::message;
use urtica_wire::{Header, Message, Version};

/// Types with equal numbers in all versions.
pub const OFPT_HELLO: u8 = 0;
pub const OFPT_ERROR: u8 = 1;
const OFPT_ECHO_REQUEST: u8 = 2;
const OFPT_ECHO_REPLY: u8 = 3;
pub const OFPT_EXPERIMENTER: u8 = 4;
pub const OFPT_FEATURES_REPLY: u8 = 6;

/// The types of requests in 1.0 and 1.3; a reply's type is the next number (1.0 section 5.1, 1.3.5 section 7.1).
const REQUESTS_10: [u8; 5] = [5, 7, 16, 18, 20];
const REQUESTS_13: [u8; 7] = [5, 7, 18, 20, 22, 24, 26];

/// The type of a message, and of the multipart or experimenter message in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Kind {
    pub message_type: u8,
    subtype: u64,
}

impl Kind {
    /// Returns the kind of a whole frame.
    pub fn of(version: Version, frame: &[u8]) -> Self {
        let message_type = frame.get(1).copied().unwrap_or_default();
        let body = frame.get(Header::SIZE..).unwrap_or_default();
        let length = match message_type {
            OFPT_EXPERIMENTER => 8,
            _ if message_type == multipart_request(version) => 2,
            _ => 0,
        };
        let subtype = body.iter().take(length);
        Self {
            message_type,
            subtype: subtype.fold(0, |number, &byte| number << 8 | u64::from(byte)),
        }
    }

    /// Returns `true` if its sender waits for a reply.
    pub fn is_request(self, version: Version) -> bool {
        requests(version).contains(&self.message_type)
    }

    /// Returns `true` if it concerns only the connection, not the session.
    pub fn is_keep_alive(self) -> bool {
        matches!(self.message_type, OFPT_ECHO_REQUEST | OFPT_ECHO_REPLY)
    }

    pub fn is_echo_request(self) -> bool {
        self.message_type == OFPT_ECHO_REQUEST
    }

    pub fn is_echo_reply(self) -> bool {
        self.message_type == OFPT_ECHO_REPLY
    }

    pub fn is_barrier_request(self, version: Version) -> bool {
        let barrier = match version {
            Version::Of10 => 18,
            Version::Of13 => 20,
        };
        self.message_type == barrier
    }

    pub fn is_multipart_request(self, version: Version) -> bool {
        self.message_type == multipart_request(version)
    }
}

fn requests(version: Version) -> &'static [u8] {
    match version {
        Version::Of10 => &REQUESTS_10,
        Version::Of13 => &REQUESTS_13,
    }
}

/// Returns the type of multipart requests, which 1.0 calls OFPT_STATS_REQUEST.
fn multipart_request(version: Version) -> u8 {
    match version {
        Version::Of10 => 16,
        Version::Of13 => 18,
    }
}

/// Returns the type of the request that this type of message replies to.
pub fn replied_to(version: Version, message_type: u8) -> Option<u8> {
    let request = message_type.checked_sub(1)?;
    requests(version).contains(&request).then_some(request)
}

/// Returns the name of a frame's message, such as OFPT_FLOW_MOD.
pub fn name(frame: &[u8]) -> String {
    match Message::decode(frame) {
        Ok((header, decoded)) => {
            let text = message(&header, &decoded).to_string();
            let name = text.split(" (").next().unwrap_or_default();
            name.trim_end_matches(':').to_owned()
        }
        Err(_) => format!(
            "a malformed message of type {}",
            frame.get(1).copied().unwrap_or_default()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiparts_and_experimenters_are_distinguished() {
        let ports = [4, 18, 0, 16, 0, 0, 0, 1, 0, 13, 0, 0, 0, 0, 0, 0];
        let tables = [4, 18, 0, 16, 0, 0, 0, 2, 0, 3, 0, 0, 0, 0, 0, 0];
        let again = [4, 18, 0, 16, 0, 0, 0, 9, 0, 13, 0, 0, 0, 0, 0, 0];
        let of = |frame: &[u8]| Kind::of(Version::Of13, frame);
        assert_ne!(of(&ports), of(&tables));
        assert_eq!(of(&ports), of(&again));
        assert!(of(&ports).is_request(Version::Of13));
        assert!(of(&ports).is_multipart_request(Version::Of13));
        // In 1.0 this type is a barrier request.
        assert!(Kind::of(Version::Of10, &ports).is_barrier_request(Version::Of10));
        assert_eq!(name(&ports), "OFPST_PORT_DESC request");
        assert_eq!(name(&[4, 20, 0, 8, 0, 0, 0, 1]), "OFPT_BARRIER_REQUEST");
        assert_eq!(name(&[1, 5, 0, 8, 0, 0, 0, 1]), "OFPT_FEATURES_REQUEST");
        assert_eq!(name(&[4, 99, 0, 8]), "a malformed message of type 99");
    }

    #[test]
    fn replies_belong_to_requests() {
        assert_eq!(replied_to(Version::Of10, 17), Some(16));
        assert_eq!(replied_to(Version::Of13, 19), Some(18));
        assert_eq!(replied_to(Version::Of13, 17), None);
        assert_eq!(replied_to(Version::Of13, 0), None);
        assert_eq!(replied_to(Version::Of13, 10), None);
    }
}
