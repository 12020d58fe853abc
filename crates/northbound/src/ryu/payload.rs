//! The data in experimenters' actions and messages: text, or base64.

use crate::error::ApiError;
use crate::object::Object;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::collections::HashMap;

/// The decoded base64 data in a body, which messages borrow while they are encoded.
pub(super) struct Payloads(HashMap<String, Vec<u8>>);

impl Payloads {
    /// Decodes the data in a body. Invalid data is refused by [`Payloads::data`].
    pub fn of(body: &Value) -> Self {
        let mut payloads = Self(HashMap::new());
        payloads.find(body);
        payloads
    }

    fn find(&mut self, value: &Value) {
        match value {
            Value::Array(list) => list.iter().for_each(|value| self.find(value)),
            Value::Object(map) => {
                if let Some(Value::String(data)) = map.get("data") {
                    if let Ok(decoded) = STANDARD.decode(data) {
                        self.0.insert(data.clone(), decoded);
                    }
                }
                map.values().for_each(|value| self.find(value));
            }
            _ => {}
        }
    }

    /// Returns the data in an object.
    ///
    /// # Errors
    /// If it does not have the form that its `data_type` requires.
    pub fn data<'a>(&'a self, object: &Object<'a>) -> Result<&'a [u8], ApiError> {
        let data = object.text_or("data", "")?;
        match object.text_or("data_type", "ascii")? {
            "ascii" => Ok(data.as_bytes()),
            "base64" => self.0.get(data).map(Vec::as_slice).ok_or_else(|| {
                object
                    .wrong("data", "base64")
                    .example("\"data\": \"AAECAw==\"")
            }),
            _ => Err(object.wrong("data_type", "\"ascii\" or \"base64\"")),
        }
    }
}
