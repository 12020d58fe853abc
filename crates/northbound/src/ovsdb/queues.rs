//! The queues of a bridge's ports: rows of the tables `Port`, `QoS` and `Queue` (ovs-vswitchd.conf.db(5)).
//!
//! A port refers to a row of `QoS`, which refers to rows of `Queue` by number. The database does not delete these rows with the
//! last reference, so replaced settings are deleted here, unless another port uses them.

use super::database::Database;
use super::{Address, OvsdbError};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashSet};
use urtica_wire::DatapathId;

/// The rates of a queue, in bit/s.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Queue {
    /// The maximum rate.
    pub max_rate: Option<u64>,
    /// The minimum rate under load.
    pub min_rate: Option<u64>,
}

impl Queue {
    /// Returns the settings in the database's notation.
    pub fn config(&self) -> BTreeMap<&'static str, String> {
        let rates = [("max-rate", self.max_rate), ("min-rate", self.min_rate)];
        let given = rates.into_iter();
        given
            .filter_map(|(key, rate)| Some((key, rate?.to_string())))
            .collect()
    }
}

/// The settings of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shaping {
    /// The kind of scheduler, such as `linux-htb`.
    pub kind: String,
    /// The maximum rate of all queues together in bit/s; the port's speed if there is none.
    pub max_rate: Option<u64>,
    /// The queues, numbered from 0.
    pub queues: Vec<Queue>,
}

/// A bridge in the database, with the ports that it had when it was read.
pub(crate) struct BridgeQueues {
    database: Database,
    id: DatapathId,
    ports: Vec<Port>,
    /// All rows of `QoS`, including those of other bridges, each with its rows of `Queue`.
    shapings: BTreeMap<String, Vec<String>>,
    /// Rows of `QoS` that ports of other bridges use.
    shapings_elsewhere: HashSet<String>,
}

/// A row of `Port`.
struct Port {
    uuid: String,
    name: String,
    shaping: Option<String>,
}

impl BridgeQueues {
    /// Reads the ports of the bridge with this datapath id.
    ///
    /// # Errors
    /// [`OvsdbError::NoBridge`] if the database has no such bridge; other errors if the database cannot be read.
    pub async fn read(address: &Address, id: DatapathId) -> Result<Self, OvsdbError> {
        let mut database = Database::connect(address).await?;
        let id_text = id.to_string();
        let results = database
            .transact(vec![
                select(
                    "Bridge",
                    json!([["datapath_id", "==", id_text]]),
                    &["ports"],
                ),
                select("Port", json!([]), &["_uuid", "name", "qos"]),
                select("QoS", json!([]), &["_uuid", "queues"]),
            ])
            .await?;
        let rows = |index: usize| results[index]["rows"].as_array();
        let (Some(bridges), Some(ports), Some(shapings)) = (rows(0), rows(1), rows(2)) else {
            return Err(database.protocol("a selection without rows"));
        };
        let bridge = bridges.first().ok_or(OvsdbError::NoBridge(id))?;
        let own: HashSet<String> = uuids(&bridge["ports"]).collect();
        let (mut ports, others): (Vec<_>, Vec<_>) = ports
            .iter()
            .filter_map(Port::of)
            .partition(|port| own.contains(&port.uuid));
        ports.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(Self {
            database,
            id,
            ports,
            shapings: shapings.iter().filter_map(shaping_of).collect(),
            shapings_elsewhere: others.into_iter().filter_map(|port| port.shaping).collect(),
        })
    }

    /// Returns the settings of each queue of the first port that has queues, by number.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub async fn queues(mut self) -> Result<BTreeMap<u32, Map<String, Value>>, OvsdbError> {
        let Some(shaping) = self.ports.iter().find_map(|port| port.shaping.clone()) else {
            return Ok(BTreeMap::new());
        };
        let results = self
            .database
            .transact(vec![
                select("QoS", is(&shaping), &["queues"]),
                select("Queue", json!([]), &["_uuid", "other_config"]),
            ])
            .await?;
        let configs: BTreeMap<String, Map<String, Value>> = results[1]["rows"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|row| {
                Some((
                    uuids(&row["_uuid"]).next()?,
                    config_of(&row["other_config"]),
                ))
            })
            .collect();
        let queues = entries(&results[0]["rows"][0]["queues"]);
        let queue = |(number, queue): (&Value, &Value)| {
            let number = u32::try_from(number.as_u64()?).ok()?;
            Some((number, configs.get(&uuids(queue).next()?)?.clone()))
        };
        Ok(queues.filter_map(queue).collect())
    }

    /// Replaces the settings of all ports, or of the port with this name.
    ///
    /// # Errors
    /// [`OvsdbError::NoPort`] if the bridge has no such port; other errors if the database does not accept the settings.
    pub async fn set(mut self, port: Option<&str>, shaping: &Shaping) -> Result<(), OvsdbError> {
        let chosen = self.chosen(port)?;
        let mut operations = Vec::new();
        for (index, port) in chosen.iter().enumerate() {
            let name = format!("qos_{index}");
            operations.extend(insertions(&name, shaping));
            operations.push(update(&port.uuid, json!(["named-uuid", name])));
        }
        operations.extend(self.deletions(&chosen));
        self.database.transact(operations).await.map(|_| ())
    }

    /// Removes the settings of all ports, and returns whether any port had settings.
    ///
    /// # Errors
    /// If the database does not accept the change.
    pub async fn clear(mut self) -> Result<bool, OvsdbError> {
        let chosen: Vec<&Port> = self
            .ports
            .iter()
            .filter(|port| port.shaping.is_some())
            .collect();
        if chosen.is_empty() {
            return Ok(false);
        }
        let none = json!(["set", []]);
        let mut operations: Vec<Value> = chosen
            .iter()
            .map(|port| update(&port.uuid, none.clone()))
            .collect();
        operations.extend(self.deletions(&chosen));
        self.database.transact(operations).await.map(|_| true)
    }

    fn chosen(&self, port: Option<&str>) -> Result<Vec<&Port>, OvsdbError> {
        let chosen = |name: &str| self.ports.iter().find(|port| port.name == name);
        match port {
            None => Ok(self.ports.iter().collect()),
            Some(name) => chosen(name).map(|port| vec![port]).ok_or_else(|| {
                let names: Vec<_> = self.ports.iter().map(|port| &*port.name).collect();
                OvsdbError::NoPort(self.id, name.to_owned(), names.join(", "))
            }),
        }
    }

    /// Returns the operations that delete the rows used only by these ports.
    fn deletions(&self, chosen: &[&Port]) -> Vec<Value> {
        let is_chosen = |port: &Port| chosen.iter().any(|other| other.uuid == port.uuid);
        let others = self.ports.iter().filter(|port| !is_chosen(port));
        let mut used: HashSet<&String> = others.filter_map(|port| port.shaping.as_ref()).collect();
        used.extend(&self.shapings_elsewhere);
        let unused: HashSet<&String> = chosen
            .iter()
            .filter_map(|port| port.shaping.as_ref())
            .filter(|shaping| !used.contains(shaping))
            .collect();
        let (deleted, kept): (Vec<_>, Vec<_>) = self
            .shapings
            .iter()
            .partition(|(uuid, _)| unused.contains(uuid));
        let (deleted, kept) = (queues_of(&deleted), queues_of(&kept));
        let queues = deleted.difference(&kept).map(|uuid| delete("Queue", uuid));
        let shapings = unused.iter().map(|uuid| delete("QoS", uuid));
        shapings.chain(queues).collect()
    }
}

/// Returns the queues to which these rows of `QoS` refer.
fn queues_of<'a>(shapings: &[(&String, &'a Vec<String>)]) -> HashSet<&'a str> {
    let queues = shapings.iter().flat_map(|(_, queues)| queues.iter());
    queues.map(String::as_str).collect()
}

impl Port {
    /// Parses a row. Returns `None` if it lacks a column.
    fn of(row: &Value) -> Option<Self> {
        Some(Self {
            uuid: uuids(&row["_uuid"]).next()?,
            name: row["name"].as_str()?.to_owned(),
            shaping: uuids(&row["qos"]).next(),
        })
    }
}

/// Parses a row of `QoS`; returns its identifier and its queues.
fn shaping_of(row: &Value) -> Option<(String, Vec<String>)> {
    let queues = entries(&row["queues"]).flat_map(|(_, queue)| uuids(queue));
    Some((uuids(&row["_uuid"]).next()?, queues.collect()))
}

/// Returns the operations that insert the rows of a port's settings, of which that of `QoS` gets this name.
fn insertions(name: &str, shaping: &Shaping) -> Vec<Value> {
    let mut operations = Vec::new();
    let mut numbers = Vec::new();
    for (number, queue) in shaping.queues.iter().enumerate() {
        let queue_name = format!("{name}_queue_{number}");
        let config = map(queue.config());
        operations.push(json!({
            "op": "insert", "table": "Queue", "uuid-name": queue_name, "row": {"other_config": config},
        }));
        numbers.push(json!([number, ["named-uuid", queue_name]]));
    }
    let max_rate = shaping.max_rate.map(|rate| ("max-rate", rate.to_string()));
    operations.push(json!({
        "op": "insert", "table": "QoS", "uuid-name": name, "row": {
            "type": shaping.kind, "other_config": map(max_rate), "queues": ["map", numbers],
        },
    }));
    operations
}

fn map(entries: impl IntoIterator<Item = (&'static str, String)>) -> Value {
    let entries: Vec<_> = entries
        .into_iter()
        .map(|(key, value)| json!([key, value]))
        .collect();
    json!(["map", entries])
}

fn select(table: &str, conditions: Value, columns: &[&str]) -> Value {
    json!({"op": "select", "table": table, "where": conditions, "columns": columns})
}

fn update(port: &str, shaping: Value) -> Value {
    json!({"op": "update", "table": "Port", "where": is(port), "row": {"qos": shaping}})
}

fn delete(table: &str, uuid: &str) -> Value {
    json!({"op": "delete", "table": table, "where": is(uuid)})
}

/// Returns the condition for the row with this identifier.
fn is(uuid: &str) -> Value {
    json!([["_uuid", "==", ["uuid", uuid]]])
}

/// Returns the identifiers in a value, which is one, or a set of them (RFC 7047 §5.1).
fn uuids(value: &Value) -> impl Iterator<Item = String> {
    let members = match (&value[0], &value[1]) {
        (Value::String(tag), Value::Array(members)) if tag == "set" => members.as_slice(),
        _ => std::slice::from_ref(value),
    };
    let uuid = |member: &Value| match member[0] == "uuid" {
        true => member[1].as_str().map(str::to_owned),
        false => None,
    };
    members.iter().filter_map(uuid)
}

/// Returns the keys and values of a map (RFC 7047 §5.1).
fn entries(value: &Value) -> impl Iterator<Item = (&Value, &Value)> {
    let pairs = match value[0] == "map" {
        true => value[1].as_array().map(Vec::as_slice),
        false => None,
    };
    let pairs = pairs.unwrap_or_default().iter();
    pairs.map(|pair| (&pair[0], &pair[1]))
}

/// Returns a row's settings as an object.
fn config_of(value: &Value) -> Map<String, Value> {
    let entry = |(key, value): (&Value, &Value)| Some((key.as_str()?.to_owned(), value.clone()));
    entries(value).filter_map(entry).collect()
}
