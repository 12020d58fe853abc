//! Checks of frames that programs encode themselves.

use urtica_wire::Header;

/// An error of bytes that cannot be sent as frames: the receiver could not read the bytes after them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The bytes are shorter than a header.
    #[error("a frame has {0} bytes: expected at least 8, the size of an OpenFlow header")]
    TooShort(usize),
    /// The length in the header is not the frame's.
    #[error(
        "the header of a frame has the length {stated}, but {available} bytes follow from its start"
    )]
    Length {
        /// The length in the header.
        stated: u16,
        /// The number of bytes from the start of the header.
        available: usize,
    },
}

/// Checks that `bytes` is one frame.
pub(crate) fn check_frame(bytes: &[u8]) -> Result<(), FrameError> {
    match first_length(bytes)? {
        length if length == bytes.len() => Ok(()),
        length => Err(FrameError::Length {
            stated: length as u16,
            available: bytes.len(),
        }),
    }
}

/// Checks that `bytes` is a sequence of frames, and returns their number.
pub(crate) fn count_frames(bytes: &[u8]) -> Result<u64, FrameError> {
    let (mut rest, mut count) = (bytes, 0);
    while !rest.is_empty() {
        rest = &rest[first_length(rest)?..];
        count += 1;
    }
    Ok(count)
}

/// Returns the length of the frame at the front.
fn first_length(bytes: &[u8]) -> Result<usize, FrameError> {
    let header = Header::peek(bytes).ok_or(FrameError::TooShort(bytes.len()))?;
    let length = usize::from(header.length);
    match length >= Header::SIZE && length <= bytes.len() {
        true => Ok(length),
        false => Err(FrameError::Length {
            stated: header.length,
            available: bytes.len(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BARRIER: [u8; 8] = [4, 20, 0, 8, 0, 0, 0, 1];

    #[test]
    fn counts_whole_frames() {
        let two = [BARRIER, BARRIER].concat();
        assert_eq!(count_frames(&two), Ok(2));
        assert_eq!(count_frames(&[]), Ok(0));
        assert_eq!(check_frame(&BARRIER), Ok(()));
    }

    #[test]
    fn wrong_lengths_are_errors() {
        let two = [BARRIER, BARRIER].concat();
        let length = |stated, available| FrameError::Length { stated, available };
        assert_eq!(check_frame(&two), Err(length(8, 16)));
        assert_eq!(count_frames(&two[..15]), Err(FrameError::TooShort(7)));
        for stated in [0, 7, 9, u16::MAX] {
            let [high, low] = stated.to_be_bytes();
            let frame = [4, 20, high, low, 0, 0, 0, 1];
            assert_eq!(check_frame(&frame), Err(length(stated, 8)), "{stated}");
            assert_eq!(count_frames(&frame), Err(length(stated, 8)), "{stated}");
        }
    }
}
