//! `/api/v1/…`: Urtica's own interface.
//!
//! Entries, groups and meters have the syntax of `ovs-ofctl`, as everywhere in Urtica. The response to a change is sent after
//! the switch has confirmed the change, or contains the error with which the switch refused it.

mod change;
mod controller;
mod drawing;
mod emulation;
mod list;
mod path;
mod port;
mod trace;

use crate::app::App;
use crate::error::ApiError;
use axum::extract::State;
use axum::routing::{get, post};
use axum::{Json, Router};
use std::sync::Arc;

pub(crate) use change::{FlowChange, GroupChange, MeterChange, RoleChange};
pub(crate) use controller::{ControllerState, Panic, RunningProgram};
pub(crate) use emulation::{LinkChange, PingOrder, SwitchChange, TrafficOrder};
pub(crate) use list::{FlowEntry, Group, Host, Link, Meter, Switch, Table};
pub(crate) use path::Hop;
pub(crate) use port::{Port, SwitchPorts};
pub(crate) use trace::{Trace, TraceHop, TraceOutput, TraceTable};

pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/api/v1/switches", get(list::switches))
        .route("/api/v1/switches/{dpid}", get(list::switch))
        .route("/api/v1/switches/{dpid}/ports", get(port::of_switch))
        .route("/api/v1/switches/{dpid}/tables", get(list::tables))
        .route(
            "/api/v1/switches/{dpid}/flows",
            get(list::flows).post(change::flow),
        )
        .route(
            "/api/v1/switches/{dpid}/groups",
            get(list::groups).post(change::group),
        )
        .route(
            "/api/v1/switches/{dpid}/meters",
            get(list::meters).post(change::meter),
        )
        .route("/api/v1/switches/{dpid}/role", post(change::role))
        .route("/api/v1/ports", get(port::of_all))
        .route("/api/v1/hosts", get(list::hosts))
        .route("/api/v1/links", get(list::links))
        .route("/api/v1/paths", get(path::path))
        .route("/api/v1/trace", get(trace::trace))
        .route("/api/v1/topology.svg", get(drawing::svg))
        .route("/api/v1/topology.dot", get(drawing::dot))
        .route("/api/v1/programs", get(programs))
        .route("/api/v1/controller", get(controller::state))
        .route("/api/v1/emulation", get(emulation::describe))
        .route("/api/v1/emulation/links/{link}", post(emulation::link))
        .route("/api/v1/emulation/switches/{dpid}", post(emulation::switch))
        .route("/api/v1/emulation/pings", post(emulation::ping))
        .route("/api/v1/emulation/traffic", post(emulation::traffic))
}

/// Returns the names of the running programs.
async fn programs(State(app): State<Arc<App>>) -> Result<Json<Vec<String>>, ApiError> {
    Ok(Json(app.live.sources().programs.clone()))
}
