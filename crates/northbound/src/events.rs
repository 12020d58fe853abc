//! Events of switches, links and hosts for clients: a WebSocket like Ryu's, and server-sent events.
//!
//! **Bounds.** The number of watching clients is limited. A client that reads too slowly receives the number of events that it
//! missed; a client that stops reading is disconnected after a timeout.

mod feed;
mod websocket;

use crate::app::App;
use crate::error::ApiError;
use axum::Router;
use axum::extract::State;
use axum::response::sse::{Event as Sent, KeepAlive, Sse};
use axum::routing::get;
use feed::Feed;
use futures_util::{Stream, stream};
use std::convert::Infallible;
use std::sync::Arc;

pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/v1.0/topology/ws", get(websocket::watch))
        .route("/api/v1/events", get(server_sent))
}

/// Sends events: first a `switch_up` for each connected switch, then all further events.
async fn server_sent(
    State(app): State<Arc<App>>,
) -> Result<Sse<impl Stream<Item = Result<Sent, Infallible>>>, ApiError> {
    let place = app.watch()?;
    let feed = Feed::new(Arc::clone(&app));
    let sent = stream::unfold((feed, place), |(mut feed, place)| async {
        let happened = feed.next().await?;
        let sent = Sent::default()
            .event(happened.name())
            .data(feed.json(&happened).to_string());
        Some((Ok(sent), (feed, place)))
    });
    Ok(Sse::new(sent).keep_alive(KeepAlive::default()))
}
