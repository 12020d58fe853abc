//! `GET /openapi.json`: the description of all paths.

use crate::app::App;
use crate::{api, emulation, error, live};
use axum::{Json, Router, routing::get};
use std::sync::{Arc, LazyLock};
use utoipa::OpenApi;
use utoipa::openapi::path::{
    HttpMethod, OperationBuilder, ParameterBuilder, ParameterIn, PathItem, PathItemBuilder,
};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, SchemaType, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{ContentBuilder, Ref, RefOr, Required, ResponseBuilder, Schema};

pub(crate) fn routes() -> Router<Arc<App>> {
    static DOCUMENT: LazyLock<utoipa::openapi::OpenApi> = LazyLock::new(document);
    Router::new().route("/openapi.json", get(async || Json(&*DOCUMENT)))
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Urtica's northbound interface",
        description = "Switches, entries, topology and metrics of an OpenFlow controller. The paths of Ryu's REST \
            applications answer as Ryu's did.",
        license(name = "Apache-2.0 OR MIT")
    ),
    components(schemas(
        api::Switch,
        api::Port,
        api::SwitchPorts,
        api::Table,
        api::FlowEntry,
        api::Group,
        api::Meter,
        api::Host,
        api::Link,
        api::Hop,
        api::Trace,
        api::TraceHop,
        api::TraceTable,
        api::TraceOutput,
        api::ControllerState,
        api::RunningProgram,
        api::Panic,
        api::FlowChange,
        api::GroupChange,
        api::MeterChange,
        api::RoleChange,
        api::LinkChange,
        api::SwitchChange,
        api::PingOrder,
        api::TrafficOrder,
        emulation::Emulated,
        emulation::EmulatedSwitch,
        emulation::EmulatedHost,
        emulation::EmulatedLink,
        emulation::PingResults,
        emulation::UnansweredPing,
        live::Setting,
        error::ApiError
    ))
)]
struct Described;

/// The body of a request.
#[derive(Clone, Copy)]
enum Asked {
    Nothing,
    /// A schema of this interface.
    Named(&'static str),
    /// An object of Ryu's, which is described by an example.
    Ryu(&'static str),
    /// Any JSON; this is an example.
    Any(&'static str),
}

/// The body of a response.
#[derive(Clone, Copy)]
enum Answer {
    Nothing,
    /// No content, only a status.
    NoContent,
    /// Something was created.
    Created,
    /// Something is deleted, or will be.
    Accepted,
    One(&'static str),
    Many(&'static str),
    Texts,
    /// JSON in Ryu's form.
    Ryu,
    /// Content other than JSON.
    Other(&'static str),
}

/// An operation on a path: method, path, purpose, request and response. The parameters of a query follow `?`.
type Operation = (HttpMethod, &'static str, &'static str, Asked, Answer);

use HttpMethod::{Delete, Get, Post, Put};

#[rustfmt::skip]
const OPERATIONS: &[Operation] = &[
    (Get, "/api/v1/switches", "The connected switches", Asked::Nothing, Answer::Many("Switch")),
    (Get, "/api/v1/switches/{dpid}", "A switch", Asked::Nothing, Answer::One("Switch")),
    (Get, "/api/v1/switches/{dpid}/ports", "Its ports and their counters", Asked::Nothing, Answer::Many("Port")),
    (Get, "/api/v1/switches/{dpid}/tables", "Its flow tables", Asked::Nothing, Answer::Many("Table")),
    (Get, "/api/v1/switches/{dpid}/flows", "Its flow entries", Asked::Nothing, Answer::Many("FlowEntry")),
    (Post, "/api/v1/switches/{dpid}/flows", "Changes its flow entries", Asked::Named("FlowChange"), Answer::NoContent),
    (Get, "/api/v1/switches/{dpid}/groups", "Its groups", Asked::Nothing, Answer::Many("Group")),
    (Post, "/api/v1/switches/{dpid}/groups", "Changes its groups", Asked::Named("GroupChange"), Answer::NoContent),
    (Get, "/api/v1/switches/{dpid}/meters", "Its meters", Asked::Nothing, Answer::Many("Meter")),
    (Post, "/api/v1/switches/{dpid}/meters", "Changes its meters", Asked::Named("MeterChange"), Answer::NoContent),
    (Post, "/api/v1/switches/{dpid}/role", "Requests another role for this controller", Asked::Named("RoleChange"), Answer::NoContent),
    (Get, "/api/v1/ports", "The ports of all switches, with counters that are at most about a second older than the response", Asked::Nothing, Answer::Many("SwitchPorts")),
    (Get, "/api/v1/hosts", "The known hosts", Asked::Nothing, Answer::Many("Host")),
    (Get, "/api/v1/links", "The links between switches, one for each direction", Asked::Nothing, Answer::Many("Link")),
    (Get, "/api/v1/paths?from,to", "A shortest path between two hosts or ports, if they are connected", Asked::Nothing, Answer::Many("Hop")),
    (Get, "/api/v1/trace?from,to", "The path of a ping between two hosts through the switches' entries", Asked::Nothing, Answer::One("Trace")),
    (Get, "/api/v1/topology.svg", "A drawing of the current network: switches, links and hosts; links lost in the last ten minutes are dashed", Asked::Nothing, Answer::Other("image/svg+xml")),
    (Get, "/api/v1/topology.dot", "The drawing of the network for Graphviz", Asked::Nothing, Answer::Other("text/vnd.graphviz")),
    (Get, "/api/v1/programs", "The running control programs", Asked::Nothing, Answer::Texts),
    (Get, "/api/v1/controller", "The controller: its programs with their running times and last panics, and its settings", Asked::Nothing, Answer::One("ControllerState")),
    (Get, "/api/v1/emulation", "The parts of the controller's network, if its own program emulates it", Asked::Nothing, Answer::One("Emulated")),
    (Post, "/api/v1/emulation/links/{link}", "Cuts or repairs an emulated link", Asked::Named("LinkChange"), Answer::NoContent),
    (Post, "/api/v1/emulation/switches/{dpid}", "Stops or starts an emulated switch", Asked::Named("SwitchChange"), Answer::NoContent),
    (Post, "/api/v1/emulation/pings", "Pings from an emulated host to another, or from every host to every other, and waits for the replies", Asked::Named("PingOrder"), Answer::One("PingResults")),
    (Post, "/api/v1/emulation/traffic", "Sends packets from an emulated host to another", Asked::Named("TrafficOrder"), Answer::NoContent),
    (Get, "/metrics", "Metrics for Prometheus", Asked::Nothing, Answer::Other("text/plain")),
    (Get, "/stats/switches", "Ryu: the datapath ids of all switches", Asked::Nothing, Answer::Ryu),
    (Get, "/stats/desc/{dpid}", "Ryu: the description of a switch", Asked::Nothing, Answer::Ryu),
    (Get, "/stats/flow/{dpid}", "Ryu: flow entries", Asked::Nothing, Answer::Ryu),
    (Post, "/stats/flow/{dpid}", "Ryu: flow entries that match a filter", Asked::Ryu(r#"{"table_id": 0, "match": {"in_port": 1}}"#), Answer::Ryu),
    (Get, "/stats/aggregateflow/{dpid}", "Ryu: sums over flow entries", Asked::Nothing, Answer::Ryu),
    (Post, "/stats/aggregateflow/{dpid}", "Ryu: sums over flow entries that match a filter", Asked::Ryu(r#"{"match": {"in_port": 1}}"#), Answer::Ryu),
    (Get, "/stats/table/{dpid}", "Ryu: flow tables", Asked::Nothing, Answer::Ryu),
    (Get, "/stats/tablefeatures/{dpid}", "Ryu: the features of tables", Asked::Nothing, Answer::Ryu),
    (Get, "/stats/port/{dpid}", "Ryu: counters of ports", Asked::Nothing, Answer::Ryu),
    (Get, "/stats/port/{dpid}/{port}", "Ryu: counters of a port", Asked::Nothing, Answer::Ryu),
    (Get, "/stats/portdesc/{dpid}", "Ryu: the descriptions of ports", Asked::Nothing, Answer::Ryu),
    (Get, "/stats/portdesc/{dpid}/{port}", "Ryu: the descriptions of all ports", Asked::Nothing, Answer::Ryu),
    (Get, "/stats/queue/{dpid}", "Ryu: counters of queues", Asked::Nothing, Answer::Ryu),
    (Get, "/stats/queue/{dpid}/{port}", "Ryu: counters of a port's queues", Asked::Nothing, Answer::Ryu),
    (Get, "/stats/queue/{dpid}/{port}/{queue}", "Ryu: counters of a queue", Asked::Nothing, Answer::Ryu),
    (Get, "/stats/queueconfig/{dpid}", "Ryu: queues", Asked::Nothing, Answer::Ryu),
    (Get, "/stats/queueconfig/{dpid}/{port}", "Ryu: queues of a port", Asked::Nothing, Answer::Ryu),
    (Get, "/stats/meter/{dpid}", "Ryu: counters of meters", Asked::Nothing, Answer::Ryu),
    (Get, "/stats/meter/{dpid}/{meter}", "Ryu: counters of a meter", Asked::Nothing, Answer::Ryu),
    (Get, "/stats/meterconfig/{dpid}", "Ryu: meters", Asked::Nothing, Answer::Ryu),
    (Get, "/stats/meterconfig/{dpid}/{meter}", "Ryu: a meter", Asked::Nothing, Answer::Ryu),
    (Get, "/stats/meterfeatures/{dpid}", "Ryu: the features of meters", Asked::Nothing, Answer::Ryu),
    (Get, "/stats/group/{dpid}", "Ryu: counters of groups", Asked::Nothing, Answer::Ryu),
    (Get, "/stats/group/{dpid}/{group}", "Ryu: counters of a group", Asked::Nothing, Answer::Ryu),
    (Get, "/stats/groupdesc/{dpid}", "Ryu: groups", Asked::Nothing, Answer::Ryu),
    (Get, "/stats/groupdesc/{dpid}/{group}", "Ryu: groups, all of them", Asked::Nothing, Answer::Ryu),
    (Get, "/stats/groupfeatures/{dpid}", "Ryu: the features of groups", Asked::Nothing, Answer::Ryu),
    (Get, "/stats/role/{dpid}", "Ryu: the role of this controller", Asked::Nothing, Answer::Ryu),
    (Post, "/stats/flowentry/{command}", "Ryu: add, modify, modify_strict, delete, delete_strict an entry", Asked::Ryu(r#"{"dpid": 1, "priority": 10, "match": {"in_port": 1}, "actions": [{"type": "OUTPUT", "port": 2}]}"#), Answer::Nothing),
    (Delete, "/stats/flowentry/clear/{dpid}", "Ryu: delete all entries", Asked::Nothing, Answer::Nothing),
    (Post, "/stats/groupentry/{command}", "Ryu: add, modify, delete a group", Asked::Ryu(r#"{"dpid": 1, "type": "ALL", "group_id": 1, "buckets": [{"actions": [{"type": "OUTPUT", "port": 1}]}]}"#), Answer::Nothing),
    (Post, "/stats/meterentry/{command}", "Ryu: add, modify, delete a meter", Asked::Ryu(r#"{"dpid": 1, "flags": "KBPS", "meter_id": 1, "bands": [{"type": "DROP", "rate": 1000}]}"#), Answer::Nothing),
    (Post, "/stats/portdesc/modify", "Ryu: change a port", Asked::Ryu(r#"{"dpid": 1, "port_no": 1, "config": 0, "mask": 1}"#), Answer::Nothing),
    (Post, "/stats/role", "Ryu: change the role of this controller", Asked::Ryu(r#"{"dpid": 1, "role": "EQUAL"}"#), Answer::Nothing),
    (Post, "/stats/experimenter/{dpid}", "Ryu: send an experimenter message", Asked::Ryu(r#"{"experimenter": 1, "exp_type": 1, "data": "AAECAw==", "data_type": "base64"}"#), Answer::Nothing),
    (Get, "/v1.0/topology/switches", "Ryu: switches and their ports", Asked::Nothing, Answer::Ryu),
    (Get, "/v1.0/topology/switches/{dpid}", "Ryu: a switch and its ports", Asked::Nothing, Answer::Ryu),
    (Get, "/v1.0/topology/links", "Ryu: links", Asked::Nothing, Answer::Ryu),
    (Get, "/v1.0/topology/links/{dpid}", "Ryu: links of a switch", Asked::Nothing, Answer::Ryu),
    (Get, "/v1.0/topology/hosts", "Ryu: hosts", Asked::Nothing, Answer::Ryu),
    (Get, "/v1.0/topology/hosts/{dpid}", "Ryu: hosts of a switch", Asked::Nothing, Answer::Ryu),
    (Get, "/v1.0/conf/switches", "Ryu: the switches that have stored values", Asked::Nothing, Answer::Ryu),
    (Get, "/v1.0/conf/switches/{switch_id}", "Ryu: the keys of a switch", Asked::Nothing, Answer::Ryu),
    (Delete, "/v1.0/conf/switches/{switch_id}", "Ryu: delete the values of a switch", Asked::Nothing, Answer::Accepted),
    (Get, "/v1.0/conf/switches/{switch_id}/{key}", "Ryu: a value", Asked::Nothing, Answer::Ryu),
    (Put, "/v1.0/conf/switches/{switch_id}/{key}", "Ryu: store a value", Asked::Any(r#""tcp:127.0.0.1:6632""#), Answer::Created),
    (Delete, "/v1.0/conf/switches/{switch_id}/{key}", "Ryu: delete a value", Asked::Nothing, Answer::Nothing),
    (Get, "/firewall/module/status", "Ryu: whether the firewall is enabled", Asked::Nothing, Answer::Ryu),
    (Put, "/firewall/module/enable/{switch_id}", "Ryu: enable the firewall", Asked::Nothing, Answer::Ryu),
    (Put, "/firewall/module/disable/{switch_id}", "Ryu: disable the firewall: the switch drops everything", Asked::Nothing, Answer::Ryu),
    (Get, "/firewall/log/status", "Ryu: whether blocked packets are logged", Asked::Nothing, Answer::Ryu),
    (Put, "/firewall/log/enable/{switch_id}", "Ryu: log blocked packets", Asked::Nothing, Answer::Ryu),
    (Put, "/firewall/log/disable/{switch_id}", "Ryu: stop logging blocked packets", Asked::Nothing, Answer::Ryu),
    (Get, "/firewall/rules/{switch_id}", "Ryu: the rules for packets of any VLAN", Asked::Nothing, Answer::Ryu),
    (Post, "/firewall/rules/{switch_id}", "Ryu: add a rule", Asked::Ryu(FIREWALL_RULE), Answer::Ryu),
    (Delete, "/firewall/rules/{switch_id}", "Ryu: delete rules", Asked::Ryu(r#"{"rule_id": "all"}"#), Answer::Ryu),
    (Get, "/firewall/rules/{switch_id}/{vlan_id}", "Ryu: the rules for a VLAN", Asked::Nothing, Answer::Ryu),
    (Post, "/firewall/rules/{switch_id}/{vlan_id}", "Ryu: add a rule for a VLAN", Asked::Ryu(FIREWALL_RULE), Answer::Ryu),
    (Delete, "/firewall/rules/{switch_id}/{vlan_id}", "Ryu: delete rules for a VLAN", Asked::Ryu(r#"{"rule_id": "1"}"#), Answer::Ryu),
    (Get, "/router/{switch_id}", "Ryu: the addresses and routes for packets without a VLAN", Asked::Nothing, Answer::Ryu),
    (Post, "/router/{switch_id}", "Ryu: add an address or a route", Asked::Ryu(r#"{"address": "172.16.20.1/24"}"#), Answer::Ryu),
    (Delete, "/router/{switch_id}", "Ryu: delete addresses or routes", Asked::Ryu(r#"{"route_id": "all"}"#), Answer::Ryu),
    (Get, "/router/{switch_id}/{vlan_id}", "Ryu: the addresses and routes for a VLAN", Asked::Nothing, Answer::Ryu),
    (Post, "/router/{switch_id}/{vlan_id}", "Ryu: add an address or a route for a VLAN", Asked::Ryu(r#"{"destination": "192.168.30.0/24", "gateway": "172.16.20.2"}"#), Answer::Ryu),
    (Delete, "/router/{switch_id}/{vlan_id}", "Ryu: delete addresses or routes for a VLAN", Asked::Ryu(r#"{"address_id": "1"}"#), Answer::Ryu),
    (Get, "/qos/queue/{switch_id}", "Ryu: the queues set up by this interface: none", Asked::Nothing, Answer::Ryu),
    (Post, "/qos/queue/{switch_id}", "Ryu: set up queues, which fails", Asked::Ryu(r#"{"type": "linux-htb", "max_rate": "1000000", "queues": [{"max_rate": "500000"}]}"#), Answer::Ryu),
    (Delete, "/qos/queue/{switch_id}", "Ryu: delete queues, which fails", Asked::Nothing, Answer::Ryu),
    (Get, "/qos/queue/status/{switch_id}", "Ryu: counters of queues", Asked::Nothing, Answer::Ryu),
    (Get, "/qos/rules/{switch_id}", "Ryu: the rules for packets of any VLAN", Asked::Nothing, Answer::Ryu),
    (Post, "/qos/rules/{switch_id}", "Ryu: add a rule", Asked::Ryu(QOS_RULE), Answer::Ryu),
    (Delete, "/qos/rules/{switch_id}", "Ryu: delete rules", Asked::Ryu(r#"{"qos_id": "all"}"#), Answer::Ryu),
    (Get, "/qos/rules/{switch_id}/{vlan_id}", "Ryu: the rules for a VLAN", Asked::Nothing, Answer::Ryu),
    (Post, "/qos/rules/{switch_id}/{vlan_id}", "Ryu: add a rule for a VLAN", Asked::Ryu(QOS_RULE), Answer::Ryu),
    (Delete, "/qos/rules/{switch_id}/{vlan_id}", "Ryu: delete rules for a VLAN", Asked::Ryu(r#"{"qos_id": "1"}"#), Answer::Ryu),
    (Get, "/qos/meter/{switch_id}", "Ryu: counters of meters", Asked::Nothing, Answer::Ryu),
    (Post, "/qos/meter/{switch_id}", "Ryu: set up a meter", Asked::Ryu(r#"{"meter_id": "1", "flags": "KBPS", "bands": [{"type": "DROP", "rate": "400"}]}"#), Answer::Ryu),
    (Delete, "/qos/meter/{switch_id}", "Ryu: delete a meter", Asked::Ryu(r#"{"meter_id": "1"}"#), Answer::Ryu),
];

const QOS_RULE: &str = r#"{"match": {"nw_dst": "10.0.0.1", "nw_proto": "UDP", "tp_dst": "5002"}, "actions": {"queue": "1"}}"#;

const FIREWALL_RULE: &str = r#"{"nw_src": "10.0.0.1/32", "nw_dst": "10.0.0.2/32", "nw_proto": "ICMP", "actions": "DENY", "priority": "10"}"#;

fn document() -> utoipa::openapi::OpenApi {
    let mut document = Described::openapi();
    for (method, path, summary, asked, told) in OPERATIONS {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let item = path_item(method, path, query, summary, *asked, *told);
        let paths = &mut document.paths.paths;
        match paths.get_mut(path) {
            Some(known) => known.merge_operations(item),
            None => _ = paths.insert(path.to_owned(), item),
        }
    }
    let bearer = SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build());
    let components = document.components.get_or_insert_default();
    components.add_security_scheme("token", bearer);
    document
}

fn path_item(
    method: &HttpMethod,
    path: &str,
    query: &str,
    summary: &str,
    asked: Asked,
    told: Answer,
) -> PathItem {
    let in_path = path
        .split('{')
        .skip(1)
        .filter_map(|part| part.split_once('}'));
    let in_path = in_path.map(|(name, _)| parameter(name, ParameterIn::Path));
    let in_query = query.split(',').filter(|name| !name.is_empty());
    let in_query = in_query.map(|name| parameter(name, ParameterIn::Query));
    let (status, response) = response(told);
    let error = ResponseBuilder::new()
        .description("The reason, and the expected input")
        .content(
            "application/json",
            content(Ref::from_schema_name("ApiError")),
        );
    let operation = OperationBuilder::new()
        .summary(Some(summary))
        .parameters(Some(in_path.chain(in_query)))
        .request_body(request_body(asked))
        .response(status, response)
        .response("default", error);
    PathItemBuilder::new()
        .operation(method.clone(), operation)
        .build()
}

fn parameter(name: &str, place: ParameterIn) -> ParameterBuilder {
    let (description, pattern, example) = match name {
        "dpid" => (
            "A datapath id: decimal, 0x…, 16 hexadecimal digits, or pairs of them with colons",
            "^([0-9]{1,19}|0x[0-9a-fA-F]{1,16}|[0-9a-fA-F]{16}|[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){7})$",
            "1",
        ),
        "switch_id" => (
            "A datapath id: 16 hexadecimal digits; for commands and rules also all",
            "^([0-9a-f]{16}|all)$",
            "0000000000000001",
        ),
        "vlan_id" => (
            "A VLAN id, or all: from 2 to 4094, or 0 for none",
            "^([0-9]{1,4}|all)$",
            "2",
        ),
        "key" => ("A key", "^[0-9A-Za-z_.-]{1,64}$", "ovsdb_addr"),
        "command" => (
            "The requested change",
            "^(add|modify|modify_strict|delete|delete_strict)$",
            "add",
        ),
        "from" | "to" => (
            "A host's MAC address, or a switch and a port",
            "^[0-9a-fA-F:]+$",
            "0000000000000001:1",
        ),
        "link" => (
            "A link's position in the list of GET /api/v1/emulation, from 0",
            "^[0-9]{1,9}$",
            "0",
        ),
        _ => ("A number", "^([0-9]{1,9}|0x[0-9a-fA-F]{1,8})$", "1"),
    };
    ParameterBuilder::new()
        .name(name)
        .parameter_in(place)
        .required(Required::True)
        .description(Some(description))
        .schema(Some(text_like(pattern)))
        .example(Some(example.into()))
}

fn request_body(asked: Asked) -> Option<utoipa::openapi::request_body::RequestBody> {
    let content = match asked {
        Asked::Nothing => return None,
        Asked::Named(name) => content(Ref::from_schema_name(name)),
        Asked::Ryu(example) => content_like(SchemaType::Type(Type::Object), example),
        Asked::Any(example) => content_like(SchemaType::AnyValue, example),
    };
    let body = RequestBodyBuilder::new().content("application/json", content);
    Some(body.required(Some(Required::True)).build())
}

fn content_like(schema: SchemaType, example: &str) -> utoipa::openapi::Content {
    let example = serde_json::from_str(example).unwrap_or_default();
    ContentBuilder::new()
        .schema(Some(ObjectBuilder::new().schema_type(schema)))
        .example(Some(example))
        .build()
}

fn response(told: Answer) -> (&'static str, ResponseBuilder) {
    let done = ResponseBuilder::new().description("Done");
    let json = |schema: RefOr<Schema>| {
        let response = ResponseBuilder::new().description("The requested data");
        ("200", response.content("application/json", content(schema)))
    };
    let many = |item: RefOr<Schema>| RefOr::T(Schema::from(ArrayBuilder::new().items(item)));
    match told {
        Answer::Nothing => ("200", done),
        Answer::NoContent => ("204", done),
        Answer::Created => ("201", done),
        Answer::Accepted => ("202", done),
        Answer::One(name) => json(Ref::from_schema_name(name).into()),
        Answer::Many(name) => json(many(Ref::from_schema_name(name).into())),
        Answer::Texts => json(many(text())),
        Answer::Ryu => {
            let anything = ObjectBuilder::new().schema_type(SchemaType::AnyValue);
            json(RefOr::T(Schema::from(anything)))
        }
        Answer::Other(media) => {
            let response = ResponseBuilder::new().description("Text");
            ("200", response.content(media, content(text())))
        }
    }
}

fn text() -> RefOr<Schema> {
    let text = ObjectBuilder::new().schema_type(SchemaType::Type(Type::String));
    RefOr::T(Schema::from(text))
}

fn text_like(pattern: &str) -> RefOr<Schema> {
    let text = ObjectBuilder::new().schema_type(SchemaType::Type(Type::String));
    RefOr::T(Schema::from(text.pattern(Some(pattern))))
}

fn content(schema: impl Into<RefOr<Schema>>) -> utoipa::openapi::Content {
    ContentBuilder::new().schema(Some(schema)).build()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page's types of this interface are generated from this file, which `BLESS=1` updates.
    #[test]
    fn the_page_knows_this_description() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../web/openapi.json");
        let description = serde_json::to_string_pretty(&document()).unwrap() + "\n";
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(file, &description).unwrap();
        }
        let known = std::fs::read_to_string(file).unwrap_or_default();
        assert!(
            known == description,
            "{file} is another description: write it with BLESS=1, and type `make web`"
        );
    }

    #[test]
    fn each_operation_is_described_once_and_each_reference_resolves() {
        let document = serde_json::to_value(document()).unwrap();
        let paths = document["paths"].as_object().unwrap();
        let described: usize = paths
            .values()
            .map(|item| item.as_object().unwrap().len())
            .sum();
        assert_eq!(described, OPERATIONS.len());
        let text = document.to_string();
        for reference in text.split("#/components/schemas/").skip(1) {
            let name = reference.split('"').next().unwrap();
            assert!(
                document["components"]["schemas"][name].is_object(),
                "{name}"
            );
        }
    }
}
