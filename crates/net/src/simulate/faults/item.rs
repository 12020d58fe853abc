//! The items of a run, each of which can be left out.

use std::fmt;
use std::str::FromStr;

/// A fault or a flow of a run, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ScheduleItem {
    /// The fault with this number.
    Fault(usize),
    /// The flow with this number.
    Flow(usize),
}

/// The error for a text that names neither a fault nor a flow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a fault or flow of a run; expected for example fault-0 or flow-3")]
pub struct NoSuchItem {
    /// The invalid text.
    pub text: String,
}

impl ScheduleItem {
    /// Returns `true` for a fault.
    pub fn is_fault(self) -> bool {
        matches!(self, Self::Fault(_))
    }
}

impl fmt::Display for ScheduleItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fault(number) => write!(f, "fault-{number}"),
            Self::Flow(number) => write!(f, "flow-{number}"),
        }
    }
}

impl FromStr for ScheduleItem {
    type Err = NoSuchItem;

    fn from_str(text: &str) -> Result<Self, NoSuchItem> {
        let item = text.split_once('-').and_then(|(kind, number)| {
            let number = number.parse().ok()?;
            match kind {
                "fault" => Some(Self::Fault(number)),
                "flow" => Some(Self::Flow(number)),
                _ => None,
            }
        });
        item.ok_or_else(|| NoSuchItem {
            text: text.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_items_and_rejects_others() {
        for item in [ScheduleItem::Fault(0), ScheduleItem::Flow(12)] {
            assert_eq!(item.to_string().parse(), Ok(item));
        }
        for text in ["", "fault", "fault-", "fault-x", "moth-1", "flow--1"] {
            let error = text.parse::<ScheduleItem>().unwrap_err().to_string();
            assert!(error.contains("expected for example fault-0"), "{error}");
        }
    }
}
