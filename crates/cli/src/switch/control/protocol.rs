//! What is said at the control socket.

use serde::{Deserialize, Serialize};

/// What a switch is asked for. The commands of `urtica switch ctl` are the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, clap::Subcommand)]
#[serde(tag = "command", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// The switch, its ports with what went through them, its controllers and how far it is with each.
    Show,
    /// The tables that are in use, and what they have counted.
    #[command(visible_alias = "dump-tables")]
    Tables,
    /// The flow entries, as ovs-ofctl dumps them.
    #[command(visible_alias = "dump-flows")]
    Flows {
        /// Only those of this table.
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(..255))]
        #[serde(default, skip_serializing_if = "Option::is_none")]
        table: Option<u8>,
        /// Those first that have matched the most packets.
        #[arg(long)]
        #[serde(skip)]
        by_use: bool,
    },
    /// How many packets were dropped, by cause.
    Counters,
    /// What each table was compiled to, and why, as --explain tells.
    Templates,
    /// Add a port. Controllers are told.
    AddPort {
        /// As on the command line of urtica switch: PORT, or NUMBER=KIND:NAME. Without a number it gets the one that its name has had,
        /// or one that no port has had.
        #[arg(value_name = "PORT")]
        port: String,
    },
    /// Remove a port. Controllers are told; flow entries that name it stay.
    RemovePort {
        /// Its number or name.
        #[arg(value_name = "PORT")]
        port: String,
    },
    /// Connect to one more controller, or listen for controllers at one more address.
    AddController {
        /// As for --controller.
        #[arg(value_name = "ADDR")]
        address: String,
    },
    /// Connect to a controller no more, or listen no more, and close the connections that came of it.
    RemoveController {
        /// As 'show' lists it.
        #[arg(value_name = "ADDR")]
        address: String,
    },
}

/// One line of an answer.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// One of the things that were asked for.
    Item(serde_json::Value),
    /// That was all.
    Done(bool),
    /// Why there is no more: a sentence.
    Error(String),
}

/// The answer to [`Request::Show`].
#[derive(Debug, Serialize, Deserialize)]
pub struct Show {
    pub dp_id: String,
    pub name: String,
    pub uptime_seconds: f64,
    pub ports: Vec<Port>,
    pub controllers: Vec<Controller>,
    pub connections: Vec<Connection>,
}

/// A port, and what went through it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Port {
    pub number: u32,
    pub name: String,
    pub hw_addr: String,
    /// Whether controllers have left it switched on.
    pub is_enabled: bool,
    pub has_link: bool,
    pub speed_kbps: u32,
    pub rx_packets: u64,
    pub rx_bytes: u64,
    pub rx_dropped: u64,
    pub rx_errors: u64,
    pub tx_packets: u64,
    pub tx_bytes: u64,
    pub tx_dropped: u64,
}

/// An address of controllers.
#[derive(Debug, Serialize, Deserialize)]
pub struct Controller {
    pub address: String,
    /// `listening`, `connecting`, `connected` or `waiting`.
    pub state: String,
    pub retry_in_seconds: Option<f64>,
    pub last_failure: Option<String>,
}

/// A connection to a controller.
#[derive(Debug, Serialize, Deserialize)]
pub struct Connection {
    pub peer: String,
    /// Of OpenFlow; `null` before the controller's hello.
    pub version: Option<String>,
    pub role: Option<String>,
    pub age_seconds: f64,
}

/// An item of the answer to [`Request::Tables`].
#[derive(Debug, Serialize, Deserialize)]
pub struct Table {
    pub table: u8,
    pub entries: u32,
    pub max_entries: u32,
    pub lookups: u64,
    pub matched: u64,
}

/// An item of the answer to [`Request::Flows`].
#[derive(Debug, Serialize, Deserialize)]
pub struct Flow {
    pub table: u8,
    pub priority: u16,
    pub cookie: String,
    pub packets: u64,
    pub bytes: u64,
    pub duration_seconds: f64,
    /// The whole entry, in Open vSwitch's words.
    pub flow: String,
}

/// An item of the answer to [`Request::Counters`].
#[derive(Debug, Serialize, Deserialize)]
pub struct Counter {
    pub cause: String,
    pub meaning: String,
    pub packets: u64,
}

/// The answer to [`Request::Templates`].
#[derive(Debug, Serialize, Deserialize)]
pub struct Templates {
    pub tables: Vec<Template>,
    /// All that is known of them.
    pub text: String,
}

/// How one table is searched.
#[derive(Debug, Serialize, Deserialize)]
pub struct Template {
    pub table: u8,
    pub template: String,
    pub why: String,
}
