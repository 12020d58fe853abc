//! `urtica switch --metrics`: a switch's metrics for Prometheus, with the names and labels of the controller's.

use std::net::SocketAddr;
use urtica_northbound::{Labels, MetricsServer, Page, ServedMetrics};
use urtica_switch::{ControllerState, PortStatus, Remote, SwitchStatus};
use urtica_wire::{PortConfig, PortState, QueueStats, TableStats};

/// Options of a switch's metrics.
#[derive(Debug, clap::Args)]
pub struct MetricsArgs {
    /// Serve metrics for Prometheus on http://ADDR/metrics, without authentication. ADDR is an address and a port, or a port of the
    /// loopback address.
    #[arg(long, value_name = "ADDR", value_parser = crate::northbound::parse_address)]
    metrics: Option<SocketAddr>,
}

impl MetricsArgs {
    /// Serves metrics, if requested, until the returned value is dropped.
    ///
    /// # Errors
    /// A message, if it cannot listen.
    pub fn serve(&self, remote: Remote) -> Result<Option<ServedMetrics>, String> {
        let Some(address) = self.metrics else {
            return Ok(None);
        };
        let server = MetricsServer::bind(address).map_err(|error| error.to_string())?;
        tracing::info!(address = %server.address(), "metrics");
        let page = move || Some(page(&remote.status().ok()?, &remote.tables()));
        let served = server.start(page);
        served
            .map(Some)
            .map_err(|error| format!("metrics cannot be served: {error}"))
    }
}

fn page(status: &SwitchStatus, tables: &[TableStats]) -> Page {
    let mut page = Page::default();
    add_ports(&mut page, status);
    add_queues(&mut page, status);
    add_tables(&mut page, status, tables);
    add_controllers(&mut page, status);
    let help = "Packets that the switch has dropped, by cause";
    let drops = status.drops.iter().map(|(cause, _, packets)| {
        let labels = with(status, "cause", cause.to_owned());
        (labels, packets)
    });
    page.counter("switch_dropped_packets", help, drops);
    let help = "Time since the switch started";
    page.gauge(
        "switch_uptime_seconds",
        help,
        [(labels(status), status.uptime.as_secs())],
    );
    page
}

fn labels(status: &SwitchStatus) -> Labels {
    vec![
        ("dp_id", status.datapath_id.to_string()),
        ("dp_name", status.name.clone()),
    ]
}

fn with(status: &SwitchStatus, name: &'static str, value: String) -> Labels {
    let mut labels = labels(status);
    labels.push((name, value));
    labels
}

fn add_ports(page: &mut Page, status: &SwitchStatus) {
    let port_labels =
        |port: &PortStatus| with(status, "port", port.description.port_no.to_string());
    let up = status.ports.iter().map(|port| {
        let mut labels = port_labels(port);
        let description = &port.description;
        labels.push(("port_name", description.name.to_string()));
        let is_down = description.config.contains(PortConfig::PORT_DOWN)
            || description.state.contains(PortState::LINK_DOWN);
        (labels, u64::from(!is_down))
    });
    page.gauge("port_up", "Whether a port is up", up);
    let stats = status.ports.iter();
    let stats: Vec<_> = stats.map(|port| (port_labels(port), port.stats)).collect();
    page.port_stats(&stats);
}

fn add_queues(page: &mut Page, status: &SwitchStatus) {
    let rows = |value: fn(&QueueStats) -> u64| {
        let stats = status.ports.iter().flat_map(|port| &port.queue_stats);
        stats.map(move |stats| {
            let mut labels = with(status, "port", stats.port_no.to_string());
            labels.push(("queue", stats.queue_id.to_string()));
            (labels, value(stats))
        })
    };
    let packets = rows(|stats| stats.tx_packets);
    page.counter("queue_sent_packets", "Packets sent by a queue", packets);
    let bytes = rows(|stats| stats.tx_bytes);
    page.counter("queue_sent_bytes", "Bytes sent by a queue", bytes);
    let errors = rows(|stats| stats.tx_errors);
    let help = "Packets that a queue has dropped, as it was full or its port had no link";
    page.counter("queue_sent_errors", help, errors);
}

fn add_tables(page: &mut Page, status: &SwitchStatus, tables: &[TableStats]) {
    let rows = |value: fn(&TableStats) -> u64| {
        let row = move |table: &TableStats| {
            let labels = with(status, "table", table.table_id.to_string());
            (labels, value(table))
        };
        tables.iter().map(row)
    };
    let entries = rows(|table| table.active_count.into());
    page.gauge("table_entries", "Flow entries in a table", entries);
    let lookups = rows(|table| table.lookup_count);
    page.counter(
        "table_lookups",
        "Packets that were looked up in a table",
        lookups,
    );
    let matched = rows(|table| table.matched_count);
    page.counter(
        "table_matches",
        "Packets that an entry of a table matched",
        matched,
    );
}

fn add_controllers(page: &mut Page, status: &SwitchStatus) {
    let targets = status.controllers.iter();
    let targets = targets.filter(|one| one.state != ControllerState::Listening);
    let connected = targets.map(|one| {
        let labels = with(status, "controller", one.address.to_string());
        (labels, u64::from(one.state == ControllerState::Connected))
    });
    let help = "Whether the switch is connected to a configured controller";
    page.gauge("controller_connected", help, connected);
    let help = "Connections to controllers";
    let count = status.connections.len() as u64;
    page.gauge("controller_connections", help, [(labels(status), count)]);
}
