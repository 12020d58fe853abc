//! Ports and their counters: those of one switch, or of all switches.

use super::list::Listed;
use crate::app::App;
use crate::metrics::request_ports;
use crate::params::Params;
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use std::sync::Arc;
use urtica_controller::SwitchInfo;
use urtica_wire::{PortConfig, PortState, PortStats};
use utoipa::ToSchema;

/// A port and its counters.
#[derive(Serialize, ToSchema)]
pub(crate) struct Port {
    /// Its number, or its name if it is reserved (`LOCAL`).
    port: String,
    /// Its name.
    name: String,
    /// Its MAC address.
    mac: String,
    /// Whether it is up.
    up: bool,
    /// Its rate in bit/s, if the switch reports it.
    speed_bps: Option<u64>,
    received_packets: Option<u64>,
    sent_packets: Option<u64>,
    received_bytes: Option<u64>,
    sent_bytes: Option<u64>,
    received_dropped: Option<u64>,
    sent_dropped: Option<u64>,
    received_errors: Option<u64>,
    sent_errors: Option<u64>,
}

impl Port {
    fn new(port: &urtica_wire::Port, counted: &[PortStats]) -> Self {
        let counted = counted.iter().find(|row| row.port_no == port.port_no);
        // Counters that a switch does not support are all ones (1.3.5 section 7.3.5.6).
        let count = |value: fn(&PortStats) -> u64| {
            let count = counted.map(value);
            count.filter(|count| *count != u64::MAX)
        };
        Self {
            port: port.port_no.to_string(),
            name: port.name.to_string(),
            mac: port.hw_addr.to_string(),
            up: !port.config.contains(PortConfig::PORT_DOWN)
                && !port.state.contains(PortState::LINK_DOWN),
            speed_bps: port.speed_bps(),
            received_packets: count(|port| port.rx_packets),
            sent_packets: count(|port| port.tx_packets),
            received_bytes: count(|port| port.rx_bytes),
            sent_bytes: count(|port| port.tx_bytes),
            received_dropped: count(|port| port.rx_dropped),
            sent_dropped: count(|port| port.tx_dropped),
            received_errors: count(|port| port.rx_errors),
            sent_errors: count(|port| port.tx_errors),
        }
    }
}

/// The ports of a switch.
#[derive(Serialize, ToSchema)]
pub(crate) struct SwitchPorts {
    /// The switch.
    switch: String,
    /// The age of the counters; `null` if the switch has never sent them.
    age_seconds: Option<f64>,
    ports: Vec<Port>,
}

/// Returns the ports of a switch, with current counters.
pub(super) async fn of_switch(State(app): State<Arc<App>>, params: Params) -> Listed<Port> {
    let info = app.switch(params.switch()?)?;
    let counted = app.network.port_stats(info.datapath_id).await?;
    let ports = info.ports.iter();
    Ok(Json(ports.map(|port| Port::new(port, &counted)).collect()))
}

/// Returns the ports of all switches. Clients share counters for a second, so that their number does not affect how often
/// switches are polled.
pub(super) async fn of_all(State(app): State<Arc<App>>) -> Listed<SwitchPorts> {
    let infos = app.network.switches().into_iter();
    let infos: Vec<Arc<SwitchInfo>> = infos.filter_map(|id| app.network.info(id)).collect();
    let known = request_ports(&app, &infos).await;
    let rows = infos.iter().zip(known).map(|(info, known)| {
        let (counted, since) = known.counters.unzip();
        let counted = counted.unwrap_or_default();
        let ports = info.ports.iter();
        SwitchPorts {
            switch: info.datapath_id.to_string(),
            age_seconds: since.map(|since| since.elapsed().as_secs_f64()),
            ports: ports.map(|port| Port::new(port, &counted)).collect(),
        }
    });
    Ok(Json(rows.collect()))
}
