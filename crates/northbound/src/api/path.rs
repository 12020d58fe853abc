//! The path between two hosts or ports.

use crate::app::App;
use crate::error::ApiError;
use crate::params::parse_switch;
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use urtica_topology::{PortId, shortest};
use urtica_wire::{MacAddr, PortNo};
use utoipa::ToSchema;

/// A switch that a path passes.
#[derive(Serialize, ToSchema)]
pub(crate) struct Hop {
    /// The switch.
    switch: String,
    /// The port that receives the packets.
    in_port: String,
    /// The port that sends them.
    out_port: String,
}

/// The ends of a path, as in a query.
#[derive(Deserialize)]
pub(super) struct Ends {
    #[serde(default)]
    pub from: String,
    #[serde(default)]
    pub to: String,
}

impl Ends {
    /// Parses the ends in a query.
    pub fn of(query: Result<Query<Self>, QueryRejection>) -> Result<Self, ApiError> {
        let Query(ends) = query.map_err(|error| {
            ApiError::new(
                StatusCode::BAD_REQUEST,
                format!("{error}: expected ?from=…&to=… once each"),
            )
        })?;
        Ok(ends)
    }
}

/// Returns a shortest path, if the ends are connected.
pub(super) async fn path(
    State(app): State<Arc<App>>,
    query: Result<Query<Ends>, QueryRejection>,
) -> Result<Json<Vec<Hop>>, ApiError> {
    let ends = Ends::of(query)?;
    let (from, to) = (end(&app, "from", &ends.from)?, end(&app, "to", &ends.to)?);
    let Some(discovery) = app.discovery() else {
        let error = "no links are known: expected `discovery` among the programs that run";
        return Err(ApiError::new(StatusCode::CONFLICT, error));
    };
    let path = shortest::path(&discovery.topology().load(), from, to);
    let hops = path.map(|path| path.hops).unwrap_or_default();
    let row = |hop: urtica_topology::Hop| Hop {
        switch: hop.switch.to_string(),
        in_port: hop.in_port.to_string(),
        out_port: hop.out_port.to_string(),
    };
    Ok(Json(hops.into_iter().map(row).collect()))
}

/// Returns the port at an end of a path, which is given as a host's MAC address, or as a switch and a port.
fn end(app: &App, field: &str, text: &str) -> Result<PortId, ApiError> {
    let hosts = app.hosts();
    if let Ok(mac) = text.parse::<MacAddr>() {
        let host = hosts.and_then(|hosts| hosts.find(mac));
        let unknown = || {
            ApiError::field(field, text, "a host that GET /api/v1/hosts lists")
                .with_status(StatusCode::NOT_FOUND)
        };
        return host.map(|host| host.attached).ok_or_else(unknown);
    }
    let port = text.rsplit_once(':').and_then(|(switch, port)| {
        Some(PortId::new(
            parse_switch(switch).ok()?,
            port.parse::<PortNo>().ok()?,
        ))
    });
    port.ok_or_else(|| {
        ApiError::field(field, text, "a host's MAC address, or a switch and a port")
            .example(format!("{field}=0000000000000001:3"))
    })
}
