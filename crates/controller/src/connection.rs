//! One switch's connection: bytes to frames, frames to the session and the handlers, replies to bytes.
//!
//! [`Transport`] carries the bytes; each file of this folder adds one concern.

use crate::batch::BatchContext;
use crate::counters::is_worth_logging;
use crate::handler::PacketIns;
use crate::mailbox::Token;
use crate::reconciliation::{Reconciliation, Waiting};
use crate::request::{Asker, Requests};
use crate::role::RoleRequest;
use crate::session::{Event, Session, SessionConfig, Subject};
use crate::switch::FLUSH_BYTES;
use crate::transport::{Channel, Transport, WriteCounters};
use crate::xid::{Origin, Sender};
use crate::{Switch, SwitchCounters, SwitchHandler, SwitchInfo, WaitingBytes};
use auxiliary::Auxiliary;
pub(crate) use closing::{Close, contain};
use closing::{drop_contained, panic_of};
pub(crate) use holding::Resumption;
use joined::Joined;
pub(crate) use reading::{Awaited, BUFFER_BYTES, Interest, Ready};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;
use urtica_socket::Stream;
use urtica_state::Series;
use urtica_wire::{DatapathId, ErrorCode, Header, Message, PacketIn, split_frame};

/// Checks whether a peer may use a datapath id; the error is a reason for refusing it.
pub(crate) type Admission = Box<dyn Fn(DatapathId) -> Result<(), String> + Send>;

/// A connection. One shard at a time owns it; it may move to another between two batches.
// Its methods are divided into a file for each concern: reading, joining, roles, programs, the kernel half, the end, …
pub(crate) struct Connection<C = Stream> {
    transport: Transport<C>,
    pub token: Token,
    /// Called before a switch joins, if certificates determine datapath ids.
    pub admission: Option<Admission>,
    /// The events that its shard's poller waits for on the socket; `None` if no poller has it.
    pub watched: Option<Interest>,
    session: Session,
    /// Whether the peer has sent its features reply, and was admitted.
    is_identified: bool,
    /// The switch, once it has joined.
    switch: Option<Joined>,
    /// The state of an auxiliary connection, if it is one.
    auxiliary: Option<Auxiliary>,
    /// The ids and tokens of a main connection's auxiliary connections; some may have closed.
    auxiliaries: Vec<(u8, Token)>,
    requests: Requests,
    /// Role requests, with their senders. The first is under way.
    role_requests: VecDeque<(RoleRequest, Asker)>,
    counters: Arc<SwitchCounters>,
    /// The number of messages received recently: a moving average, in which messages before `received_before` fade.
    load: u64,
    /// The number of messages received when `load` was last updated.
    received_before: u64,
    /// Whether a program without a kernel half may get one later.
    awaits_half: bool,
    /// The switch of a connection taken over from an earlier program, until it joins.
    resumed: Option<SwitchInfo>,
    /// Reconciliations of the entries of changed programs, until they are settled.
    reconciliations: Vec<Reconciliation>,
    /// Frames for a raw program that arrived before the switch joined.
    early: Vec<u8>,
}

impl<C: Channel> Connection<C> {
    /// Creates a connection.
    pub fn new(
        channel: C,
        peer: String,
        token: Token,
        config: SessionConfig,
        now: Instant,
    ) -> Self {
        Self {
            transport: Transport::new(channel),
            token,
            admission: None,
            watched: None,
            session: Session::new(config, peer, now),
            is_identified: false,
            switch: None,
            auxiliary: None,
            auxiliaries: Vec::new(),
            requests: Requests::default(),
            role_requests: VecDeque::new(),
            counters: Arc::default(),
            load: 0,
            received_before: 0,
            awaits_half: false,
            resumed: None,
            reconciliations: Vec::new(),
            early: Vec::new(),
        }
    }

    /// Returns whether the socket has yet to accept some output.
    pub fn is_waiting(&self) -> bool {
        self.transport.is_waiting()
    }

    /// Returns whether the socket has yet to accept some replies: then no input is read (back-pressure).
    pub fn is_stalled(&self) -> bool {
        self.transport.is_stalled()
    }

    /// Returns the transport of its bytes.
    pub fn transport(&self) -> &Transport<C> {
        &self.transport
    }

    /// Returns the transport of its bytes.
    pub fn transport_mut(&mut self) -> &mut Transport<C> {
        &mut self.transport
    }

    /// Notes that the switch has sent something that is handled elsewhere, which is a sign of life.
    pub fn note_alive(&mut self, batch: &BatchContext) {
        self.session.note_received(batch.now);
    }

    /// Returns the subject of log lines about the connection.
    fn subject(&self) -> Subject<'_> {
        match &self.switch {
            Some(switch) => Subject::Switch(switch.info.datapath_id),
            None => Subject::of_peer(self.session.peer()),
        }
    }

    /// Returns the peer's name for logs.
    pub fn name(&self) -> String {
        match &self.switch {
            Some(switch) => format!(
                "switch {} at {}",
                switch.info.datapath_id,
                self.session.peer()
            ),
            None => self.session.peer().to_owned(),
        }
    }

    /// Handles received bytes in order and keeps the rest: an incomplete frame, or everything after the point at which the switch
    /// stopped reading our replies.
    pub fn handle_input(&mut self, input: &[u8], batch: &mut BatchContext) -> Result<(), Close> {
        let mut rest = input;
        let result = self.handle_frames(&mut rest, batch);
        let handled = input.len() - rest.len();
        if handled > 0 {
            self.session.note_received(batch.now);
            self.counters.received_bytes.add(handled as u64);
        }
        self.transport.keep_rest(rest);
        result
    }

    /// Handles input that was kept earlier, as [`Connection::handle_input`] does.
    pub fn handle_kept_input(&mut self, batch: &mut BatchContext) -> Result<(), Close> {
        let input = self.transport.take_input();
        self.handle_input(&input, batch)
    }

    /// Handles the whole frames at the front of `rest`, while the switch reads our replies. Runs of packet-ins are passed
    /// straight to the handlers; everything else is passed through the session, frame by frame.
    fn handle_frames(&mut self, rest: &mut &[u8], batch: &mut BatchContext) -> Result<(), Close> {
        loop {
            self.handle_packet_ins(rest, batch);
            if batch.out.len() >= FLUSH_BYTES {
                self.transport.note_left(rest.len());
                self.flush(batch)?;
                if self.is_stalled() {
                    return Ok(());
                }
                continue;
            }
            match split_frame(rest) {
                Ok(None) => return Ok(self.session.handle_fragment(rest)?),
                Ok(Some(_)) if self.session.is_raw() => self.handle_raw(rest, batch)?,
                Ok(Some((frame, after))) => {
                    *rest = after;
                    self.count_received(1, batch);
                    self.handle_frame(frame, batch)?;
                }
                Err(error) => {
                    let end = self.session.handle_malformed(error, rest, &mut batch.out);
                    return Err(end.into());
                }
            }
        }
    }

    /// The hot path: passes packet-ins at the front of `rest` to the handlers, until another message follows or the replies
    /// fill the output.
    fn handle_packet_ins(&mut self, rest: &mut &[u8], batch: &mut BatchContext) {
        let (Some(joined), Some(version)) = (&mut self.switch, self.session.answering_version())
        else {
            return;
        };
        // Many handlers run a transaction for each packet-in.
        let _series = Series::new();
        let mut packets = PacketIns::new(version, rest);
        let (programs, xids) = (&joined.programs.identities, &mut self.session.xids);
        let (shard, read_at) = (batch.shard, batch.read_at);
        let mut switch = joined.info.as_switch(programs, xids, &self.counters, batch);
        match (&mut joined.handlers[..], read_at) {
            ([handler], _) => {
                switch.begin(0);
                handler.packet_ins(&mut switch, &mut packets);
                if let (Some(read_at), count @ 1..) = (read_at, packets.taken()) {
                    programs[0].times.add(shard, count, read_at);
                }
            }
            (handlers, None) => {
                while let Some(packet) = packets.next(&switch) {
                    pass(handlers, &mut switch, &packet);
                }
            }
            (handlers, Some(read_at)) => {
                pass_timed(handlers, &mut switch, &mut packets, shard, read_at);
            }
        }
        drop(switch);
        let (after, received) = packets.finish();
        *rest = after;
        self.counters.packet_ins.add(received);
        self.count_received(received, batch);
    }

    fn count_received(&self, count: u64, batch: &BatchContext) {
        self.counters.received.add(count);
        batch
            .network
            .shard(batch.shard)
            .counters
            .received
            .add(count);
    }

    fn handle_frame(&mut self, frame: &[u8], batch: &mut BatchContext) -> Result<(), Close> {
        match self
            .session
            .handle_frame(batch.now, frame, &mut batch.out)?
        {
            Event::Nothing => {}
            Event::Identified(datapath_id) => self.identify(datapath_id, frame)?,
            Event::Joined(info) => {
                // If a role was requested, this event follows from its reply, not from the features.
                if !self.is_identified {
                    self.identify(info.datapath_id, frame)?;
                }
                self.join(info, batch);
            }
            // The main connection has requested the ports as well.
            Event::Ports { .. } if self.is_auxiliary() => {}
            Event::Ports { ports, last } => self.learn_ports(ports, last, batch),
            Event::PortsUnknown(problem) => self.do_without_ports(&problem, batch),
            Event::Message(header, message) => self.dispatch(header, &message, frame, batch),
            Event::Malformed(error) => self.note_malformed(&error),
            Event::Auxiliary {
                datapath_id,
                auxiliary_id,
            } => {
                self.identify(datapath_id, frame)?;
                return Err(self.become_auxiliary(datapath_id, auxiliary_id));
            }
        }
        self.note_roles(frame, batch);
        Ok(())
    }

    /// Passes a message that is not a packet-in to the sender of the request that it answers, or to all programs.
    fn dispatch(
        &mut self,
        header: Header,
        message: &Message,
        frame: &[u8],
        batch: &mut BatchContext,
    ) {
        let asynchronous = matches!(
            message,
            Message::PacketIn(_) | Message::FlowRemoved(_) | Message::PortStatus(_)
        );
        if matches!(message, Message::PacketIn(_)) {
            self.counters.packet_ins.add(1);
        }
        if let Message::PortStatus(status) = message {
            if self.update_ports(vec![*status], batch).is_empty() {
                return;
            }
        }
        if let Message::Error(error) = message {
            self.counters.errors.add(1);
            let count = self.counters.errors.get();
            if is_worth_logging(count) {
                urtica_log::warn!(about: self.subject(), peer = self.name(), code = %error.code, xid = header.xid, count, "the switch refused a message");
                self.report_refusal(error.code, count, batch);
            }
        }
        let origin = Origin::of(header.xid);
        match origin.sender() {
            Sender::Request if !asynchronous => {
                self.requests.resolve(header, message, frame);
                if !self.reconciliations.is_empty() {
                    self.settle(batch);
                }
            }
            // The refused message is not a program's, so the error is only logged.
            Sender::Session if matches!(message, Message::Error(_)) => {}
            Sender::Program if !asynchronous => match self.position_of(origin) {
                Some(program) => self.call_one(program, batch, |handler, switch| match message {
                    Message::Error(error) if origin.is_xid(header.xid) => {
                        handler.refused(switch, error);
                    }
                    _ => deliver(handler, switch, header.xid, message),
                }),
                // The program whose message was refused is gone.
                None if matches!(message, Message::Error(_)) => {}
                None => self.call_each(batch, |handler, switch| {
                    deliver(handler, switch, header.xid, message)
                }),
            },
            _ => self.call_each(batch, |handler, switch| {
                deliver(handler, switch, header.xid, message)
            }),
        }
    }

    fn report_refusal(&self, code: ErrorCode, count: u64, batch: &BatchContext) {
        if let Some(switch) = &self.switch {
            let id = switch.info.datapath_id;
            batch.network.report_refusal(self.token, id, code, count);
        }
    }

    /// Returns the position of the program whose xids have this origin.
    fn position_of(&self, origin: Origin) -> Option<usize> {
        let programs = &self.switch.as_ref()?.programs.identities;
        programs.iter().position(|program| program.origin == origin)
    }

    fn call_one(
        &mut self,
        program: usize,
        batch: &mut BatchContext,
        call: impl FnMut(&mut dyn SwitchHandler, &mut Switch),
    ) {
        self.call(program..program + 1, batch, call);
    }

    fn call_each(
        &mut self,
        batch: &mut BatchContext,
        call: impl FnMut(&mut dyn SwitchHandler, &mut Switch),
    ) {
        self.call(0..usize::MAX, batch, call);
    }

    fn call(
        &mut self,
        range: Range<usize>,
        batch: &mut BatchContext,
        call: impl FnMut(&mut dyn SwitchHandler, &mut Switch),
    ) {
        if let Some(joined) = &mut self.switch {
            joined.call(range, &mut self.session.xids, &self.counters, batch, call);
        }
    }

    /// Sends `count` messages from the mailbox. With `reply` they get a new xid, by which the reply is routed back. Their
    /// bytes were counted when the backlog admitted them.
    pub fn send(&mut self, bytes: Vec<u8>, count: u64, reply: Option<Asker>, batch: &BatchContext) {
        self.reclaim(batch);
        let now = batch.now;
        let mut sent = Some(Waiting {
            counted: bytes.len(),
            bytes,
            count,
            reply,
        });
        if !self.reconciliations.is_empty() {
            sent = sent.and_then(|sent| self.rewrite_sent(sent, now));
        }
        if let Some(sent) = sent {
            self.send_now(sent, now);
        }
    }

    fn send_now(&mut self, sent: Waiting, now: Instant) {
        let mut bytes = sent.bytes;
        if let Some(asker) = sent.reply {
            let xid = self.session.xids.next(Origin::REQUEST);
            set_xids(&mut bytes, xid);
            self.requests.insert(xid, asker, now);
        }
        self.counters.sent.add(sent.count);
        let counted = sent.counted.min(bytes.len());
        self.transport.backlog().subtract(sent.counted - counted);
        self.transport.queue(&bytes, counted);
    }

    /// Sends the batch's output; bytes that the socket does not accept wait here.
    pub fn flush(&mut self, batch: &mut BatchContext) -> Result<(), Close> {
        if !self.reconciliations.is_empty() {
            self.rewrite_output(batch);
        }
        if self.transport.is_held() {
            let word = self.session.to_word();
            self.transport
                .commit(&batch.out, word, &mut batch.discarded)?;
        }
        if batch.out.is_empty() {
            return Ok(());
        }
        let counters = write_counters(&self.counters, batch);
        self.transport.send(&batch.out, counters)?;
        batch.out.clear();
        Ok(())
    }

    /// Sends output that is left from earlier.
    pub fn flush_backlog(&mut self, batch: &BatchContext) -> Result<(), Close> {
        if !self.transport.may_write() {
            return Ok(());
        }
        if self.transport.is_held() {
            self.transport.commit_output(self.session.to_word())?;
        }
        // The switch answers our echo requests only after it has read all output before them.
        let counters = write_counters(&self.counters, batch);
        if self.transport.flush(counters)? {
            self.session.note_received(batch.now);
        }
        Ok(())
    }

    /// Handles the passing of time: keep-alive, time-outs, and buffers that an idle switch does not need. May call handlers.
    pub fn handle_timeout(&mut self, batch: &mut BatchContext) -> Result<(), Close> {
        self.reclaim(batch);
        self.handle_events(batch);
        self.count_ring(batch);
        self.requests.sweep(batch.now);
        self.age_load();
        self.transport.shrink();
        if let Event::PortsUnknown(problem) =
            self.session.handle_timeout(batch.now, &mut batch.out)?
        {
            self.do_without_ports(&problem, batch);
        }
        self.transport.backlog().note_waiting(WaitingBytes {
            replies: self.transport.waiting_replies(),
            received: self.transport.input_len(),
        });
        self.note_roles(&[], batch);
        if !self.reconciliations.is_empty() {
            self.settle(batch);
        }
        self.tick(batch);
        Ok(())
    }

    /// Calls the handlers whose timers have expired, unless the switch does not read its output: then they are called later.
    fn tick(&mut self, batch: &mut BatchContext) {
        if self.is_waiting() {
            return;
        }
        let due = self
            .switch
            .as_mut()
            .map_or(Vec::new(), |switch| switch.take_due(batch.now));
        for program in due {
            self.call_one(program, batch, |handler, switch| handler.tick(switch));
        }
    }

    /// Returns the switch's datapath id, once it has joined.
    pub fn datapath_id(&self) -> Option<DatapathId> {
        self.switch.as_ref().map(|switch| switch.info.datapath_id)
    }

    /// Returns the number of messages received recently, for comparison with the shard's other connections.
    pub fn load(&self) -> u64 {
        self.load + self.counters.received.get() - self.received_before
    }

    /// Halves the weight of the messages received until now.
    pub fn age_load(&mut self) {
        self.load = self.load() / 2;
        self.received_before = self.counters.received.get();
    }
}

/// Returns the counters of a connection's writes.
fn write_counters<'a>(switch: &'a SwitchCounters, batch: &'a BatchContext) -> WriteCounters<'a> {
    let shard = &batch.network.shard(batch.shard).counters;
    WriteCounters { shard, switch }
}

/// Sets the xid of all messages in `bytes`, which we encoded.
fn set_xids(bytes: &mut [u8], xid: u32) {
    let mut rest = bytes;
    while let Some(header) = rest.first_chunk_mut::<{ Header::SIZE }>() {
        header[4..].copy_from_slice(&xid.to_be_bytes());
        let length = u16::from_be_bytes([header[2], header[3]]);
        rest = &mut rest[usize::from(length)..];
    }
}

/// Passes a packet-in to the handlers of the programs, in order, until one consumes it.
fn pass(handlers: &mut [Box<dyn SwitchHandler>], switch: &mut Switch, packet: &PacketIn) {
    for (program, handler) in handlers.iter_mut().enumerate() {
        switch.begin(program);
        handler.packet_in(switch, packet);
        if switch.consumed {
            return;
        }
    }
}

/// Passes packet-ins as [`pass`] does, and notes for each program the time at which it had answered the last that it saw.
fn pass_timed(
    handlers: &mut [Box<dyn SwitchHandler>],
    switch: &mut Switch,
    packets: &mut PacketIns,
    shard: usize,
    read_at: Instant,
) {
    let mut next = packets.next(switch);
    while let Some(packet) = next {
        next = packets.next(switch);
        if next.is_some() {
            pass(handlers, switch, &packet);
            continue;
        }
        for (program, handler) in handlers.iter_mut().enumerate() {
            switch.begin(program);
            handler.packet_in(switch, &packet);
            let times = &switch.programs[program].times;
            times.add(shard, packets.taken(), read_at);
            if switch.consumed {
                return;
            }
        }
    }
}

/// Calls the handler's method for the message.
fn deliver(handler: &mut dyn SwitchHandler, switch: &mut Switch, xid: u32, message: &Message) {
    match message {
        Message::PacketIn(packet) => handler.packet_in(switch, packet),
        Message::FlowRemoved(removed) => handler.flow_removed(switch, removed),
        Message::PortStatus(status) => handler.port_status(switch, status),
        Message::Error(error) => handler.error(switch, xid, error),
        other => handler.message(switch, xid, other),
    }
}

mod auxiliary;
mod closing;
mod holding;
mod joined;
mod joining;
mod kernel_half;
mod programs;
mod raw;
mod raw_part;
mod reading;
mod ring;
mod roles;
#[cfg(test)]
mod tests;
