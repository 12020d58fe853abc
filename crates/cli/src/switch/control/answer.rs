//! A switch's answers at its control socket.

use super::Replies;
use super::protocol::{
    Answer, Connection, Controller, Counter, Flow, Port, QueueRow, QueueSettings, Request, Show,
    Table, Template, Templates,
};
use crate::switch::NewPort;
use serde::Serialize;
use urtica_switch::{
    ConnectionStatus, ControllerState, ControllerStatus, PortQueues, PortStatus, Queue, QueueError,
    Remote, SwitchStatus,
};
use urtica_topology::spec::{bandwidth_bps, bandwidth_text};
use urtica_wire::{
    ControllerRole, FlowStats, FlowStatsRequest, PortConfig, PortNo, PortState, QueueStats,
    TABLE_ALL, TableStats,
};

/// Executes a request, and sends its result except for the last line.
///
/// # Errors
/// A message for the client.
pub fn answer(request: &Request, remote: &Remote, replies: &mut Replies) -> Result<(), String> {
    match request {
        Request::Show => item(replies, show(&remote.status().map_err(sentence)?)),
        Request::Tables => remote
            .tables()
            .into_iter()
            .try_for_each(|table| item(replies, table_row(&table))),
        Request::Flows { table, .. } => flows(*table, remote, replies),
        Request::Counters => {
            let drops = remote.status().map_err(sentence)?.drops;
            drops.iter().try_for_each(|(cause, meaning, packets)| {
                let (cause, meaning) = (cause.to_owned(), meaning.to_owned());
                item(
                    replies,
                    Counter {
                        cause,
                        meaning,
                        packets,
                    },
                )
            })
        }
        Request::Templates => item(replies, templates(remote)?),
        Request::AddPort { port } => {
            let NewPort { number, spec } = port.parse().map_err(sentence)?;
            let opened = spec.open().map_err(sentence)?;
            let number = remote.add_port(number, opened).map_err(sentence)?;
            item(replies, number.0)
        }
        Request::RemovePort { port } => {
            let number = remote.remove_port(port).map_err(sentence)?;
            item(replies, number.0)
        }
        Request::SetQueue {
            port,
            queue,
            settings,
        } => {
            let number = set_queue(remote, port, *queue, settings)?;
            item(replies, number.0)
        }
        Request::DeleteQueue { port, queue } => {
            let queue = *queue;
            let delete = move |port, settings: &mut PortQueues| delete_queue(port, queue, settings);
            let number = remote.change_queues(port, delete).map_err(sentence)?;
            item(replies, number.0)
        }
        Request::SetQueueRate { port, rate } => {
            let rate_bps = read_rate(rate)?;
            let set = move |_, settings: &mut PortQueues| {
                settings.rate_bps = rate_bps;
                Ok(())
            };
            let number = remote.change_queues(port, set).map_err(sentence)?;
            item(replies, number.0)
        }
        Request::AddController { address } => {
            let address = address.parse().map_err(sentence)?;
            remote.add_controller(&address).map_err(sentence)
        }
        Request::RemoveController { address } => {
            let address = address.parse().map_err(sentence)?;
            remote.remove_controller(&address).map_err(sentence)
        }
    }
}

fn read_rate(text: &Option<String>) -> Result<Option<u64>, String> {
    let rate = text.as_deref().map(bandwidth_bps);
    rate.transpose().map_err(sentence)
}

fn set_queue(
    remote: &Remote,
    port: &str,
    queue_id: u32,
    settings: &QueueSettings,
) -> Result<PortNo, String> {
    let default = Queue::default();
    let queue = Queue {
        min_rate_bps: read_rate(&settings.min_rate)?,
        max_rate_bps: read_rate(&settings.max_rate)?,
        priority: settings.priority.unwrap_or(default.priority),
        max_packets: settings.max_packets.unwrap_or(default.max_packets),
        max_bytes: settings.max_bytes.unwrap_or(default.max_bytes),
    };
    let set = move |_, settings: &mut PortQueues| {
        settings.queues.insert(queue_id, queue);
        Ok(())
    };
    remote.change_queues(port, set).map_err(sentence)
}

fn delete_queue(
    port: PortNo,
    queue_id: Option<u32>,
    settings: &mut PortQueues,
) -> Result<(), QueueError> {
    let Some(queue_id) = queue_id else {
        *settings = PortQueues::default();
        return Ok(());
    };
    match settings.queues.remove(&queue_id) {
        Some(_) => Ok(()),
        None => Err(QueueError::NoQueue { port, queue_id }),
    }
}

fn sentence(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn item(replies: &mut Replies, item: impl Serialize) -> Result<(), String> {
    let item = serde_json::to_value(item).map_err(sentence)?;
    replies.send(&Answer::Item(item)).map_err(sentence)
}

fn show(status: &SwitchStatus) -> Show {
    Show {
        dp_id: status.datapath_id.to_string(),
        name: status.name.clone(),
        uptime_seconds: status.uptime.as_secs_f64(),
        ports: status.ports.iter().map(port_row).collect(),
        controllers: status.controllers.iter().map(controller_row).collect(),
        connections: status.connections.iter().map(connection_row).collect(),
    }
}

fn port_row(port: &PortStatus) -> Port {
    let (description, stats) = (&port.description, &port.stats);
    let PortNo(number) = description.port_no;
    Port {
        number,
        name: description.name.to_string(),
        hw_addr: description.hw_addr.to_string(),
        is_enabled: !description.config.contains(PortConfig::PORT_DOWN),
        has_link: !description.state.contains(PortState::LINK_DOWN),
        speed_kbps: description.curr_speed,
        rx_packets: stats.rx_packets,
        rx_bytes: stats.rx_bytes,
        rx_dropped: stats.rx_dropped,
        rx_errors: stats.rx_errors,
        tx_packets: stats.tx_packets,
        tx_bytes: stats.tx_bytes,
        tx_dropped: stats.tx_dropped,
        queue_rate: port
            .queues
            .as_ref()
            .and_then(|queues| Some(bandwidth_text(queues.rate_bps?))),
        queues: port
            .queue_stats
            .iter()
            .filter_map(|stats| queue_row(port, stats))
            .collect(),
    }
}

fn queue_row(port: &PortStatus, stats: &QueueStats) -> Option<QueueRow> {
    let queue = port.queues.as_ref()?.queues.get(&stats.queue_id)?;
    Some(QueueRow {
        queue: stats.queue_id,
        min_rate: queue.min_rate_bps.map(bandwidth_text),
        max_rate: queue.max_rate_bps.map(bandwidth_text),
        priority: queue.priority,
        max_packets: queue.max_packets,
        max_bytes: queue.max_bytes,
        tx_packets: stats.tx_packets,
        tx_bytes: stats.tx_bytes,
        tx_dropped: stats.tx_errors,
    })
}

fn controller_row(controller: &ControllerStatus) -> Controller {
    let (state, retry_in, last_failure) = match &controller.state {
        ControllerState::Listening => ("listening", None, None),
        ControllerState::Connecting => ("connecting", None, None),
        ControllerState::Connected => ("connected", None, None),
        ControllerState::Waiting {
            retry_in,
            last_failure,
        } => ("waiting", Some(*retry_in), last_failure.clone()),
        _ => ("unknown", None, None),
    };
    Controller {
        address: controller.address.to_string(),
        state: state.to_owned(),
        retry_in_seconds: retry_in.map(|retry_in| retry_in.as_secs_f64()),
        last_failure,
    }
}

fn connection_row(connection: &ConnectionStatus) -> Connection {
    let agreed = connection.agreed;
    Connection {
        peer: connection.peer.clone(),
        version: agreed.map(|(version, _)| version.to_string()),
        role: agreed.map(|(_, role)| role_name(role).to_owned()),
        age_seconds: connection.age.as_secs_f64(),
    }
}

/// Returns the name of a role in `urtica run --role`.
fn role_name(role: ControllerRole) -> &'static str {
    match role {
        ControllerRole::Master => "primary",
        ControllerRole::Slave => "secondary",
        _ => "equal",
    }
}

fn table_row(table: &TableStats) -> Table {
    Table {
        table: table.table_id,
        entries: table.active_count,
        max_entries: table.max_entries,
        lookups: table.lookup_count,
        matched: table.matched_count,
    }
}

fn flows(table: Option<u8>, remote: &Remote, replies: &mut Replies) -> Result<(), String> {
    let request = FlowStatsRequest {
        table_id: table.unwrap_or(TABLE_ALL),
        ..FlowStatsRequest::default()
    };
    for some in remote.flows(&request).map_err(sentence)? {
        for entry in some.map_err(sentence)? {
            item(replies, flow_row(&entry))?;
        }
    }
    Ok(())
}

fn flow_row(entry: &FlowStats) -> Flow {
    Flow {
        table: entry.table_id,
        priority: entry.priority,
        cookie: format!("{:#x}", entry.cookie),
        packets: entry.packet_count,
        bytes: entry.byte_count,
        duration_seconds: f64::from(entry.duration_sec) + f64::from(entry.duration_nsec) / 1e9,
        flow: entry.to_string(),
    }
}

fn templates(remote: &Remote) -> Result<Templates, String> {
    let none =
        "tables are not compiled; expected a switch with --forwarding compiled or interpreted";
    let explanation = remote.explain().ok_or(none)?;
    let tables = explanation.tables.iter().map(|table| Template {
        table: table.table_id,
        template: table.template.to_string(),
        why: table.why.clone(),
    });
    Ok(Templates {
        tables: tables.collect(),
        text: explanation.to_string(),
    })
}
