//! The whole switch: [`Switch`], between ports whose rings are in memory.
//!
//! **What.** What a switch does for a burst it does here: it asks each port, copies the frames that have come into a burst, takes
//! them through its tables, looks up the ports that they leave by, copies them into send rings, counts, and flushes. A tenth
//! of a second after the other it is told the time, and entries expire. Entries come from a controller over OpenFlow, in
//! messages that are encoded, decoded and checked.
//!
//! **Threads.** One thread carries packets and changes entries, as in a switch without threads of its own for packets: while a flow
//! mod is carried out, no packet is forwarded. Where the control side lives on another thread, a lock stands for that.

use super::rings::{Exits, Rings};
use super::shared::matched;
use super::{Control, Departure, Forwarder, Loading, SETTLED_AT, Sent, Sides, TICK};
use crate::bench::switch::case::Case;
use crate::bench::switch::failed;
use crate::bench::switch::replay::Replay;
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use urtica_bench::Error;
use urtica_switch::{ConnectionId, Forwarding, Switch, SwitchConfig};
use urtica_wire::{ErrorCode, FlowMod, FlowStatsRequest, Hello, Message, Version, split_frame};

/// Both sides of a switch with a case's entries.
///
/// # Errors
/// A sentence where an entry is refused, or the system has no memory for the rings.
pub fn open(case: &Case, loading: Loading) -> Result<Sides, Error> {
    let rings = Rings::new(case.cells.cell_size())?;
    let mut whole = Whole::new(case, &rings, loading)?;
    whole.load(case, loading)?;
    let whole = Arc::new(Mutex::new(whole));
    let forwarder = Side {
        whole: Arc::clone(&whole),
        rings,
    };
    Ok(Sides {
        forwarder: Box::new(forwarder),
        control: Some(Box::new(ControlSide(whole))),
    })
}

/// A switch and its controller.
struct Whole {
    switch: Switch,
    connection: ConnectionId,
    last_xid: u32,
    /// What the switch refused: the messages' xids and why.
    refusals: Vec<(u32, ErrorCode)>,
    next_tick: Duration,
}

impl Whole {
    /// Without entries.
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
            next_tick: TICK,
        };
        let mut hello = Vec::new();
        Hello::write(&[Version::Of13], 0, &mut hello);
        whole.hear(&hello, Duration::ZERO)?;
        Ok(whole)
    }

    fn load(&mut self, case: &Case, loading: Loading) -> Result<(), Error> {
        for message in case.entries.messages() {
            self.say(&message, Duration::ZERO)?;
            if let Some((_, code)) = self.refusals.pop() {
                return Err(failed(format!(
                    "the switch refuses '{}': {code}",
                    told(&message)
                )));
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

    /// The controller sends a message; what the switch refuses is in `refusals` then.
    fn say(&mut self, message: &Message, now: Duration) -> Result<(), Error> {
        let mut bytes = Vec::new();
        self.last_xid = self.last_xid.wrapping_add(1);
        message
            .encode(Version::Of13, self.last_xid, &mut bytes)
            .map_err(failed)?;
        self.hear(&bytes, now)
    }

    /// The switch takes in bytes, and the controller reads what it answers.
    fn hear(&mut self, bytes: &[u8], now: Duration) -> Result<(), Error> {
        let heard = self.switch.handle_input(self.connection, bytes, now);
        heard.map_err(failed)?;
        self.read_answers(now)
    }

    fn read_answers(&mut self, now: Duration) -> Result<(), Error> {
        let output = self.switch.output(self.connection);
        let output = std::mem::take(output.ok_or_else(|| failed("the switch hung up"))?);
        let (mut rest, mut replies) = (&output[..], Vec::new());
        while let Some((frame, after)) = split_frame(rest).map_err(failed)? {
            match Message::decode(frame).map_err(failed)? {
                (header, Message::EchoRequest(payload)) => Message::EchoReply(payload)
                    .encode(Version::Of13, header.xid, &mut replies)
                    .map_err(failed)?,
                (header, Message::Error(error)) => self.refusals.push((header.xid, error.code)),
                _ => {}
            }
            rest = after;
        }
        match replies.is_empty() {
            true => Ok(()),
            false => self.hear(&replies, now),
        }
    }

    #[inline]
    fn poll(&mut self, now: Duration) {
        if now >= self.next_tick {
            // A controller that is lost is no matter of packets: forwarding goes on.
            let _ = self.tick(now);
        }
        self.switch.poll_ports(now);
    }

    #[cold]
    fn tick(&mut self, now: Duration) -> Result<(), Error> {
        self.next_tick = now + TICK;
        self.switch.handle_timeout(now);
        self.read_answers(now)
    }
}

/// What a message says, as far as a text has it.
fn told(message: &Message) -> String {
    match message {
        Message::FlowMod(flow_mod) => flow_mod.to_string(),
        Message::GroupMod(group_mod) => group_mod.to_string(),
        Message::MeterMod(meter_mod) => meter_mod.to_string(),
        other => format!("{other:?}"),
    }
}

struct Side {
    whole: Arc<Mutex<Whole>>,
    rings: Rings,
}

impl Forwarder for Side {
    fn forward(&mut self, replay: &mut Replay, now: Duration) -> Sent {
        let before = self.rings.exits.count();
        let mut whole = self.whole.lock();
        let plain_before = whole.switch.plain_packets();
        self.rings.incoming.lock().fill(replay);
        whole.poll(now);
        let plain = whole.switch.plain_packets() - plain_before;
        // The control side does not wait for longer than a burst.
        MutexGuard::unlock_fair(whole);
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

struct ControlSide(Arc<Mutex<Whole>>);

impl Control for ControlSide {
    fn flow_mod(&mut self, flow_mod: &FlowMod<'_>, now: Duration) -> Result<(), ErrorCode> {
        let mut whole = self.0.lock();
        let said = whole.say(&Message::FlowMod(flow_mod.clone()), now);
        match whole.refusals.pop() {
            Some((_, code)) => Err(code),
            None => said.map_err(|_| ErrorCode::BadRequestEperm),
        }
    }

    fn matched(&self) -> BTreeMap<u64, u64> {
        let whole = self.0.lock();
        let stats = whole
            .switch
            .flow_stats(&FlowStatsRequest::default(), SETTLED_AT);
        let stats = stats.unwrap_or_default();
        matched(stats.iter().map(|entry| (entry.cookie, entry.packet_count)))
    }
}
