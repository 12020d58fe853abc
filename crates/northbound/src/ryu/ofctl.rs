//! `/stats/…`: the paths of Ryu's `ofctl_rest`.

use super::payload::Payloads;
use super::read::{Printed, Printer};
use super::write;
use crate::app::{App, stream_json};
use crate::error::ApiError;
use crate::object::Object;
use crate::params::{Params, parse_switch};
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::Sender;
use urtica_controller::{Reply, RequestError, Stage, SwitchInfo};
use urtica_wire::{
    ControllerRole, DatapathId, Experimenter, FlowMod, FlowModCommand, GROUP_ALL, GroupModCommand,
    List, METER_ALL, Message, MeterModCommand, MultipartFlags, MultipartRequest,
    MultipartRequestBody, PortNo, QUEUE_ALL, Role, TABLE_ALL, Version,
};

type Answer = Result<Response, ApiError>;

pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/stats/switches", get(switches))
        .route("/stats/desc/{dpid}", get(desc))
        .route("/stats/flow/{dpid}", get(flow).post(flow))
        .route(
            "/stats/aggregateflow/{dpid}",
            get(aggregate).post(aggregate),
        )
        .route("/stats/table/{dpid}", get(table))
        .route("/stats/tablefeatures/{dpid}", get(table_features))
        .route("/stats/port/{dpid}", get(port))
        .route("/stats/port/{dpid}/{port}", get(port))
        .route("/stats/queue/{dpid}", get(queue))
        .route("/stats/queue/{dpid}/{port}", get(queue))
        .route("/stats/queue/{dpid}/{port}/{queue}", get(queue))
        .route("/stats/queueconfig/{dpid}", get(queue_config))
        .route("/stats/queueconfig/{dpid}/{port}", get(queue_config))
        .route("/stats/meter/{dpid}", get(meter))
        .route("/stats/meter/{dpid}/{meter}", get(meter))
        .route("/stats/meterconfig/{dpid}", get(meter_config))
        .route("/stats/meterconfig/{dpid}/{meter}", get(meter_config))
        .route("/stats/meterfeatures/{dpid}", get(meter_features))
        .route("/stats/group/{dpid}", get(group))
        .route("/stats/group/{dpid}/{group}", get(group))
        .route("/stats/groupdesc/{dpid}", get(group_desc))
        .route("/stats/groupdesc/{dpid}/{group}", get(group_desc))
        .route("/stats/groupfeatures/{dpid}", get(group_features))
        .route("/stats/portdesc/{dpid}", get(port_desc))
        .route("/stats/portdesc/{dpid}/{port}", get(port_desc))
        .route("/stats/role/{dpid}", get(role))
        .route("/stats/flowentry/{command}", post(change_flow))
        .route("/stats/flowentry/clear/{dpid}", delete(clear_flows))
        .route("/stats/groupentry/{command}", post(change_group))
        .route("/stats/meterentry/{command}", post(change_meter))
        .route("/stats/portdesc/modify", post(change_port))
        .route("/stats/role", post(change_role))
        .route("/stats/experimenter/{dpid}", post(experimenter))
}

/// Returns `true` for POST requests that are queries, whose body is a filter.
pub(crate) fn is_query(method: &Method, path: &str) -> bool {
    let filtered = ["/stats/flow/", "/stats/aggregateflow/"];
    let mut switches = filtered.iter().filter_map(|begin| path.strip_prefix(begin));
    *method == Method::POST && switches.any(|switch| !switch.contains('/'))
}

async fn switches(State(app): State<Arc<App>>) -> Json<Vec<u64>> {
    Json(app.network.switches().iter().map(|id| id.0).collect())
}

async fn desc(State(app): State<Arc<App>>, params: Params) -> Answer {
    ask_multipart(&app, &params, MultipartRequestBody::Desc).await
}

async fn flow(State(app): State<Arc<App>>, params: Params, body: Body) -> Answer {
    let info = app.switch(params.switch()?)?;
    let value = app.value(body).await?;
    let body = Object::body(&value)?;
    let asked = write::flow_filter(info.version, &body)?;
    let priority = write::priority_filter(&body)?;
    let message = multipart(MultipartRequestBody::Flow(asked));
    ask(&app, &info, &message, priority).await
}

async fn aggregate(State(app): State<Arc<App>>, params: Params, body: Body) -> Answer {
    let info = app.switch(params.switch()?)?;
    let value = app.value(body).await?;
    let asked = write::flow_filter(info.version, &Object::body(&value)?)?;
    ask(
        &app,
        &info,
        &multipart(MultipartRequestBody::Aggregate(asked)),
        None,
    )
    .await
}

async fn table(State(app): State<Arc<App>>, params: Params) -> Answer {
    ask_multipart(&app, &params, MultipartRequestBody::Table).await
}

async fn table_features(State(app): State<Arc<App>>, params: Params) -> Answer {
    ask_multipart(
        &app,
        &params,
        MultipartRequestBody::TableFeatures(List::default()),
    )
    .await
}

async fn port(State(app): State<Arc<App>>, params: Params) -> Answer {
    let port = params.number("port")?.map_or(PortNo::ANY, PortNo);
    ask_multipart(&app, &params, MultipartRequestBody::PortStats(port)).await
}

async fn queue(State(app): State<Arc<App>>, params: Params) -> Answer {
    let all = match app.switch(params.switch()?)?.version {
        Version::Of10 => PortNo::ALL,
        Version::Of13 => PortNo::ANY,
    };
    let asked = MultipartRequestBody::Queue {
        port: params.number("port")?.map_or(all, PortNo),
        queue_id: params.number("queue")?.unwrap_or(QUEUE_ALL),
    };
    ask_multipart(&app, &params, asked).await
}

async fn queue_config(State(app): State<Arc<App>>, params: Params) -> Answer {
    let info = app.switch(params.switch()?)?;
    let port = params.number("port")?.map_or(PortNo::ANY, PortNo);
    needs_13(&info, "queue configurations")?;
    ask(&app, &info, &Message::QueueGetConfigRequest(port), None).await
}

async fn meter(State(app): State<Arc<App>>, params: Params) -> Answer {
    let meter = params.number("meter")?.unwrap_or(METER_ALL);
    ask_multipart(&app, &params, MultipartRequestBody::Meter(meter)).await
}

async fn meter_config(State(app): State<Arc<App>>, params: Params) -> Answer {
    let meter = params.number("meter")?.unwrap_or(METER_ALL);
    ask_multipart(&app, &params, MultipartRequestBody::MeterConfig(meter)).await
}

async fn meter_features(State(app): State<Arc<App>>, params: Params) -> Answer {
    ask_multipart(&app, &params, MultipartRequestBody::MeterFeatures).await
}

async fn group(State(app): State<Arc<App>>, params: Params) -> Answer {
    let group = params.number("group")?.unwrap_or(GROUP_ALL);
    ask_multipart(&app, &params, MultipartRequestBody::Group(group)).await
}

/// Prints all groups, as Ryu did, since requests of 1.3 cannot name a group.
async fn group_desc(State(app): State<Arc<App>>, params: Params) -> Answer {
    params.number("group")?;
    ask_multipart(&app, &params, MultipartRequestBody::GroupDesc).await
}

async fn group_features(State(app): State<Arc<App>>, params: Params) -> Answer {
    ask_multipart(&app, &params, MultipartRequestBody::GroupFeatures).await
}

/// Prints all ports, as Ryu did, since requests of neither version can name a port. 1.0 describes ports with its features.
async fn port_desc(State(app): State<Arc<App>>, params: Params) -> Answer {
    params.number("port")?;
    let info = app.switch(params.switch()?)?;
    let message = match info.version {
        Version::Of10 => Message::FeaturesRequest,
        Version::Of13 => multipart(MultipartRequestBody::PortDesc),
    };
    ask(&app, &info, &message, None).await
}

async fn role(State(app): State<Arc<App>>, params: Params) -> Answer {
    let info = app.switch(params.switch()?)?;
    needs_13(&info, "roles")?;
    let unchanged = Role {
        role: ControllerRole::NoChange,
        generation_id: 0,
    };
    ask(&app, &info, &Message::RoleRequest(unchanged), None).await
}

fn multipart(body: MultipartRequestBody<'_>) -> Message<'_> {
    Message::MultipartRequest(MultipartRequest {
        flags: MultipartFlags::empty(),
        body,
    })
}

/// Refuses a request that the switch's version lacks with status 501, as Ryu does.
fn needs_13(info: &SwitchInfo, what: &str) -> Result<(), ApiError> {
    match info.version {
        Version::Of10 => Err(ApiError::not_in_version(format!(
            "switch {} speaks OpenFlow 1.0, which has no {what}: expected OpenFlow 1.3",
            info.datapath_id
        ))),
        Version::Of13 => Ok(()),
    }
}

async fn ask_multipart(app: &App, params: &Params, body: MultipartRequestBody<'_>) -> Answer {
    let info = app.switch(params.switch()?)?;
    use MultipartRequestBody as Asked;
    match body {
        Asked::Meter(_) | Asked::MeterConfig(_) | Asked::MeterFeatures => {
            needs_13(&info, "meters")?
        }
        Asked::Group(_) | Asked::GroupDesc | Asked::GroupFeatures => needs_13(&info, "groups")?,
        Asked::TableFeatures(_) => needs_13(&info, "table features")?,
        _ => {}
    }
    ask(app, &info, &multipart(body), None).await
}

/// Sends a request to a switch, and responds `{"<dpid>": …}`. If the switch refuses it, the response is empty, as in Ryu.
async fn ask(app: &App, info: &SwitchInfo, message: &Message<'_>, priority: Option<u16>) -> Answer {
    let id = info.datapath_id;
    let printer = Printer {
        version: info.version,
        program: app.network.program(),
    };
    match app.ask(id, message).await {
        Ok((reply, permit)) => Ok(print(id, reply, permit, printer, priority)),
        Err(RequestError::Refused(_)) => Ok(Json(json!({ id.0.to_string(): [] })).into_response()),
        Err(error) => Err(error.into()),
    }
}

fn print(
    id: DatapathId,
    reply: Reply,
    permit: OwnedSemaphorePermit,
    printer: Printer,
    priority: Option<u16>,
) -> Response {
    let first = reply
        .messages()
        .next()
        .and_then(|first| printer.print(&first, priority));
    if let Some(Printed::One(value)) = first {
        return Json(json!({ id.0.to_string(): value })).into_response();
    }
    stream_json(move |sender| async move {
        write_rows(&sender, id, &reply, printer, priority).await;
        drop((reply, permit));
    })
}

/// Writes a list in parts, until the client disconnects.
async fn write_rows(
    sender: &Sender<Bytes>,
    id: DatapathId,
    reply: &Reply,
    printer: Printer,
    priority: Option<u16>,
) {
    let mut chunk = format!("{{\"{}\": [", id.0).into_bytes();
    let mut separator = "";
    for message in reply.messages() {
        let Some(Printed::Rows(rows)) = printer.print(&message, priority) else {
            continue;
        };
        for row in rows {
            chunk.extend_from_slice(separator.as_bytes());
            // This only fails for maps whose keys are not strings.
            let _ = serde_json::to_writer(&mut chunk, &row);
            separator = ", ";
        }
        if sender
            .send(std::mem::take(&mut chunk).into())
            .await
            .is_err()
        {
            return;
        }
    }
    chunk.extend_from_slice(b"]}");
    let _ = sender.send(chunk.into()).await;
}

/// A body for one switch.
struct Order {
    value: Value,
    payloads: Payloads,
    info: Arc<SwitchInfo>,
}

impl Order {
    async fn read(app: &App, body: Body) -> Result<Self, ApiError> {
        let value = app.value(body).await?;
        let info = app.switch(named_switch(&Object::body(&value)?)?)?;
        Ok(Self {
            payloads: Payloads::of(&value),
            value,
            info,
        })
    }

    fn body(&self) -> Result<Object<'_>, ApiError> {
        Object::body(&self.value)
    }
}

fn named_switch(body: &Object) -> Result<DatapathId, ApiError> {
    match body.get("dpid") {
        Some(Value::Number(number)) if number.is_u64() => {
            Ok(DatapathId(number.as_u64().unwrap_or_default()))
        }
        Some(Value::String(text)) => parse_switch(text),
        _ => Err(body
            .wrong("dpid", "the datapath id of a switch")
            .example("\"dpid\": 1")),
    }
}

fn no_such_command(params: &Params, expected: &str) -> ApiError {
    let command = params.get("command").unwrap_or_default();
    ApiError::field("the command in the path", command, expected).with_status(StatusCode::NOT_FOUND)
}

async fn change_flow(State(app): State<Arc<App>>, params: Params, body: Body) -> Answer {
    let command = match params.get("command") {
        Some("add") => FlowModCommand::Add,
        Some("modify") => FlowModCommand::Modify,
        Some("modify_strict") => FlowModCommand::ModifyStrict,
        Some("delete") => FlowModCommand::Delete,
        Some("delete_strict") => FlowModCommand::DeleteStrict,
        _ => {
            return Err(no_such_command(
                &params,
                "add, modify, modify_strict, delete or delete_strict",
            ));
        }
    };
    let order = Order::read(&app, body).await?;
    let flow_mod = write::flow_mod(order.info.version, command, &order.body()?, &order.payloads)?;
    send_flow_mod(&app, &order.info, flow_mod).await
}

async fn clear_flows(State(app): State<Arc<App>>, params: Params) -> Answer {
    let info = app.switch(params.switch()?)?;
    send_flow_mod(&app, &info, write::clear(info.version)).await
}

/// Sends a flow mod. The table numbers in a request are the switch's, even if a filter has its own table; `ALL` includes all
/// tables.
async fn send_flow_mod(app: &App, info: &SwitchInfo, flow_mod: FlowMod<'_>) -> Answer {
    let is_of_all = flow_mod.table_id == TABLE_ALL;
    let message = Message::FlowMod(flow_mod);
    let named = app.network.for_stage(Stage::Observe);
    app.send(&named, info.datapath_id, &message).await?;
    if is_of_all {
        let forwarding = app.network.for_stage(Stage::Forward);
        app.send(&forwarding, info.datapath_id, &message).await?;
    }
    Ok(StatusCode::OK.into_response())
}

async fn change_group(State(app): State<Arc<App>>, params: Params, body: Body) -> Answer {
    let command = match params.get("command") {
        Some("add") => GroupModCommand::Add,
        Some("modify") => GroupModCommand::Modify,
        Some("delete") => GroupModCommand::Delete,
        _ => return Err(no_such_command(&params, "add, modify or delete")),
    };
    let order = Order::read(&app, body).await?;
    needs_13(&order.info, "groups")?;
    let group_mod = write::group_mod(command, &order.body()?, &order.payloads)?;
    send(&app, &order.info, Message::GroupMod(group_mod)).await
}

async fn change_meter(State(app): State<Arc<App>>, params: Params, body: Body) -> Answer {
    let command = match params.get("command") {
        Some("add") => MeterModCommand::Add,
        Some("modify") => MeterModCommand::Modify,
        Some("delete") => MeterModCommand::Delete,
        _ => return Err(no_such_command(&params, "add, modify or delete")),
    };
    let order = Order::read(&app, body).await?;
    needs_13(&order.info, "meters")?;
    let meter_mod = write::meter_mod(command, &order.body()?)?;
    send(&app, &order.info, Message::MeterMod(meter_mod)).await
}

async fn change_port(State(app): State<Arc<App>>, body: Body) -> Answer {
    let order = Order::read(&app, body).await?;
    let (version, body) = (order.info.version, order.body()?);
    let port_no = write::port_no(version, &body)?;
    let known = order.info.port(port_no);
    let needs_known = body.get("hw_addr").is_none() || body.get("advertise").is_none();
    if known.is_none() && needs_known {
        let expected = "a port of this switch, or hw_addr and advertise besides";
        return Err(body
            .wrong("port_no", expected)
            .with_status(StatusCode::NOT_FOUND));
    }
    let port_mod = write::port_mod(version, &body, known)?;
    send(&app, &order.info, Message::PortMod(port_mod)).await
}

async fn change_role(State(app): State<Arc<App>>, body: Body) -> Answer {
    let order = Order::read(&app, body).await?;
    needs_13(&order.info, "roles")?;
    let role = write::role(&order.body()?)?;
    let _ = app
        .ask(order.info.datapath_id, &Message::RoleRequest(role))
        .await?;
    Ok(StatusCode::OK.into_response())
}

async fn experimenter(State(app): State<Arc<App>>, params: Params, body: Body) -> Answer {
    let info = app.switch(params.switch()?)?;
    let value = app.value(body).await?;
    let payloads = Payloads::of(&value);
    let (experimenter, data) =
        write::experimenter(info.version, &Object::body(&value)?, &payloads)?;
    let message = Experimenter {
        experimenter,
        data: &data,
    };
    send(&app, &info, Message::Experimenter(message)).await
}

async fn send(app: &App, info: &SwitchInfo, message: Message<'_>) -> Answer {
    app.send(&app.network, info.datapath_id, &message).await?;
    Ok(StatusCode::OK.into_response())
}
