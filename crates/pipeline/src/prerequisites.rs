//! Prerequisites of fields: fields that a packet must have for others to exist (1.3.5 table 12).

use urtica_wire::packet::{ether_type, ip_proto};
use urtica_wire::{Action, Field, OxmField, VLAN_PRESENT};

/// Types of ICMPv6 messages that carry neighbour discovery.
const NEIGHBOUR_SOLICITATION: u128 = 135;
const NEIGHBOUR_ADVERTISEMENT: u128 = 136;

/// OFPVID_PRESENT, as a value of `vlan_vid`.
const PRESENT: u128 = VLAN_PRESENT as u128;

/// Facts that hold for every packet of an entry, and determine its other fields. Actions that change the packet update them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Known {
    in_port: bool,
    /// The minimum number of VLAN tags.
    vlan_tags: u32,
    eth_type: Option<u128>,
    ip_proto: Option<u128>,
    icmpv6_type: Option<u128>,
}

impl Known {
    /// Creates the facts of a match.
    pub fn from_fields(fields: &[(OxmField, u128, u128)]) -> Self {
        let mut known = Self::default();
        for &(field, value, _) in fields {
            known.learn(field, value);
        }
        known
    }

    /// Notes that the packet has a field, with this value under the match's mask.
    fn learn(&mut self, field: OxmField, value: u128) {
        match field {
            OxmField::InPort => self.in_port = true,
            OxmField::VlanVid => self.vlan_tags = u32::from(value & PRESENT != 0),
            OxmField::EthType => self.eth_type = Some(value),
            OxmField::IpProto => self.ip_proto = Some(value),
            OxmField::Icmpv6Type => self.icmpv6_type = Some(value),
            _ => {}
        }
    }

    /// Returns the facts after these actions.
    pub fn after<'a>(mut self, actions: impl Iterator<Item = Action<'a>>) -> Self {
        actions.for_each(|action| self.learn_action(&action));
        self
    }

    /// Notes an action's effect on the packet.
    pub fn learn_action(&mut self, action: &Action) {
        match *action {
            // This does not add a tag.
            Action::SetField(Field::Basic {
                field: OxmField::VlanVid,
                ..
            }) => {}
            Action::SetField(Field::Basic { field, value, .. }) => self.learn(field, value),
            Action::PushVlan(_) => self.vlan_tags += 1,
            Action::PopVlan => self.vlan_tags = self.vlan_tags.saturating_sub(1),
            Action::PushMpls(eth_type) | Action::PopMpls(eth_type) | Action::PushPbb(eth_type) => {
                self.begin_payload(Some(eth_type.into()));
            }
            Action::PopPbb => self.begin_payload(None),
            _ => {}
        }
    }

    /// Notes that another protocol follows the Ethernet header. A PBB header hides the tags after it; an MPLS header comes after
    /// the tags.
    fn begin_payload(&mut self, eth_type: Option<u128>) {
        let pbb = u128::from(ether_type::PBB);
        if eth_type.is_none() || eth_type == Some(pbb) {
            self.vlan_tags = 0;
        }
        self.eth_type = eth_type;
        self.ip_proto = None;
        self.icmpv6_type = None;
    }

    /// Returns `true` if the prerequisites of a field are met.
    pub fn allows(&self, field: OxmField) -> bool {
        use OxmField::*;
        match field {
            InPort | Metadata | EthDst | EthSrc | EthType | VlanVid | TunnelId => true,
            InPhyPort => self.in_port,
            VlanPcp => self.vlan_tags > 0,
            IpDscp | IpEcn | IpProto => self.is_ip(),
            Ipv4Src | Ipv4Dst => self.is_type(ether_type::IPV4),
            TcpSrc | TcpDst => self.is_proto(ip_proto::TCP),
            UdpSrc | UdpDst => self.is_proto(ip_proto::UDP),
            SctpSrc | SctpDst => self.is_proto(ip_proto::SCTP),
            Icmpv4Type | Icmpv4Code => self.is_proto(ip_proto::ICMPV4),
            ArpOp | ArpSpa | ArpTpa | ArpSha | ArpTha => self.is_type(ether_type::ARP),
            Ipv6Src | Ipv6Dst | Ipv6Flabel | Ipv6Exthdr => self.is_type(ether_type::IPV6),
            Icmpv6Type | Icmpv6Code => self.is_proto(ip_proto::ICMPV6),
            Ipv6NdTarget => self.is_solicitation() || self.is_advertisement(),
            Ipv6NdSll => self.is_solicitation(),
            Ipv6NdTll => self.is_advertisement(),
            MplsLabel | MplsTc | MplsBos => self.is_mpls(),
            PbbIsid => self.is_type(ether_type::PBB),
        }
    }

    /// Returns `true` if an action other than set-field cannot apply, because the packet is known to be of another kind.
    pub fn contradicts(&self, action: &Action) -> bool {
        let known = self.eth_type.is_some();
        match action {
            Action::SetMplsTtl(_) | Action::DecMplsTtl | Action::PopMpls(_) => {
                known && !self.is_mpls()
            }
            Action::SetNwTtl(_) | Action::DecNwTtl => known && !self.is_ip(),
            Action::PopPbb => known && !self.is_type(ether_type::PBB),
            _ => false,
        }
    }

    fn is_type(&self, eth_type: u16) -> bool {
        self.eth_type == Some(eth_type.into())
    }

    fn is_ip(&self) -> bool {
        self.is_type(ether_type::IPV4) || self.is_type(ether_type::IPV6)
    }

    fn is_mpls(&self) -> bool {
        self.is_type(ether_type::MPLS) || self.is_type(ether_type::MPLS_MULTICAST)
    }

    fn is_proto(&self, ip_proto: u8) -> bool {
        self.ip_proto == Some(ip_proto.into())
    }

    fn is_solicitation(&self) -> bool {
        self.icmpv6_type == Some(NEIGHBOUR_SOLICITATION)
    }

    fn is_advertisement(&self) -> bool {
        self.icmpv6_type == Some(NEIGHBOUR_ADVERTISEMENT)
    }
}
