//! `GET /metrics`: the page for Prometheus.
//!
//! **What.** The controller's counters, without sums; gauges of queues; and the counters of each port. Names start with
//! `urtica_` and end with their unit or `_total`. The labels are those of Faucet: `dp_id`, `dp_name`, `port`.
//!
//! **How.** Each scrape reads the controller's counters and requests those of all ports (`metrics/port_counters.rs`), which
//! are the only counters that are kept between scrapes.

mod format;
mod names;
mod page;
mod port_counters;

use crate::app::App;
use axum::Router;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::get;
pub(crate) use format::Format;
use names::{dp_name, switch_metric};
pub use page::{Labels, Page};
use port_counters::Known;
pub(crate) use port_counters::PortCounters;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use urtica_controller::{RequestError, SwitchInfo};
use urtica_wire::{PortConfig, PortState, PortStats};

pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new().route("/metrics", get(metrics))
}

async fn metrics(State(app): State<Arc<App>>, headers: HeaderMap) -> Response {
    let switches = app.network.switches().into_iter();
    let switches: Vec<_> = switches.filter_map(|id| app.network.info(id)).collect();
    let ports = request_ports(&app, &switches).await;
    let mut page = Page::default();
    add_switches(&mut page, &app, &switches);
    add_ports(&mut page, &switches);
    add_port_stats(&mut page, &switches, &ports);
    add_kernel_halves(&mut page, &app);
    add_shards(&mut page, &app);
    add_programs(&mut page, &app);
    add_background(&mut page, &app);
    add_services(&mut page, &app);
    Format::accepted(&headers).respond(page)
}

/// Returns the counters of each switch's ports, after requesting them.
pub(crate) async fn request_ports(app: &App, switches: &[Arc<SwitchInfo>]) -> Vec<Known> {
    let ids: Vec<_> = switches.iter().map(|info| info.datapath_id).collect();
    // The time until the request can be sent also counts.
    let patience = app.config.reply_timeout * 2;
    let request = |id| {
        let network = app.network.clone();
        async move {
            let reply = timeout(patience, network.port_stats(id)).await;
            reply.unwrap_or(Err(RequestError::Timeout(patience)))
        }
    };
    app.port_counters.collect(&ids, request).await
}

fn switch_labels(info: &SwitchInfo) -> Labels {
    vec![
        ("dp_id", info.datapath_id.to_string()),
        ("dp_name", dp_name(info)),
    ]
}

fn port_labels(info: &SwitchInfo, port: impl ToString) -> Labels {
    let mut labels = switch_labels(info);
    labels.push(("port", port.to_string()));
    labels
}

fn add_switches(page: &mut Page, app: &App, switches: &[Arc<SwitchInfo>]) {
    page.gauge(
        "switches",
        "Connected switches",
        [(Labels::new(), switches.len() as u64)],
    );
    let version = |info: &Arc<SwitchInfo>| {
        let mut labels = switch_labels(info);
        labels.push(("openflow", info.version.to_string()));
        (labels, 1)
    };
    page.gauge(
        "switch_connected",
        "A connected switch, and its version of OpenFlow",
        switches.iter().map(version),
    );
    let role = |info: &Arc<SwitchInfo>| {
        let mut labels = switch_labels(info);
        labels.push(("role", info.role.to_string()));
        (labels, 1)
    };
    page.gauge(
        "switch_role",
        "The controller's role at the switch",
        switches.iter().map(role),
    );
    let queued = |info: &Arc<SwitchInfo>| {
        let bytes = app.network.queued_bytes(info.datapath_id)?;
        Some((switch_labels(info), bytes as u64))
    };
    let help = "Bytes sent from outside of handlers and not yet written to the switch; sending fails at 4194304";
    page.gauge(
        "switch_queued_bytes",
        help,
        switches.iter().filter_map(queued),
    );
    add_waiting(page, app, switches);
    let counters = switches.iter().filter_map(|info| {
        let counters = app.network.counters(info.datapath_id)?;
        Some((info, counters))
    });
    for (info, counters) in counters {
        for (field, count) in counters.iter() {
            let (name, help) = switch_metric(field);
            page.counter(name, help, [(switch_labels(info), count)]);
        }
    }
}

fn add_kernel_halves(page: &mut Page, app: &App) {
    let totals = app.network.kernel_half_totals();
    page.gauge(
        "kernel_half_switches",
        "Switches for which the kernel answers or settles packets",
        [(Labels::new(), totals.switches())],
    );
    page.gauge(
        "kernel_half_memory_bytes",
        "Kernel memory used for these switches",
        [(Labels::new(), totals.bytes())],
    );
}

fn add_waiting(page: &mut Page, app: &App, switches: &[Arc<SwitchInfo>]) {
    for info in switches {
        let Some(waiting) = app.network.waiting_bytes(info.datapath_id) else {
            continue;
        };
        for (name, help, bytes) in [
            (
                "switch_waiting_reply_bytes",
                "Bytes of replies that the switch has not read; until then the controller does not read from it",
                waiting.replies,
            ),
            (
                "switch_waiting_received_bytes",
                "Bytes received before the switch stopped reading, and not yet handled",
                waiting.received,
            ),
        ] {
            page.gauge(name, help, [(switch_labels(info), bytes as u64)]);
        }
    }
}

/// Adds the information about ports that is known without a request.
fn add_ports(page: &mut Page, switches: &[Arc<SwitchInfo>]) {
    let up = |info: &Arc<SwitchInfo>| -> Vec<_> {
        let row = |port: &urtica_wire::Port| {
            let mut labels = port_labels(info, port.port_no);
            labels.push(("port_name", port.name.to_string()));
            let is_down = port.config.contains(PortConfig::PORT_DOWN)
                || port.state.contains(PortState::LINK_DOWN);
            (labels, u64::from(!is_down))
        };
        info.ports.iter().map(row).collect()
    };
    page.gauge(
        "port_up",
        "Whether a port is up",
        switches.iter().flat_map(up),
    );
}

/// A metric of a port's counter: its name, its description, and its value.
type PortMetric = (&'static str, &'static str, fn(&PortStats) -> u64);

const PORT_METRICS: [PortMetric; 8] = [
    (
        "port_received_packets",
        "Packets that a port has received",
        |port| port.rx_packets,
    ),
    (
        "port_sent_packets",
        "Packets that a port has sent",
        |port| port.tx_packets,
    ),
    (
        "port_received_bytes",
        "Bytes that a port has received",
        |port| port.rx_bytes,
    ),
    ("port_sent_bytes", "Bytes that a port has sent", |port| {
        port.tx_bytes
    }),
    (
        "port_received_dropped_packets",
        "Received packets that a port has dropped",
        |port| port.rx_dropped,
    ),
    (
        "port_sent_dropped_packets",
        "Packets to be sent that a port has dropped",
        |port| port.tx_dropped,
    ),
    (
        "port_received_errors",
        "Packets that a port has received with errors",
        |port| port.rx_errors,
    ),
    (
        "port_sent_errors",
        "Packets that a port could not send because of errors",
        |port| port.tx_errors,
    ),
];

impl Page {
    /// Adds the counters of a switch's ports, with the labels of each port. Unsupported counters, which are all ones (1.3.5
    /// section 7.3.5.6), are omitted.
    pub fn port_stats(&mut self, ports: &[(Labels, PortStats)]) {
        for (name, help, value) in PORT_METRICS {
            let counted = ports.iter().filter(|(_, port)| value(port) != u64::MAX);
            let rows = counted.map(|(labels, port)| (labels.clone(), value(port)));
            self.counter(name, help, rows);
        }
    }
}

fn add_port_stats(page: &mut Page, switches: &[Arc<SwitchInfo>], known: &[Known]) {
    let mut rows = Vec::new();
    for (info, known) in switches.iter().zip(known) {
        let owes_reply = u64::from(known.owes_reply());
        let help = "Whether the switch has not answered the last request for its ports' counters";
        let labels = || switch_labels(info);
        page.gauge(
            "switch_port_counters_overdue",
            help,
            [(labels(), owes_reply)],
        );
        let Some((counters, since)) = &known.counters else {
            continue;
        };
        let help = "Age of the counters of the switch's ports, in whole seconds";
        let age_s = since.elapsed().as_secs();
        page.gauge(
            "switch_port_counters_age_seconds",
            help,
            [(labels(), age_s)],
        );
        let row = |port: &PortStats| (port_labels(info, port.port_no), *port);
        rows.extend(counters.iter().map(row));
    }
    page.port_stats(&rows);
}

fn add_shards(page: &mut Page, app: &App) {
    for (shard, counters) in app.network.shard_counters().enumerate() {
        let labels = || vec![("shard", shard.to_string())];
        let busy = Duration::from_nanos(counters.busy_ns.get());
        page.seconds(
            "shard_busy_seconds",
            "Time for which a shard was busy",
            [(labels(), busy)],
        );
        for (name, help, counter) in [
            ("shard_wakeups", "Wake-ups of a shard", &counters.waits),
            (
                "shard_reads",
                "Reads from sockets of switches",
                &counters.reads,
            ),
            (
                "shard_writes",
                "Writes to sockets of switches",
                &counters.writes,
            ),
            (
                "shard_connections",
                "Connections assigned to a shard",
                &counters.connections,
            ),
            (
                "shard_handler_panics",
                "Handlers that panicked; their switch's connection was closed",
                &counters.panics,
            ),
        ] {
            page.counter(name, help, [(labels(), counter.get())]);
        }
    }
    let lengths = app.network.mailbox_lengths().enumerate();
    page.gauge(
        "shard_waiting_commands",
        "Messages from outside of handlers and other work that wait for a shard",
        lengths.map(|(shard, length)| (vec![("shard", shard.to_string())], length as u64)),
    );
    let help = "Time for which a shard was busy after each wake-up: no packet-in takes longer in the controller";
    let busy = app
        .network
        .busy_times()
        .zip(app.network.shard_counters())
        .enumerate();
    let rows = busy.map(|(shard, (times, counters))| {
        let sum = Duration::from_nanos(counters.busy_ns.get());
        (
            vec![("shard", shard.to_string())],
            sum,
            times.iter().collect(),
        )
    });
    page.histogram("shard_wakeup_duration_seconds", help, rows);
}

/// Adds the times that packet-ins take in each program. Programs with equal names share a histogram.
fn add_programs(page: &mut Page, app: &App) {
    let mut by_name: BTreeMap<String, (Duration, Vec<(u64, u64)>)> = BTreeMap::new();
    for times in app.network.packet_in_times() {
        let name = times.name().map(str::to_owned);
        let name = name.unwrap_or_else(|| times.program().to_string());
        let (sum, classes) = by_name.entry(name).or_default();
        *sum += times.sum();
        classes.resize(times.iter().count(), (0, 0));
        for (class, (bound, count)) in classes.iter_mut().zip(times.iter()) {
            *class = (bound, class.1 + count);
        }
    }
    let rows = by_name
        .into_iter()
        .map(|(name, (sum, classes))| (vec![("program", name)], sum, classes));
    let help = "Time of packet-ins in a program, from the read to the reply; the time of the last packet-in of a read counts for all of them";
    page.histogram("packet_in_duration_seconds", help, rows);
}

fn add_background(page: &mut Page, app: &App) {
    let counters = app.background.counters();
    let none = Labels::new;
    page.counter(
        "background_panics",
        "Background programs that panicked and have ended",
        [(none(), counters.panics())],
    );
    let help = "Times that a background program ran for over a second without waiting";
    page.counter("background_stalls", help, [(none(), counters.stalls())]);
    page.counter(
        "northbound_requests",
        "Accepted requests",
        [(none(), app.served())],
    );
    let help = "Refused requests: no token, another origin, or too many";
    page.counter(
        "northbound_refused_requests",
        help,
        [(none(), app.refused())],
    );
    let watchers = app.config.max_watchers - app.watchers.available_permits();
    page.gauge(
        "northbound_watchers",
        "Clients that watch events",
        [(none(), watchers as u64)],
    );
    page.gauge(
        "start_time_seconds",
        "Start time of the program, in seconds since 1970",
        [(none(), app.started_s)],
    );
    let name = |name: &String| (vec![("program", name.clone())], 1);
    page.gauge(
        "program_running",
        "A running program",
        app.live.sources().programs.iter().map(name),
    );
}

fn add_services(page: &mut Page, app: &App) {
    let none = Labels::new;
    if let Some(discovery) = app.discovery() {
        let links = discovery.topology().load().directed_links().len() as u64;
        page.gauge(
            "directed_links",
            "Directed links between switches, two for each link",
            [(none(), links)],
        );
        let counters = discovery.counters();
        for (name, help, count) in [
            (
                "discovery_sent_probes",
                "Link probes sent",
                counters.probes_sent(),
            ),
            (
                "discovery_received_probes",
                "Link probes received",
                counters.probes_received(),
            ),
            (
                "discovery_forged_probes",
                "Foreign probes, which were refused",
                counters.forged(),
            ),
            (
                "discovery_overrun_frames",
                "Frames that discovery ignored, because a port sent too many",
                counters.overrun(),
            ),
        ] {
            page.counter(name, help, [(none(), count)]);
        }
    }
    if let Some(hosts) = app.hosts() {
        page.gauge("hosts", "Known hosts", [(none(), hosts.count() as u64)]);
        page.counter(
            "refused_hosts",
            "Hosts not learnt, because there were too many",
            [(none(), hosts.refused())],
        );
    }
}
