//! The HTTP server: connections, their time-outs, and the runtime that they live in.

use crate::config::NorthboundConfig;
use crate::guard::Peer;
use axum::Router;
use axum::body::Body;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;
use tokio_io_timeout::TimeoutStream;

/// Headers of a request: together this long, and so many.
const MAX_HEADER_BYTES: usize = 32 << 10;
const MAX_HEADERS: usize = 64;

/// How long accepting pauses where there are no file descriptors left.
const PAUSE: Duration = Duration::from_millis(200);

/// Serves until it is dropped. The runtime, and all connections with it, ends with it.
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
    let places = Arc::new(Semaphore::new(config.max_connections));
    loop {
        // Never closed.
        let place = Arc::clone(&places)
            .acquire_owned()
            .await
            .map_err(io::Error::other)?;
        match listener.accept().await {
            Ok((socket, peer)) => {
                tokio::spawn(serve_connection(
                    socket,
                    peer,
                    Arc::clone(&config),
                    router.clone(),
                    place,
                ));
            }
            Err(error) => {
                tracing::debug!(%error, "the northbound interface cannot accept a connection");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

async fn serve_connection(
    socket: TcpStream,
    peer: SocketAddr,
    config: Arc<NorthboundConfig>,
    router: Router,
    _place: OwnedSemaphorePermit,
) {
    let _ = socket.set_nodelay(true);
    let mut socket = TimeoutStream::new(socket);
    socket.set_write_timeout(Some(config.send_timeout));
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(Peer(peer));
        let router = router.clone();
        async move { tower::ServiceExt::oneshot(router, request.map(Body::new)).await }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(config.receive_timeout)
        .max_buf_size(MAX_HEADER_BYTES)
        .max_headers(MAX_HEADERS)
        .serve_connection(TokioIo::new(Box::pin(socket)), service)
        .with_upgrades();
    if let Err(error) = served.await {
        tracing::debug!(%peer, %error, "a connection of the northbound interface ended");
    }
}
