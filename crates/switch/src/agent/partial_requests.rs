//! Multipart requests in several messages (OFPMPF_REQ_MORE, 1.3.5 section 7.3.5), until they are complete.

use std::collections::BTreeMap;
use urtica_wire::ErrorCode;

/// Maximum number of bytes of incomplete requests that are kept for a connection.
const MAX_BYTES: usize = 4 << 20;
/// Maximum number of incomplete requests.
const MAX_REQUESTS: usize = 8;

/// Incomplete multipart requests, by xid.
#[derive(Debug, Default)]
pub(crate) struct PartialRequests(BTreeMap<u32, Vec<u8>>);

impl PartialRequests {
    /// Appends the part of the body in a message; returns the whole body once it is complete.
    ///
    /// # Errors
    /// OFPBRC_MULTIPART_BUFFER_OVERFLOW if the limit would be exceeded; the request is then dropped.
    pub fn add(
        &mut self,
        xid: u32,
        part: &[u8],
        has_more: bool,
    ) -> Result<Option<Vec<u8>>, ErrorCode> {
        let mut body = self.0.remove(&xid).unwrap_or_default();
        body.extend_from_slice(part);
        if !has_more {
            return Ok(Some(body));
        }
        let kept: usize = self.0.values().map(Vec::len).sum();
        if kept + body.len() > MAX_BYTES || self.0.len() == MAX_REQUESTS {
            return Err(ErrorCode::BadRequestMultipartBufferOverflow);
        }
        self.0.insert(xid, body);
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_joined() {
        let mut requests = PartialRequests::default();
        assert_eq!(requests.add(1, b"ab", true), Ok(None));
        assert_eq!(requests.add(2, b"x", false), Ok(Some(b"x".to_vec())));
        assert_eq!(requests.add(1, b"cd", true), Ok(None));
        assert_eq!(requests.add(1, b"e", false), Ok(Some(b"abcde".to_vec())));
        assert_eq!(requests.add(1, b"f", false), Ok(Some(b"f".to_vec())));
    }

    #[test]
    fn incomplete_requests_are_bounded() {
        const OVERFLOW: Result<Option<Vec<u8>>, ErrorCode> =
            Err(ErrorCode::BadRequestMultipartBufferOverflow);
        let mut requests = PartialRequests::default();
        let most = vec![0; MAX_BYTES];
        assert_eq!(requests.add(1, &most, true), Ok(None));
        assert_eq!(requests.add(2, &[0], true), OVERFLOW);
        assert_eq!(requests.add(1, &[0], true), OVERFLOW);
        assert_eq!(requests.add(1, &[0], false), Ok(Some(vec![0])), "forgotten");
        for xid in 0..MAX_REQUESTS as u32 {
            assert_eq!(requests.add(xid, &[], true), Ok(None));
        }
        assert_eq!(requests.add(99, &[], true), OVERFLOW);
    }
}
