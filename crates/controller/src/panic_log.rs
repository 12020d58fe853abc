//! The last panics of programs, for the operator.

use crate::{Broadcast, NetworkEvent, ProgramPanic};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::SystemTime;
use urtica_wire::DatapathId;

/// The maximum number of panics kept.
const KEPT: usize = 64;

/// Keeps the last panics, and reports each one as an event.
#[derive(Debug)]
pub(crate) struct PanicLog {
    last: Mutex<VecDeque<Arc<ProgramPanic>>>,
    events: Arc<Broadcast<NetworkEvent>>,
}

impl PanicLog {
    pub fn new(events: Arc<Broadcast<NetworkEvent>>) -> Self {
        Self {
            last: Mutex::default(),
            events,
        }
    }

    /// Notes a panic of a background program or, with `switch`, of a handler.
    pub fn note(&self, program: Option<&str>, switch: Option<DatapathId>, reason: &str) {
        let panic = Arc::new(ProgramPanic {
            program: program.map(str::to_owned),
            switch,
            reason: reason.to_owned(),
            at: SystemTime::now(),
        });
        let mut last = self.last.lock();
        if last.len() == KEPT {
            last.pop_front();
        }
        last.push_back(Arc::clone(&panic));
        drop(last);
        self.events.send(NetworkEvent::Panicked(panic));
    }

    /// Returns the last panics, oldest first.
    pub fn last(&self) -> Vec<Arc<ProgramPanic>> {
        self.last.lock().iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recent_panics_are_kept_in_order_and_are_events() {
        let broadcast = Arc::new(Broadcast::new(NetworkEvent::Missed));
        let mut events = broadcast.subscribe();
        let log = PanicLog::new(broadcast);
        for number in 0..KEPT + 3 {
            log.note(Some("sweeper"), None, &number.to_string());
        }
        let reasons: Vec<_> = log.last().iter().map(|it| it.reason.clone()).collect();
        let expected: Vec<_> = (3..KEPT + 3).map(|number| number.to_string()).collect();
        assert_eq!(reasons, expected);
        let Some(NetworkEvent::Panicked(first)) = events.try_next() else {
            panic!("expected an event");
        };
        assert_eq!(
            (first.program.as_deref(), &*first.reason),
            (Some("sweeper"), "0")
        );
    }
}
