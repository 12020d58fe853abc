//! Frames between cables, switches and hosts; cables that are cut and repaired.

use super::{Net, NetError};
use crate::cable::{Cable, LinkCounters};
use crate::frame::Frame;
use crate::kernel::Due;
use crate::watch::{Event, Loss};
use crate::{CableId, End, SwitchId};
use urtica_wire::PortNo;

impl Net {
    /// The cable between two hosts or switches, given by name; of several the first of the plan.
    ///
    /// # Errors
    /// [`NetError::NoCable`].
    pub fn cable(&self, a: &str, b: &str) -> Result<CableId, NetError> {
        let is_between = |cable: &CableId| {
            let [one, other] = self.cables[cable.place()].ends.map(|end| self.owner(end));
            (one, other) == (a, b) || (one, other) == (b, a)
        };
        let found = self.cables().find(is_between);
        found.ok_or_else(|| NetError::NoCable(a.to_owned(), b.to_owned()))
    }

    /// What a cable is plugged into.
    ///
    /// # Errors
    /// [`NetError::NoSuchId`].
    pub fn ends(&self, cable: CableId) -> Result<[End; 2], NetError> {
        self.check_cable(cable)?;
        Ok(self.cables[cable.place()].ends)
    }

    /// Whether a cable is cut.
    ///
    /// # Errors
    /// [`NetError::NoSuchId`].
    pub fn is_cut(&self, cable: CableId) -> Result<bool, NetError> {
        self.check_cable(cable)?;
        Ok(self.cables[cable.place()].is_cut)
    }

    /// What went through a cable: the link that begins at each of its ends.
    ///
    /// # Errors
    /// [`NetError::NoSuchId`].
    pub fn link_counters(&self, cable: CableId) -> Result<[LinkCounters; 2], NetError> {
        self.check_cable(cable)?;
        Ok([0, 1].map(|from| self.cables[cable.place()].counters(from)))
    }

    /// How many frames are in cables, or wait for switches.
    pub fn frames_under_way(&self) -> usize {
        let in_cables = self.cables.iter().map(Cable::under_way);
        let powered = self.nodes.iter().filter_map(|node| node.powered.as_ref());
        let waiting = powered.map(|powered| powered.side.waiting());
        in_cables.sum::<usize>() + waiting.sum::<usize>()
    }

    /// How many frames have come to a switch's port that the switch has not taken in yet.
    pub(crate) fn waiting_at(&self, switch: SwitchId, port_no: PortNo) -> usize {
        let node = &self.nodes[switch.place()];
        let slot = node.ports.iter().position(|port| port.port_no == port_no);
        let waiting = slot.zip(node.powered.as_ref());
        waiting.map_or(0, |(slot, powered)| powered.side.waiting_at(slot))
    }

    /// Cuts a cable: what is under way is lost, and the ports at both ends have no link, as their switches notice after
    /// [`NetConfig::carrier_delay`](crate::NetConfig::carrier_delay).
    ///
    /// # Errors
    /// [`NetError::NoSuchId`].
    pub fn cut(&mut self, cable: CableId) -> Result<(), NetError> {
        self.set_cut(cable, true)
    }

    /// Repairs a cable.
    ///
    /// # Errors
    /// [`NetError::NoSuchId`].
    pub fn repair(&mut self, cable: CableId) -> Result<(), NetError> {
        self.set_cut(cable, false)
    }

    /// Has a cable lose frames with this probability, from 0 to 1.
    ///
    /// # Errors
    /// [`NetError::NoSuchId`].
    pub fn set_loss(&mut self, cable: CableId, probability: f64) -> Result<(), NetError> {
        self.check_cable(cable)?;
        self.cables[cable.place()].loss = [probability; 2];
        Ok(())
    }

    /// The same for frames that are sent at one end of it, the first or the second of [`Net::ends`]. With 1, one way is dead, and no port
    /// tells.
    ///
    /// # Errors
    /// [`NetError::NoSuchId`].
    pub fn set_loss_from(
        &mut self,
        cable: CableId,
        end: usize,
        probability: f64,
    ) -> Result<(), NetError> {
        self.check_cable(cable)?;
        self.cables[cable.place()].loss[end.min(1)] = probability;
        Ok(())
    }

    fn set_cut(&mut self, cable: CableId, is_cut: bool) -> Result<(), NetError> {
        self.check_cable(cable)?;
        if self.cables[cable.place()].is_cut != is_cut {
            self.cables[cable.place()].is_cut = is_cut;
            self.kernel.tell(match is_cut {
                true => Event::Cut(cable),
                false => Event::Repaired(cable),
            });
            self.look_at_link(cable);
        }
        Ok(())
    }

    /// Brings what both ends know of a cable up to date.
    pub(super) fn look_at_link(&mut self, cable: CableId) {
        let cable = &mut self.cables[cable.place()];
        let powered = |end: &End| match end {
            End::Switch(switch, _) => self.nodes[switch.place()].powered.is_some(),
            End::Host(_) => true,
        };
        cable.has_link = !cable.is_cut && cable.ends.iter().all(powered);
        let (ends, slots, has_link) = (cable.ends, cable.slots, cable.has_link);
        if !has_link {
            cable.lose_all(&mut self.kernel);
        }
        for (end, slot) in ends.into_iter().zip(slots) {
            if let End::Switch(switch, _) = end {
                self.set_link(switch, slot, has_link);
            }
        }
    }

    /// Says whether a port has a link; its switch notices in a while.
    pub(super) fn set_link(&mut self, switch: SwitchId, slot: usize, has_link: bool) {
        let node = &self.nodes[switch.place()];
        if let Some(powered) = &node.powered {
            powered.side.set_link(slot, has_link);
            let carrier = Due::Carrier(switch, node.lives);
            self.kernel.put_in(self.config.carrier_delay, carrier);
        }
    }

    /// Hands over what has come out of a cable.
    pub(super) fn deliver(&mut self, cable: CableId, from: usize) {
        let place = cable.place();
        self.cables[place].leave_agenda(from);
        let end = self.cables[place].ends[1 - from];
        while let Some(frame) = self.cables[place].take_arrived(from, &mut self.kernel) {
            match end {
                End::Host(host) => self.deliver_to_host(host, frame),
                End::Switch(switch, _) => {
                    let slot = self.cables[place].slots[1 - from];
                    if let Err(frame) = self.deliver_to_switch(switch, slot, frame) {
                        let cable = &mut self.cables[place];
                        cable.lose(from, Loss::SwitchBusy, frame, &mut self.kernel);
                    }
                }
            }
        }
        self.cables[place].enter_agenda(from, &mut self.kernel);
    }

    /// Sends a frame into a cable.
    pub(super) fn send(&mut self, cable: CableId, from: usize, frame: Frame) {
        self.cables[cable.place()].send(from, frame, &mut self.kernel);
    }

    pub(super) fn check_cable(&self, cable: CableId) -> Result<(), NetError> {
        match cable.place() < self.cables.len() {
            true => Ok(()),
            false => Err(NetError::NoSuchId {
                kind: "cable",
                id: cable.0,
            }),
        }
    }

    /// The name of the host or switch.
    fn owner(&self, end: End) -> &str {
        match end {
            End::Switch(switch, _) => &self.nodes[switch.place()].name,
            End::Host(host) => &self.hosts[host.place()].host.name,
        }
    }
}
