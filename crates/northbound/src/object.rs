//! Objects of a body, and what stands in them: each error names the field by its whole path.

use crate::error::ApiError;
use crate::number::{Names, integer};
use serde_json::{Map, Value};

/// An object in a body, and where it is.
pub(crate) struct Object<'a> {
    map: &'a Map<String, Value>,
    path: String,
}

impl<'a> Object<'a> {
    /// The body itself.
    pub fn body(value: &'a Value) -> Result<Self, ApiError> {
        Self::at(value, String::new())
    }

    fn at(value: &'a Value, path: String) -> Result<Self, ApiError> {
        match value {
            Value::Object(map) => Ok(Self { map, path }),
            other => {
                let name = if path.is_empty() { "the body" } else { &path };
                Err(ApiError::field(name, &other.to_string(), "an object").example("{\"dpid\": 1}"))
            }
        }
    }

    /// The whole name of a field.
    pub fn path(&self, key: &str) -> String {
        match self.path.is_empty() {
            true => key.to_owned(),
            false => format!("{}.{key}", self.path),
        }
    }

    /// What a field says.
    pub fn get(&self, key: &str) -> Option<&'a Value> {
        self.map.get(key)
    }

    /// All fields.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, &'a Value)> {
        self.map.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// The error that a field is not what was expected.
    pub fn wrong(&self, key: &str, expected: &str) -> ApiError {
        let found = self.get(key).map(Value::to_string);
        match found {
            Some(found) => ApiError::field(self.path(key), &found, expected),
            None => ApiError::missing(self.path(key), expected),
        }
    }

    /// A number that fits into `T`.
    pub fn number<T: TryFrom<u64>>(&self, key: &str, or: T) -> Result<T, ApiError> {
        match self.get(key) {
            Some(_) => self.needed_number(key),
            None => Ok(or),
        }
    }

    /// The same for a field that has to be there.
    pub fn needed_number<T: TryFrom<u64>>(&self, key: &str) -> Result<T, ApiError> {
        let number = self.get(key).and_then(integer);
        number
            .and_then(|number| number.try_into().ok())
            .ok_or_else(|| {
                let most = match size_of::<T>() {
                    1 => "255",
                    2 => "65535",
                    4 => "4294967295",
                    _ => "18446744073709551615",
                };
                let expected = format!("a number from 0 to {most}");
                self.wrong(key, &expected).example(format!("\"{key}\": 1"))
            })
    }

    /// A number that may have a name.
    pub fn named(&self, key: &str, names: &Names, or: u32) -> Result<u32, ApiError> {
        match self.get(key) {
            Some(_) => self.needed_named(key, names),
            None => Ok(or),
        }
    }

    /// The same for a field that has to be there.
    pub fn needed_named(&self, key: &str, names: &Names) -> Result<u32, ApiError> {
        let number = self.get(key).and_then(|value| names.number(value));
        number.ok_or_else(|| self.wrong(key, &names.expected()))
    }

    /// A text that has to be there.
    pub fn text(&self, key: &str, expected: &str) -> Result<&'a str, ApiError> {
        let text = self.get(key).and_then(Value::as_str);
        text.ok_or_else(|| self.wrong(key, expected))
    }

    /// A text that may be left out.
    pub fn text_or(&self, key: &str, or: &'a str) -> Result<&'a str, ApiError> {
        match self.get(key) {
            Some(_) => self.text(key, "text"),
            None => Ok(or),
        }
    }

    /// An object; an empty one where the field is left out.
    pub fn object(&self, key: &str) -> Result<Option<Object<'a>>, ApiError> {
        let value = self.get(key);
        value
            .map(|value| Self::at(value, self.path(key)))
            .transpose()
    }

    /// A list of objects; none where the field is left out.
    pub fn objects(&self, key: &str) -> Result<Vec<Object<'a>>, ApiError> {
        let list = match self.get(key) {
            None => return Ok(Vec::new()),
            Some(Value::Array(list)) => list,
            Some(_) => return Err(self.wrong(key, "a list of objects")),
        };
        let object = |(index, value)| Self::at(value, format!("{}[{index}]", self.path(key)));
        list.iter().enumerate().map(object).collect()
    }
}
