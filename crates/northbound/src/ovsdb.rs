//! A client of Open vSwitch's database (OVSDB, RFC 7047).
//!
//! A connection serves one HTTP request: it is opened, executes a few transactions, and is closed. Nothing is cached, so
//! settings that other clients such as `ovs-vsctl` change are never out of date.
//!
//! ```text
//! address      tcp:HOST:PORT or unix:FILE
//! database     a connection: transactions and their results
//! queues       the queues of a bridge's ports
//! ```

mod address;
mod database;
mod queues;

pub(crate) use address::Address;
pub(crate) use queues::{BridgeQueues, Queue, Shaping};

use crate::error::ApiError;
use axum::http::StatusCode;
use urtica_wire::DatapathId;

/// The reason why a request to the database failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OvsdbError {
    /// The text is not an address.
    #[error(
        "ovsdb_addr is {0}: expected the address of Open vSwitch's database, tcp:HOST:PORT or unix:FILE"
    )]
    Address(String),
    /// The database cannot be reached.
    #[error("cannot reach Open vSwitch's database at {address}: {error}")]
    Connection {
        address: String,
        error: std::io::Error,
    },
    /// The database did not reply in time.
    #[error("Open vSwitch's database at {0} did not reply in time")]
    Late(String),
    /// The replies do not follow the protocol.
    #[error("{0} does not speak Open vSwitch's database protocol: {1}")]
    Protocol(String, &'static str),
    /// The database refused a transaction.
    #[error("Open vSwitch's database refused the change: {0}")]
    Refused(String),
    /// The database does not contain the switch.
    #[error("Open vSwitch's database has no bridge whose datapath id is {0}")]
    NoBridge(DatapathId),
    /// The bridge does not have this port.
    #[error("bridge {0} has no port {1}: expected one of {2}")]
    NoPort(DatapathId, String, String),
}

impl From<OvsdbError> for ApiError {
    fn from(error: OvsdbError) -> Self {
        let status = match error {
            OvsdbError::Address(_) | OvsdbError::NoBridge(_) | OvsdbError::NoPort(..) => {
                StatusCode::BAD_REQUEST
            }
            OvsdbError::Late(_) => StatusCode::GATEWAY_TIMEOUT,
            OvsdbError::Connection { .. } | OvsdbError::Protocol(..) | OvsdbError::Refused(_) => {
                StatusCode::BAD_GATEWAY
            }
        };
        Self::new(status, error.to_string())
    }
}
