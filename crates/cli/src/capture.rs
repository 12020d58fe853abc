//! `urtica capture`: records the OpenFlow channel, also under TLS.
//!
//! **Why a relay.** Under TLS a capture of packets shows nothing. A relay between switches and controller has the bytes in
//! plain, of any controller, and nothing of a controller's own way of a packet-in changes for it.
//!
//! **How.** Each connection has a thread (`relay`), which hands on what it reads and makes TCP segments of it (`transcript`); one
//! more thread writes them (`recorder`), and a disk that is slow delays nobody.

mod recorder;
mod relay;
pub mod transcript;

use crate::log::log_to_stderr;
use crate::say::complain;
use crate::status;
use pcap_file::PcapError;
use recorder::{Recorded, Recorder};
use relay::{Relay, Target};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsFd;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};
use urtica_socket::{
    Address, Ended, Handshakes, ListenError, Listener, Stream, Tls, TlsArgs, TlsArgsError,
};

/// How many connections are relayed at once.
const CONNECTIONS_MAX: usize = 1024;

/// How often files for TLS are looked at, which may have changed.
const REFRESH_INTERVAL: Duration = Duration::from_secs(1);

const EXAMPLES: &str = "\
Examples:
  urtica capture -w of.pcapng
  ovs-vsctl set-controller s1 tcp:127.0.0.1:6654      the switch now comes by way of the capture
  urtica capture -w - | tshark -r -
  urtica capture -w of.pcapng --listen pssl:6654 --controller ssl:127.0.0.1:6653 \\
      --private-key ctl-privkey.pem --certificate ctl-cert.pem --ca-cert cacert.pem

Ctrl-C ends it. The file can be read while it is written, by its owner only.";

/// Options of `urtica capture`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct CaptureArgs {
    /// The file to write, in pcapng form; - for standard output. A file that is there is written over.
    #[arg(short, long, value_name = "FILE")]
    write: PathBuf,
    /// Where switches connect: ptcp:, pssl: or punix:. May be repeated.
    #[arg(long, value_name = "ADDR", default_value = "ptcp:6654:127.0.0.1")]
    listen: Vec<Address>,
    /// The controller: tcp:HOST:PORT, ssl:HOST:PORT or unix:FILE.
    #[arg(long, value_name = "ADDR", default_value = "tcp:127.0.0.1:6653")]
    controller: Address,
    #[command(flatten)]
    tls: TlsArgs,
}

/// Relays and records until it is interrupted.
pub fn run(args: CaptureArgs) -> ExitCode {
    log_to_stderr();
    status::of(capture(args))
}

/// Why nothing could be recorded, or not all.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(
        "--controller {0} is a place to listen at; expected one to connect to, such as tcp:HOST:PORT, ssl:HOST:PORT or unix:FILE"
    )]
    Passive(Address),
    #[error("{0}")]
    Listen(#[from] ListenError),
    #[error(transparent)]
    Tls(#[from] TlsArgsError),
    #[error("cannot write {path}: {error}")]
    File { path: String, error: PcapError },
    #[error("{0}")]
    Io(#[from] io::Error),
}

fn capture(args: CaptureArgs) -> Result<(), Error> {
    if args.controller.is_passive() {
        return Err(Error::Passive(args.controller));
    }
    let tls = args
        .tls
        .load_for(args.listen.iter().chain([&args.controller]))?;
    let path = match args.write.to_str() {
        Some("-") => "standard output".to_owned(),
        _ => args.write.display().to_string(),
    };
    let failed = |error| {
        let path = path.clone();
        Error::File { path, error }
    };
    let listeners: Result<Vec<_>, _> = args.listen.iter().map(Listener::bind).collect();
    let listeners = listeners?;
    let stop = stop_on_signals()?;
    let out = recorder::create(&args.write).map_err(|error| failed(PcapError::IoError(error)))?;
    let (recorder, writing) = recorder::start(out).map_err(failed)?;
    for listener in &listeners {
        tracing::info!(
            switches_at = %listener.address(),
            controller = %args.controller,
            file = path,
            "recording"
        );
    }
    let target = Target {
        address: args.controller,
        tls: tls.clone(),
    };
    let mut relays = Relays::new(listeners, target, tls, stop)?;
    let ended = relays.run(&recorder);
    let connections = relays.finish();
    drop(recorder);
    let recorded = writing.finish();
    tell(&recorded, connections, &path);
    ended?;
    recorded.written.map(drop).map_err(failed)
}

fn tell(recorded: &Recorded, connections: u64, path: &str) {
    if let Ok(packets) = &recorded.written {
        complain(format_args!(
            "{path}: {packets} packets of {connections} connections; {} left out, which could not be written in time",
            recorded.dropped
        ));
    }
}

/// Becomes readable, and stays so, at the first SIGINT or SIGTERM. Another one ends the program at once, where it is stuck.
fn stop_on_signals() -> io::Result<Arc<UnixStream>> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let (stop, write) = UnixStream::pair()?;
    let has_come = Arc::<std::sync::atomic::AtomicBool>::default();
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 1, Arc::clone(&has_come))?;
        signal_hook::flag::register(signal, Arc::clone(&has_come))?;
        signal_hook::low_level::pipe::register(signal, write.try_clone()?)?;
    }
    Ok(Arc::new(stop))
}

/// Accepts switches, and has a thread for each.
struct Relays {
    listeners: Vec<Listener>,
    handshakes: Option<Handshakes>,
    target: Target,
    stop: Arc<UnixStream>,
    threads: Vec<JoinHandle<()>>,
    connections: u32,
    next_refresh: Instant,
}

impl Relays {
    fn new(
        listeners: Vec<Listener>,
        target: Target,
        tls: Option<Tls>,
        stop: Arc<UnixStream>,
    ) -> io::Result<Self> {
        Ok(Self {
            listeners,
            handshakes: tls.map(Handshakes::new).transpose()?,
            target,
            stop,
            threads: Vec::new(),
            connections: 0,
            next_refresh: Instant::now(),
        })
    }

    /// Runs until it is to stop.
    fn run(&mut self, recorder: &Recorder) -> io::Result<()> {
        while !self.wait()? {
            for index in 0..self.listeners.len() {
                self.accept_all(index, recorder);
            }
            self.finish_handshakes(recorder);
            self.threads.retain(|thread| !thread.is_finished());
            if Instant::now() >= self.next_refresh {
                self.refresh();
            }
        }
        Ok(())
    }

    /// Waits for the threads, which stop, too. Returns how many connections there were.
    fn finish(self) -> u64 {
        for thread in self.threads {
            // A panic was told where it happened.
            let _ = thread.join();
        }
        self.connections.into()
    }

    /// Waits for something to do; returns whether that is to stop.
    fn wait(&self) -> io::Result<bool> {
        let mut fds = vec![PollFd::from_borrowed_fd(self.stop.as_fd(), PollFlags::IN)];
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

    fn accept_all(&mut self, index: usize, recorder: &Recorder) {
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
                _ => self.begin(socket.into(), peer, recorder),
            }
        }
    }

    fn finish_handshakes(&mut self, recorder: &Recorder) {
        let Some(handshakes) = &mut self.handshakes else {
            return;
        };
        for Ended { peer, outcome, .. } in handshakes.poll(Instant::now()) {
            match outcome {
                Ok(stream) => self.begin(stream, peer, recorder),
                Err(reason) if reason.is_noise() => {}
                Err(reason) => {
                    urtica_log::warn!(about: "TLS", peer, %reason, "connection refused");
                }
            }
        }
    }

    fn begin(&mut self, switch: Stream, peer: String, recorder: &Recorder) {
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
            stop: Arc::clone(&self.stop),
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
