//! A firewall: rules from a file decide which packets pass (stage [`Filter`](Stage::Filter)).
//!
//! **What.** The first rule that matches a packet allows or denies it. Allowed packets are passed to the programs that
//! forward; denied ones are dropped. The rules are stateless: the reverse direction needs its own rule.
//!
//! **How.** The rules are entries of table 0, the first with the highest priority. Entries that allow lead to table 1, which
//! has the entries of forwarding programs, so that no such entry, however broad, forwards a denied packet. The controller
//! receives packets, and checks them against the same rules, until a switch has confirmed all rules, if it refuses one, and
//! on OpenFlow 1.0 switches, which have one table (`install.rs`).
//!
//! **Fragments.** If a switch does not see the ports of fragments, fragments would bypass a rule about ports; so switches
//! are configured to treat fragments safely (`fragments.rs`).
//!
//! **New rules.** The file is checked once a second. A changed file takes effect as a whole; a file with an error changes no
//! rules, and the log names the position of the error.
//!
//! **Thread-safety.** Handlers and background programs share the rules as a snapshot.

mod fragments;
mod install;
mod parse;
mod rules;
mod verdict;

pub use parse::RulesError;
pub(crate) use rules::why_unusable;
pub use rules::{FirewallRules, Rule, Verdict};
pub(crate) use verdict::includes;

use crate::registry::{About, ProgramOptions, Row, Setup};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};
use urtica_controller::{Background, Program, Stage, Switch, SwitchHandler, SwitchInfo};
use urtica_state::Snapshot;
use urtica_wire::{ErrorMessage, PacketIn, Version};

/// The interval at which the file is checked.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);

/// Options of the firewall.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
pub struct FirewallArgs {
    /// File of rules: lines 'allow MATCH' or 'deny MATCH', as in ovs-ofctl, and at the end 'default allow' or
    /// 'default deny'.
    #[arg(long, value_name = "FILE")]
    pub firewall_rules: Option<PathBuf>,
}

/// The error of a file of rules.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FirewallError {
    /// The file cannot be read.
    #[error("the rules cannot be read from '{}': {error}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// The file does not contain valid rules.
    #[error("{}: {error}", file.display())]
    Rules {
        /// The file.
        file: PathBuf,
        /// The problem.
        error: RulesError,
    },
}

/// The program.
#[derive(Debug)]
pub struct Firewall {
    rules: Arc<Snapshot<FirewallRules>>,
    file: Option<PathBuf>,
}

impl Firewall {
    /// Creates a firewall with fixed rules.
    pub fn new(rules: FirewallRules) -> Self {
        Self {
            rules: Arc::new(Snapshot::new(rules)),
            file: None,
        }
    }

    /// Creates a firewall with the rules of a file, which is watched.
    ///
    /// # Errors
    /// [`FirewallError`] if the file cannot be read or is invalid.
    pub fn from_file(file: &Path) -> Result<Self, FirewallError> {
        Ok(Self {
            file: Some(file.to_owned()),
            ..Self::new(read(file)?)
        })
    }
}

impl ProgramOptions for FirewallArgs {}

/// The program's row in the registry of `urtica run`.
pub(crate) static ROW: Row<FirewallArgs> = Row {
    about: About::new(
        "firewall",
        "drops packets that its rules deny; needs --firewall-rules",
    ),
    add,
};

fn add(setup: &mut Setup, args: &FirewallArgs) -> Result<(), String> {
    let file = args.firewall_rules.as_ref();
    let file = file.ok_or("it needs its rules; expected --firewall-rules FILE")?;
    let firewall = Firewall::from_file(file).map_err(|error| error.to_string())?;
    setup.add(firewall);
    Ok(())
}

fn read(file: &Path) -> Result<FirewallRules, FirewallError> {
    let text = fs::read_to_string(file).map_err(|error| FirewallError::Read {
        file: file.to_owned(),
        error,
    })?;
    text.parse().map_err(|error| FirewallError::Rules {
        file: file.to_owned(),
        error,
    })
}

impl Program for Firewall {
    fn handler(&self, _info: &SwitchInfo) -> Box<dyn SwitchHandler> {
        Box::new(FirewallHandler {
            rules: Arc::clone(&self.rules),
        })
    }

    fn start(&self, background: &Background) {
        let installer = install::Installer::new(&self.rules, background);
        background.spawn("firewall", installer.run());
        if let Some(file) = self.file.clone() {
            let rules = Arc::clone(&self.rules);
            background.spawn("firewall-file", watch(file, rules, background.clone()));
        }
    }

    fn stage(&self) -> Stage {
        Stage::Filter
    }
}

/// The handler of one switch.
struct FirewallHandler {
    rules: Arc<Snapshot<FirewallRules>>,
}

impl SwitchHandler for FirewallHandler {
    fn switch_up(&mut self, switch: &mut Switch) {
        if !takes_entries(switch.info()) {
            return;
        }
        for message in install::closing() {
            if let Err(error) = switch.send(&message) {
                urtica_log::error!(about: switch.datapath_id(), dp_id = %switch.datapath_id(), %error, "the firewall cannot guard the switch");
            }
        }
    }

    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        // An entry has allowed the packets from table 1.
        if packet.table_id == 0 && self.rules.load().verdict(packet) == Verdict::Deny {
            switch.consume();
        }
    }

    fn error(&mut self, switch: &mut Switch, _xid: u32, error: &ErrorMessage) {
        let code = error.code;
        urtica_log::error!(about: switch.datapath_id(), dp_id = %switch.datapath_id(), %code, "the switch refused the firewall's guard entry; without it, the table-miss entry sends packets to the firewall");
    }
}

/// Returns `true` if the switch has a second table, for programs that forward. Otherwise the controller receives every
/// packet, and logs that.
fn takes_entries(info: &SwitchInfo) -> bool {
    info.version != Version::Of10 && info.n_tables > 1
}

/// Loads the file's rules whenever they change.
async fn watch(file: PathBuf, rules: Arc<Snapshot<FirewallRules>>, background: Background) {
    let mut told = String::new();
    loop {
        background.sleep(WATCH_INTERVAL).await;
        let problem = match read(&file) {
            Ok(new) if new == *rules.load() => String::new(),
            Ok(new) => {
                tracing::info!(file = %file.display(), rules = new.rules.len(), "new firewall rules");
                rules.publish(new);
                String::new()
            }
            Err(error) => error.to_string(),
        };
        if problem != told && !problem.is_empty() {
            tracing::error!("{problem}; keeping the current firewall rules");
        }
        told = problem;
    }
}
