//! The protocol of the control socket.

use serde::{Deserialize, Serialize};

/// A request to a switch; also the commands of `urtica switch ctl`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, clap::Subcommand)]
#[serde(tag = "command", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Print the switch, its ports with their counters, and its controllers with their states.
    Show,
    /// Print the tables in use, with their counters.
    #[command(visible_alias = "dump-tables")]
    Tables,
    /// Print the flow entries, like ovs-ofctl dump-flows.
    #[command(visible_alias = "dump-flows")]
    Flows {
        /// Print only the entries of this table.
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(..255))]
        #[serde(default, skip_serializing_if = "Option::is_none")]
        table: Option<u8>,
        /// Print the entries with the most packets first.
        #[arg(long)]
        #[serde(skip)]
        by_use: bool,
    },
    /// Print the numbers of dropped packets, by cause.
    Counters,
    /// Print the compiled form of each table and the reason, like --explain.
    Templates,
    /// Add a port, and notify controllers.
    AddPort {
        /// PORT, or NUMBER=KIND:NAME, as on the command line of urtica switch [default number: this name's earlier
        /// number, or an unused one].
        #[arg(value_name = "PORT")]
        port: String,
    },
    /// Remove a port, and notify controllers; flow entries that name it stay.
    RemovePort {
        /// The port's number or name.
        #[arg(value_name = "PORT")]
        port: String,
    },
    /// Set a queue of a port, replacing its settings.
    SetQueue {
        /// The port's number or name.
        #[arg(value_name = "PORT")]
        port: String,
        /// The queue's number.
        #[arg(value_name = "QUEUE")]
        queue: u32,
        #[command(flatten)]
        #[serde(flatten)]
        settings: QueueSettings,
    },
    /// Delete a queue of a port.
    DeleteQueue {
        /// The port's number or name.
        #[arg(value_name = "PORT")]
        port: String,
        /// The queue's number [default: all queues of the port, and its rate].
        #[arg(value_name = "QUEUE")]
        #[serde(default, skip_serializing_if = "Option::is_none")]
        queue: Option<u32>,
    },
    /// Set the rate that all queues of a port share.
    SetQueueRate {
        /// The port's number or name.
        #[arg(value_name = "PORT")]
        port: String,
        /// The rate, such as 1Gbit [default: the rate that the port reports].
        #[arg(value_name = "RATE")]
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rate: Option<String>,
    },
    /// Add a controller to connect to, or an address to listen on.
    AddController {
        /// An address, as for --controller.
        #[arg(value_name = "ADDR")]
        address: String,
    },
    /// Remove a controller or a listening address, and close its connections.
    RemoveController {
        /// The address, as 'show' lists it.
        #[arg(value_name = "ADDR")]
        address: String,
    },
}

/// A change of a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::Args)]
#[serde(default)]
pub struct QueueSettings {
    /// Minimum rate, such as 10Mbit [default: none].
    #[arg(long, value_name = "RATE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_rate: Option<String>,
    /// Maximum rate [default: none].
    #[arg(long, value_name = "RATE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_rate: Option<String>,
    /// Priority above the minimum rates, the lowest number first [default: 0].
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// Maximum number of waiting frames [default: 1000].
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_packets: Option<u32>,
    /// Maximum number of waiting bytes [default: 2097152].
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u32>,
}

/// One line of an answer.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// One item of the answer.
    Item(serde_json::Value),
    /// The end of the answer.
    Done(bool),
    /// The message of an error, which ends the answer.
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

/// A port, with its counters.
#[derive(Debug, Serialize, Deserialize)]
pub struct Port {
    pub number: u32,
    pub name: String,
    pub hw_addr: String,
    /// Whether it is enabled: controllers can disable it.
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
    /// The rate that all queues share, if it is set.
    pub queue_rate: Option<String>,
    pub queues: Vec<QueueRow>,
}

/// A queue of a port, and its counters.
#[derive(Debug, Serialize, Deserialize)]
pub struct QueueRow {
    pub queue: u32,
    pub min_rate: Option<String>,
    pub max_rate: Option<String>,
    pub priority: u8,
    pub max_packets: u32,
    pub max_bytes: u32,
    pub tx_packets: u64,
    pub tx_bytes: u64,
    /// Frames dropped because the queue was full.
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
    /// The version of OpenFlow; `null` before the controller's hello.
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
    /// The whole entry, in the syntax of Open vSwitch.
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
    /// The known details.
    pub text: String,
}

/// The compiled form of a table.
#[derive(Debug, Serialize, Deserialize)]
pub struct Template {
    pub table: u8,
    pub template: String,
    pub why: String,
}
