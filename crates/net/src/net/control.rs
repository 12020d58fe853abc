//! The controller, and the channels between it and the switches.

use super::{Net, NetError};
use crate::SwitchId;
use crate::channel::{Content, Delays, Segment, Side};
use crate::kernel::{Due, Way, to_ns};
use crate::watch::Event;
use std::time::Duration;
use urtica_controller::{ConnectionError, Controller, Embedded, Network, ProgramId, ProgramSlot};

/// The controller's tick interval.
const TICK: Duration = Duration::from_millis(100);

/// The time after which a side that does not read is checked again.
const PATIENCE: Duration = Duration::from_millis(1);

/// The controller, if there is one.
pub(super) struct Control {
    controller: Option<Embedded>,
    /// Whether a controller was ever started: only then do switches try to connect.
    is_wanted: bool,
    /// Whether the controller's processing is scheduled.
    is_woken: bool,
    /// The time at which the controller's next turn is scheduled.
    timer_ns: u64,
    /// The offset of the controller's clock from the network's.
    ahead: Duration,
}

impl Control {
    /// Creates a state without a controller, in which switches do not try to connect.
    pub fn none() -> Self {
        Self {
            controller: None,
            is_wanted: false,
            is_woken: false,
            timer_ns: u64::MAX,
            ahead: Duration::ZERO,
        }
    }
}

impl Net {
    /// Starts a controller, replacing the running one. Switches try to connect from then on.
    ///
    /// # Errors
    /// The errors of [`Controller::embed`].
    pub fn start_controller(
        &mut self,
        controller: Controller,
    ) -> Result<(), urtica_controller::Error> {
        self.stop_controller();
        self.control.controller = Some(controller.embed()?);
        self.kernel.tell(Event::ControllerStarted);
        if !std::mem::replace(&mut self.control.is_wanted, true) {
            self.switches().for_each(|switch| self.connect_soon(switch));
            self.kernel.put_in(TICK, Due::ControllerTick);
        }
        self.wake_controller();
        Ok(())
    }

    /// Ends the controller like a crash: all connections break, and bytes in flight are lost.
    pub fn stop_controller(&mut self) {
        if self.control.controller.is_none() {
            return;
        }
        self.kernel.tell(Event::ControllerStopped);
        for switch in self.switches() {
            self.cut_connection(switch, "the controller was stopped");
            self.channels[switch.place()].half_open.clear();
        }
        self.control.controller = None;
        self.peers.clear();
    }

    /// Returns the numbers of the controller's programs, in the order in which they receive messages; empty without a
    /// controller.
    pub fn program_ids(&self) -> Vec<ProgramId> {
        let controller = self.control.controller.as_ref();
        controller.map_or_else(Vec::new, Embedded::program_ids)
    }

    /// Makes the controller run exactly these programs: see
    /// [`Running::set_programs`](urtica_controller::Running::set_programs).
    ///
    /// # Errors
    /// The errors of [`Embedded::set_programs`]; [`urtica_controller::Error::NoProgram`] without a controller.
    pub fn set_programs(
        &mut self,
        slots: &[ProgramSlot],
    ) -> Result<Vec<ProgramId>, urtica_controller::Error> {
        let now = self.controller_now();
        let Some(controller) = &mut self.control.controller else {
            return Err(urtica_controller::Error::NoProgram);
        };
        let ids = controller.set_programs(slots, now)?;
        self.wake_controller();
        Ok(ids)
    }

    /// Returns the switches that the controller knows; `None` without a controller.
    pub fn controller(&self) -> Option<&Network> {
        self.control.controller.as_ref().map(Embedded::network)
    }

    /// Returns `true` if switches try to connect to a controller, in this process or another.
    pub fn has_control_plane(&self) -> bool {
        self.control.is_wanted || self.has_remotes()
    }

    /// Returns the number of switches with a connection, and the number of connections of the controller.
    pub fn connections(&self) -> (usize, usize) {
        let channels = self.channels.iter();
        let of_switches = channels
            .clone()
            .filter(|channel| channel.switch_side.is_some());
        let of_controller = channels.map(|channel| {
            usize::from(channel.controller_side.is_some()) + channel.half_open.len()
        });
        (of_switches.count(), of_controller.sum())
    }

    /// Returns the number of bytes in flight on control channels.
    pub fn control_bytes_under_way(&self) -> usize {
        self.channels
            .iter()
            .map(|channel| channel.under_way_bytes())
            .sum()
    }

    /// Breaks a switch's connection to the controller; bytes in flight are lost. The switch reconnects later.
    ///
    /// # Errors
    /// [`NetError::NoSuchId`].
    pub fn break_connection(&mut self, switch: SwitchId) -> Result<(), NetError> {
        self.check_switch(switch)?;
        self.cut_connection(switch, "the connection broke");
        Ok(())
    }

    /// Stalls a switch's control channel for `time`; then everything is delivered, as by TCP after a failure on its path.
    ///
    /// # Errors
    /// [`NetError::NoSuchId`].
    pub fn stall_connection(&mut self, switch: SwitchId, time: Duration) -> Result<(), NetError> {
        self.check_switch(switch)?;
        let until_ns = self.kernel.now_ns.saturating_add(to_ns(time));
        let channel = &mut self.channels[switch.place()];
        channel.stalled_until_ns = channel.stalled_until_ns.max(until_ns);
        Ok(())
    }

    /// Schedules a switch's attempt to connect, if a controller was ever started.
    pub(super) fn connect_soon(&mut self, switch: SwitchId) {
        if self.control.is_wanted {
            let within = self.config.channel.connect_within;
            let channel = &mut self.channels[switch.place()];
            let delay = channel.draw.duration(Duration::ZERO..=within);
            self.connect_in(switch, delay);
        }
    }

    /// Handles a switch's attempt to connect.
    pub(super) fn connect(&mut self, switch: SwitchId) {
        let (now, switch_now) = (self.now(), self.now_at(switch));
        let channel = &mut self.channels[switch.place()];
        if channel.next_attempt_ns != self.kernel.now_ns || channel.switch_side.is_some() {
            return;
        }
        let is_reachable =
            channel.stalled_until_ns <= self.kernel.now_ns && self.control.controller.is_some();
        let Some(powered) = &mut self.nodes[switch.place()].powered else {
            return;
        };
        if !is_reachable {
            return self.connect_later(switch);
        }
        let id = powered.switch.connect("the controller".into(), switch_now);
        let number = channel.open(id, now);
        self.kernel.tell(Event::Connected(switch));
        self.put_segment(switch, Way::ToController, number, Content::Open);
        self.settle_switch(switch);
    }

    /// Delivers the segments that have arrived on a control channel.
    pub(super) fn deliver_control(&mut self, switch: SwitchId, way: Way) {
        let now_ns = self.kernel.now_ns;
        self.channels[switch.place()]
            .direction(way)
            .under_way
            .leave_agenda();
        while self.is_delivered(switch, way) {
            let direction = self.channels[switch.place()].direction(way);
            let Some(segment) = direction.take_due(now_ns) else {
                break;
            };
            match way {
                Way::ToSwitch => self.hand_to_switch(switch, segment),
                Way::ToController => self.hand_to_controller(switch, segment),
            }
        }
        let patience_ns = match self.is_delivered(switch, way) {
            true => 0,
            false => to_ns(PATIENCE),
        };
        if let Some(at_ns) = self.channels[switch.place()]
            .direction(way)
            .under_way
            .next_on_agenda()
        {
            self.kernel
                .put(at_ns.max(now_ns + patience_ns), Due::Channel(switch, way));
        }
        self.settle_switch(switch);
        self.send_to_switch(switch);
    }

    /// Makes the controller process its input.
    pub(super) fn take_controller_turn(&mut self) {
        self.control.is_woken = false;
        self.run_controller(Embedded::poll);
    }

    /// Handles the controller's tick.
    pub(super) fn tick_controller(&mut self) {
        self.run_controller(Embedded::handle_timeout);
        self.tick_second_controller();
        self.kernel.put_in(TICK, Due::ControllerTick);
    }

    /// Sends a switch's output to the controller, including the rest of long replies.
    pub(super) fn send_to_controller(&mut self, switch: SwitchId) {
        let now = self.now_at(switch);
        loop {
            self.send_output_to_controller(switch);
            let powered = self.nodes[switch.place()].powered.as_mut();
            if !powered.is_some_and(|powered| powered.switch.poll_output(now)) {
                return;
            }
        }
    }

    fn send_output_to_controller(&mut self, switch: SwitchId) {
        let channel = &mut self.channels[switch.place()];
        let Some((side, powered)) = channel
            .switch_side
            .zip(self.nodes[switch.place()].powered.as_mut())
        else {
            return;
        };
        let Some(output) = powered
            .switch
            .output(side.id)
            .filter(|output| !output.is_empty())
        else {
            return;
        };
        let delays = Delays {
            config: &self.config.channel,
            now_ns: self.kernel.now_ns,
            stalled_until_ns: channel.stalled_until_ns,
        };
        if let Some(at_ns) = channel.to_controller.send(side.number, output, delays) {
            self.kernel
                .put(at_ns, Due::Channel(switch, Way::ToController));
        }
    }

    /// Closes a connection at its switch, after sending its remaining output.
    pub(super) fn close_at_switch(
        &mut self,
        switch: SwitchId,
        id: urtica_switch::ConnectionId,
        reason: &str,
    ) {
        self.send_to_controller(switch);
        let now = self.now_at(switch);
        let channel = &mut self.channels[switch.place()];
        let Some(side) = channel.switch_side.take_if(|side| side.id == id) else {
            return self.close_remote(switch, reason);
        };
        if let Some(powered) = &mut self.nodes[switch.place()].powered {
            powered.switch.disconnect(id, now);
        }
        self.put_segment(switch, Way::ToController, side.number, Content::Close);
        self.kernel.tell(Event::Disconnected(switch, reason));
        self.connect_later(switch);
    }

    /// Breaks a connection for both sides.
    pub(super) fn cut_connection(&mut self, switch: SwitchId, reason: &str) {
        self.channels[switch.place()].clear();
        self.drop_controller_side(switch);
        self.drop_switch_side(switch, reason);
    }

    /// Breaks a connection for the controller.
    pub(super) fn drop_controller_side(&mut self, switch: SwitchId) {
        let now = self.controller_now();
        let channel = &mut self.channels[switch.place()];
        if let Some(side) = channel.controller_side.take() {
            if let Some(controller) = &mut self.control.controller {
                controller.disconnect(side.id, now);
                self.wake_controller();
            }
        }
    }

    /// Breaks a connection for its switch.
    pub(super) fn drop_switch_side(&mut self, switch: SwitchId, reason: &str) {
        let now = self.now_at(switch);
        if let Some(side) = self.channels[switch.place()].switch_side.take() {
            if let Some(powered) = &mut self.nodes[switch.place()].powered {
                powered.switch.disconnect(side.id, now);
            }
            self.kernel.tell(Event::Disconnected(switch, reason));
            self.connect_later(switch);
        }
    }

    /// Returns the time of the controller's clock.
    fn controller_now(&self) -> Duration {
        self.now() + self.control.ahead
    }

    /// Advances the controller's clock by a jump.
    pub(super) fn jump_controller(&mut self, by: Duration) {
        self.control.ahead += by;
        self.wake_controller();
    }

    fn connect_later(&mut self, switch: SwitchId) {
        let now = self.now();
        let delay = self.channels[switch.place()].next_delay(now);
        self.connect_in(switch, delay);
    }

    fn connect_in(&mut self, switch: SwitchId, delay: Duration) {
        let at_ns = self.kernel.now_ns + to_ns(delay);
        self.channels[switch.place()].next_attempt_ns = at_ns;
        self.kernel.put(at_ns, Due::Connect(switch));
    }

    /// Returns `true` if the receiving side reads.
    fn is_delivered(&self, switch: SwitchId, way: Way) -> bool {
        let channel = &self.channels[switch.place()];
        match way {
            Way::ToSwitch if !channel.is_read(self.kernel.now_ns) => false,
            Way::ToSwitch => match (&self.nodes[switch.place()].powered, channel.switch_side) {
                (Some(powered), Some(side)) => powered.switch.wants_input(side.id),
                _ => true,
            },
            Way::ToController => match (&self.control.controller, channel.controller_side) {
                (Some(controller), Some(side)) => controller.wants_input(side.id),
                _ => true,
            },
        }
    }

    fn hand_to_switch(&mut self, switch: SwitchId, segment: Segment) {
        let (now, now_ns) = (self.now_at(switch), self.kernel.now_ns);
        let channel = &mut self.channels[switch.place()];
        let side = channel.switch_side;
        if let Content::Bytes(bytes) = &segment.content {
            channel.note_read(bytes.len(), now_ns);
        }
        let Some(side) = side.filter(|side| side.number == segment.number) else {
            return;
        };
        let Some(powered) = &mut self.nodes[switch.place()].powered else {
            return;
        };
        let ended = match segment.content {
            Content::Open => return,
            Content::Close => Err("the controller closed it".to_owned()),
            Content::Bytes(bytes) => {
                self.kernel.tell(Event::ToSwitch(switch, &bytes));
                let handled = powered.switch.handle_input(side.id, &bytes, now);
                handled.map_err(|error| error.to_string())
            }
        };
        if let Err(reason) = ended {
            self.close_at_switch(switch, side.id, &reason);
        }
    }

    fn hand_to_controller(&mut self, switch: SwitchId, segment: Segment) {
        let now = self.controller_now();
        let Some(controller) = &mut self.control.controller else {
            return;
        };
        let channel = &mut self.channels[switch.place()];
        let side = channel
            .controller_side
            .filter(|side| side.number == segment.number);
        match (segment.content, side) {
            (Content::Open, _) => {
                let id = controller.connect(self.nodes[switch.place()].name.clone(), now);
                let number = segment.number;
                channel.controller_side = Some(Side { number, id });
            }
            (Content::Close, Some(side)) => {
                channel.controller_side = None;
                controller.disconnect(side.id, now);
            }
            (Content::Bytes(bytes), Some(side)) => {
                self.kernel.tell(Event::ToController(switch, &bytes));
                if controller.handle_input(side.id, &bytes, now).is_err() {
                    self.close_at_controller(side.id);
                }
            }
            // Like a reset in TCP: the switch learns that the other end does not exist.
            (Content::Bytes(_), None) => {
                self.put_segment(switch, Way::ToSwitch, segment.number, Content::Close);
            }
            (Content::Close, None) => {}
        }
        self.wake_controller();
    }

    /// Handles a connection that the controller has closed.
    fn close_at_controller(&mut self, id: urtica_controller::ConnectionId) {
        let sides = self.channels.iter().map(|channel| channel.controller_side);
        let found = (0..).zip(sides).find_map(|(number, side)| {
            let side = side.filter(|side| side.id == id)?;
            Some((SwitchId(number), side))
        });
        if let Some((switch, side)) = found {
            self.channels[switch.place()].controller_side = None;
            self.put_segment(switch, Way::ToSwitch, side.number, Content::Close);
        }
        self.forget_half_open(id);
        self.forget_peer(id);
    }

    /// Connects a peer to the controller, if one is running.
    pub(super) fn connect_peer(&mut self, name: &str) -> Option<urtica_controller::ConnectionId> {
        let now = self.controller_now();
        let id = self
            .control
            .controller
            .as_mut()?
            .connect(name.to_owned(), now);
        self.wake_controller();
        Some(id)
    }

    /// Passes bytes from a peer without a channel to the controller.
    pub(super) fn say_to_controller(&mut self, id: urtica_controller::ConnectionId, bytes: &[u8]) {
        let now = self.controller_now();
        if let Some(controller) = &mut self.control.controller {
            let taken = controller.handle_input(id, bytes, now);
            self.wake_controller();
            if taken.is_err() {
                self.close_at_controller(id);
            }
        }
    }

    /// Removes and returns the controller's output to a peer without a channel.
    pub(super) fn take_output(&mut self, id: urtica_controller::ConnectionId) -> Vec<u8> {
        let controller = self.control.controller.as_mut();
        let output = controller.and_then(|controller| controller.output(id));
        output.map(std::mem::take).unwrap_or_default()
    }

    /// Handles a peer without a channel that has closed its connection.
    pub(super) fn disconnect_peer(&mut self, id: urtica_controller::ConnectionId) {
        let now = self.controller_now();
        if let Some(controller) = &mut self.control.controller {
            controller.disconnect(id, now);
            self.wake_controller();
        }
    }

    /// Schedules the controller's processing after all other events of this moment.
    fn wake_controller(&mut self) {
        if !std::mem::replace(&mut self.control.is_woken, true) {
            self.kernel.put(self.kernel.now_ns, Due::Controller);
        }
    }

    fn run_controller(
        &mut self,
        run: fn(&mut Embedded, Duration) -> Vec<(urtica_controller::ConnectionId, ConnectionError)>,
    ) {
        let now = self.controller_now();
        let Some(controller) = &mut self.control.controller else {
            return;
        };
        for (id, _) in run(controller, now) {
            self.close_at_controller(id);
        }
        self.drain_half_open();
        self.serve_peers();
        self.switches()
            .for_each(|switch| self.send_to_switch(switch));
        self.set_timer();
    }

    /// Discards the controller's output to connections that the switch has lost.
    fn drain_half_open(&mut self) {
        let Some(controller) = &mut self.control.controller else {
            return;
        };
        for id in self.channels.iter().flat_map(|channel| &channel.half_open) {
            if let Some(output) = controller.output(*id) {
                output.clear();
            }
        }
    }

    fn forget_half_open(&mut self, id: urtica_controller::ConnectionId) {
        let now = self.controller_now();
        let mut lists = self
            .channels
            .iter_mut()
            .map(|channel| &mut channel.half_open);
        let list = lists.find(|list| list.contains(&id));
        if let Some(list) = list {
            if let Some(controller) = &mut self.control.controller {
                list.retain(|half_open| *half_open != id);
                controller.disconnect(id, now);
            }
        }
    }

    /// Schedules the controller's next turn, unless it is scheduled: at once if messages wait to be sent, otherwise when the
    /// timer of a background program expires.
    pub(super) fn set_timer(&mut self) {
        let now_ns = self.kernel.now_ns;
        if self.control.timer_ns <= now_ns {
            self.control.timer_ns = u64::MAX;
        }
        let next = self
            .control
            .controller
            .as_ref()
            .and_then(Embedded::next_timeout);
        let ahead_ns = to_ns(self.control.ahead);
        let next_ns = next.map_or(u64::MAX, |next| to_ns(next).saturating_sub(ahead_ns));
        let next_ns = next_ns.max(now_ns + 1);
        if next_ns < self.control.timer_ns {
            self.control.timer_ns = next_ns;
            self.kernel.put(next_ns, Due::Controller);
        }
    }

    /// Sends the controller's output to a switch.
    fn send_to_switch(&mut self, switch: SwitchId) {
        let channel = &mut self.channels[switch.place()];
        let Some((side, controller)) = channel
            .controller_side
            .zip(self.control.controller.as_mut())
        else {
            return;
        };
        let Some(output) = controller
            .output(side.id)
            .filter(|output| !output.is_empty())
        else {
            return;
        };
        let delays = Delays {
            config: &self.config.channel,
            now_ns: self.kernel.now_ns,
            stalled_until_ns: channel.stalled_until_ns,
        };
        if let Some(at_ns) = channel.to_switch.send(side.number, output, delays) {
            self.kernel.put(at_ns, Due::Channel(switch, Way::ToSwitch));
        }
    }

    fn put_segment(&mut self, switch: SwitchId, way: Way, number: u64, content: Content) {
        let channel = &mut self.channels[switch.place()];
        let delays = Delays {
            config: &self.config.channel,
            now_ns: self.kernel.now_ns,
            stalled_until_ns: channel.stalled_until_ns,
        };
        if let Some(at_ns) = channel.direction(way).put(number, content, delays) {
            self.kernel.put(at_ns, Due::Channel(switch, way));
        }
    }
}
