//! The control programs that come with Urtica: each one readable file.
//!
//! They use nothing that a program of your own could not; copy one to begin.

mod hub;
mod l2;
mod mac_table;

pub use hub::Hub;
pub use l2::L2;
pub use mac_table::{Learned, MacTable};

use urtica_controller::{Controller, SwitchInfo};

/// What can be run by name: the name, what it does, and how it joins a controller.
struct App {
    name: &'static str,
    about: &'static str,
    add: fn(Controller) -> Controller,
}

const APPS: &[App] = &[
    App {
        name: "hub",
        about: "floods every packet",
        add: |controller| controller.program(|_: &SwitchInfo| Hub),
    },
    App {
        name: "l2",
        about: "learns where hosts are, switch by switch, and installs exact-match entries",
        add: |controller| controller.program(|_: &SwitchInfo| L2::default()),
    },
];

/// The name is not that of a bundled program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no control program '{name}'; expected one of: {}", names().collect::<Vec<_>>().join(", "))]
pub struct UnknownApp {
    /// The name that was given.
    pub name: String,
}

/// Adds the program with this name to a controller.
///
/// # Errors
/// [`UnknownApp`], which lists the names that there are.
pub fn add_by_name(controller: Controller, name: &str) -> Result<Controller, UnknownApp> {
    let app = APPS.iter().find(|app| app.name == name);
    app.map(|app| (app.add)(controller))
        .ok_or_else(|| UnknownApp {
            name: name.to_owned(),
        })
}

/// The names of the bundled programs.
pub fn names() -> impl Iterator<Item = &'static str> {
    APPS.iter().map(|app| app.name)
}

/// The bundled programs, a line each: name and what it does.
pub fn overview() -> String {
    let lines: Vec<_> = APPS
        .iter()
        .map(|app| format!("  {:8} {}", app.name, app.about))
        .collect();
    lines.join("\n")
}
