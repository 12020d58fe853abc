//! Frames between links, switches and hosts; cutting and repairing links.

use super::{Net, NetError};
use crate::frame::Frame;
use crate::kernel::Due;
use crate::link::{Link, LinkCounters};
use crate::watch::{Event, Loss};
use crate::{End, LinkId, SwitchId};
use urtica_wire::PortNo;

impl Net {
    /// Returns the link between two hosts or switches, by name; if there are several, the first in the plan.
    ///
    /// # Errors
    /// [`NetError::NoLink`].
    pub fn link(&self, a: &str, b: &str) -> Result<LinkId, NetError> {
        let is_between = |link: &LinkId| {
            let [one, other] = self.links[link.place()].ends.map(|end| self.owner(end));
            (one, other) == (a, b) || (one, other) == (b, a)
        };
        let found = self.links().find(is_between);
        found.ok_or_else(|| NetError::NoLink(a.to_owned(), b.to_owned()))
    }

    /// Returns the ends of a link.
    ///
    /// # Errors
    /// [`NetError::NoSuchId`].
    pub fn ends(&self, link: LinkId) -> Result<[End; 2], NetError> {
        self.check_link(link)?;
        Ok(self.links[link.place()].ends)
    }

    /// Returns `true` if a link is cut.
    ///
    /// # Errors
    /// [`NetError::NoSuchId`].
    pub fn is_cut(&self, link: LinkId) -> Result<bool, NetError> {
        self.check_link(link)?;
        Ok(self.links[link.place()].is_cut)
    }

    /// Returns the counters of a link, for each sending end.
    ///
    /// # Errors
    /// [`NetError::NoSuchId`].
    pub fn link_counters(&self, link: LinkId) -> Result<[LinkCounters; 2], NetError> {
        self.check_link(link)?;
        Ok([0, 1].map(|from| self.links[link.place()].counters(from)))
    }

    /// Returns the number of frames in links or waiting for switches.
    pub fn frames_under_way(&self) -> usize {
        let in_links = self.links.iter().map(Link::under_way);
        let powered = self.nodes.iter().filter_map(|node| node.powered.as_ref());
        let waiting = powered.map(|powered| powered.side.waiting());
        in_links.sum::<usize>() + waiting.sum::<usize>()
    }

    /// Returns the number of frames that have reached a switch's port but have not been processed.
    pub(crate) fn waiting_at(&self, switch: SwitchId, port_no: PortNo) -> usize {
        let node = &self.nodes[switch.place()];
        let slot = node.ports.iter().position(|port| port.port_no == port_no);
        let waiting = slot.zip(node.powered.as_ref());
        waiting.map_or(0, |(slot, powered)| powered.side.waiting_at(slot))
    }

    /// Cuts a link: frames in flight are lost, and the ports at both ends lose carrier, which their switches notice after
    /// [`NetConfig::carrier_delay`](crate::NetConfig::carrier_delay).
    ///
    /// # Errors
    /// [`NetError::NoSuchId`].
    pub fn cut(&mut self, link: LinkId) -> Result<(), NetError> {
        self.set_cut(link, true)
    }

    /// Repairs a link.
    ///
    /// # Errors
    /// [`NetError::NoSuchId`].
    pub fn repair(&mut self, link: LinkId) -> Result<(), NetError> {
        self.set_cut(link, false)
    }

    /// Makes a link lose frames with this probability, from 0 to 1.
    ///
    /// # Errors
    /// [`NetError::NoSuchId`].
    pub fn set_loss(&mut self, link: LinkId, probability: f64) -> Result<(), NetError> {
        self.check_link(link)?;
        self.links[link.place()].loss = [probability; 2];
        Ok(())
    }

    /// Sets the loss of frames sent at one end, the first or the second of [`Net::ends`]. If it is 1, no frame arrives in that
    /// direction, and no port reports it.
    ///
    /// # Errors
    /// [`NetError::NoSuchId`].
    pub fn set_loss_from(
        &mut self,
        link: LinkId,
        end: usize,
        probability: f64,
    ) -> Result<(), NetError> {
        self.check_link(link)?;
        self.links[link.place()].loss[end.min(1)] = probability;
        Ok(())
    }

    fn set_cut(&mut self, link: LinkId, is_cut: bool) -> Result<(), NetError> {
        self.check_link(link)?;
        if self.links[link.place()].is_cut != is_cut {
            self.links[link.place()].is_cut = is_cut;
            self.kernel.tell(match is_cut {
                true => Event::Cut(link),
                false => Event::Repaired(link),
            });
            self.update_carrier(link);
        }
        Ok(())
    }

    /// Updates the carrier at both ends of a link.
    pub(super) fn update_carrier(&mut self, link: LinkId) {
        let link = &mut self.links[link.place()];
        let powered = |end: &End| match end {
            End::Switch(switch, _) => self.nodes[switch.place()].powered.is_some(),
            End::Host(_) => true,
        };
        link.has_carrier = !link.is_cut && link.ends.iter().all(powered);
        let (ends, slots, has_carrier) = (link.ends, link.slots, link.has_carrier);
        if !has_carrier {
            link.lose_all(&mut self.kernel);
        }
        for (end, slot) in ends.into_iter().zip(slots) {
            if let End::Switch(switch, _) = end {
                self.set_carrier(switch, slot, has_carrier);
            }
        }
    }

    /// Sets whether a port has carrier; its switch notices after a while.
    pub(super) fn set_carrier(&mut self, switch: SwitchId, slot: usize, has_carrier: bool) {
        let node = &self.nodes[switch.place()];
        if let Some(powered) = &node.powered {
            powered.side.set_carrier(slot, has_carrier);
            let carrier = Due::Carrier(switch, node.lives);
            self.kernel.put_in(self.config.carrier_delay, carrier);
        }
    }

    /// Delivers the frames that have arrived from a link.
    pub(super) fn deliver(&mut self, link: LinkId, from: usize) {
        let place = link.place();
        self.links[place].leave_agenda(from);
        let end = self.links[place].ends[1 - from];
        while let Some(frame) = self.links[place].take_arrived(from, &mut self.kernel) {
            match end {
                End::Host(host) => self.deliver_to_host(host, frame),
                End::Switch(switch, _) => {
                    let slot = self.links[place].slots[1 - from];
                    if let Err(frame) = self.deliver_to_switch(switch, slot, frame) {
                        let link = &mut self.links[place];
                        link.lose(from, Loss::SwitchBusy, frame, &mut self.kernel);
                    }
                }
            }
        }
        self.links[place].enter_agenda(from, &mut self.kernel);
    }

    /// Sends a frame into a link.
    pub(super) fn send(&mut self, link: LinkId, from: usize, frame: Frame) {
        self.links[link.place()].send(from, frame, &mut self.kernel);
    }

    pub(super) fn check_link(&self, link: LinkId) -> Result<(), NetError> {
        match link.place() < self.links.len() {
            true => Ok(()),
            false => Err(NetError::NoSuchId {
                kind: "link",
                id: link.0,
            }),
        }
    }

    /// Returns the name of the host or switch at an end.
    fn owner(&self, end: End) -> &str {
        match end {
            End::Switch(switch, _) => &self.nodes[switch.place()].name,
            End::Host(host) => &self.hosts[host.place()].host.name,
        }
    }
}
