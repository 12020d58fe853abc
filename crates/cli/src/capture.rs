//! `urtica capture`: records the OpenFlow channel, also under TLS.

use crate::log::log_to_stderr;
use crate::say::{UntilUnread, complain};
use crate::status;
use std::io::{self, IsTerminal, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use urtica_recordings::capture::{Capture, CaptureError, Recorded, create_private};
use urtica_socket::{Address, TlsArgs, TlsArgsError};

const EXAMPLES: &str = "\
Examples:
  urtica capture -w of.pcapng
  ovs-vsctl set-controller s1 tcp:127.0.0.1:6654      the switch now connects through the capture
  urtica capture -w - | tshark -r -
  urtica capture -w of.pcapng --listen pssl:6654 --controller ssl:127.0.0.1:6653 \\
      --private-key ctl-privkey.pem --certificate ctl-cert.pem --ca-cert switchca.pem \\
      --controller-private-key sw-privkey.pem --controller-certificate sw-cert.pem --controller-ca-cert controllerca.pem

Ctrl-C ends it. The file can be read while it is written, by its owner only.";

/// Options of `urtica capture`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct CaptureArgs {
    /// The pcapng file to write, replacing an existing one; - for standard output.
    #[arg(short, long, value_name = "FILE")]
    write: PathBuf,
    /// Address that switches connect to: ptcp:, pssl: or punix:. May be repeated.
    #[arg(long, value_name = "ADDR", default_value = "ptcp:6654:127.0.0.1")]
    listen: Vec<Address>,
    /// The controller: tcp:HOST:PORT, ssl:HOST:PORT or unix:FILE.
    #[arg(long, value_name = "ADDR", default_value = "tcp:127.0.0.1:6653")]
    controller: Address,
    #[command(flatten)]
    tls: TlsArgs,
    #[command(flatten)]
    controller_tls: ControllerTlsArgs,
}

/// Files for TLS with the controller. Like `ovs-pki`, many have a CA for switches and another for controllers, and the capture is a
/// controller to switches and a switch to the controller.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "TLS with the controller, if its files differ")]
struct ControllerTlsArgs {
    /// Private key
    #[arg(long, value_name = "FILE", requires_all = ["controller_certificate", "controller_ca_cert"])]
    controller_private_key: Option<PathBuf>,
    /// Certificate, signed by the CA that the controller expects of switches
    #[arg(long, value_name = "FILE", requires_all = ["controller_private_key", "controller_ca_cert"])]
    controller_certificate: Option<PathBuf>,
    /// CA certificates that sign the controller's certificate
    #[arg(long, value_name = "FILE", requires_all = ["controller_private_key", "controller_certificate"])]
    controller_ca_cert: Option<PathBuf>,
}

impl ControllerTlsArgs {
    /// Returns the files given on the command line, if any.
    fn tls_args(self) -> Option<TlsArgs> {
        self.controller_private_key.is_some().then(|| TlsArgs {
            private_key: self.controller_private_key,
            certificate: self.controller_certificate,
            ca_cert: self.controller_ca_cert,
            ..TlsArgs::default()
        })
    }
}

/// Relays and records until it is interrupted.
pub fn run(args: CaptureArgs) -> ExitCode {
    log_to_stderr();
    status::of(capture(args))
}

/// An error that prevents or ends a recording.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(
        "--controller {0} is an address to listen on; expected one to connect to, such as tcp:HOST:PORT, ssl:HOST:PORT \
         or unix:FILE"
    )]
    Passive(Address),
    #[error("{0}")]
    Listen(#[from] CaptureError),
    #[error(transparent)]
    Tls(#[from] TlsArgsError),
    #[error("cannot write {path}: {error}")]
    File { path: String, error: io::Error },
    #[error("{0}")]
    Io(#[from] io::Error),
}

fn capture(args: CaptureArgs) -> Result<(), Error> {
    if args.controller.is_passive() {
        return Err(Error::Passive(args.controller));
    }
    let controller_tls = args.controller_tls.tls_args();
    let controller_tls = match &controller_tls {
        Some(files) => files.load_for([&args.controller])?,
        None => None,
    };
    let others = controller_tls.is_none().then_some(&args.controller);
    let tls = args.tls.load_for(args.listen.iter().chain(others))?;
    let path = match args.write.to_str() {
        Some("-") => "standard output".to_owned(),
        _ => args.write.display().to_string(),
    };
    let failed = |error| Error::File {
        path: path.clone(),
        error,
    };
    let capture = Capture::bind(&args.listen, args.controller.clone(), tls, controller_tls)?;
    let stop = stop_on_signals()?;
    let at: Vec<_> = capture.addresses().cloned().collect();
    let out = create(&args.write).map_err(failed)?;
    let recording = capture.start(out).map_err(failed)?;
    for switches_at in at {
        tracing::info!(%switches_at, controller = %args.controller, file = path, "recording");
    }
    let recorded = recording.run(stop);
    tell(&recorded, &path);
    recorded.ended?;
    recorded.written.map(drop).map_err(failed)
}

/// Creates the file, or returns standard output for `-`. If the reader closes the pipe, the program ends.
fn create(path: &Path) -> io::Result<Box<dyn Write + Send>> {
    if path.as_os_str() != "-" {
        return Ok(Box::new(UntilUnread(create_private(path)?)));
    }
    let out = io::stdout();
    match out.is_terminal() {
        true => Err(io::Error::other(
            "standard output is a terminal; expected a pipe, as in `| tshark -r -`",
        )),
        false => Ok(Box::new(UntilUnread(out))),
    }
}

fn tell(recorded: &Recorded, path: &str) {
    if let Ok(packets) = &recorded.written {
        complain(format_args!(
            "{path}: {packets} packets of {} connections; {} skipped because the disk was too slow",
            recorded.connections, recorded.dropped
        ));
    }
}

/// Returns a socket that becomes and stays readable at the first SIGINT or SIGTERM. A second signal ends a stuck
/// program at once.
fn stop_on_signals() -> io::Result<UnixStream> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let (stop, write) = UnixStream::pair()?;
    let has_come = Arc::<std::sync::atomic::AtomicBool>::default();
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 1, Arc::clone(&has_come))?;
        signal_hook::flag::register(signal, Arc::clone(&has_come))?;
        signal_hook::low_level::pipe::register(signal, write.try_clone()?)?;
    }
    Ok(stop)
}
