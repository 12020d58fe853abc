//! The sessions with switches: all that a program has not subscribed to, from hello to keep-alive.

use super::record::RingSwitch;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::{Duration, Instant};
use urtica_controller::{
    ConnectionError, ConnectionId, Controller, Embedded, SessionConfig, Switch, SwitchHandler,
    SwitchInfo,
};

/// A switch that connects or leaves: an entry of the paper's control queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RingEvent {
    /// A switch is up: the program receives its messages from now on.
    SwitchUp(RingSwitch),
    /// A switch has left.
    SwitchDown(RingSwitch),
}

/// A report of a session.
pub(crate) enum SwitchReport {
    /// The switch is identified.
    Joined(RingSwitch),
    /// The switch is up.
    Up(RingSwitch),
    /// The switch has left.
    Down(RingSwitch),
}

/// A controller whose only program reports switches.
pub(crate) struct Sessions {
    embedded: Embedded,
    told: Reports,
    started: Instant,
}

type Reports = Arc<Mutex<Vec<SwitchReport>>>;

/// Reports switches that connect and leave.
struct Reporter(Reports);

impl SwitchHandler for Reporter {
    fn switch_up(&mut self, switch: &mut Switch) {
        self.0
            .lock()
            .push(SwitchReport::Up(identity(switch.info())));
    }

    fn switch_down(&mut self, info: &SwitchInfo) {
        self.0.lock().push(SwitchReport::Down(identity(info)));
    }
}

fn identity(info: &SwitchInfo) -> RingSwitch {
    RingSwitch {
        datapath_id: info.datapath_id,
        version: info.version,
    }
}

impl Sessions {
    /// Creates a controller without sessions.
    pub fn new(config: SessionConfig) -> Result<Self, urtica_controller::Error> {
        let told = Reports::default();
        let reports = Arc::clone(&told);
        let program = move |info: &SwitchInfo| {
            reports.lock().push(SwitchReport::Joined(identity(info)));
            Reporter(Arc::clone(&reports))
        };
        Ok(Self {
            embedded: Controller::new().session(config).program(program).embed()?,
            told,
            started: Instant::now(),
        })
    }

    /// Starts a session.
    pub fn connect(&mut self, peer: String) -> ConnectionId {
        let now = self.now();
        self.embedded.connect(peer, now)
    }

    /// Handles a message, or the start of one.
    pub fn handle(&mut self, session: ConnectionId, bytes: &[u8]) -> Result<(), ConnectionError> {
        let now = self.now();
        self.embedded.handle_input(session, bytes, now)
    }

    /// Notes that input of a switch was received and handled elsewhere.
    pub fn note_received(&mut self, session: ConnectionId) {
        let now = self.now();
        self.embedded.note_received(session, now);
    }

    /// Handles all due time-outs. Returns the sessions that have ended.
    pub fn handle_timeout(&mut self) -> Vec<ConnectionId> {
        let now = self.now();
        let ended = self.embedded.handle_timeout(now);
        ended.into_iter().map(|(session, _)| session).collect()
    }

    /// Appends a session's output.
    pub fn take_output(&mut self, session: ConnectionId, to: &mut Vec<u8>) {
        if let Some(output) = self.embedded.output(session) {
            to.append(output);
        }
    }

    /// Ends a session.
    pub fn disconnect(&mut self, session: ConnectionId) {
        let now = self.now();
        self.embedded.disconnect(session, now);
    }

    /// Returns the reports since the last call.
    pub fn take_reports(&mut self) -> Vec<SwitchReport> {
        std::mem::take(&mut *self.told.lock())
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }
}
