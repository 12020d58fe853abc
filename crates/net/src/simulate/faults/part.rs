//! What a run is made of, and can be left out of it.

use std::fmt;
use std::str::FromStr;

/// A fault or a flow of a run, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The fault of this number.
    Fault(usize),
    /// The flow of this number.
    Flow(usize),
}

/// The text names no fault and no flow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is no part of a run; expected one such as fault-0 or flow-3")]
pub struct NoSuchPart {
    /// The text that was given.
    pub text: String,
}

impl Part {
    /// Whether it is a fault.
    pub fn is_fault(self) -> bool {
        matches!(self, Self::Fault(_))
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fault(number) => write!(f, "fault-{number}"),
            Self::Flow(number) => write!(f, "flow-{number}"),
        }
    }
}

impl FromStr for Part {
    type Err = NoSuchPart;

    fn from_str(text: &str) -> Result<Self, NoSuchPart> {
        let part = text.split_once('-').and_then(|(kind, number)| {
            let number = number.parse().ok()?;
            match kind {
                "fault" => Some(Self::Fault(number)),
                "flow" => Some(Self::Flow(number)),
                _ => None,
            }
        });
        part.ok_or_else(|| NoSuchPart {
            text: text.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_read_back_and_others_refused() {
        for part in [Part::Fault(0), Part::Flow(12)] {
            assert_eq!(part.to_string().parse(), Ok(part));
        }
        for text in ["", "fault", "fault-", "fault-x", "moth-1", "flow--1"] {
            let error = text.parse::<Part>().unwrap_err().to_string();
            assert!(error.contains("expected one such as fault-0"), "{error}");
        }
    }
}
