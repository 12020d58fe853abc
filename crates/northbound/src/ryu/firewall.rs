//! `/firewall/…`: the paths of Ryu's `rest_firewall`.

use super::rule::{self, result, with_vlan};
use crate::app::App;
use crate::error::ApiError;
use crate::object::Object;
use crate::params::Params;
use axum::body::Body;
use axum::extract::State;
use axum::routing::{get, put};
use axum::{Json, Router};
use serde_json::{Value, json};
use std::sync::Arc;
use urtica_apps::{RestFirewall, RyuRule, Verdict};
use urtica_wire::DatapathId;

type Answer = Result<Json<Vec<Value>>, ApiError>;

pub(crate) fn routes() -> Router<Arc<App>> {
    let rules = get(list_rules).post(add_rule).delete(delete_rules);
    Router::new()
        .route("/firewall/module/status", get(status))
        .route("/firewall/module/enable/{switch_id}", put(enable))
        .route("/firewall/module/disable/{switch_id}", put(disable))
        .route("/firewall/log/status", get(log_status))
        .route("/firewall/log/enable/{switch_id}", put(enable_log))
        .route("/firewall/log/disable/{switch_id}", put(disable_log))
        .route("/firewall/rules/{switch_id}", rules.clone())
        .route("/firewall/rules/{switch_id}/{vlan_id}", rules)
}

/// Returns the switches in a path.
fn switches(app: &App, params: &Params) -> Result<Vec<DatapathId>, ApiError> {
    let there = app.ryu.firewall.switches();
    rule::switches(params, "rest_firewall", there)
}

fn all_switches(app: &App) -> Result<Vec<DatapathId>, ApiError> {
    let there = app.ryu.firewall.switches();
    rule::some_switches("rest_firewall", there)
}

fn word(is_enabled: bool) -> &'static str {
    if is_enabled { "enable" } else { "disable" }
}

async fn status(State(app): State<Arc<App>>) -> Answer {
    let firewall = &app.ryu.firewall;
    let row = |id: DatapathId| {
        let status = word(firewall.status(id)?.is_enabled);
        Ok(json!({ "switch_id": id.to_string(), "status": status }))
    };
    all_switches(&app)?
        .into_iter()
        .map(row)
        .collect::<Result<_, _>>()
        .map(Json)
}

async fn log_status(State(app): State<Arc<App>>) -> Answer {
    let firewall = &app.ryu.firewall;
    let row = |id: DatapathId| {
        let status = word(firewall.status(id)?.logs);
        Ok(json!({ "switch_id": id.to_string(), "log_status": status }))
    };
    all_switches(&app)?
        .into_iter()
        .map(row)
        .collect::<Result<_, _>>()
        .map(Json)
}

async fn enable(State(app): State<Arc<App>>, params: Params) -> Answer {
    set_enabled(&app, &params, true).await
}

async fn disable(State(app): State<Arc<App>>, params: Params) -> Answer {
    set_enabled(&app, &params, false).await
}

async fn set_enabled(app: &App, params: &Params, is_enabled: bool) -> Answer {
    let mut rows = Vec::new();
    let details = match is_enabled {
        true => "firewall running.",
        false => "firewall stopped.",
    };
    for id in switches(app, params)? {
        app.ryu.firewall.enable(id, is_enabled).await?;
        rows.push(rule::row(id, result(true, details)));
    }
    Ok(Json(rows))
}

async fn enable_log(State(app): State<Arc<App>>, params: Params) -> Answer {
    set_log(&app, &params, true).await
}

async fn disable_log(State(app): State<Arc<App>>, params: Params) -> Answer {
    set_log(&app, &params, false).await
}

async fn set_log(app: &App, params: &Params, logs: bool) -> Answer {
    let mut rows = Vec::new();
    let details = match logs {
        true => "Log collection started.",
        false => "Log collection stopped.",
    };
    for id in switches(app, params)? {
        app.ryu.firewall.log(id, logs).await?;
        rows.push(rule::row(id, result(true, details)));
    }
    Ok(Json(rows))
}

async fn list_rules(State(app): State<Arc<App>>, params: Params) -> Answer {
    let wanted = rule::vlan_id(&params)?;
    let row = |id: DatapathId| {
        let rules = app.ryu.firewall.rules(id)?;
        Ok(
            json!({ "switch_id": id.to_string(), "access_control_list": rule::by_vlan(&rules, wanted, "rules", print_rule) }),
        )
    };
    let rows = switches(&app, &params)?.into_iter().map(row);
    rows.collect::<Result<_, _>>().map(Json)
}

fn print_rule(rule: &RyuRule<Verdict>) -> Value {
    let mut printed = rule::print_match(&rule.match_);
    printed.insert("rule_id".to_owned(), rule.id.into());
    printed.insert("priority".to_owned(), rule.priority.into());
    let action = match rule.action {
        Verdict::Allow => "ALLOW",
        Verdict::Deny => "DENY",
    };
    printed.insert("actions".to_owned(), action.into());
    printed.into()
}

async fn add_rule(State(app): State<Arc<App>>, params: Params, body: Body) -> Answer {
    let firewall = &app.ryu.firewall;
    let (ids, vlan_id) = (switches(&app, &params)?, rule::vlan_id(&params)?);
    let value = app.value(body).await?;
    let body = Object::body(&value)?;
    rule::check_known(&body, &["priority", "actions"])?;
    let priority = rule::priority(
        &body,
        RestFirewall::MIN_PRIORITY,
        RestFirewall::MAX_PRIORITY,
    )?;
    let verdict = verdict(&body)?;
    let mut rows = Vec::new();
    for id in ids {
        let vlan_ids = match vlan_id {
            Some(vlan_id) => vec![vlan_id],
            None => firewall.vlans(id)?,
        };
        let mut results = Vec::new();
        for vlan_id in vlan_ids {
            let match_ = rule::parse_match(&body, vlan_id)?;
            let added = firewall.add_rule(id, vlan_id, priority, match_, verdict);
            let details = format!("Rule added. : rule_id={}", added.await?);
            results.push(Value::from(with_vlan(result(true, details), vlan_id)));
        }
        rows.push(rule::row(id, results));
    }
    Ok(Json(rows))
}

fn verdict(body: &Object) -> Result<Verdict, ApiError> {
    match body.text_or("actions", "ALLOW")? {
        "ALLOW" => Ok(Verdict::Allow),
        "DENY" => Ok(Verdict::Deny),
        _ => Err(body
            .wrong("actions", "ALLOW or DENY")
            .example("\"actions\": \"DENY\"")),
    }
}

async fn delete_rules(State(app): State<Arc<App>>, params: Params, body: Body) -> Answer {
    let (ids, vlan_id) = (switches(&app, &params)?, rule::vlan_id(&params)?);
    let value = app.value(body).await?;
    let body = Object::body(&value)?;
    let rule_id = rule::rule_id(&body, "rule_id")?;
    let mut rows = Vec::new();
    for id in ids {
        let firewall = &app.ryu.firewall;
        let deleted = firewall.delete_rules(id, vlan_id, rule_id).await?;
        let numbers = deleted.iter().map(|rule| (rule.vlan_id, rule.id));
        rows.push(rule::row(
            id,
            rule::deleted(
                numbers,
                rule_id,
                ["Rule deleted.", "Rule is not exist."],
                "ruleID",
            ),
        ));
    }
    Ok(Json(rows))
}
