//! The frames that a router sends.

use super::config::Interface;
use std::net::Ipv4Addr;
use urtica_wire::MacAddr;
use urtica_wire::packet::{
    Arp, Ethernet, Icmpv4, Icmpv4View, Ipv4, Ipv4View, ether_type, ethernet, icmpv4, ip_proto, ipv4,
};

/// The reason why a packet was not forwarded: type and code of ICMP (RFC 792).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    NetUnreachable,
    HostUnreachable,
    PortUnreachable,
    TimeExceeded,
}

impl Failure {
    fn header(self) -> Icmpv4 {
        let (icmp_type, icmp_code) = match self {
            Self::NetUnreachable => (icmpv4::DESTINATION_UNREACHABLE, 0),
            Self::HostUnreachable => (icmpv4::DESTINATION_UNREACHABLE, 1),
            Self::PortUnreachable => (icmpv4::DESTINATION_UNREACHABLE, 3),
            Self::TimeExceeded => (icmpv4::TIME_EXCEEDED, 0),
        };
        Icmpv4 {
            icmp_type,
            icmp_code,
            rest: [0; 4],
        }
    }
}

/// Returns `true` if a packet's checksum is valid, and the bytes contain the whole packet: a truncated packet must not be
/// forwarded as a whole one (RFC 1812 section 5.2.2).
pub(crate) fn is_intact(packet: &Ipv4View, bytes: &[u8]) -> bool {
    usize::from(packet.total_len()) <= bytes.len() && packet.is_checksum_valid()
}

/// Builds a frame from an interface.
fn frame(interface: &Interface, dst: MacAddr, ether_type: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(ethernet::HEADER_LEN + payload.len());
    let header = Ethernet {
        dst,
        src: interface.mac,
        ether_type,
    };
    header.write(&mut frame);
    frame.extend_from_slice(payload);
    ethernet::pad_frame(&mut frame, 0);
    frame
}

/// Builds an interface's reply to an ARP request.
pub(crate) fn arp_reply(interface: &Interface, question: &Arp) -> Vec<u8> {
    let mut reply = Vec::new();
    question.reply(interface.mac).write(&mut reply);
    frame(interface, question.sha, ether_type::ARP, &reply)
}

/// Builds an interface's ARP request for an address.
pub(crate) fn arp_request(interface: &Interface, address: Ipv4Addr) -> Vec<u8> {
    let mut request = Vec::new();
    Arp::request(interface.mac, interface.address, address).write(&mut request);
    frame(interface, MacAddr::BROADCAST, ether_type::ARP, &request)
}

/// Builds the reply to an echo request; `None` for other packets.
pub(crate) fn echo_reply(
    interface: &Interface,
    dst: MacAddr,
    request: &Ipv4View,
) -> Option<Vec<u8>> {
    let echo = Icmpv4View::new(request.payload()).ok()?;
    let is_request =
        request.proto() == ip_proto::ICMPV4 && echo.icmp_type() == icmpv4::ECHO_REQUEST;
    if !is_request || !echo.is_checksum_valid() {
        return None;
    }
    let mut reply = Vec::new();
    let header = Icmpv4 {
        icmp_type: icmpv4::ECHO_REPLY,
        ..echo.to_header()
    };
    header.write(&mut reply, echo.payload());
    ipv4_frame(
        interface,
        dst,
        &Ipv4::new(request.dst(), request.src(), ip_proto::ICMPV4),
        &reply,
    )
}

/// Builds an ICMP error for a packet's sender; `None` for packets that must not be answered (RFC 1812 section 4.3.2.7).
pub(crate) fn icmp_error(
    interface: &Interface,
    dst: MacAddr,
    failure: Failure,
    about: &Ipv4View,
    bytes: &[u8],
) -> Option<Vec<u8>> {
    let icmp = Icmpv4View::new(about.payload()).ok();
    let is_error = about.proto() == ip_proto::ICMPV4
        && icmp.is_some_and(|icmp| {
            !matches!(icmp.icmp_type(), icmpv4::ECHO_REQUEST | icmpv4::ECHO_REPLY)
        });
    let src = about.src();
    let is_nobody =
        src.is_unspecified() || src.is_multicast() || src.is_broadcast() || src.is_loopback();
    if is_error || is_nobody || about.fragment_offset() > 0 || about.dst().is_multicast() {
        return None;
    }
    // The header and the first 8 bytes of its payload (RFC 792).
    let quoted = ipv4::HEADER_LEN + about.options().len() + 8;
    let quoted = &bytes[..quoted.min(bytes.len()).min(usize::from(about.total_len()))];
    let mut message = Vec::new();
    failure.header().write(&mut message, quoted);
    ipv4_frame(
        interface,
        dst,
        &Ipv4::new(interface.address, src, ip_proto::ICMPV4),
        &message,
    )
}

fn ipv4_frame(
    interface: &Interface,
    dst: MacAddr,
    header: &Ipv4,
    payload: &[u8],
) -> Option<Vec<u8>> {
    let mut packet = Vec::new();
    header.write(&mut packet, payload).ok()?;
    Some(frame(interface, dst, ether_type::IPV4, &packet))
}

/// Builds the frame that forwards a packet to its next hop, with its TTL decremented; `None` if the TTL expired.
pub(crate) fn forwarded(interface: &Interface, dst: MacAddr, packet: &Ipv4View) -> Option<Vec<u8>> {
    let header = Ipv4 {
        ttl: packet.ttl().checked_sub(1)?,
        ..packet.to_header()
    };
    ipv4_frame(interface, dst, &header, packet.payload())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface() -> Interface {
        let config: super::super::L3Config =
            "[[interface]]\naddress = \"10.0.1.1/24\"\nmac = \"02:00:00:00:01:01\""
                .parse()
                .unwrap();
        config.interfaces()[0].clone()
    }

    fn packet(header: &Ipv4, payload: &[u8]) -> Vec<u8> {
        let mut packet = Vec::new();
        header.write(&mut packet, payload).unwrap();
        packet
    }

    #[test]
    fn forwarding_decrements_the_ttl_and_updates_the_checksum() {
        let header = Ipv4::new([10, 0, 1, 2].into(), [10, 0, 2, 2].into(), ip_proto::UDP);
        for ttl in 2..=255 {
            let packet = packet(
                &Ipv4 {
                    ttl,
                    ..header.clone()
                },
                b"payload",
            );
            let packet = Ipv4View::new(&packet).unwrap();
            let frame = forwarded(&interface(), MacAddr::from_u64(9), &packet).unwrap();
            let sent = Ipv4View::new(&frame[ethernet::HEADER_LEN..]).unwrap();
            assert!(sent.is_checksum_valid());
            assert_eq!((sent.ttl(), sent.payload()), (ttl - 1, &b"payload"[..]));
        }
    }

    #[test]
    fn never_answers_errors_with_errors() {
        let header = Ipv4::new([10, 0, 1, 2].into(), [10, 0, 2, 2].into(), ip_proto::ICMPV4);
        let mut error = Vec::new();
        Failure::TimeExceeded.header().write(&mut error, &[0; 28]);
        let first_piece = Ipv4::new(header.src, header.dst, ip_proto::UDP);
        let later_piece = Ipv4 {
            fragment_offset: 8,
            ..first_piece.clone()
        };
        let from_nobody = Ipv4 {
            src: Ipv4Addr::UNSPECIFIED,
            ..first_piece.clone()
        };
        for (header, payload, is_told) in [
            (&header, &error[..], false),
            (&first_piece, &[0; 8], true),
            (&later_piece, &[0; 8], false),
            (&from_nobody, &[0; 8], false),
        ] {
            let bytes = packet(header, payload);
            let view = Ipv4View::new(&bytes).unwrap();
            let told = icmp_error(
                &interface(),
                MacAddr::ZERO,
                Failure::HostUnreachable,
                &view,
                &bytes,
            );
            assert_eq!(told.is_some(), is_told, "{header:?}");
        }
    }
}
