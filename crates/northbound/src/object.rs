//! Objects in bodies, and their fields. Each error names the field with its full path.

use crate::error::ApiError;
use crate::number::{Names, integer};
use serde_json::{Map, Value};

/// Returns the end of an error about an unknown name: the most similar known name, if any is similar enough.
pub(crate) fn did_you_mean(name: &str, known: &[&str]) -> String {
    let meant = likely(name, known);
    meant.map_or_else(String::new, |meant| format!("; did you mean '{meant}'?"))
}

/// Returns the field that was probably meant by an unknown one.
fn likely<'a>(key: &str, known: &[&'a str]) -> Option<&'a str> {
    /// Ryu's names of fields in OpenFlow 1.4 and later, and those used here.
    const ELSEWHERE: [(&str, &str); 1] = [("instructions", "actions")];
    let elsewhere = ELSEWHERE.iter().find(|(other, _)| *other == key);
    let meant = elsewhere.and_then(|(_, meant)| known.iter().find(|one| *one == meant));
    let nearest = || {
        let distances = known.iter().map(|one| (distance(key, one), one));
        let nearest = distances.min_by_key(|(distance, _)| *distance);
        nearest
            .filter(|(distance, _)| *distance <= 2)
            .map(|(_, one)| one)
    };
    meant.or_else(nearest).copied()
}

/// Returns the Levenshtein distance between two words, ignoring case.
fn distance(from: &str, to: &str) -> usize {
    // The distance from the part of `from` read so far to each prefix of `to`.
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (index, letter) in from.bytes().take(MAX_KEY).enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], index + 1);
        for (column, other) in to.bytes().enumerate() {
            let replaced = diagonal + usize::from(!letter.eq_ignore_ascii_case(&other));
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[to.len()]
}

/// The maximum length of a key that is compared with fields.
const MAX_KEY: usize = 64;

/// An object in a body, with its position.
pub(crate) struct Object<'a> {
    map: &'a Map<String, Value>,
    path: String,
}

impl<'a> Object<'a> {
    /// Returns the body as an object; an error if it is not one.
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

    /// Returns the path of a field in the body.
    pub fn path(&self, key: &str) -> String {
        match self.path.is_empty() {
            true => key.to_owned(),
            false => format!("{}.{key}", self.path),
        }
    }

    /// Returns the value of a field.
    pub fn get(&self, key: &str) -> Option<&'a Value> {
        self.map.get(key)
    }

    /// Refuses fields other than these, since ignoring them would hide typing errors.
    ///
    /// # Errors
    /// Names the first unknown field, and the field that was probably meant.
    pub fn only(&self, known: &[&str]) -> Result<(), ApiError> {
        self.only_in("", known)
    }

    /// Like [`Object::only`], with the object's position for the error, such as " in OUTPUT".
    pub fn only_in(&self, place: &str, known: &[&str]) -> Result<(), ApiError> {
        let unknown = |key: &&str| !known.contains(key);
        let Some(key) = self.map.keys().map(String::as_str).find(unknown) else {
            return Ok(());
        };
        let path = self.path(key);
        let all = known.join(", ");
        Err(match likely(key, known) {
            Some(meant) => {
                let error = format!(
                    "there is no field {path}{place}; did you mean '{meant}'? Expected one of: {all}"
                );
                ApiError::at(&path, error).example(self.path(meant))
            }
            None => ApiError::at(
                &path,
                format!("there is no field {path}{place}; expected one of: {all}"),
            ),
        })
    }

    /// Returns an iterator over the fields.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, &'a Value)> {
        self.map.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// Creates the error for a field that is missing or has another value than expected.
    pub fn wrong(&self, key: &str, expected: &str) -> ApiError {
        let found = self.get(key).map(Value::to_string);
        match found {
            Some(found) => ApiError::field(self.path(key), &found, expected),
            None => ApiError::missing(self.path(key), expected),
        }
    }

    /// Reads a number that fits into `T`. Returns `or` if the field is missing.
    pub fn number<T: TryFrom<u64>>(&self, key: &str, or: T) -> Result<T, ApiError> {
        match self.get(key) {
            Some(_) => self.needed_number(key),
            None => Ok(or),
        }
    }

    /// Reads a number that fits into `T`. A missing field is an error.
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

    /// Reads a number, which may be given by name. Returns `or` if the field is missing.
    pub fn named(&self, key: &str, names: &Names, or: u32) -> Result<u32, ApiError> {
        match self.get(key) {
            Some(_) => self.needed_named(key, names),
            None => Ok(or),
        }
    }

    /// Reads a number, which may be given by name. A missing field is an error.
    pub fn needed_named(&self, key: &str, names: &Names) -> Result<u32, ApiError> {
        let number = self.get(key).and_then(|value| names.number(value));
        number.ok_or_else(|| self.wrong(key, &names.expected()))
    }

    /// Reads a text. A missing field is an error.
    pub fn text(&self, key: &str, expected: &str) -> Result<&'a str, ApiError> {
        let text = self.get(key).and_then(Value::as_str);
        text.ok_or_else(|| self.wrong(key, expected))
    }

    /// Reads a text. Returns `or` if the field is missing.
    pub fn text_or(&self, key: &str, or: &'a str) -> Result<&'a str, ApiError> {
        match self.get(key) {
            Some(_) => self.text(key, "text"),
            None => Ok(or),
        }
    }

    /// Reads an object. Returns `None` if the field is missing.
    pub fn object(&self, key: &str) -> Result<Option<Object<'a>>, ApiError> {
        let value = self.get(key);
        value
            .map(|value| Self::at(value, self.path(key)))
            .transpose()
    }

    /// Reads a list of objects. Returns an empty list if the field is missing.
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn unknown_fields_are_refused_with_the_one_that_was_meant() {
        const KNOWN: [&str; 4] = ["dpid", "match", "actions", "idle_timeout"];
        for (key, meant) in [
            ("instructions", Some("actions")),
            ("action", Some("actions")),
            ("matches", Some("match")),
            ("idle_timout", Some("idle_timeout")),
            ("comment", None),
            (&"y".repeat(10_000), None),
        ] {
            let body = json!({"dpid": 1, key: 2});
            let refused = Object::body(&body).unwrap().only(&KNOWN);
            let refused = refused.unwrap_err().to_string();
            assert!(refused.contains(&format!("there is no field {key}")));
            let named = meant.map(|meant| format!("did you mean '{meant}'?"));
            assert_eq!(refused.contains("did you mean"), named.is_some());
            assert!(
                named.is_none_or(|named| refused.contains(&named)),
                "{refused}"
            );
        }
        let body = json!({"dpid": 1, "match": {}});
        assert!(Object::body(&body).unwrap().only(&KNOWN).is_ok());
    }
}
