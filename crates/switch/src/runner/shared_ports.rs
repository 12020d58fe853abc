//! Tests of ports from which several threads receive.

use crate::port::af_packet::AfPacketPort;
use crate::port::testing::{FLOWS, by_flow, in_namespace, ip, receive_from_all, send_flows, veth};
use crate::port_table::ReceivedHere;
use crate::runner::{Remote, Runner, StopHandle, Threads};
use crate::{FailMode, PortIo, PortQueues, Queue, Switch, SwitchConfig};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use urtica_wire::{FlowMod, FlowModCommand, PortNo};

/// Number of threads, which exceeds the number of ports.
const THREADS: usize = 3;

/// Number of frames of a flow that a test sends.
const FRAMES: u16 = 20;

/// A switch whose ports 1 and 2 are linked to two hosts, and each thread's count of frames received from port 1.
struct Room {
    hosts: [Box<dyn PortIo>; 2],
    received: Vec<ReceivedHere>,
    remote: Remote,
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
        add(&switch, "in_port=1,actions=output:2");
        // Only the tests with queues use these, for even and odd flows.
        for queue_id in [1, 2] {
            let match_ = format!("priority=40000,in_port=2,udp,tp_dst={}/1", queue_id % 2);
            add(
                &switch,
                &format!("{match_},actions=set_queue:{queue_id},output:1"),
            );
        }
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
            remote: runner.remote(),
            stop: runner.stop_handle(),
            thread: Some(std::thread::spawn(|| runner.run().unwrap())),
        }
    }

    /// Returns the number of frames received by each thread.
    fn received(&self) -> Vec<u64> {
        self.received.iter().map(ReceivedHere::packets).collect()
    }

    /// Waits until all flows pass, through all threads: the links are up, and every thread has the port.
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

    /// Asserts that flows pass, each frame once and each flow in order.
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

fn add(switch: &Switch, entry: &str) {
    let flow_mod = FlowMod::parse(FlowModCommand::Add, entry).unwrap();
    let add = |pipeline: &mut urtica_pipeline::Pipeline| {
        pipeline.flow_mod(&flow_mod, Duration::ZERO, &mut Vec::new())
    };
    switch.shared.change(add).unwrap();
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

/// Whichever thread receives it, each flow stays in order, and no frame is lost, even while queues are added and removed.
#[test]
fn queues_are_shared_by_all_threads() {
    in_namespace(|| {
        let mut room = Room::new(FailMode::Secure);
        let set = |room: &Room, queues: PortQueues| {
            let change = |_, settings: &mut PortQueues| {
                *settings = queues;
                Ok(())
            };
            let changed = room.remote.change_queues("2", change);
            assert_eq!(changed.unwrap(), PortNo(2));
        };
        room.flows_pass();
        // The queue has space for all frames.
        let queue = Queue {
            max_packets: 65_536,
            ..Queue::default()
        };
        let with_rate = |rate_bps| PortQueues {
            rate_bps: Some(rate_bps),
            queues: [(0, queue), (1, queue)].into(),
        };
        for queues in [
            with_rate(1_000_000_000),
            with_rate(10_000_000),
            PortQueues::default(),
            with_rate(20_000_000),
        ] {
            set(&room, queues.clone());
            room.flows_pass();
            let status = room.remote.status().unwrap();
            let found = status.ports[1].queues.clone();
            assert_eq!(found, (queues != PortQueues::default()).then_some(queues));
        }
        ip("link delete p2");
        veth("p2", "h2");
        room.hosts[1] = host("h2");
        room.flows_pass();
    });
}

/// Exact shares are tested in simulated time, independently of the machine.
#[test]
#[ignore = "measures: run it alone, with --nocapture, on a quiet machine"]
fn shares_of_queues_on_a_veth() {
    const RATE_BPS: u64 = 8_000_000;
    in_namespace(|| {
        let mut room = Room::new(FailMode::Secure);
        room.wait();
        let queue = |min_rate_bps| Queue {
            min_rate_bps: Some(min_rate_bps),
            ..Queue::default()
        };
        let change = move |_, queues: &mut PortQueues| {
            queues.rate_bps = Some(RATE_BPS);
            queues.queues = [(1, queue(1_000_000)), (2, queue(3_000_000))].into();
            Ok(())
        };
        room.remote.change_queues("1", change).unwrap();
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(5) {
            send_flows(&mut *room.hosts[1], 0);
        }
        let seconds = start.elapsed().as_secs_f64();
        let ports = room.remote.status().unwrap().ports;
        let bits = |at: usize| ports[0].queue_stats[at].tx_bytes as f64 * 8.0;
        let (share, rate) = (bits(1) / (bits(0) + bits(1)), (bits(0) + bits(1)) / seconds);
        println!(
            "queue 2 has {share:.4} of the bytes, not 0.75; both have {rate:.0} bit/s of {RATE_BPS}"
        );
        assert!((0.7..0.8).contains(&share));
        assert!(rate < RATE_BPS as f64 * 1.05);
    });
}

#[test]
fn recreated_ports_are_reopened() {
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
