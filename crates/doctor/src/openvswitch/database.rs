//! Open vSwitch's configuration database, as `ovs-vsctl` prints it: `ovs-vswitchd.conf.db(5)`.

use super::target::socket_of;
use crate::program::{NoAnswer, ask};
use crate::sockets;
use serde::Deserialize;
use serde_json::Value;
use std::collections::HashMap;
use std::thread;
use std::time::{Duration, Instant};

/// Slightly more than the interval at which ovs-vswitchd writes whether bridges are connected
/// (`other_config:stats-update-interval`).
const STATUS_INTERVAL: Duration = Duration::from_secs(6);

const TABLES: [&str; 6] = [
    "Open_vSwitch",
    "Bridge",
    "Controller",
    "Port",
    "Interface",
    "SSL",
];

/// The database's contents, and versions.
pub struct OpenVswitch {
    tables: Vec<Vec<Row>>,
    daemon: Result<String, NoAnswer>,
    installed: Option<String>,
}

/// A record.
#[derive(Debug, Default)]
pub struct Row(HashMap<String, Value>);

#[derive(Deserialize)]
struct Table {
    headings: Vec<String>,
    data: Vec<Vec<Value>>,
}

impl OpenVswitch {
    /// Queries the Open vSwitch of this machine, or of `OVS_RUNDIR`. Waits until the database reports the connections
    /// of bridges that have just connected.
    ///
    /// # Errors
    /// If it is not installed, does not run, or does not reply.
    pub fn read() -> Result<Self, NoAnswer> {
        let deadline = Instant::now() + STATUS_INTERVAL;
        let mut read = Self::read_once()?;
        while read.is_out_of_date() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(200));
            read = Self::read_once()?;
        }
        Ok(read)
    }

    /// Returns `true` if ovs-vswitchd is connected to a controller that the database reports as not connected.
    fn is_out_of_date(&self) -> bool {
        let bridges = self.bridges();
        let mut controllers = bridges.flat_map(|bridge| self.controllers(bridge));
        controllers.any(|controller| {
            let socket = socket_of(controller.text("target").unwrap_or_default());
            !controller.is_true("is_connected")
                && socket.is_some_and(|socket| sockets::is_connected("ovs-vswitchd", socket))
        })
    }

    fn read_once() -> Result<Self, NoAnswer> {
        let lists = TABLES.map(|table| ["--", "list", table]).concat();
        let options = ["--timeout=10", "--format=json"];
        let printed = ask("ovs-vsctl", &[&options[..], &lists].concat())?;
        let daemon = ask("ovs-appctl", &["--timeout=5", "version"]);
        Ok(Self {
            tables: parse(&printed)?,
            daemon: daemon.map(|said| version(&said)),
            installed: ask("ovs-vsctl", &["--version"])
                .ok()
                .map(|said| version(&said)),
        })
    }

    /// Returns the version of the running ovs-vswitchd.
    pub fn daemon(&self) -> Result<&str, &NoAnswer> {
        self.daemon.as_deref()
    }

    pub fn installed_version(&self) -> Option<&str> {
        self.installed.as_deref()
    }

    pub fn table(&self, name: &str) -> &[Row] {
        let index = TABLES.iter().position(|table| *table == name);
        let table = index.and_then(|index| self.tables.get(index));
        table.map_or(&[], Vec::as_slice)
    }

    pub fn bridges(&self) -> impl Iterator<Item = &Row> {
        self.table("Bridge").iter()
    }

    /// Returns the controllers that a bridge connects to; other rows may be listening addresses.
    pub fn controllers<'a>(&'a self, bridge: &'a Row) -> Vec<&'a Row> {
        let all = self.referred("Controller", bridge, "controller");
        let is_active = |row: &&Row| !row.text("target").unwrap_or_default().starts_with('p');
        all.filter(is_active).collect()
    }

    pub fn ports<'a>(&'a self, bridge: &'a Row) -> impl Iterator<Item = &'a Row> {
        self.referred("Port", bridge, "ports")
    }

    pub fn interfaces<'a>(&'a self, bridge: &'a Row) -> Vec<&'a Row> {
        let ports = self.ports(bridge);
        let interfaces = ports.flat_map(|port| self.referred("Interface", port, "interfaces"));
        interfaces.collect()
    }

    /// Returns the TLS files, if set.
    pub fn ssl(&self) -> Option<&Row> {
        self.table("SSL").first()
    }

    /// Returns `true` if an upgrade is unfinished.
    pub fn waits_for_flows(&self) -> bool {
        let root = self.table("Open_vSwitch").first();
        root.and_then(|root| root.entry("other_config", "flow-restore-wait")) == Some("true")
    }

    fn referred<'a>(
        &'a self,
        table: &'static str,
        row: &'a Row,
        column: &'a str,
    ) -> impl Iterator<Item = &'a Row> {
        let wanted = row.texts(column);
        let rows = self.table(table).iter();
        rows.filter(move |row| row.text("_uuid").is_some_and(|id| wanted.contains(&id)))
    }
}

impl Row {
    /// Returns the texts, or ids, of a column.
    pub fn texts(&self, column: &str) -> Vec<&str> {
        let Some(value) = self.0.get(column) else {
            return Vec::new();
        };
        match tagged(value) {
            Some(("set", Value::Array(values))) => values.iter().filter_map(text).collect(),
            _ => text(value).into_iter().collect(),
        }
    }

    /// Returns a column with at most one text; `None` if it is empty.
    pub fn text(&self, column: &str) -> Option<&str> {
        let texts = self.texts(column);
        texts.first().copied().filter(|text| !text.is_empty())
    }

    pub fn number(&self, column: &str) -> Option<u64> {
        self.0.get(column)?.as_u64()
    }

    pub fn is_true(&self, column: &str) -> bool {
        self.0.get(column).and_then(Value::as_bool) == Some(true)
    }

    /// Returns the value of a key in a column that is a map.
    pub fn entry(&self, column: &str, key: &str) -> Option<&str> {
        let (_, Value::Array(pairs)) = tagged(self.0.get(column)?)? else {
            return None;
        };
        let mut pairs = pairs
            .iter()
            .filter_map(|pair| match pair.as_array()?.as_slice() {
                [name, value] => Some((name.as_str()?, value.as_str()?)),
                _ => None,
            });
        pairs.find(|(name, _)| *name == key).map(|(_, value)| value)
    }
}

/// Splits `["set", …]`, `["map", …]`, `["uuid", …]` (RFC 7047, section 5.1).
fn tagged(value: &Value) -> Option<(&str, &Value)> {
    match value.as_array()?.as_slice() {
        [tag, value] => Some((tag.as_str()?, value)),
        _ => None,
    }
}

fn text(value: &Value) -> Option<&str> {
    match tagged(value) {
        Some(("uuid", id)) => id.as_str(),
        _ => value.as_str(),
    }
}

fn parse(printed: &str) -> Result<Vec<Vec<Row>>, NoAnswer> {
    let tables = serde_json::Deserializer::from_str(printed).into_iter::<Table>();
    let rows = |table: Table| {
        let rows = table.data.into_iter();
        let rows = rows.map(|row| Row(table.headings.iter().cloned().zip(row).collect()));
        rows.collect()
    };
    let tables = tables.map(|table| table.map(rows));
    tables.collect::<Result<_, _>>().map_err(|error| {
        NoAnswer::Refused(format!("the output of ovs-vsctl cannot be parsed: {error}"))
    })
}

/// Extracts the version from `ovs-vswitchd (Open vSwitch) 3.1.0` and further text.
fn version(said: &str) -> String {
    let line = said.lines().next().unwrap_or_default();
    line.rsplit(' ').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
impl OpenVswitch {
    /// Creates a database with these tables, as ovs-vsctl prints them.
    pub fn of(printed: &str) -> Self {
        Self {
            tables: parse(printed).unwrap(),
            daemon: Ok("3.1.0".into()),
            installed: Some("3.1.0".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_as_ovs_vsctl_prints_them() {
        let printed = r#"{"data":[[["map",[["flow-restore-wait","true"]]]]],"headings":["other_config"]}
            {"data":[[["uuid","b"],["uuid","c"],["set",["OpenFlow10","OpenFlow13"]],["set",[]],"s1"]],
             "headings":["_uuid","controller","protocols","fail_mode","name"]}
            {"data":[[["uuid","c"],false,"tcp:127.0.0.1:6653",5000],[["uuid","d"],true,"tcp:[::1]",["set",[]]]],
             "headings":["_uuid","is_connected","target","inactivity_probe"]}"#;
        let switch = OpenVswitch::of(printed);
        assert!(switch.waits_for_flows());
        let bridge = switch.bridges().next().unwrap();
        assert_eq!(bridge.texts("protocols"), ["OpenFlow10", "OpenFlow13"]);
        assert_eq!(
            (bridge.text("fail_mode"), bridge.text("name")),
            (None, Some("s1"))
        );
        let controllers = switch.controllers(bridge);
        assert_eq!(controllers.len(), 1);
        assert_eq!(controllers[0].number("inactivity_probe"), Some(5000));
        assert!(!controllers[0].is_true("is_connected"));
        assert!(switch.interfaces(bridge).is_empty() && switch.ssl().is_none());
    }

    #[test]
    fn rejects_other_output_than_tables() {
        for printed in ["{", "[]", r#"{"data":1,"headings":[]}"#] {
            assert!(parse(printed).is_err(), "{printed}");
        }
        assert_eq!(version("ovs-vswitchd (Open vSwitch) 3.1.0\n"), "3.1.0");
    }
}
