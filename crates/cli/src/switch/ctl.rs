//! `urtica switch ctl`: queries and changes a running switch through its control socket.

use super::control::{
    Answer, ControlPlace, Controller, Counter, Flow, Port, QueueRow, Request, Show, Table,
    Templates,
};
use crate::status;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::Duration;
use urtica_wire::PortNo;

/// The maximum time for each part of the answer.
const PATIENCE: Duration = Duration::from_secs(90);

/// Options of `urtica switch ctl`.
#[derive(Debug, clap::Args)]
pub struct CtlArgs {
    #[command(flatten)]
    place: ControlPlace,
    /// Print the answer as JSON, one item per line.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    request: Request,
}

/// An error of a request to a switch.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("{0}")]
    NoPlace(String),
    #[error(
        "no switch answers at {file}: {error}; expected one that runs with this --control or --name"
    )]
    Connect { file: String, error: io::Error },
    #[error("the switch ended before it answered")]
    Ended,
    #[error("the switch's answer cannot be read: {0}")]
    Read(io::Error),
    #[error("unknown answer from the switch: {0}; expected a switch of the same version")]
    Unknown(#[from] serde_json::Error),
    #[error("{0}")]
    Refused(String),
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
}

/// Sends a request to the switch; the status is 1 if it refuses, or does not answer.
pub fn run(args: &CtlArgs) -> ExitCode {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let done = args.execute(&mut out).and_then(|()| Ok(out.flush()?));
    status::of_printed(done.map(|()| ExitCode::SUCCESS), |error| match error {
        Error::Output(error) => Some(error),
        _ => None,
    })
}

impl CtlArgs {
    fn execute(&self, out: &mut dyn Write) -> Result<(), Error> {
        let stream = self.connect()?;
        let mut line = serde_json::to_vec(&self.request)?;
        line.push(b'\n');
        (&stream).write_all(&line).map_err(Error::Read)?;
        let items = Items(BufReader::new(stream).lines());
        if self.json {
            return items
                .into_iter()
                .try_for_each(|item| Ok(writeln!(out, "{}", item?)?));
        }
        match &self.request {
            Request::Show => print(items, out, print_show),
            Request::Tables => print(items, out, print_table),
            Request::Flows { by_use: true, .. } => print_by_use(items, out),
            Request::Flows { .. } => {
                print(items, out, |flow: Flow, out| writeln!(out, "{}", flow.flow))
            }
            Request::Counters => print(items, out, print_counter),
            Request::Templates => print(items, out, |all: Templates, out| {
                write!(out, "{}", all.text)
            }),
            Request::AddPort { .. } => print(items, out, |number: u32, out| {
                writeln!(out, "port {number} added")
            }),
            Request::RemovePort { .. } => print(items, out, |number: u32, out| {
                writeln!(out, "port {number} removed")
            }),
            Request::SetQueue { queue, .. } => print(items, out, |number: u32, out| {
                let number = PortNo(number);
                writeln!(out, "queue {queue} of port {number} set")
            }),
            Request::DeleteQueue { queue, .. } => {
                print(items, out, |number: u32, out| match queue {
                    Some(queue) => {
                        writeln!(out, "queue {queue} of port {} deleted", PortNo(number))
                    }
                    None => writeln!(out, "all queues of port {} deleted", PortNo(number)),
                })
            }
            Request::SetQueueRate { .. } => print(items, out, |number: u32, out| {
                writeln!(out, "rate of port {} set", PortNo(number))
            }),
            Request::AddController { .. } | Request::RemoveController { .. } => {
                print(items, out, |_: Value, _| Ok(()))
            }
        }
    }

    fn connect(&self) -> Result<UnixStream, Error> {
        let file = self.place.file().map_err(Error::NoPlace)?;
        let cannot = |error| Error::Connect {
            file: file.display().to_string(),
            error,
        };
        let stream = UnixStream::connect(&file).map_err(cannot)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(cannot)?;
        Ok(stream)
    }
}

/// The items of an answer, up to its last line.
struct Items(io::Lines<BufReader<UnixStream>>);

impl Iterator for Items {
    type Item = Result<Value, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let line = match self.0.next() {
            None => return Some(Err(Error::Ended)),
            Some(Err(error)) => return Some(Err(Error::Read(error))),
            Some(Ok(line)) => line,
        };
        match serde_json::from_str(&line) {
            Ok(Answer::Item(item)) => Some(Ok(item)),
            Ok(Answer::Done(_)) => None,
            Ok(Answer::Error(sentence)) => Some(Err(Error::Refused(sentence))),
            Err(error) => Some(Err(error.into())),
        }
    }
}

/// Prints each item.
fn print<T: DeserializeOwned>(
    items: Items,
    out: &mut dyn Write,
    print: impl Fn(T, &mut dyn Write) -> io::Result<()>,
) -> Result<(), Error> {
    for item in items {
        print(serde_json::from_value(item?)?, out)?;
    }
    Ok(())
}

fn print_by_use(items: Items, out: &mut dyn Write) -> Result<(), Error> {
    let flows = items.map(|item| Ok(serde_json::from_value(item?)?));
    let mut flows: Vec<Flow> = flows.collect::<Result<_, Error>>()?;
    flows.sort_by_key(|flow| std::cmp::Reverse(flow.packets));
    for flow in flows {
        writeln!(out, "{}", flow.flow)?;
    }
    Ok(())
}

fn print_show(switch: Show, out: &mut dyn Write) -> io::Result<()> {
    let Show { name, dp_id, .. } = &switch;
    writeln!(
        out,
        "{name} dpid={dp_id} uptime={:.0}s",
        switch.uptime_seconds
    )?;
    writeln!(out, "ports:")?;
    switch
        .ports
        .iter()
        .try_for_each(|port| print_port(port, out))?;
    writeln!(out, "controllers:")?;
    switch
        .controllers
        .iter()
        .try_for_each(|controller| print_controller(controller, out))?;
    writeln!(out, "connections:")?;
    for connection in &switch.connections {
        write!(out, " {}", connection.peer)?;
        match (&connection.version, &connection.role) {
            (Some(version), Some(role)) => write!(out, " OpenFlow {version} role={role}")?,
            _ => write!(out, " before its hello")?,
        }
        writeln!(out, " for {:.0}s", connection.age_seconds)?;
    }
    Ok(())
}

fn print_port(port: &Port, out: &mut dyn Write) -> io::Result<()> {
    let state = match (port.is_enabled, port.has_link) {
        (false, _) => "off",
        (true, false) => "no link",
        (true, true) => "up",
    };
    writeln!(
        out,
        " {}({}): addr:{} {state}",
        PortNo(port.number),
        port.name,
        port.hw_addr
    )?;
    writeln!(
        out,
        "    rx pkts={}, bytes={}, drop={}, errs={}",
        port.rx_packets, port.rx_bytes, port.rx_dropped, port.rx_errors
    )?;
    writeln!(
        out,
        "    tx pkts={}, bytes={}, drop={}",
        port.tx_packets, port.tx_bytes, port.tx_dropped
    )?;
    if let Some(rate) = &port.queue_rate {
        writeln!(out, "    queues share {rate}")?;
    }
    let mut queues = port.queues.iter();
    queues.try_for_each(|queue| print_queue(queue, out))
}

fn print_queue(queue: &QueueRow, out: &mut dyn Write) -> io::Result<()> {
    let or_none = |rate: &Option<String>| rate.clone().unwrap_or_else(|| "none".into());
    writeln!(
        out,
        "    queue {}: min={}, max={}, priority={}; tx pkts={}, bytes={}, drop={}",
        queue.queue,
        or_none(&queue.min_rate),
        or_none(&queue.max_rate),
        queue.priority,
        queue.tx_packets,
        queue.tx_bytes,
        queue.tx_dropped
    )
}

fn print_controller(controller: &Controller, out: &mut dyn Write) -> io::Result<()> {
    write!(out, " {} {}", controller.address, controller.state)?;
    if let Some(seconds) = controller.retry_in_seconds {
        write!(out, ", tried again in {seconds:.1}s")?;
    }
    if let Some(reason) = &controller.last_failure {
        write!(out, " ({reason})")?;
    }
    writeln!(out)
}

fn print_table(table: Table, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        " table={}: active={}, max={}, lookup={}, matched={}",
        table.table, table.entries, table.max_entries, table.lookups, table.matched
    )
}

fn print_counter(counter: Counter, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "{:<20} {:>12}  {}",
        counter.cause, counter.packets, counter.meaning
    )
}
