//! `/v1.0/conf/switches/…`: the paths of Ryu's `rest_conf_switch`, which stores values by switch and key.

use crate::app::App;
use crate::error::ApiError;
use crate::params::Params;
use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use serde_json::Value;
use std::sync::Arc;
use urtica_wire::DatapathId;

pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/v1.0/conf/switches", get(list_switches))
        .route(
            "/v1.0/conf/switches/{switch_id}",
            get(list_keys).delete(delete_switch),
        )
        .route(
            "/v1.0/conf/switches/{switch_id}/{key}",
            get(get_key).put(set_key).delete(delete_key),
        )
}

fn no_switch(id: DatapathId) -> ApiError {
    let error = format!(
        "no values are stored for switch {id}: expected one that GET /v1.0/conf/switches lists"
    );
    ApiError::new(StatusCode::NOT_FOUND, error)
}

fn no_key(id: DatapathId, key: &str) -> ApiError {
    let expected = format!("one that GET /v1.0/conf/switches/{id} lists");
    ApiError::field("the key", key, &expected).with_status(StatusCode::NOT_FOUND)
}

fn key(params: &Params) -> &str {
    params.get("key").unwrap_or_default()
}

async fn list_switches(State(app): State<Arc<App>>) -> Json<Vec<String>> {
    let ids = app.conf.switches().into_iter();
    Json(ids.map(|id| id.to_string()).collect())
}

async fn list_keys(
    State(app): State<Arc<App>>,
    params: Params,
) -> Result<Json<Vec<String>>, ApiError> {
    let id = params.ryu_switch()?;
    app.conf.keys(id).map(Json).ok_or_else(|| no_switch(id))
}

async fn delete_switch(
    State(app): State<Arc<App>>,
    params: Params,
) -> Result<StatusCode, ApiError> {
    let id = params.ryu_switch()?;
    let deleted = app.conf.delete_switch(id);
    deleted.map_or_else(|| Err(no_switch(id)), |()| Ok(StatusCode::ACCEPTED))
}

async fn get_key(State(app): State<Arc<App>>, params: Params) -> Result<Json<Value>, ApiError> {
    let (id, key) = (params.ryu_switch()?, key(&params));
    app.conf
        .get(id, key)
        .map(Json)
        .ok_or_else(|| no_key(id, key))
}

async fn set_key(
    State(app): State<Arc<App>>,
    params: Params,
    body: Body,
) -> Result<StatusCode, ApiError> {
    let (id, key) = (params.ryu_switch()?, key(&params));
    let value = app.value(body).await?;
    app.conf.set(id, key, value)?;
    Ok(StatusCode::CREATED)
}

async fn delete_key(State(app): State<Arc<App>>, params: Params) -> Result<StatusCode, ApiError> {
    let (id, key) = (params.ryu_switch()?, key(&params));
    let deleted = app.conf.delete(id, key);
    deleted.map_or_else(|| Err(no_key(id, key)), |()| Ok(StatusCode::OK))
}
