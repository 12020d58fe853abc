//! Builds a packet with the fields of a match.

use std::net::{Ipv4Addr, Ipv6Addr};
use urtica_pipeline::Packet;
use urtica_wire::packet::{
    Arp, Ethernet, Icmpv4, Icmpv6, Ipv4, Ipv6, Mpls, Nd, PacketError, Pbb, PseudoHeader, Sctp, Tcp,
    Udp, ether_type, icmpv6, ip_proto,
};
use urtica_wire::{Action, Field, MacAddr, Match, OxmField, PortNo, VLAN_PRESENT};

/// Ethernet's minimum frame length, without the frame check sequence.
const SHORTEST: usize = 60;

/// The values of a match, field by field.
struct Wanted<'m>(&'m Match<'m>);

impl Wanted<'_> {
    fn get(&self, field: OxmField) -> Option<u128> {
        self.0.get(field).map(|(value, _)| value)
    }

    fn has(&self, field: OxmField) -> bool {
        self.get(field).is_some()
    }
}

/// Returns a packet with these fields and zeros otherwise: the headers that `eth_type` and `ip_proto` require, each
/// field set, and correct checksums.
///
/// # Errors
/// A message, if no packet can have all these fields.
pub fn packet(match_: &Match) -> Result<Packet, String> {
    let wanted = Wanted(match_);
    let in_port = wanted.get(OxmField::InPort).unwrap_or(1);
    let mut frame = skeleton(&wanted).map_err(|error| error.to_string())?;
    frame.resize(frame.len().max(SHORTEST), 0);
    let mut packet = Packet::new(PortNo(in_port as u32), &frame);
    if wanted
        .get(OxmField::VlanVid)
        .is_some_and(|vid| vid & u128::from(VLAN_PRESENT) != 0)
    {
        packet.apply(&Action::PushVlan(ether_type::VLAN));
    }
    for field in match_.fields() {
        set(&mut packet, &field);
    }
    let missing = match_.fields().find(|field| !has(&packet, field));
    match missing {
        None => Ok(packet),
        Some(field) => Err(format!(
            "no packet can have {field:?} with the other fields"
        )),
    }
}

fn set(packet: &mut Packet, field: &Field) {
    let Field::Basic {
        field: name, value, ..
    } = *field
    else {
        return;
    };
    match name {
        OxmField::InPort => {}
        OxmField::InPhyPort => packet.in_phy_port = PortNo(value as u32),
        OxmField::Metadata => packet.metadata = value as u64,
        // The fields that determine the headers.
        OxmField::EthType | OxmField::IpProto | OxmField::Ipv6Exthdr => {}
        OxmField::VlanVid if value == 0 => {}
        _ => {
            packet.apply(&Action::SetField(Field::exact(name, value)));
        }
    }
}

fn has(packet: &Packet, field: &Field) -> bool {
    match *field {
        Field::Basic { field, value, mask } => packet.matches(field, value, mask),
        Field::Raw(_) => false,
    }
}

/// Returns the headers, with zeros for the fields.
fn skeleton(wanted: &Wanted) -> Result<Vec<u8>, PacketError> {
    let eth_type = wanted.get(OxmField::EthType).unwrap_or_default() as u16;
    let mut frame = Vec::new();
    let ethernet = Ethernet {
        dst: MacAddr::ZERO,
        src: MacAddr::ZERO,
        ether_type: eth_type,
    };
    ethernet.write(&mut frame);
    match eth_type {
        ether_type::IPV4 => write_ipv4(wanted, &mut frame)?,
        ether_type::IPV6 => write_ipv6(wanted, &mut frame)?,
        ether_type::ARP => {
            let any = Ipv4Addr::UNSPECIFIED;
            Arp::request(MacAddr::ZERO, any, any).write(&mut frame);
        }
        ether_type::MPLS | ether_type::MPLS_MULTICAST => Mpls {
            label: 0,
            tc: 0,
            bos: true,
            ttl: 64,
        }
        .write(&mut frame),
        ether_type::PBB => {
            Pbb {
                pcp: 0,
                dei: false,
                uca: false,
                isid: 0,
            }
            .write(&mut frame);
            ethernet.write(&mut frame);
        }
        _ => {}
    }
    Ok(frame)
}

fn write_ipv4(wanted: &Wanted, frame: &mut Vec<u8>) -> Result<(), PacketError> {
    let proto = wanted.get(OxmField::IpProto).unwrap_or_default() as u8;
    let ip = Ipv4::new(Ipv4Addr::UNSPECIFIED, Ipv4Addr::UNSPECIFIED, proto);
    ip.write(frame, &transport(wanted, proto, &ip.pseudo_header())?)
}

fn write_ipv6(wanted: &Wanted, frame: &mut Vec<u8>) -> Result<(), PacketError> {
    let proto = wanted
        .get(OxmField::IpProto)
        .unwrap_or(u128::from(ip_proto::NO_NEXT_HEADER)) as u8;
    let ip = Ipv6::new(Ipv6Addr::UNSPECIFIED, Ipv6Addr::UNSPECIFIED, proto);
    ip.write(frame, &transport(wanted, proto, &ip.pseudo_header())?)
}

fn transport(
    wanted: &Wanted,
    proto: u8,
    pseudo_header: &PseudoHeader,
) -> Result<Vec<u8>, PacketError> {
    let mut bytes = Vec::new();
    match proto {
        ip_proto::TCP => Tcp::default().write(&mut bytes, pseudo_header, &[])?,
        ip_proto::UDP => {
            let (src_port, dst_port) = (0, 0);
            Udp { src_port, dst_port }.write(&mut bytes, pseudo_header, &[])?;
        }
        ip_proto::SCTP => Sctp {
            src_port: 0,
            dst_port: 0,
            verification_tag: 0,
        }
        .write(&mut bytes, &[]),
        ip_proto::ICMPV4 => Icmpv4 {
            icmp_type: 0,
            icmp_code: 0,
            rest: [0; 4],
        }
        .write(&mut bytes, &[0; 8]),
        ip_proto::ICMPV6 => write_icmpv6(wanted, &mut bytes, pseudo_header),
        _ => {}
    }
    Ok(bytes)
}

/// Writes an ICMPv6 header: with a neighbour discovery message if the type requires one, and with the options of set fields.
fn write_icmpv6(wanted: &Wanted, bytes: &mut Vec<u8>, pseudo_header: &PseudoHeader) {
    let icmp_type = wanted.get(OxmField::Icmpv6Type).unwrap_or_default() as u8;
    let mut message = vec![0; 4];
    if [
        icmpv6::NEIGHBOR_SOLICITATION,
        icmpv6::NEIGHBOR_ADVERTISEMENT,
    ]
    .contains(&icmp_type)
    {
        message.clear();
        let option = |field| wanted.has(field).then_some(MacAddr::ZERO);
        let neighbour = Nd {
            flags: 0,
            target: Ipv6Addr::UNSPECIFIED,
            sll: option(OxmField::Ipv6NdSll),
            tll: option(OxmField::Ipv6NdTll),
        };
        neighbour.write(&mut message);
    }
    let icmp = Icmpv6 {
        icmp_type,
        icmp_code: 0,
    };
    icmp.write(bytes, pseudo_header, &message);
}

#[cfg(test)]
mod tests {
    use super::*;
    use urtica_wire::packet::{Ipv4View, TcpView};

    fn composed(text: &str) -> Result<Packet, String> {
        packet(&text.parse::<Match>().expect("a match"))
    }

    #[test]
    fn a_packet_has_the_requested_fields() {
        for text in [
            "in_port=7",
            "dl_src=02:00:00:00:00:01,dl_dst=02:00:00:00:00:02",
            "in_port=3,dl_vlan=100,dl_vlan_pcp=5,tcp,nw_src=10.0.0.1,nw_dst=10.1.0.0/16,tp_src=1,tp_dst=80",
            "udp,nw_tos=32,nw_ecn=1,tp_dst=53",
            "icmp,icmp_type=8,icmp_code=0",
            "sctp,tp_src=5,tp_dst=6",
            "arp,arp_op=2,arp_spa=10.0.0.1,arp_tpa=10.0.0.2,arp_sha=02:00:00:00:00:01",
            "tcp6,ipv6_src=2001:db8::1,ipv6_dst=2001:db8::/32,ipv6_label=0x12345,tp_dst=443",
            "icmp6,icmp_type=135,nd_target=2001:db8::1,nd_sll=02:00:00:00:00:01",
            "icmp6,icmp_type=136,nd_target=2001:db8::1,nd_tll=02:00:00:00:00:01",
            "mpls,mpls_label=77,mpls_tc=2,mpls_bos=1",
            "dl_type=0x88e7,pbb_isid=0x123",
            "dl_type=0x1234",
            "metadata=0x5/0xff,tun_id=9",
        ] {
            let match_ = text.parse::<Match>().expect("a match");
            let packet = packet(&match_).unwrap_or_else(|error| panic!("{text}: {error}"));
            for field in match_.fields() {
                assert!(has(&packet, &field), "{text}: {field:?}");
            }
        }
    }

    #[test]
    fn checksums_are_correct() {
        let packet = composed("tcp,nw_src=10.0.0.1,nw_dst=10.0.0.2,tp_dst=80").unwrap();
        let ip = Ipv4View::new(&packet.frame()[14..]).unwrap();
        assert!(ip.is_checksum_valid());
        let tcp = TcpView::new(ip.payload()).unwrap();
        assert!(tcp.is_checksum_valid(&ip.pseudo_header()));
    }

    #[test]
    fn impossible_packets_are_errors() {
        let error = composed("ipv6,ipv6_exthdr=0x40/0x40").unwrap_err();
        assert!(error.contains("ipv6_exthdr"), "{error}");
    }
}
