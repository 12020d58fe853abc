//! Setting header fields (1.3.5 section 7.2.5, OFPAT_SET_FIELD).

use crate::Packet;
use crate::layout::Transport;
use urtica_wire::OxmField;

impl Packet {
    /// Sets a field that the packet has. The input ports, the metadata and `ipv6_exthdr` cannot be set.
    pub(super) fn set_field(&mut self, field: OxmField, value: u128) {
        match field {
            OxmField::TunnelId => self.tunnel_id = value as u64,
            OxmField::IpProto => self.set_ip_proto(value as u8),
            _ => self.set_in_place(field, value),
        }
        if tells_what_follows(field) {
            self.frame_mut();
        }
    }

    /// Executes 1.0's `set_tp_src`.
    pub(super) fn set_tp_src(&mut self, port: u16) {
        self.set_of_transport(port, |transport| match transport {
            Transport::Tcp => Some(OxmField::TcpSrc),
            Transport::Udp => Some(OxmField::UdpSrc),
            Transport::Icmpv4 => Some(OxmField::Icmpv4Type),
            Transport::Sctp | Transport::Icmpv6(_) => None,
        });
    }

    /// Executes 1.0's `set_tp_dst`.
    pub(super) fn set_tp_dst(&mut self, port: u16) {
        self.set_of_transport(port, |transport| match transport {
            Transport::Tcp => Some(OxmField::TcpDst),
            Transport::Udp => Some(OxmField::UdpDst),
            Transport::Icmpv4 => Some(OxmField::Icmpv4Code),
            Transport::Sctp | Transport::Icmpv6(_) => None,
        });
    }

    fn set_of_transport(&mut self, value: u16, field: fn(Transport) -> Option<OxmField>) {
        let transport = self.layout().upper().and_then(|upper| upper.transport);
        if let Some(field) = transport.and_then(field) {
            self.set_field(field, value.into());
        }
    }

    fn set_in_place(&mut self, field: OxmField, value: u128) {
        let layout = self.layout();
        let Some(place) = layout.place(field) else {
            return;
        };
        let sums = layout.sums_over(field);
        match field {
            OxmField::SctpSrc | OxmField::SctpDst => self.rewrite_sctp(place, value),
            _ => self.rewrite(place, value, sums),
        }
    }

    /// Sets the protocol, and updates the transport's checksum: the pseudo header has it as the second byte of a word.
    fn set_ip_proto(&mut self, proto: u8) {
        let Some(upper) = self.layout().upper().copied() else {
            return;
        };
        if let Some(sum) = self.layout().pseudo_header_sum() {
            sum.update(self.settled_frame_mut(), &[0, upper.proto], &[0, proto]);
        }
        self.set_in_place(OxmField::IpProto, proto.into());
    }
}

/// Returns `true` if a field determines the next header, so that setting it changes the layout.
fn tells_what_follows(field: OxmField) -> bool {
    matches!(
        field,
        OxmField::EthType | OxmField::IpProto | OxmField::Icmpv6Type | OxmField::Icmpv6Code
    )
}

#[cfg(test)]
mod tests;
