//! Sends frames from hosts, in their VLANs or outside.

use crate::{HostId, Net, NetError};
use urtica_wire::MacAddr;
use urtica_wire::packet::{Ethernet, Vlan, ether_type};

/// Sends a frame with this header; `write` appends the rest.
pub(super) fn send_from(
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

/// Sends a frame in the host's VLAN.
pub(super) fn send_tagged(
    net: &mut Net,
    host: HostId,
    dst: MacAddr,
    src: MacAddr,
    ether_type: u16,
    write: impl FnOnce(&mut Vec<u8>),
) -> Result<(), NetError> {
    let Some(vid) = net.vlan(host)? else {
        return send_from(net, host, dst, src, ether_type, write);
    };
    send_from(net, host, dst, src, ether_type::VLAN, |frame| {
        let tag = Vlan {
            pcp: 0,
            cfi: false,
            vid,
            ether_type,
        };
        tag.write(frame);
        write(frame);
    })
}
