//! Notifies the service manager, systemd, that a program is ready and alive; without one, this does nothing.

use sd_notify::NotifyState;
use std::time::Duration;
use std::{io, thread};
use urtica_controller::Background;
use urtica_switch::Remote;

/// For a controller: it is ready now, and from now on alive as long as its background programs run.
pub fn notify(background: &Background) {
    ready();
    let Some(limit) = sd_notify::watchdog_enabled() else {
        return;
    };
    background.spawn("watchdog", feed_watchdog(background.clone(), limit / 2));
}

/// Everything is set up: addresses are listened at, ports are open.
pub fn ready() {
    send(NotifyState::Ready);
}

/// For a switch: it is ready now, and from now on alive as long as it answers.
///
/// # Errors
/// The system's, if it has no thread for that.
pub fn notify_of_switch(switch: Remote) -> io::Result<()> {
    ready();
    let Some(limit) = sd_notify::watchdog_enabled() else {
        return Ok(());
    };
    let feed = move || {
        while switch.status().is_ok() {
            send(NotifyState::Watchdog);
            thread::sleep(limit / 2);
        }
    };
    let thread = thread::Builder::new().name("watchdog".into()).spawn(feed);
    thread.map(drop)
}

async fn feed_watchdog(background: Background, interval: Duration) {
    loop {
        send(NotifyState::Watchdog);
        background.sleep(interval).await;
    }
}

fn send(state: NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(&[state]) {
        urtica_log::warn!(about: "service manager", %error, "cannot notify the service manager, whose socket is $NOTIFY_SOCKET");
    }
}
