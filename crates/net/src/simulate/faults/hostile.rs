//! The frames of hostile hosts.

use super::Act;
use super::tagged::{send_from, send_tagged};
use crate::{HostId, Net, NetError};
use std::net::Ipv4Addr;
use std::ops::Range;
use urtica_wire::MacAddr;
use urtica_wire::packet::{Arp, Icmpv4, Ipv4, arp, ether_type, icmpv4, ip_proto};

/// The first made-up MAC address; no host of a network has one of these.
const FIRST_MAC: u64 = 0x0200_9900_0000;

/// The first MAC address that hosts send to although no host has it, not even one that is made up.
const FIRST_ABSENT_MAC: u64 = 0x0200_9a00_0000;

/// The first made-up IPv4 address.
const FIRST_IPV4: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 0);

/// The first address that hosts ping although no host has it. In networks with subnets, one of them contains it.
const FIRST_ABSENT: Ipv4Addr = Ipv4Addr::new(10, 16, 0, 1);

/// The type of frames without a protocol (IEEE 802's local experimental Ethertype 1).
const EXPERIMENTAL: u16 = 0x88b5;

/// Sends the frames of a hostile act; does nothing for other acts.
pub(in crate::simulate) fn send(net: &mut Net, act: &Act) -> Result<(), NetError> {
    match *act {
        Act::SendToNobody(host, ref numbers) => {
            let (src, _) = net.host_addresses(host)?;
            for number in numbers.clone() {
                send_from(net, host, absent(number), src, EXPERIMENTAL, |_| {})?;
            }
        }
        Act::Sweep(host, ref numbers) => {
            let (mac, ipv4) = net.host_addresses(host)?;
            for number in numbers.clone() {
                let request = Arp::request(mac, ipv4, made_up_ipv4(number));
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
        Act::Forge {
            liar,
            victim,
            owner,
            form,
        } => form.send(net, liar, victim, owner)?,
        Act::Provoke(host, to, ref numbers) => provoke(net, host, to, numbers.clone())?,
        Act::PingNobody(host, ref numbers) => {
            for number in numbers.clone() {
                let absent = Ipv4Addr::from_bits(FIRST_ABSENT.to_bits() + number);
                net.start_ping_to(host, absent.into(), 1)?;
            }
        }
        Act::Crowd(host, to, ref numbers) => crowd(net, host, to, numbers.clone())?,
        _ => {}
    }
    Ok(())
}

/// Pings a host with source addresses that no host has.
fn provoke(net: &mut Net, host: HostId, to: HostId, numbers: Range<u32>) -> Result<(), NetError> {
    let (src, _) = net.host_addresses(host)?;
    let (dst, dst_ipv4) = net.host_addresses(to)?;
    let request = Icmpv4 {
        icmp_type: icmpv4::ECHO_REQUEST,
        icmp_code: 0,
        rest: [0; 4],
    };
    let mut icmp = Vec::new();
    request.write(&mut icmp, &[0x55; 56]);
    for number in numbers {
        let ip = Ipv4::new(made_up_ipv4(number), dst_ipv4, ip_proto::ICMPV4);
        send_tagged(net, host, dst, src, ether_type::IPV4, |frame| {
            // Cannot fail: the message is short.
            let _ = ip.write(frame, &icmp);
        })?;
    }
    Ok(())
}

/// Sends packets from made-up hosts to a host. Every other made-up host has an IP address, too, and announces it by an
/// unsolicited ARP reply.
fn crowd(net: &mut Net, host: HostId, to: HostId, numbers: Range<u32>) -> Result<(), NetError> {
    let (dst, _) = net.host_addresses(to)?;
    for number in numbers {
        let src = made_up(number);
        let reply = Arp {
            op: arp::REPLY,
            sha: src,
            spa: made_up_ipv4(number),
            tha: dst,
            tpa: Ipv4Addr::UNSPECIFIED,
        };
        match number % 2 {
            0 => send_tagged(net, host, dst, src, EXPERIMENTAL, |_| {})?,
            _ => send_tagged(net, host, dst, src, ether_type::ARP, |frame| {
                reply.write(frame);
            })?,
        }
    }
    Ok(())
}

fn made_up_ipv4(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(FIRST_IPV4.to_bits() + number)
}

fn made_up(number: u32) -> MacAddr {
    MacAddr::from_u64(FIRST_MAC + u64::from(number))
}

fn absent(number: u32) -> MacAddr {
    MacAddr::from_u64(FIRST_ABSENT_MAC + u64::from(number))
}

fn send_arp(net: &mut Net, host: HostId, dst: MacAddr, arp: &Arp) -> Result<(), NetError> {
    let (src, _) = net.host_addresses(host)?;
    send_from(net, host, dst, src, ether_type::ARP, |frame| {
        arp.write(frame);
    })
}
