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
use urtica_socket::{Ended, Handshakes, Listener, Stream};

/// The maximum number of connections that are relayed at once.
const CONNECTIONS_MAX: usize = 1024;

/// How often files for TLS are checked for changes.
const REFRESH_INTERVAL: Duration = Duration::from_secs(1);

/// Accepts switches, and has a thread for each.
pub struct Relays {
    listeners: Vec<Listener>,
    handshakes: Option<Handshakes>,
    target: Target,
    threads: Vec<JoinHandle<()>>,
    connections: u32,
    next_refresh: Instant,
}

impl Relays {
    pub fn new(listeners: Vec<Listener>, target: Target) -> io::Result<Self> {
        Ok(Self {
            listeners,
            handshakes: target.tls.clone().map(Handshakes::new).transpose()?,
            target,
            threads: Vec::new(),
            connections: 0,
            next_refresh: Instant::now(),
        })
    }

    /// Runs until `stop` is readable.
    pub fn run(&mut self, stop: &Arc<UnixStream>, recorder: &Recorder) -> io::Result<()> {
        while !self.wait(stop)? {
            for index in 0..self.listeners.len() {
                self.accept_all(index, stop, recorder);
            }
            self.finish_handshakes(stop, recorder);
            self.threads.retain(|thread| !thread.is_finished());
            if Instant::now() >= self.next_refresh {
                self.refresh();
            }
        }
        Ok(())
    }

    /// Waits for the threads, which stop, too. Returns the number of connections.
    pub fn finish(self) -> u64 {
        for thread in self.threads {
            // A panic was told where it happened.
            let _ = thread.join();
        }
        self.connections.into()
    }

    /// Waits for something to do; returns whether that is to stop.
    fn wait(&self, stop: &UnixStream) -> io::Result<bool> {
        let mut fds = vec![PollFd::from_borrowed_fd(stop.as_fd(), PollFlags::IN)];
        let listeners = self.listeners.iter();
        fds.extend(listeners.map(|listener| PollFd::new(listener, PollFlags::IN)));
        let handshakes = self.handshakes.iter();
        fds.extend(handshakes.map(|handshakes| PollFd::new(handshakes, PollFlags::IN)));
        let timeout = Timespec {
            tv_sec: REFRESH_INTERVAL.as_secs() as i64,
            tv_nsec: 0,
        };
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) => Ok(!fds[0].revents().is_empty()),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn accept_all(&mut self, index: usize, stop: &Arc<UnixStream>, recorder: &Recorder) {
        loop {
            let listener = &self.listeners[index];
            let is_tls = listener.address().is_tls();
            let (socket, peer) = match listener.accept() {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => {
                    urtica_log::warn!(about: "accepting", %error, "a connection cannot be accepted");
                    // Out of file descriptors: the next look is after a pause.
                    return std::thread::sleep(Duration::from_millis(100));
                }
            };
            match &mut self.handshakes {
                Some(handshakes) if is_tls => handshakes.accept(socket, peer, Instant::now()),
                _ => self.begin(socket.into(), peer, stop, recorder),
            }
        }
    }

    fn finish_handshakes(&mut self, stop: &Arc<UnixStream>, recorder: &Recorder) {
        let Some(handshakes) = &mut self.handshakes else {
            return;
        };
        for Ended { peer, outcome, .. } in handshakes.poll(Instant::now()) {
            match outcome {
                Ok(stream) => self.begin(stream, peer, stop, recorder),
                Err(reason) if reason.is_noise() => {}
                Err(reason) => {
                    urtica_log::warn!(about: "TLS", peer, %reason, "connection refused");
                }
            }
        }
    }

    fn begin(&mut self, switch: Stream, peer: String, stop: &Arc<UnixStream>, recorder: &Recorder) {
        self.threads.retain(|thread| !thread.is_finished());
        if self.threads.len() >= CONNECTIONS_MAX {
            urtica_log::warn!(about: "connections", peer, "connection refused: {CONNECTIONS_MAX} are relayed already");
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
                urtica_log::warn!(about: "connections", %error, "connection refused: no thread for it");
            }
        }
    }

    /// Takes up files for TLS that have changed.
    fn refresh(&mut self) {
        self.next_refresh = Instant::now() + REFRESH_INTERVAL;
        let now = SystemTime::now();
        if let Some(tls) = &mut self.target.tls {
            tls.refresh(now);
        }
        let handshakes = self.handshakes.as_mut();
        for notice in handshakes.map_or(Vec::new(), |handshakes| handshakes.refresh(now)) {
            match notice.is_warning() {
                true => tracing::warn!("{notice}"),
                false => tracing::info!("{notice}"),
            }
        }
    }
}
