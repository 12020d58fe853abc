//! Route updates while packets are forwarded, and their times to effect.
//!
//! **What.** One update is one flow mod. Routes are in a fixed random order; each is deleted (strictly), and the next
//! update adds it back, so that at most one is missing at a time. Every flow mod is encoded in OpenFlow 1.3, and
//! decoded when it is due, as if a controller had sent it.
//!
//! **Pace.** Updates become due evenly and are made every millisecond, at most [`BATCH_MAX`] at a time. If the pipeline is
//! slower than the requested rate, it gets fewer updates.
//!
//! **Time to effect.** One additional route, [`PROBE_ROUTE`], leads alternately to the out port and to another port.
//! The last packet of each burst uses it, so that the numbers of frames by port show the forwarding side the current
//! route; it notes the time of every change. The time to effect is from receiving the flow mod's bytes to the end of
//! the first burst that used the new route: decoding, the change itself, its publication, and up to two bursts.
//!
//! **Threads.** The control side runs here, the forwarding side in another thread; they share only [`Exchange`].

use super::forwarder::Control;
use super::measure::new_histogram;
use super::workload::{OUT_PORT, PROBE_PORT, PROBE_ROUTE, route_entry, route_updates};
use crate::Error;
use hdrhistogram::Histogram;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread::sleep;
use std::time::{Duration, Instant};
use urtica_wire::{FlowMod, FlowModCommand, Message, Version};

/// The interval of updates.
const TICK: Duration = Duration::from_millis(1);

/// The maximum number of updates made at once.
const BATCH_MAX: u64 = 1000;

/// The interval of changes of the probe's route, once the last change was seen.
const PROBE_PERIOD: Duration = Duration::from_millis(4);

/// The state shared by the control side and the forwarding side.
#[derive(Debug, Default)]
pub struct Exchange {
    is_over: AtomicBool,
    /// Route updates made.
    made: AtomicU64,
    /// The number of observed changes of the probe's port, and the time of the last, in nanoseconds since the epoch.
    changes_seen: AtomicU64,
    last_change_ns: AtomicU64,
}

/// Ends updates on drop.
pub struct OverWhenDropped<'a>(&'a Exchange);

impl Drop for OverWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Relaxed);
    }
}

impl Exchange {
    /// Returns a guard that the forwarding side holds as long as it wants updates.
    pub fn over_when_dropped(&self) -> OverWhenDropped<'_> {
        OverWhenDropped(self)
    }

    /// Returns the number of route updates made.
    pub fn made(&self) -> u64 {
        self.made.load(Relaxed)
    }

    /// Notes that the forwarding side has observed a change of the probe's port.
    pub fn note_change(&self, since_epoch: Duration) {
        self.last_change_ns
            .store(since_epoch.as_nanos() as u64, Relaxed);
        // A thread that reads this count also sees the change's time.
        self.changes_seen.fetch_add(1, Release);
    }
}

/// Route updates; each run continues after the last update of the previous one.
pub struct Updates {
    /// A delete and an add for each route.
    messages: Vec<Vec<u8>>,
    /// The index of the next message.
    next: usize,
    /// The number of updates per second; 0 for as many as possible.
    per_second: u64,
}

impl Updates {
    /// Creates updates of the routes in a table.
    ///
    /// # Errors
    /// If a flow mod cannot be encoded in OpenFlow.
    pub fn new(table: u8, per_second: u64) -> Result<Self, Error> {
        let mut messages = Vec::new();
        for route in route_updates() {
            let entry = route_entry(route, table, OUT_PORT);
            messages.push(encoded(
                FlowModCommand::DeleteStrict,
                without_actions(&entry),
            )?);
            messages.push(encoded(FlowModCommand::Add, &entry)?);
        }
        Ok(Self {
            messages,
            next: 0,
            per_second,
        })
    }

    /// Makes updates until the forwarding side ends them, and also changes the probe's route, if any. Then restores all routes.
    ///
    /// # Errors
    /// If the pipeline refuses an update.
    pub fn run(
        &mut self,
        control: &mut dyn Control,
        epoch: Instant,
        exchange: &Exchange,
        mut probes: Option<&mut Probes>,
    ) -> Result<(), Error> {
        let (start, mut made) = (Instant::now(), 0);
        while !exchange.is_over.load(Relaxed) {
            if let Some(probes) = &mut probes {
                probes.step(control, epoch, exchange)?;
            }
            let due = self.due(start.elapsed()).saturating_sub(made);
            for _ in 0..due.min(BATCH_MAX) {
                self.make_next(control, epoch)?;
                exchange.made.fetch_add(1, Relaxed);
            }
            made += due.min(BATCH_MAX);
            if due < BATCH_MAX {
                sleep(TICK);
            }
        }
        if self.next % 2 != 0 {
            self.make_next(control, epoch)?;
        }
        Ok(())
    }

    /// Returns the number of updates that are due this long after the start.
    fn due(&self, elapsed: Duration) -> u64 {
        match self.per_second {
            0 => u64::MAX,
            rate => (elapsed.as_secs_f64() * rate as f64) as u64,
        }
    }

    fn make_next(&mut self, control: &mut dyn Control, epoch: Instant) -> Result<(), Error> {
        carry_out(control, &self.messages[self.next], epoch.elapsed())?;
        self.next = (self.next + 1) % self.messages.len();
        Ok(())
    }
}

/// Changes of the probe's route, and the time until each was observed.
pub struct Probes {
    /// The modifications for odd and for even changes.
    messages: [Vec<u8>; 2],
    addition: Vec<u8>,
    deletion: Vec<u8>,
    /// The number of changes, and the start of the last.
    made: u64,
    last: Duration,
    /// Whether the last change has been observed.
    is_seen: bool,
    /// Times to effect in nanoseconds.
    effects_ns: Histogram<u64>,
}

impl Probes {
    /// Creates changes of the probe's route in a table.
    ///
    /// # Errors
    /// If a flow mod cannot be encoded in OpenFlow.
    pub fn new(table: u8) -> Result<Self, Error> {
        let usual = route_entry(PROBE_ROUTE, table, OUT_PORT);
        let other = route_entry(PROBE_ROUTE, table, PROBE_PORT);
        Ok(Self {
            messages: [
                encoded(FlowModCommand::ModifyStrict, &other)?,
                encoded(FlowModCommand::ModifyStrict, &usual)?,
            ],
            addition: encoded(FlowModCommand::Add, &usual)?,
            deletion: encoded(FlowModCommand::DeleteStrict, without_actions(&usual))?,
            made: 0,
            last: Duration::ZERO,
            is_seen: true,
            effects_ns: new_histogram(),
        })
    }

    /// Adds the probe's route.
    ///
    /// # Errors
    /// If the pipeline refuses it.
    pub fn add_route(&self, control: &mut dyn Control, epoch: Instant) -> Result<(), Error> {
        carry_out(control, &self.addition, epoch.elapsed())
    }

    /// Deletes the probe's route, and returns the times to effect in nanoseconds.
    ///
    /// # Errors
    /// If the pipeline refuses the deletion.
    pub fn finish(
        self,
        control: &mut dyn Control,
        epoch: Instant,
    ) -> Result<Histogram<u64>, Error> {
        carry_out(control, &self.deletion, epoch.elapsed())?;
        Ok(self.effects_ns)
    }

    /// Notes the observed state, and makes the next change when it is due.
    fn step(
        &mut self,
        control: &mut dyn Control,
        epoch: Instant,
        exchange: &Exchange,
    ) -> Result<(), Error> {
        if !self.is_seen && exchange.changes_seen.load(Acquire) == self.made {
            let seen_ns = exchange.last_change_ns.load(Relaxed);
            let effect_ns = seen_ns.saturating_sub(self.last.as_nanos() as u64);
            self.effects_ns.saturating_record(effect_ns);
            self.is_seen = true;
        }
        let now = epoch.elapsed();
        if self.is_seen && now >= self.last + PROBE_PERIOD {
            (self.last, self.is_seen) = (now, false);
            let message = &self.messages[self.made as usize % 2];
            self.made += 1;
            carry_out(control, message, now)?;
        }
        Ok(())
    }
}

/// Returns an entry's text up to its actions.
fn without_actions(entry: &str) -> &str {
    entry
        .split_once(",actions=")
        .map_or(entry, |(match_, _)| match_)
}

/// Returns a flow mod's bytes.
fn encoded(command: FlowModCommand, entry: &str) -> Result<Vec<u8>, Error> {
    let flow_mod = FlowMod::parse(command, entry).map_err(|error| Error::Entry {
        entry: entry.to_owned(),
        error,
    })?;
    let mut bytes = Vec::new();
    Message::FlowMod(flow_mod).encode(Version::Of13, 0, &mut bytes)?;
    Ok(bytes)
}

/// Decodes a flow mod and executes it.
fn carry_out(control: &mut dyn Control, bytes: &[u8], now: Duration) -> Result<(), Error> {
    let (_, Message::FlowMod(flow_mod)) = Message::decode(bytes)? else {
        unreachable!("`encoded` writes flow mods only");
    };
    let changed = control.flow_mod(&flow_mod, now);
    changed.map_err(|code| Error::refused(&flow_mod, code))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use urtica_wire::ErrorCode;

    /// A fake of both sides in one thread: it stores the flow mods, and ends after `wanted` of them.
    struct Fake<'a> {
        made: Vec<(FlowModCommand, String)>,
        exchange: &'a Exchange,
        wanted: usize,
    }

    impl Control for Fake<'_> {
        fn flow_mod(&mut self, flow_mod: &FlowMod<'_>, now: Duration) -> Result<(), ErrorCode> {
            if flow_mod.command == FlowModCommand::ModifyStrict {
                self.exchange.note_change(now + Duration::from_micros(5));
            }
            self.made
                .push((flow_mod.command, flow_mod.match_.to_string()));
            if self.made.len() == self.wanted {
                drop(self.exchange.over_when_dropped());
            }
            Ok(())
        }

        fn matched(&self) -> BTreeMap<u64, u64> {
            BTreeMap::new()
        }
    }

    #[test]
    fn each_route_is_deleted_and_added_back() {
        let exchange = Exchange::default();
        let mut fake = Fake {
            made: Vec::new(),
            exchange: &exchange,
            wanted: 7,
        };
        let mut updates = Updates::new(0, 1000).unwrap();
        updates
            .run(&mut fake, Instant::now(), &exchange, None)
            .unwrap();
        assert!(fake.made.len().is_multiple_of(2));
        assert!(exchange.made() >= 7);
        let routes = route_updates();
        for (pair, route) in fake.made.chunks(2).zip(&routes) {
            assert_eq!(pair[0].0, FlowModCommand::DeleteStrict);
            assert_eq!(pair[1].0, FlowModCommand::Add);
            assert_eq!(pair[0].1, pair[1].1);
            assert!(pair[0].1.contains(&route.network()), "{pair:?}");
        }
    }

    #[test]
    fn the_time_to_effect_is_from_the_bytes_to_the_change() {
        let exchange = Exchange::default();
        let mut fake = Fake {
            made: Vec::new(),
            exchange: &exchange,
            wanted: 30,
        };
        let (mut updates, mut probes) = (Updates::new(60, 1000).unwrap(), Probes::new(60).unwrap());
        let epoch = Instant::now();
        updates
            .run(&mut fake, epoch, &exchange, Some(&mut probes))
            .unwrap();
        let effects = probes.finish(&mut fake, epoch).unwrap();
        assert!(!effects.is_empty());
        assert_eq!(effects.min(), 5000);
        assert_eq!(fake.made.last().unwrap().0, FlowModCommand::DeleteStrict);
    }
}
