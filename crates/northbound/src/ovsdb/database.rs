//! A connection to a database: JSON-RPC 1.0, one transaction at a time (RFC 7047 §4).

use super::{Address, OvsdbError};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

/// The name of Open vSwitch's database.
const NAME: &str = "Open_vSwitch";

/// The time limit for connecting, and for each transaction.
const DEADLINE: Duration = Duration::from_secs(5);

/// The maximum size of a reply, which suffices for ten thousand ports.
const MAX_REPLY_BYTES: usize = 4 << 20;

const READ_BYTES: usize = 64 << 10;

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A connection to a database.
pub(super) struct Database {
    address: String,
    stream: Box<dyn Stream>,
    /// Received bytes that have not been parsed.
    input: Vec<u8>,
    /// The number of the last request.
    last_id: u64,
}

impl Database {
    /// Connects to a database.
    ///
    /// # Errors
    /// [`OvsdbError::Connection`] and [`OvsdbError::Late`].
    pub async fn connect(address: &Address) -> Result<Self, OvsdbError> {
        let text = address.to_string();
        let stream = timeout(DEADLINE, open(address))
            .await
            .map_err(|_| OvsdbError::Late(text.clone()))?;
        let stream = stream.map_err(|error| OvsdbError::Connection {
            address: text.clone(),
            error,
        })?;
        Ok(Self {
            address: text,
            stream,
            input: Vec::new(),
            last_id: 0,
        })
    }

    /// Executes operations in one transaction, either all or none, and returns the result of each.
    ///
    /// # Errors
    /// [`OvsdbError::Refused`] if the database refuses an operation; other errors if the connection fails.
    pub async fn transact(&mut self, operations: Vec<Value>) -> Result<Vec<Value>, OvsdbError> {
        let count = operations.len();
        let late = OvsdbError::Late(self.address.clone());
        let results = timeout(DEADLINE, self.request(operations))
            .await
            .unwrap_or(Err(late))?;
        // If the commit fails, there is one additional result.
        if let Some(failed) = results.iter().find(|result| !result["error"].is_null()) {
            return Err(refused(failed));
        }
        match results.len() == count {
            true => Ok(results),
            false => Err(self.protocol("a transaction without a result for each operation")),
        }
    }

    async fn request(&mut self, operations: Vec<Value>) -> Result<Vec<Value>, OvsdbError> {
        self.last_id += 1;
        let id = json!(self.last_id);
        let mut params = vec![Value::from(NAME)];
        params.extend(operations);
        self.send(&json!({"method": "transact", "params": params, "id": id}))
            .await?;
        loop {
            let message = self.receive().await?;
            // Databases check whether their clients still respond.
            if message["method"] == "echo" {
                let reply =
                    json!({"result": message["params"], "error": null, "id": message["id"]});
                self.send(&reply).await?;
            } else if message["id"] == id {
                return match (&message["error"], message["result"].as_array()) {
                    (Value::Null, Some(results)) => Ok(results.clone()),
                    (Value::Null, None) => Err(self.protocol("a reply without results")),
                    _ => Err(refused(&message)),
                };
            }
        }
    }

    async fn send(&mut self, message: &Value) -> Result<(), OvsdbError> {
        let sent = self.stream.write_all(message.to_string().as_bytes()).await;
        sent.map_err(|error| self.connection(error))
    }

    /// Returns the next message.
    async fn receive(&mut self) -> Result<Value, OvsdbError> {
        loop {
            if let Some(message) = self.parsed()? {
                return Ok(message);
            }
            if self.input.len() > MAX_REPLY_BYTES {
                return Err(self.protocol("a message of more than 4 MiB"));
            }
            let start = self.input.len();
            self.input.resize(start + READ_BYTES, 0);
            let read = self.stream.read(&mut self.input[start..]).await;
            let count = read.map_err(|error| self.connection(error))?;
            self.input.truncate(start + count);
            if count == 0 {
                return Err(self.connection(std::io::ErrorKind::UnexpectedEof.into()));
            }
        }
    }

    /// Removes the first message from the received bytes, if it is complete.
    fn parsed(&mut self) -> Result<Option<Value>, OvsdbError> {
        // Messages are objects, so parsing is useless until the input ends with a brace.
        if self.input.trim_ascii_end().last() != Some(&b'}') {
            return Ok(None);
        }
        let mut messages = serde_json::Deserializer::from_slice(&self.input).into_iter::<Value>();
        match messages.next() {
            Some(Ok(message)) => {
                let length = messages.byte_offset();
                self.input.drain(..length);
                Ok(Some(message))
            }
            Some(Err(error)) if !error.is_eof() => Err(self.protocol("a message that is not JSON")),
            _ => Ok(None),
        }
    }

    fn connection(&self, error: std::io::Error) -> OvsdbError {
        OvsdbError::Connection {
            address: self.address.clone(),
            error,
        }
    }

    /// Creates the error for a reply that does not follow the protocol.
    pub(super) fn protocol(&self, problem: &'static str) -> OvsdbError {
        OvsdbError::Protocol(self.address.clone(), problem)
    }
}

async fn open(address: &Address) -> std::io::Result<Box<dyn Stream>> {
    Ok(match address {
        Address::Tcp(target) => Box::new(TcpStream::connect(target).await?),
        Address::Unix(path) => Box::new(UnixStream::connect(path).await?),
    })
}

/// Creates the error from a failed result or reply.
fn refused(failed: &Value) -> OvsdbError {
    let text = |value: &Value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    };
    OvsdbError::Refused(match &failed["details"] {
        Value::Null => text(&failed["error"]),
        details => format!("{}: {}", text(&failed["error"]), text(details)),
    })
}
