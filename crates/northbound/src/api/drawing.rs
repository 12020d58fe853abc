//! Drawings of the current network.

use crate::app::App;
use crate::error::ApiError;
use crate::web::with_headers;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use std::time::Instant;
use urtica_topology::draw::{Host, Link, Network, Switch};
use urtica_wire::PortNo;

pub(super) async fn svg(State(app): State<Arc<App>>) -> Result<Response, ApiError> {
    let svg = app.last_picture.of(network(&app)).await?;
    Ok(drawing("image/svg+xml", svg))
}

pub(super) async fn dot(State(app): State<Arc<App>>) -> Response {
    let dot = network(&app).to_dot();
    drawing("text/vnd.graphviz; charset=utf-8", dot.into())
}

/// Builds a response that pages of other origins cannot embed, and in which browsers run no scripts.
fn drawing(kind: &'static str, bytes: Bytes) -> Response {
    with_headers(kind, "no-store", bytes.into_response())
}

/// Returns the network as the controller knows it.
fn network(app: &App) -> Network {
    let ids = app.network.switches().into_iter();
    let infos = ids.filter_map(|id| app.network.info(id));
    let switches = infos.map(|info| Switch {
        id: info.datapath_id,
        name: info.port(PortNo::LOCAL).map(|port| port.name.to_string()),
    });
    let hosts = app.hosts().map(|hosts| hosts.all()).unwrap_or_default();
    Network::new(switches, hosts.iter().map(|host| host_of(host)), links(app))
}

fn host_of(host: &urtica_services::Host) -> Host {
    let vlan = host.vlan.map(|vlan| format!("VLAN {vlan}"));
    let addresses = host.addresses().map(|address| address.to_string());
    Host {
        attached: host.attached,
        name: host.mac.to_string(),
        addresses: addresses.chain(vlan).collect(),
    }
}

/// Returns each link once, including recently lost links.
fn links(app: &App) -> Vec<Link> {
    let Some(discovery) = app.discovery() else {
        return Vec::new();
    };
    let topology = discovery.topology().load();
    let missing = app.lost_links.missing(&topology, Instant::now());
    let up = topology.directed_links().iter().map(|link| (*link, true));
    let down = missing.into_iter().map(|link| (link, false));
    let links = up.chain(down).map(|(link, is_up)| Link {
        a: link.from,
        b: link.to,
        is_up,
    });
    links.collect()
}
