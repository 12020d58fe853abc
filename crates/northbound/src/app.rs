//! The state shared by all requests.

use crate::conf_switches::ConfSwitches;
use crate::config::NorthboundConfig;
use crate::emulation::Emulation;
use crate::error::ApiError;
use crate::last_picture::LastPicture;
use crate::literal;
use crate::live::Live;
use crate::lost_links::LostLinks;
use crate::metrics::PortCounters;
use crate::rates::Rates;
use axum::body::{Body, Bytes};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde_json::Value;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::timeout;
use urtica_apps::RyuApps;
use urtica_controller::{Background, Network, Reply, RequestError, SwitchInfo};
use urtica_services::{Discovery, Hosts};
use urtica_wire::{DatapathId, Message};

/// The maximum number of switches' replies in memory. Each may have 64 MiB.
const MAX_REPLIES: usize = 4;

/// The maximum number of concurrent traces. Each loads the entries of all switches on the packet's path.
const MAX_TRACES: usize = 2;

/// The state shared by all requests.
pub(crate) struct App {
    pub config: NorthboundConfig,
    pub network: Network,
    pub background: Background,
    pub live: Arc<Live>,
    /// The programs that replace Ryu's REST applications.
    pub ryu: RyuApps,
    /// The controller's network, if its program emulates one.
    pub emulation: Option<Emulation>,
    pub rates: Rates,
    pub conf: ConfSwitches,
    pub watchers: Arc<Semaphore>,
    pub port_counters: PortCounters,
    pub lost_links: LostLinks,
    pub last_picture: LastPicture,
    /// Permits for requests that trace packets.
    pub traces: Semaphore,
    replies: Arc<Semaphore>,
    served: AtomicU64,
    refused: AtomicU64,
    /// The time when it started, in seconds since 1970.
    pub started_s: u64,
}

impl App {
    pub fn new(
        config: NorthboundConfig,
        background: &Background,
        live: Arc<Live>,
        ryu: RyuApps,
        emulation: Option<Emulation>,
    ) -> Self {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        let network = background.network().with_deadline(config.reply_timeout);
        Self {
            watchers: Arc::new(Semaphore::new(config.max_watchers)),
            config,
            network,
            background: background.clone(),
            live,
            ryu,
            emulation,
            rates: Rates::default(),
            conf: ConfSwitches::default(),
            port_counters: PortCounters::default(),
            lost_links: LostLinks::default(),
            last_picture: LastPicture::default(),
            traces: Semaphore::new(MAX_TRACES),
            replies: Arc::new(Semaphore::new(MAX_REPLIES)),
            served: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            started_s: since_1970.map_or(0, |since| since.as_secs()),
        }
    }

    pub fn count_served(&self) {
        self.served.fetch_add(1, Ordering::Relaxed);
    }

    pub fn count_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of requests that were answered.
    pub fn served(&self) -> u64 {
        self.served.load(Ordering::Relaxed)
    }

    /// Returns the number of requests that were refused before they reached a handler.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Returns the discovery of links, if it is running.
    pub fn discovery(&self) -> Option<Discovery> {
        self.live.sources().discovery.clone()
    }

    /// Returns the tracking of hosts, if it is running.
    pub fn hosts(&self) -> Option<Hosts> {
        self.live.sources().hosts.clone()
    }

    /// Returns the connected switch with this id; an error if there is none.
    pub fn switch(&self, id: DatapathId) -> Result<Arc<SwitchInfo>, ApiError> {
        self.network.info(id).ok_or_else(|| ApiError::no_switch(id))
    }

    /// Sends a request to a switch. The permit must be held as long as the reply.
    pub async fn ask(
        &self,
        id: DatapathId,
        message: &Message<'_>,
    ) -> Result<(Reply, OwnedSemaphorePermit), RequestError> {
        let deadline = self.config.reply_timeout;
        let asked = async {
            let replies = Arc::clone(&self.replies);
            // This semaphore is never closed.
            let permit = replies
                .acquire_owned()
                .await
                .map_err(|_| RequestError::Disconnected)?;
            let send = || self.network.request(id, message);
            let reply = self.network.when_ready(id, send).await?.await?;
            Ok((reply, permit))
        };
        // The switch's time limit starts when the request is handed to its connection; the wait before that counts, too.
        timeout(deadline * 2, asked)
            .await
            .unwrap_or(Err(RequestError::Timeout(deadline * 2)))
    }

    /// Sends a message to a switch as soon as its send queue has space.
    pub async fn send(
        &self,
        network: &Network,
        id: DatapathId,
        message: &Message<'_>,
    ) -> Result<(), RequestError> {
        let deadline = self.config.reply_timeout;
        let sent = network.when_ready(id, || network.send(id, message));
        timeout(deadline, sent)
            .await
            .unwrap_or(Err(RequestError::Timeout(deadline)))
    }

    /// Reserves a slot for a client that watches events.
    pub fn watch(&self) -> Result<OwnedSemaphorePermit, ApiError> {
        let most = self.config.max_watchers;
        let refused = format!("{most} clients watch events already: expected fewer");
        let place = Arc::clone(&self.watchers).try_acquire_owned();
        place.map_err(|_| ApiError::new(StatusCode::SERVICE_UNAVAILABLE, refused))
    }

    /// Reads the body of a request. Returns an error if it is too long.
    pub async fn bytes(&self, body: Body) -> Result<Bytes, ApiError> {
        let most = self.config.max_body_bytes;
        let bytes = axum::body::to_bytes(body, most);
        match timeout(self.config.receive_timeout, bytes).await {
            Ok(Ok(bytes)) => Ok(bytes),
            Ok(Err(_)) => Err(ApiError::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                format!("the body ends too early, or is too long: expected at most {most} bytes"),
            )),
            Err(_) => Err(ApiError::new(
                StatusCode::REQUEST_TIMEOUT,
                "the body was not received in time",
            )),
        }
    }

    /// Reads the body of a request: JSON or a Python literal. An empty body is an empty object.
    pub async fn value(&self, body: Body) -> Result<Value, ApiError> {
        let bytes = self.bytes(body).await?;
        let text = std::str::from_utf8(&bytes).map_err(|_| {
            ApiError::new(
                StatusCode::BAD_REQUEST,
                "the body is not text: expected UTF-8",
            )
        })?;
        if text.trim().is_empty() {
            return Ok(Value::Object(serde_json::Map::new()));
        }
        literal::parse(text).map_err(|error| {
            ApiError::new(StatusCode::BAD_REQUEST, error.to_string()).example("{\"dpid\": 1}")
        })
    }
}

/// Returns a JSON response that is formatted while it is sent, so that its unread part needs almost no memory.
pub(crate) fn stream_json<F>(write: impl FnOnce(mpsc::Sender<Bytes>) -> F) -> Response
where
    F: Future<Output = ()> + Send + 'static,
{
    let (sender, receiver) = mpsc::channel(2);
    tokio::spawn(write(sender));
    let chunks = stream::unfold(receiver, |mut receiver: mpsc::Receiver<Bytes>| async {
        let chunk = receiver.recv().await?;
        Some((Ok::<_, Infallible>(chunk), receiver))
    });
    let json = [(header::CONTENT_TYPE, "application/json")];
    (json, Body::from_stream(chunks)).into_response()
}
