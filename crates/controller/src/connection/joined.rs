//! A switch that has joined, and its handlers.

use super::drop_contained;
use super::raw_part::RawPart;
use crate::batch::BatchContext;
use crate::program_list::ProgramList;
use crate::session::Subject;
use crate::switch::Identity;
use crate::xid::{Origin, Xids};
use crate::{Switch, SwitchCounters, SwitchHandler, SwitchInfo};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A switch that has identified itself by its features reply, with one handler per program.
pub(super) struct Joined {
    pub info: Arc<SwitchInfo>,
    pub handlers: Vec<Box<dyn SwitchHandler>>,
    /// The handlers' programs, in the same order.
    pub programs: Arc<ProgramList>,
    /// The raw program's part, if the controller has one.
    pub raw: Option<RawPart>,
    /// Whether its ports are known, if it describes them.
    pub is_up: bool,
    /// The time when its ports became known; until then, the time when it joined.
    pub up_since: Instant,
    /// The timers of handlers with an interval, while our role permits writing.
    pub timers: Vec<TickTimer>,
}

/// The timer of a handler's [`SwitchHandler::tick`].
pub(super) struct TickTimer {
    pub program: usize,
    pub interval: Duration,
    pub due: Instant,
}

impl TickTimer {
    /// Starts a timer; returns `None` if its time is beyond the range of [`Instant`].
    pub fn start(program: usize, interval: Duration, now: Instant) -> Option<Self> {
        Some(Self {
            program,
            interval,
            due: now.checked_add(interval)?,
        })
    }

    /// Restarts the timer; returns `false` if its next time is beyond the range of [`Instant`].
    fn restart(&mut self, now: Instant) -> bool {
        let next = now.checked_add(self.interval);
        next.map(|due| self.due = due).is_some()
    }
}

/// Contains panics of handlers' destructors when a connection ends without [`Connection::close`] because its shard has ended.
impl Drop for Joined {
    fn drop(&mut self) {
        let raw = self.raw.take().map(RawPart::drop_contained);
        let handlers = self.handlers.drain(..).map(drop_contained);
        for dropped in handlers.chain(raw) {
            if let Err(reason) = dropped {
                urtica_log::error!(about: Subject::Switch(self.info.datapath_id), dp_id = %self.info.datapath_id, %reason, "a handler panicked while it was dropped");
            }
        }
    }
}

impl Joined {
    pub fn start_timers(&mut self, now: Instant) {
        let intervals = self.handlers.iter().map(|handler| handler.tick_interval());
        let timers = intervals
            .enumerate()
            .filter_map(|(program, interval)| TickTimer::start(program, interval?, now));
        self.timers = timers.collect();
    }

    /// Returns the programs whose timers have expired; their next intervals start now.
    pub fn take_due(&mut self, now: Instant) -> Vec<usize> {
        let mut programs = Vec::new();
        self.timers.retain_mut(|timer| {
            if timer.due > now {
                return true;
            }
            programs.push(timer.program);
            timer.restart(now)
        });
        programs
    }

    /// Calls the handlers of the programs in `range`, in order, until one consumes the message.
    pub fn call(
        &mut self,
        range: Range<usize>,
        xids: &mut Xids,
        counters: &SwitchCounters,
        batch: &mut BatchContext,
        mut call: impl FnMut(&mut dyn SwitchHandler, &mut Switch),
    ) {
        let start = batch.out.len();
        let programs = &self.programs.identities;
        let mut switch = self.info.as_switch(programs, xids, counters, batch);
        for (program, handler) in self.handlers.iter_mut().enumerate() {
            if range.contains(&program) && !switch.consumed {
                switch.begin(program);
                call(handler.as_mut(), &mut switch);
            }
        }
        if !self.info.role.may_write() {
            switch.withhold_writes(start);
        }
    }
}

impl SwitchInfo {
    /// Returns the handlers' view of the switch during a batch.
    pub(super) fn as_switch<'t>(
        &'t self,
        programs: &'t [Identity],
        xids: &'t mut Xids,
        counters: &'t SwitchCounters,
        batch: &'t mut BatchContext,
    ) -> Switch<'t> {
        Switch {
            info: self,
            out: &mut batch.out,
            xids,
            counters,
            network: &batch.network,
            now: batch.now,
            now_s: batch.now_s,
            origin: Origin::SESSION,
            cookie_be: 0,
            own_table: None,
            programs,
            consumed: false,
            sent: 0,
        }
    }
}
