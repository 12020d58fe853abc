//! `urtica flows`: looks into a switch and changes it, in the words of `ovs-ofctl`.

pub mod client;

use crate::status;
use client::{Client, ClientError, Refusal};
use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;
use urtica_wire::text::{ParseError, message};
use urtica_wire::{
    Address, AddressError, FlowMod, FlowModCommand, FlowStatsRequest, GROUP_ALL, GroupMod,
    GroupModCommand, METER_ALL, Message, MeterMod, MeterModCommand, MultipartReplyBody,
    MultipartRequestBody, PortNo, Version,
};

/// How many changes are sent before the switch is asked whether it keeps up: what it refuses of them must fit into
/// the sockets' buffers, or both sides would wait for each other.
const CHANGES_PER_BARRIER: usize = 1000;

/// Where Open vSwitch has the sockets of its bridges.
const OVS_RUN_DIR: &str = "/var/run/openvswitch";

/// Options of `urtica flows`.
#[derive(clap::Args)]
pub struct FlowsArgs {
    /// Speak only this version of OpenFlow: 1.0 or 1.3. May be repeated [default: the highest that the switch speaks].
    #[arg(short = 'O', long, value_name = "VERSION", global = true)]
    openflow: Vec<Version>,
    /// How many seconds to wait for an answer.
    #[arg(long, value_name = "SECONDS", default_value_t = 10, global = true)]
    timeout: u64,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// Who the switch is, and its ports.
    Show(Target),
    /// The flow entries, or those that MATCH includes, which may name a table as well.
    Dump {
        #[command(flatten)]
        target: Target,
        /// As in 'table=0,tcp,in_port=1'.
        #[arg(value_name = "MATCH")]
        flow: Option<String>,
    },
    /// Adds flow entries.
    Add(Changes),
    /// Changes the actions of the flow entries that a flow's match includes.
    Mod(EntryChanges),
    /// Deletes the flow entries that a flow's match includes; without one, all.
    Del(EntryChanges),
    /// What tables count.
    DumpTables(Target),
    /// What ports count.
    DumpPorts(Target),
    /// Groups, and what they count.
    DumpGroups(Target),
    /// Adds groups.
    AddGroup(Changes),
    /// Changes groups.
    ModGroup(Changes),
    /// Deletes a group; without one, all.
    DelGroups(Changes),
    /// Meters, and what they count.
    DumpMeters(Target),
    /// Adds meters.
    AddMeter(Changes),
    /// Changes meters.
    ModMeter(Changes),
    /// Deletes a meter; without one, all.
    DelMeters(Changes),
}

#[derive(clap::Args)]
struct Target {
    /// The switch: tcp:HOST[:PORT], unix:FILE, or the name of an Open vSwitch bridge on this machine.
    #[arg(value_name = "SWITCH")]
    switch: SwitchName,
}

#[derive(clap::Args)]
struct Changes {
    #[command(flatten)]
    target: Target,
    /// What to add, change or delete, as in 'priority=10,in_port=1,actions=output:2'.
    #[arg(value_name = "TEXT")]
    texts: Vec<String>,
    /// Read more from this file, one a line; - for standard input. Blank lines and lines that begin with # don't count.
    #[arg(short, long, value_name = "FILE|-")]
    file: Option<PathBuf>,
}

#[derive(clap::Args)]
struct EntryChanges {
    #[command(flatten)]
    changes: Changes,
    /// Only the flow entry with the very same match and priority.
    #[arg(long)]
    strict: bool,
}

/// A switch as it is named on the command line.
#[derive(Clone, Debug)]
pub struct SwitchName(Address);

impl SwitchName {
    /// Where to connect.
    pub fn address(&self) -> &Address {
        &self.0
    }
}

impl FromStr for SwitchName {
    type Err = AddressError;

    /// An address, or the name of a bridge that has its socket where Open vSwitch puts them.
    fn from_str(text: &str) -> Result<Self, AddressError> {
        let socket = Path::new(OVS_RUN_DIR).join(format!("{text}.mgmt"));
        if !text.contains([':', '/']) && socket.exists() {
            return Ok(Self(Address::Unix(socket)));
        }
        text.parse().map(Self)
    }
}

/// Why not everything was done.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("{place}: {error}")]
    Parse { place: String, error: ParseError },
    #[error("{path}: {error}")]
    File { path: String, error: io::Error },
    #[error("nothing to {0}; expected a text or --file")]
    Nothing(&'static str),
    #[error("{}", refusals(.0))]
    Refused(Vec<(String, Refusal)>),
    #[error("the output cannot be written: {0}")]
    Output(#[from] io::Error),
}

/// The first refusals in full, and how many more there were.
fn refusals(all: &[(String, Refusal)]) -> String {
    const TOLD: usize = 10;
    let told = all.iter().take(TOLD);
    let mut lines: Vec<_> = told
        .map(|(text, refusal)| format!("the switch refused '{text}': {}", refusal.code))
        .collect();
    if all.len() > TOLD {
        lines.push(format!("and {} more", all.len() - TOLD));
    }
    lines.join("\n")
}

/// Does what the verb says; the status is 1 where any of it was refused.
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
                let request = flow_stats_request(flow.as_deref().unwrap_or_default())?;
                dump(&mut self.connect(target)?, request, out)
            }
            Verb::DumpTables(target) => self.print(target, [MultipartRequestBody::Table], out),
            Verb::DumpPorts(target) => {
                self.print(target, [MultipartRequestBody::PortStats(PortNo::ANY)], out)
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

    fn connect(&self, target: &Target) -> Result<Client, Error> {
        let timeout = Duration::from_secs(self.timeout.max(1));
        Ok(Client::connect(
            target.switch.address(),
            &self.openflow,
            timeout,
        )?)
    }

    /// Prints what the switch answers to each of these questions.
    fn print<const N: usize>(
        &self,
        target: &Target,
        questions: [MultipartRequestBody; N],
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        let mut client = self.connect(target)?;
        for question in questions {
            for frame in client.multipart(question)? {
                print_frame(&frame, out)?;
            }
        }
        Ok(())
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
        let changes_made = parse_all(texts, parse)?;
        send_all(&mut self.connect(&changes.target)?, &changes_made)
    }

    /// The same where no text at all means `all`.
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
        let changes_made = parse_all(texts, parse)?;
        send_all(&mut self.connect(&changes.target)?, &changes_made)
    }
}

impl Changes {
    /// What is to be changed, each with where it stands.
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

fn parse_all(
    texts: Vec<(String, String)>,
    parse: impl Fn(&str) -> Result<Message<'static>, ParseError>,
) -> Result<Vec<(String, Message<'static>)>, Error> {
    let parsed = texts
        .into_iter()
        .map(|(place, text)| match parse(text.trim()) {
            Ok(message) => Ok((text, message)),
            Err(error) => Err(Error::Parse { place, error }),
        });
    parsed.collect()
}

/// Sends changes and waits until the switch has made them, or refused.
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
    // 1.0 tells its ports with the features.
    if client.version() == Version::Of13 {
        for frame in client.multipart(MultipartRequestBody::PortDesc)? {
            print_frame(&frame, out)?;
        }
    }
    let config = client.request(&Message::GetConfigRequest)?;
    print_frame(&config, out)
}

/// Which entries a text asks for: a flow without actions.
fn flow_stats_request(text: &str) -> Result<FlowStatsRequest<'static>, Error> {
    let parsed = FlowMod::parse(FlowModCommand::Delete, text);
    let flow = parsed.map_err(|error| Error::Parse {
        place: format!("'{text}'"),
        error,
    })?;
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
        if let Message::MultipartReply(reply) = message
            && let MultipartReplyBody::Flow(entries) = reply.body
        {
            for entry in entries.iter() {
                writeln!(out, "{entry}")?;
            }
        }
    }
    Ok(())
}

fn print_frame(frame: &[u8], out: &mut dyn Write) -> Result<(), Error> {
    let (header, decoded) = Message::decode(frame).map_err(ClientError::from)?;
    writeln!(out, "{}", message(&header, &decoded))?;
    Ok(())
}
