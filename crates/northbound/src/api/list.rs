//! Lists of switches, ports, tables, entries, groups, meters, hosts and links.

use crate::app::{App, stream_json};
use crate::error::ApiError;
use crate::params::Params;
use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::Sender;
use urtica_controller::{OWN_COOKIE_BITS, ProgramId, Reply, SwitchInfo};
use urtica_wire::text::Instructions;
use urtica_wire::{
    DatapathId, FlowStats, FlowStatsRequest, GroupDesc, GroupMod, GroupModCommand, Message,
    MeterConfig, MeterMod, MeterModCommand, MultipartFlags, MultipartReplyBody, MultipartRequest,
    MultipartRequestBody, PortNo, TableForm, TableStats, Version,
};
use utoipa::ToSchema;

pub(super) type Listed<T> = Result<Json<Vec<T>>, ApiError>;

/// A connected switch.
#[derive(Serialize, ToSchema)]
pub(crate) struct Switch {
    /// Its datapath id: 16 hexadecimal digits.
    id: String,
    /// The name of its local port, which in Open vSwitch is the bridge's; `null` without a local port.
    name: Option<String>,
    /// Its version of OpenFlow.
    openflow: String,
    /// This controller's role at it: `equal`, `primary` or `secondary`.
    role: String,
    /// The address that it connected from.
    peer: String,
    /// The number of its tables.
    tables: u8,
    /// The number of its ports.
    ports: usize,
}

impl From<&SwitchInfo> for Switch {
    fn from(info: &SwitchInfo) -> Self {
        Self {
            id: info.datapath_id.to_string(),
            name: info.port(PortNo::LOCAL).map(|port| port.name.to_string()),
            openflow: info.version.to_string(),
            role: info.role.to_string(),
            peer: info.peer.clone(),
            tables: info.n_tables,
            ports: info.ports.len(),
        }
    }
}

pub(super) async fn switches(State(app): State<Arc<App>>) -> Listed<Switch> {
    let infos = app.network.switches().into_iter();
    let infos = infos.filter_map(|id| app.network.info(id));
    Ok(Json(infos.map(|info| Switch::from(&*info)).collect()))
}

pub(super) async fn switch(
    State(app): State<Arc<App>>,
    params: Params,
) -> Result<Json<Switch>, ApiError> {
    Ok(Json(Switch::from(&*app.switch(params.switch()?)?)))
}

/// A flow table.
#[derive(Serialize, ToSchema)]
pub(crate) struct Table {
    table: u8,
    /// The number of its entries.
    entries: u32,
    /// The number of packets that were looked up in it.
    lookups: u64,
    /// The number of packets that matched an entry.
    matched: u64,
    /// The table's compiled form, in words; `null` for an empty table, and for switches other than Urtica's.
    form: Option<String>,
}

pub(super) async fn tables(State(app): State<Arc<App>>, params: Params) -> Listed<Table> {
    let info = app.switch(params.switch()?)?;
    let tables = app.network.table_stats(info.datapath_id).await?;
    let mut forms = table_forms(&app, info.datapath_id).await;
    let row = |table: TableStats| Table {
        table: table.table_id,
        entries: table.active_count,
        lookups: table.lookup_count,
        matched: table.matched_count,
        form: forms.remove(&table.table_id),
    };
    Ok(Json(tables.into_iter().map(row).collect()))
}

/// The time limit for a switch's description and its tables' compiled forms. The list of tables waits for them, but is
/// also useful without them.
const FORM_TIMEOUT: Duration = Duration::from_secs(2);

/// Requests the compiled forms of an Urtica switch's tables. Other switches would log an unknown request.
async fn table_forms(app: &App, switch: DatapathId) -> BTreeMap<u8, String> {
    let network = app.network.with_deadline(FORM_TIMEOUT);
    let is_ours = match network.description(switch).await {
        Ok(description) => description.manufacturer == "Urtica",
        Err(_) => false,
    };
    if !is_ours {
        return BTreeMap::new();
    }
    // An older Urtica refuses the request.
    let forms = network.table_forms(switch).await.unwrap_or_default();
    let row = |form: TableForm<'static>| (form.table_id, form.form.into_owned());
    forms.into_iter().map(row).collect()
}

/// A flow entry.
#[derive(Serialize, ToSchema)]
pub(crate) struct FlowEntry {
    table: u8,
    priority: u16,
    /// Its match, in the syntax of `ovs-ofctl`; empty if it matches all packets.
    r#match: String,
    /// Its actions, in the syntax of `ovs-ofctl`.
    actions: String,
    /// The number of the program that installed it; `null` for entries of other controllers and tools.
    program: Option<u8>,
    /// That program's name; `null` if it has no name or no longer runs.
    program_name: Option<String>,
    /// The program's own part of the cookie, or the whole one of an entry of others: hexadecimal.
    cookie: String,
    idle_timeout: u16,
    hard_timeout: u16,
    packets: u64,
    bytes: u64,
    age_seconds: u32,
}

/// The names of the running programs that have one, by program number.
type ProgramNames = BTreeMap<u8, String>;

fn program_names(app: &App) -> ProgramNames {
    let times = app.network.packet_in_times().into_iter();
    let named =
        times.filter_map(|times| Some((times.program().number(), times.name()?.to_owned())));
    named.collect()
}

impl FlowEntry {
    fn new(entry: &FlowStats, names: &ProgramNames) -> Self {
        let program = ProgramId::of_cookie(entry.cookie);
        let cookie = match program {
            Some(_) => entry.cookie & OWN_COOKIE_BITS,
            None => entry.cookie,
        };
        Self {
            table: entry.table_id,
            priority: entry.priority,
            r#match: entry.match_.to_string(),
            actions: Instructions(entry.instructions.clone()).to_string(),
            program: program.map(ProgramId::number),
            program_name: program.and_then(|program| names.get(&program.number()).cloned()),
            cookie: format!("{cookie:#x}"),
            idle_timeout: entry.idle_timeout,
            hard_timeout: entry.hard_timeout,
            packets: entry.packet_count,
            bytes: entry.byte_count,
            age_seconds: entry.duration_sec,
        }
    }
}

/// Sends all entries. They are formatted while the response is sent.
pub(super) async fn flows(
    State(app): State<Arc<App>>,
    params: Params,
) -> Result<Response, ApiError> {
    let info = app.switch(params.switch()?)?;
    let asked = Message::MultipartRequest(MultipartRequest {
        flags: MultipartFlags::empty(),
        body: MultipartRequestBody::Flow(FlowStatsRequest::default()),
    });
    let (reply, permit) = app.ask(info.datapath_id, &asked).await?;
    let names = program_names(&app);
    Ok(stream_json(move |sender| async move {
        write_flows(&sender, &reply, &names).await;
        drop((reply, permit));
    }))
}

/// Writes a list in parts, until the client disconnects.
async fn write_flows(sender: &Sender<Bytes>, reply: &Reply, names: &ProgramNames) {
    let (mut chunk, mut separator) = (b"[".to_vec(), "");
    for message in reply.messages() {
        let Message::MultipartReply(part) = message else {
            continue;
        };
        let MultipartReplyBody::Flow(entries) = part.body else {
            continue;
        };
        for entry in &entries {
            chunk.extend_from_slice(separator.as_bytes());
            // This only fails for maps whose keys are not strings.
            let _ = serde_json::to_writer(&mut chunk, &FlowEntry::new(&entry, names));
            separator = ",";
        }
        if sender
            .send(std::mem::take(&mut chunk).into())
            .await
            .is_err()
        {
            return;
        }
    }
    chunk.push(b']');
    let _ = sender.send(chunk.into()).await;
}

/// A group.
#[derive(Serialize, ToSchema)]
pub(crate) struct Group {
    group: u32,
    /// Its type and its buckets, as `ovs-ofctl` writes them.
    text: String,
}

pub(super) async fn groups(State(app): State<Arc<App>>, params: Params) -> Listed<Group> {
    let info = app.switch(params.switch()?)?;
    needs_13(&info, "groups")?;
    let groups = app.network.groups(info.datapath_id).await?;
    let row = |group: GroupDesc| Group {
        group: group.group_id,
        text: GroupMod {
            command: GroupModCommand::Add,
            group_type: group.group_type,
            group_id: group.group_id,
            buckets: group.buckets,
        }
        .to_string(),
    };
    Ok(Json(groups.iter().map(row).collect()))
}

/// A meter.
#[derive(Serialize, ToSchema)]
pub(crate) struct Meter {
    meter: u32,
    /// Its unit and its bands, as `ovs-ofctl` writes them.
    text: String,
}

pub(super) async fn meters(State(app): State<Arc<App>>, params: Params) -> Listed<Meter> {
    let info = app.switch(params.switch()?)?;
    needs_13(&info, "meters")?;
    let meters = app.network.meters(info.datapath_id).await?;
    let row = |meter: MeterConfig| Meter {
        meter: meter.meter_id,
        text: MeterMod {
            command: MeterModCommand::Add,
            flags: meter.flags,
            meter_id: meter.meter_id,
            bands: meter.bands,
        }
        .to_string(),
    };
    Ok(Json(meters.iter().map(row).collect()))
}

/// Returns an error if the switch uses OpenFlow 1.0, which lacks this list.
pub(super) fn needs_13(info: &SwitchInfo, what: &str) -> Result<(), ApiError> {
    if info.version == Version::Of13 {
        return Ok(());
    }
    let refused = format!(
        "switch {} speaks OpenFlow 1.0, which has no {what}: expected OpenFlow 1.3",
        info.datapath_id
    );
    Err(ApiError::new(StatusCode::CONFLICT, refused))
}

/// A host.
#[derive(Serialize, ToSchema)]
pub(crate) struct Host {
    mac: String,
    /// The VLAN that its frames are tagged with.
    vlan: Option<u16>,
    /// Its switch and port, `0000000000000001:3`.
    port: String,
    ipv4: Vec<String>,
    ipv6: Vec<String>,
    /// Whether it is an IPv6 router.
    router: bool,
}

pub(super) async fn hosts(State(app): State<Arc<App>>) -> Listed<Host> {
    let hosts = app.hosts().map(|hosts| hosts.all()).unwrap_or_default();
    let row = |host: Arc<urtica_services::Host>| Host {
        mac: host.mac.to_string(),
        vlan: host.vlan,
        port: host.attached.to_string(),
        ipv4: host.ipv4s.iter().map(ToString::to_string).collect(),
        ipv6: host.ipv6s.iter().map(ToString::to_string).collect(),
        router: host.is_router,
    };
    Ok(Json(hosts.into_iter().map(row).collect()))
}

/// One direction of a link.
#[derive(Serialize, ToSchema)]
pub(crate) struct Link {
    /// The sending switch and port.
    from: String,
    /// The receiving switch and port.
    to: String,
}

pub(super) async fn links(State(app): State<Arc<App>>) -> Listed<Link> {
    let Some(discovery) = app.discovery() else {
        return Ok(Json(Vec::new()));
    };
    let topology = discovery.topology().load();
    let row = |link: &urtica_topology::DirectedLink| Link {
        from: link.from.to_string(),
        to: link.to.to_string(),
    };
    Ok(Json(topology.directed_links().iter().map(row).collect()))
}
