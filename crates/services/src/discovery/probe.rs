//! Probes: the LLDP frames that find links, and how they are distinguished from other LLDP.
//!
//! **What.** A probe names the port that sends it. It is an ordinary LLDP frame (IEEE 802.1AB), readable in any capture,
//! with one organisation-specific TLV at the end: a stamp, and an authenticator over datapath id, port and stamp.
//!
//! ```text
//! chassis id, locally assigned   "dpid:0000000000000001"
//! port id, locally assigned      "3"
//! time to live                   seconds until the link is considered dead
//! organisation-specific          02:75:72, subtype 1: stamp (8 bytes), authenticator (16 bytes)
//! ```
//!
//! **Why an authenticator.** Any host can send LLDP, and nothing in an ordinary frame proves its origin: one forged frame
//! would add a link and divert other users' packets to the forger. The authenticator is HMAC-SHA-256 (RFC 2104), truncated
//! to 16 bytes, with a key that never leaves the controller.
//!
//! **Cost.** A few hundred nanoseconds to write or check one; checking allocates nothing.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use urtica_topology::PortId;
use urtica_wire::packet::lldp::{self, Lldp, LldpId, LldpTlv, LldpView};
use urtica_wire::packet::{EthernetView, ether_type};
use urtica_wire::{DatapathId, MacAddr, PortNo};

/// Used as an OUI. Urtica has none; this one is locally administered (IEEE 802c), so it belongs to no organisation.
const OUI: [u8; 3] = [0x02, b'u', b'r'];
const SUBTYPE: u8 = 1;

/// The prefix of the chassis id, as in the probes of other controllers.
const CHASSIS_PREFIX: &[u8] = b"dpid:";

/// The prefix of authenticated data, so that the key may have other purposes too.
const DOMAIN: &[u8] = b"urtica link probe 1";

const STAMP_LEN: usize = 8;
const TAG_LEN: usize = 16;

/// A probe to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Probe {
    /// The port that sends it, and that it names.
    pub from: PortId,
    /// That port's address, the frame's source.
    pub hw_addr: MacAddr,
    /// Higher in each probe: nanoseconds since discovery started.
    pub stamp: u64,
    /// The port where it arrives if its link is still up.
    pub confirms_at: Option<PortId>,
}

/// The kind of an LLDP frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sighting {
    /// One of our probes.
    Probe {
        /// The port that sent it.
        from: PortId,
        /// Its stamp.
        stamp: u64,
    },
    /// The frame looks like one of our probes but is forged.
    Forged {
        /// The port that it claims to come from, if that could be parsed.
        claimed: Option<PortId>,
    },
    /// Another station's LLDP, which is no evidence of links between switches.
    Foreign,
}

/// Writes probes, and recognises those that it has written.
pub(super) struct Prober {
    /// Holds the key.
    hmac: Hmac<Sha256>,
    ttl_s: u16,
}

impl Prober {
    /// Creates a prober that authenticates with `secret`; `ttl_s` is the frames' time to live.
    pub fn new(secret: &[u8; 32], ttl_s: u16) -> Self {
        Self {
            hmac: Hmac::new_from_slice(secret).expect("HMAC takes keys of any length"),
            ttl_s,
        }
    }

    /// Returns the probe as a frame.
    pub fn frame(&self, probe: &Probe) -> Vec<u8> {
        let mut info = [0; STAMP_LEN + TAG_LEN];
        let (stamp, tag) = info.split_at_mut(STAMP_LEN);
        stamp.copy_from_slice(&probe.stamp.to_be_bytes());
        let authenticated = self.authenticate(probe.from, probe.stamp);
        tag.copy_from_slice(&authenticated.finalize().into_bytes()[..TAG_LEN]);
        let chassis = format!("dpid:{}", probe.from.switch);
        let port = probe.from.port_no.0.to_string();
        let frame = Lldp {
            chassis_id: locally_assigned(lldp::chassis_id::LOCALLY_ASSIGNED, &chassis),
            port_id: locally_assigned(lldp::port_id::LOCALLY_ASSIGNED, &port),
            ttl_s: self.ttl_s,
            tlvs: vec![LldpTlv::OrganizationSpecific {
                oui: OUI,
                subtype: SUBTYPE,
                info: &info,
            }],
        };
        let mut out = Vec::new();
        frame
            .write_frame(probe.hw_addr, &mut out)
            .expect("all values are shorter than a TLV's longest");
        out
    }

    /// Classifies a frame; returns `None` if it is not LLDP.
    pub fn read(&self, frame: &[u8]) -> Option<Sighting> {
        let frame = EthernetView::new(frame).ok()?;
        if frame.ether_type() != ether_type::LLDP {
            return None;
        }
        Some(match LldpView::new(frame.payload()) {
            Ok(lldp) => self.check(&lldp),
            Err(_) => Sighting::Foreign,
        })
    }

    fn check(&self, lldp: &LldpView) -> Sighting {
        let claimed = claimed_port(lldp);
        match (claimed, authenticator(lldp)) {
            (Some(from), Some((stamp, tag))) => {
                let authenticated = self.authenticate(from, stamp);
                match authenticated.verify_truncated_left(&tag) {
                    Ok(()) => Sighting::Probe { from, stamp },
                    Err(_) => Sighting::Forged { claimed },
                }
            }
            (None, None) => Sighting::Foreign,
            (claimed, _) => Sighting::Forged { claimed },
        }
    }

    fn authenticate(&self, from: PortId, stamp: u64) -> Hmac<Sha256> {
        let mut hmac = self.hmac.clone();
        hmac.update(DOMAIN);
        hmac.update(&from.switch.0.to_be_bytes());
        hmac.update(&from.port_no.0.to_be_bytes());
        hmac.update(&stamp.to_be_bytes());
        hmac
    }
}

fn locally_assigned(subtype: u8, text: &str) -> LldpId<'_> {
    LldpId {
        subtype,
        id: text.as_bytes(),
    }
}

/// Returns the port that a frame claims to come from, if it is encoded as in our probes.
fn claimed_port(lldp: &LldpView) -> Option<PortId> {
    let (chassis, port) = (lldp.chassis_id(), lldp.port_id());
    if chassis.subtype != lldp::chassis_id::LOCALLY_ASSIGNED
        || port.subtype != lldp::port_id::LOCALLY_ASSIGNED
    {
        return None;
    }
    let switch = std::str::from_utf8(chassis.id.strip_prefix(CHASSIS_PREFIX)?).ok()?;
    let port_no = std::str::from_utf8(port.id).ok()?;
    Some(PortId {
        switch: DatapathId(u64::from_str_radix(switch, 16).ok()?),
        port_no: PortNo(port_no.parse().ok()?),
    })
}

/// Returns the stamp and authenticator, if the frame has them.
fn authenticator(lldp: &LldpView) -> Option<(u64, [u8; TAG_LEN])> {
    let info = lldp.tlvs().find_map(|tlv| match tlv {
        LldpTlv::OrganizationSpecific {
            oui: OUI,
            subtype: SUBTYPE,
            info,
        } => Some(info),
        _ => None,
    })?;
    let (stamp, tag) = info.split_first_chunk::<STAMP_LEN>()?;
    Some((u64::from_be_bytes(*stamp), *tag.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROBE: Probe = Probe {
        from: PortId::new(DatapathId(0xab), PortNo(3)),
        hw_addr: MacAddr::new([2, 0, 0, 0, 0, 3]),
        stamp: 77,
        confirms_at: None,
    };

    fn prober(secret: u8) -> Prober {
        Prober::new(&[secret; 32], 18)
    }

    #[test]
    fn probes_round_trip() {
        let prober = prober(1);
        let sighting = Sighting::Probe {
            from: PROBE.from,
            stamp: 77,
        };
        assert_eq!(prober.read(&prober.frame(&PROBE)), Some(sighting));
    }

    #[test]
    fn probes_are_readable_lldp() {
        let frame = prober(1).frame(&PROBE);
        let ethernet = EthernetView::new(&frame).unwrap();
        assert_eq!(ethernet.dst(), lldp::NEAREST_BRIDGE);
        assert_eq!(ethernet.src(), PROBE.hw_addr);
        let lldp = LldpView::new(ethernet.payload()).unwrap();
        assert_eq!(lldp.chassis_id().id, b"dpid:00000000000000ab");
        assert_eq!(lldp.port_id().id, b"3");
        assert_eq!(lldp.ttl_s(), 18);
    }

    #[test]
    fn probes_with_another_key_are_forged() {
        let sighting = prober(2).read(&prober(1).frame(&PROBE));
        let claimed = Some(PROBE.from);
        assert_eq!(sighting, Some(Sighting::Forged { claimed }));
    }

    #[test]
    fn changes_outside_the_ttl_are_detected() {
        let prober = prober(1);
        let good = prober.frame(&PROBE);
        let sighting = prober.read(&good);
        for bit in 14 * 8..good.len() * 8 {
            let mut changed = good.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let seen = prober.read(&changed);
            // The time to live is for other readers, and is ignored here.
            let is_other = !matches!(seen, Some(Sighting::Probe { .. }));
            assert!(is_other || seen == sighting, "bit {bit}: {seen:?}");
        }
    }

    #[test]
    fn frames_of_other_stations_are_foreign_or_not_lldp() {
        let other = Lldp {
            chassis_id: LldpId {
                subtype: lldp::chassis_id::MAC_ADDRESS,
                id: &[2, 0, 0, 0, 0, 9],
            },
            port_id: locally_assigned(lldp::port_id::INTERFACE_NAME, "eth0"),
            ttl_s: 120,
            tlvs: Vec::new(),
        };
        let mut frame = Vec::new();
        other.write_frame(MacAddr::ZERO, &mut frame).unwrap();
        assert_eq!(prober(1).read(&frame), Some(Sighting::Foreign));
        assert_eq!(prober(1).read(&frame[..20]), Some(Sighting::Foreign));
        assert_eq!(prober(1).read(&frame[..13]), None);
        frame[12..14].copy_from_slice(&[8, 0]);
        assert_eq!(prober(1).read(&frame), None);
    }

    #[test]
    fn our_format_without_an_authenticator_is_forged() {
        let plain = Lldp {
            chassis_id: locally_assigned(
                lldp::chassis_id::LOCALLY_ASSIGNED,
                "dpid:00000000000000ab",
            ),
            port_id: locally_assigned(lldp::port_id::LOCALLY_ASSIGNED, "3"),
            ttl_s: 120,
            tlvs: Vec::new(),
        };
        let mut frame = Vec::new();
        plain.write_frame(MacAddr::ZERO, &mut frame).unwrap();
        let claimed = Some(PROBE.from);
        assert_eq!(prober(1).read(&frame), Some(Sighting::Forged { claimed }));
    }
}
