//! The emulated switch, which completes the handshake and replies to a controller's requests.
//!
//! It has no sockets and no clock: messages are arguments, and replies are appended to a buffer. The packet-ins of the load,
//! and the flow mods and packet-outs that answer them, use the fast path instead.
//!
//! Message numbers and layouts are those of OpenFlow 1.0.0 section 5 and 1.3.5 section 7.

use crate::bytes::{be16, be32};
use crate::config::Version;
use crate::frame::FrameKind;
use crate::identity::Identity;
use crate::packet_in::{BUFFER_IDS, announcements};

/// The ports that every emulated switch has, numbered from 1.
pub const PORTS: u32 = 4;

const HELLO: u8 = 0;
const ERROR: u8 = 1;
const ECHO_REQUEST: u8 = 2;
const ECHO_REPLY: u8 = 3;
const EXPERIMENTER: u8 = 4;
const FEATURES_REQUEST: u8 = 5;
const FEATURES_REPLY: u8 = 6;
const GET_CONFIG_REQUEST: u8 = 7;
const GET_CONFIG_REPLY: u8 = 8;
const SET_CONFIG: u8 = 9;
const PACKET_OUT: u8 = 13;
const FLOW_MOD: u8 = 14;

/// The result of handling a controller's message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Nothing more has to be done.
    Handled,
    /// The features-reply was written, so packet-ins may follow it.
    Ready,
    /// A flow mod or packet-out, for the checker.
    Reply,
    /// An OFPT_ERROR.
    Error {
        /// `ofp_error_type`.
        kind: u16,
        /// The code within the type.
        code: u16,
    },
    /// The controller's hello offers no version that this switch supports, but at most this one.
    WrongVersion(u8),
}

/// An emulated switch: its version, its identity, and the announcements of its frames' destination.
#[derive(Clone, Debug)]
pub struct EmulatedSwitch {
    version: Version,
    identity: Identity,
    /// The packet-ins of its announcements.
    announcements: Vec<u8>,
}

impl EmulatedSwitch {
    /// Creates a switch with this version and identity. After its features-reply, and in 1.3 again after its port descriptions,
    /// it announces the destination of these kinds of frame; without any, it announces nothing.
    pub fn new(version: Version, identity: Identity, announced: &[FrameKind]) -> Self {
        let announcements = if announced.is_empty() {
            Vec::new()
        } else {
            announcements(version, identity, announced)
        };
        Self {
            version,
            identity,
            announcements,
        }
    }

    /// Appends the hello, which starts the connection.
    pub fn poll_hello(&self, out: &mut Vec<u8>) {
        match self.version {
            Version::V10 => self.write(out, HELLO, 1, &[]),
            // A version bitmap (1.3.5: 7.5.1) that only contains 1.3.
            Version::V13 => self.write(out, HELLO, 1, &[0, 1, 0, 8, 0, 0, 0, 1 << 4]),
        }
    }

    /// Handles one complete message and appends the switch's reply.
    pub fn handle_message(&self, message: &[u8], out: &mut Vec<u8>) -> Event {
        let (Some(&[version, kind, ..]), Some(xid)) =
            (message.first_chunk::<8>(), be32(message, 4))
        else {
            return Event::Handled;
        };
        let body = &message[8..];
        match kind {
            HELLO => return self.handle_hello(version, body),
            ERROR => {
                return Event::Error {
                    kind: be16(body, 0).unwrap_or(0),
                    code: be16(body, 2).unwrap_or(0),
                };
            }
            ECHO_REQUEST => self.write(out, ECHO_REPLY, xid, body),
            FEATURES_REQUEST => {
                self.write_features(out, xid);
                out.extend(&self.announcements);
                return Event::Ready;
            }
            GET_CONFIG_REQUEST => self.write(out, GET_CONFIG_REPLY, xid, &[0, 0, 0, 128]),
            FLOW_MOD | PACKET_OUT => return Event::Reply,
            // Bad request: bad experimenter (vendor in 1.0).
            EXPERIMENTER => self.write_error(out, xid, 3, message),
            ECHO_REPLY | SET_CONFIG => {}
            _ => match self.version {
                Version::V10 => self.handle_10(kind, xid, message, out),
                Version::V13 => self.handle_13(kind, xid, message, out),
            },
        }
        Event::Handled
    }

    /// Negotiates the version (1.3.5: 6.3.1): by the bitmap if there is one, otherwise the smaller of the two versions.
    fn handle_hello(&self, version: u8, elements: &[u8]) -> Event {
        let wanted = self.version.wire();
        let bitmap = (be16(elements, 0) == Some(1))
            .then(|| be32(elements, 4))
            .flatten();
        let offered = match bitmap {
            Some(bitmap) => bitmap >> wanted & 1 == 1,
            None => version >= wanted,
        };
        if offered {
            Event::Handled
        } else {
            Event::WrongVersion(version)
        }
    }

    fn handle_10(&self, kind: u8, xid: u32, message: &[u8], out: &mut Vec<u8>) {
        const PORT_MOD: u8 = 15;
        const STATS_REQUEST: u8 = 16;
        const STATS_REPLY: u8 = 17;
        const BARRIER_REQUEST: u8 = 18;
        const BARRIER_REPLY: u8 = 19;
        const QUEUE_GET_CONFIG_REQUEST: u8 = 20;
        const QUEUE_GET_CONFIG_REPLY: u8 = 21;
        match kind {
            STATS_REQUEST => {
                let stats = be16(message, 8).unwrap_or(0);
                let mut body = [stats.to_be_bytes(), [0, 0]].concat();
                match stats {
                    DESC => write_desc(&mut body),
                    AGGREGATE => body.extend([0; 24]),
                    _ => {}
                }
                self.write(out, STATS_REPLY, xid, &body);
            }
            BARRIER_REQUEST => self.write(out, BARRIER_REPLY, xid, &[]),
            QUEUE_GET_CONFIG_REQUEST => {
                let port = message.get(8..10).unwrap_or(&[0, 0]);
                self.write(out, QUEUE_GET_CONFIG_REPLY, xid, &[port, &[0; 6]].concat());
            }
            PORT_MOD => {}
            // Bad request: bad type.
            _ => self.write_error(out, xid, 1, message),
        }
    }

    fn handle_13(&self, kind: u8, xid: u32, message: &[u8], out: &mut Vec<u8>) {
        const GROUP_MOD: u8 = 15;
        const TABLE_MOD: u8 = 17;
        const MULTIPART_REQUEST: u8 = 18;
        const MULTIPART_REPLY: u8 = 19;
        const BARRIER_REQUEST: u8 = 20;
        const BARRIER_REPLY: u8 = 21;
        const QUEUE_GET_CONFIG_REQUEST: u8 = 22;
        const QUEUE_GET_CONFIG_REPLY: u8 = 23;
        const ROLE_REQUEST: u8 = 24;
        const ROLE_REPLY: u8 = 25;
        const GET_ASYNC_REQUEST: u8 = 26;
        const GET_ASYNC_REPLY: u8 = 27;
        const SET_ASYNC: u8 = 28;
        const METER_MOD: u8 = 29;
        match kind {
            MULTIPART_REQUEST => {
                let part = be16(message, 8).unwrap_or(0);
                let mut body = [part.to_be_bytes(), [0, 0]].concat();
                body.extend([0; 4]);
                self.write_part(part, &mut body);
                self.write(out, MULTIPART_REPLY, xid, &body);
                // The programs of Ryu and os-ken get no packet-ins before this.
                if part == PORT_DESC {
                    out.extend(&self.announcements);
                }
            }
            BARRIER_REQUEST => self.write(out, BARRIER_REPLY, xid, &[]),
            QUEUE_GET_CONFIG_REQUEST => {
                let port = message.get(8..12).unwrap_or(&[0; 4]);
                self.write(out, QUEUE_GET_CONFIG_REPLY, xid, &[port, &[0; 4]].concat());
            }
            ROLE_REQUEST => self.write(out, ROLE_REPLY, xid, &message[8..]),
            // All packet-ins, port-status and flow-removed messages, as master, equal and slave.
            GET_ASYNC_REQUEST => self.write(out, GET_ASYNC_REPLY, xid, &[[0, 0, 0, 7]; 6].concat()),
            GROUP_MOD..=TABLE_MOD | SET_ASYNC | METER_MOD => {}
            // Bad request: bad type.
            _ => self.write_error(out, xid, 1, message),
        }
    }

    /// Writes the body of a multipart reply. Parts for which an empty switch has no data are empty.
    fn write_part(&self, part: u16, body: &mut Vec<u8>) {
        const GROUP_FEATURES: u16 = 8;
        const METER_FEATURES: u16 = 11;
        match part {
            DESC => write_desc(body),
            AGGREGATE => body.extend([0; 24]),
            // Table 0, without entries, lookups and matches.
            TABLE => body.extend([0; 24]),
            GROUP_FEATURES => body.extend([0; 40]),
            METER_FEATURES => body.extend([0; 16]),
            PORT_DESC => (1..=PORTS).for_each(|number| self.write_port(number, body)),
            _ => {}
        }
    }

    fn write_features(&self, out: &mut Vec<u8>, xid: u32) {
        let mut body = self.identity.datapath_id.to_be_bytes().to_vec();
        body.extend(BUFFER_IDS.to_be_bytes());
        // One table, no auxiliary connection, padding.
        body.extend([1, 0, 0, 0]);
        match self.version {
            // Flow, table and port statistics; the actions from output to set-tp-dst.
            Version::V10 => {
                body.extend([0, 0, 0, 0x07, 0, 0, 0x07, 0xff]);
                (1..=PORTS).for_each(|number| self.write_port(number, &mut body));
            }
            Version::V13 => body.extend([0, 0, 0, 0x07, 0, 0, 0, 0]),
        }
        self.write(out, FEATURES_REPLY, xid, &body);
    }

    /// Writes an `ofp_port` (1.3) or `ofp_phy_port` (1.0): 10 Gb/s, copper, up.
    fn write_port(&self, number: u32, body: &mut Vec<u8>) {
        let [.., d4, d5] = self.identity.destination();
        let mac = [0x02, 0, 0, d4, d5, number as u8];
        let mut name = [0; 16];
        name[..4].copy_from_slice(b"port");
        name[4] = b'0' + number as u8;
        match self.version {
            Version::V10 => {
                body.extend((number as u16).to_be_bytes());
                body.extend(mac);
                body.extend(name);
                // Config, state, current, advertised, supported and peer features.
                body.extend([0; 8]);
                body.extend([[0, 0, 0, 0xc0], [0; 4], [0; 4], [0; 4]].concat());
            }
            Version::V13 => {
                body.extend(number.to_be_bytes());
                body.extend([0; 4]);
                body.extend(mac);
                body.extend([0; 2]);
                body.extend(name);
                // Config, state OFPPS_LIVE, features, current and maximum speed in kb/s.
                body.extend(
                    [
                        [0; 4],
                        [0, 0, 0, 4],
                        [0, 0, 0x08, 0x40],
                        [0; 4],
                        [0; 4],
                        [0; 4],
                    ]
                    .concat(),
                );
                body.extend([10_000_000u32.to_be_bytes(); 2].concat());
            }
        }
    }

    /// Writes OFPET_BAD_REQUEST with the start of the refused message.
    fn write_error(&self, out: &mut Vec<u8>, xid: u32, code: u8, message: &[u8]) {
        let mut body = vec![0, 1, 0, code];
        body.extend(&message[..message.len().min(64)]);
        self.write(out, ERROR, xid, &body);
    }

    fn write(&self, out: &mut Vec<u8>, kind: u8, xid: u32, body: &[u8]) {
        out.extend([self.version.wire(), kind]);
        out.extend(((8 + body.len()) as u16).to_be_bytes());
        out.extend(xid.to_be_bytes());
        out.extend(body);
    }
}

const DESC: u16 = 0;
const AGGREGATE: u16 = 2;
const TABLE: u16 = 3;
const PORT_DESC: u16 = 13;

/// Writes an `ofp_desc`: manufacturer, hardware, software, serial number, datapath description.
fn write_desc(body: &mut Vec<u8>) {
    for (text, len) in [
        ("Urtica", 256),
        ("emulated switch", 256),
        (env!("CARGO_PKG_VERSION"), 256),
        ("0", 32),
        ("urtica bench", 256),
    ] {
        let end = body.len() + len;
        body.extend(text.as_bytes());
        body.resize(end, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply_to(version: Version, message: &[u8]) -> (Event, Vec<u8>) {
        let mut out = Vec::new();
        let event = EmulatedSwitch::new(version, Identity::new(0x1234), &[FrameKind::Cbench])
            .handle_message(message, &mut out);
        (event, out)
    }

    fn header(bytes: &[u8]) -> (u8, u8, usize, u32) {
        (
            bytes[0],
            bytes[1],
            usize::from(be16(bytes, 2).unwrap()),
            be32(bytes, 4).unwrap(),
        )
    }

    #[test]
    fn features_reply_is_followed_by_announcements() {
        let (event, out) = reply_to(Version::V10, &[1, 5, 0, 8, 0, 0, 0, 9]);
        assert_eq!(event, Event::Ready);
        assert_eq!(header(&out), (1, 6, 224, 9));
        assert_eq!(out[8..16], 0x1234u64.to_be_bytes());
        assert_eq!(
            out[224..],
            announcements(Version::V10, Identity::new(0x1234), &[FrameKind::Cbench])
        );
        let (event, out) = reply_to(Version::V13, &[4, 5, 0, 8, 0, 0, 0, 9]);
        assert_eq!((event, header(&out)), (Event::Ready, (4, 6, 32, 9)));
    }

    #[test]
    fn echo_returns_its_body() {
        let (event, out) = reply_to(Version::V10, &[1, 2, 0, 10, 0, 0, 0, 9, 7, 8]);
        assert_eq!(
            (event, out),
            (Event::Handled, vec![1, 3, 0, 10, 0, 0, 0, 9, 7, 8])
        );
    }

    #[test]
    fn multipart_replies_have_their_sizes() {
        for (part, len) in [
            (0, 16 + 1056),
            (2, 40),
            (8, 56),
            (11, 32),
            (13, 16 + 4 * 64),
            (1, 16),
        ] {
            let (_, out) = reply_to(
                Version::V13,
                &[4, 18, 0, 16, 0, 0, 0, 9, 0, part, 0, 0, 0, 0, 0, 0],
            );
            assert_eq!(header(&out), (4, 19, len, 9), "part {part}");
            let announced =
                announcements(Version::V13, Identity::new(0x1234), &[FrameKind::Cbench]);
            let follows: &[u8] = if part == 13 { &announced } else { &[] };
            assert_eq!(out[len..], *follows, "part {part}");
        }
        let (_, out) = reply_to(Version::V10, &[1, 16, 0, 12, 0, 0, 0, 9, 0, 0, 0, 0]);
        assert_eq!(
            (header(&out), out.len()),
            ((1, 17, 12 + 1056, 9), 12 + 1056)
        );
    }

    #[test]
    fn barrier_role_and_config_are_answered() {
        assert_eq!(
            header(&reply_to(Version::V10, &[1, 18, 0, 8, 0, 0, 0, 9]).1),
            (1, 19, 8, 9)
        );
        assert_eq!(
            header(&reply_to(Version::V13, &[4, 20, 0, 8, 0, 0, 0, 9]).1),
            (4, 21, 8, 9)
        );
        assert_eq!(
            header(&reply_to(Version::V13, &[4, 7, 0, 8, 0, 0, 0, 9]).1),
            (4, 8, 12, 9)
        );
        let mut role = vec![4, 24, 0, 24, 0, 0, 0, 9];
        role.extend([0; 16]);
        assert_eq!(header(&reply_to(Version::V13, &role).1), (4, 25, 24, 9));
    }

    #[test]
    fn unknown_messages_get_an_error() {
        let (_, out) = reply_to(Version::V10, &[1, 99, 0, 8, 0, 0, 0, 9]);
        assert_eq!(header(&out), (1, 1, 20, 9));
        assert_eq!(out[8..12], [0, 1, 0, 1]);
    }

    #[test]
    fn detects_a_controller_without_our_version() {
        assert_eq!(
            reply_to(Version::V13, &[1, 0, 0, 8, 0, 0, 0, 1]).0,
            Event::WrongVersion(1)
        );
        assert_eq!(
            reply_to(Version::V10, &[4, 0, 0, 8, 0, 0, 0, 1]).0,
            Event::Handled
        );
        let bitmap_13_only = [4, 0, 0, 16, 0, 0, 0, 1, 0, 1, 0, 8, 0, 0, 0, 0x10];
        assert_eq!(
            reply_to(Version::V10, &bitmap_13_only).0,
            Event::WrongVersion(4)
        );
        assert_eq!(reply_to(Version::V13, &bitmap_13_only).0, Event::Handled);
    }
}
