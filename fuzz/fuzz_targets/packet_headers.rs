//! Any bytes, read as every packet header there is: nothing panics, and what was read is written and read again as the
//! same header.

#![no_main]

use std::fmt::Debug;
use std::net::{Ipv4Addr, Ipv6Addr};

use libfuzzer_sys::fuzz_target;
use urtica_wire::packet::ipv6_ext::{
    AuthenticationView, ExtensionView, FragmentView, OptionsView, RoutingView,
};
use urtica_wire::packet::{
    ArpView, EthernetView, Headers, Icmpv4View, Icmpv6View, Ipv4View, Ipv6View, LldpView, MplsView,
    NdView, PacketError, PbbView, PseudoHeader, SctpView, TcpView, UdpView, VlanView, ethernet,
    ipv6_ext, mpls,
};

const ADDRESSES: [PseudoHeader; 2] = [
    PseudoHeader::V4 {
        src: Ipv4Addr::LOCALHOST,
        dst: Ipv4Addr::LOCALHOST,
    },
    PseudoHeader::V6 {
        src: Ipv6Addr::LOCALHOST,
        dst: Ipv6Addr::LOCALHOST,
    },
];

fuzz_target!(|bytes: &[u8]| {
    Headers::parse(bytes);
    read_link_layer(bytes);
    read_network_layer(bytes);
    read_extensions(bytes);
    read_transport_layer(bytes);
});

fn read_link_layer(bytes: &[u8]) {
    if let Ok(view) = EthernetView::new(bytes) {
        ethernet::resolve_ether_type(view.ether_type(), view.payload());
        let out = written(|out| view.to_header().write(out));
        assert_same(
            EthernetView::new(&out).map(|view| view.to_header()),
            view.to_header(),
        );
    }
    if let Ok(view) = VlanView::new(bytes) {
        let out = written(|out| view.to_header().write(out));
        assert_same(
            VlanView::new(&out).map(|view| view.to_header()),
            view.to_header(),
        );
    }
    if let Ok(view) = PbbView::new(bytes) {
        let out = written(|out| view.to_header().write(out));
        assert_same(
            PbbView::new(&out).map(|view| view.to_header()),
            view.to_header(),
        );
    }
    for view in mpls::Stack::new(bytes).flatten() {
        let out = written(|out| view.to_header().write(out));
        assert_same(
            MplsView::new(&out).map(|view| view.to_header()),
            view.to_header(),
        );
    }
    if let Ok(view) = LldpView::new(bytes) {
        // An id may be longer than the standard allows, and is then not written.
        let mut out = Vec::new();
        if view.to_header().write(&mut out).is_ok() {
            assert_same(
                LldpView::new(&out).map(|view| view.to_header()),
                view.to_header(),
            );
        }
    }
}

fn read_network_layer(bytes: &[u8]) {
    if let Ok(view) = ArpView::new(bytes) {
        let out = written(|out| view.to_header().write(out));
        assert_same(
            ArpView::new(&out).map(|view| view.to_header()),
            view.to_header(),
        );
    }
    if let Ok(view) = Ipv4View::new(bytes) {
        let _ = view.is_checksum_valid();
        let out = written(|out| {
            view.to_header()
                .write(out, view.payload())
                .expect("it fitted")
        });
        let again = Ipv4View::new(&out);
        assert!(again.is_ok_and(|view| view.is_checksum_valid()));
        assert_same(again.map(|view| view.to_header()), view.to_header());
    }
    if let Ok(view) = Ipv6View::new(bytes) {
        let _ = view.upper_layer();
        let out = written(|out| {
            view.to_header()
                .write(out, view.payload())
                .expect("it fitted")
        });
        assert_same(
            Ipv6View::new(&out).map(|view| view.to_header()),
            view.to_header(),
        );
    }
}

fn read_extensions(bytes: &[u8]) {
    let Some((&kind, bytes)) = bytes.split_first() else {
        return;
    };
    let _ = ipv6_ext::upper_layer(kind, bytes);
    for extension in ipv6_ext::Extensions::new(kind, bytes).flatten() {
        read_extension(&extension);
    }
}

fn read_extension(extension: &ExtensionView<'_>) {
    match extension {
        ExtensionView::HopByHop(view) | ExtensionView::DestinationOptions(view) => {
            let out = written(|out| view.to_header().write(out).expect("it fitted"));
            assert_same(
                OptionsView::new(&out).map(|view| view.to_header()),
                view.to_header(),
            );
        }
        ExtensionView::Routing(view) => {
            let out = written(|out| view.to_header().write(out).expect("it fitted"));
            assert_same(
                RoutingView::new(&out).map(|view| view.to_header()),
                view.to_header(),
            );
        }
        ExtensionView::Fragment(view) => {
            let out = written(|out| view.to_header().write(out));
            assert_same(
                FragmentView::new(&out).map(|view| view.to_header()),
                view.to_header(),
            );
        }
        ExtensionView::Authentication(view) => {
            // A length that is not a multiple of 8, against RFC 4302, is written padded or not at all.
            let mut out = Vec::new();
            if view.to_header().write(&mut out).is_ok() {
                let again = AuthenticationView::new(&out).expect("it was written");
                assert!(again.icv().starts_with(view.icv()));
            }
        }
    }
}

fn read_transport_layer(bytes: &[u8]) {
    for addresses in &ADDRESSES {
        read_tcp(bytes, addresses);
        read_udp(bytes, addresses);
        read_icmpv6(bytes, addresses);
    }
    if let Ok(view) = SctpView::new(bytes) {
        let _ = view.is_checksum_valid();
        let out = written(|out| view.to_header().write(out, view.payload()));
        let again = SctpView::new(&out);
        assert!(again.is_ok_and(|view| view.is_checksum_valid()));
        assert_same(again.map(|view| view.to_header()), view.to_header());
    }
    if let Ok(view) = Icmpv4View::new(bytes) {
        let _ = view.is_checksum_valid();
        let out = written(|out| view.to_header().write(out, view.payload()));
        let again = Icmpv4View::new(&out);
        assert!(again.is_ok_and(|view| view.is_checksum_valid()));
        assert_same(again.map(|view| view.to_header()), view.to_header());
    }
}

fn read_tcp(bytes: &[u8], addresses: &PseudoHeader) {
    let Ok(view) = TcpView::new(bytes) else {
        return;
    };
    let _ = view.is_checksum_valid(addresses);
    let write = |out: &mut _| view.to_header().write(out, addresses, view.payload());
    let out = written(|out| write(out).expect("it fitted"));
    let again = TcpView::new(&out);
    assert!(again.is_ok_and(|view| view.is_checksum_valid(addresses)));
    assert_same(again.map(|view| view.to_header()), view.to_header());
}

fn read_udp(bytes: &[u8], addresses: &PseudoHeader) {
    let Ok(view) = UdpView::new(bytes) else {
        return;
    };
    let _ = view.is_checksum_valid(addresses);
    let write = |out: &mut _| view.to_header().write(out, addresses, view.payload());
    let out = written(|out| write(out).expect("it fitted"));
    let again = UdpView::new(&out);
    assert!(again.is_ok_and(|view| view.is_checksum_valid(addresses)));
    assert_same(again.map(|view| view.to_header()), view.to_header());
}

fn read_icmpv6(bytes: &[u8], addresses: &PseudoHeader) {
    let Ok(view) = Icmpv6View::new(bytes) else {
        return;
    };
    let _ = view.is_checksum_valid(addresses);
    let out = written(|out| view.to_header().write(out, addresses, view.payload()));
    let again = Icmpv6View::new(&out);
    assert!(again.is_ok_and(|view| view.is_checksum_valid(addresses)));
    assert_same(again.map(|view| view.to_header()), view.to_header());
    if let Ok(Some(nd)) = view.nd() {
        let out = written(|out| nd.to_header().write(out));
        assert_same(
            NdView::new(&out).map(|view| view.to_header()),
            nd.to_header(),
        );
    }
}

/// What `write` appends to an empty buffer.
fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    out
}

#[track_caller]
fn assert_same<H: Debug + PartialEq>(read: Result<H, PacketError>, expected: H) {
    assert_eq!(read, Ok(expected));
}
