//! IPv6 extension headers (RFC 8200 section 4, RFC 4302), and how to skip them to the upper layer.
//!
//! ESP ends the chain, since the rest is encrypted.

use super::PacketError;
use super::bytes::{pad_to_multiple, split_at, split_header, u16_at, u32_at};
use super::ip_proto;
use std::marker::PhantomData;

/// The maximum number of extension headers to read. Each kind should occur once (RFC 8200, section 4.1); the bound limits
/// the cost of a malicious packet.
pub const MAX_EXTENSIONS: usize = 16;

/// The largest fragment offset, in units of 8 bytes.
pub const MAX_FRAGMENT_OFFSET: u16 = 0x1fff;

mod field {
    use std::ops::Range;

    pub const NEXT_HEADER: usize = 0;
    pub const LEN: usize = 1;
    pub const ROUTING_TYPE: usize = 2;
    pub const SEGMENTS_LEFT: usize = 3;
    pub const FRAGMENT_OFFSET_MORE: Range<usize> = 2..4;
    pub const FRAGMENT_IDENTIFICATION: Range<usize> = 4..8;
    pub const AUTHENTICATION_SPI: Range<usize> = 4..8;
    pub const AUTHENTICATION_SEQUENCE: Range<usize> = 8..12;
}

const MORE_FRAGMENTS: u16 = 1;
const FRAGMENT_OFFSET_SHIFT: u32 = 3;

/// The upper layer after the extension headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpperLayer<'a> {
    /// The protocol; [`ip_proto::NO_NEXT_HEADER`] if there is none.
    pub proto: u8,
    /// Whether this is a later fragment, whose payload does not start with a header of `proto`.
    pub is_later_fragment: bool,
    /// The upper layer's bytes.
    pub payload: &'a [u8],
}

/// Skips the extension headers in `bytes`, the first of which `next_header` announces.
///
/// # Errors
/// If a header is truncated or malformed, or there are more than [`MAX_EXTENSIONS`].
#[inline]
pub fn upper_layer(next_header: u8, bytes: &[u8]) -> Result<UpperLayer<'_>, PacketError> {
    let mut extensions = Extensions::new(next_header, bytes);
    let mut is_later_fragment = false;
    for extension in &mut extensions {
        if let ExtensionView::Fragment(fragment) = extension? {
            is_later_fragment |= fragment.offset() != 0;
        }
    }
    Ok(UpperLayer {
        proto: extensions.next_header,
        is_later_fragment,
        payload: extensions.rest,
    })
}

/// The extension headers of a packet, in order.
///
/// Ends before the upper layer, after the first error, and after the fragment header of a later fragment.
#[derive(Clone, Debug)]
pub struct Extensions<'a> {
    next_header: u8,
    rest: &'a [u8],
    count: usize,
    is_done: bool,
}

impl<'a> Extensions<'a> {
    /// Returns the extension headers at the start of `bytes`, the first of which `next_header` announces.
    #[inline]
    pub fn new(next_header: u8, bytes: &'a [u8]) -> Self {
        Self {
            next_header,
            rest: bytes,
            count: 0,
            is_done: false,
        }
    }

    fn read(&mut self) -> Result<ExtensionView<'a>, PacketError> {
        if self.count == MAX_EXTENSIONS {
            return Err(PacketError::TooMany {
                layer: "IPv6 extension headers",
                limit: MAX_EXTENSIONS,
            });
        }
        self.count += 1;
        ExtensionView::new(self.next_header, self.rest)
    }

    fn advance(&mut self, extension: &ExtensionView<'a>) {
        self.next_header = extension.next_header();
        self.rest = extension.payload();
        self.is_done =
            matches!(extension, ExtensionView::Fragment(fragment) if fragment.offset() != 0);
    }
}

impl<'a> Iterator for Extensions<'a> {
    type Item = Result<ExtensionView<'a>, PacketError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done || !is_extension(self.next_header) {
            return None;
        }
        let extension = self.read();
        match &extension {
            Ok(extension) => self.advance(extension),
            Err(_) => self.is_done = true,
        }
        Some(extension)
    }
}

/// Returns `true` if a next-header value announces an extension header that can be read.
#[inline]
pub fn is_extension(next_header: u8) -> bool {
    matches!(
        next_header,
        ip_proto::HOP_BY_HOP
            | ip_proto::ROUTING
            | ip_proto::FRAGMENT
            | ip_proto::AUTHENTICATION
            | ip_proto::DESTINATION_OPTIONS
    )
}

/// An extension header, read in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtensionView<'a> {
    /// Options for every router on the path.
    HopByHop(OptionsView<'a>),
    /// Stops on the path.
    Routing(RoutingView<'a>),
    /// A part of a larger packet.
    Fragment(FragmentView<'a>),
    /// Proof of the sender and of the content.
    Authentication(AuthenticationView<'a>),
    /// Options for the receiver.
    DestinationOptions(OptionsView<'a>),
}

impl<'a> ExtensionView<'a> {
    /// Reads the header of kind `kind` at the start of `bytes`.
    ///
    /// # Errors
    /// If the header is truncated or malformed, or `kind` is not an extension header.
    #[inline]
    pub fn new(kind: u8, bytes: &'a [u8]) -> Result<Self, PacketError> {
        match kind {
            ip_proto::HOP_BY_HOP => OptionsView::new(bytes).map(Self::HopByHop),
            ip_proto::ROUTING => RoutingView::new(bytes).map(Self::Routing),
            ip_proto::FRAGMENT => FragmentView::new(bytes).map(Self::Fragment),
            ip_proto::AUTHENTICATION => AuthenticationView::new(bytes).map(Self::Authentication),
            _ => {
                let expected = ip_proto::DESTINATION_OPTIONS;
                PacketError::check_value(
                    "IPv6 extension header",
                    "protocol number",
                    kind,
                    expected,
                )?;
                OptionsView::new(bytes).map(Self::DestinationOptions)
            }
        }
    }

    /// Returns the protocol number that announces this kind of header.
    #[inline]
    pub fn kind(&self) -> u8 {
        match self {
            Self::HopByHop(_) => ip_proto::HOP_BY_HOP,
            Self::Routing(_) => ip_proto::ROUTING,
            Self::Fragment(_) => ip_proto::FRAGMENT,
            Self::Authentication(_) => ip_proto::AUTHENTICATION,
            Self::DestinationOptions(_) => ip_proto::DESTINATION_OPTIONS,
        }
    }

    /// Returns the protocol after the header.
    #[inline]
    pub fn next_header(&self) -> u8 {
        self.parts().0[field::NEXT_HEADER]
    }

    /// Returns everything after the header.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        self.parts().1
    }

    /// Returns the header's bytes, and the bytes after it.
    #[inline]
    fn parts(&self) -> (&'a [u8], &'a [u8]) {
        match self {
            Self::HopByHop(view) | Self::DestinationOptions(view) => (view.header, view.payload),
            Self::Routing(view) => (view.header, view.payload),
            Self::Fragment(view) => (view.header, view.payload),
            Self::Authentication(view) => (view.header, view.payload),
        }
    }
}

use kind::{ExtensionHeader, LengthUnits};

/// Private, so that other crates cannot add a kind.
mod kind {
    /// A kind of extension header: a struct to write, and its length.
    pub trait ExtensionHeader {
        /// The header's name in errors.
        const LAYER: &'static str;
        /// The bytes before the variable part.
        const FIXED_LEN: usize;
        /// The unit of the header's length byte; `None` if the header only has the fixed part.
        const LENGTH: Option<LengthUnits>;
    }

    /// The unit of a header's length byte.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct LengthUnits {
        /// The size of a unit, in bytes.
        unit: usize,
        /// The number of units at the start of the header that are not counted.
        uncounted: usize,
    }

    impl LengthUnits {
        /// Units of 8 bytes, without the first (RFC 8200, sections 4.3, 4.4 and 4.6).
        pub const OF_8: Self = Self {
            unit: 8,
            uncounted: 1,
        };
        /// Units of 4 bytes, without the first two (RFC 4302, section 2.2).
        pub const OF_4: Self = Self {
            unit: 4,
            uncounted: 2,
        };

        /// Returns the size of a header in bytes, from its length byte.
        #[inline]
        pub fn to_bytes(self, count: u8) -> usize {
            (usize::from(count) + self.uncounted) * self.unit
        }

        /// Returns the length byte of a header of `bytes` bytes, which must be whole units.
        pub fn count(self, bytes: usize) -> u8 {
            (bytes / self.unit - self.uncounted) as u8
        }

        /// Returns the maximum size of a header that is a multiple of 8 bytes long, as every header in IPv6 must be.
        pub fn max_bytes(self) -> usize {
            self.to_bytes(u8::MAX) / 8 * 8
        }
    }
}

/// An extension header of the kind `H`, read in place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderView<'a, H> {
    header: &'a [u8],
    payload: &'a [u8],
    kind: PhantomData<H>,
}

impl<H: Clone> Copy for HeaderView<'_, H> {}

/// Hop-by-hop or destination options, read in place.
pub type OptionsView<'a> = HeaderView<'a, Options>;
/// A routing header, read in place.
pub type RoutingView<'a> = HeaderView<'a, Routing>;
/// A fragment header, read in place.
pub type FragmentView<'a> = HeaderView<'a, Fragment>;
/// An authentication header, read in place.
pub type AuthenticationView<'a> = HeaderView<'a, Authentication>;

impl<'a, H: ExtensionHeader> HeaderView<'a, H> {
    /// Reads the header at the start of `bytes`.
    ///
    /// # Errors
    /// If it is truncated, or shorter than its fixed part.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Result<Self, PacketError> {
        let len = match H::LENGTH {
            Some(units) => {
                let (start, _) = split_header::<2>(H::LAYER, bytes)?;
                units.to_bytes(start[field::LEN])
            }
            None => H::FIXED_LEN,
        };
        PacketError::check_minimum(H::LAYER, "payload length", len, H::FIXED_LEN)?;
        let (header, payload) = split_at(H::LAYER, bytes, len)?;
        Ok(Self {
            header,
            payload,
            kind: PhantomData,
        })
    }

    /// Returns the protocol after the header; in a fragment, the protocol in the first fragment.
    #[inline]
    pub fn next_header(&self) -> u8 {
        self.header[field::NEXT_HEADER]
    }

    /// Returns everything after the header.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }
}

/// Defines a kind of extension header: the struct to write, its [`ExtensionHeader`], and the accessors of its view. Columns of
/// a field: its name, its type in the struct, its type in the view, and how it is read from the header.
macro_rules! extension_header {
    (
        $(#[$meta:meta])* $name:ident = $layer:literal, $fixed_len:literal, $length:expr;
        $($(#[$field_meta:meta])* $field:ident: $owned:ty, $read:ty = $get:expr;)+
    ) => {
        $(#[$meta])*
        pub struct $name {
            /// The protocol after the header; in a fragment, the protocol in the first fragment.
            pub next_header: u8,
            $($(#[$field_meta])* pub $field: $owned,)+
        }

        impl ExtensionHeader for $name {
            const LAYER: &'static str = $layer;
            const FIXED_LEN: usize = $fixed_len;
            const LENGTH: Option<LengthUnits> = $length;
        }

        impl<'a> HeaderView<'a, $name> {
            $(
                $(#[$field_meta])*
                #[inline]
                pub fn $field(&self) -> $read {
                    let get: fn(&'a [u8]) -> $read = $get;
                    get(self.header)
                }
            )+

            /// Returns the header as a plain struct.
            #[inline]
            pub fn to_header(&self) -> $name {
                $name {
                    next_header: self.next_header(),
                    $($field: self.$field().into(),)+
                }
            }
        }
    };
}

extension_header! {
    /// Hop-by-hop or destination options to write.
    #[derive(Clone, Debug, PartialEq, Eq, Hash)]
    Options = "IPv6 options header", 2, Some(LengthUnits::OF_8);
    /// The options, with their padding: zeros (Pad1 options) are written up to a multiple of 8 bytes.
    options: Vec<u8>, &'a [u8] = |header| &header[Options::FIXED_LEN..];
}

extension_header! {
    /// A routing header to write.
    #[derive(Clone, Debug, PartialEq, Eq, Hash)]
    Routing = "IPv6 routing header", 4, Some(LengthUnits::OF_8);
    /// The variant of routing header.
    routing_type: u8, u8 = |header| header[field::ROUTING_TYPE];
    /// The number of stops that remain.
    segments_left: u8, u8 = |header| header[field::SEGMENTS_LEFT];
    /// The data of this routing type; zeros are written after them up to a multiple of 8 bytes.
    data: Vec<u8>, &'a [u8] = |header| &header[Routing::FIXED_LEN..];
}

extension_header! {
    /// A fragment header to write.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    Fragment = "IPv6 fragment header", 8, None;
    /// The fragment's offset, in units of 8 bytes; its low 13 bits are written.
    offset: u16, u16 = |header| u16_at(header, field::FRAGMENT_OFFSET_MORE) >> FRAGMENT_OFFSET_SHIFT;
    /// Whether this is not the last fragment.
    more_fragments: bool, bool = |header| u16_at(header, field::FRAGMENT_OFFSET_MORE) & MORE_FRAGMENTS != 0;
    /// The identification shared by the fragments of a packet.
    identification: u32, u32 = |header| u32_at(header, field::FRAGMENT_IDENTIFICATION);
}

extension_header! {
    /// An authentication header to write.
    #[derive(Clone, Debug, PartialEq, Eq, Hash)]
    Authentication = "IPv6 authentication header", 12, Some(LengthUnits::OF_4);
    /// The security parameters index.
    spi: u32, u32 = |header| u32_at(header, field::AUTHENTICATION_SPI);
    /// The sequence number.
    sequence: u32, u32 = |header| u32_at(header, field::AUTHENTICATION_SEQUENCE);
    /// The integrity check value; zeros are written after it up to a multiple of 8 bytes, as IPv6 requires.
    icv: Vec<u8>, &'a [u8] = |header| &header[Authentication::FIXED_LEN..];
}

/// Appends a header of the kind `H`: `fixed`, in which the length is filled in, then `data`, and zeros up to a multiple of 8
/// bytes.
///
/// # Errors
/// If `data`, whose name in errors is `name`, is longer than the length byte allows. Then nothing is written.
fn write_header<H: ExtensionHeader>(
    fixed: &[u8],
    name: &'static str,
    data: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), PacketError> {
    let units = H::LENGTH.unwrap_or(LengthUnits::OF_8);
    let limit = units.max_bytes() - H::FIXED_LEN;
    PacketError::check_limit(H::LAYER, name, data.len(), limit)?;
    let start = out.len();
    out.extend_from_slice(fixed);
    out.extend_from_slice(data);
    pad_to_multiple(out, start, 8);
    out[start + field::LEN] = units.count(out.len() - start);
    Ok(())
}

impl Options {
    /// Appends the header; the next header or the payload must follow.
    ///
    /// # Errors
    /// If the options exceed 2046 bytes. Then nothing is written.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), PacketError> {
        write_header::<Self>(&[self.next_header, 0], "options", &self.options, out)
    }
}

impl Routing {
    /// Appends the header; the next header or the payload must follow.
    ///
    /// # Errors
    /// If the data exceed 2044 bytes. Then nothing is written.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), PacketError> {
        let fixed = [self.next_header, 0, self.routing_type, self.segments_left];
        write_header::<Self>(&fixed, "data", &self.data, out)
    }
}

impl Fragment {
    /// Appends the header; the fragment must follow.
    #[inline]
    pub fn write(&self, out: &mut Vec<u8>) {
        let more_fragments = u16::from(self.more_fragments) * MORE_FRAGMENTS;
        let offset_more = (self.offset << FRAGMENT_OFFSET_SHIFT) | more_fragments;
        out.extend_from_slice(&[self.next_header, 0]);
        out.extend_from_slice(&offset_more.to_be_bytes());
        out.extend_from_slice(&self.identification.to_be_bytes());
    }
}

impl Authentication {
    /// Appends the header; the next header or the payload must follow.
    ///
    /// # Errors
    /// If the integrity check value exceeds 1012 bytes. Then nothing is written.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), PacketError> {
        let [[s0, s1, s2, s3], [q0, q1, q2, q3]] = [self.spi, self.sequence].map(u32::to_be_bytes);
        let fixed = [self.next_header, 0, 0, 0, s0, s1, s2, s3, q0, q1, q2, q3];
        write_header::<Self>(&fixed, "integrity check value", &self.icv, out)
    }
}

#[cfg(test)]
mod tests;
