//! The errors of paths that could not be provisioned.

use std::time::Duration;
use urtica_controller::RequestError;
use urtica_topology::PortId;
use urtica_wire::{DatapathId, EncodeError, ErrorCode};

/// The reason why a path is not installed. Its installed entries have been rolled back, or will be when their switch returns.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProvisionError {
    /// The path is empty.
    #[error("the path has no hops; expected at least one switch")]
    EmptyPath,
    /// The path visits a switch twice, which has only one entry for the flow.
    #[error("the path passes switch {switch} twice; expected each switch once at most")]
    Circle {
        /// The switch.
        switch: DatapathId,
    },
    /// A switch of the path is not connected.
    #[error("switch {switch} of the path is not connected")]
    NotConnected {
        /// The switch.
        switch: DatapathId,
    },
    /// A port of the path does not exist.
    #[error("the path uses port {port}, which that switch does not have")]
    NoSuchPort {
        /// The port.
        port: PortId,
    },
    /// Another path has an entry with this match, priority and table.
    #[error(
        "switch {switch} has an entry with the same match, priority and table for the path of cookie {cookie:#018x}; remove or \
         replace that path first"
    )]
    Taken {
        /// The switch of the entry.
        switch: DatapathId,
        /// The owner of the entry.
        cookie: u64,
    },
    /// The path to replace or remove is already being replaced or removed.
    #[error(
        "the path of cookie {cookie:#018x} is already being changed; wait until that has ended"
    )]
    Changing {
        /// The path.
        cookie: u64,
    },
    /// A switch refused its entry.
    #[error("switch {switch} refused its entry with {code}")]
    Refused {
        /// The switch.
        switch: DatapathId,
        /// The reason.
        code: ErrorCode,
    },
    /// A switch's protocol version cannot express its entry.
    #[error("cannot encode the entry for switch {switch}: {error}")]
    Encode {
        /// The switch.
        switch: DatapathId,
        /// The reason.
        error: EncodeError,
    },
    /// A switch disconnected before the path was complete.
    #[error("switch {switch} left before the path was complete")]
    Left {
        /// The switch.
        switch: DatapathId,
    },
    /// A switch did not confirm its entry in time.
    #[error("switch {switch} did not confirm its entry within {after:?}")]
    Timeout {
        /// The switch.
        switch: DatapathId,
        /// The time it had.
        after: Duration,
    },
    /// Too many messages already wait for a switch.
    #[error("the send queue of switch {switch} is full")]
    Busy {
        /// The switch.
        switch: DatapathId,
    },
    /// Too many jobs are waiting.
    #[error(
        "{max_jobs} paths are already being provisioned or removed; try again when some are done"
    )]
    TooManyJobs {
        /// The limit.
        max_jobs: usize,
    },
    /// The provisioner has too many paths.
    #[error(
        "{max_flows} paths are already provisioned; remove some, or increase ProvisionConfig::max_flows"
    )]
    TooManyFlows {
        /// The limit.
        max_flows: usize,
    },
    /// Called inside a transaction, which may run again or fail; the effects of the call would stay.
    #[error(
        "paths cannot be provisioned inside a transaction; return the flow from the transaction, and provision it afterwards"
    )]
    InTransaction,
    /// The provisioner is not running.
    #[error(
        "the provisioner is not running; expected it to be passed to Controller::program(), and the controller to run"
    )]
    NotRunning,
}

impl ProvisionError {
    /// Converts the outcome of a message to a switch.
    pub(super) fn of_request(switch: DatapathId, error: RequestError, limit: Duration) -> Self {
        match error {
            RequestError::UnknownSwitch(_) => Self::NotConnected { switch },
            RequestError::Encode(error) => Self::Encode { switch, error },
            RequestError::Refused(code) => Self::Refused { switch, code },
            // The error that the switch would return.
            RequestError::Secondary(_) => Self::Refused {
                switch,
                code: ErrorCode::BadRequestIsSlave,
            },
            RequestError::Disconnected => Self::Left { switch },
            RequestError::Timeout(after) => Self::Timeout { switch, after },
            RequestError::Busy(_) | RequestError::TooLong => Self::Busy { switch },
            RequestError::InTransaction => Self::InTransaction,
            // Only a barrier reply answers a barrier, so no other reply can arrive.
            _ => Self::Timeout {
                switch,
                after: limit,
            },
        }
    }
}
