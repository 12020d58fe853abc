//! Notifies the service manager, systemd, that the program is ready; without one, this does nothing.

use sd_notify::NotifyState;

/// Everything is set up: addresses are listened at, ports are open.
pub fn ready() {
    if let Err(error) = sd_notify::notify(&[NotifyState::Ready]) {
        tracing::warn!(%error, "cannot notify the service manager, whose socket is $NOTIFY_SOCKET");
    }
}
