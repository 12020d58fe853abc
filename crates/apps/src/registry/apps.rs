//! The programs that a controller runs by name, and their replacement while it runs.

use super::about::Service;
use super::setup::{App, ServiceConfigs, Services, Setup};
use super::{Options, SetupError, checked_rows};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use urtica_controller::{Controller, Program, ProgramId, ProgramSlot};

/// The programs that a controller runs by name, with the services that they need.
///
/// ```
/// use urtica_apps::{Apps, Options};
/// use urtica_controller::{Controller, setting::SettingError};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut apps = Apps::new(&["l2"], &Options::default())?;
/// let listening = Controller::new().listen("ptcp:0:127.0.0.1".parse()?);
/// let running = apps.add_to(listening).start()?;
/// apps.note_started(&running.program_ids());
///
/// // While it runs:
/// let next = apps.next(&["discovery", "l2"], &Options::default())?;
/// let told: Vec<_> = next.changes().iter().map(ToString::to_string).collect();
/// // Where links are known, l2 learns differently.
/// assert_eq!(told, ["discovery is added", "l2 is restarted"]);
/// let ids = running.set_programs(next.slots())?;
/// apps = next.into_apps(&ids);
/// # drop(apps);
/// # running.stop()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Apps {
    /// The programs of the registry, in the order in which they are added to a controller.
    apps: Vec<App>,
    services: Services,
    /// The ids of each one's programs in the controller, once it runs.
    ids: BTreeMap<&'static str, Vec<ProgramId>>,
}

/// A change of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AppChange {
    /// The program did not run before.
    Added(&'static str),
    /// The program has other settings, or runs with other programs.
    Restarted(&'static str),
    /// The program no longer runs.
    Removed(&'static str),
}

impl fmt::Display for AppChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Added(name) => write!(f, "{name} is added"),
            Self::Restarted(name) => write!(f, "{name} is restarted"),
            Self::Removed(name) => write!(f, "{name} is removed"),
        }
    }
}

/// The programs that a controller will run instead of its [`Apps`].
pub struct NextApps {
    apps: Apps,
    slots: Vec<ProgramSlot>,
    /// The names of the slots' programs, in the order of the slots.
    names: Vec<&'static str>,
    changes: Vec<AppChange>,
}

impl Apps {
    /// Sets up the programs with these names, in this order, and the services that they need.
    ///
    /// # Errors
    /// [`SetupError`], which names the expected value.
    pub fn new(names: &[impl AsRef<str>], options: &Options) -> Result<Self, SetupError> {
        let none = Self {
            apps: Vec::new(),
            services: Services::default(),
            ids: BTreeMap::new(),
        };
        none.set_up(names, options)
    }

    /// Adds the programs to a controller, after its existing ones.
    pub fn add_to(&self, controller: Controller) -> Controller {
        let programs = self.apps.iter().flat_map(|app| &app.programs);
        programs.fold(controller, |controller, program| {
            controller.shared_program(Arc::clone(program))
        })
    }

    /// Returns the name of the program with this id, if it is one of these.
    pub fn name_of(&self, id: ProgramId) -> Option<&'static str> {
        let mut all = self.ids.iter();
        let (name, _) = all.find(|(_, ids)| ids.contains(&id))?;
        Some(name)
    }

    /// Returns the services.
    pub fn services(&self) -> &Services {
        &self.services
    }

    /// Notes the ids of the programs, in the order in which they see messages. The controller must have no other programs.
    pub fn note_started(&mut self, ids: &[ProgramId]) {
        let programs = self.apps.iter().flat_map(|app| {
            let stages = app.programs.iter().map(|program| program.stage());
            stages.map(|stage| (stage, app.name))
        });
        let mut in_order: Vec<_> = programs.collect();
        in_order.sort_by_key(|(stage, _)| *stage);
        for ((_, name), id) in in_order.into_iter().zip(ids) {
            self.ids.entry(name).or_default().push(*id);
        }
        // The controller owns them now.
        self.apps.iter_mut().for_each(|app| app.programs.clear());
    }

    /// Returns the programs to run instead of these: those with these names, and their services. Unchanged programs continue.
    ///
    /// # Errors
    /// [`SetupError`], which names the expected value.
    pub fn next(
        &self,
        names: &[impl AsRef<str>],
        options: &Options,
    ) -> Result<NextApps, SetupError> {
        let apps = self.set_up(names, options)?;
        let (mut slots, mut names, mut changes) = (Vec::new(), Vec::new(), Vec::new());
        for app in &apps.apps {
            let before = self.ids.get(app.name);
            let own = slots_of(app, before.map_or(&[][..], Vec::as_slice));
            names.extend(own.iter().map(|_| app.name));
            slots.extend(own);
            match before {
                None => changes.push(AppChange::Added(app.name)),
                Some(_) if !app.programs.is_empty() => {
                    changes.push(AppChange::Restarted(app.name));
                }
                Some(_) => {}
            }
        }
        let is_gone = |name: &&&str| !apps.apps.iter().any(|app| app.name == **name);
        let gone = self.ids.keys().filter(is_gone);
        changes.extend(gone.map(|name| AppChange::Removed(name)));
        Ok(NextApps {
            apps,
            slots,
            names,
            changes,
        })
    }

    fn set_up(&self, names: &[impl AsRef<str>], options: &Options) -> Result<Self, SetupError> {
        let rows = checked_rows(names, options)?;
        let named = rows.iter().map(|row| *row.about()).collect();
        let configs = ServiceConfigs {
            discovery: options.discovery.clone(),
            hosts: options.hosts.clone(),
        };
        let mut setup = Setup::new(named, configs, self.services.clone());
        for row in rows {
            let about = row.about();
            // Read before the program reads its files, so that no change between the two is missed.
            let settings = row.settings(options);
            let running = self.apps.iter().find(|app| app.name == about.name);
            let same = running
                .filter(|app| about.service.is_none() && app.settings.as_ref() == Some(&settings));
            let kept = same.map_or(Ok(false), |app| setup.keep_row(about, app));
            let added = kept.and_then(|is_kept| match is_kept {
                true => Ok(()),
                false => setup.add_row(about, settings, |setup| row.add(setup, options)),
            });
            added.map_err(|problem| SetupError::Refused {
                name: about.name,
                problem,
            })?;
        }
        Ok(Self {
            apps: setup.apps,
            services: setup.services,
            ids: BTreeMap::new(),
        })
    }
}

/// Returns the slots of one program of the registry, given the ids of its programs so far.
fn slots_of(app: &App, before: &[ProgramId]) -> Vec<ProgramSlot> {
    if app.programs.is_empty() {
        return before.iter().copied().map(ProgramSlot::Keep).collect();
    }
    let slot = |(index, program): (usize, &Arc<dyn Program>)| {
        let program = Arc::clone(program);
        match before.get(index) {
            Some(id) => ProgramSlot::Replace(*id, program),
            None => ProgramSlot::Add(program),
        }
    };
    app.programs.iter().enumerate().map(slot).collect()
}

impl NextApps {
    /// Returns the slots for the controller: see [`Running::set_programs`](urtica_controller::Running::set_programs).
    pub fn slots(&self) -> &[ProgramSlot] {
        &self.slots
    }

    /// Returns the name of each slot's program.
    pub fn names(&self) -> &[&'static str] {
        &self.names
    }

    /// Returns the changes. All other programs continue unchanged.
    pub fn changes(&self) -> &[AppChange] {
        &self.changes
    }

    /// Returns the slots for a [preview](urtica_controller::Running::preview_programs), each with its program's name, and the
    /// names of the programs that cannot be previewed, because a provisioner sends for them: these stay unchanged.
    pub fn preview(&self) -> (Vec<(&'static str, ProgramSlot)>, Vec<&'static str>) {
        let provisions = |name: &str| {
            let app = self.apps.apps.iter().find(|app| app.name == name);
            name != Service::Provisioner.name()
                && app.is_some_and(|app| app.reasons.services.contains(&Service::Provisioner))
        };
        let (mut slots, mut unforeseen) = (Vec::new(), Vec::new());
        for (name, slot) in self.names.iter().copied().zip(&self.slots) {
            match slot {
                ProgramSlot::Replace(id, _) if provisions(name) => {
                    unforeseen.push(name);
                    slots.push((name, ProgramSlot::Keep(*id)));
                }
                ProgramSlot::Add(_) if provisions(name) => unforeseen.push(name),
                slot => slots.push((name, slot.clone())),
            }
        }
        (slots, unforeseen)
    }

    /// Returns the programs, which run now, given the ids of the slots' programs.
    pub fn into_apps(mut self, ids: &[ProgramId]) -> Apps {
        for (name, id) in self.names.iter().zip(ids) {
            self.apps.ids.entry(name).or_default().push(*id);
        }
        self.apps
            .apps
            .iter_mut()
            .for_each(|app| app.programs.clear());
        self.apps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BandwidthArgs, L3Args};
    use AppChange::{Added, Removed, Restarted};
    use urtica_controller::Embedded;

    /// Starts a controller that runs these programs.
    fn started(names: &[&str], options: &Options) -> (Apps, Embedded) {
        let mut apps = Apps::new(names, options).unwrap();
        let controller = apps.add_to(Controller::new()).embed().unwrap();
        apps.note_started(&controller.program_ids());
        (apps, controller)
    }

    /// Replaces the running programs, and returns the changes.
    fn change(
        (apps, controller): &mut (Apps, Embedded),
        names: &[&str],
        options: &Options,
    ) -> Vec<AppChange> {
        let next = apps.next(names, options).unwrap();
        let changes = next.changes().to_vec();
        let ids = controller.set_programs(next.slots(), Default::default());
        *apps = next.into_apps(&ids.unwrap());
        changes
    }

    fn best_effort() -> Options {
        Options {
            bandwidth: BandwidthArgs {
                bandwidth_best_effort: true,
                ..BandwidthArgs::default()
            },
            ..Options::default()
        }
    }

    #[test]
    fn changed_settings_restart_their_program() {
        let names = ["bandwidth", "routing"];
        let mut running = started(&names, &Options::default());
        assert_eq!(change(&mut running, &names, &Options::default()), []);
        let ids = running.1.program_ids();
        let changes = change(&mut running, &names, &best_effort());
        assert_eq!(changes, [Restarted("bandwidth")]);
        assert_eq!(running.1.program_ids(), ids);
        assert_eq!(change(&mut running, &names, &best_effort()), []);
    }

    #[test]
    fn services_run_while_programs_use_them() {
        let none = Options::default();
        let mut running = started(&["hub"], &none);
        let changes = change(&mut running, &["routing"], &none);
        let services = ["discovery", "hosts", "neighbour-proxy", "routes"].map(Added);
        assert_eq!(changes.iter().filter(|it| services.contains(it)).count(), 4);
        assert!(changes.contains(&Added("routing")) && changes.contains(&Removed("hub")));
        // A service that is now named is the one that runs already.
        let changes = change(&mut running, &["discovery", "routing"], &none);
        assert_eq!(changes, []);
        let changes = change(&mut running, &["routing", "elephants"], &none);
        assert_eq!(changes, [Added("provisioner"), Added("elephants")]);
        let changes = change(&mut running, &["discovery", "hub"], &none);
        assert!(changes.contains(&Removed("hosts")), "{changes:?}");
        assert!(!changes.contains(&Removed("discovery")), "{changes:?}");
        assert_eq!(change(&mut running, &["hub", "discovery"], &none), []);
    }

    #[test]
    fn changed_dependencies_restart_a_program() {
        let none = Options::default();
        let mut running = started(&["l2"], &none);
        let changes = change(&mut running, &["discovery", "l2"], &none);
        assert_eq!(changes, [Added("discovery"), Restarted("l2")]);
        let refused = running.0.next(&["elephants", "hub"], &none);
        let sentence = refused.map(drop).unwrap_err().to_string();
        assert!(sentence.contains("elephants"), "{sentence}");
    }

    #[test]
    fn changed_files_restart_their_program() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("l3.toml");
        let write = |mac: u8| {
            let subnet = format!(
                "[[interface]]\naddress = \"10.0.0.1/24\"\nmac = \"02:00:00:00:00:0{mac}\"\n"
            );
            std::fs::write(&file, subnet).unwrap();
        };
        write(1);
        let options = Options {
            l3: L3Args {
                l3_config: Some(file.clone()),
            },
            ..Options::default()
        };
        let names = ["l3", "routing"];
        let mut running = started(&names, &options);
        assert_eq!(change(&mut running, &names, &options), []);
        write(2);
        assert_eq!(change(&mut running, &names, &options), [Restarted("l3")]);
    }
}
