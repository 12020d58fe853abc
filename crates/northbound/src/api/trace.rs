//! Traces a packet between two hosts through the switches' entries, which are requested from each switch on its path.
//!
//! As in `urtica trace`, the packet is processed by Urtica's pipeline: no switch receives it, and no counter changes. It is
//! followed across the discovered links, until it is delivered, dropped, or sent to a controller.

use super::path::Ends;
use crate::app::App;
use crate::error::ApiError;
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use serde::Serialize;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use urtica_client::{LoadError, Loader};
use urtica_controller::SwitchInfo;
use urtica_pipeline::{Packet, PacketInCause, Pipeline, Sink, Step};
use urtica_services::{Host, Hosts};
use urtica_topology::{PortId, Topology};
use urtica_wire::packet::{
    Ethernet, Icmpv4, Icmpv6, Ipv4, Ipv6, PacketError, ether_type, icmpv4, icmpv6, ip_proto,
};
use urtica_wire::text::Instructions;
use urtica_wire::{
    Action, DatapathId, Field, FlowStatsRequest, METER_ALL, MacAddr, Match, Message,
    MultipartFlags, MultipartRequest, MultipartRequestBody, OxmField, PortNo, VLAN_PRESENT,
    Version,
};
use utoipa::ToSchema;

/// The maximum number of entries of a switch, since loading more takes too long.
const MAX_ENTRIES: usize = 20_000;

/// The maximum number of times that switches process a packet and its copies, and of times that they send it.
const MAX_HOPS: usize = 256;
const MAX_OUTPUTS: usize = 4_096;

/// The Ethernet type of packets between hosts without IP addresses: one for local experiments (IEEE 802).
const EXPERIMENTAL: u16 = 0x88b5;

/// The path of a packet.
#[derive(Serialize, ToSchema)]
pub(crate) struct Trace {
    /// The packet, as `ovs-ofctl` writes a match on all its headers.
    packet: String,
    /// Whether it reaches the port of its destination host.
    delivered: bool,
    /// Whether the trace was cut short: the packet passed too many switches or ports, as in a loop.
    unfinished: bool,
    /// The switches that it passes, in order; copies one after the other.
    hops: Vec<TraceHop>,
}

/// A packet's passage of a switch.
#[derive(Default, Serialize, ToSchema)]
pub(crate) struct TraceHop {
    /// The switch.
    switch: String,
    /// The port that receives it.
    in_port: String,
    /// The tables that it passes.
    tables: Vec<TraceTable>,
    /// The ports that it is sent to; empty if it is dropped.
    outputs: Vec<TraceOutput>,
    /// Whether it is sent to a controller.
    to_controller: bool,
    /// Whether the switch forwards it as a switch without OpenFlow does: further hops are unknown.
    normal: bool,
}

/// A packet's lookup in a table.
#[derive(Serialize, ToSchema)]
pub(crate) struct TraceTable {
    table: u8,
    /// The priority of the entry that it matches, if any.
    priority: Option<u16>,
    /// The entry's match, in the syntax of `ovs-ofctl`.
    r#match: String,
    /// The entry's actions.
    actions: String,
}

/// A port by which a packet is sent.
#[derive(Serialize, ToSchema)]
pub(crate) struct TraceOutput {
    port: String,
    /// The switch and port that receive it next; `null` if no link is known at this port.
    to: Option<String>,
}

/// A packet and the port that receives it.
struct Arrival {
    at: PortId,
    packet: Packet,
}

/// A packet's passage through a pipeline.
#[derive(Default)]
struct Passage {
    hop: TraceHop,
    sent: Vec<(PortNo, Packet)>,
}

impl Sink for Passage {
    fn transmit(&mut self, port: PortNo, packet: &Packet) {
        self.sent.push((port, packet.clone()));
    }

    fn packet_in(&mut self, _: &Packet, _: PacketInCause) {
        self.hop.to_controller = true;
    }

    fn normal(&mut self, _: &Packet) {
        self.hop.normal = true;
    }

    fn step(&mut self, step: Step<'_>) {
        if let Step::Table {
            table_id, entry, ..
        } = step
        {
            self.hop.tables.push(TraceTable {
                table: table_id,
                priority: entry.map(|entry| entry.priority),
                r#match: entry.map_or_else(String::new, |entry| entry.match_.to_wire().to_string()),
                actions: entry.map_or_else(String::new, |entry| {
                    Instructions(entry.instructions.to_wire()).to_string()
                }),
            });
        }
    }
}

/// Follows a packet from one host to another.
pub(super) async fn trace(
    State(app): State<Arc<App>>,
    query: Result<Query<Ends>, QueryRejection>,
) -> Result<Json<Trace>, ApiError> {
    let ends = Ends::of(query)?;
    let (Some(discovery), Some(hosts)) = (app.discovery(), app.hosts()) else {
        let error =
            "no path can be traced: expected `discovery` and `hosts` among the programs that run";
        return Err(ApiError::new(StatusCode::CONFLICT, error));
    };
    let from = host(&hosts, "from", &ends.from)?;
    let to = host(&hosts, "to", &ends.to)?;
    let packet = ping(&from, &to)
        .map_err(|error| ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    let headers = Match::exact_frame(packet.in_port, packet.frame()).to_string();
    let first = Arrival {
        at: from.attached,
        packet,
    };
    let topology = discovery.topology().load();
    let deadline = app.config.reply_timeout * 2;
    let followed = async {
        // This semaphore is never closed.
        let _turn = app.traces.acquire().await;
        follow(&app, &topology, first, to.attached).await
    };
    let followed = timeout(deadline, followed).await.map_err(|_| {
        let error = format!(
            "the switches on the path did not report their entries within {deadline:?}: expected switches that answer, or \
             fewer such requests at a time"
        );
        ApiError::new(StatusCode::GATEWAY_TIMEOUT, error)
    })?;
    Ok(Json(Trace {
        packet: headers,
        ..followed?
    }))
}

/// Follows a packet and its copies, in the order in which they are sent.
async fn follow(
    app: &App,
    topology: &Topology,
    first: Arrival,
    to: PortId,
) -> Result<Trace, ApiError> {
    let mut trace = Trace {
        packet: String::new(),
        delivered: false,
        unfinished: false,
        hops: Vec::new(),
    };
    let mut switches = BTreeMap::new();
    let mut outputs = 0;
    let mut arrivals = VecDeque::from([first]);
    while let Some(arrival) = arrivals.pop_front() {
        if trace.hops.len() == MAX_HOPS || outputs > MAX_OUTPUTS {
            trace.unfinished = true;
            break;
        }
        let id = arrival.at.switch;
        let pipeline = match switches.entry(id) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(build(id, load(app, id).await?).await?),
        };
        let mut passage = Passage::default();
        pipeline.process(arrival.packet, Duration::ZERO, &mut passage);
        outputs += passage.sent.len();
        for (port, packet) in passage.sent {
            let out = PortId::new(id, port);
            trace.delivered |= out == to;
            let next = topology.link_from(out).map(|link| link.to);
            passage.hop.outputs.push(TraceOutput {
                port: port.to_string(),
                to: next.map(|next| next.to_string()),
            });
            arrivals.extend(next.map(|at| Arrival {
                at,
                packet: Packet::new(at.port_no, packet.frame()),
            }));
        }
        trace.hops.push(TraceHop {
            switch: id.to_string(),
            in_port: arrival.at.port_no.to_string(),
            ..passage.hop
        });
    }
    Ok(trace)
}

/// Requests the entries, groups and meters of a switch.
async fn load(app: &App, id: DatapathId) -> Result<Loader, ApiError> {
    let info = app.switch(id)?;
    let mut loader = Loader::of_switch(info.version, info.ports.iter().cloned());
    for body in parts(&info) {
        let asked = Message::MultipartRequest(MultipartRequest {
            flags: MultipartFlags::empty(),
            body,
        });
        let (reply, _permit) = app.ask(id, &asked).await?;
        for message in reply.messages() {
            let Message::MultipartReply(part) = message else {
                continue;
            };
            loader
                .add_reply(&part.body)
                .map_err(|error| not_traceable(id, &error))?;
            if loader.flow_count() > MAX_ENTRIES {
                let error = format!(
                    "switch {id} has more than {MAX_ENTRIES} entries, too many to trace a packet here: expected `urtica trace`"
                );
                return Err(ApiError::new(StatusCode::CONFLICT, error));
            }
        }
    }
    Ok(loader)
}

/// Returns the requests that are sent to a switch.
fn parts(info: &SwitchInfo) -> Vec<MultipartRequestBody<'static>> {
    let mut parts = vec![MultipartRequestBody::Flow(FlowStatsRequest::default())];
    if info.version != Version::Of10 {
        parts.push(MultipartRequestBody::GroupDesc);
        parts.push(MultipartRequestBody::MeterConfig(METER_ALL));
    }
    parts
}

/// Builds a switch's pipeline on another thread, so that other requests do not wait.
async fn build(id: DatapathId, loader: Loader) -> Result<Pipeline, ApiError> {
    let built = tokio::task::spawn_blocking(move || loader.finish(None)).await;
    let built = built.map_err(|_| {
        let error = format!("the entries of switch {id} could not be loaded");
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, error)
    })?;
    built.map_err(|error| not_traceable(id, &error))
}

fn not_traceable(id: DatapathId, error: &LoadError) -> ApiError {
    ApiError::new(StatusCode::CONFLICT, format!("switch {id}: {error}"))
}

/// Returns the host with this MAC address.
fn host(hosts: &Hosts, field: &str, text: &str) -> Result<Arc<Host>, ApiError> {
    let mac = text.parse::<MacAddr>().map_err(|_| {
        ApiError::field(field, text, "a host's MAC address")
            .example(format!("{field}=00:00:00:00:00:01"))
    })?;
    hosts.find(mac).ok_or_else(|| {
        ApiError::field(field, text, "a host that GET /api/v1/hosts lists")
            .with_status(StatusCode::NOT_FOUND)
    })
}

/// Builds an echo request between two hosts: in IPv4 or IPv6 if both have such addresses, otherwise only an Ethernet header.
fn ping(from: &Host, to: &Host) -> Result<Packet, PacketError> {
    let ipv4s = from.ipv4s.first().zip(to.ipv4s.first());
    let ipv6s = from.ipv6s.first().zip(to.ipv6s.first());
    let ether_type = match (ipv4s, ipv6s) {
        (Some(_), _) => ether_type::IPV4,
        (None, Some(_)) => ether_type::IPV6,
        (None, None) => EXPERIMENTAL,
    };
    let mut frame = Vec::new();
    Ethernet {
        dst: to.mac,
        src: from.mac,
        ether_type,
    }
    .write(&mut frame);
    let mut echo = Vec::new();
    if let Some((&src, &dst)) = ipv4s {
        let request = Icmpv4 {
            icmp_type: icmpv4::ECHO_REQUEST,
            icmp_code: 0,
            rest: [0; 4],
        };
        request.write(&mut echo, &[]);
        Ipv4::new(src, dst, ip_proto::ICMPV4).write(&mut frame, &echo)?;
    } else if let Some((&src, &dst)) = ipv6s {
        let ip = Ipv6::new(src, dst, ip_proto::ICMPV6);
        let request = Icmpv6 {
            icmp_type: icmpv6::ECHO_REQUEST,
            icmp_code: 0,
        };
        request.write(&mut echo, &ip.pseudo_header(), &[0; 4]);
        ip.write(&mut frame, &echo)?;
    }
    let mut packet = Packet::new(from.attached.port_no, &frame);
    if let Some(vlan) = from.vlan {
        let tagged = u128::from(vlan | VLAN_PRESENT);
        packet.apply(&Action::PushVlan(ether_type::VLAN));
        packet.apply(&Action::SetField(Field::exact(OxmField::VlanVid, tagged)));
    }
    Ok(packet)
}
