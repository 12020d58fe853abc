//! The messages between a program and the holder: one datagram each, with the sockets that it describes.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use rustix::process::{Resource, getrlimit, setrlimit};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::time::Duration;

/// The version of the messages. `Attach`, `End` and `Refused` never change, so that different versions can refuse each other.
pub const LAYOUT: u32 = 2;

/// The longest label, in bytes.
pub const MAX_LABEL: usize = 2048;

/// The longest message.
const MAX_BYTES: usize = 4096;

/// The maximum number of descriptors in a message.
pub const MAX_FDS: usize = 8;

/// Identifies a kept item.
pub type Id = u64;

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// To the holder: the program attaches and takes over the kept sockets. After the program's end, everything is kept for
    /// this number of seconds.
    Attach { layout: u32, keep_seconds: u32 },
    /// In both directions: a listening socket to keep.
    Listener { id: Id, label: String },
    /// In both directions: a connection and its journal to keep.
    Connection { id: Id, label: String },
    /// In both directions: descriptors, `fds` of them, to keep for as long as the connection with this id.
    Attachment { id: Id, fds: u8, label: String },
    /// In both directions: descriptors, `fds` of them, to keep that belong to no single connection.
    Common { id: Id, fds: u8, label: String },
    /// To the holder: the attachment of the connection with this id is no longer needed.
    Detach { id: Id },
    /// To the holder: the program has closed this socket.
    Forget { id: Id },
    /// To the holder: close everything, and stop.
    End,
    /// To the program: the holder has no file descriptor left to keep this item.
    Unkept { id: Id },
    /// To the program: all kept items have been passed, and the program is attached.
    Attached,
    /// To the program: release the sockets, because another program takes over.
    LetGo,
    /// To the program: the reason why it is not attached.
    Refused { layout: u32, reason: String },
}

impl Message {
    /// Returns the number of descriptors that are sent with this message.
    pub fn fds(&self) -> usize {
        match self {
            Self::Listener { .. } => 1,
            Self::Connection { .. } => 2,
            Self::Attachment { fds, .. } | Self::Common { fds, .. } => (*fds).into(),
            _ => 0,
        }
    }

    fn encode(&self) -> Vec<u8> {
        match self {
            Self::Attach {
                layout,
                keep_seconds,
            } => [
                &[b'A'][..],
                &layout.to_le_bytes(),
                &keep_seconds.to_le_bytes(),
            ]
            .concat(),
            Self::Listener { id, label } => labelled(b'L', *id, label),
            Self::Connection { id, label } => labelled(b'C', *id, label),
            Self::Attachment { id, fds, label } => counted(b'T', *id, *fds, label),
            Self::Common { id, fds, label } => counted(b'M', *id, *fds, label),
            Self::Detach { id } => labelled(b'X', *id, ""),
            Self::Forget { id } => labelled(b'F', *id, ""),
            Self::Unkept { id } => labelled(b'U', *id, ""),
            Self::End => vec![b'E'],
            Self::Attached => vec![b'D'],
            Self::LetGo => vec![b'G'],
            Self::Refused { layout, reason } => {
                [&[b'R'][..], &layout.to_le_bytes(), reason.as_bytes()].concat()
            }
        }
    }

    /// Decodes a message; returns `None` if the bytes are not one.
    fn decode(bytes: &[u8]) -> Option<Self> {
        let (kind, body) = bytes.split_first()?;
        match kind {
            b'A' => {
                let (layout, rest) = take_u32(body)?;
                let (keep_seconds, _) = take_u32(rest)?;
                Some(Self::Attach {
                    layout,
                    keep_seconds,
                })
            }
            b'L' => take_labelled(body).map(|(id, label)| Self::Listener { id, label }),
            b'C' => take_labelled(body).map(|(id, label)| Self::Connection { id, label }),
            b'T' => take_counted(body).map(|(id, fds, label)| Self::Attachment { id, fds, label }),
            b'M' => take_counted(body).map(|(id, fds, label)| Self::Common { id, fds, label }),
            b'X' => take_labelled(body).map(|(id, _)| Self::Detach { id }),
            b'F' => take_labelled(body).map(|(id, _)| Self::Forget { id }),
            b'U' => take_labelled(body).map(|(id, _)| Self::Unkept { id }),
            b'E' => Some(Self::End),
            b'D' => Some(Self::Attached),
            b'G' => Some(Self::LetGo),
            b'R' => {
                let (layout, reason) = take_u32(body)?;
                let reason = String::from_utf8_lossy(reason).into_owned();
                Some(Self::Refused { layout, reason })
            }
            _ => None,
        }
    }
}

fn labelled(kind: u8, id: Id, label: &str) -> Vec<u8> {
    let mut end = label.len().min(MAX_LABEL);
    while !label.is_char_boundary(end) {
        end -= 1;
    }
    [&[kind][..], &id.to_le_bytes(), &label.as_bytes()[..end]].concat()
}

fn take_labelled(body: &[u8]) -> Option<(Id, String)> {
    let (id, label) = body.split_first_chunk()?;
    let label = String::from_utf8(label.to_vec()).ok()?;
    Some((Id::from_le_bytes(*id), label))
}

fn counted(kind: u8, id: Id, fds: u8, label: &str) -> Vec<u8> {
    let mut bytes = labelled(kind, id, label);
    bytes.insert(1 + size_of::<Id>(), fds);
    bytes
}

fn take_counted(body: &[u8]) -> Option<(Id, u8, String)> {
    let (id, rest) = body.split_first_chunk()?;
    let (fds, label) = rest.split_first()?;
    let label = String::from_utf8(label.to_vec()).ok()?;
    Some((Id::from_le_bytes(*id), *fds, label))
}

fn take_u32(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u32::from_le_bytes(*number), rest))
}

/// Returns a duration in seconds, as sent.
pub fn whole_seconds(time: Duration) -> u32 {
    let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
    u32::try_from(seconds).unwrap_or(u32::MAX)
}

/// Raises this process's limit of open files. Thousands of connections need thousands of descriptors, and the soft limit is
/// often 1024.
pub fn raise_open_files() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // If this fails, sockets beyond the limit are reported later.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// Sends a message without waiting.
///
/// # Errors
/// [`Errno::AGAIN`] if the other side does not read it now, other errors if the other side is gone.
pub fn send(socket: impl AsFd, message: &Message, fds: &[BorrowedFd]) -> Result<(), Errno> {
    let bytes = message.encode();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(Errno::INVAL);
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    sendmsg(socket, &[IoSlice::new(&bytes)], &mut control, flags).map(drop)
}

/// Receives a message without waiting; returns `None` if the other side has closed. Its descriptors may be missing if this
/// process has reached its limit of open files.
///
/// # Errors
/// [`Errno::AGAIN`] if no message has arrived; [`Errno::PROTO`] if it is malformed.
pub fn receive(socket: impl AsFd) -> Result<Option<(Message, Vec<OwnedFd>)>, Errno> {
    let mut bytes = [0; MAX_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let mut room = [IoSliceMut::new(&mut bytes)];
    let received = recvmsg(socket, &mut room, &mut control, flags)?;
    let count = received.bytes;
    let mut fds = Vec::new();
    for part in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = part {
            fds.extend(received);
        }
    }
    if count == 0 {
        return Ok(None);
    }
    match Message::decode(&bytes[..count]) {
        Some(message) if message.fds() == fds.len() => Ok(Some((message, fds))),
        Some(message) if received.flags.contains(ReturnFlags::CTRUNC) => {
            Ok(Some((message, Vec::new())))
        }
        _ => Err(Errno::PROTO),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_the_way() {
        let label = "ptcp:6653".to_owned();
        for message in [
            Message::Attach {
                layout: 7,
                keep_seconds: 30,
            },
            Message::Listener {
                id: 1,
                label: label.clone(),
            },
            Message::Connection {
                id: 2,
                label: label.clone(),
            },
            Message::Attachment {
                id: 2,
                fds: 4,
                label: label.clone(),
            },
            Message::Common {
                id: 3,
                fds: 7,
                label,
            },
            Message::Detach { id: 2 },
            Message::Forget { id: 3 },
            Message::Unkept { id: 4 },
            Message::End,
            Message::Attached,
            Message::LetGo,
            Message::Refused {
                layout: 2,
                reason: "no".into(),
            },
        ] {
            assert_eq!(Message::decode(&message.encode()), Some(message));
        }
    }

    /// The bytes of each message in this layout. Programs and holders of different builds exchange them: a change of any byte
    /// needs another [`LAYOUT`], and the bytes of the three that never change must stay.
    #[test]
    fn reads_and_writes_golden_bytes() {
        assert_eq!(LAYOUT, 2);
        let label = String::from("ptcp:6653");
        let golden: [(Message, &[u8]); 12] = [
            (
                Message::Attach {
                    layout: 2,
                    keep_seconds: 30,
                },
                b"A\x02\0\0\0\x1e\0\0\0",
            ),
            (
                Message::Listener {
                    id: 1,
                    label: label.clone(),
                },
                b"L\x01\0\0\0\0\0\0\0ptcp:6653",
            ),
            (
                Message::Connection {
                    id: 0x0102,
                    label: label.clone(),
                },
                b"C\x02\x01\0\0\0\0\0\0ptcp:6653",
            ),
            (
                Message::Attachment {
                    id: 2,
                    fds: 4,
                    label: label.clone(),
                },
                b"T\x02\0\0\0\0\0\0\0\x04ptcp:6653",
            ),
            (
                Message::Common {
                    id: 3,
                    fds: 7,
                    label,
                },
                b"M\x03\0\0\0\0\0\0\0\x07ptcp:6653",
            ),
            (Message::Detach { id: 2 }, b"X\x02\0\0\0\0\0\0\0"),
            (Message::Forget { id: 3 }, b"F\x03\0\0\0\0\0\0\0"),
            (Message::Unkept { id: 4 }, b"U\x04\0\0\0\0\0\0\0"),
            (Message::End, b"E"),
            (Message::Attached, b"D"),
            (Message::LetGo, b"G"),
            (
                Message::Refused {
                    layout: 1,
                    reason: "no".into(),
                },
                b"R\x01\0\0\0no",
            ),
        ];
        for (message, bytes) in golden {
            assert_eq!(message.encode(), bytes, "{message:?}");
            assert_eq!(Message::decode(bytes), Some(message));
        }
    }

    #[test]
    fn rejects_malformed_messages() {
        for bytes in [
            &b""[..],
            b"x",
            b"A\0\0\0",
            b"L\0\0\0\0\0\0\0",
            b"C\0\0\0\0\0\0\0\0\xff",
            b"T\0\0\0\0\0\0\0\0",
            b"X\0",
        ] {
            assert_eq!(Message::decode(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn long_labels_are_cut_between_characters() {
        let label = "é".repeat(MAX_LABEL);
        let Some(Message::Connection { label, .. }) =
            Message::decode(&Message::Connection { id: 0, label }.encode())
        else {
            panic!("expected a connection");
        };
        assert_eq!(label.len(), MAX_LABEL);
    }
}
