//! Switches: their events, and switching them off and on.

use super::{Net, NetError};
use crate::SwitchId;
use crate::frame::Frame;
use crate::kernel::{Due, to_ns};
use crate::watch::Event;
use std::time::Duration;
use urtica_switch::Switch;
use urtica_wire::{DatapathId, Version};

/// A switch's tick interval.
const TICK: Duration = Duration::from_millis(100);

impl Net {
    /// Returns a switch's datapath id.
    ///
    /// # Errors
    /// [`NetError::NoSuchId`].
    pub fn datapath_id(&self, switch: SwitchId) -> Result<DatapathId, NetError> {
        self.check_switch(switch)?;
        Ok(self.nodes[switch.place()].datapath_id)
    }

    /// Returns a switch's name.
    ///
    /// # Errors
    /// [`NetError::NoSuchId`].
    pub fn switch_name(&self, switch: SwitchId) -> Result<&str, NetError> {
        self.check_switch(switch)?;
        Ok(&self.nodes[switch.place()].name)
    }

    /// Returns `true` if a switch is on.
    ///
    /// # Errors
    /// [`NetError::NoSuchId`].
    pub fn is_on(&self, switch: SwitchId) -> Result<bool, NetError> {
        self.check_switch(switch)?;
        Ok(self.nodes[switch.place()].powered.is_some())
    }

    /// Returns `true` if a switch has a controller that has answered its hello.
    ///
    /// # Errors
    /// [`NetError::NoSuchId`].
    pub fn has_controller(&self, switch: SwitchId) -> Result<bool, NetError> {
        self.check_switch(switch)?;
        let powered = self.nodes[switch.place()].powered.as_ref();
        Ok(powered.is_some_and(|powered| powered.switch.has_controller()))
    }

    /// Returns the switch itself, for inspection or manual set-up; `None` while it is off.
    ///
    /// # Errors
    /// [`NetError::NoSuchId`].
    pub fn switch_mut(&mut self, switch: SwitchId) -> Result<Option<&mut Switch>, NetError> {
        self.check_switch(switch)?;
        let powered = self.nodes[switch.place()].powered.as_mut();
        Ok(powered.map(|powered| &mut powered.switch))
    }

    /// Returns `true` if the switches speak this version.
    pub(crate) fn speaks(&self, version: Version) -> bool {
        self.config.switch.versions.contains(&version)
    }

    /// Switches a switch off: its tables, buffered packets and connection are lost, and its links go down.
    ///
    /// # Errors
    /// [`NetError::NoSuchId`].
    pub fn stop_switch(&mut self, switch: SwitchId) -> Result<(), NetError> {
        self.check_switch(switch)?;
        if self.nodes[switch.place()].powered.is_some() {
            self.kernel.tell(Event::SwitchStopped(switch));
            self.cut_connection(switch, "the switch was switched off");
            self.close_remote(switch, "the switch was switched off");
            self.nodes[switch.place()].powered = None;
            self.update_carriers(switch);
        }
        Ok(())
    }

    /// Switches a switch on again, with empty tables.
    ///
    /// # Errors
    /// [`NetError::NoSuchId`].
    pub fn start_switch(&mut self, switch: SwitchId) -> Result<(), NetError> {
        self.check_switch(switch)?;
        if self.nodes[switch.place()].powered.is_none() {
            self.switch_on(switch);
        }
        Ok(())
    }

    /// Switches a switch off and on again at once, so that its tables are empty.
    ///
    /// # Errors
    /// [`NetError::NoSuchId`].
    pub fn restart_switch(&mut self, switch: SwitchId) -> Result<(), NetError> {
        self.stop_switch(switch)?;
        self.start_switch(switch)
    }

    pub(super) fn switch_on(&mut self, switch: SwitchId) {
        let now = self.now_at(switch);
        self.nodes[switch.place()].start(&self.config.switch, now);
        self.kernel.tell(Event::SwitchStarted(switch));
        self.update_carriers(switch);
        self.check_ports(switch);
        // Switches tick at different times.
        let node = &mut self.nodes[switch.place()];
        let (phase, life) = (node.draw.duration(Duration::ZERO..=TICK), node.lives);
        self.kernel.put_in(phase, Due::Tick(switch, life));
        self.connect_soon(switch);
    }

    /// Makes a switch check the carrier of its ports without waiting for its tick.
    pub(super) fn check_ports(&mut self, switch: SwitchId) {
        let now = self.now_at(switch);
        if let Some(powered) = &mut self.nodes[switch.place()].powered {
            // It has no connections yet that could time out.
            powered.switch.handle_timeout(now);
        }
    }

    /// Delivers a frame to a port. Returns it if the switch's queue is full.
    pub(crate) fn deliver_to_switch(
        &mut self,
        switch: SwitchId,
        slot: usize,
        frame: Frame,
    ) -> Result<(), Frame> {
        let Some(powered) = &mut self.nodes[switch.place()].powered else {
            return Err(frame);
        };
        powered.side.push(slot, frame)?;
        if !std::mem::replace(&mut powered.is_woken, true) {
            let delay = self.config.switch_delay.max(Duration::from_nanos(1));
            self.kernel
                .put(self.kernel.now_ns + to_ns(delay), Due::Poll(switch));
        }
        Ok(())
    }

    /// Makes a switch process the frames that have arrived.
    pub(super) fn poll_switch(&mut self, switch: SwitchId) {
        let now = self.now_at(switch);
        if let Some(powered) = &mut self.nodes[switch.place()].powered {
            powered.poll(now);
            self.settle_switch(switch);
        }
    }

    /// Handles a switch's periodic tick.
    pub(super) fn tick_switch(&mut self, switch: SwitchId, life: u16) {
        if self.run_switch_tick(switch, life) {
            self.kernel.put_in(TICK, Due::Tick(switch, life));
        }
    }

    /// Runs a switch's tick, including its port check, if the switch has not been restarted since. Returns whether it did.
    pub(super) fn run_switch_tick(&mut self, switch: SwitchId, life: u16) -> bool {
        let now = self.now_at(switch);
        let node = &mut self.nodes[switch.place()];
        let Some(powered) = node.powered.as_mut().filter(|_| node.lives == life) else {
            return false;
        };
        for (id, reason) in powered.switch.handle_timeout(now) {
            self.close_at_switch(switch, id, &reason.to_string());
        }
        self.settle_switch(switch);
        true
    }

    /// Sends a switch's output: the frames of its ports, and its messages to the controller.
    pub(super) fn settle_switch(&mut self, switch: SwitchId) {
        let mut sent = std::mem::take(&mut self.sent);
        if let Some(powered) = &mut self.nodes[switch.place()].powered {
            powered.take_sent(&mut sent, &mut self.kernel.spare);
        }
        for (slot, frame) in sent.drain(..) {
            match self.nodes[switch.place()].ports[slot as usize].plug {
                Some(plug) => self.send(plug.link, plug.end, frame),
                None => self.kernel.spare.put(frame),
            }
        }
        self.sent = sent;
        self.send_to_controller(switch);
    }

    fn update_carriers(&mut self, switch: SwitchId) {
        for slot in 0..self.nodes[switch.place()].ports.len() {
            if let Some(plug) = self.nodes[switch.place()].ports[slot].plug {
                self.update_carrier(plug.link);
            }
        }
    }

    pub(super) fn check_switch(&self, switch: SwitchId) -> Result<(), NetError> {
        match switch.place() < self.nodes.len() {
            true => Ok(()),
            false => Err(NetError::NoSuchId {
                kind: "switch",
                id: switch.0,
            }),
        }
    }
}
