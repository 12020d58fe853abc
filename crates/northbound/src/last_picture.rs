//! The last picture of the network.

use crate::error::ApiError;
use axum::body::Bytes;
use axum::http::StatusCode;
use std::sync::Arc;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;
use urtica_topology::draw::{Network, Picture};

/// The last network that was drawn, and its picture. A network that clients request repeatedly is laid out only once, and
/// only one network is laid out at a time.
#[derive(Clone, Default)]
pub(crate) struct LastPicture(Arc<Mutex<Option<(Network, Bytes)>>>);

impl LastPicture {
    /// Returns a picture of the network, as SVG.
    pub async fn of(&self, network: Network) -> Result<Bytes, ApiError> {
        let mut last = Arc::clone(&self.0).lock_owned().await;
        // Layout takes too long for the thread that serves all clients. If this client disconnects, the guard is held until the
        // layout is complete.
        let drawn = spawn_blocking(move || match &*last {
            Some((drawn, svg)) if *drawn == network => svg.clone(),
            _ => {
                let svg = Bytes::from(Picture::new(&network).to_svg());
                *last = Some((network, svg.clone()));
                svg
            }
        });
        let failed = |_| {
            ApiError::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "the drawing failed: expected to draw any network",
            )
        };
        drawn.await.map_err(failed)
    }
}
