//! Requests to an emulated network: its state, cuts, pings and traffic.

use crate::app::App;
use crate::emulation::{Emulated, EmulatedTraffic, Emulation, PingResults};
use crate::error::ApiError;
use crate::object::Object;
use crate::params::Params;
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;
use utoipa::ToSchema;

/// The permitted rates of traffic in Mbit/s, and the default.
const MBIT_PER_S: (RangeInclusive<u32>, u32) = (1..=100, 10);
/// The permitted durations of traffic in seconds, and the default.
const SECONDS: (RangeInclusive<u32>, u32) = (1..=600, 30);

/// A link's new state.
#[derive(Deserialize, ToSchema)]
#[expect(
    dead_code,
    reason = "it describes the body; errors name its fields themselves"
)]
pub(crate) struct LinkChange {
    /// Whether it carries frames: `false` cuts it, `true` repairs it.
    #[schema(example = false)]
    up: bool,
}

/// A switch's new state.
#[derive(Deserialize, ToSchema)]
#[expect(
    dead_code,
    reason = "it describes the body; errors name its fields themselves"
)]
pub(crate) struct SwitchChange {
    /// Whether it runs: `false` stops it as a power failure does, `true` starts it without entries.
    #[schema(example = false)]
    running: bool,
}

/// The hosts that ping.
#[derive(Deserialize, ToSchema)]
#[expect(
    dead_code,
    reason = "it describes the body; errors name its fields themselves"
)]
pub(crate) struct PingOrder {
    /// The host that pings, by name; if both are omitted, every host pings every other.
    #[schema(example = "h1")]
    from: Option<String>,
    /// The host that it pings.
    #[schema(example = "h2")]
    to: Option<String>,
}

/// The sending and the receiving host.
#[derive(Deserialize, ToSchema)]
#[expect(
    dead_code,
    reason = "it describes the body; errors name its fields themselves"
)]
pub(crate) struct TrafficOrder {
    /// The host that sends, by name.
    #[schema(example = "h1")]
    from: String,
    /// The host that receives.
    #[schema(example = "h2")]
    to: String,
    /// The rate in Mbit/s, from 1 to 100.
    #[schema(default = 10, minimum = 1, maximum = 100, example = 10)]
    mbit_per_s: Option<u32>,
    /// The duration in seconds, from 1 to 600.
    #[schema(default = 30, minimum = 1, maximum = 600, example = 30)]
    seconds: Option<u32>,
}

/// Returns the parts of the network; empty lists if it is not emulated.
pub(super) async fn describe(State(app): State<Arc<App>>) -> Result<Json<Emulated>, ApiError> {
    let Some(emulation) = &app.emulation else {
        return Ok(Json(Emulated::default()));
    };
    let described = emulation.ask(deadline(&app), |network| network.describe());
    Ok(Json(described.await?))
}

pub(super) async fn link(
    State(app): State<Arc<App>>,
    params: Params,
    body: Body,
) -> Result<StatusCode, ApiError> {
    let emulation = emulation(&app)?;
    let text = params.get("link").unwrap_or_default();
    let number: usize = text.parse().map_err(|_| {
        ApiError::field(
            "link",
            text,
            "a link's position in GET /api/v1/emulation, from 0",
        )
        .example("/api/v1/emulation/links/0")
    })?;
    let value = app.value(body).await?;
    let up = yes_or_no(&value, "up")?;
    emulation
        .ask(deadline(&app), move |network| network.set_link(number, up))
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn switch(
    State(app): State<Arc<App>>,
    params: Params,
    body: Body,
) -> Result<StatusCode, ApiError> {
    let emulation = emulation(&app)?;
    let id = params.switch()?;
    let value = app.value(body).await?;
    let runs = yes_or_no(&value, "running")?;
    emulation
        .ask(deadline(&app), move |network| network.set_switch(id, runs))
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn ping(
    State(app): State<Arc<App>>,
    body: Body,
) -> Result<Json<PingResults>, ApiError> {
    let emulation = emulation(&app)?;
    let value = app.value(body).await?;
    let body = Object::body(&value)?;
    body.only(&["from", "to"])?;
    let is_for_all = body.get("from").is_none() && body.get("to").is_none();
    let deadline = deadline(&app);
    let results = match is_for_all {
        true => {
            emulation
                .ask(deadline, |network| network.ping_all())
                .await?
        }
        false => {
            let (from, to) = (host(&body, "from")?, host(&body, "to")?);
            emulation
                .ask(deadline, move |network| network.ping(&from, &to))
                .await?
        }
    };
    Ok(Json(results))
}

pub(super) async fn traffic(
    State(app): State<Arc<App>>,
    body: Body,
) -> Result<StatusCode, ApiError> {
    let emulation = emulation(&app)?;
    let value = app.value(body).await?;
    let body = Object::body(&value)?;
    body.only(&["from", "to", "mbit_per_s", "seconds"])?;
    let traffic = EmulatedTraffic {
        from: host(&body, "from")?,
        to: host(&body, "to")?,
        mbit_per_s: within(&body, "mbit_per_s", MBIT_PER_S)?,
        time: Duration::from_secs(within(&body, "seconds", SECONDS)?.into()),
    };
    emulation
        .ask(deadline(&app), move |network| {
            network.start_traffic(&traffic)
        })
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Returns the emulated network; an error if the network is not emulated.
fn emulation(app: &App) -> Result<&Emulation, ApiError> {
    app.emulation.as_ref().ok_or_else(|| {
        let error = "the controller's network is not emulated by its own program: expected `urtica net … --northbound`, \
                     or `urtica demo --web`";
        ApiError::new(StatusCode::CONFLICT, error)
    })
}

/// Returns the time limit of a request to the network, which suffices for pings between all hosts.
fn deadline(app: &App) -> Duration {
    app.config.reply_timeout * 2
}

fn yes_or_no(value: &serde_json::Value, key: &str) -> Result<bool, ApiError> {
    let body = Object::body(value)?;
    body.only(&[key])?;
    let found = body.get(key).and_then(serde_json::Value::as_bool);
    found.ok_or_else(|| {
        body.wrong(key, "true or false")
            .example(format!("\"{key}\": false"))
    })
}

fn host(body: &Object, key: &str) -> Result<String, ApiError> {
    let text = body.text(key, "the name of a host that GET /api/v1/emulation lists");
    let text = text.map_err(|error| error.example(format!("\"{key}\": \"h1\"")))?;
    Ok(text.to_owned())
}

/// Returns the number, which must be within bounds, or the default.
fn within(
    body: &Object,
    key: &str,
    (bounds, default): (RangeInclusive<u32>, u32),
) -> Result<u32, ApiError> {
    let number = body.number(key, default)?;
    match bounds.contains(&number) {
        true => Ok(number),
        false => {
            let expected = format!("a number from {} to {}", bounds.start(), bounds.end());
            Err(body
                .wrong(key, &expected)
                .example(format!("\"{key}\": {default}")))
        }
    }
}
