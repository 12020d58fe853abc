//! Values in `ovs-ofctl`'s text form.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::str::FromStr;
use urtica::controller::Actions;
use urtica::wire::{Action, DatapathId, EntryOptions, FlowModFlags, List, Match, PortNo, text};

/// Parses a value; the error contains the value and the reason.
fn parse<T: FromStr<Err: std::fmt::Display>>(text: &str) -> PyResult<T> {
    text.parse()
        .map_err(|error| PyValueError::new_err(format!("'{text}': {error}")))
}

/// Parses a match; an empty text, or none, matches all packets.
pub(crate) fn match_of(text: Option<&str>) -> PyResult<Match<'static>> {
    match text.map(str::trim) {
        None | Some("") => Ok(Match::any()),
        Some(text) => parse(text),
    }
}

/// A datapath id, as a number or a text such as `s1`'s `0000000000000001`.
#[derive(FromPyObject)]
pub(crate) enum Id {
    Number(u64),
    Text(String),
}

impl Id {
    pub fn value(&self) -> PyResult<DatapathId> {
        match self {
            Self::Number(number) => Ok(DatapathId(*number)),
            Self::Text(text) => parse(text),
        }
    }
}

/// Actions, as a port's number or a text such as `mod_vlan_vid:5,output:2`.
pub(crate) enum ActionsOf {
    Port(PortNo),
    List(List<'static, Action<'static>>),
}

impl ActionsOf {
    pub fn read(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(port) = value.extract::<u32>() {
            return Ok(Self::Port(PortNo(port)));
        }
        let Ok(text) = value.extract::<String>() else {
            return Err(PyTypeError::new_err(
                "actions must be a port's number, such as urtica.FLOOD, or a text, such as 'output:2'",
            ));
        };
        let text::Actions(actions) = parse(&text)?;
        Ok(Self::List(actions))
    }

    /// Extracts actions; without a value there are none, so packets are dropped.
    pub fn optional(value: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        value.map_or(Ok(Self::List(List::default())), Self::read)
    }

    /// Calls `work` with the actions.
    pub fn with<R>(&self, work: impl FnOnce(Actions<'_>) -> R) -> R {
        match self {
            Self::Port(port) => work(Actions::from(*port)),
            Self::List(actions) => {
                let actions: Vec<_> = actions.iter().collect();
                work(Actions::from(&actions))
            }
        }
    }
}

/// Returns the options of an entry; with `notify` the switch reports its removal.
pub(crate) fn options(
    priority: Option<u16>,
    (idle_timeout, hard_timeout): (u16, u16),
    cookie: u64,
    notify: bool,
) -> EntryOptions {
    EntryOptions {
        flags: match notify {
            true => FlowModFlags::SEND_FLOW_REM,
            false => FlowModFlags::empty(),
        },
        priority: priority.unwrap_or(EntryOptions::PERMANENT.priority),
        idle_timeout,
        hard_timeout,
        cookie,
    }
}
