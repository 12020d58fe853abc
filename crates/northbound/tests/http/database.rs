//! A simulated database of Open vSwitch (RFC 7047): rows in memory, and the operations that settings of queues need.

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

type Row = Map<String, Value>;

/// The rows of each table, by identifier.
#[derive(Default)]
pub struct Tables(BTreeMap<String, BTreeMap<String, Row>>);

/// A database that serves until the test ends.
pub struct Database {
    pub address: SocketAddr,
    tables: Arc<Mutex<Tables>>,
}

impl Database {
    /// Starts a database that has a bridge with these ports for each datapath id.
    pub fn start(bridges: &[(&str, &[&str])]) -> Self {
        let mut tables = Tables::default();
        for (datapath_id, ports) in bridges {
            let ports: Vec<_> = ports
                .iter()
                .map(|name| {
                    let row = json!({"name": name, "qos": ["set", []]});
                    json!(["uuid", tables.insert("Port", row)])
                })
                .collect();
            // A set with one member is written as that member.
            let ports = match &ports[..] {
                [port] => port.clone(),
                ports => json!(["set", ports]),
            };
            tables.insert(
                "Bridge",
                json!({"datapath_id": datapath_id, "ports": ports}),
            );
        }
        let tables = Arc::new(Mutex::new(tables));
        let served = Arc::clone(&tables);
        let address = serve(move |stream| serve_client(stream, &served));
        Self { address, tables }
    }

    /// Returns the number of rows of a table.
    pub fn count(&self, table: &str) -> usize {
        let tables = self.tables.lock().unwrap();
        tables.0.get(table).map_or(0, BTreeMap::len)
    }

    /// Returns the settings of a port: its row of `QoS`, if it has one.
    pub fn shaping(&self, port: &str) -> Option<Value> {
        let tables = self.tables.lock().unwrap();
        let port = tables.0["Port"].values().find(|row| row["name"] == port)?;
        let uuid = port["qos"][1].as_str()?;
        Some(tables.0["QoS"][uuid].clone().into())
    }

    /// Makes a port use the settings of another one.
    pub fn share(&self, from: &str, to: &str) {
        let mut tables = self.tables.lock().unwrap();
        let ports = tables.0.get_mut("Port").unwrap();
        let qos = ports.values().find(|row| row["name"] == from).unwrap()["qos"].clone();
        let port = ports.values_mut().find(|row| row["name"] == to).unwrap();
        port.insert("qos".to_owned(), qos);
    }
}

/// Accepts connections at a port of this machine, and serves each on its own thread.
pub fn serve(client: impl Fn(TcpStream) + Clone + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let client = client.clone();
            thread::spawn(move || client(stream));
        }
    });
    address
}

fn serve_client(mut stream: TcpStream, tables: &Mutex<Tables>) {
    let echo = json!({"method": "echo", "params": ["alive?"], "id": "echo"});
    while let Some(request) = receive(&mut stream) {
        assert_eq!(
            (&request["method"], &request["params"][0]),
            (&json!("transact"), &json!("Open_vSwitch"))
        );
        // The client must answer this before it receives its reply.
        stream.write_all(echo.to_string().as_bytes()).unwrap();
        let alive = receive(&mut stream).unwrap();
        assert_eq!(
            alive,
            json!({"result": ["alive?"], "error": null, "id": "echo"})
        );
        let operations = &request["params"].as_array().unwrap()[1..];
        let result = tables.lock().unwrap().transact(operations);
        let reply = json!({"result": result, "error": null, "id": request["id"]}).to_string();
        // The reply is sent in two parts, and followed by a space, as the protocol allows.
        let (first, rest) = reply.as_bytes().split_at(reply.len() / 2);
        stream.write_all(first).unwrap();
        thread::yield_now();
        stream.write_all(rest).unwrap();
        stream.write_all(b" ").unwrap();
    }
}

/// Reads the next request. Returns `None` at the end of the connection.
pub fn receive(stream: &mut TcpStream) -> Option<Value> {
    let mut bytes = Vec::new();
    loop {
        let mut byte = [0];
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        bytes.push(byte[0]);
        if byte[0] == b'}' {
            if let Ok(message) = serde_json::from_slice(&bytes) {
                return Some(message);
            }
        }
    }
}

impl Tables {
    fn insert(&mut self, table: &str, row: Value) -> String {
        let Value::Object(mut row) = row else {
            panic!("a row is an object");
        };
        let rows = self.0.entry(table.to_owned()).or_default();
        let number = rows
            .keys()
            .last()
            .map_or(0, |last| last[9..].parse::<u64>().unwrap() + 1);
        let uuid = format!("{:>8.8}-{number:09}", table.to_lowercase());
        row.insert("_uuid".to_owned(), json!(["uuid", uuid]));
        rows.insert(uuid.clone(), row);
        uuid
    }

    /// Executes operations. References to rows of the transaction become identifiers. Rows that are referenced cannot be
    /// deleted.
    fn transact(&mut self, operations: &[Value]) -> Vec<Value> {
        let mut names = BTreeMap::new();
        let mut results: Vec<_> = operations
            .iter()
            .map(|operation| self.carry_out(operation, &mut names))
            .collect();
        let missing = self.dangling();
        results.extend(missing.map(|uuid| {
            json!({"error": "referential integrity violation", "details": format!("{uuid} is missing")})
        }));
        results
    }

    fn carry_out(&mut self, operation: &Value, names: &mut BTreeMap<String, String>) -> Value {
        let table = operation["table"].as_str().unwrap();
        let condition = operation["where"][0].clone();
        let is_meant =
            |row: &Row| condition.is_null() || row[condition[0].as_str().unwrap()] == condition[2];
        match operation["op"].as_str().unwrap() {
            "select" => {
                let columns: Vec<_> = operation["columns"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|name| name.as_str().unwrap())
                    .collect();
                let rows = self
                    .0
                    .get(table)
                    .into_iter()
                    .flat_map(BTreeMap::values)
                    .filter(|row| is_meant(row));
                let rows: Vec<Row> = rows
                    .map(|row| {
                        columns
                            .iter()
                            .map(|&name| (name.to_owned(), row[name].clone()))
                            .collect()
                    })
                    .collect();
                json!({ "rows": rows })
            }
            "insert" => {
                let uuid = self.insert(table, named(&operation["row"], names));
                let name = operation["uuid-name"].as_str().unwrap();
                names.insert(name.to_owned(), uuid.clone());
                json!({"uuid": ["uuid", uuid]})
            }
            "update" => {
                let Value::Object(changes) = named(&operation["row"], names) else {
                    panic!("a row is an object");
                };
                let mut count = 0;
                for row in self
                    .0
                    .get_mut(table)
                    .unwrap()
                    .values_mut()
                    .filter(|row| is_meant(row))
                {
                    row.extend(changes.clone());
                    count += 1;
                }
                json!({ "count": count })
            }
            "delete" => {
                let rows = self.0.get_mut(table).unwrap();
                let before = rows.len();
                rows.retain(|_, row| !is_meant(row));
                json!({"count": before - rows.len()})
            }
            other => panic!("no operation is called {other}"),
        }
    }

    /// Returns a row of `QoS` or `Queue` that another row references but that does not exist.
    fn dangling(&self) -> Option<String> {
        let has = |table: &str, uuid: &str| {
            self.0
                .get(table)
                .is_some_and(|rows| rows.contains_key(uuid))
        };
        let rows = |table: &str| self.0.get(table).into_iter().flat_map(BTreeMap::values);
        let shapings = rows("Port").filter_map(|row| row["qos"][1].as_str());
        let queues = rows("QoS")
            .flat_map(|row| row["queues"][1].as_array().unwrap())
            .map(|entry| entry[1][1].as_str().unwrap());
        let mut missing = shapings
            .filter(|uuid| !has("QoS", uuid))
            .chain(queues.filter(|uuid| !has("Queue", uuid)));
        missing.next().map(str::to_owned)
    }
}

/// Replaces names of rows with their identifiers.
fn named(value: &Value, names: &BTreeMap<String, String>) -> Value {
    match value {
        Value::Array(members) if members.first().is_some_and(|tag| tag == "named-uuid") => {
            json!(["uuid", names[members[1].as_str().unwrap()]])
        }
        Value::Array(members) => members.iter().map(|member| named(member, names)).collect(),
        Value::Object(members) => {
            let members = members.iter();
            Value::Object(
                members
                    .map(|(key, member)| (key.clone(), named(member, names)))
                    .collect(),
            )
        }
        other => other.clone(),
    }
}
