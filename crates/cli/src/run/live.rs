//! A running controller: signals, and changes of the configuration.
//!
//! SIGHUP reads the file again. Changes of programs and of the log are applied; other settings cannot change, which is
//! logged. An invalid file changes nothing.

use super::args::RunArgs;
use super::control::{Question, listen};
use crate::Command;
use crate::config::Effective;
use crate::log::LogFilter;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::collections::BTreeMap;
use std::error::Error;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;
use urtica_apps::{AppChange, Apps};
use urtica_config::{FileError, LoadError, Sources};
use urtica_controller::{Controller, FlowChange, Running};
use urtica_wire::{FlowModCommand, Message};

/// The option of programs. Its changes are applied, and so are changes of the programs' settings.
const PROGRAMS: &str = "programs";
const LOG: &str = "log";

/// The file of tokens, which is read again each time.
const NORTHBOUND_TOKENS: &str = "northbound-tokens";

const KERNEL_ANSWERS: &str = "the kernel answers for these programs: they and their settings cannot change until the controller is restarted";

/// A follower of the changing configuration: the northbound interface, if any.
pub trait Follow {
    /// Follows new options and, if they can change, the programs.
    fn programs(&self, args: &RunArgs, apps: Option<&Apps>);

    /// Follows the options that are in use.
    fn settings(&self, values: &BTreeMap<String, Vec<String>>);
}

/// Without a northbound interface, changes are ignored.
impl Follow for () {
    fn programs(&self, _: &RunArgs, _: Option<&Apps>) {}

    fn settings(&self, _: &BTreeMap<String, Vec<String>>) {}
}

/// The configuration of a controller while it runs.
pub struct Live {
    sources: Sources,
    /// The options by name.
    values: BTreeMap<String, Vec<String>>,
    log: LogFilter,
    /// The socket for questions about a file's changes.
    control: Option<PathBuf>,
}

/// An event for which a running controller waits.
enum Event {
    Signal(i32),
    Asked(Question),
    /// The controller has stopped, or another program has taken over.
    Ended,
}

impl Live {
    pub fn new(
        sources: Sources,
        values: BTreeMap<String, Vec<String>>,
        log: LogFilter,
        control: Option<PathBuf>,
    ) -> Self {
        Self {
            sources,
            values,
            log,
            control,
        }
    }

    /// Runs a controller until SIGINT or SIGTERM. SIGHUP reloads the configuration file and the tokens; without either, SIGHUP
    /// ends the program, as by default.
    pub fn run(
        mut self,
        controller: Controller,
        apps: Option<Apps>,
        follow: Box<dyn Follow>,
    ) -> Result<(), Box<dyn Error>> {
        let (sender, events) = mpsc::channel();
        self.pass_on_signals(&sender)?;
        let running = controller.start()?;
        follow.settings(&self.values);
        let asked = sender.clone();
        let ask = move |question| asked.send(Event::Asked(question)).is_ok();
        let control = self.control.as_deref();
        let _socket = control.map(|file| listen(file, ask)).transpose()?;
        let mut apps = apps.map(|mut apps| {
            apps.note_started(&running.program_ids());
            apps
        });
        running.on_failure(move || drop(sender.send(Event::Ended)));
        for event in events {
            match event {
                Event::Signal(SIGHUP) => self.reload(&running, &mut apps, &*follow),
                Event::Signal(signal) => {
                    tracing::info!(signal, "stopping");
                    let ended = match signal {
                        SIGTERM => running.leave(),
                        _ => running.stop(),
                    };
                    return Ok(ended?);
                }
                Event::Asked(question) => {
                    let file = question.file.clone();
                    question.answer(self.preview(&running, apps.as_ref(), file));
                }
                Event::Ended => break,
            }
        }
        Ok(running.stop()?)
    }

    fn pass_on_signals(&self, events: &mpsc::Sender<Event>) -> Result<(), String> {
        let can_reload =
            self.sources.file().is_some() || self.values.contains_key(NORTHBOUND_TOKENS);
        let reloads = can_reload.then_some(SIGHUP);
        let cannot = |error| format!("cannot catch signals: {error}");
        let signals = Signals::new([SIGINT, SIGTERM].into_iter().chain(reloads));
        let mut signals = signals.map_err(cannot)?;
        let events = events.clone();
        let pass_on = move || {
            for signal in signals.forever() {
                if events.send(Event::Signal(signal)).is_err() {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("signals".into());
        thread.spawn(pass_on).map(drop).map_err(cannot)
    }

    /// Describes the changes of the configuration in this file.
    fn preview(
        &self,
        running: &Running,
        apps: Option<&Apps>,
        file: PathBuf,
    ) -> Result<String, String> {
        let text = |error: LoadError| error.to_string();
        let new = Effective::load(&self.sources.with_file(file)).map_err(text)?;
        new.check_settings().map_err(text)?;
        let Command::Run(args) = &new.cli.command else {
            return Ok(String::new());
        };
        let mut lines = Vec::new();
        if let Some(apps) = apps {
            let next = apps.next(&args.apps, &args.options);
            let next = next.map_err(|error| text(new.place(&error)))?;
            lines.extend(next.changes().iter().map(ToString::to_string));
            let (slots, unforeseen) = next.preview();
            let (names, slots): (Vec<_>, Vec<_>) = slots.into_iter().unzip();
            let previewed = running.preview_programs(&slots);
            let (ids, changes) = previewed.map_err(|error| error.to_string())?;
            for change in &changes {
                let named = ids.iter().position(|id| *id == change.program);
                let name = named
                    .map(|at| names[at])
                    .or_else(|| apps.name_of(change.program));
                lines.extend(line(change, name.unwrap_or_default()));
            }
            lines.extend(unforeseen.iter().map(|name| {
                format!(
                    "{name} sets up paths when packets arrive, so changes of them cannot be predicted"
                )
            }));
            lines.push(match changes.len() {
                0 => "no flow entry would change".to_owned(),
                1 => "1 flow entry would change".to_owned(),
                count => format!("{count} flow entries would change"),
            });
        }
        let (of_programs, of_others) = self.differences(&new);
        if apps.is_none() && !of_programs.is_empty() {
            lines.push(KERNEL_ANSWERS.to_owned());
        }
        lines.extend(of_others.iter().map(|name| self.cannot_change(name, &new)));
        Ok(lines.join("\n"))
    }

    /// Returns the warning that an option cannot change.
    fn cannot_change(&self, name: &str, new: &Effective) -> String {
        let (old, new) = (told(&self.values, name), told(&new.values, name));
        format!(
            "{name} cannot change while the controller runs: it stays {old} until a restart, and is {new} then"
        )
    }

    fn reload(&mut self, running: &Running, apps: &mut Option<Apps>, follow: &dyn Follow) {
        if let Err(error) = self.try_reload(running, apps, follow) {
            match &error {
                LoadError::File(FileError::Faults { file, faults }) => {
                    for fault in faults {
                        let file = file.display();
                        tracing::error!("keeping the old configuration: {file}:{fault}");
                    }
                }
                error => tracing::error!("keeping the old configuration: {error}"),
            }
        }
    }

    fn try_reload(
        &mut self,
        running: &Running,
        apps: &mut Option<Apps>,
        follow: &dyn Follow,
    ) -> Result<(), LoadError> {
        let new = Effective::load(&self.sources)?;
        new.check_settings()?;
        let Command::Run(args) = &new.cli.command else {
            return Ok(());
        };
        let mut changes = Vec::new();
        let (of_programs, of_others) = self.differences(&new);
        if !of_programs.is_empty() || apps.is_some() {
            match apps {
                Some(apps) => changes = change_programs(running, apps, &new)?,
                None => tracing::warn!("{KERNEL_ANSWERS}"),
            }
        }
        follow.programs(args, apps.as_ref());
        self.take(NORTHBOUND_TOKENS, &new);
        if self.values.get(LOG) != new.values.get(LOG) {
            self.log.set(args.log_filter());
            self.take(LOG, &new);
        }
        for name in of_programs {
            self.take(&name, &new);
        }
        follow.settings(&self.values);
        for name in of_others {
            tracing::warn!("{}", self.cannot_change(&name, &new));
        }
        match &changes[..] {
            [] => tracing::info!("reloaded the configuration; no program changes"),
            changes => {
                let changes: Vec<_> = changes.iter().map(ToString::to_string).collect();
                tracing::info!("reloaded the configuration: {}", changes.join(", "));
            }
        }
        Ok(())
    }

    /// Returns the names of options that differ: of programs, which can change, and of others, which cannot.
    fn differences(&self, new: &Effective) -> (Vec<String>, Vec<String>) {
        let names = self.values.keys().chain(new.values.keys());
        let differ = names.filter(|name| self.values.get(*name) != new.values.get(*name));
        let mut differ: Vec<_> = differ
            .filter(|name| ![LOG, NORTHBOUND_TOKENS].contains(&name.as_str()))
            .cloned()
            .collect();
        differ.sort();
        differ.dedup();
        let is_of_programs = |name: &String| name == PROGRAMS || new.is_of_program(name);
        differ.into_iter().partition(is_of_programs)
    }

    /// Uses the new value of this option from now on.
    fn take(&mut self, name: &str, new: &Effective) {
        match new.values.get(name) {
            Some(values) => self.values.insert(name.to_owned(), values.clone()),
            None => self.values.remove(name),
        };
    }
}

/// Makes the controller run a configuration's programs, with their settings.
fn change_programs(
    running: &Running,
    apps: &mut Apps,
    new: &Effective,
) -> Result<Vec<AppChange>, LoadError> {
    let Command::Run(args) = &new.cli.command else {
        return Ok(Vec::new());
    };
    let next = apps
        .next(&args.apps, &args.options)
        .map_err(|error| new.place(&error))?;
    let changes = next.changes().to_vec();
    let ids = running
        .set_programs(next.slots())
        .map_err(|error| LoadError::Programs(error.to_string()))?;
    *apps = next.into_apps(&ids);
    Ok(changes)
}

/// Describes a change of a switch's entries for people.
fn line(change: &FlowChange, program: &str) -> Option<String> {
    let Message::FlowMod(flow_mod) = change.message() else {
        return None;
    };
    let verb = match flow_mod.command {
        FlowModCommand::Add => "add",
        FlowModCommand::Modify | FlowModCommand::ModifyStrict => "modify",
        _ => "delete",
    };
    Some(format!("{}: {program}: {verb} {flow_mod}", change.switch))
}

/// Formats an option's values for people.
fn told(values: &BTreeMap<String, Vec<String>>, name: &str) -> String {
    match values.get(name).map(Vec::as_slice) {
        None | Some([]) => "the default".to_owned(),
        Some(values) => values.join(", "),
    }
}
