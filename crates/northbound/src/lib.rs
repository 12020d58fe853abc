//! The HTTP interface of a controller, for operators, scripts and dashboards.
//!
//! **What.** The paths of Ryu's REST applications, answered as Ryu answered them; Urtica's own interface below
//! `/api/v1`, described by `/openapi.json`; events; metrics for Prometheus. `docs/northbound.md` is the guide.
//!
//! **Why it exists apart.** It alone needs an HTTP server. A controller without it compiles none of that.
//!
//! **How.** [`Northbound`] is a background program with its own tokio runtime on one thread: it queries the
//! controller's [`Network`](urtica_controller::Network), as any program does. It has no handler, so messages of
//! switches do not pass through it.
//!
//! **Bounds.** Connections, bodies, headers, requests per second, watchers and their queues are limited: see
//! [`NorthboundConfig`]. A reply of a switch is printed while it is sent, and at most four are held at a time.
//!
//! **Who may.** Only this machine, unless there are [`Tokens`]; and no page of another origin: the head of `guard.rs` says how.

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
