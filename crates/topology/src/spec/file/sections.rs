//! The contents of a file, in the form that serde reads and writes.

use serde::de::{Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};
use std::fmt;
use toml::Spanned;

/// A whole file.
#[derive(Default, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sections {
    #[serde(default)]
    pub switches: Vec<Switch>,
    #[serde(default)]
    pub hosts: Vec<Host>,
    #[serde(default)]
    pub links: Vec<DirectedLink>,
}

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Switch {
    pub name: Spanned<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub datapath_id: Option<Spanned<Number>>,
}

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Host {
    pub name: Spanned<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac: Option<Spanned<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipv4: Option<Spanned<String>>,
    pub attached: Spanned<String>,
}

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DirectedLink {
    pub a: Spanned<String>,
    pub b: Spanned<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Spanned<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Spanned<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<Spanned<Loss>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<Spanned<String>>,
}

/// A datapath id, which may also be a plain number.
pub(super) struct Number(pub String);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberVisitor)
    }
}

struct NumberVisitor;

impl Visitor<'_> for NumberVisitor {
    type Value = Number;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a datapath id such as 1 or \"0000000000000001\"")
    }

    fn visit_i64<E>(self, number: i64) -> Result<Number, E> {
        Ok(Number(number.to_string()))
    }

    fn visit_str<E>(self, text: &str) -> Result<Number, E> {
        Ok(Number(text.to_owned()))
    }
}

/// A probability, which may also be a whole number.
pub(super) struct Loss(pub f64);

impl Serialize for Loss {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0)
    }
}

impl<'de> Deserialize<'de> for Loss {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LossVisitor)
    }
}

struct LossVisitor;

impl Visitor<'_> for LossVisitor {
    type Value = Loss;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number from 0 to 1")
    }

    fn visit_f64<E>(self, loss: f64) -> Result<Loss, E> {
        Ok(Loss(loss))
    }

    fn visit_i64<E>(self, loss: i64) -> Result<Loss, E> {
        Ok(Loss(loss as f64))
    }
}
