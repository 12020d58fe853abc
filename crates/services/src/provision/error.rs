//! Why a path could not be provisioned.

use std::time::Duration;
use urtica_controller::RequestError;
use urtica_topology::PortId;
use urtica_wire::{DatapathId, EncodeError, ErrorCode};

/// Why a path is not there. Whatever had been installed for it has been taken back, or is when its switch returns.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProvisionError {
    /// There is nothing to provision.
    #[error("the path has no hops; expected at least one switch")]
    EmptyPath,
    /// A switch has one entry for the flow, so a packet cannot pass it twice.
    #[error("the path passes switch {switch} twice; expected each switch once at most")]
    Circle {
        /// Which.
        switch: DatapathId,
    },
    /// A switch of the path is not there.
    #[error("switch {switch} of the path is not connected")]
    NotConnected {
        /// Which.
        switch: DatapathId,
    },
    /// A port of the path is not there.
    #[error("the path uses port {port}, which that switch does not have")]
    NoSuchPort {
        /// Which.
        port: PortId,
    },
    /// Another path's entry is where one of this path would be.
    #[error(
        "switch {switch} has an entry with the same match, priority and table for the path of cookie {cookie:#018x}; remove or \
         replace that path first"
    )]
    Taken {
        /// Where.
        switch: DatapathId,
        /// Whose the entry is.
        cookie: u64,
    },
    /// The path to replace or remove is being replaced or removed already.
    #[error("the path of cookie {cookie:#018x} is being changed already; wait for that to end")]
    Changing {
        /// Which.
        cookie: u64,
    },
    /// A switch refused its entry.
    #[error("switch {switch} refused its entry with {code}")]
    Refused {
        /// Which.
        switch: DatapathId,
        /// Why.
        code: ErrorCode,
    },
    /// A switch's version cannot express its entry.
    #[error("switch {switch} cannot be told its entry: {error}")]
    Encode {
        /// Which.
        switch: DatapathId,
        /// Why.
        error: EncodeError,
    },
    /// A switch left before the path was complete.
    #[error("switch {switch} left before the path was complete")]
    Left {
        /// Which.
        switch: DatapathId,
    },
    /// A switch did not say in time that it had dealt with its entry.
    #[error("switch {switch} did not confirm its entry within {after:?}")]
    Timeout {
        /// Which.
        switch: DatapathId,
        /// How long it had.
        after: Duration,
    },
    /// Too much waits for a switch already.
    #[error("switch {switch} does not keep up: too many messages wait to be sent to it")]
    Busy {
        /// Which.
        switch: DatapathId,
    },
    /// Too many jobs wait already.
    #[error(
        "{max_jobs} paths are being provisioned or removed already; try again when some are done"
    )]
    TooManyJobs {
        /// How many may.
        max_jobs: usize,
    },
    /// Too many paths are there already.
    #[error(
        "{max_flows} paths are provisioned already; remove some, or allow for more in ProvisionConfig::max_flows"
    )]
    TooManyFlows {
        /// How many may be.
        max_flows: usize,
    },
    /// A transaction may run again or fail, and what it has asked for would be done nevertheless.
    #[error(
        "paths cannot be provisioned inside a transaction; have it return the flow, and provision that afterwards"
    )]
    InTransaction,
    /// Nobody works on it.
    #[error(
        "the provisioner does not run; expected it to be given to Controller::program(), and the controller to run"
    )]
    NotRunning,
}

impl ProvisionError {
    /// What became of something that was sent to a switch.
    pub(super) fn of_request(switch: DatapathId, error: RequestError, limit: Duration) -> Self {
        match error {
            RequestError::UnknownSwitch(_) => Self::NotConnected { switch },
            RequestError::Encode(error) => Self::Encode { switch, error },
            RequestError::Refused(code) => Self::Refused { switch, code },
            RequestError::Disconnected => Self::Left { switch },
            RequestError::Timeout(after) => Self::Timeout { switch, after },
            RequestError::Busy(_) | RequestError::TooLong => Self::Busy { switch },
            RequestError::InTransaction => Self::InTransaction,
            // A barrier has a reply, and nothing is asked whose reply could be another's.
            _ => Self::Timeout {
                switch,
                after: limit,
            },
        }
    }
}
