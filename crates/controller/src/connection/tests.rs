//! Tests of a connection's state that cannot be seen from outside.

use super::*;
use crate::program_list::ProgramList;
use crate::stage::Tables;
use crate::{Network, Program, RequestError};
use std::io;
use std::time::Duration;
use urtica_wire::{Capabilities, Features, List, Version};

/// Accepts everything.
struct Taking;

impl Channel for Taking {
    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }
}

/// A handler that does nothing.
struct Quiet;

impl SwitchHandler for Quiet {}

fn batch() -> BatchContext {
    let network = Network::new(1, Tables::Shared).unwrap();
    let programs: Vec<Arc<dyn Program>> = vec![Arc::new(|_: &SwitchInfo| Quiet)];
    let programs = ProgramList::first(programs, None, &network);
    BatchContext::new(Vec::new(), Instant::now(), network, programs, 0)
}

/// Returns the connection of a 1.0 switch that has joined.
fn joined(batch: &mut BatchContext) -> Connection<Taking> {
    let config = SessionConfig::default();
    let mut connection = Connection::new(Taking, "a test".into(), 1, config, batch.now);
    let features = Message::FeaturesReply(Features {
        datapath_id: DatapathId(1),
        n_buffers: 0,
        n_tables: 1,
        auxiliary_id: 0,
        capabilities: Capabilities::empty(),
        actions: 0,
        ports: List::default(),
    });
    let mut said = vec![1, 0, 0, 8, 0, 0, 0, 0];
    features.encode(Version::Of10, 0, &mut said).unwrap();
    connection.handle_input(&said, batch).unwrap();
    connection.flush(batch).unwrap();
    connection
}

fn encoded(message: &Message, xid: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.encode(Version::Of10, xid, &mut bytes).unwrap();
    bytes
}

#[test]
fn abandoned_requests_are_forgotten() {
    let mut batch = batch();
    let mut connection = joined(&mut batch);
    let start = batch.now;
    let ask = |connection: &mut Connection<Taking>, batch: &BatchContext| {
        let (sender, receiver) = oneshot::channel();
        let asker = Asker {
            sender,
            deadline: Duration::from_secs(60),
        };
        let bytes = encoded(&Message::BarrierRequest, 0);
        connection.send(bytes, 1, Some(asker), batch);
        receiver
    };
    for _ in 0..1000 {
        drop(ask(&mut connection, &batch));
    }
    let awaited = ask(&mut connection, &batch);
    assert_eq!(connection.requests.xids().count(), 1001);
    connection.handle_timeout(&mut batch).unwrap();
    let [xid] = connection.requests.xids().collect::<Vec<_>>()[..] else {
        panic!("expected one request that somebody waits for");
    };
    let reply = encoded(&Message::BarrierReply, xid);
    connection.handle_input(&reply, &mut batch).unwrap();
    assert!(awaited.recv().unwrap().is_ok());
    // An unanswered request ends.
    let awaited = ask(&mut connection, &batch);
    batch.now = start + Duration::from_secs(59);
    connection.requests.sweep(batch.now);
    assert!(awaited.try_recv().is_err(), "there is time left");
    connection.requests.sweep(start + Duration::from_secs(60));
    let timeout = RequestError::Timeout(Duration::from_secs(60));
    assert_eq!(awaited.recv().unwrap().err(), Some(timeout));
    assert_eq!(connection.requests.xids().count(), 0);
}
