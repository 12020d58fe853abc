//! Moving hosts: their links are disconnected from one port and connected to another.

use super::{Net, NetError};
use crate::node::{Plug, Port};
use crate::watch::Event;
use crate::{End, HostId, LinkId, SwitchId};
use urtica_wire::PortNo;

/// The index of the end of a host's link at the switch.
const SWITCH_END: usize = 1;

impl Net {
    /// Moves a host: disconnects it, and connects it to the lowest free port of this switch, or to a new port if no port is
    /// free. Returns the port number.
    ///
    /// Frames in flight on the link are lost. The switches notice the move after
    /// [`NetConfig::carrier_delay`](crate::NetConfig::carrier_delay), as when a link is cut, but a new port at once. The old
    /// port remains, without a link. A cut link remains cut.
    ///
    /// # Errors
    /// [`NetError::NoSuchId`].
    pub fn move_host(&mut self, host: HostId, to: SwitchId) -> Result<PortNo, NetError> {
        self.move_link(host, to, false)
    }

    /// Like [`Net::move_host`], but the old port keeps its carrier, as with a virtual host or one behind a bridge, so its
    /// switch does not notice. Frames sent to that port are lost.
    ///
    /// # Errors
    /// [`NetError::NoSuchId`].
    pub fn move_host_silently(&mut self, host: HostId, to: SwitchId) -> Result<PortNo, NetError> {
        self.move_link(host, to, true)
    }

    fn move_link(
        &mut self,
        host: HostId,
        to: SwitchId,
        keeps_carrier: bool,
    ) -> Result<PortNo, NetError> {
        self.check_host(host)?;
        self.check_switch(to)?;
        let link = self.hosts[host.place()].link;
        let slot = self.free_slot(to, link);
        self.unplug(link, keeps_carrier);
        Ok(self.plug(link, to, slot))
    }

    /// Returns the index of a port without a link.
    fn free_slot(&mut self, switch: SwitchId, link: LinkId) -> usize {
        let now = self.now_at(switch);
        let node = &mut self.nodes[switch.place()];
        let mut port_no = PortNo(1);
        while let Some(slot) = node.ports.iter().position(|port| port.port_no == port_no) {
            if node.ports[slot].plug.is_none() {
                return slot;
            }
            port_no.0 += 1;
        }
        let port = Port {
            port_no,
            plug: None,
            speed_kbps: self.links[link.place()].speed_kbps(),
        };
        let slot = node.add_port(port, now);
        self.settle_switch(switch);
        slot
    }

    fn unplug(&mut self, link: LinkId, keeps_carrier: bool) {
        let unplugged = &mut self.links[link.place()];
        unplugged.lose_all(&mut self.kernel);
        let slot = unplugged.slots[SWITCH_END];
        if let End::Switch(switch, _) = unplugged.ends[SWITCH_END] {
            self.nodes[switch.place()].ports[slot].plug = None;
            if !keeps_carrier {
                self.set_carrier(switch, slot, false);
            }
        }
    }

    fn plug(&mut self, link: LinkId, switch: SwitchId, slot: usize) -> PortNo {
        let port = &mut self.nodes[switch.place()].ports[slot];
        port.plug = Some(Plug {
            link,
            end: SWITCH_END,
        });
        let port_no = port.port_no;
        let end = End::Switch(switch, port_no);
        let plugged = &mut self.links[link.place()];
        plugged.ends[SWITCH_END] = end;
        plugged.slots[SWITCH_END] = slot;
        self.kernel.tell(Event::Moved(link, end));
        self.update_carrier(link);
        port_no
    }
}
