//! `/v1.0/conf/switches/…`: what Ryu's `rest_conf_switch` answers. It keeps values by switch and key, and hands them back.

use crate::app::App;
use crate::error::ApiError;
use crate::params::Params;
use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use parking_lot::Mutex;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use urtica_wire::DatapathId;

/// How much is kept, in bytes: values as JSON, their keys, and [`OVERHEAD`] for each and for each switch.
const MAX_BYTES: usize = 4 << 20;

/// What a value or a switch takes beside what was sent.
const OVERHEAD: usize = 128;

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

/// Values by switch and key. A switch need not be connected.
#[derive(Default)]
pub(crate) struct ConfSwitches(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    switches: BTreeMap<DatapathId, BTreeMap<String, Value>>,
    bytes: usize,
}

fn size(key: &str, value: &Value) -> usize {
    OVERHEAD + key.len() + value.to_string().len()
}

impl ConfSwitches {
    fn switches(&self) -> Vec<DatapathId> {
        self.0.lock().switches.keys().copied().collect()
    }

    fn keys(&self, id: DatapathId) -> Option<Vec<String>> {
        let kept = self.0.lock();
        let values = kept.switches.get(&id)?;
        Some(values.keys().cloned().collect())
    }

    fn get(&self, id: DatapathId, key: &str) -> Option<Value> {
        self.0.lock().switches.get(&id)?.get(key).cloned()
    }

    fn set(&self, id: DatapathId, key: &str, value: Value) -> Result<(), ApiError> {
        let mut kept = self.0.lock();
        let values = kept.switches.get(&id);
        let before = values.and_then(|values| values.get(key));
        let freed = before.map_or(0, |before| size(key, before));
        let switch = if values.is_none() { OVERHEAD } else { 0 };
        let bytes = kept.bytes - freed + size(key, &value) + switch;
        if bytes > MAX_BYTES {
            let error = format!(
                "what is kept for switches would have {bytes} bytes: expected at most {MAX_BYTES}, so delete some first"
            );
            return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, error));
        }
        kept.bytes = bytes;
        let values = kept.switches.entry(id).or_default();
        values.insert(key.to_owned(), value);
        Ok(())
    }

    fn delete(&self, id: DatapathId, key: &str) -> Option<()> {
        let mut kept = self.0.lock();
        let value = kept.switches.get_mut(&id)?.remove(key)?;
        kept.bytes -= size(key, &value);
        Some(())
    }

    fn delete_switch(&self, id: DatapathId) -> Option<()> {
        let mut kept = self.0.lock();
        let values = kept.switches.remove(&id)?;
        let freed: usize = values.iter().map(|(key, value)| size(key, value)).sum();
        kept.bytes -= freed + OVERHEAD;
        Some(())
    }
}

fn no_switch(id: DatapathId) -> ApiError {
    let error =
        format!("nothing is kept for switch {id}: expected one that GET /v1.0/conf/switches lists");
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_has_a_bound_and_what_is_deleted_makes_room() {
        let conf = ConfSwitches::default();
        let (one, two) = (DatapathId(1), DatapathId(2));
        let half = Value::from("x".repeat(MAX_BYTES / 2 - 2 * OVERHEAD - 10));
        conf.set(one, "key", half.clone()).unwrap();
        // In the place of itself it needs no room.
        conf.set(one, "key", half.clone()).unwrap();
        conf.set(two, "key", half.clone()).unwrap();
        let refused = conf.set(two, "other", half.clone()).unwrap_err();
        assert_eq!(refused.status, StatusCode::PAYLOAD_TOO_LARGE);
        assert_eq!(conf.get(two, "other"), None);
        conf.delete(one, "key").unwrap();
        conf.set(two, "other", half).unwrap();
        conf.delete_switch(one).unwrap();
        conf.delete_switch(two).unwrap();
        assert_eq!(conf.0.lock().bytes, 0);
    }
}
