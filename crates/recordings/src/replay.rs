//! The switches of a recording, connected to a controller: as a test, as load, or at the recorded times.
//!
//! `recording` finds the connections in a capture, `script` turns each into the switch's answers and asynchronous
//! messages, and `player` sends them to a controller.

mod kind;
mod played;
mod player;
mod recording;
mod script;

pub use played::{PlayError, Played};
pub use player::Pace;
pub use recording::{Recording, RecordingError, Session, Step};

use player::{Player, scaled};
use script::Script;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use urtica_socket::{Address, Tls};
use urtica_wire::DatapathId;

/// The settings of a replay.
pub struct Replay {
    /// The controller to connect to.
    pub controller: Address,
    /// The TLS files, for an `ssl:` address.
    pub tls: Option<Tls>,
    /// When messages are sent.
    pub pace: Pace,
    /// The time to wait for each message that the controller sent in the recording.
    pub timeout: Duration,
}

/// A recorded connection, with the result of its replay.
pub struct Outcome {
    /// The switch.
    pub datapath_id: DatapathId,
    /// The switch's address in the recording.
    pub switch: SocketAddr,
    /// The result.
    pub played: Result<Played, PlayError>,
}

impl Replay {
    /// Replays all switches concurrently, each in its own thread, and each switch's connections one after another. `report`
    /// is called in the thread after each connection, and returns whether it succeeded. Returns `true` if all succeeded.
    pub fn play_all(
        &self,
        sessions: Vec<Session>,
        report: impl Fn(&Outcome) -> bool + Sync,
    ) -> bool {
        let begin = sessions.iter().map(Session::begin).min();
        let clock = Clock {
            begin: begin.unwrap_or_default(),
            started: Instant::now(),
        };
        let mut by_switch: BTreeMap<DatapathId, Vec<Session>> = BTreeMap::new();
        for session in sessions {
            let of_switch = by_switch.entry(session.datapath_id).or_default();
            of_switch.push(session);
        }
        let (clock, report) = (&clock, &report);
        std::thread::scope(|scope| {
            let switches = by_switch.into_iter().map(|(datapath_id, sessions)| {
                let switch = sessions[0].switch;
                let play = move || self.play_in_turn(sessions, clock, report);
                let thread = std::thread::Builder::new().spawn_scoped(scope, play);
                thread.map_err(|error| {
                    report(&Outcome {
                        datapath_id,
                        switch,
                        played: Err(PlayError::Thread(error)),
                    })
                })
            });
            let switches: Vec<_> = switches.collect();
            // Wait for all threads, whatever their results.
            let outcomes = switches.into_iter().map(|switch| {
                let joined = switch.map(|switch| switch.join().unwrap_or(false));
                joined.unwrap_or(false)
            });
            outcomes.fold(true, |all, went_well| all & went_well)
        })
    }

    fn play_in_turn(
        &self,
        sessions: Vec<Session>,
        clock: &Clock,
        report: &(impl Fn(&Outcome) -> bool + Sync),
    ) -> bool {
        let mut all_went_well = true;
        for session in sessions {
            if let Pace::AsRecorded { speed } = self.pace {
                clock.wait_until(session.begin(), speed);
            }
            all_went_well &= report(&self.play(session));
        }
        all_went_well
    }

    fn play(&self, session: Session) -> Outcome {
        let (datapath_id, switch) = (session.datapath_id, session.switch);
        let script = Script::new(session);
        let player = Player::connect(&self.controller, self.tls.as_ref(), &script, self.timeout);
        Outcome {
            datapath_id,
            switch,
            played: player.and_then(|player| player.play(self.pace)),
        }
    }
}

/// A time in the recording, and our time that corresponds to it.
struct Clock {
    begin: Duration,
    started: Instant,
}

impl Clock {
    fn wait_until(&self, recorded: Duration, speed: f64) {
        let due = self.started + scaled(recorded.saturating_sub(self.begin), speed);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    }
}

#[cfg(test)]
mod tests;
