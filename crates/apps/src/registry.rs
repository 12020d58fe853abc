//! Programs by name, as `urtica run` accepts them.
//!
//! **What.** [`add_all`] adds programs to a controller by name. A program that needs a service which was not named adds it
//! before itself, and logs that.
//!
//! **How.** Each program's file has its [`Row`]: its name, a one-line description, the packets that it forwards or observes,
//! and a function that adds it to a [`Setup`]. That function requests services from the set-up, which creates them on first
//! use, so dependencies are specified only there. [`ROWS`] lists the rows with their fields in [`Options`]. [`Apps`] compares
//! the running programs with the requested ones.
//!
//! ```text
//! registry        the list, and queries by name
//! ├ apps          the running programs, and their replacement
//! ├ options       the options on the command line
//! ├ services      rows of services
//! └ row           a program's row; about: its description; settings: its options; setup: the controller that it joins
//! ```
//!
//! To add a program, write a file with its row, a line in [`ROWS`], and a field in [`Options`] if it has options.

mod about;
mod apps;
mod options;
mod row;
mod services;
mod settings;
mod setup;

pub(crate) use about::{About, Forwards, Sees, Service};
pub use apps::{AppChange, Apps, NextApps};
pub use options::Options;
pub(crate) use row::Row;
pub(crate) use settings::ProgramOptions;
pub use setup::Services;
pub(crate) use setup::Setup;

use crate::{bandwidth, elephants, firewall, global, hub, l2, l3, routing, ryu, security};
use settings::Settings;
use urtica_controller::Controller;

/// A row, and the field of its options: the program uses `O`, only the registry uses [`Options`].
struct Bound<O: 'static> {
    row: &'static Row<O>,
    options: fn(&Options) -> O,
}

/// A row with options of any type.
trait AnyRow: Sync {
    fn about(&self) -> &'static About;

    /// Returns the settings that determine the program's behaviour.
    fn settings(&self, options: &Options) -> Settings;

    /// Sets up the program with these options.
    fn add(&self, setup: &mut Setup, options: &Options) -> Result<(), String>;
}

impl<O: ProgramOptions> AnyRow for Bound<O> {
    fn about(&self) -> &'static About {
        &self.row.about
    }

    fn settings(&self, options: &Options) -> Settings {
        Settings::read((self.options)(options))
    }

    fn add(&self, setup: &mut Setup, options: &Options) -> Result<(), String> {
        (self.row.add)(setup, &(self.options)(options))
    }
}

/// Binds the row of a program without options.
const fn plain(row: &'static Row) -> Bound<()> {
    Bound {
        row,
        options: |_| (),
    }
}

const fn with<O>(row: &'static Row<O>, options: fn(&Options) -> O) -> Bound<O> {
    Bound { row, options }
}

/// All rows, services first.
static ROWS: &[&dyn AnyRow] = &[
    &plain(&services::DISCOVERY),
    &plain(&services::HOSTS),
    &plain(&services::NEIGHBOUR_PROXY),
    &plain(&services::ROUTES),
    &plain(&services::PROVISIONER),
    &plain(&hub::ROW),
    &with(&l2::ROW, |options| options.l2.clone()),
    &with(&global::LOCK_FREE_ROW, |options| options.global.clone()),
    &with(&global::LOCKED_ROW, |options| options.global.clone()),
    &with(&global::TRANSACTIONAL_ROW, |options| options.global.clone()),
    &with(&routing::ROW, |options| options.routing.clone()),
    &with(&firewall::ROW, |options| options.firewall.clone()),
    &with(&bandwidth::ROW, |options| options.bandwidth.clone()),
    &with(&l3::ROW, Options::l3_options),
    &with(&security::ROW, |options| options.security.clone()),
    &with(&elephants::ROW, |options| options.elephants.clone()),
    &plain(&ryu::FIREWALL_ROW),
    &plain(&ryu::ROUTER_ROW),
    &plain(&ryu::QOS_ROW),
];

/// The error of programs that cannot run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// No bundled program has the name.
    #[error("there is no control program '{name}'; expected one of: {}", names().collect::<Vec<_>>().join(", "))]
    Unknown {
        /// The given name.
        name: String,
    },
    /// A name was given more than once.
    #[error("the control program '{name}' was named twice; expected each once")]
    Twice {
        /// The name.
        name: &'static str,
    },
    /// Options were given for a program that does not run.
    #[error(
        "options of the control program '{name}' (--{name}-…) were given, but it does not run; expected {name} among the programs, or none of its options"
    )]
    UnusedOptions {
        /// The program's name.
        name: &'static str,
    },
    /// The program cannot run with the given options.
    #[error("the control program '{name}' cannot run: {problem}")]
    Refused {
        /// The program's name.
        name: &'static str,
        /// The problem, and the expected value.
        problem: String,
    },
}

impl SetupError {
    /// Returns the name of the program that the error is about.
    pub fn program(&self) -> &str {
        match self {
            Self::Unknown { name } => name,
            Self::Twice { name } | Self::UnusedOptions { name } | Self::Refused { name, .. } => {
                name
            }
        }
    }
}

/// Adds the programs with these names to a controller, in this order, and the services that they need.
///
/// # Errors
/// [`SetupError`], which names the expected value.
pub fn add_all(
    controller: Controller,
    names: &[impl AsRef<str>],
    options: &Options,
) -> Result<Controller, SetupError> {
    add_all_with_services(controller, names, options).map(|(controller, _)| controller)
}

/// Like [`add_all`], and also returns the services.
///
/// # Errors
/// As [`add_all`].
pub fn add_all_with_services(
    controller: Controller,
    names: &[impl AsRef<str>],
    options: &Options,
) -> Result<(Controller, Services), SetupError> {
    let apps = Apps::new(names, options)?;
    Ok((apps.add_to(controller), apps.services().clone()))
}

/// Adds the program with this name to a controller, without options, and the services that it needs.
///
/// # Errors
/// [`SetupError`], which names the expected value.
pub fn add_by_name(controller: Controller, name: &str) -> Result<Controller, SetupError> {
    add_all(controller, &[name], &Options::default())
}

/// Returns `true` if these programs are `l3`, services, and programs that forward the packets which it leaves to them. Then no
/// other program has to see its packets, and the kernel can answer them ([`Options::l3_kernel`]).
pub fn is_l3_first(names: &[impl AsRef<str>]) -> bool {
    let abouts = names.iter().map(|name| find_about(name.as_ref()));
    let is_service = |about: &Option<&About>| about.is_some_and(|about| about.service.is_some());
    let mut programs = abouts.filter(|about| !is_service(about));
    let forwards_all = |about: &About| about.forwards == Forwards::All;
    let is_l3 = |about: &About| about.name == l3::ROW.name();
    programs.next().flatten().is_some_and(is_l3) && programs.all(|it| it.is_some_and(forwards_all))
}

/// Returns the first of these programs that has to see every packet-in, even packet-ins that the kernel could answer.
pub fn find_watchful(names: &[impl AsRef<str>]) -> Option<&'static str> {
    let mut abouts = names.iter().filter_map(|name| find_about(name.as_ref()));
    let watchful = abouts.find(|about| about.sees == Sees::Everything);
    watchful.map(|about| about.name)
}

/// Returns `true` if the kernel may answer all packets of a flow but the first instead of these programs.
pub fn need_first_packets_only(names: &[impl AsRef<str>]) -> bool {
    let mut abouts = names.iter().map(|name| find_about(name.as_ref()));
    abouts.all(|about| about.is_some_and(|about| about.sees == Sees::FirstOfFlow))
}

fn find_about(name: &str) -> Option<&'static About> {
    ROWS.iter()
        .map(|row| row.about())
        .find(|about| about.name == name)
}

/// Checks names and options, and warns of improbable combinations. Returns the rows with these names, in the order in which
/// they are added.
fn checked_rows(
    names: &[impl AsRef<str>],
    options: &Options,
) -> Result<Vec<&'static dyn AnyRow>, SetupError> {
    let mut rows = find_rows(names)?;
    check_used(options, &rows)?;
    if let Some(warning) = warn_of_no_forwarder(&rows) {
        tracing::warn!("{warning}");
    }
    rows.sort_by_key(|row| row.about().sees != Sees::Everything);
    Ok(rows)
}

/// Returns the rows with these names, in this order.
fn find_rows(names: &[impl AsRef<str>]) -> Result<Vec<&'static dyn AnyRow>, SetupError> {
    let mut rows: Vec<&'static dyn AnyRow> = Vec::new();
    for name in names {
        let row = find_row(name.as_ref())?;
        let name = row.about().name;
        if rows.iter().any(|earlier| earlier.about().name == name) {
            return Err(SetupError::Twice { name });
        }
        rows.push(row);
    }
    Ok(rows)
}

fn find_row(name: &str) -> Result<&'static dyn AnyRow, SetupError> {
    let row = ROWS.iter().find(|row| row.about().name == name);
    row.copied().ok_or_else(|| SetupError::Unknown {
        name: name.to_owned(),
    })
}

/// Refuses options that no program uses.
fn check_used(options: &Options, rows: &[&dyn AnyRow]) -> Result<(), SetupError> {
    let used: Vec<_> = rows
        .iter()
        .map(|row| row.settings(options).options_type())
        .collect();
    let unused = ROWS.iter().find(|row| {
        let settings = row.settings(options);
        settings.is_given() && !used.contains(&settings.options_type())
    });
    match unused {
        None => Ok(()),
        Some(row) => Err(SetupError::UnusedOptions {
            name: row.about().name,
        }),
    }
}

/// Returns the warning if no program forwards all packets.
fn warn_of_no_forwarder(rows: &[&dyn AnyRow]) -> Option<String> {
    let abouts = || rows.iter().map(|row| row.about());
    if rows.is_empty() || abouts().any(|about| about.forwards == Forwards::All) {
        return None;
    }
    let some = abouts().filter_map(|about| match about.forwards {
        Forwards::Only(what) => Some(format!("{what} ({})", about.name)),
        _ => None,
    });
    let but = match &some.collect::<Vec<_>>()[..] {
        [] => String::new(),
        some => format!(" but {}", some.join(" and ")),
    };
    let all = ROWS.iter().map(|row| row.about());
    let forwarders = all.filter(|about| about.forwards == Forwards::All);
    let names: Vec<_> = forwarders.map(|about| about.name).collect();
    Some(format!(
        "no program forwards packets{but}: hosts will not reach each other; expected one of these programs, too: {}",
        names.join(", ")
    ))
}

/// Iterates over the names of the bundled programs.
pub fn names() -> impl Iterator<Item = &'static str> {
    ROWS.iter().map(|row| row.about().name)
}

/// Returns a list of the bundled programs, a line with name and description for each.
pub fn overview() -> String {
    let abouts = ROWS.iter().map(|row| row.about());
    let lines: Vec<_> = abouts
        .map(|about| format!("  {:12} {}", about.name, about.text))
        .collect();
    lines.join("\n")
}
