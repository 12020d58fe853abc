//! MPLS label stacks (RFC 3032, RFC 5462).

use super::PacketError;
use super::bytes::split_header;

const LAYER: &str = "MPLS label stack entry";

/// The size of an entry in bytes.
pub const HEADER_LEN: usize = 4;

/// The largest label.
pub const MAX_LABEL: u32 = 0x000f_ffff;

/// The maximum number of entries that [`Stack`] reads; real stacks rarely have more than five.
pub const MAX_DEPTH: usize = 16;

const LABEL_SHIFT: u32 = 12;
const TC_SHIFT: u32 = 9;
const BOS_BIT: u32 = 0x100;

/// A label stack entry, read in place. The stack starts after the EtherType that announces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MplsView<'a> {
    header: &'a [u8; HEADER_LEN],
    payload: &'a [u8],
}

impl<'a> MplsView<'a> {
    /// Reads the entry at the start of `bytes`.
    ///
    /// # Errors
    /// If fewer than [`HEADER_LEN`] bytes are present.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Result<Self, PacketError> {
        let (header, payload) = split_header(LAYER, bytes)?;
        Ok(Self { header, payload })
    }

    #[inline]
    fn word(&self) -> u32 {
        u32::from_be_bytes(*self.header)
    }

    /// Returns the label, 0 to [`MAX_LABEL`].
    #[inline]
    pub fn label(&self) -> u32 {
        self.word() >> LABEL_SHIFT
    }

    /// Returns the traffic class, 0 to 7.
    #[inline]
    pub fn tc(&self) -> u8 {
        (self.word() >> TC_SHIFT) as u8 & 7
    }

    /// Returns `true` if this entry is the bottom of the stack.
    #[inline]
    pub fn bos(&self) -> bool {
        self.word() & BOS_BIT != 0
    }

    /// Returns the time to live.
    #[inline]
    pub fn ttl(&self) -> u8 {
        self.word() as u8
    }

    /// Returns everything after the entry: the next entry, or the packet after the bottom of the stack.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// Returns the entry as a plain struct.
    #[inline]
    pub fn to_header(&self) -> Mpls {
        Mpls {
            label: self.label(),
            tc: self.tc(),
            bos: self.bos(),
            ttl: self.ttl(),
        }
    }
}

/// The entries of a label stack, outermost first. The last one has the bottom-of-stack bit, and the packet as its payload.
#[derive(Clone, Debug)]
pub struct Stack<'a> {
    rest: Option<&'a [u8]>,
    depth: usize,
}

impl<'a> Stack<'a> {
    /// Returns the stack at the start of `bytes`.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self {
            rest: Some(bytes),
            depth: 0,
        }
    }

    fn read(&mut self, bytes: &'a [u8]) -> Result<MplsView<'a>, PacketError> {
        if self.depth == MAX_DEPTH {
            return Err(PacketError::TooMany {
                layer: "MPLS label stack entries",
                limit: MAX_DEPTH,
            });
        }
        self.depth += 1;
        let entry = MplsView::new(bytes)?;
        self.rest = (!entry.bos()).then_some(entry.payload());
        Ok(entry)
    }
}

impl<'a> Iterator for Stack<'a> {
    type Item = Result<MplsView<'a>, PacketError>;

    /// Returns the next entry; ends after the bottom of the stack or after the first error.
    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.rest.take()?;
        Some(self.read(bytes))
    }
}

/// A label stack entry to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mpls {
    /// The label; its low 20 bits are written.
    pub label: u32,
    /// The traffic class; its low 3 bits are written.
    pub tc: u8,
    /// Whether this entry is the bottom of the stack.
    pub bos: bool,
    /// The time to live.
    pub ttl: u8,
}

impl Mpls {
    /// Appends the entry; the next entry or the packet must follow.
    #[inline]
    pub fn write(&self, out: &mut Vec<u8>) {
        let label = (self.label & MAX_LABEL) << LABEL_SHIFT;
        let tc = u32::from(self.tc & 7) << TC_SHIFT;
        let bos = u32::from(self.bos) * BOS_BIT;
        let word = label | tc | bos | u32::from(self.ttl);
        out.extend_from_slice(&word.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::super::testing;
    use super::*;

    const GOLDEN: [u8; 10] = [
        0x00, 0x3e, 0x8a, 0x40, // label 1000, TC 5, TTL 64
        0x00, 0x01, 0x01, 0xff, // label 16, bottom of stack, TTL 255
        0xca, 0xfe, // payload
    ];

    const HEADERS: [Mpls; 2] = [
        Mpls {
            label: 1000,
            tc: 5,
            bos: false,
            ttl: 64,
        },
        Mpls {
            label: 16,
            tc: 0,
            bos: true,
            ttl: 255,
        },
    ];

    fn write(entries: &[Mpls]) -> Vec<u8> {
        let mut out = Vec::new();
        entries.iter().for_each(|entry| entry.write(&mut out));
        out
    }

    #[test]
    fn reads_golden_bytes() {
        let entries: Vec<_> = Stack::new(&GOLDEN).map(Result::unwrap).collect();
        assert_eq!(
            entries.iter().map(MplsView::to_header).collect::<Vec<_>>(),
            HEADERS
        );
        assert_eq!(entries[1].payload(), [0xca, 0xfe]);
    }

    #[test]
    fn writes_golden_bytes() {
        assert_eq!(write(&HEADERS), GOLDEN[..8]);
    }

    #[test]
    fn a_stack_without_a_bottom_ends_with_one_error() {
        let mut stack = Stack::new(&GOLDEN[..6]);
        assert!(stack.next().unwrap().is_ok());
        assert_eq!(
            stack.next(),
            Some(Err(PacketError::Truncated {
                layer: LAYER,
                needed: 4,
                available: 2
            }))
        );
        assert_eq!(stack.next(), None);
    }

    #[test]
    fn a_stack_too_deep_is_not_followed() {
        let deep = [0; 4 * (MAX_DEPTH + 1)];
        let last = Stack::new(&deep).last().unwrap().unwrap_err();
        assert_eq!(
            last,
            PacketError::TooMany {
                layer: "MPLS label stack entries",
                limit: MAX_DEPTH
            }
        );
        assert_eq!(Stack::new(&deep).count(), MAX_DEPTH + 1);
    }

    prop_compose! {
        fn header()(label in 0..=MAX_LABEL, tc in 0u8..8, ttl: u8) -> Mpls {
            Mpls { label, tc, bos: false, ttl }
        }
    }

    proptest! {
        #[test]
        fn reading_never_panics(bytes in testing::hostile(&GOLDEN)) {
            for entry in Stack::new(&bytes).flatten() {
                entry.to_header();
            }
        }

        #[test]
        fn written_headers_read_back(mut headers in vec(header(), 1..MAX_DEPTH)) {
            headers.last_mut().unwrap().bos = true;
            let out = write(&headers);
            let read: Vec<_> = Stack::new(&out).map(|entry| entry.unwrap().to_header()).collect();
            prop_assert_eq!(read, headers);
        }
    }
}
