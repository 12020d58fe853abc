//! Serves the metrics of a program that is not a controller, such as a switch: only `GET /metrics`.

use crate::config::{NorthboundConfig, NorthboundError};
use crate::metrics::{Format, Page};
use crate::server;
use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use tokio::runtime::Runtime;
use tokio::sync::Mutex;

/// The maximum number of connections, which suffices for Prometheus and operators. One address may use half of them.
const MAX_CONNECTIONS: usize = 16;

/// A server of `GET /metrics` without access control.
pub struct MetricsServer {
    listener: TcpListener,
    address: SocketAddr,
}

/// A running server. It stops when dropped, at the latest after the page that is being built.
pub struct ServedMetrics {
    _runtime: Runtime,
}

impl MetricsServer {
    /// Listens at the address.
    ///
    /// # Errors
    /// [`NorthboundError::Listen`] if that fails.
    pub fn bind(address: SocketAddr) -> Result<Self, NorthboundError> {
        let failed = |error| NorthboundError::Listen { address, error };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        Ok(Self {
            address: listener.local_addr().map_err(failed)?,
            listener,
        })
    }

    /// Returns the address at which it listens, with the port chosen by the system if port 0 was requested.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves on its own threads. `page` builds a page; it is called for one page at a time. If it returns `None`, the client
    /// receives status 503.
    ///
    /// # Errors
    /// If the system cannot start threads.
    pub fn start(
        self,
        page: impl Fn() -> Option<Page> + Send + Sync + 'static,
    ) -> io::Result<ServedMetrics> {
        let page = Arc::new(Mutex::new(page));
        let answer = move |headers: HeaderMap| {
            let page = Arc::clone(&page);
            async move {
                let page = page.lock_owned().await;
                // It may wait for another thread, and holds the lock until it is made.
                let make = move || {
                    let page = &*page;
                    page()
                };
                let made = tokio::task::spawn_blocking(make).await;
                response(Format::accepted(&headers), made.ok().flatten())
            }
        };
        let config = NorthboundConfig {
            max_connections: MAX_CONNECTIONS,
            max_connections_per_address: MAX_CONNECTIONS / 2,
            ..NorthboundConfig::default()
        };
        let router = Router::new().route("/metrics", get(answer));
        let (runtime, _served) = server::start(self.listener, Arc::new(config), router)?;
        Ok(ServedMetrics { _runtime: runtime })
    }
}

fn response(format: Format, page: Option<Page>) -> Response {
    match page {
        Some(page) => format.respond(page),
        None => {
            let sentence = "it does not reply; expected a program that is not about to end\n";
            (StatusCode::SERVICE_UNAVAILABLE, sentence).into_response()
        }
    }
}
