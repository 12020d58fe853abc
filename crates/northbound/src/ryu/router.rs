//! `/router/…`: the paths of Ryu's `rest_router`.
//!
//! The response to a refused request contains `result` and `details`, as in Ryu, and the fields of this interface's errors.

use super::rule::{self, result, with_vlan};
use crate::app::App;
use crate::error::ApiError;
use crate::number::integer;
use crate::object::Object;
use crate::params::Params;
use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Map, Value, json};
use std::net::Ipv4Addr;
use std::sync::Arc;
use urtica_apps::{Deleted, RestRouter, RouterView, RyuError};
use urtica_wire::{DatapathId, Ipv4Prefix};

type Answer = Result<Json<Vec<Value>>, Refused>;

pub(crate) fn routes() -> Router<Arc<App>> {
    let paths = get(list).post(add).delete(delete);
    Router::new()
        .route("/router/{switch_id}", paths.clone())
        .route("/router/{switch_id}/{vlan_id}", paths)
}

/// An error in both forms.
pub(super) struct Refused(ApiError);

impl<E: Into<ApiError>> From<E> for Refused {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let status = self.0.status;
        let details = self.0.to_string();
        // This only fails for maps whose keys are not strings.
        let mut told = serde_json::to_value(&self.0).unwrap_or_default();
        told["result"] = "failure".into();
        told["details"] = details.into();
        (status, Json(told)).into_response()
    }
}

/// Returns the switches in a path. Here an unknown switch is answered with status 404.
fn switches(app: &App, params: &Params) -> Result<Vec<DatapathId>, ApiError> {
    let there = app.ryu.router.switches();
    let is_named = params.get("switch_id") == Some(rule::ALL) || params.ryu_switch().is_ok();
    let named = rule::switches(params, "rest_router", there);
    named.map_err(|error| match is_named {
        true => error.with_status(StatusCode::NOT_FOUND),
        false => error,
    })
}

/// Returns the VLANs in a path; for all VLANs, those for which the switch has routers.
fn vlan_ids(
    router: &RestRouter,
    id: DatapathId,
    wanted: Option<u16>,
) -> Result<Vec<u16>, RyuError> {
    match wanted {
        Some(vlan_id) => Ok(vec![vlan_id]),
        None => router.vlans(id),
    }
}

async fn list(State(app): State<Arc<App>>, params: Params) -> Answer {
    let router = &app.ryu.router;
    let ids = switches(&app, &params)?;
    let wanted = rule::vlan_id(&params)?;
    let mut rows = Vec::new();
    for id in ids {
        let mut networks = Vec::new();
        for vlan_id in vlan_ids(router, id, wanted)? {
            let view = router.view(id, vlan_id)?;
            let printed = view.map_or_else(Map::new, |view| print(&view));
            networks.push(Value::from(with_vlan(printed, vlan_id)));
        }
        rows.push(json!({ "switch_id": id.to_string(), "internal_network": networks }));
    }
    Ok(Json(rows))
}

/// Prints addresses, and the routes with known gateways, as Ryu does.
fn print(view: &RouterView) -> Map<String, Value> {
    let addresses = view.addresses.iter().map(|it| {
        let address = format!("{}/{}", it.address, it.subnet.length());
        json!({ "address_id": it.id, "address": address })
    });
    let routes = view.routes.iter().filter(|route| route.is_resolved);
    let routes = routes.map(|route| {
        let destination = route.destination.to_string();
        json!({ "route_id": route.id, "destination": destination, "gateway": route.gateway })
    });
    let lists = [
        ("address", addresses.collect::<Vec<_>>()),
        ("route", routes.collect()),
    ];
    let lists = lists.into_iter().filter(|(_, list)| !list.is_empty());
    lists
        .map(|(name, list)| (name.to_owned(), list.into()))
        .collect()
}

/// The addition that a body requests.
#[derive(Clone, Copy)]
enum Added {
    Address(Ipv4Addr, Ipv4Prefix),
    Route(Ipv4Prefix, Ipv4Addr),
}

impl Added {
    fn parse(body: &Object) -> Result<Self, ApiError> {
        let is_part = |name: &str| ["address", "destination", "gateway"].contains(&name);
        let expected = "address, or gateway and maybe destination";
        if let Some((name, _)) = body.iter().find(|(name, _)| !is_part(name)) {
            return Err(ApiError::field(name, "not part of a router", expected));
        }
        if body.get("address").is_some() {
            let (address, subnet) = parse_address(body, "address")?;
            return Ok(Self::Address(address, subnet));
        }
        let expected = "the IPv4 address of a router, unless address is there";
        let gateway = body.text("gateway", expected)?.parse();
        let gateway = gateway.map_err(|_| {
            body.wrong("gateway", expected)
                .example("\"gateway\": \"172.16.30.1\"")
        })?;
        let destination = match body.get("destination") {
            Some(_) => parse_address(body, "destination")?.1,
            None => prefix_of(Ipv4Addr::UNSPECIFIED, 0)
                .ok_or_else(|| body.wrong("destination", "0.0.0.0/0"))?,
        };
        Ok(Self::Route(destination, gateway))
    }
}

fn prefix_of(address: Ipv4Addr, length: u8) -> Option<Ipv4Prefix> {
    let mask = u32::MAX
        .checked_shl(32_u32.checked_sub(length.into())?)
        .unwrap_or(0);
    Ipv4Prefix::new(Ipv4Addr::from_bits(address.to_bits() & mask), length).ok()
}

/// Reads an address and its subnet, which must have a prefix length.
fn parse_address(body: &Object, key: &str) -> Result<(Ipv4Addr, Ipv4Prefix), ApiError> {
    const EXPECTED: &str = "an IPv4 address with the length of its prefix";
    let parse = |text: &str| {
        let (address, length) = text.split_once('/')?;
        let address = address.parse().ok()?;
        // Rust's numbers may have a sign.
        let length = length.parse().ok().filter(|_| !length.starts_with('+'))?;
        Some((address, prefix_of(address, length)?))
    };
    let parsed = parse(body.text(key, EXPECTED)?);
    let wrong = || {
        let example = format!("\"{key}\": \"172.16.20.1/24\"");
        body.wrong(key, EXPECTED).example(example)
    };
    parsed.ok_or_else(wrong)
}

async fn add(State(app): State<Arc<App>>, params: Params, body: Body) -> Answer {
    let router = &app.ryu.router;
    let ids = switches(&app, &params)?;
    let wanted = rule::vlan_id(&params)?;
    let value = app.value(body).await?;
    let added = Added::parse(&Object::body(&value)?)?;
    let mut rows = Vec::new();
    for id in ids {
        let mut results = Vec::new();
        for vlan_id in vlan_ids(router, id, wanted)? {
            let result = add_one(router, id, vlan_id, added).await?;
            results.push(Value::from(with_vlan(result, vlan_id)));
        }
        rows.push(rule::row(id, results));
    }
    Ok(Json(rows))
}

async fn add_one(
    router: &RestRouter,
    id: DatapathId,
    vlan_id: u16,
    added: Added,
) -> Result<Map<String, Value>, RyuError> {
    let (what, done) = match added {
        Added::Address(address, subnet) => {
            let done = router.add_address(id, vlan_id, address, subnet).await;
            ("address", done)
        }
        Added::Route(destination, gateway) => {
            let done = router.add_route(id, vlan_id, destination, gateway).await;
            ("route", done)
        }
    };
    match done {
        Ok(number) => Ok(result(true, format!("Add {what} [{what}_id={number}]"))),
        Err(RyuError::Router(error)) => Ok(result(false, error.to_string())),
        Err(error) => Err(error),
    }
}

/// The entries that a body deletes: one by number, or all of them.
#[derive(Clone, Copy)]
enum Unwanted {
    Routes(Option<u16>),
    Addresses(Option<u16>),
}

impl Unwanted {
    fn parse(body: &Object) -> Result<Self, ApiError> {
        match body.get("route_id") {
            Some(_) => number(body, "route_id").map(Self::Routes),
            None => number(body, "address_id").map(Self::Addresses),
        }
    }
}

fn number(body: &Object, key: &str) -> Result<Option<u16>, ApiError> {
    if body.get(key).and_then(Value::as_str) == Some(rule::ALL) {
        return Ok(None);
    }
    let number = body.get(key).and_then(integer);
    // No entry has a number that does not fit.
    let number = number.map(|number| number.try_into().unwrap_or(0));
    number.map(Some).ok_or_else(|| {
        body.wrong(key, "a number, or all; or route_id instead")
            .example(format!("\"{key}\": \"1\""))
    })
}

async fn delete(State(app): State<Arc<App>>, params: Params, body: Body) -> Answer {
    let router = &app.ryu.router;
    let ids = switches(&app, &params)?;
    let wanted = rule::vlan_id(&params)?;
    let value = app.value(body).await?;
    let unwanted = Unwanted::parse(&Object::body(&value)?)?;
    let mut rows = Vec::new();
    for id in ids {
        let mut results = Vec::new();
        for vlan_id in vlan_ids(router, id, wanted)? {
            let (what, deleted) = match unwanted {
                Unwanted::Routes(route) => {
                    ("route", router.delete_routes(id, vlan_id, route).await?)
                }
                Unwanted::Addresses(address) => (
                    "address",
                    router.delete_addresses(id, vlan_id, address).await?,
                ),
            };
            let told = tell_deleted(what, &deleted);
            results.extend(told.map(|told| Value::from(with_vlan(told, vlan_id))));
        }
        if results.is_empty() {
            results.push(result(false, "Data is nothing.").into());
        }
        rows.push(rule::row(id, results));
    }
    Ok(Json(rows))
}

/// Returns Ryu's text about a deletion; `None` if there was nothing to delete.
fn tell_deleted(what: &str, deleted: &Deleted) -> Option<Map<String, Value>> {
    let list = |ids: &[u16]| {
        let ids: Vec<_> = ids.iter().map(u16::to_string).collect();
        ids.join(",")
    };
    let gone = (!deleted.ids.is_empty())
        .then(|| format!("Delete {what} [{what}_id={}]", list(&deleted.ids)));
    let skipped = (!deleted.skipped.is_empty()).then(|| {
        let skipped = list(&deleted.skipped);
        format!("Skip delete (related route exist) [{what}_id={skipped}]")
    });
    let is_done = gone.is_some();
    let details: Vec<_> = [gone, skipped].into_iter().flatten().collect();
    (!details.is_empty()).then(|| result(is_done, details.join(", ")))
}
