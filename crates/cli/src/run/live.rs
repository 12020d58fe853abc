//! A controller while it runs: signals, and a configuration that changes.
//!
//! SIGHUP has the file read again. What concerns programs and the log is applied at once, and only where it differs; what the controller
//! was started with stays, and the log says so. A file with a fault changes nothing.

use crate::Command;
use crate::config::{Effective, FileError, LoadError, Sources};
use crate::log::LogFilter;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::collections::BTreeMap;
use std::error::Error;
use urtica_apps::{AppChange, Apps};
use urtica_controller::{Controller, Running};

/// What a change of which is applied while the controller runs; programs' settings beside.
const PROGRAMS: &str = "programs";
const LOG: &str = "log";

/// The configuration of a controller while it runs.
pub struct Live {
    sources: Sources,
    /// What options say, by name.
    values: BTreeMap<String, Vec<String>>,
    log: LogFilter,
}

impl Live {
    pub fn new(sources: Sources, values: BTreeMap<String, Vec<String>>, log: LogFilter) -> Self {
        Self {
            sources,
            values,
            log,
        }
    }

    /// Runs a controller until SIGINT or SIGTERM. With a file, SIGHUP has it read again; without, SIGHUP ends the program, as it does
    /// where nobody has said otherwise.
    pub fn run(mut self, controller: Controller, apps: Option<Apps>) -> Result<(), Box<dyn Error>> {
        let reloads = self.sources.file().map(|_| SIGHUP);
        let mut signals = Signals::new([SIGINT, SIGTERM].into_iter().chain(reloads))
            .map_err(|error| format!("signals cannot be caught: {error}"))?;
        let running = controller.start()?;
        let mut apps = apps.map(|mut apps| {
            apps.note_started(&running.program_ids());
            apps
        });
        let waiting = signals.handle();
        running.on_failure(move || waiting.close());
        for signal in signals.forever() {
            match signal {
                SIGHUP => self.reload(&running, &mut apps),
                signal => {
                    tracing::info!(signal, "stopping");
                    let ended = match signal {
                        SIGTERM => running.leave(),
                        _ => running.stop(),
                    };
                    return Ok(ended?);
                }
            }
        }
        Ok(running.stop()?)
    }

    fn reload(&mut self, running: &Running, apps: &mut Option<Apps>) {
        if let Err(error) = self.try_reload(running, apps) {
            match &error {
                LoadError::File(FileError::Faults { file, faults }) => {
                    for fault in faults {
                        let file = file.display();
                        tracing::error!("the configuration stays as it is: {file}:{fault}");
                    }
                }
                error => tracing::error!("the configuration stays as it is: {error}"),
            }
        }
    }

    fn try_reload(&mut self, running: &Running, apps: &mut Option<Apps>) -> Result<(), LoadError> {
        let new = self.sources.load()?;
        let Command::Run(args) = &new.cli.command else {
            return Ok(());
        };
        let mut changes = Vec::new();
        let (of_programs, of_others) = self.differences(&new);
        if !of_programs.is_empty() || apps.is_some() {
            match apps {
                Some(apps) => changes = change_programs(running, apps, &new)?,
                None => tracing::warn!(
                    "the kernel answers for l2: programs and their settings stay as they are until the controller is restarted"
                ),
            }
        }
        if self.values.get(LOG) != new.values.get(LOG) {
            self.log.set(args.log_filter());
            self.take(LOG, &new);
        }
        for name in of_programs {
            self.take(&name, &new);
        }
        for name in of_others {
            let (old, new) = (told(&self.values, &name), told(&new.values, &name));
            tracing::warn!(
                "{name} cannot change while the controller runs: it stays {old} until it is restarted, and is {new} then"
            );
        }
        match &changes[..] {
            [] => tracing::info!("the configuration was read again; no program changes"),
            changes => {
                let changes: Vec<_> = changes.iter().map(ToString::to_string).collect();
                tracing::info!("the configuration was read again: {}", changes.join(", "));
            }
        }
        Ok(())
    }

    /// The names of options that differ: of programs, which can change, and of others, which cannot.
    fn differences(&self, new: &Effective) -> (Vec<String>, Vec<String>) {
        let names = self.values.keys().chain(new.values.keys());
        let differ = names.filter(|name| self.values.get(*name) != new.values.get(*name));
        let mut differ: Vec<_> = differ.filter(|name| *name != LOG).cloned().collect();
        differ.sort();
        differ.dedup();
        let is_of_programs = |name: &String| name == PROGRAMS || new.program_options.contains(name);
        differ.into_iter().partition(is_of_programs)
    }

    /// From now on, the new value of this option is in use.
    fn take(&mut self, name: &str, new: &Effective) {
        match new.values.get(name) {
            Some(values) => self.values.insert(name.to_owned(), values.clone()),
            None => self.values.remove(name),
        };
    }
}

/// Has the controller run the programs that a configuration names, as it sets them.
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

/// An option's values, for people.
fn told(values: &BTreeMap<String, Vec<String>>, name: &str) -> String {
    match values.get(name).map(Vec::as_slice) {
        None | Some([]) => "what it is by default".to_owned(),
        Some(values) => values.join(", "),
    }
}
