//! The picture of the network that was drawn last.

use crate::error::ApiError;
use axum::body::Bytes;
use axum::http::StatusCode;
use std::sync::Arc;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;
use urtica_topology::draw::{Network, Picture};

/// The last network that was drawn, and its picture: a network that clients read repeatedly is laid out once, and only
/// one network is laid out at a time.
#[derive(Clone, Default)]
pub(crate) struct LastPicture(Arc<Mutex<Option<(Network, Bytes)>>>);

impl LastPicture {
    /// The picture of a network, as SVG.
    pub async fn of(&self, network: Network) -> Result<Bytes, ApiError> {
        let mut last = Arc::clone(&self.0).lock_owned().await;
        // Laying out takes too long for the thread that serves all clients. If this client disconnects, the guard is
        // held until it is done.
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
