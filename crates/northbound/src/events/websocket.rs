//! `/v1.0/topology/ws`: JSON-RPC calls to the client, as Ryu's `ws_topology` makes them.

use super::feed::{Feed, Happened};
use crate::app::App;
use crate::error::ApiError;
use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::response::Response;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, interval};

/// The maximum length of a client's message. The replies to calls are short.
const MAX_MESSAGE_BYTES: usize = 64 << 10;

/// The interval of pings. A client that sends nothing for three intervals is disconnected.
const PING_INTERVAL: Duration = Duration::from_secs(20);

pub(super) async fn watch(
    State(app): State<Arc<App>>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    let upgrade = upgrade.map_err(|refused| {
        let expected = format!(
            "{refused}: expected a WebSocket, such as ws://localhost:8080/v1.0/topology/ws"
        );
        ApiError::new(refused.status(), expected)
    })?;
    let place = app.watch()?;
    let upgrade = upgrade
        .max_message_size(MAX_MESSAGE_BYTES)
        .max_frame_size(MAX_MESSAGE_BYTES);
    // Subscribes before the upgrade is confirmed, so that the client misses no later event.
    let feed = Feed::from_now_on(app);
    Ok(upgrade.on_upgrade(|socket| serve(feed, socket, place)))
}

/// Sends events to a client until it disconnects or is too slow.
async fn serve(mut feed: Feed, mut socket: WebSocket, _place: OwnedSemaphorePermit) {
    let mut pings = interval(PING_INTERVAL);
    let (mut heard, mut id) = (Instant::now(), 0_u64);
    loop {
        let sent = tokio::select! {
            happened = feed.next() => match happened {
                Some(Happened::Missed(count)) => return close(socket, count).await,
                Some(happened) => call(&feed, &happened, &mut id),
                None => return,
            },
            received = socket.recv() => match received {
                // Ryu's clients reply to calls; the replies contain no information.
                Some(Ok(_)) => { heard = Instant::now(); None }
                _ => return,
            },
            _ = pings.tick() => match heard.elapsed() > 3 * PING_INTERVAL {
                true => return,
                false => Some(Message::Ping(Vec::new().into())),
            },
        };
        if let Some(message) = sent {
            if socket.send(message).await.is_err() {
                return;
            }
        }
    }
}

/// Returns the call that reports an event; `None` for events that Ryu does not report.
fn call(feed: &Feed, happened: &Happened, id: &mut u64) -> Option<Message> {
    let method = match happened {
        Happened::SwitchUp(_) => "event_switch_enter",
        Happened::SwitchDown(_) => "event_switch_leave",
        Happened::LinkUp(_) => "event_link_add",
        Happened::LinkDown(_) => "event_link_delete",
        Happened::HostJoined(_) => "event_host_add",
        _ => return None,
    };
    *id += 1;
    let call =
        json!({"jsonrpc": "2.0", "id": *id, "method": method, "params": [feed.json(happened)]});
    Some(Message::Text(call.to_string().into()))
}

async fn close(mut socket: WebSocket, missed: u64) {
    let reason = format!("{missed} events were missed: connect again, and read /v1.0/topology");
    let frame = CloseFrame {
        code: close_code::AGAIN,
        reason: reason.into(),
    };
    let _ = socket.send(Message::Close(Some(frame))).await;
}
