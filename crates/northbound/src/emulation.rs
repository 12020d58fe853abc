//! An emulated network: the requests that change it, and their queue to the thread that runs it.
//!
//! A network has one thread, and its time stands still unless that thread runs it. Requests therefore wait in a queue until
//! the thread serves them. A request is discarded if its client has disconnected, or if it has waited too long.

use crate::error::ApiError;
use axum::http::StatusCode;
use serde::Serialize;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use urtica_wire::DatapathId;
use utoipa::ToSchema;

/// The maximum number of requests that wait for the network. Further requests are refused.
const MAX_WAITING: usize = 16;

/// An emulated network, through which its thread serves requests.
pub trait EmulatedNetwork {
    /// Returns its switches, hosts and links, and their states.
    ///
    /// # Errors
    /// If the network has stopped.
    fn describe(&mut self) -> Result<Emulated, EmulationError>;

    /// Cuts or repairs a link, by its number in [`Emulated::links`].
    ///
    /// # Errors
    /// If there is no such link.
    fn set_link(&mut self, number: usize, up: bool) -> Result<(), EmulationError>;

    /// Starts or stops a switch. Does nothing if the switch already runs, or is already stopped.
    ///
    /// # Errors
    /// If there is no such switch.
    fn set_switch(&mut self, id: DatapathId, runs: bool) -> Result<(), EmulationError>;

    /// Makes one host ping another, by name, and waits for the reply.
    ///
    /// # Errors
    /// If there is no such host.
    fn ping(&mut self, from: &str, to: &str) -> Result<PingResults, EmulationError>;

    /// Makes every host ping all others, and waits for the replies.
    ///
    /// # Errors
    /// If there are too many hosts.
    fn ping_all(&mut self) -> Result<PingResults, EmulationError>;

    /// Makes one host send packets to another, without waiting.
    ///
    /// # Errors
    /// If there is no such host, or too much traffic is running.
    fn start_traffic(&mut self, traffic: &EmulatedTraffic) -> Result<(), EmulationError>;
}

/// An error of a request to an emulated network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EmulationError {
    /// The network has no such switch, host or link.
    #[error("{0}")]
    Unknown(String),
    /// The network cannot do this now.
    #[error("{0}")]
    Refused(String),
}

impl From<EmulationError> for ApiError {
    fn from(error: EmulationError) -> Self {
        let status = match error {
            EmulationError::Unknown(_) => StatusCode::NOT_FOUND,
            EmulationError::Refused(_) => StatusCode::CONFLICT,
        };
        Self::new(status, error.to_string())
    }
}

/// The parts of an emulated network. All lists are empty if the controller's network is not emulated by its own program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct Emulated {
    /// Its switches.
    pub switches: Vec<EmulatedSwitch>,
    /// Its hosts.
    pub hosts: Vec<EmulatedHost>,
    /// Its links, those of hosts included. A link's number is its position here, from 0.
    pub links: Vec<EmulatedLink>,
}

/// A switch of an emulated network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct EmulatedSwitch {
    /// Its name.
    pub name: String,
    /// Its datapath id: 16 hexadecimal digits.
    pub id: String,
    /// Whether it runs.
    pub running: bool,
}

/// A host of an emulated network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct EmulatedHost {
    /// Its name.
    pub name: String,
    /// Its MAC address.
    pub mac: String,
    /// Its IPv4 address.
    pub ipv4: String,
}

/// A link of an emulated network. An end is a switch and a port, as in `0000000000000001:2`, or a host's name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct EmulatedLink {
    /// One end.
    pub a: String,
    /// The other end.
    pub b: String,
    /// Whether it carries frames: not if it is cut.
    pub up: bool,
}

/// The results of pings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
pub struct PingResults {
    /// The number of pings that were sent.
    pub sent: usize,
    /// The number of pings that were answered.
    pub answered: usize,
    /// The longest round-trip time, in milliseconds; none without answers.
    pub longest_ms: Option<f64>,
    /// The pairs of hosts without an answer.
    pub failed: Vec<UnansweredPing>,
}

/// A ping that was not answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct UnansweredPing {
    /// The name of the host that sent it.
    pub from: String,
    /// The name of the host that it was for.
    pub to: String,
}

/// Packets that one host sends to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmulatedTraffic {
    /// The name of the host that sends them.
    pub from: String,
    /// The name of the host that receives them.
    pub to: String,
    /// Their rate, in Mbit/s.
    pub mbit_per_s: u32,
    /// The duration for which they are sent.
    pub time: Duration,
}

/// A request that the network's thread runs.
type Task = Box<dyn FnOnce(&mut dyn EmulatedNetwork) + Send>;

/// The sending end of a queue of requests to an emulated network, for
/// [`Northbound::emulation`](crate::Northbound::emulation).
#[derive(Clone)]
pub struct Emulation(mpsc::Sender<Task>);

/// The receiving end of a queue of requests to an emulated network, for its thread.
pub struct EmulationRequests(mpsc::Receiver<Task>);

impl Emulation {
    /// Creates a queue, and returns both ends.
    pub fn new() -> (Self, EmulationRequests) {
        let (sender, receiver) = mpsc::channel(MAX_WAITING);
        (Self(sender), EmulationRequests(receiver))
    }

    /// Runs `act` on the network's thread and waits for the result.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        deadline: Duration,
        act: impl FnOnce(&mut dyn EmulatedNetwork) -> Result<T, EmulationError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let (respond, response) = oneshot::channel();
        let task: Task = Box::new(move |network| {
            if !respond.is_closed() {
                // The client may disconnect during the call.
                let _ = respond.send(act(network));
            }
        });
        self.0.try_send(task).map_err(|_| {
            let refused = format!(
                "the network has ended, or {MAX_WAITING} requests are waiting for it: expected fewer at once"
            );
            ApiError::new(StatusCode::SERVICE_UNAVAILABLE, refused)
        })?;
        match timeout(deadline, response).await {
            Ok(Ok(done)) => Ok(done?),
            Ok(Err(_)) => Err(ApiError::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "the network has ended",
            )),
            Err(_) => Err(ApiError::new(
                StatusCode::GATEWAY_TIMEOUT,
                format!(
                    "the network did not complete the request within {deadline:?}; its program, or a command at its prompt, keeps it busy"
                ),
            )),
        }
    }
}

impl EmulationRequests {
    /// Handles the waiting requests, on this thread.
    pub fn serve(&mut self, network: &mut dyn EmulatedNetwork) {
        while let Ok(task) = self.0.try_recv() {
            task(network);
        }
    }
}
