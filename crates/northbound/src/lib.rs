//! The HTTP interface of a controller, for operators, scripts and dashboards.
//!
//! **What.** The paths of Ryu's REST applications, with Ryu's responses; Urtica's own interface below `/api/v1`, which
//! `/openapi.json` describes; events; and metrics for Prometheus. The guide is `docs/northbound.md`.
//!
//! **Why a separate crate.** Only this interface needs an HTTP server, which a controller without it does not compile.
//!
//! **How.** [`Northbound`] is a background program with its own tokio runtime on one thread. Like any program, it queries the
//! controller's [`Network`](urtica_controller::Network). It has no handler, so messages of switches do not pass through it.
//!
//! **Bounds.** [`NorthboundConfig`] limits connections, bodies, headers, requests per second, watchers and their queues. A
//! reply of a switch is printed while it is sent, and at most four are in memory at a time.
//!
//! **Access.** Without [`Tokens`], only clients on this machine have access. Pages of other origins have none: the head of
//! `guard.rs` describes the checks.

#![forbid(unsafe_code)]

/// The example of the guide, compiled with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/northbound.md")]
struct Guide;

mod api;
mod app;
mod conf_switches;
mod config;
mod emulation;
mod error;
mod events;
mod guard;
mod last_picture;
mod literal;
mod live;
mod lost_links;
mod metrics;
mod metrics_server;
mod northbound;
mod number;
mod object;
mod openapi;
mod ovsdb;
mod params;
mod rates;
mod ryu;
mod server;
mod web;

pub use axum;
pub use config::{DEFAULT_PORT, NorthboundConfig, NorthboundError, Tokens};
pub use emulation::{
    Emulated, EmulatedHost, EmulatedLink, EmulatedNetwork, EmulatedSwitch, EmulatedTraffic,
    Emulation, EmulationError, EmulationRequests, PingResults, UnansweredPing,
};
pub use error::ApiError;
pub use live::NorthboundHandle;
pub use metrics::{Labels, Page};
pub use metrics_server::{MetricsServer, ServedMetrics};
pub use northbound::Northbound;
