//! Tests of reading and writing extension headers.

use proptest::prelude::*;

use super::*;
use crate::packet::testing;

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
fn pads_and_bounds_its_output() {
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
    fn written_options_read_back(
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
    fn written_routing_reads_back(
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
    fn written_fragments_read_back(
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
    fn written_authentication_reads_back(
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
