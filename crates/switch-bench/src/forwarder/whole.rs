//! The whole switch: [`Switch`], between ports whose rings are in memory.
//!
//! **What.** All work of a switch for a burst: it polls each port, copies the received frames into a burst,
//! processes them by its tables, looks up the output ports, copies them into send rings, counts, and flushes. Every
//! tenth of a second its time advances, and entries expire. A controller sends the entries over OpenFlow, in messages
//! that are encoded, decoded and checked.
//!
//! **Threads.** One thread forwards packets and changes entries, as in a switch without forwarding threads: the control
//! side's messages wait in an inbox, as in a socket's buffer, until the current burst is done. While flow mods are
//! executed, no packet is forwarded. The control side learns of a refusal when it sends the next message.

use super::rings::{Exits, Rings};
use super::shared::matched;
use super::{Control, Departure, Forwarder, Loading, SETTLED_AT, Sent, Sides, TICK};
use crate::Error;
use crate::case::Case;
use crate::replay::Replay;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::yield_now;
use std::time::{Duration, Instant};
use urtica_switch::{ConnectionId, Forwarding, Switch, SwitchConfig};
use urtica_wire::{ErrorCode, FlowMod, FlowStatsRequest, Hello, Message, Version, split_frame};

/// The size at which the inbox is full: as many bytes as a switch reads at once.
const INBOX_BYTES: usize = 64 << 10;

/// The time for which the control side waits for space in the inbox before it checks whether any thread is forwarding.
const PATIENCE: Duration = Duration::from_millis(1);

/// Creates both sides of a switch with a case's entries.
///
/// # Errors
/// If an entry is refused, or memory for the rings cannot be allocated.
pub fn open(case: &Case, loading: Loading) -> Result<Sides, Error> {
    let rings = Rings::new(case.cells.cell_size())?;
    let mut whole = Whole::new(case, &rings, loading)?;
    whole.load(case, loading)?;
    let inbox = Arc::clone(&whole.inbox);
    let whole = Arc::new(Mutex::new(whole));
    let forwarder = ForwardingSide {
        whole: Arc::clone(&whole),
        rings,
    };
    Ok(Sides {
        forwarder: Box::new(forwarder),
        control: Some(Box::new(ControlSide { whole, inbox })),
    })
}

/// The bytes from the controller that the switch has not read yet.
#[derive(Default)]
struct Inbox {
    bytes: Mutex<Vec<u8>>,
    /// The number of these bytes; changed only under the lock, but read without it.
    length: AtomicUsize,
    /// The switch's last refusal, until the controller reads it.
    refused: Mutex<Option<ErrorCode>>,
}

impl Inbox {
    fn put(&self, more: &[u8]) {
        let mut bytes = self.bytes.lock();
        bytes.extend_from_slice(more);
        self.length.store(bytes.len(), Relaxed);
    }

    fn take(&self) -> Vec<u8> {
        let mut bytes = self.bytes.lock();
        self.length.store(0, Relaxed);
        std::mem::take(&mut bytes)
    }
}

/// A switch and its controller.
struct Whole {
    switch: Switch,
    connection: ConnectionId,
    last_xid: u32,
    /// The xids of refused messages, with the errors.
    refusals: Vec<(u32, ErrorCode)>,
    inbox: Arc<Inbox>,
    next_tick: Duration,
}

impl Whole {
    /// Creates a switch without entries.
    fn new(case: &Case, rings: &Rings, loading: Loading) -> Result<Self, Error> {
        let mut switch = Switch::new(SwitchConfig {
            forwarding: match loading {
                Loading::OneByOne => Forwarding::default(),
                Loading::Together => Forwarding::Plain,
            },
            ..SwitchConfig::default()
        });
        for port_no in case.ports() {
            switch.add_port(port_no, Box::new(rings.port(port_no)?), Duration::ZERO);
        }
        let connection = switch.connect("the bench".to_owned(), Duration::ZERO);
        let mut whole = Self {
            switch,
            connection,
            last_xid: 0,
            refusals: Vec::new(),
            inbox: Arc::default(),
            next_tick: TICK,
        };
        let mut hello = Vec::new();
        Hello::write(&[Version::Of13], 0, &mut hello);
        whole.receive(&hello, Duration::ZERO)?;
        Ok(whole)
    }

    fn load(&mut self, case: &Case, loading: Loading) -> Result<(), Error> {
        for message in case.entries.messages() {
            self.send(&message, Duration::ZERO)?;
            if let Some((_, code)) = self.refusals.pop() {
                return Err(Error::refused(text_of(&message), code));
            }
        }
        if loading == Loading::Together {
            self.switch.set_forwarding(Forwarding::default());
        }
        while self.next_tick <= SETTLED_AT {
            self.tick(self.next_tick)?;
        }
        Ok(())
    }

    /// Sends a controller's message to the switch; its refusals are added to `refusals`.
    fn send(&mut self, message: &Message, now: Duration) -> Result<(), Error> {
        let mut bytes = Vec::new();
        self.last_xid = self.last_xid.wrapping_add(1);
        message.encode(Version::Of13, self.last_xid, &mut bytes)?;
        self.receive(&bytes, now)
    }

    /// Passes bytes to the switch, and reads its replies as the controller.
    fn receive(&mut self, bytes: &[u8], now: Duration) -> Result<(), Error> {
        self.switch.handle_input(self.connection, bytes, now)?;
        self.read_answers(now)
    }

    fn read_answers(&mut self, now: Duration) -> Result<(), Error> {
        let output = self.switch.output(self.connection);
        let output = std::mem::take(output.ok_or(Error::Closed)?);
        let (mut rest, mut replies) = (&output[..], Vec::new());
        while let Some((frame, after)) = split_frame(rest)? {
            match Message::decode(frame)? {
                (header, Message::EchoRequest(payload)) => {
                    Message::EchoReply(payload).encode(Version::Of13, header.xid, &mut replies)?
                }
                (header, Message::Error(error)) => self.refusals.push((header.xid, error.code)),
                _ => {}
            }
            rest = after;
        }
        match replies.is_empty() {
            true => Ok(()),
            false => self.receive(&replies, now),
        }
    }

    #[inline]
    fn poll(&mut self, now: Duration) {
        if now >= self.next_tick {
            // The loss of the controller does not affect packets: forwarding continues.
            let _ = self.tick(now);
        }
        self.read_inbox(now);
        self.switch.poll_ports(now);
    }

    #[inline]
    fn read_inbox(&mut self, now: Duration) {
        if self.inbox.length.load(Relaxed) > 0 {
            self.hear_inbox(now);
        }
    }

    #[cold]
    fn hear_inbox(&mut self, now: Duration) {
        let heard = self.receive(&self.inbox.take(), now);
        let refusals = std::mem::take(&mut self.refusals).into_iter();
        // After the loss of the connection, flow mods are not executed.
        let lost = heard.err().map(|_| ErrorCode::BadRequestEperm);
        if let Some(code) = refusals.map(|(_, code)| code).chain(lost).last() {
            *self.inbox.refused.lock() = Some(code);
        }
    }

    #[cold]
    fn tick(&mut self, now: Duration) -> Result<(), Error> {
        self.next_tick = now + TICK;
        self.switch.handle_timeout(now);
        self.read_answers(now)
    }
}

/// Returns the text of a message, if it has one.
fn text_of(message: &Message) -> String {
    match message {
        Message::FlowMod(flow_mod) => flow_mod.to_string(),
        Message::GroupMod(group_mod) => group_mod.to_string(),
        Message::MeterMod(meter_mod) => meter_mod.to_string(),
        other => format!("{other:?}"),
    }
}

struct ForwardingSide {
    whole: Arc<Mutex<Whole>>,
    rings: Rings,
}

impl Forwarder for ForwardingSide {
    fn forward(&mut self, replay: &mut Replay, now: Duration) -> Sent {
        let before = self.rings.exits.count();
        let mut whole = self.whole.lock();
        let plain_before = whole.switch.plain_packets();
        self.rings.incoming.lock().fill(replay);
        whole.poll(now);
        let plain = whole.switch.plain_packets() - plain_before;
        Sent {
            plain: plain as u32,
            ..self.rings.exits.count().since(before)
        }
    }

    fn departures(&mut self, replay: &mut Replay, now: Duration) -> Vec<Departure> {
        let exits: Arc<Exits> = Arc::clone(&self.rings.exits);
        exits.departures(|| {
            self.forward(replay, now);
        })
    }
}

struct ControlSide {
    whole: Arc<Mutex<Whole>>,
    inbox: Arc<Inbox>,
}

impl Control for ControlSide {
    fn flow_mod(&mut self, flow_mod: &FlowMod<'_>, now: Duration) -> Result<(), ErrorCode> {
        let mut bytes = Vec::new();
        let message = Message::FlowMod(flow_mod.clone());
        let encoded = message.encode(Version::Of13, 0, &mut bytes);
        encoded.map_err(|_| ErrorCode::BadRequestBadLen)?;
        self.inbox.put(&bytes);
        let sent = Instant::now();
        while self.inbox.length.load(Relaxed) > INBOX_BYTES {
            yield_now();
            if sent.elapsed() > PATIENCE {
                // No thread is forwarding, or the burst is slow.
                if let Some(mut whole) = self.whole.try_lock() {
                    whole.read_inbox(now);
                }
            }
        }
        match self.inbox.refused.lock().take() {
            Some(code) => Err(code),
            None => Ok(()),
        }
    }

    fn matched(&self) -> BTreeMap<u64, u64> {
        let mut whole = self.whole.lock();
        whole.read_inbox(SETTLED_AT);
        let all = FlowStatsRequest::default();
        let stats = whole
            .switch
            .flow_stats(&all, SETTLED_AT)
            .unwrap_or_default();
        matched(stats.iter().map(|entry| (entry.cookie, entry.packet_count)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Trace, Workload};
    use urtica_wire::FlowModCommand;

    fn sides(loading: Loading) -> (Sides, Replay) {
        let case = Case::of(Workload::L3, 40, Trace::Uniform).unwrap();
        (open(&case, loading).unwrap(), Replay::new(&case.cells))
    }

    fn flow_mod(command: FlowModCommand, text: &str) -> FlowMod<'static> {
        FlowMod::parse(command, text).unwrap()
    }

    #[test]
    fn flow_mods_are_carried_out_while_packets_are_forwarded() {
        let (sides, mut replay) = sides(Loading::OneByOne);
        let (mut forwarder, mut control) = (sides.forwarder, sides.control.unwrap());
        let drop_all = flow_mod(FlowModCommand::Add, "priority=200,actions=drop");
        let none_left = flow_mod(FlowModCommand::DeleteStrict, "priority=200");
        std::thread::scope(|scope| {
            let forwarding = scope.spawn(move || {
                while forwarder.forward(&mut replay, SETTLED_AT).out > 0 {}
                (forwarder, replay)
            });
            control.flow_mod(&drop_all, SETTLED_AT).unwrap();
            let (mut forwarder, mut replay) = forwarding.join().unwrap();
            control.flow_mod(&none_left, SETTLED_AT).unwrap();
            assert_eq!(forwarder.forward(&mut replay, SETTLED_AT).out, 32);
        });
    }

    #[test]
    fn flow_mods_are_carried_out_while_nothing_is_forwarded() {
        let (sides, _) = sides(Loading::Together);
        let mut control = sides.control.unwrap();
        let changes = 2 * INBOX_BYTES as u32 / 80;
        for number in 0..changes {
            let entry = format!("cookie={number},priority=300,tcp,tp_dst={number},actions=drop");
            let added = control.flow_mod(&flow_mod(FlowModCommand::Add, &entry), SETTLED_AT);
            assert_eq!(added, Ok(()));
        }
        let of_ours = |(cookie, _): &(u64, u64)| (1..changes.into()).contains(cookie);
        let matched = control.matched().into_iter().filter(of_ours);
        assert_eq!(matched.count() as u32, changes - 1);
    }

    #[test]
    fn refusals_of_the_switch_are_returned() {
        let (sides, mut replay) = sides(Loading::Together);
        let (mut forwarder, mut control) = (sides.forwarder, sides.control.unwrap());
        let absent = flow_mod(FlowModCommand::Add, "actions=group:7");
        let present = flow_mod(FlowModCommand::Add, "actions=drop");
        control.flow_mod(&absent, SETTLED_AT).unwrap();
        forwarder.forward(&mut replay, SETTLED_AT);
        let refused = control.flow_mod(&present, SETTLED_AT);
        assert_eq!(refused, Err(ErrorCode::BadActionBadOutGroup));
        assert_eq!(control.flow_mod(&present, SETTLED_AT), Ok(()));
    }

    #[test]
    fn a_replying_controller_stays_connected() {
        let (sides, mut replay) = sides(Loading::OneByOne);
        let (mut forwarder, mut control) = (sides.forwarder, sides.control.unwrap());
        let mut now = SETTLED_AT;
        for _ in 0..600 {
            now += TICK;
            forwarder.forward(&mut replay, now);
        }
        let drop_all = flow_mod(FlowModCommand::Add, "priority=200,actions=drop");
        control.flow_mod(&drop_all, now).unwrap();
        assert_eq!(forwarder.forward(&mut replay, now).out, 0);
    }
}
