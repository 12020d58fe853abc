//! Loads the entries, groups, meters and ports of a switch, or of files, into a pipeline.

use crate::{Client, ClientError, hint};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::path::Path;
use std::time::Duration;
use urtica_pipeline::{Pipeline, PipelineConfig};
use urtica_wire::text::ParseError;
use urtica_wire::{
    Action, Bucket, ErrorCode, FlowMod, FlowModCommand, FlowStatsRequest, GroupMod,
    GroupModCommand, Instruction, List, METER_ALL, MacAddr, Message, MeterMod, MeterModCommand,
    MultipartReplyBody, MultipartRequestBody, Port, PortNo, Version,
};

/// The reason why a pipeline could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// A request to the switch failed.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// A file cannot be read.
    #[error("{path}: {error}")]
    File {
        /// The file.
        path: String,
        /// The system's error.
        error: std::io::Error,
    },
    /// A line of a file is not an entry, group or meter.
    #[error("{path}:{line}: {error}")]
    Parse {
        /// The file.
        path: String,
        /// The line's number, from 1.
        line: usize,
        /// The error in the line.
        error: ParseError,
    },
    /// An entry of the switch has a field or an action that OpenFlow does not define.
    #[error(
        "cannot trace the switch's entry '{text}': {error}; expected only fields and actions of OpenFlow itself"
    )]
    Foreign {
        /// The entry.
        text: String,
        /// The error in the entry.
        error: ParseError,
    },
    /// The pipeline refused an entry, group or meter.
    #[error("'{text}' cannot be part of a pipeline: {code}{}", hint(*.code))]
    Refused {
        /// The entry, group or meter.
        text: String,
        /// The pipeline's error.
        code: ErrorCode,
    },
}

/// Ports, entries, groups and meters to add to a pipeline.
#[derive(Clone, Default)]
pub struct Loader {
    ports: Vec<Port>,
    groups: Vec<GroupMod<'static>>,
    meters: Vec<MeterMod<'static>>,
    flows: Vec<FlowMod<'static>>,
    /// Whether a switch was queried in 1.0, whose entries have 1.0's semantics, and whose table misses are sent to the
    /// controller.
    is_of10: bool,
}

impl Loader {
    /// Loads the state of a switch.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn query(&mut self, client: &mut Client) -> Result<(), LoadError> {
        let features = client.request(&Message::FeaturesRequest)?;
        if let (_, Message::FeaturesReply(features)) = decode(&features)? {
            self.ports.extend(features.ports.iter());
        }
        self.query_part(
            client,
            MultipartRequestBody::Flow(FlowStatsRequest::default()),
        )?;
        self.is_of10 = client.version() == Version::Of10;
        if !self.is_of10 {
            self.query_part(client, MultipartRequestBody::PortDesc)?;
            self.query_part(client, MultipartRequestBody::GroupDesc)?;
            self.query_part(client, MultipartRequestBody::MeterConfig(METER_ALL))?;
        }
        Ok(())
    }

    /// Returns `true` if the entries are from a switch that was queried in 1.0.
    pub fn is_of10(&self) -> bool {
        self.is_of10
    }

    fn query_part(
        &mut self,
        client: &mut Client,
        what: MultipartRequestBody,
    ) -> Result<(), LoadError> {
        for frame in client.multipart(what)? {
            if let (_, Message::MultipartReply(reply)) = decode(&frame)? {
                self.add_reply(&reply.body)?;
            }
        }
        Ok(())
    }

    /// Creates a loader for a switch with these ports, whose state is added by [`Loader::add_reply`].
    pub fn of_switch(version: Version, ports: impl IntoIterator<Item = Port>) -> Self {
        Self {
            ports: ports.into_iter().collect(),
            is_of10: version == Version::Of10,
            ..Self::default()
        }
    }

    /// Loads the ports, entries, groups or meters of a reply; ignores other replies.
    ///
    /// # Errors
    /// [`LoadError::Foreign`].
    pub fn add_reply(&mut self, reply: &MultipartReplyBody) -> Result<(), LoadError> {
        match reply {
            MultipartReplyBody::PortDesc(ports) => self.ports.extend(ports.iter()),
            MultipartReplyBody::Flow(rows) => {
                for row in rows.iter() {
                    let add = |text: &str| FlowMod::parse(FlowModCommand::Add, text);
                    self.flows.push(owned(&row, add)?);
                }
            }
            MultipartReplyBody::GroupDesc(rows) => {
                for row in rows.iter() {
                    let described = GroupMod {
                        command: GroupModCommand::Add,
                        group_type: row.group_type,
                        group_id: row.group_id,
                        buckets: row.buckets,
                    };
                    let add = |text: &str| GroupMod::parse(GroupModCommand::Add, text);
                    self.groups.push(owned(&described, add)?);
                }
            }
            MultipartReplyBody::MeterConfig(rows) => {
                for row in rows.iter() {
                    let described = MeterMod {
                        command: MeterModCommand::Add,
                        flags: row.flags,
                        meter_id: row.meter_id,
                        bands: row.bands,
                    };
                    let add = |text: &str| MeterMod::parse(MeterModCommand::Add, text);
                    self.meters.push(owned(&described, add)?);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Loads a file with one entry, group or meter per line; `-` is standard input.
    ///
    /// # Errors
    /// [`LoadError::File`] or [`LoadError::Parse`].
    pub fn read(&mut self, path: &Path) -> Result<(), LoadError> {
        let name = path.display().to_string();
        let text = match path == Path::new("-") {
            true => std::io::read_to_string(std::io::stdin().lock()),
            false => std::fs::read_to_string(path),
        };
        let text = text.map_err(|error| LoadError::File {
            path: name.clone(),
            error,
        })?;
        for (index, line) in text.lines().enumerate() {
            self.read_line(line.trim())
                .map_err(|error| LoadError::Parse {
                    path: name.clone(),
                    line: index + 1,
                    error,
                })?;
        }
        Ok(())
    }

    /// Loads a line of such a file. Blank lines and comments are ignored.
    ///
    /// # Errors
    /// The error in the line.
    pub fn read_line(&mut self, line: &str) -> Result<(), ParseError> {
        if line.starts_with("group_id=") {
            self.groups
                .push(GroupMod::parse(GroupModCommand::Add, line)?);
        } else if line.starts_with("meter=") {
            self.meters
                .push(MeterMod::parse(MeterModCommand::Add, line)?);
        } else if !line.is_empty() && !line.starts_with('#') {
            self.flows.push(FlowMod::parse(FlowModCommand::Add, line)?);
        }
        Ok(())
    }

    /// Builds the pipeline, with all mentioned ports and the packet's ingress port, if any. These ports are up.
    ///
    /// # Errors
    /// [`LoadError::Refused`].
    pub fn finish(self, in_port: Option<PortNo>) -> Result<Pipeline, LoadError> {
        let mut pipeline = Pipeline::new(PipelineConfig::default());
        for port_no in self.mentioned_ports().into_iter().chain(in_port) {
            pipeline.set_port(port(port_no));
        }
        self.add_to(&mut pipeline)?;
        Ok(pipeline)
    }

    /// Adds everything loaded to a pipeline, which must have the mentioned ports.
    ///
    /// # Errors
    /// [`LoadError::Refused`].
    pub fn add_to(self, pipeline: &mut Pipeline) -> Result<(), LoadError> {
        for (port_no, queues) in self.mentioned_queues() {
            pipeline.set_queues(port_no, queues);
        }
        self.ports
            .into_iter()
            .for_each(|port| pipeline.set_port(port));
        pipeline.set_misses_to_controller(self.is_of10);
        let mut gone = Vec::new();
        for meter in &self.meters {
            let added = pipeline.meter_mod(meter, Duration::ZERO, &mut gone);
            added.map_err(|code| refused(meter, code))?;
        }
        add_groups(pipeline, self.groups)?;
        for flow in &self.flows {
            let added = match self.is_of10 {
                true => pipeline.flow_mod_of10(flow, Duration::ZERO, &mut gone),
                false => pipeline.flow_mod(flow, Duration::ZERO, &mut gone),
            };
            added.map_err(|code| refused(flow, code))?;
        }
        Ok(())
    }

    /// Returns the messages that add everything loaded to a switch: meters, groups and flow entries.
    pub fn messages(&self) -> impl Iterator<Item = Message<'static>> {
        let meters = self.meters.iter().cloned().map(Message::MeterMod);
        let groups = self.groups.iter().cloned().map(Message::GroupMod);
        let flows = self.flows.iter().cloned().map(Message::FlowMod);
        meters.chain(groups).chain(flows)
    }

    /// Returns the number of flow entries.
    pub fn flow_count(&self) -> usize {
        self.flows.len()
    }

    /// Returns the output ports in entries and groups, except reserved ones.
    pub fn mentioned_ports(&self) -> Vec<PortNo> {
        let lists = self.action_lists();
        let ports = lists.flat_map(|actions| outputs(&actions));
        ports.filter(|port_no| !port_no.is_reserved()).collect()
    }

    /// Returns the queues that entries of 1.0 use, by port.
    fn mentioned_queues(&self) -> BTreeMap<PortNo, BTreeSet<u32>> {
        let mut queues = BTreeMap::<_, BTreeSet<_>>::new();
        for actions in self.action_lists() {
            for action in &actions {
                if let Action::Enqueue { port, queue_id } = action {
                    queues.entry(port).or_default().insert(queue_id);
                }
            }
        }
        queues
    }

    /// Iterates over the action lists of entries and groups.
    fn action_lists(&self) -> impl Iterator<Item = List<'_, Action<'_>>> {
        let instructions = self.flows.iter().flat_map(|flow| flow.instructions.iter());
        let lists = instructions.filter_map(|instruction| match instruction {
            Instruction::ApplyActions(actions) | Instruction::WriteActions(actions) => {
                Some(actions)
            }
            _ => None,
        });
        let buckets = self.groups.iter().flat_map(|group| group.buckets.iter());
        lists.chain(buckets.map(|bucket: Bucket| bucket.actions))
    }
}

/// Converts a switch's reply to text and parses that, so that the result owns all its data.
fn owned<T>(
    reply: &dyn Display,
    parse: impl Fn(&str) -> Result<T, ParseError>,
) -> Result<T, LoadError> {
    let text = reply.to_string();
    let text = text.trim();
    parse(text).map_err(|error| LoadError::Foreign {
        text: text.to_owned(),
        error,
    })
}

fn outputs(actions: &List<Action>) -> Vec<PortNo> {
    let ports = actions.iter().filter_map(|action| match action {
        Action::Output { port, .. } | Action::Enqueue { port, .. } => Some(port),
        _ => None,
    });
    ports.collect()
}

/// Adds groups, each after the groups that it refers to.
fn add_groups(pipeline: &mut Pipeline, groups: Vec<GroupMod>) -> Result<(), LoadError> {
    let mut left = groups;
    loop {
        let before = left.len();
        let mut last = None;
        left.retain(|group| {
            let added = pipeline.group_mod(group, Duration::ZERO, &mut Vec::new());
            added
                .inspect_err(|code| last = Some(refused(group, *code)))
                .is_err()
        });
        match last {
            None => return Ok(()),
            Some(error) if left.len() == before => return Err(error),
            Some(_) => {}
        }
    }
}

fn refused(what: &dyn Display, code: ErrorCode) -> LoadError {
    LoadError::Refused {
        text: what.to_string(),
        code,
    }
}

fn decode(frame: &[u8]) -> Result<(urtica_wire::Header, Message<'_>), ClientError> {
    Ok(Message::decode(frame)?)
}

/// Creates a port of which only the number is known.
fn port(port_no: PortNo) -> Port {
    Port::new(port_no, MacAddr::ZERO, &port_no.to_string())
}
