//! Hosts that move: their cables are taken out of one port and put into another.

use super::{Net, NetError};
use crate::node::{Plug, Port};
use crate::watch::Event;
use crate::{CableId, End, HostId, SwitchId};
use urtica_wire::PortNo;

/// The end of a host's cable that is not the host's.
const FAR_END: usize = 1;

impl Net {
    /// Moves a host: takes its cable out, and puts it into the port of the lowest number of this switch in which no cable is;
    /// there is a new port where the switch has none of that number. Returns the number.
    ///
    /// What is under way in the cable is lost. The switches notice after
    /// [`NetConfig::carrier_delay`](crate::NetConfig::carrier_delay), as they do when a cable is cut, and of a new port at once.
    /// The port that the host has left stays, without a link. A cable that is cut is so still.
    ///
    /// # Errors
    /// [`NetError::NoSuchId`].
    pub fn move_host(&mut self, host: HostId, to: SwitchId) -> Result<PortNo, NetError> {
        self.move_cable(host, to, false)
    }

    /// The same, but the port that the host has left keeps its link, as where the host is a virtual one, or behind a bridge: its switch
    /// does not notice. Frames that leave by that port are gone.
    ///
    /// # Errors
    /// [`NetError::NoSuchId`].
    pub fn move_host_silently(&mut self, host: HostId, to: SwitchId) -> Result<PortNo, NetError> {
        self.move_cable(host, to, true)
    }

    fn move_cable(
        &mut self,
        host: HostId,
        to: SwitchId,
        keeps_link: bool,
    ) -> Result<PortNo, NetError> {
        self.check_host(host)?;
        self.check_switch(to)?;
        let cable = self.hosts[host.place()].cable;
        let slot = self.free_slot(to, cable);
        self.unplug(cable, keeps_link);
        Ok(self.plug(cable, to, slot))
    }

    /// The place of a port that no cable is in.
    fn free_slot(&mut self, switch: SwitchId, cable: CableId) -> usize {
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
            speed_kbps: self.cables[cable.place()].speed_kbps(),
        };
        let slot = node.add_port(port, now);
        self.settle_switch(switch);
        slot
    }

    fn unplug(&mut self, cable: CableId, keeps_link: bool) {
        let unplugged = &mut self.cables[cable.place()];
        unplugged.lose_all(&mut self.kernel);
        let slot = unplugged.slots[FAR_END];
        if let End::Switch(switch, _) = unplugged.ends[FAR_END] {
            self.nodes[switch.place()].ports[slot].plug = None;
            if !keeps_link {
                self.set_link(switch, slot, false);
            }
        }
    }

    fn plug(&mut self, cable: CableId, switch: SwitchId, slot: usize) -> PortNo {
        let port = &mut self.nodes[switch.place()].ports[slot];
        port.plug = Some(Plug {
            cable,
            end: FAR_END,
        });
        let port_no = port.port_no;
        let end = End::Switch(switch, port_no);
        let plugged = &mut self.cables[cable.place()];
        plugged.ends[FAR_END] = end;
        plugged.slots[FAR_END] = slot;
        self.kernel.tell(Event::Moved(cable, end));
        self.look_at_link(cable);
        port_no
    }
}
