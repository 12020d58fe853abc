//! Notifies the service manager, systemd, that a program is ready and alive; without one, this does nothing.

use sd_notify::NotifyState;
use std::time::Duration;
use std::{io, thread};
use urtica_controller::Background;
use urtica_switch::Remote;

/// Reports that a controller is ready, and from now on that it is alive as long as its background programs run.
pub fn notify(background: &Background) {
    ready();
    let Some(limit) = sd_notify::watchdog_enabled() else {
        return;
    };
    background.spawn("watchdog", feed_watchdog(background.clone(), limit / 2));
}

/// Reports that everything is set up: addresses are bound, ports are open.
pub fn ready() {
    send(NotifyState::Ready);
}

/// Reports that a switch is ready, and from now on that it is alive as long as it answers.
///
/// # Errors
/// The system's, if it cannot start a thread for this.
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
