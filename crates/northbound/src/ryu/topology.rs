//! `/v1.0/topology/…`: the paths of Ryu's `rest_topology`.

use crate::app::App;
use crate::error::ApiError;
use crate::params::Params;
use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};
use std::sync::Arc;
use urtica_controller::{Network, SwitchInfo};
use urtica_services::Host;
use urtica_topology::{DirectedLink, PortId};
use urtica_wire::{DatapathId, Port};

type Answer = Result<Json<Vec<Value>>, ApiError>;

pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/v1.0/topology/switches", get(switches))
        .route("/v1.0/topology/switches/{dpid}", get(switches))
        .route("/v1.0/topology/links", get(links))
        .route("/v1.0/topology/links/{dpid}", get(links))
        .route("/v1.0/topology/hosts", get(hosts))
        .route("/v1.0/topology/hosts/{dpid}", get(hosts))
}

/// Returns the switch in the path; `None` for all.
fn wanted(params: &Params) -> Result<Option<DatapathId>, ApiError> {
    params
        .get("dpid")
        .map(|_| params.hex_switch("dpid"))
        .transpose()
}

async fn switches(State(app): State<Arc<App>>, params: Params) -> Answer {
    let wanted = wanted(&params)?;
    let ids = app.network.switches().into_iter();
    let ids = ids.filter(|id| wanted.is_none_or(|wanted| *id == wanted));
    let infos = ids.filter_map(|id| app.network.info(id));
    Ok(Json(infos.map(|info| switch_json(&info)).collect()))
}

async fn links(State(app): State<Arc<App>>, params: Params) -> Answer {
    let wanted = wanted(&params)?;
    let Some(discovery) = app.discovery() else {
        return Ok(Json(Vec::new()));
    };
    let topology = discovery.topology().load();
    let links = topology.directed_links().iter();
    let links = links.filter(|link| wanted.is_none_or(|wanted| link.from.switch == wanted));
    Ok(Json(
        links.map(|link| link_json(&app.network, *link)).collect(),
    ))
}

async fn hosts(State(app): State<Arc<App>>, params: Params) -> Answer {
    let wanted = wanted(&params)?;
    let Some(hosts) = app.hosts() else {
        return Ok(Json(Vec::new()));
    };
    let hosts = hosts.all().into_iter();
    let hosts = hosts.filter(|host| wanted.is_none_or(|wanted| host.attached.switch == wanted));
    Ok(Json(
        hosts.map(|host| host_json(&app.network, &host)).collect(),
    ))
}

/// Prints a switch as Ryu does, without reserved ports.
pub(crate) fn switch_json(info: &SwitchInfo) -> Value {
    let ports = info.ports.iter().filter(|port| !port.port_no.is_reserved());
    let ports = ports.map(|port| port_json(info.datapath_id, port));
    json!({ "dpid": info.datapath_id.to_string(), "ports": ports.collect::<Vec<_>>() })
}

/// Prints a port as Ryu does.
pub(crate) fn port_json(switch: DatapathId, port: &Port) -> Value {
    json!({
        "dpid": switch.to_string(),
        "port_no": format!("{:08x}", port.port_no.0),
        "hw_addr": port.hw_addr.to_string(),
        "name": port.name.to_str_lossy(),
    })
}

/// Prints a directed link as Ryu does.
pub(crate) fn link_json(network: &Network, link: DirectedLink) -> Value {
    json!({ "src": port_id_json(network, link.from), "dst": port_id_json(network, link.to) })
}

/// Prints a host as Ryu does.
pub(crate) fn host_json(network: &Network, host: &Host) -> Value {
    json!({
        "mac": host.mac.to_string(),
        "ipv4": host.ipv4s,
        "ipv6": host.ipv6s,
        "port": port_id_json(network, host.attached),
    })
}

/// Prints a port; if its switch has disconnected, only its number is known.
fn port_id_json(network: &Network, id: PortId) -> Value {
    let info = network.info(id.switch);
    match info.as_ref().and_then(|info| info.port(id.port_no)) {
        Some(port) => port_json(id.switch, port),
        None => json!({
            "dpid": id.switch.to_string(),
            "port_no": format!("{:08x}", id.port_no.0),
            "hw_addr": "00:00:00:00:00:00",
            "name": "",
        }),
    }
}
