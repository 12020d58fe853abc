//! Tests of ports that several threads receive by.

use crate::port::af_packet::AfPacketPort;
use crate::port::testing::{FLOWS, by_flow, in_namespace, ip, receive_from_all, send_flows, veth};
use crate::port_table::ReceivedHere;
use crate::runner::{Runner, StopHandle, Threads};
use crate::{FailMode, PortIo, Switch, SwitchConfig};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use urtica_wire::{FlowMod, FlowModCommand, PortNo};

/// More than ports.
const THREADS: usize = 3;

/// How many frames of a flow a test sends.
const FRAMES: u16 = 20;

/// A switch whose ports 1 and 2 are linked with two hosts, and how many frames each thread has received by port 1.
struct Room {
    hosts: [Box<dyn PortIo>; 2],
    received: Vec<ReceivedHere>,
    stop: StopHandle,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Room {
    fn drop(&mut self) {
        self.stop.stop();
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(std::thread::panicking() || ended.is_some_and(|ended| ended.is_ok()));
    }
}

impl Room {
    fn new(fail_mode: FailMode) -> Self {
        let mut switch = Switch::new(SwitchConfig {
            fail_mode,
            ..SwitchConfig::default()
        });
        for number in 1..=2 {
            veth(&format!("p{number}"), &format!("h{number}"));
            let port = AfPacketPort::open(&format!("p{number}")).unwrap();
            switch.add_port(PortNo(number), Box::new(port), Duration::ZERO);
        }
        let forward = "in_port=1,actions=output:2";
        let forward = FlowMod::parse(FlowModCommand::Add, forward).unwrap();
        let add = |pipeline: &mut urtica_pipeline::Pipeline| {
            pipeline.flow_mod(&forward, Duration::ZERO, &mut Vec::new())
        };
        switch.shared.change(add).unwrap();
        let threads = Threads {
            count: THREADS,
            cores: Vec::new(),
        };
        let runner = Runner::new(switch, &[]).unwrap();
        let runner = runner.with_threads(&threads).unwrap();
        let ports = runner.workers.iter().map(|worker| worker.ports());
        let received = ports.map(|ports| ports.get(PortNo(1)).unwrap().received_here());
        Self {
            received: received.collect(),
            hosts: [host("h1"), host("h2")],
            stop: runner.stop_handle(),
            thread: Some(std::thread::spawn(|| runner.run().unwrap())),
        }
    }

    /// How many frames each thread has received.
    fn received(&self) -> Vec<u64> {
        self.received.iter().map(ReceivedHere::packets).collect()
    }

    /// Waits until all flows pass, by all threads: the links are up, and every thread has the port.
    fn wait(&mut self) {
        let start = Instant::now();
        let before = self.received();
        for round in FRAMES.. {
            send_flows(&mut *self.hosts[0], round);
            let (sent_at, mut passed) = (Instant::now(), 0);
            while passed < FLOWS && sent_at.elapsed() < Duration::from_secs(1) {
                self.hosts[1]
                    .receive(32, &mut |frame| {
                        let flows = by_flow(&[frame.to_vec()]);
                        passed += u16::from(flows.values().all(|numbers| *numbers == [round]));
                    })
                    .unwrap();
            }
            let now = self.received();
            let all_receive = before.iter().zip(&now).all(|(before, now)| before < now);
            if passed == FLOWS && all_receive {
                return;
            }
            assert!(start.elapsed() < Duration::from_secs(60), "{now:?}");
        }
    }

    /// Has flows pass, each frame once and each flow in order.
    fn flows_pass(&mut self) {
        self.wait();
        for number in 0..FRAMES {
            send_flows(&mut *self.hosts[0], number);
        }
        let count = usize::from(FLOWS * FRAMES);
        let received = receive_from_all(&mut self.hosts[1..], count);
        let flows = by_flow(&received[0]);
        assert_eq!(flows.len(), usize::from(FLOWS));
        for (flow, numbers) in flows {
            assert!(numbers.into_iter().eq(0..FRAMES), "flow {flow}");
        }
    }
}

fn host(name: &str) -> Box<dyn PortIo> {
    Box::new(AfPacketPort::open(name).unwrap())
}

#[test]
fn all_threads_receive_by_a_port_and_flows_stay_whole_and_in_order() {
    for fail_mode in [FailMode::Secure, FailMode::Standalone] {
        in_namespace(move || Room::new(fail_mode).flows_pass());
    }
}

#[test]
fn ports_that_are_deleted_and_made_again_come_back() {
    in_namespace(|| {
        let mut room = Room::new(FailMode::Secure);
        room.flows_pass();
        for number in [1, 2, 1] {
            ip(&format!("link delete p{number}"));
            veth(&format!("p{number}"), &format!("h{number}"));
            room.hosts[number - 1] = host(&format!("h{number}"));
            room.flows_pass();
        }
    });
}
