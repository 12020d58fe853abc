//! The provisioner in a controller with threads and sockets, in which messages have a latency.

use crate::support::{FakeSwitch, controller};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, JoinHandle, Thread};
use urtica_services::{Flow, ProvisionConfig, Provisioner};
use urtica_topology::{Hop, Path};
use urtica_wire::{
    DatapathId, FlowMod, FlowModCommand, List, MacAddr, Match, Message, MultipartFlags,
    MultipartReply, MultipartReplyBody, PortNo, Version,
};

const SWITCHES: u64 = 4;
const PATHS: u64 = 50;

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

/// Carries out messages until the controller closes the connection; reports the added entries by cookie.
fn serve(mut switch: FakeSwitch, id: u64, adds: Sender<(u64, u64)>) {
    while let Some(frame) = switch.try_receive() {
        let xid = frame.header().xid;
        match frame.message() {
            Message::FlowMod(flow_mod) if is_add_of_path(&flow_mod) => {
                adds.send((flow_mod.cookie, id)).unwrap();
            }
            Message::MultipartRequest(_) => {
                let body = MultipartReplyBody::Flow(List::default());
                let flags = MultipartFlags::empty();
                let reply = MultipartReply { flags, body };
                switch.send(xid, &Message::MultipartReply(reply));
            }
            Message::BarrierRequest => switch.send(xid, &Message::BarrierReply),
            _ => {}
        }
    }
}

/// The session's own entries have no cookie.
fn is_add_of_path(flow_mod: &FlowMod) -> bool {
    flow_mod.command == FlowModCommand::Add && flow_mod.cookie != 0
}

#[test]
fn many_paths_over_sockets_each_from_the_egress_switch() {
    let provisioner = Provisioner::new(ProvisionConfig::default());
    let running = controller(2).program(provisioner.clone()).start().unwrap();
    let (sender, adds) = mpsc::channel();
    let switches: Vec<JoinHandle<()>> = (1..=SWITCHES)
        .map(|id| {
            let version = if id % 2 == 0 {
                Version::Of10
            } else {
                Version::Of13
            };
            let switch = FakeSwitch::join(&running, version, id);
            let sender = sender.clone();
            thread::spawn(move || serve(switch, id, sender))
        })
        .collect();
    drop(sender);
    let hop = |id| Hop {
        switch: DatapathId(id),
        in_port: PortNo(1),
        out_port: PortNo(2),
    };
    let path = Path {
        hops: (1..=SWITCHES).map(hop).collect(),
    };
    let jobs: Vec<_> = (0..PATHS)
        .map(|number| {
            let match_ = Match::any().eth_dst(MacAddr::from_u64(0x0200_0000_0000 + number));
            provisioner.provision(Flow::new(path.clone(), match_))
        })
        .collect();
    for job in jobs {
        block_on(job).unwrap();
    }
    running.stop().unwrap();
    switches
        .into_iter()
        .for_each(|switch| switch.join().unwrap());
    let mut orders = BTreeMap::<u64, Vec<u64>>::new();
    for (cookie, id) in adds {
        orders.entry(cookie).or_default().push(id);
    }
    assert_eq!(orders.len() as u64, PATHS);
    assert!(
        orders.values().all(|order| *order == [4, 3, 2, 1]),
        "{orders:?}"
    );
}
