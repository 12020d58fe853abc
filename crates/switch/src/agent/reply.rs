//! Multipart replies of many rows, split into messages of valid length. Replies that are short enough are written at once;
//! see [`super::long_reply`] for the others.

use urtica_wire::{
    Element, EncodeError, Message, MultipartFlags, MultipartReply, MultipartReplyBody, Version,
};

/// Maximum length of a message.
const MAX_MESSAGE_BYTES: usize = u16::MAX as usize;
/// Offset of the flags, in both versions' messages.
const FLAGS_AT: usize = 10;

/// A message of a reply at the end of an output, to which rows are added.
pub(super) struct Part<'out> {
    version: Version,
    out: &'out mut Vec<u8>,
    /// Offsets of the message and of its rows.
    start: usize,
    rows_at: usize,
}

/// Result of adding a row to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Added {
    /// The row was added, or fits into no message.
    Done,
    /// The row did not fit, and belongs into the next message.
    Full,
}

impl<'out> Part<'out> {
    /// Starts a message without rows, whose body is `empty`, at the end of `out`.
    ///
    /// # Errors
    /// [`EncodeError`] if the version does not have such a reply; then nothing was appended.
    pub fn begin(
        version: Version,
        xid: u32,
        empty: MultipartReplyBody<'static>,
        out: &'out mut Vec<u8>,
    ) -> Result<Self, EncodeError> {
        let start = out.len();
        let empty = Message::MultipartReply(MultipartReply {
            flags: MultipartFlags::empty(),
            body: empty,
        });
        if let Err(error) = empty.encode(version, xid, out) {
            out.truncate(start);
            return Err(error);
        }
        Ok(Self {
            version,
            rows_at: out.len(),
            out,
            start,
        })
    }

    /// Adds a row. A row that the version cannot express is omitted, as is one that is longer than any message, such as an
    /// entry that a message of the maximum length added.
    pub fn add<'a>(&mut self, row: &impl Element<'a>) -> Added {
        let end = self.out.len();
        let encoded = row.encode(self.version, self.out);
        let is_too_long = self.out.len() - self.start > MAX_MESSAGE_BYTES;
        if encoded.is_ok() && !is_too_long {
            return Added::Done;
        }
        self.out.truncate(end);
        match encoded {
            Ok(()) if end > self.rows_at => return Added::Full,
            Ok(()) => {
                urtica_log::debug!(about: "rows", "a row exceeds the maximum message length; omitting it from the multipart reply");
            }
            Err(error) => {
                urtica_log::debug!(about: "rows", %error, "cannot encode a row; omitting it from the multipart reply");
            }
        }
        Added::Done
    }

    /// Returns whether the message has rows.
    pub fn has_rows(&self) -> bool {
        self.out.len() > self.rows_at
    }

    /// Removes the message from the output.
    pub fn cancel(self) {
        self.out.truncate(self.start);
    }

    /// Finishes the message, with OFPMPF_REPLY_MORE if others follow.
    pub fn finish(self, has_more: bool) {
        let message = &mut self.out[self.start..];
        // Checked by `add`.
        let length = u16::try_from(message.len()).expect("no message is too long");
        message[2..4].copy_from_slice(&length.to_be_bytes());
        if has_more {
            let flags = MultipartFlags::MORE.bits().to_be_bytes();
            message[FLAGS_AT..FLAGS_AT + flags.len()].copy_from_slice(&flags);
        }
    }
}

/// Appends a reply with these rows to `out`, in as many messages as necessary, all but the last with OFPMPF_REPLY_MORE.
/// `empty` is the reply's body without rows.
///
/// # Errors
/// [`EncodeError`] if the version does not have such a reply; then nothing was appended.
pub(super) fn write_rows<'a, T: Element<'a>>(
    version: Version,
    xid: u32,
    empty: MultipartReplyBody<'static>,
    rows: impl IntoIterator<Item = T>,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let mut part = Part::begin(version, xid, empty.clone(), out)?;
    for row in rows {
        if part.add(&row) == Added::Full {
            part.finish(true);
            part = Part::begin(version, xid, empty.clone(), out)?;
            part.add(&row);
        }
    }
    part.finish(false);
    Ok(())
}

#[cfg(test)]
mod tests;
