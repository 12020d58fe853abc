//! The store of Ryu's `rest_conf_switch`: values by switch and key.

use crate::error::ApiError;
use axum::http::StatusCode;
use parking_lot::Mutex;
use serde_json::Value;
use std::collections::BTreeMap;
use urtica_wire::DatapathId;

/// The maximum number of stored bytes: values as JSON, their keys, and [`OVERHEAD`] for each value and each switch.
const MAX_BYTES: usize = 4 << 20;

/// The number of bytes that a value or a switch counts in addition to those received.
const OVERHEAD: usize = 128;

/// Values by switch and key. A switch need not be connected.
#[derive(Default)]
pub(crate) struct ConfSwitches(Mutex<Settings>);

#[derive(Default)]
struct Settings {
    switches: BTreeMap<DatapathId, BTreeMap<String, Value>>,
    bytes: usize,
}

fn size(key: &str, value: &Value) -> usize {
    OVERHEAD + key.len() + value.to_string().len()
}

impl ConfSwitches {
    /// Returns the switches that have values.
    pub fn switches(&self) -> Vec<DatapathId> {
        self.0.lock().switches.keys().copied().collect()
    }

    /// Returns the keys of a switch; `None` if it has no values.
    pub fn keys(&self, id: DatapathId) -> Option<Vec<String>> {
        let kept = self.0.lock();
        let values = kept.switches.get(&id)?;
        Some(values.keys().cloned().collect())
    }

    /// Returns a value.
    pub fn get(&self, id: DatapathId, key: &str) -> Option<Value> {
        self.0.lock().switches.get(&id)?.get(key).cloned()
    }

    /// Stores a value.
    ///
    /// # Errors
    /// If the storage is full.
    pub fn set(&self, id: DatapathId, key: &str, value: Value) -> Result<(), ApiError> {
        let mut kept = self.0.lock();
        let values = kept.switches.get(&id);
        let before = values.and_then(|values| values.get(key));
        let freed = before.map_or(0, |before| size(key, before));
        let switch = if values.is_none() { OVERHEAD } else { 0 };
        let bytes = kept.bytes - freed + size(key, &value) + switch;
        if bytes > MAX_BYTES {
            let error = format!(
                "the values stored for switches would need {bytes} bytes: expected at most {MAX_BYTES}, so delete some first"
            );
            return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, error));
        }
        kept.bytes = bytes;
        let values = kept.switches.entry(id).or_default();
        values.insert(key.to_owned(), value);
        Ok(())
    }

    /// Deletes a value; `None` if there is no such value.
    pub fn delete(&self, id: DatapathId, key: &str) -> Option<()> {
        let mut kept = self.0.lock();
        let value = kept.switches.get_mut(&id)?.remove(key)?;
        kept.bytes -= size(key, &value);
        Some(())
    }

    /// Deletes the values of a switch; `None` if it has no values.
    pub fn delete_switch(&self, id: DatapathId) -> Option<()> {
        let mut kept = self.0.lock();
        let values = kept.switches.remove(&id)?;
        let freed: usize = values.iter().map(|(key, value)| size(key, value)).sum();
        kept.bytes -= freed + OVERHEAD;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storage_is_bounded_and_deletions_free_space() {
        let conf = ConfSwitches::default();
        let (one, two) = (DatapathId(1), DatapathId(2));
        let half = Value::from("x".repeat(MAX_BYTES / 2 - 2 * OVERHEAD - 10));
        conf.set(one, "key", half.clone()).unwrap();
        // Replacing a value by itself needs no space.
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
