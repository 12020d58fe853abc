//! Multipart replies of many rows, cut into messages that are not too long.

use urtica_wire::{
    Element, EncodeError, Message, MultipartFlags, MultipartReply, MultipartReplyBody, Version,
};

/// The longest message.
const MAX_MESSAGE_BYTES: usize = u16::MAX as usize;
/// Where the flags are, in both versions' messages.
const FLAGS_AT: usize = 10;

/// Appends a reply with these rows to `out`, in as many messages as it takes, all but the last with
/// OFPMPF_REPLY_MORE. `empty` is the reply's body without rows. Rows that the version cannot express are left out: a
/// controller of 1.0 cannot be told of what it has no words for.
///
/// # Errors
/// [`EncodeError`] where the version does not have such a reply; nothing was appended then.
pub(super) fn write_rows<'a, T: Element<'a>>(
    version: Version,
    xid: u32,
    empty: MultipartReplyBody<'static>,
    rows: impl IntoIterator<Item = T>,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let empty = Message::MultipartReply(MultipartReply {
        flags: MultipartFlags::empty(),
        body: empty,
    });
    let mut start = out.len();
    empty.encode(version, xid, out)?;
    for row in rows {
        let end = out.len();
        if let Err(error) = row.encode(version, out) {
            urtica_log::debug!(about: "rows", %error, "a row is left out of a multipart reply");
            out.truncate(end);
            continue;
        }
        if out.len() - start > MAX_MESSAGE_BYTES {
            let row = out.split_off(end);
            set_more(out, start);
            close(out, start)?;
            start = out.len();
            empty.encode(version, xid, out)?;
            out.extend_from_slice(&row);
        }
    }
    close(out, start)
}

fn set_more(out: &mut [u8], start: usize) {
    let flags = MultipartFlags::MORE.bits().to_be_bytes();
    out[start + FLAGS_AT..start + FLAGS_AT + flags.len()].copy_from_slice(&flags);
}

/// Writes the length of the message from `start` on into its header.
fn close(out: &mut [u8], start: usize) -> Result<(), EncodeError> {
    let message = &mut out[start..];
    let length = u16::try_from(message.len()).map_err(|_| EncodeError::TooLong {
        what: "multipart reply",
        length: message.len(),
    })?;
    message[2..4].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

#[cfg(test)]
mod tests;
