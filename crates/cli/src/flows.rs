//! `urtica flows`: queries and changes a switch, in the syntax of `ovs-ofctl`.

mod rows;

use crate::status;
use rows::one_line_each;
use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use urtica_client::{Client, ClientError, PortNames, Refusal, SwitchName, hint};
use urtica_socket::{Tls, TlsArgs};
use urtica_wire::text::{ParseError, message};
use urtica_wire::{
    FlowMod, FlowModCommand, FlowStatsRequest, GROUP_ALL, GroupMod, GroupModCommand, METER_ALL,
    Message, MeterMod, MeterModCommand, MultipartReplyBody, MultipartRequestBody, PortNo, Version,
};

/// The maximum number of changes sent before waiting for the switch: its error messages must fit into the sockets' buffers,
/// or both sides would wait for each other.
const CHANGES_PER_BARRIER: usize = 1000;

/// Options of `urtica flows`.
#[derive(clap::Args)]
pub struct FlowsArgs {
    /// Use only this version of OpenFlow: 1.0 or 1.3. May be repeated [default: the highest that the switch supports].
    #[arg(short = 'O', long, value_name = "VERSION", global = true)]
    openflow: Vec<Version>,
    /// Maximum seconds for a reply, from the request to its last byte.
    #[arg(long, value_name = "SECONDS", default_value_t = 10, global = true)]
    timeout: u64,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// Print the switch's description and ports.
    Show(Target),
    /// Print the flow entries, or only entries within MATCH, which may also name a table.
    #[command(visible_alias = "dump-flows")]
    Dump {
        #[command(flatten)]
        target: Target,
        /// A match, as in 'table=0,tcp,in_port=1'.
        #[arg(value_name = "MATCH")]
        flow: Option<String>,
    },
    /// Add flow entries.
    #[command(visible_alias = "add-flow")]
    Add(Changes),
    /// Change the actions of the flow entries within a flow's match.
    #[command(visible_alias = "mod-flows")]
    Mod(EntryChanges),
    /// Delete the flow entries within a flow's match; without one, all.
    #[command(visible_alias = "del-flows")]
    Del(EntryChanges),
    /// Print the counters of tables.
    DumpTables(Target),
    /// Print the counters of all ports, or of one.
    DumpPorts {
        #[command(flatten)]
        target: Target,
        /// The port's number or name.
        #[arg(value_name = "PORT")]
        port: Option<String>,
    },
    /// Print groups and their counters.
    DumpGroups(Target),
    /// Add groups.
    AddGroup(Changes),
    /// Change groups.
    ModGroup(Changes),
    /// Delete a group; without one, all.
    DelGroups(Changes),
    /// Print meters and their counters.
    DumpMeters(Target),
    /// Add meters.
    AddMeter(Changes),
    /// Change meters.
    ModMeter(Changes),
    /// Delete a meter; without one, all.
    DelMeters(Changes),
}

#[derive(clap::Args)]
struct Target {
    /// The switch: tcp:HOST[:PORT], ssl:HOST[:PORT], unix:FILE, or the name of an Open vSwitch bridge on this machine.
    #[arg(value_name = "SWITCH")]
    switch: SwitchName,
    #[command(flatten)]
    tls: TlsArgs,
}

#[derive(clap::Args)]
struct Changes {
    #[command(flatten)]
    target: Target,
    /// Entries to add, change or delete, as in 'priority=10,in_port=1,actions=output:2'.
    #[arg(value_name = "TEXT")]
    texts: Vec<String>,
    /// Read more from this file, one per line; - for standard input. Blank lines and lines that start with # are
    /// ignored.
    #[arg(short, long, value_name = "FILE|-")]
    file: Option<PathBuf>,
}

#[derive(clap::Args)]
struct EntryChanges {
    #[command(flatten)]
    changes: Changes,
    /// Change or delete only the flow entry with exactly this match and priority.
    #[arg(long)]
    strict: bool,
}

/// Why the command failed.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("{place}: {error}")]
    Parse { place: String, error: ParseError },
    #[error(
        "{place}: {error}; if it is a port's name, its number cannot be read from the switch: {reason}"
    )]
    NoNames {
        place: String,
        error: ParseError,
        reason: Box<ClientError>,
    },
    #[error(
        "the switch has no port '{0}'; expected a port's number or name, as urtica flows show prints them"
    )]
    NoPort(String),
    #[error("{path}: {error}")]
    File { path: String, error: io::Error },
    #[error("nothing to {0}; expected an entry or --file")]
    Nothing(&'static str),
    #[error("{}", refusals(.0))]
    Refused(Vec<(String, Refusal)>),
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
}

/// Formats the first errors in full, and the number of the others.
fn refusals(all: &[(String, Refusal)]) -> String {
    const TOLD: usize = 10;
    let told = all.iter().take(TOLD);
    let mut lines: Vec<_> = told
        .map(|(text, refusal)| {
            let code = refusal.code;
            format!("the switch refused '{text}': {code}{}", hint(code))
        })
        .collect();
    if all.len() > TOLD {
        lines.push(format!("and {} more", all.len() - TOLD));
    }
    lines.join("\n")
}

/// Runs the sub-command; the exit status is 1 if the switch refused anything.
pub fn run(args: FlowsArgs) -> ExitCode {
    let done = args.execute(&mut io::stdout().lock());
    status::of_printed(done.map(|()| ExitCode::SUCCESS), |error| match error {
        Error::Output(error) => Some(error),
        _ => None,
    })
}

impl FlowsArgs {
    fn execute(&self, out: &mut dyn Write) -> Result<(), Error> {
        match &self.verb {
            Verb::Show(target) => show(&mut self.connect(target)?, out),
            Verb::Dump { target, flow } => {
                let text = flow.clone().unwrap_or_default();
                let text = vec![(format!("'{text}'"), text)];
                let (mut client, requests) = self.parse_all(target, text, flow_stats_request)?;
                for (_, request) in requests {
                    dump(&mut client, request, out)?;
                }
                Ok(())
            }
            Verb::DumpTables(target) => self.print(target, [MultipartRequestBody::Table], out),
            Verb::DumpPorts { target, port } => {
                let mut client = self.connect(target)?;
                let port = match port {
                    None => PortNo::ANY,
                    Some(name) => port_of(&mut client, name)?,
                };
                print_all(&mut client, [MultipartRequestBody::PortStats(port)], out)
            }
            Verb::DumpGroups(target) => {
                let what = [
                    MultipartRequestBody::GroupDesc,
                    MultipartRequestBody::Group(GROUP_ALL),
                ];
                self.print(target, what, out)
            }
            Verb::DumpMeters(target) => {
                let what = [
                    MultipartRequestBody::MeterConfig(METER_ALL),
                    MultipartRequestBody::Meter(METER_ALL),
                ];
                self.print(target, what, out)
            }
            Verb::Add(changes) => {
                self.change(changes, "add", |text| flow(FlowModCommand::Add, text))
            }
            Verb::Mod(EntryChanges { changes, strict }) => {
                let command = match strict {
                    true => FlowModCommand::ModifyStrict,
                    false => FlowModCommand::Modify,
                };
                self.change(changes, "change", |text| flow(command, text))
            }
            Verb::Del(EntryChanges { changes, strict }) => {
                let command = match strict {
                    true => FlowModCommand::DeleteStrict,
                    false => FlowModCommand::Delete,
                };
                self.change_or_all(changes, "", |text| flow(command, text))
            }
            Verb::AddGroup(changes) => {
                self.change(changes, "add", |text| group(GroupModCommand::Add, text))
            }
            Verb::ModGroup(changes) => self.change(changes, "change", |text| {
                group(GroupModCommand::Modify, text)
            }),
            Verb::DelGroups(changes) => self.change_or_all(changes, "group_id=all", |text| {
                group(GroupModCommand::Delete, text)
            }),
            Verb::AddMeter(changes) => {
                self.change(changes, "add", |text| meter(MeterModCommand::Add, text))
            }
            Verb::ModMeter(changes) => self.change(changes, "change", |text| {
                meter(MeterModCommand::Modify, text)
            }),
            Verb::DelMeters(changes) => self.change_or_all(changes, "meter=all", |text| {
                meter(MeterModCommand::Delete, text)
            }),
        }
    }

    fn connect(&self, target: &Target) -> Result<Client, ClientError> {
        let timeout = Duration::from_secs(self.timeout.max(1));
        let tls = target.tls.config().map(Tls::load).transpose()?;
        let address = target.switch.address();
        Client::connect(address, tls.as_ref(), &self.openflow, timeout)
    }

    /// Prints the switch's reply to each of these requests.
    fn print<const N: usize>(
        &self,
        target: &Target,
        questions: [MultipartRequestBody; N],
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        print_all(&mut self.connect(target)?, questions, out)
    }

    fn change(
        &self,
        changes: &Changes,
        verb: &'static str,
        parse: impl Fn(&str) -> Result<Message<'static>, ParseError>,
    ) -> Result<(), Error> {
        let texts = changes.all_texts()?;
        if texts.is_empty() {
            return Err(Error::Nothing(verb));
        }
        let (mut client, messages) = self.parse_all(&changes.target, texts, parse)?;
        send_all(&mut client, &messages)
    }

    /// Like `change`, with `all` if `texts` is empty.
    fn change_or_all(
        &self,
        changes: &Changes,
        all: &str,
        parse: impl Fn(&str) -> Result<Message<'static>, ParseError>,
    ) -> Result<(), Error> {
        let mut texts = changes.all_texts()?;
        if texts.is_empty() && changes.file.is_none() {
            texts.push(("all".to_owned(), all.to_owned()));
        }
        let (mut client, messages) = self.parse_all(&changes.target, texts, parse)?;
        send_all(&mut client, &messages)
    }

    /// Parses the arguments. Returns them with their texts, and a connection, opened early only if an argument has a
    /// port's name.
    fn parse_all<T>(
        &self,
        target: &Target,
        texts: Vec<(String, String)>,
        parse: impl Fn(&str) -> Result<T, ParseError>,
    ) -> Result<(Client, Vec<(String, T)>), Error> {
        let mut asked = None;
        let mut all = Vec::with_capacity(texts.len());
        for (place, text) in texts {
            let parsed = match parse(text.trim()) {
                Err(error) if error.may_be_a_port() => {
                    if asked.is_none() {
                        asked = Some(self.ask_names(target).map_err(|reason| Error::NoNames {
                            place: place.clone(),
                            error,
                            reason: Box::new(reason),
                        })?);
                    }
                    let names = asked.as_ref().map(|(_, names)| names);
                    parse_named(names, place, text.trim(), &parse)?
                }
                parsed => parsed.map_err(|error| Error::Parse { place, error })?,
            };
            all.push((text, parsed));
        }
        match asked {
            Some((client, _)) => Ok((client, all)),
            None => Ok((self.connect(target)?, all)),
        }
    }

    fn ask_names(&self, target: &Target) -> Result<(Client, PortNames), ClientError> {
        let mut client = self.connect(target)?;
        let names = PortNames::query(&mut client)?;
        Ok((client, names))
    }
}

impl Changes {
    /// Returns the changes, each with its position in the input.
    fn all_texts(&self) -> Result<Vec<(String, String)>, Error> {
        let mut texts: Vec<_> = self
            .texts
            .iter()
            .map(|text| (format!("'{text}'"), text.clone()))
            .collect();
        if let Some(path) = &self.file {
            let name = path.display().to_string();
            let lines = read_lines(path).map_err(|error| Error::File {
                path: name.clone(),
                error,
            })?;
            let numbered = lines.into_iter().enumerate();
            let meant = numbered.filter(|(_, line)| {
                let line = line.trim();
                !line.is_empty() && !line.starts_with('#')
            });
            texts.extend(meant.map(|(index, line)| (format!("{name}:{}", index + 1), line)));
        }
        Ok(texts)
    }
}

fn read_lines(path: &Path) -> io::Result<Vec<String>> {
    if path == Path::new("-") {
        return io::stdin().lock().lines().collect();
    }
    BufReader::new(std::fs::File::open(path)?).lines().collect()
}

fn flow(command: FlowModCommand, text: &str) -> Result<Message<'static>, ParseError> {
    FlowMod::parse(command, text).map(Message::FlowMod)
}

fn group(command: GroupModCommand, text: &str) -> Result<Message<'static>, ParseError> {
    GroupMod::parse(command, text).map(Message::GroupMod)
}

fn meter(command: MeterModCommand, text: &str) -> Result<Message<'static>, ParseError> {
    MeterMod::parse(command, text).map(Message::MeterMod)
}

/// Sends changes and waits until the switch has applied or refused them.
fn send_all(client: &mut Client, changes: &[(String, Message)]) -> Result<(), Error> {
    let mut refused = Vec::new();
    for batch in changes.chunks(CHANGES_PER_BARRIER) {
        let mut texts = HashMap::new();
        for (text, change) in batch {
            texts.insert(client.send(change)?, text);
        }
        for refusal in client.barrier()? {
            let text = texts.get(&refusal.xid).map_or("?", |text| text);
            refused.push((text.to_owned(), refusal));
        }
    }
    match refused.is_empty() {
        true => Ok(()),
        false => Err(Error::Refused(refused)),
    }
}

fn show(client: &mut Client, out: &mut dyn Write) -> Result<(), Error> {
    let features = client.request(&Message::FeaturesRequest)?;
    print_frame(&features, out)?;
    // In 1.0, the features reply describes the ports.
    if client.version() == Version::Of13 {
        for frame in client.multipart(MultipartRequestBody::PortDesc)? {
            print_frame(&frame, out)?;
        }
    }
    let config = client.request(&Message::GetConfigRequest)?;
    print_frame(&config, out)
}

/// Parses a text that may contain port names.
fn parse_named<T>(
    names: Option<&PortNames>,
    place: String,
    text: &str,
    parse: impl Fn(&str) -> Result<T, ParseError>,
) -> Result<T, Error> {
    let (numbered, parsed) = match names {
        Some(names) => names.parse(text, parse),
        None => (text.to_owned(), parse(text)),
    };
    // Columns refer to the text after substitution.
    let place = match numbered == text {
        true => place,
        false => format!("{place}, which is '{numbered}'"),
    };
    parsed.map_err(|error| Error::Parse { place, error })
}

/// Returns the port with this number or name.
fn port_of(client: &mut Client, name: &str) -> Result<PortNo, Error> {
    if let Ok(port) = name.parse() {
        return Ok(port);
    }
    let names = PortNames::query(client)?;
    names
        .port(name)
        .ok_or_else(|| Error::NoPort(name.to_owned()))
}

/// Prints the switch's reply to each of these requests.
fn print_all<const N: usize>(
    client: &mut Client,
    questions: [MultipartRequestBody; N],
    out: &mut dyn Write,
) -> Result<(), Error> {
    for question in questions {
        for frame in client.multipart(question)? {
            print_frame(&frame, out)?;
        }
    }
    Ok(())
}

/// Returns a request for the entries that a text describes: a flow without actions.
fn flow_stats_request(text: &str) -> Result<FlowStatsRequest<'static>, ParseError> {
    let flow = FlowMod::parse(FlowModCommand::Delete, text)?;
    Ok(FlowStatsRequest {
        table_id: flow.table_id,
        out_port: flow.out_port,
        out_group: flow.out_group,
        cookie: flow.cookie,
        cookie_mask: flow.cookie_mask,
        match_: flow.match_,
    })
}

fn dump(client: &mut Client, request: FlowStatsRequest, out: &mut dyn Write) -> Result<(), Error> {
    for frame in client.multipart(MultipartRequestBody::Flow(request))? {
        let (_, message) = Message::decode(&frame).map_err(ClientError::from)?;
        if let Message::MultipartReply(reply) = message {
            if let MultipartReplyBody::Flow(entries) = reply.body {
                for entry in entries.iter() {
                    writeln!(out, "{entry}")?;
                }
            }
        }
    }
    Ok(())
}

fn print_frame(frame: &[u8], out: &mut dyn Write) -> Result<(), Error> {
    let (header, decoded) = Message::decode(frame).map_err(ClientError::from)?;
    let text = format!("{:#}", message(&header, &decoded));
    writeln!(out, "{}", one_line_each(&text))?;
    Ok(())
}
