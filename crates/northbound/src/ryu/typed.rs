//! Objects whose field `type` determines their other fields: actions, instructions, meter bands.

use crate::error::ApiError;
use crate::object::{Object, did_you_mean};

/// A type: its name, its fields other than `type`, and its reader.
pub(super) type Type<P> = (&'static str, &'static [&'static str], P);

/// Returns the reader of an object, which must have one of these types; `expected` and `example` are for the error.
///
/// # Errors
/// If the object has another type, or a field that its type lacks. Ignoring the field would silently use a default.
pub(super) fn reader_of<P: Copy>(
    object: &Object,
    types: &[Type<P>],
    expected: &str,
    example: &str,
) -> Result<P, ApiError> {
    let name = object.text("type", expected);
    let name = name.map_err(|error| error.example(example))?;
    let Some((name, fields, read)) = types.iter().find(|(known, ..)| *known == name) else {
        let names: Vec<_> = types.iter().map(|(name, ..)| *name).collect();
        let expected = format!("{expected}{}", did_you_mean(name, &names));
        return Err(object.wrong("type", &expected).example(example));
    };
    let known: Vec<_> = std::iter::once("type")
        .chain(fields.iter().copied())
        .collect();
    object.only_in(&format!(" in {name}"), &known)?;
    Ok(*read)
}

#[cfg(test)]
mod tests {
    use super::super::payload::Payloads;
    use super::super::{action13, of10, write};
    use super::*;
    use serde_json::{Value, json};
    use std::collections::BTreeSet;

    /// The types of the objects in one place, and their reader.
    struct TypedObjects {
        types: Vec<(&'static str, &'static [&'static str])>,
        read: fn(&Value) -> Result<(), ApiError>,
    }

    fn names<P>(types: &[Type<P>]) -> Vec<(&'static str, &'static [&'static str])> {
        let without_reader = |(name, fields, _): &Type<P>| (*name, *fields);
        types.iter().map(without_reader).collect()
    }

    fn places() -> [TypedObjects; 4] {
        let read13 = |value: &Value| {
            let payloads = Payloads::of(value);
            action13::parse_instructions(&[Object::body(value)?], &payloads).map(drop)
        };
        [
            TypedObjects {
                types: names(of10::ACTIONS),
                read: |value| of10::parse_instructions(&[Object::body(value)?]).map(drop),
            },
            TypedObjects {
                types: names(action13::ACTIONS),
                read: read13,
            },
            TypedObjects {
                types: names(action13::INSTRUCTIONS),
                read: read13,
            },
            TypedObjects {
                types: names(write::BANDS),
                read: |value| write::meter_band(&Object::body(value)?).map(drop),
            },
        ]
    }

    /// Returns a value that is valid for any field with this name.
    fn value(field: &str) -> Value {
        match field {
            "dl_src" | "dl_dst" => json!("02:00:00:00:00:01"),
            "nw_src" | "nw_dst" => json!("10.0.0.1"),
            "field" => json!("eth_dst"),
            "value" => json!("02:00:00:00:00:02"),
            "data" => json!("text"),
            "data_type" => json!("ascii"),
            "actions" => json!([]),
            _ => json!(1),
        }
    }

    fn object(name: &str, fields: &[&str]) -> Value {
        let mut object = json!({"type": name});
        for field in fields {
            object[field] = value(field);
        }
        object
    }

    #[test]
    fn each_type_has_its_fields_and_no_others() {
        for TypedObjects { types, read } in places() {
            let all: BTreeSet<_> = types.iter().flat_map(|(_, fields)| *fields).collect();
            for (name, fields) in &types {
                let whole = object(name, fields);
                assert!(read(&whole).is_ok(), "{whole}: {:?}", read(&whole));
                for other in all.iter().filter(|other| !fields.contains(other)) {
                    let mut with_other = whole.clone();
                    with_other[**other] = value(other);
                    let error = read(&with_other).unwrap_err().to_string();
                    let expected = format!("there is no field {other} in {name}");
                    assert!(error.starts_with(&expected), "{with_other}: {error}");
                }
            }
        }
    }

    #[test]
    fn a_misspelt_field_or_type_is_refused_with_the_one_that_was_meant() {
        for TypedObjects { types, read } in places() {
            for (name, fields) in &types {
                for field in *fields {
                    let misspelt = format!("{field}x");
                    let error = read(&object(name, &[&misspelt])).unwrap_err().to_string();
                    let meant = format!("did you mean '{field}'?");
                    assert!(error.contains(&meant), "{name}: {error}");
                }
                for misspelt in [name.to_lowercase(), format!("{name}X")] {
                    let error = read(&object(&misspelt, fields)).unwrap_err().to_string();
                    let meant = format!("did you mean '{name}'?");
                    assert!(error.contains(&meant), "{misspelt}: {error}");
                }
            }
        }
    }
}
