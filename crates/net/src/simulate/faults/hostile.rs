//! The frames of hostile hosts.

use super::Act;
use crate::{HostId, Net, NetError};
use std::net::Ipv4Addr;
use urtica_wire::MacAddr;
use urtica_wire::packet::{Arp, Ethernet, arp, ether_type};

/// The first made-up MAC address; no host of a network has one of these.
const FIRST_MAC: u64 = 0x0200_9900_0000;

/// The first made-up IPv4 address.
const FIRST_IPV4: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 0);

/// The type of frames without a protocol (IEEE 802's local experimental Ethertype 1).
const EXPERIMENTAL: u16 = 0x88b5;

/// Sends the frames of a hostile act; nothing for others.
pub(in crate::simulate) fn send(net: &mut Net, act: &Act) -> Result<(), NetError> {
    match *act {
        Act::SendToNobody(host, ref numbers) => {
            let (src, _) = net.host_addresses(host)?;
            for number in numbers.clone() {
                send_from(net, host, made_up(number), src, EXPERIMENTAL, |_| {})?;
            }
        }
        Act::Sweep(host, ref numbers) => {
            let (mac, ipv4) = net.host_addresses(host)?;
            for number in numbers.clone() {
                let absent = Ipv4Addr::from_bits(FIRST_IPV4.to_bits() + number);
                let request = Arp::request(mac, ipv4, absent);
                send_arp(net, host, MacAddr::BROADCAST, &request)?;
            }
        }
        Act::MakeUpSenders(host, to, ref numbers) => {
            let (dst, _) = net.host_addresses(to)?;
            for number in numbers.clone() {
                send_from(net, host, dst, made_up(number), EXPERIMENTAL, |_| {})?;
            }
        }
        Act::SpoofReply {
            liar,
            victim,
            owner,
        } => {
            let [(sha, _), (_, spa), (tha, tpa)] = [
                net.host_addresses(liar)?,
                net.host_addresses(owner)?,
                net.host_addresses(victim)?,
            ];
            let reply = Arp {
                op: arp::REPLY,
                sha,
                spa,
                tha,
                tpa,
            };
            send_arp(net, liar, tha, &reply)?;
        }
        _ => {}
    }
    Ok(())
}

fn made_up(number: u32) -> MacAddr {
    MacAddr::from_u64(FIRST_MAC + u64::from(number))
}

fn send_arp(net: &mut Net, host: HostId, dst: MacAddr, arp: &Arp) -> Result<(), NetError> {
    let (src, _) = net.host_addresses(host)?;
    send_from(net, host, dst, src, ether_type::ARP, |frame| {
        arp.write(frame);
    })
}

fn send_from(
    net: &mut Net,
    host: HostId,
    dst: MacAddr,
    src: MacAddr,
    ether_type: u16,
    write: impl FnOnce(&mut Vec<u8>),
) -> Result<(), NetError> {
    let mut frame = Vec::new();
    let header = Ethernet {
        dst,
        src,
        ether_type,
    };
    header.write(&mut frame);
    write(&mut frame);
    net.send_frame(host, &frame)
}
