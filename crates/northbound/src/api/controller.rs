//! The state of the controller.

use crate::app::App;
use crate::live::Setting;
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use urtica_controller::ProgramPanic;
use utoipa::ToSchema;

/// The controller.
#[derive(Serialize, ToSchema)]
pub(crate) struct ControllerState {
    /// The version of its program.
    version: &'static str,
    /// The time since it was started.
    running_seconds: u64,
    programs: Vec<RunningProgram>,
    /// The last panics of programs, at most 64; the newest first.
    panics: Vec<Panic>,
    /// The options that were set; empty if its program shows no options.
    settings: Vec<Setting>,
}

/// A running control program.
#[derive(Serialize, ToSchema)]
pub(crate) struct RunningProgram {
    name: String,
    /// The time since it was started or replaced; `null` if it has no handlers.
    running_seconds: Option<u64>,
}

/// A program that has panicked.
#[derive(Serialize, ToSchema)]
pub(crate) struct Panic {
    /// The program's name, if it has one.
    program: Option<String>,
    /// The switch whose connection was closed; `null` for a background program.
    switch: Option<String>,
    reason: String,
    age_seconds: u64,
}

impl From<&ProgramPanic> for Panic {
    fn from(panic: &ProgramPanic) -> Self {
        Self {
            program: panic.program.clone(),
            switch: panic.switch.map(|id| id.to_string()),
            reason: panic.reason.clone(),
            age_seconds: panic.at.elapsed().map_or(0, |age| age.as_secs()),
        }
    }
}

pub(super) async fn state(State(app): State<Arc<App>>) -> Json<ControllerState> {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_s = since_1970.map_or(0, |since| since.as_secs());
    let panics = app.network.panics();
    Json(ControllerState {
        version: env!("CARGO_PKG_VERSION"),
        running_seconds: now_s.saturating_sub(app.started_s),
        programs: programs(&app),
        panics: panics
            .iter()
            .rev()
            .map(|panic| Panic::from(&**panic))
            .collect(),
        settings: app.live.settings(),
    })
}

fn programs(app: &App) -> Vec<RunningProgram> {
    let times = app.network.packet_in_times();
    let names = app.live.sources().programs.clone();
    let program = |name: String| {
        let times = times.iter().find(|times| times.name() == Some(&name));
        RunningProgram {
            running_seconds: times.map(|times| times.started().elapsed().as_secs()),
            name,
        }
    };
    names.into_iter().map(program).collect()
}
