//! IPv6 extension headers (RFC 8200 section 4, RFC 4302), and the way past them to the upper layer.
//!
//! ESP ends the chain: what follows it is encrypted.

use super::PacketError;
use super::bytes::{pad_to_multiple, split_at, split_header, u16_at, u32_at};
use super::ip_proto;

/// Extension headers that are read before giving up. Each kind should occur once (RFC 8200, section
/// 4.1); the bound keeps a hostile packet from costing more than a friendly one.
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

/// The most bytes in an options or routing header: its length counts units of 8 bytes, without the
/// first, in a byte.
const MAX_LEN: usize = 256 * 8;
const MAX_AUTHENTICATION_LEN: usize = (255 + 2) * 4;

/// The bytes before the variable part.
const OPTIONS_LEN: usize = 2;
const ROUTING_LEN: usize = 4;
const FRAGMENT_LEN: usize = 8;
const AUTHENTICATION_LEN: usize = 12;

const MORE_FRAGMENTS: u16 = 1;
const FRAGMENT_OFFSET_SHIFT: u32 = 3;

/// What lies behind the extension headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpperLayer<'a> {
    /// The protocol; [`ip_proto::NO_NEXT_HEADER`] if there is none.
    pub proto: u8,
    /// Whether this is a later fragment, whose payload does not begin with a header of `proto`.
    pub is_later_fragment: bool,
    /// The upper layer's bytes.
    pub payload: &'a [u8],
}

/// Goes past the extension headers in `bytes`, the first of which is announced as `next_header`.
///
/// # Errors
/// If a header is cut short or malformed, or there are more than [`MAX_EXTENSIONS`].
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

/// The extension headers of a packet, first to last.
///
/// Ends before the upper layer, after the first error, and after the fragment header of a later
/// fragment.
#[derive(Clone, Debug)]
pub struct Extensions<'a> {
    next_header: u8,
    rest: &'a [u8],
    count: usize,
    is_done: bool,
}

impl<'a> Extensions<'a> {
    /// The extension headers at the start of `bytes`, the first of which is announced as
    /// `next_header`.
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

/// Whether a next-header value announces an extension header that can be read.
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
    /// Options for every router on the way.
    HopByHop(OptionsView<'a>),
    /// Stops on the way.
    Routing(RoutingView<'a>),
    /// A part of a larger packet.
    Fragment(FragmentView<'a>),
    /// Proof of origin.
    Authentication(AuthenticationView<'a>),
    /// Options for the receiver.
    DestinationOptions(OptionsView<'a>),
}

impl<'a> ExtensionView<'a> {
    /// Reads the header of kind `kind` at the start of `bytes`.
    ///
    /// # Errors
    /// If the header is cut short or malformed, or `kind` is no extension header.
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

    /// The protocol number that announces this kind of header.
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

    /// What follows the header.
    #[inline]
    pub fn next_header(&self) -> u8 {
        match self {
            Self::HopByHop(options) | Self::DestinationOptions(options) => options.next_header(),
            Self::Routing(routing) => routing.next_header(),
            Self::Fragment(fragment) => fragment.next_header(),
            Self::Authentication(authentication) => authentication.next_header(),
        }
    }

    /// Everything after the header.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        match self {
            Self::HopByHop(options) | Self::DestinationOptions(options) => options.payload(),
            Self::Routing(routing) => routing.payload(),
            Self::Fragment(fragment) => fragment.payload(),
            Self::Authentication(authentication) => authentication.payload(),
        }
    }
}

/// Splits off a header whose second byte counts units of 8 bytes, without the first unit.
#[inline]
fn split_units_of_8<'a>(
    layer: &'static str,
    bytes: &'a [u8],
) -> Result<(&'a [u8], &'a [u8]), PacketError> {
    let (start, _) = split_header::<2>(layer, bytes)?;
    split_at(layer, bytes, (usize::from(start[field::LEN]) + 1) * 8)
}

/// Hop-by-hop or destination options, read in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionsView<'a> {
    header: &'a [u8],
    payload: &'a [u8],
}

impl<'a> OptionsView<'a> {
    const LAYER: &'static str = "IPv6 options header";

    /// Reads the header at the start of `bytes`.
    ///
    /// # Errors
    /// If it is cut short.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Result<Self, PacketError> {
        let (header, payload) = split_units_of_8(Self::LAYER, bytes)?;
        Ok(Self { header, payload })
    }

    /// What follows the header.
    #[inline]
    pub fn next_header(&self) -> u8 {
        self.header[field::NEXT_HEADER]
    }

    /// The options, with their padding.
    #[inline]
    pub fn options(&self) -> &'a [u8] {
        &self.header[OPTIONS_LEN..]
    }

    /// Everything after the header.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// The header as a plain struct.
    pub fn to_header(&self) -> Options {
        Options {
            next_header: self.next_header(),
            options: self.options().to_vec(),
        }
    }
}

/// A routing header, read in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoutingView<'a> {
    header: &'a [u8],
    payload: &'a [u8],
}

impl<'a> RoutingView<'a> {
    const LAYER: &'static str = "IPv6 routing header";

    /// Reads the header at the start of `bytes`.
    ///
    /// # Errors
    /// If it is cut short.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Result<Self, PacketError> {
        let (header, payload) = split_units_of_8(Self::LAYER, bytes)?;
        Ok(Self { header, payload })
    }

    /// What follows the header.
    #[inline]
    pub fn next_header(&self) -> u8 {
        self.header[field::NEXT_HEADER]
    }

    /// The variant of routing header.
    #[inline]
    pub fn routing_type(&self) -> u8 {
        self.header[field::ROUTING_TYPE]
    }

    /// Stops that are still to be visited.
    #[inline]
    pub fn segments_left(&self) -> u8 {
        self.header[field::SEGMENTS_LEFT]
    }

    /// The data of this routing type.
    #[inline]
    pub fn data(&self) -> &'a [u8] {
        &self.header[ROUTING_LEN..]
    }

    /// Everything after the header.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// The header as a plain struct.
    pub fn to_header(&self) -> Routing {
        Routing {
            next_header: self.next_header(),
            routing_type: self.routing_type(),
            segments_left: self.segments_left(),
            data: self.data().to_vec(),
        }
    }
}

/// A fragment header, read in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FragmentView<'a> {
    header: &'a [u8; FRAGMENT_LEN],
    payload: &'a [u8],
}

impl<'a> FragmentView<'a> {
    const LAYER: &'static str = "IPv6 fragment header";

    /// Reads the header at the start of `bytes`.
    ///
    /// # Errors
    /// If it is cut short.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Result<Self, PacketError> {
        let (header, payload) = split_header(Self::LAYER, bytes)?;
        Ok(Self { header, payload })
    }

    /// What follows the header in the first fragment.
    #[inline]
    pub fn next_header(&self) -> u8 {
        self.header[field::NEXT_HEADER]
    }

    /// Where the fragment belongs, in units of 8 bytes.
    #[inline]
    pub fn offset(&self) -> u16 {
        u16_at(self.header, field::FRAGMENT_OFFSET_MORE) >> FRAGMENT_OFFSET_SHIFT
    }

    /// Whether this is not the last fragment.
    #[inline]
    pub fn more_fragments(&self) -> bool {
        u16_at(self.header, field::FRAGMENT_OFFSET_MORE) & MORE_FRAGMENTS != 0
    }

    /// What the fragments of one packet have in common.
    #[inline]
    pub fn identification(&self) -> u32 {
        u32_at(self.header, field::FRAGMENT_IDENTIFICATION)
    }

    /// Everything after the header.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// The header as a plain struct.
    #[inline]
    pub fn to_header(&self) -> Fragment {
        Fragment {
            next_header: self.next_header(),
            offset: self.offset(),
            more_fragments: self.more_fragments(),
            identification: self.identification(),
        }
    }
}

/// An authentication header, read in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuthenticationView<'a> {
    header: &'a [u8],
    payload: &'a [u8],
}

impl<'a> AuthenticationView<'a> {
    const LAYER: &'static str = "IPv6 authentication header";

    /// Reads the header at the start of `bytes`.
    ///
    /// # Errors
    /// If it is cut short, or shorter than its fixed part.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Result<Self, PacketError> {
        let (start, _) = split_header::<2>(Self::LAYER, bytes)?;
        // RFC 4302, section 2.2: the length counts units of 4 bytes, without the first two.
        let len = (usize::from(start[field::LEN]) + 2) * 4;
        PacketError::check_minimum(Self::LAYER, "payload length", len, AUTHENTICATION_LEN)?;
        let (header, payload) = split_at(Self::LAYER, bytes, len)?;
        Ok(Self { header, payload })
    }

    /// What follows the header.
    #[inline]
    pub fn next_header(&self) -> u8 {
        self.header[field::NEXT_HEADER]
    }

    /// The security parameters index.
    #[inline]
    pub fn spi(&self) -> u32 {
        u32_at(self.header, field::AUTHENTICATION_SPI)
    }

    /// The sequence number.
    #[inline]
    pub fn sequence(&self) -> u32 {
        u32_at(self.header, field::AUTHENTICATION_SEQUENCE)
    }

    /// The integrity check value.
    #[inline]
    pub fn icv(&self) -> &'a [u8] {
        &self.header[AUTHENTICATION_LEN..]
    }

    /// Everything after the header.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// The header as a plain struct.
    pub fn to_header(&self) -> Authentication {
        Authentication {
            next_header: self.next_header(),
            spi: self.spi(),
            sequence: self.sequence(),
            icv: self.icv().to_vec(),
        }
    }
}

/// Hop-by-hop or destination options to write.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// What follows the header.
    pub next_header: u8,
    /// The options; the header is padded with zeros (Pad1 options) to a multiple of 8 bytes.
    pub options: Vec<u8>,
}

impl Options {
    /// Appends the header; what follows comes next.
    ///
    /// # Errors
    /// If the options exceed 2046 bytes. Nothing is written then.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), PacketError> {
        PacketError::check_limit(
            OptionsView::LAYER,
            "options",
            self.options.len(),
            MAX_LEN - OPTIONS_LEN,
        )?;
        let start = out.len();
        let len = (OPTIONS_LEN + self.options.len()).div_ceil(8) - 1;
        out.extend_from_slice(&[self.next_header, len as u8]);
        out.extend_from_slice(&self.options);
        pad_to_multiple(out, start, 8);
        Ok(())
    }
}

/// A routing header to write.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Routing {
    /// What follows the header.
    pub next_header: u8,
    /// The variant of routing header.
    pub routing_type: u8,
    /// Stops that are still to be visited.
    pub segments_left: u8,
    /// The data of this routing type; the header is padded with zeros to a multiple of 8 bytes.
    pub data: Vec<u8>,
}

impl Routing {
    /// Appends the header; what follows comes next.
    ///
    /// # Errors
    /// If the data exceed 2044 bytes. Nothing is written then.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), PacketError> {
        PacketError::check_limit(
            RoutingView::LAYER,
            "data",
            self.data.len(),
            MAX_LEN - ROUTING_LEN,
        )?;
        let start = out.len();
        let len = (ROUTING_LEN + self.data.len()).div_ceil(8) - 1;
        out.extend_from_slice(&[
            self.next_header,
            len as u8,
            self.routing_type,
            self.segments_left,
        ]);
        out.extend_from_slice(&self.data);
        pad_to_multiple(out, start, 8);
        Ok(())
    }
}

/// A fragment header to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fragment {
    /// What follows the header in the first fragment.
    pub next_header: u8,
    /// Where the fragment belongs, in units of 8 bytes; its low 13 bits are written.
    pub offset: u16,
    /// Whether this is not the last fragment.
    pub more_fragments: bool,
    /// What the fragments of one packet have in common.
    pub identification: u32,
}

impl Fragment {
    /// Appends the header; the fragment comes next.
    #[inline]
    pub fn write(&self, out: &mut Vec<u8>) {
        let more_fragments = u16::from(self.more_fragments) * MORE_FRAGMENTS;
        let offset_more = (self.offset << FRAGMENT_OFFSET_SHIFT) | more_fragments;
        out.extend_from_slice(&[self.next_header, 0]);
        out.extend_from_slice(&offset_more.to_be_bytes());
        out.extend_from_slice(&self.identification.to_be_bytes());
    }
}

/// An authentication header to write.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Authentication {
    /// What follows the header.
    pub next_header: u8,
    /// The security parameters index.
    pub spi: u32,
    /// The sequence number.
    pub sequence: u32,
    /// The integrity check value; the header is padded with zeros to a multiple of 8 bytes, as in
    /// IPv6 it must be.
    pub icv: Vec<u8>,
}

impl Authentication {
    /// Appends the header; what follows comes next.
    ///
    /// # Errors
    /// If the integrity check value exceeds 1012 bytes. Nothing is written then.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), PacketError> {
        // The largest length is not a multiple of 8, as RFC 4302 wants it for IPv6.
        let limit = MAX_AUTHENTICATION_LEN - 4 - AUTHENTICATION_LEN;
        PacketError::check_limit(
            AuthenticationView::LAYER,
            "integrity check value",
            self.icv.len(),
            limit,
        )?;
        let start = out.len();
        let len = (AUTHENTICATION_LEN + self.icv.len()).next_multiple_of(8) / 4 - 2;
        out.extend_from_slice(&[self.next_header, len as u8, 0, 0]);
        out.extend_from_slice(&self.spi.to_be_bytes());
        out.extend_from_slice(&self.sequence.to_be_bytes());
        out.extend_from_slice(&self.icv);
        pad_to_multiple(out, start, 8);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing;
    use super::*;

    const GOLDEN: [u8; 58] = [
        0x3c, 0x00, 0x05, 0x02, 0x00, 0x00, 0x01, 0x00, // hop-by-hop: router alert, PadN
        0x2b, 0x00, 0x01, 0x04, 0x00, 0x00, 0x00, 0x00, // destination options: PadN
        0x33, 0x00, 0xfd, 0x01, 0xde, 0xad, 0xbe,
        0xef, // routing: experimental type 253, one segment left
        0x2c, 0x04, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, // authentication: SPI 256,
        0x00, 0x00, 0x00, 0x07, 0x01, 0x02, 0x03, 0x04, // sequence 7,
        0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, // integrity check value
        0x11, 0x00, 0x00, 0x01, 0x12, 0x34, 0x56, 0x78, // fragment: first, more follow
        0xca, 0xfe, // payload
    ];

    fn hop_by_hop() -> Options {
        Options {
            next_header: ip_proto::DESTINATION_OPTIONS,
            options: vec![5, 2, 0, 0, 1, 0],
        }
    }

    fn destination_options() -> Options {
        Options {
            next_header: ip_proto::ROUTING,
            options: vec![1, 4, 0, 0, 0, 0],
        }
    }

    fn routing() -> Routing {
        let data = vec![0xde, 0xad, 0xbe, 0xef];
        Routing {
            next_header: ip_proto::AUTHENTICATION,
            routing_type: 253,
            segments_left: 1,
            data,
        }
    }

    fn authentication() -> Authentication {
        Authentication {
            next_header: ip_proto::FRAGMENT,
            spi: 256,
            sequence: 7,
            icv: (1..=12).collect(),
        }
    }

    const FRAGMENT: Fragment = Fragment {
        next_header: ip_proto::UDP,
        offset: 0,
        more_fragments: true,
        identification: 0x1234_5678,
    };

    #[test]
    fn reads_golden_bytes() {
        let read: Vec<_> = Extensions::new(ip_proto::HOP_BY_HOP, &GOLDEN)
            .map(Result::unwrap)
            .collect();
        let [
            ExtensionView::HopByHop(hop),
            ExtensionView::DestinationOptions(destination),
            ExtensionView::Routing(route),
            ExtensionView::Authentication(auth),
            ExtensionView::Fragment(fragment),
        ] = read[..]
        else {
            panic!("unexpected headers: {read:?}");
        };
        assert_eq!(hop.to_header(), hop_by_hop());
        assert_eq!(destination.to_header(), destination_options());
        assert_eq!(route.to_header(), routing());
        assert_eq!(auth.to_header(), authentication());
        assert_eq!(fragment.to_header(), FRAGMENT);
        assert_eq!(
            read.iter().map(ExtensionView::kind).collect::<Vec<_>>(),
            [0, 60, 43, 51, 44]
        );
    }

    #[test]
    fn writes_golden_bytes() {
        let mut out = Vec::new();
        hop_by_hop().write(&mut out).unwrap();
        destination_options().write(&mut out).unwrap();
        routing().write(&mut out).unwrap();
        authentication().write(&mut out).unwrap();
        FRAGMENT.write(&mut out);
        assert_eq!(out, GOLDEN[..56]);
    }

    #[test]
    fn finds_the_upper_layer() {
        let upper = upper_layer(ip_proto::HOP_BY_HOP, &GOLDEN).unwrap();
        let expected = UpperLayer {
            proto: ip_proto::UDP,
            is_later_fragment: false,
            payload: &[0xca, 0xfe],
        };
        assert_eq!(upper, expected);
        assert_eq!(
            upper_layer(ip_proto::ESP, &[1, 2]).unwrap().proto,
            ip_proto::ESP
        );
    }

    #[test]
    fn a_later_fragment_ends_the_chain() {
        let mut out = Vec::new();
        Fragment {
            next_header: ip_proto::DESTINATION_OPTIONS,
            offset: 185,
            ..FRAGMENT
        }
        .write(&mut out);
        out.push(0xff);
        let upper = upper_layer(ip_proto::FRAGMENT, &out).unwrap();
        let expected = UpperLayer {
            proto: ip_proto::DESTINATION_OPTIONS,
            is_later_fragment: true,
            payload: &[0xff],
        };
        assert_eq!(upper, expected);
    }

    #[test]
    fn a_cut_header_is_an_error_once() {
        let mut extensions = Extensions::new(ip_proto::HOP_BY_HOP, &GOLDEN[..13]);
        assert!(extensions.next().unwrap().is_ok());
        let cut = PacketError::Truncated {
            layer: "IPv6 options header",
            needed: 8,
            available: 5,
        };
        assert_eq!(extensions.next(), Some(Err(cut)));
        assert_eq!(extensions.next(), None);
    }

    #[test]
    fn a_chain_too_long_is_not_followed() {
        let chain = [60, 0, 1, 4, 0, 0, 0, 0].repeat(MAX_EXTENSIONS + 1);
        let error = upper_layer(ip_proto::DESTINATION_OPTIONS, &chain).unwrap_err();
        assert_eq!(
            error,
            PacketError::TooMany {
                layer: "IPv6 extension headers",
                limit: MAX_EXTENSIONS
            }
        );
        assert!(upper_layer(ip_proto::DESTINATION_OPTIONS, &chain[..8]).is_err());
    }

    #[test]
    fn refuses_an_authentication_header_shorter_than_its_fixed_part() {
        let error = AuthenticationView::new(&[17, 0, 0, 0, 0, 0, 0, 0]).unwrap_err();
        assert!(matches!(
            error,
            PacketError::BadLength {
                minimum: 12,
                found: 8,
                ..
            }
        ));
    }

    #[test]
    fn refuses_a_kind_that_is_no_extension() {
        assert!(matches!(
            ExtensionView::new(ip_proto::TCP, &GOLDEN),
            Err(PacketError::BadValue { found: 6, .. })
        ));
    }

    #[test]
    fn pads_and_bounds_what_it_writes() {
        let mut out = Vec::new();
        Options {
            next_header: 17,
            options: vec![1; 7],
        }
        .write(&mut out)
        .unwrap();
        assert_eq!(out, [17, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0]);
        out.clear();
        assert!(
            Options {
                next_header: 17,
                options: vec![0; 2047]
            }
            .write(&mut out)
            .is_err()
        );
        assert!(
            Routing {
                data: vec![0; 2045],
                ..routing()
            }
            .write(&mut out)
            .is_err()
        );
        assert!(
            Authentication {
                icv: vec![0; 1013],
                ..authentication()
            }
            .write(&mut out)
            .is_err()
        );
        assert!(out.is_empty());
        let longest = Authentication {
            icv: vec![3; 1012],
            ..authentication()
        };
        longest.write(&mut out).unwrap();
        assert_eq!(AuthenticationView::new(&out).unwrap().to_header(), longest);
    }

    proptest! {
        #[test]
        fn reading_never_panics(first: u8, bytes in testing::hostile(&GOLDEN)) {
            for first in [first, ip_proto::HOP_BY_HOP] {
                let _ = upper_layer(first, &bytes);
                for extension in Extensions::new(first, &bytes).flatten() {
                    match extension {
                        ExtensionView::HopByHop(view) => drop(view.to_header()),
                        ExtensionView::DestinationOptions(view) => drop(view.to_header()),
                        ExtensionView::Routing(view) => drop(view.to_header()),
                        ExtensionView::Fragment(view) => _ = view.to_header(),
                        ExtensionView::Authentication(view) => drop(view.to_header()),
                    }
                }
            }
        }

        #[test]
        fn options_written_are_read(
            next_header: u8,
            mut options in testing::aligned_bytes(8, 9),
            head: [u8; 6],
        ) {
            options.extend(head);
            let header = Options { next_header, options };
            let mut out = Vec::new();
            header.write(&mut out).unwrap();
            prop_assert_eq!(OptionsView::new(&out).unwrap().to_header(), header);
        }

        #[test]
        fn routing_written_is_read(
            next_header: u8,
            routing_type: u8,
            segments_left: u8,
            mut data in testing::aligned_bytes(8, 9),
            head: [u8; 4],
        ) {
            data.extend(head);
            let header = Routing { next_header, routing_type, segments_left, data };
            let mut out = Vec::new();
            header.write(&mut out).unwrap();
            prop_assert_eq!(RoutingView::new(&out).unwrap().to_header(), header);
        }

        #[test]
        fn fragments_written_are_read(
            next_header: u8,
            offset in 0..=MAX_FRAGMENT_OFFSET,
            more_fragments: bool,
            identification: u32,
        ) {
            let header = Fragment { next_header, offset, more_fragments, identification };
            let mut out = Vec::new();
            header.write(&mut out);
            prop_assert_eq!(FragmentView::new(&out).unwrap().to_header(), header);
        }

        #[test]
        fn authentication_written_is_read(
            next_header: u8,
            spi: u32,
            sequence: u32,
            mut icv in testing::aligned_bytes(8, 9),
            head: [u8; 4],
        ) {
            icv.extend(head);
            let header = Authentication { next_header, spi, sequence, icv };
            let mut out = Vec::new();
            header.write(&mut out).unwrap();
            prop_assert_eq!(AuthenticationView::new(&out).unwrap().to_header(), header);
        }
    }
}
