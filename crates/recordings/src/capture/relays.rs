//! Accepts switches, and starts a thread for each.

use super::recorder::Recorder;
use super::relay::{Relay, Target};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsFd;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};
use urtica_socket::{Accepted, Acceptor, Notice, Stream};

/// The maximum number of concurrent connections.
const CONNECTIONS_MAX: usize = 1024;

/// The interval of checks of the TLS files for changes.
const REFRESH_INTERVAL: Duration = Duration::from_secs(1);

/// Accepts switches, and runs a thread for each.
pub struct Relays {
    acceptor: Acceptor,
    target: Target,
    threads: Vec<JoinHandle<()>>,
    connections: u32,
    next_refresh: Instant,
}

impl Relays {
    pub fn new(acceptor: Acceptor, target: Target) -> Self {
        Self {
            acceptor,
            target,
            threads: Vec::new(),
            connections: 0,
            next_refresh: Instant::now(),
        }
    }

    /// Runs until `stop` is readable.
    pub fn run(&mut self, stop: &Arc<UnixStream>, recorder: &Recorder) -> io::Result<()> {
        while !self.wait(stop)? {
            for accepted in self.acceptor.poll(Instant::now()) {
                self.handle(accepted, stop, recorder);
            }
            self.threads.retain(|thread| !thread.is_finished());
            self.refresh_target();
        }
        Ok(())
    }

    /// Waits for the threads, which also stop. Returns the number of connections.
    pub fn finish(self) -> u64 {
        for thread in self.threads {
            // A panic was reported when it happened.
            let _ = thread.join();
        }
        self.connections.into()
    }

    /// Waits for an event; returns `true` if the program must stop.
    fn wait(&self, stop: &UnixStream) -> io::Result<bool> {
        let mut fds = [
            PollFd::from_borrowed_fd(stop.as_fd(), PollFlags::IN),
            PollFd::new(&self.acceptor, PollFlags::IN),
        ];
        let later = Instant::now() + REFRESH_INTERVAL;
        let next = self.acceptor.next_timeout().unwrap_or(later).min(later);
        let timeout = next.saturating_duration_since(Instant::now());
        let timeout = Timespec {
            tv_sec: timeout.as_secs() as i64,
            tv_nsec: timeout.subsec_nanos().into(),
        };
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) => Ok(!fds[0].revents().is_empty()),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn handle(&mut self, accepted: Accepted, stop: &Arc<UnixStream>, recorder: &Recorder) {
        match accepted {
            Accepted::Connection { stream, peer, .. } => self.begin(stream, peer, stop, recorder),
            Accepted::Refused { reason, .. } if reason.is_noise() => {}
            Accepted::Refused { peer, reason, .. } => {
                urtica_log::warn!(about: "TLS", peer, %reason, "connection refused");
            }
            Accepted::Paused(error) => {
                urtica_log::warn!(about: "accepting", %error, "cannot accept connections");
            }
            Accepted::Notice(notice) => report(&notice),
        }
    }

    fn begin(&mut self, switch: Stream, peer: String, stop: &Arc<UnixStream>, recorder: &Recorder) {
        self.threads.retain(|thread| !thread.is_finished());
        if self.threads.len() >= CONNECTIONS_MAX {
            urtica_log::warn!(about: "connections", peer, "connection refused: already relaying {CONNECTIONS_MAX}");
            return;
        }
        self.connections += 1;
        let relay = Relay {
            number: self.connections,
            peer,
            target: self.target.clone(),
            stop: Arc::clone(stop),
            recorder: recorder.clone(),
        };
        let thread = std::thread::Builder::new().name("relay".to_owned());
        match thread.spawn(move || relay.run(switch)) {
            Ok(thread) => self.threads.push(thread),
            Err(error) => {
                urtica_log::warn!(about: "connections", %error, "connection refused: cannot start a thread");
            }
        }
    }

    /// Uses changed TLS files for later connections to the controller. For switches, the acceptor does so; it also reports
    /// changes of files that both sides use.
    fn refresh_target(&mut self) {
        if Instant::now() < self.next_refresh {
            return;
        }
        self.next_refresh = Instant::now() + REFRESH_INTERVAL;
        if let Some(tls) = &mut self.target.tls {
            let notices = tls.refresh(SystemTime::now());
            if self.target.has_own_files {
                notices.iter().for_each(report);
            }
        }
    }
}

fn report(notice: &Notice) {
    match notice.is_warning() {
        true => tracing::warn!("{notice}"),
        false => tracing::info!("{notice}"),
    }
}
