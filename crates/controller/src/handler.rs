//! The interface that a control program implements: a handler per switch.

use crate::setting::SettingError;
use crate::{Background, KernelHalf, Stage, Switch, SwitchInfo};
use std::mem::ManuallyDrop;
use std::time::{Duration, Instant};
use urtica_wire::{ErrorMessage, FlowRemoved, Header, Message, PacketIn, PortStatus, Version};

/// `OFPT_PACKET_IN`, which is equal in both versions.
const PACKET_IN: u8 = 10;

/// The number of packet-ins that get prefetch hints before the first of them is handled: enough to hide the latency of
/// memory, and few enough to fit in the first-level cache.
const PREFETCHED: usize = 64;

/// One switch's part of a control program, with its own state.
///
/// A switch belongs to one shard, so its handler runs on one thread at a time and receives its messages in the order in which
/// the switch sent them: the handler's state needs no lock (McNettle section 4). A program overrides the methods that it
/// needs; the methods for messages do nothing by default (McNettle's `defaultHandler`).
///
/// Several programs on one switch see each message in the order of their [`Stage`]s, and within a stage in the order in which
/// they were added. If a handler calls [`Switch::consume`], the programs after it do not see the message.
///
/// Periodic work for one switch belongs in [`SwitchHandler::tick`], with the handler's own state. Work that waits for
/// replies or concerns the whole network belongs in a background program, which [`Program::start`] spawns and which shares
/// state with handlers.
///
/// A handler must not block: it would delay every switch of its shard. If one panics, its switch's connection is closed; the
/// controller and the other switches keep running.
pub trait SwitchHandler: Send {
    /// Called when the switch's ports are known and its table-miss entry has been sent: install permanent entries here.
    ///
    /// Packet-ins may arrive before this: handlers receive them after the features reply.
    ///
    /// If the controller is a secondary ([`Role`](crate::Role)), this is called when it gets write access, and again each
    /// time that it regains it.
    fn switch_up(&mut self, _switch: &mut Switch) {}

    /// Returns the interval between calls of [`SwitchHandler::tick`], or `None` for no calls. Called once, after
    /// [`SwitchHandler::switch_up`]; the first tick follows one interval later.
    fn tick_interval(&self) -> Option<Duration> {
        None
    }

    /// Called at intervals of [`SwitchHandler::tick_interval`], up to a quarter of a second late, and in simulated time if
    /// time is simulated. Calls are delayed while the switch does not read its input; a delay of any length is followed by
    /// one call.
    fn tick(&mut self, _switch: &mut Switch) {}

    /// Handles a packet that matched no entry, or that an entry sent to the controller.
    fn packet_in(&mut self, _switch: &mut Switch, _packet: &PacketIn) {}

    /// Handles a packet-in that the [kernel half](crate::KernelHalves) has settled, and that contains news: it needs no
    /// answer, and no later program sees it. For programs that track hosts and links.
    fn settled(&mut self, _switch: &mut Switch, _packet: &PacketIn) {}

    /// Handles packet-ins that arrived together; passes them to [`SwitchHandler::packet_in`] one by one.
    ///
    /// A program may override this to process several at once. The loop is a default method and not part of the framework, so
    /// that it is compiled into each program: the compiler can inline it, and a packet-in costs no virtual call.
    #[inline]
    fn packet_ins(&mut self, switch: &mut Switch, packets: &mut PacketIns) {
        // A loop for each version, in which the version is a constant.
        match packets.version {
            Version::Of10 => packets.pass_to(self, Version::Of10, switch),
            Version::Of13 => packets.pass_to(self, Version::Of13, switch),
        }
    }

    /// A prefetch hint: [`SwitchHandler::packet_in`] will be called for this packet-in after a few others. A program with a
    /// large table can prefetch the packet's entry. Not every packet-in is announced.
    #[inline]
    fn prefetch(&self, _packet: &PacketIn) {}

    /// Returns `true` if [`SwitchHandler::prefetch`] should be called. Called once for packet-ins that arrived together: a
    /// program whose table fits into the near caches saves the cost of hints.
    #[inline]
    fn wants_prefetch(&self) -> bool {
        true
    }

    /// Handles the removal of a flow entry whose flow mod requested this message (`OFPFF_SEND_FLOW_REM`).
    fn flow_removed(&mut self, _switch: &mut Switch, _removed: &FlowRemoved) {}

    /// Handles a new, removed or changed port. [`SwitchInfo::ports`] contains the change already.
    fn port_status(&mut self, _switch: &mut Switch, _status: &PortStatus) {}

    /// Handles the switch's refusal of the message that this handler sent with `xid`.
    fn error(&mut self, _switch: &mut Switch, _xid: u32, _error: &ErrorMessage) {}

    /// Handles the refusal of a message that this program sent through its [`Network`](crate::Network), in a background
    /// program or in another switch's handler, without awaiting a reply. The refused message is not known.
    fn refused(&mut self, _switch: &mut Switch, _error: &ErrorMessage) {}

    /// Handles any other message: the reply to a request that this handler sent with `xid`, or an experimenter message.
    fn message(&mut self, _switch: &mut Switch, _xid: u32, _message: &Message) {}

    /// Handles a change of the controller's role at the switch, to [`SwitchInfo::role`]: on request, or because another
    /// controller has become the primary. For a [`Secondary`](crate::Role::Secondary), messages that would change the switch
    /// are not sent, and [`SwitchHandler::tick`] is not called. If the controller gains write access,
    /// [`SwitchHandler::switch_up`] is called after this.
    fn role_changed(&mut self, _switch: &mut Switch) {}

    /// Called when the connection has closed, or the program is [removed](crate::Running::set_programs). Nothing more can be
    /// sent.
    fn switch_down(&mut self, _info: &SwitchInfo) {}

    /// Returns the handler's [`KernelHalf`], which answers in the kernel, if it has one. Called after
    /// [`SwitchHandler::switch_up`] if this is the only program, and then repeatedly until it returns one, if
    /// [`SwitchHandler::may_have_kernel_half`] returns `true`.
    fn kernel_half(&mut self) -> Option<Box<dyn KernelHalf>> {
        None
    }

    /// Returns `true` if a handler without a kernel half may have one later: then [`SwitchHandler::kernel_half`] is called
    /// again after each batch of the switch's messages. The default is `false`.
    fn may_have_kernel_half(&self) -> bool {
        false
    }

    /// Like [`SwitchHandler::kernel_half`], for one of several programs. No other program sees messages that the kernel half
    /// answers, so it must not answer messages that another program would handle. Only the first program that returns a
    /// kernel half gets one.
    fn kernel_half_for_all(&mut self) -> Option<Box<dyn KernelHalf>> {
        None
    }
}

impl<H: SwitchHandler + ?Sized> SwitchHandler for Box<H> {
    fn switch_up(&mut self, switch: &mut Switch) {
        (**self).switch_up(switch);
    }

    fn tick_interval(&self) -> Option<Duration> {
        (**self).tick_interval()
    }

    fn tick(&mut self, switch: &mut Switch) {
        (**self).tick(switch);
    }

    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        (**self).packet_in(switch, packet);
    }

    fn settled(&mut self, switch: &mut Switch, packet: &PacketIn) {
        (**self).settled(switch, packet);
    }

    fn packet_ins(&mut self, switch: &mut Switch, packets: &mut PacketIns) {
        (**self).packet_ins(switch, packets);
    }

    fn prefetch(&self, packet: &PacketIn) {
        (**self).prefetch(packet);
    }

    fn wants_prefetch(&self) -> bool {
        (**self).wants_prefetch()
    }

    fn flow_removed(&mut self, switch: &mut Switch, removed: &FlowRemoved) {
        (**self).flow_removed(switch, removed);
    }

    fn port_status(&mut self, switch: &mut Switch, status: &PortStatus) {
        (**self).port_status(switch, status);
    }

    fn error(&mut self, switch: &mut Switch, xid: u32, error: &ErrorMessage) {
        (**self).error(switch, xid, error);
    }

    fn refused(&mut self, switch: &mut Switch, error: &ErrorMessage) {
        (**self).refused(switch, error);
    }

    fn message(&mut self, switch: &mut Switch, xid: u32, message: &Message) {
        (**self).message(switch, xid, message);
    }

    fn role_changed(&mut self, switch: &mut Switch) {
        (**self).role_changed(switch);
    }

    fn switch_down(&mut self, info: &SwitchInfo) {
        (**self).switch_down(info);
    }

    fn kernel_half(&mut self) -> Option<Box<dyn KernelHalf>> {
        (**self).kernel_half()
    }

    fn may_have_kernel_half(&self) -> bool {
        (**self).may_have_kernel_half()
    }

    fn kernel_half_for_all(&mut self) -> Option<Box<dyn KernelHalf>> {
        (**self).kernel_half_for_all()
    }
}

/// A control program: creates a handler for each switch that joins, and may run background programs.
///
/// Any function from a switch's description to a handler is a program.
pub trait Program: Send + Sync {
    /// Creates the handler for a switch that has just joined.
    fn handler(&self, info: &SwitchInfo) -> Box<dyn SwitchHandler>;

    /// Creates the handler for a switch of an earlier program, whose kernel half continues: see
    /// [`Controller::held_halves`](crate::Controller::held_halves). `held` is the connection's id at the holder; `started`
    /// is the time at which the clock of [`Switch::now_s`](crate::Switch::now_s) was 0. Called if this is the only program.
    ///
    /// Returns `None`, the default, if this program does not continue the kernel half: then [`Program::handler`] is called.
    fn resume(
        &self,
        _info: &SwitchInfo,
        _held: urtica_hold::Id,
        _started: Instant,
    ) -> Option<Box<dyn SwitchHandler>> {
        None
    }

    /// Like [`Program::resume`], if this program is one of several: see [`SwitchHandler::kernel_half_for_all`]. The handlers
    /// of the other programs are created by [`Program::handler`]. Only the first program that continues the kernel half keeps
    /// it.
    fn resume_for_all(
        &self,
        _info: &SwitchInfo,
        _held: urtica_hold::Id,
        _started: Instant,
    ) -> Option<Box<dyn SwitchHandler>> {
        None
    }

    /// Starts the program: [spawn](Background::spawn) background programs here. Called once, before handlers are created:
    /// before any switch joins, or when the program is [added](crate::Running::set_programs) later. Spawned programs start
    /// after this returns. [`Background::network`] returns the connected switches, and reports others as they join
    /// ([`Network::events`](crate::Network::events)).
    fn start(&self, _background: &Background) {}

    /// Checks the program's settings. Called once, before the program starts.
    ///
    /// # Errors
    /// If the program cannot use them: [`Controller::start`](crate::Controller::start) then fails with this error.
    fn check(&self) -> Result<(), SettingError> {
        Ok(())
    }

    /// Returns the program's name, for metrics; names need not be unique. Called once, before the program starts.
    fn program_name(&self) -> Option<&str> {
        None
    }

    /// Returns the stage, which determines the program's position among others. Called whenever a switch joins; must always
    /// return one stage.
    fn stage(&self) -> Stage {
        Stage::Forward
    }
}

impl<F, H> Program for F
where
    F: Fn(&SwitchInfo) -> H + Send + Sync,
    H: SwitchHandler + 'static,
{
    fn handler(&self, info: &SwitchInfo) -> Box<dyn SwitchHandler> {
        Box::new(self(info))
    }
}

/// Packet-ins that arrived together, limited by the space for their replies.
#[derive(Clone, Copy)]
pub struct PacketIns<'a> {
    version: Version,
    bytes: &'a [u8],
    taken: u64,
}

impl<'a> PacketIns<'a> {
    pub(crate) fn new(version: Version, bytes: &'a [u8]) -> Self {
        Self {
            version,
            bytes,
            taken: 0,
        }
    }

    /// Passes all packet-ins to a handler.
    #[inline(always)]
    fn pass_to<H: SwitchHandler + ?Sized>(
        &mut self,
        handler: &mut H,
        version: Version,
        switch: &mut Switch,
    ) {
        if handler.wants_prefetch() {
            self.prefetch_and_pass(handler, version, switch);
        } else {
            self.pass_each(handler, version, switch);
        }
    }

    /// Passes all packet-ins to a handler, one by one.
    #[inline(always)]
    fn pass_each<H: SwitchHandler + ?Sized>(
        &mut self,
        handler: &mut H,
        version: Version,
        switch: &mut Switch,
    ) {
        // Copies that the compiler can keep in registers.
        let (mut rest, mut taken) = (self.bytes, 0);
        while let Some((_, packet, after)) = split_packet_in(version, rest) {
            // Checked only once per block: a shard's output has space for the replies to many more packet-ins.
            if taken % PREFETCHED as u64 == 0 && !switch.has_room() {
                break;
            }
            handler.packet_in(switch, &packet);
            rest = after;
            taken += 1;
        }
        self.bytes = rest;
        self.taken += taken;
    }

    /// Passes all packet-ins to a handler in blocks of [`PREFETCHED`]: first the prefetch hints, in a loop so short that all
    /// its state is in registers, then the packet-ins.
    #[inline(always)]
    fn prefetch_and_pass<H: SwitchHandler + ?Sized>(
        &mut self,
        handler: &mut H,
        version: Version,
        switch: &mut Switch,
    ) {
        let mut bodies = [&[][..]; PREFETCHED];
        let mut count = PREFETCHED;
        while count == PREFETCHED && switch.has_room() {
            count = self.prefetch_block(handler, version, &mut bodies);
            for body in &bodies[..count] {
                if let Some(packet) = decode(version, body) {
                    handler.packet_in(switch, &packet);
                }
            }
        }
    }

    /// Calls `prefetch` for as many packet-ins as fit in `bodies`, and stores their bodies there. Returns their number.
    #[inline(always)]
    fn prefetch_block<H: SwitchHandler + ?Sized>(
        &mut self,
        handler: &H,
        version: Version,
        bodies: &mut [&'a [u8]; PREFETCHED],
    ) -> usize {
        // A copy that the compiler can keep in registers.
        let mut rest = self.bytes;
        let mut count = 0;
        for place in bodies {
            let Some((body, packet, after)) = split_packet_in(version, rest) else {
                break;
            };
            handler.prefetch(&packet);
            (*place, rest) = (body, after);
            count += 1;
        }
        self.bytes = rest;
        self.taken += count as u64;
        count
    }

    /// Returns the next packet-in; `None` if another message follows, or if the output should be sent first.
    #[inline]
    pub fn next(&mut self, switch: &Switch) -> Option<PacketIn<'a>> {
        if !switch.has_room() {
            return None;
        }
        let (_, packet, after) = split_packet_in(self.version, self.bytes)?;
        self.bytes = after;
        self.taken += 1;
        Some(ManuallyDrop::into_inner(packet))
    }

    /// Returns the number of packet-ins handled.
    #[inline]
    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    /// Returns the remaining bytes, and the number of packet-ins handled.
    pub(crate) fn finish(self) -> (&'a [u8], u64) {
        (self.bytes, self.taken)
    }
}

/// Splits a packet-in from the front of `bytes`, and returns its body and the decoded message, if it is complete, well-formed
/// and of this version.
#[inline(always)]
fn split_packet_in(version: Version, bytes: &[u8]) -> Option<(&[u8], Decoded<'_>, &[u8])> {
    let &[of, kind, l0, l1, _, _, _, _] = bytes.first_chunk()?;
    // One comparison for both bytes.
    if u16::from_ne_bytes([of, kind]) != u16::from_ne_bytes([version.to_wire(), PACKET_IN]) {
        return None;
    }
    let (frame, after) = bytes.split_at_checked(u16::from_be_bytes([l0, l1]).into())?;
    let body = frame.get(Header::SIZE..)?;
    Some((body, decode(version, body)?, after))
}

/// A packet-in, which has nothing to drop. `ManuallyDrop` allows the compiler to keep it in registers: otherwise it must be
/// in memory in case a handler panics.
type Decoded<'a> = ManuallyDrop<PacketIn<'a>>;

#[inline(always)]
fn decode(version: Version, body: &[u8]) -> Option<Decoded<'_>> {
    PacketIn::decode(version, body).ok().map(ManuallyDrop::new)
}
