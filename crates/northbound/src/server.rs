//! The HTTP server: connections, their timeouts, and the runtime on which they are served.

mod connections;

use crate::config::NorthboundConfig;
use crate::error::ApiError;
use crate::guard::Peer;
use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::{Request, StatusCode};
use axum::response::{IntoResponse, Response};
use connections::{Connections, Serving, ShareUsedUp, Slot};
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_io_timeout::TimeoutStream;

/// The maximum length of a request's first line and headers together, and the maximum number of headers.
const MAX_HEADER_BYTES: usize = 32 << 10;
const MAX_HEADERS: usize = 64;

/// The maximum number of bytes read of a request before its headers are complete. It does not limit headers that arrive in
/// one piece.
const MAX_READ_BYTES: usize = 2 * MAX_HEADER_BYTES;

/// The response to a client whose address already uses its share of connections for requests.
const SHARE_USED_UP: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

/// The time without accepting connections after the file descriptors are exhausted.
const PAUSE: Duration = Duration::from_millis(200);

/// Serves until it is dropped, which ends the runtime and all connections.
pub(crate) async fn serve(
    listener: std::net::TcpListener,
    config: Arc<NorthboundConfig>,
    router: Router,
) -> io::Result<()> {
    let (_runtime, served) = start(listener, config, router)?;
    served.await.map_err(io::Error::other)?
}

/// Serves until the runtime is dropped.
pub(crate) fn start(
    listener: std::net::TcpListener,
    config: Arc<NorthboundConfig>,
    router: Router,
) -> io::Result<(Runtime, JoinHandle<io::Result<()>>)> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime
        .worker_threads(1)
        .thread_name("northbound-http")
        .enable_all()
        .build()?;
    let served = runtime.spawn(accept(listener, config, router));
    Ok((runtime, served))
}

async fn accept(
    listener: std::net::TcpListener,
    config: Arc<NorthboundConfig>,
    router: Router,
) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let connections = Connections::new(config.max_connections, config.max_connections_per_address);
    loop {
        let (socket, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::debug!(%error, "the northbound interface cannot accept a connection");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        match connections.admit(peer.ip()).await {
            Ok((slot, closed)) => {
                let served =
                    serve_connection(socket, peer, Arc::clone(&config), router.clone(), slot);
                tokio::spawn(unless_closed(closed, served));
            }
            Err(ShareUsedUp) => {
                tracing::debug!(%peer, "a client has too many connections; closing the new one");
                let _ = socket.try_write(SHARE_USED_UP);
            }
        }
    }
}

/// Ends a connection if a newer one gets its slot.
async fn unless_closed(closed: oneshot::Receiver<()>, served: impl Future<Output = ()>) {
    tokio::select! {
        _ = closed => {}
        () = served => {}
    }
}

async fn serve_connection(
    socket: TcpStream,
    peer: SocketAddr,
    config: Arc<NorthboundConfig>,
    router: Router,
    slot: Arc<Slot>,
) {
    let _ = socket.set_nodelay(true);
    let mut socket = TimeoutStream::new(socket);
    socket.set_write_timeout(Some(config.send_timeout));
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(Peer(peer));
        let (router, serving) = (router.clone(), slot.serve());
        async move {
            let response = match check_length(&request) {
                Ok(()) => tower::ServiceExt::oneshot(router, request.map(Body::new)).await?,
                Err(refused) => refused.into_response(),
            };
            Ok::<Response<ServedBody>, Infallible>(response.map(|body| ServedBody {
                body,
                _serving: serving,
            }))
        }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(config.receive_timeout)
        .max_buf_size(MAX_READ_BYTES)
        .max_headers(MAX_HEADERS)
        .serve_connection(TokioIo::new(Box::pin(socket)), service)
        .with_upgrades();
    if let Err(error) = served.await {
        tracing::debug!(%peer, %error, "a connection of the northbound interface ended");
    }
}

/// Refuses a request whose first line and headers are too long.
fn check_length(request: &Request<Incoming>) -> Result<(), ApiError> {
    let headers = request.headers().iter();
    // Each header is followed by ": " and a line break.
    let lengths = headers.map(|(name, value)| name.as_str().len() + value.len() + 4);
    // Only the path and the query have a length that the client chooses.
    let path = request.uri().path_and_query();
    let path = path.map_or(0, |path| path.as_str().len());
    let length = path + lengths.sum::<usize>();
    if length <= MAX_HEADER_BYTES {
        return Ok(());
    }
    let refused =
        format!("path and headers have {length} bytes: expected at most {MAX_HEADER_BYTES}");
    let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
    Err(ApiError::new(status, refused))
}

/// The body of a response, which marks its connection as busy until it is sent.
struct ServedBody {
    body: Body,
    _serving: Serving,
}

impl HttpBody for ServedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
