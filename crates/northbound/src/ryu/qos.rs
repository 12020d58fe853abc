//! `/qos/…`: the paths of Ryu's `rest_qos`.
//!
//! Queues are rows of Open vSwitch's database. `PUT /v1.0/conf/switches/<switch>/ovsdb_addr` sets the address of a switch's
//! database; until then, the paths for queues respond that they do not know it, as Ryu did.

use super::read::{Printed, Printer};
use super::rule::{self, result, with_vlan};
use super::write;
use crate::app::App;
use crate::error::ApiError;
use crate::number::integer;
use crate::object::Object;
use crate::ovsdb::{Address, BridgeQueues, OvsdbError, Queue, Shaping};
use crate::params::Params;
use axum::body::Body;
use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use serde::Serialize;
use serde_json::{Value, json};
use std::sync::Arc;
use urtica_apps::{QosAction, RestQos, RyuRule};
use urtica_controller::RequestError;
use urtica_wire::{
    DatapathId, METER_ALL, Message, MeterBand, MeterMod, MeterModCommand, MultipartFlags,
    MultipartRequest, MultipartRequestBody, PortNo, QUEUE_ALL,
};

type Answer = Result<Json<Vec<Value>>, ApiError>;

/// The error for a switch without a database: Ryu's text, and a remedy.
const NO_DATABASE: &str = "ovs_bridge is not exists: expected the database's address first, such as PUT \"tcp:127.0.0.1:6640\" to \
                           /v1.0/conf/switches/<switch>/ovsdb_addr";

/// The maximum number of queues in a request. Each port of the switch gets them.
const MAX_QUEUES: usize = 256;

pub(crate) fn routes() -> Router<Arc<App>> {
    let rules = get(list_rules).post(add_rule).delete(delete_rules);
    Router::new()
        .route(
            "/qos/queue/{switch_id}",
            get(list_queues).post(set_queues).delete(delete_queues),
        )
        .route("/qos/queue/status/{switch_id}", get(queue_status))
        .route("/qos/rules/{switch_id}", rules.clone())
        .route("/qos/rules/{switch_id}/{vlan_id}", rules)
        .route(
            "/qos/meter/{switch_id}",
            get(list_meters).post(set_meter).delete(delete_meter),
        )
}

fn switches(app: &App, params: &Params) -> Result<Vec<DatapathId>, ApiError> {
    rule::switches(params, "rest_qos", app.ryu.qos.switches())
}

/// Returns the database of a switch, if its address was set.
fn database(app: &App, id: DatapathId) -> Result<Option<Address>, ApiError> {
    match app.conf.get(id, "ovsdb_addr") {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.parse()?)),
        Some(other) => Err(OvsdbError::Address(other.to_string()).into()),
    }
}

async fn list_queues(State(app): State<Arc<App>>, params: Params) -> Answer {
    let mut rows = Vec::new();
    for id in switches(&app, &params)? {
        let queues = match database(&app, id)? {
            Some(address) => BridgeQueues::read(&address, id).await?.queues().await?,
            None => Default::default(),
        };
        let told = match queues.is_empty() {
            true => result(false, "Queue is not exists."),
            false => result(true, print_queues(queues)),
        };
        rows.push(rule::row(id, told));
    }
    Ok(Json(rows))
}

async fn set_queues(State(app): State<Arc<App>>, params: Params, body: Body) -> Answer {
    let ids = switches(&app, &params)?;
    let value = app.value(body).await?;
    let body = Object::body(&value)?;
    let shaping = shaping(&body)?;
    let port = match body.get("port_name") {
        Some(_) => Some(body.text("port_name", "the name of a port")?),
        None => None,
    };
    let mut rows = Vec::new();
    for id in ids {
        let told = match database(&app, id)? {
            Some(address) => {
                let queues = BridgeQueues::read(&address, id).await?;
                queues.set(port, &shaping).await?;
                let configs = shaping.queues.iter().map(Queue::config);
                result(true, print_queues(configs.enumerate()))
            }
            None => result(false, NO_DATABASE),
        };
        rows.push(rule::row(id, told));
    }
    Ok(Json(rows))
}

async fn delete_queues(State(app): State<Arc<App>>, params: Params) -> Answer {
    let mut rows = Vec::new();
    for id in switches(&app, &params)? {
        let is_done = match database(&app, id)? {
            Some(address) => BridgeQueues::read(&address, id).await?.clear().await?,
            None => false,
        };
        rows.push(rule::row(id, if is_done { "success" } else { "failure" }));
    }
    Ok(Json(rows))
}

/// Reads the settings of ports: the kind of scheduler, the rate of all queues, and the queues.
fn shaping(body: &Object) -> Result<Shaping, ApiError> {
    body.only(&["port_name", "type", "max_rate", "queues"])?;
    let queues = body.objects("queues")?;
    if queues.len() > MAX_QUEUES {
        return Err(ApiError::at(
            "queues",
            format!(
                "there are {} queues: expected at most {MAX_QUEUES}",
                queues.len()
            ),
        ));
    }
    Ok(Shaping {
        kind: body.text_or("type", "linux-htb")?.to_owned(),
        max_rate: rate(body, "max_rate")?,
        queues: queues.iter().map(queue).collect::<Result<_, _>>()?,
    })
}

fn queue(object: &Object) -> Result<Queue, ApiError> {
    object.only(&["max_rate", "min_rate"])?;
    let queue = Queue {
        max_rate: rate(object, "max_rate")?,
        min_rate: rate(object, "min_rate")?,
    };
    match queue == Queue::default() {
        true => Err(ApiError::missing(
            object.path("max_rate"),
            "a rate in bit/s, here or as min_rate",
        )
        .example("\"max_rate\": \"500000\"")),
        false => Ok(queue),
    }
}

/// Reads an optional rate, in bit/s.
fn rate(object: &Object, key: &str) -> Result<Option<u64>, ApiError> {
    match object.get(key) {
        Some(_) => object.needed_number(key).map(Some),
        None => Ok(None),
    }
}

/// Prints queues by number, as Ryu does.
fn print_queues(queues: impl IntoIterator<Item = (impl ToString, impl Serialize)>) -> Value {
    let queues = queues.into_iter();
    let printed = queues.map(|(number, config)| (number.to_string(), json!({ "config": config })));
    Value::Object(printed.collect())
}

async fn queue_status(State(app): State<Arc<App>>, params: Params) -> Answer {
    let body = MultipartRequestBody::Queue {
        port: PortNo::ANY,
        queue_id: QUEUE_ALL,
    };
    ask_each(&app, &params, body).await
}

async fn list_meters(State(app): State<Arc<App>>, params: Params) -> Answer {
    ask_each(&app, &params, MultipartRequestBody::Meter(METER_ALL)).await
}

/// Sends a request to each switch in a path. If one refuses it, its response is empty, as in `ofctl_rest`.
async fn ask_each(app: &App, params: &Params, body: MultipartRequestBody<'static>) -> Answer {
    let request = Message::MultipartRequest(MultipartRequest {
        flags: MultipartFlags::empty(),
        body,
    });
    let mut rows = Vec::new();
    for id in switches(app, params)? {
        let printed = match app.ask(id, &request).await {
            Ok((reply, _permit)) => {
                let printer = Printer {
                    version: app.switch(id)?.version,
                    program: app.network.program(),
                };
                let parts = reply
                    .messages()
                    .filter_map(|part| printer.print(&part, None));
                parts.flat_map(into_rows).collect()
            }
            Err(RequestError::Refused(_)) => Vec::new(),
            Err(error) => return Err(error.into()),
        };
        rows.push(rule::row(id, json!({ id.0.to_string(): printed })));
    }
    Ok(Json(rows))
}

fn into_rows(printed: Printed) -> Vec<Value> {
    match printed {
        Printed::One(row) => vec![row],
        Printed::Rows(rows) => rows,
    }
}

async fn list_rules(State(app): State<Arc<App>>, params: Params) -> Answer {
    let wanted = rule::vlan_id(&params)?;
    let row = |id: DatapathId| {
        let rules = app.ryu.qos.rules(id)?;
        Ok(rule::row(
            id,
            rule::by_vlan(&rules, wanted, "qos", print_rule),
        ))
    };
    let rows = switches(&app, &params)?.into_iter().map(row);
    rows.collect::<Result<_, _>>().map(Json)
}

fn print_rule(rule: &RyuRule<QosAction>) -> Value {
    let mut printed = rule::print_match(&rule.match_);
    printed.insert("qos_id".to_owned(), rule.id.into());
    printed.insert("priority".to_owned(), rule.priority.into());
    let QosAction { mark, meter, queue } = rule.action;
    let named = [
        ("mark", mark.map(u32::from)),
        ("meter", meter),
        ("queue", queue),
    ];
    let given = named
        .iter()
        .filter_map(|(name, value)| Some((name, (*value)?)));
    // Ryu prints these as texts.
    let actions: Vec<_> = given
        .map(|(name, value)| json!({ *name: value.to_string() }))
        .collect();
    printed.insert("actions".to_owned(), actions.into());
    printed.into()
}

async fn add_rule(State(app): State<Arc<App>>, params: Params, body: Body) -> Answer {
    let qos = &app.ryu.qos;
    let (ids, vlan_id) = (switches(&app, &params)?, rule::vlan_id(&params)?);
    let value = app.value(body).await?;
    let body = Object::body(&value)?;
    check_parts(&body)?;
    let matched = body.object("match")?;
    let matched = matched.ok_or_else(|| {
        body.wrong("match", "an object of fields")
            .example("\"match\": {\"nw_dst\": \"10.0.0.1\"}")
    })?;
    rule::check_known(&matched, &[])?;
    let priority = rule::priority(&body, RestQos::MIN_PRIORITY, RestQos::MAX_PRIORITY)?;
    let action = action(&body)?;
    let mut rows = Vec::new();
    for id in ids {
        let vlan_ids = match vlan_id {
            Some(vlan_id) => vec![vlan_id],
            None => qos.vlans(id)?,
        };
        let mut results = Vec::new();
        for vlan_id in vlan_ids {
            let match_ = rule::parse_match(&matched, vlan_id)?;
            let added = qos.add_rule(id, vlan_id, priority, match_, action);
            let details = format!("QoS added. : qos_id={}", added.await?);
            results.push(Value::from(with_vlan(result(true, details), vlan_id)));
        }
        rows.push(rule::row(id, results));
    }
    Ok(Json(rows))
}

fn check_parts(body: &Object) -> Result<(), ApiError> {
    let is_part = |name: &str| ["priority", "match", "actions"].contains(&name);
    match body.iter().find(|(name, _)| !is_part(name)) {
        None => Ok(()),
        Some((name, _)) => Err(ApiError::field(
            name,
            "not part of a rule",
            "match, actions or priority",
        )),
    }
}

/// Reads the action of a rule. Without actions, packets use queue 0, as in Ryu.
fn action(body: &Object) -> Result<QosAction, ApiError> {
    const EXPECTED: &str = "mark, meter or queue";
    let Some(actions) = body.object("actions")? else {
        return Ok(QosAction {
            queue: Some(0),
            ..QosAction::default()
        });
    };
    let is_known = |name: &str| ["mark", "meter", "queue"].contains(&name);
    if let Some((name, _)) = actions.iter().find(|(name, _)| !is_known(name)) {
        return Err(ApiError::field(
            actions.path(name),
            "not an action of a rule",
            EXPECTED,
        ));
    }
    let number = |name| match actions.get(name) {
        Some(_) => actions.needed_number(name).map(Some),
        None => Ok(None),
    };
    let mark = number("mark")?;
    // The mark has six bits (RFC 2474).
    if mark.is_some_and(|mark| mark > 63) {
        return Err(actions.wrong("mark", "a DSCP: a number from 0 to 63"));
    }
    Ok(QosAction {
        mark: mark.map(|mark| mark as u8),
        meter: number("meter")?,
        queue: number("queue")?,
    })
}

async fn delete_rules(State(app): State<Arc<App>>, params: Params, body: Body) -> Answer {
    let (ids, vlan_id) = (switches(&app, &params)?, rule::vlan_id(&params)?);
    let value = app.value(body).await?;
    let qos_id = rule::rule_id(&Object::body(&value)?, "qos_id")?;
    let mut rows = Vec::new();
    for id in ids {
        let deleted = app.ryu.qos.delete_rules(id, vlan_id, qos_id).await?;
        let numbers = deleted.iter().map(|rule| (rule.vlan_id, rule.id));
        let told = rule::deleted(
            numbers,
            qos_id,
            [" deleted.", "QoS rule is not exist."],
            "QoS ID",
        );
        rows.push(rule::row(id, told));
    }
    Ok(Json(rows))
}

async fn set_meter(State(app): State<Arc<App>>, params: Params, body: Body) -> Answer {
    let ids = switches(&app, &params)?;
    let value = app.value(body).await?;
    let body = Object::body(&value)?;
    let meter_id = meter_id(&body)?;
    let parsed = write::meter_mod(MeterModCommand::Add, &body)?;
    let bands: Option<Vec<_>> = parsed.bands.iter().map(kept_band).collect();
    let bands =
        bands.ok_or_else(|| body.wrong("bands", "bands of the types DROP and DSCP_REMARK"))?;
    let mut rows = Vec::new();
    for id in ids {
        let meter = MeterMod {
            command: MeterModCommand::Add,
            flags: parsed.flags,
            meter_id,
            bands: bands.clone().into(),
        };
        app.ryu.qos.set_meter(id, meter).await?;
        let details = format!("Meter added. : Meter ID={meter_id}");
        rows.push(rule::row(id, vec![Value::from(result(true, details))]));
    }
    Ok(Json(rows))
}

/// Copies a meter's band, so that it can be stored for a switch. Returns `None` for an experimenter's band.
fn kept_band(band: MeterBand) -> Option<MeterBand<'static>> {
    match band {
        MeterBand::Drop { rate, burst_size } => Some(MeterBand::Drop { rate, burst_size }),
        MeterBand::DscpRemark {
            rate,
            burst_size,
            prec_level,
        } => Some(MeterBand::DscpRemark {
            rate,
            burst_size,
            prec_level,
        }),
        _ => None,
    }
}

fn meter_id(body: &Object) -> Result<u32, ApiError> {
    let number = body.get("meter_id").and_then(integer);
    let number = number.and_then(|number| u32::try_from(number).ok());
    number.ok_or_else(|| {
        body.wrong("meter_id", "a meter's number")
            .example("\"meter_id\": \"1\"")
    })
}

async fn delete_meter(State(app): State<Arc<App>>, params: Params, body: Body) -> Answer {
    let ids = switches(&app, &params)?;
    let value = app.value(body).await?;
    let meter_id = meter_id(&Object::body(&value)?)?;
    let mut rows = Vec::new();
    for id in ids {
        let told = match app.ryu.qos.delete_meter(id, meter_id).await? {
            true => result(true, format!("Meter deleted. : Meter ID={meter_id}")),
            false => result(false, format!("Meter is not exist. : Meter ID={meter_id}")),
        };
        rows.push(rule::row(id, told));
    }
    Ok(Json(rows))
}
