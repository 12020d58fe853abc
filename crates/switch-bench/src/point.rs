//! One point: a case, forwarded by each form alternately.

use super::case::Case;
use super::forwarder::{Form, Loading, SETTLED_AT, Sides};
use super::measure::{Loop, Reading};
use super::measured_core::MeasuredCore;
use super::record::{BurstCycles, Effects, Figures, Rate, Setting, UpdateFigures};
use super::replay::Replay;
use super::sample::Sample;
use super::updates::{Exchange, Probes, Updates};
use super::workload::Trace;
use crate::Error;
use hdrhistogram::Histogram;
use std::rc::Rc;
use std::time::{Duration, Instant};
use urtica_bench::analysis::Spread;

/// The duration of updates before a reading.
const RAMP: Duration = Duration::from_millis(200);

/// The measurements at a point, and their times.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Plan {
    /// The core that forwards.
    pub core: MeasuredCore,
    /// The forms, which are measured alternately.
    pub forms: Vec<Form>,
    /// The way to load entries before the measurement.
    pub loading: Loading,
    /// Checks all frames instead of the first only.
    pub checks_all: bool,
    /// The number of readings.
    pub readings: u32,
    /// The length of a reading.
    pub reading_length: Duration,
    /// Also times bursts.
    pub latency: bool,
    /// Also measures under route updates: this many a second, or as many as possible if 0.
    pub updates_per_second: Option<u64>,
}

impl Plan {
    /// Creates a plan of five readings of one second each, of the switch and its limit.
    pub fn new(core: MeasuredCore) -> Self {
        Self {
            core,
            forms: vec![Form::Switch, Form::Limit],
            loading: Loading::default(),
            checks_all: false,
            readings: 5,
            reading_length: Duration::from_secs(1),
            latency: false,
            updates_per_second: None,
        }
    }

    /// Returns the length of a phase that is not divided into readings.
    fn phase_length(&self) -> Duration {
        self.reading_length * self.readings
    }
}

/// Measures how fast each form of a plan forwards a case's packets. Returns a rate for each form, and another one for each
/// that has been measured under updates.
///
/// # Errors
/// [`Error::Lost`], [`Error::OtherFrame`] or [`Error::OtherRule`] if a form forwards incorrectly; others if it cannot be
/// measured.
pub fn measure_rates(plan: &Plan, case: &Case) -> Result<Vec<Rate>, Error> {
    let sample = Rc::new(Sample::of(case, plan.checks_all)?);
    let open = |&form| Contestant::open(plan, case, form, &sample);
    let mut contestants = plan.forms.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    for contestant in &mut contestants {
        contestant.read()?;
    }
    for _ in 0..plan.readings {
        for contestant in &mut contestants {
            let reading = contestant.read()?;
            contestant.quiet.push(reading);
            contestant.read_under_updates()?;
        }
    }
    let mut records = Vec::new();
    for contestant in contestants {
        records.extend(contestant.finish()?);
    }
    Ok(records)
}

/// A form at a point.
struct Contestant<'a> {
    plan: &'a Plan,
    case: &'a Case,
    form: Form,
    sides: Sides,
    /// The time to open the sides: loading the entries, and the quiet time after it.
    open_s: f64,
    sample: Rc<Sample>,
    replay: Replay,
    epoch: Instant,
    updates: Option<Updates>,
    /// Readings without updates.
    quiet: Vec<Reading>,
    /// Readings under updates, each with the number of updates during it.
    updated: Vec<(Reading, u64)>,
}

impl<'a> Contestant<'a> {
    fn open(
        plan: &'a Plan,
        case: &'a Case,
        form: Form,
        sample: &Rc<Sample>,
    ) -> Result<Self, Error> {
        let start = Instant::now();
        let mut sides = form.open(case, plan.loading)?;
        let open_s = start.elapsed().as_secs_f64();
        sample.check(form, &mut sides, SETTLED_AT)?;
        let updates = match (plan.updates_per_second, case.route_table, &sides.control) {
            (Some(rate), Some(table), Some(_)) => Some(Updates::new(table, rate)?),
            _ => None,
        };
        let now = Instant::now();
        Ok(Self {
            plan,
            case,
            form,
            sides,
            open_s,
            sample: Rc::clone(sample),
            replay: Replay::new(&case.cells),
            epoch: now.checked_sub(SETTLED_AT).unwrap_or(now),
            updates,
            quiet: Vec::new(),
            updated: Vec::new(),
        })
    }

    /// Takes a reading without updates. Fails if a packet was lost.
    fn read(&mut self) -> Result<Reading, Error> {
        let length = self.plan.reading_length;
        let mut measured = Loop {
            forwarder: &mut *self.sides.forwarder,
            replay: &mut self.replay,
            epoch: self.epoch,
        };
        let (reading, ()) = self.plan.core.run(|| measured.read(length), || ())?;
        if self.case.is_forwarded_whole() && reading.sent != reading.packets {
            return Err(Error::Lost {
                case: self.case.name.clone(),
                form: self.form.name(),
                received: reading.packets,
                sent: reading.sent,
            });
        }
        Ok(reading)
    }

    /// Takes a reading while routes are updated, if requested.
    fn read_under_updates(&mut self) -> Result<(), Error> {
        let (Some(updates), Some(control)) = (&mut self.updates, &mut self.sides.control) else {
            return Ok(());
        };
        let (exchange, epoch) = (Exchange::default(), self.epoch);
        let (over, length) = (exchange.over_when_dropped(), self.plan.reading_length);
        let mut measured = Loop {
            forwarder: &mut *self.sides.forwarder,
            replay: &mut self.replay,
            epoch,
        };
        let forward = || {
            let _over = over;
            measured.run(RAMP);
            let before = exchange.made();
            let reading = measured.run(length);
            (reading, exchange.made() - before)
        };
        let update = || updates.run(&mut **control, epoch, &exchange, None);
        let (reading, updated) = self.plan.core.run(forward, update)?;
        updated?;
        self.updated.push(reading);
        Ok(())
    }

    /// Takes the measurements that need a separate phase, and summarises all.
    fn finish(mut self) -> Result<Vec<Rate>, Error> {
        let bursts = match self.plan.latency {
            true => Some(self.time_bursts()?),
            false => None,
        };
        // Even after millions of packets the results must be unchanged, unless routes have changed, or a file's entries expired.
        if self.updates.is_none() && self.case.is_forwarded_whole() {
            let now = self.epoch.elapsed();
            self.sample.check(self.form, &mut self.sides, now)?;
        }
        let quiet = self.record(figures(&self.quiet), bursts, None);
        let Some(effects) = self.time_effects()? else {
            return Ok(vec![quiet]);
        };
        let readings: Vec<_> = self.updated.iter().map(|(reading, _)| *reading).collect();
        let updates = self.update_figures(&readings, &effects);
        let updated = self.record(figures(&readings), None, Some(updates));
        Ok(vec![quiet, updated])
    }

    fn time_bursts(&mut self) -> Result<BurstCycles, Error> {
        let length = self.plan.phase_length();
        let mut measured = Loop {
            forwarder: &mut *self.sides.forwarder,
            replay: &mut self.replay,
            epoch: self.epoch,
        };
        let (cycles, ()) = self.plan.core.run(|| measured.time_bursts(length), || ())?;
        Ok(BurstCycles {
            burst_cycles_p50: cycles.value_at_quantile(0.5),
            burst_cycles_p99: cycles.value_at_quantile(0.99),
            burst_cycles_p999: cycles.value_at_quantile(0.999),
        })
    }

    /// Measures times to effect in nanoseconds, under the updates of the readings.
    fn time_effects(&mut self) -> Result<Option<Histogram<u64>>, Error> {
        let (Some(updates), Some(control)) = (&mut self.updates, &mut self.sides.control) else {
            return Ok(None);
        };
        let (Some(table), Some(probe)) = (self.case.route_table, self.case.probe) else {
            return Ok(None);
        };
        let (exchange, epoch) = (Exchange::default(), self.epoch);
        let (over, length) = (exchange.over_when_dropped(), self.plan.phase_length());
        let mut probes = Probes::new(table)?;
        probes.add_route(&mut **control, epoch)?;
        let mut measured = Loop {
            forwarder: &mut *self.sides.forwarder,
            replay: &mut Replay::with_probe(&self.case.cells, &probe),
            epoch,
        };
        let watch = || {
            let _over = over;
            measured.watch_probes(length, || exchange.note_change(epoch.elapsed()));
        };
        let update = || updates.run(&mut **control, epoch, &exchange, Some(&mut probes));
        let ((), updated) = self.plan.core.run(watch, update)?;
        updated?;
        probes.finish(&mut **control, epoch).map(Some)
    }

    fn update_figures(&self, readings: &[Reading], effects_ns: &Histogram<u64>) -> UpdateFigures {
        let made: u64 = self.updated.iter().map(|(_, made)| made).sum();
        let seconds: f64 = readings
            .iter()
            .map(|reading| reading.elapsed.as_secs_f64())
            .sum();
        let pairs = readings.iter().zip(&self.quiet);
        let ratios: Vec<_> = pairs
            .map(|(updated, quiet)| updated.mpps() / quiet.mpps())
            .collect();
        UpdateFigures {
            updates_per_s: made as f64 / seconds,
            updates_per_s_asked: self.plan.updates_per_second.unwrap_or(0),
            mpps_ratio: Spread::of(&ratios).median,
            effects: effects(effects_ns),
        }
    }

    fn record(
        &self,
        figures: Figures,
        bursts: Option<BurstCycles>,
        updates: Option<UpdateFigures>,
    ) -> Rate {
        let has_entries = self.sides.control.is_some();
        Rate {
            setting: Setting::now("rate", self.plan.core),
            pipeline: self.case.name.clone(),
            flows: self.case.flows,
            trace: self.case.trace.map(Trace::name),
            form: self.form.name(),
            entries: self.case.entries.flow_count(),
            loading: has_entries.then(|| self.plan.loading.name()),
            open_s: has_entries.then_some(self.open_s),
            seconds: self.plan.reading_length.as_secs_f64(),
            figures,
            bursts,
            updates,
        }
    }
}

/// Summarises the times to effect, if any were observed.
fn effects(effects_ns: &Histogram<u64>) -> Option<Effects> {
    let quantile_us = |quantile| effects_ns.value_at_quantile(quantile) as f64 / 1000.0;
    (!effects_ns.is_empty()).then(|| Effects {
        time_to_effect_us_p50: quantile_us(0.5),
        time_to_effect_us_p99: quantile_us(0.99),
        effects: effects_ns.len(),
    })
}

fn figures(readings: &[Reading]) -> Figures {
    let mpps = readings.iter().map(Reading::mpps).collect();
    let cycles = readings.iter().map(Reading::cycles_per_packet).collect();
    let sent: u64 = readings.iter().map(|reading| reading.sent).sum();
    let plain: u64 = readings.iter().map(|reading| reading.plain).sum();
    let packets: u64 = readings.iter().map(|reading| reading.packets).sum();
    let share = |count| count as f64 / packets as f64;
    Figures::new(mpps, cycles, share(sent), share(plain))
}

#[cfg(test)]
mod tests {
    use super::super::forwarder::{Control, Departure, Forwarder, Sent};
    use super::super::replay::BURST;
    use super::super::workload::Workload;
    use super::*;
    use std::collections::BTreeMap;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;
    use std::sync::atomic::Ordering::Relaxed;
    use urtica_wire::{ErrorCode, FlowMod, FlowModCommand};

    /// A fake switch, which changes the probe's port at once, and may lose a packet of each burst.
    #[derive(Clone, Default)]
    struct Fake {
        probe_is_away: Arc<AtomicBool>,
        lost: u32,
    }

    impl Forwarder for Fake {
        fn forward(&mut self, replay: &mut Replay, _now: Duration) -> Sent {
            replay.receive(|_| {});
            let probe = u32::from(self.probe_is_away.load(Relaxed));
            Sent {
                out: BURST as u32 - probe - self.lost,
                probe,
                plain: 0,
            }
        }

        fn departures(&mut self, _replay: &mut Replay, _now: Duration) -> Vec<Departure> {
            Vec::new()
        }
    }

    impl Control for Fake {
        fn flow_mod(&mut self, flow_mod: &FlowMod<'_>, _now: Duration) -> Result<(), ErrorCode> {
            if flow_mod.command == FlowModCommand::ModifyStrict {
                self.probe_is_away.fetch_xor(true, Relaxed);
            }
            Ok(())
        }

        fn matched(&self) -> BTreeMap<u64, u64> {
            BTreeMap::new()
        }
    }

    /// Returns the results for a fake on the last core.
    fn measure(fake: Fake) -> Result<Vec<Rate>, Error> {
        let plan = Plan {
            forms: vec![Form::Bare],
            readings: 2,
            reading_length: Duration::from_millis(20),
            updates_per_second: Some(1000),
            ..Plan::new(MeasuredCore::last()?)
        };
        let case = Case::of(Workload::L3, 1, Trace::Uniform)?;
        let sample = Rc::new(Sample::of(&case, false)?);
        let mut contestant = Contestant::open(&plan, &case, Form::Bare, &sample)?;
        contestant.updates = Some(Updates::new(0, 1000)?);
        contestant.sides = Sides {
            forwarder: Box::new(fake.clone()),
            control: Some(Box::new(fake)),
        };
        for _ in 0..plan.readings {
            let reading = contestant.read()?;
            contestant.quiet.push(reading);
            contestant.read_under_updates()?;
        }
        contestant.finish()
    }

    #[test]
    fn readings_become_records() {
        let records = measure(Fake::default()).unwrap();
        let [quiet, updated] = &records[..] else {
            panic!("{records:?}");
        };
        assert_eq!(quiet.figures.forwarded_share, 1.0);
        assert_eq!(quiet.figures.readings.len(), 2);
        assert!(quiet.updates.is_none());
        let updates = updated.updates.unwrap();
        assert!(updates.updates_per_s > 0.0 && updates.mpps_ratio > 0.0);
        let effects = updates.effects.unwrap();
        assert!(effects.effects > 0);
        assert!(effects.time_to_effect_us_p50 <= effects.time_to_effect_us_p99);
    }

    #[test]
    fn a_lost_packet_is_an_error() {
        let lossy = Fake {
            lost: 1,
            ..Fake::default()
        };
        let error = measure(lossy).unwrap_err().to_string();
        assert!(
            error.contains("were sent in the form bare; expected all"),
            "{error}"
        );
    }
}
