//! Tests of adding and removing ports and controllers while a switch runs, with and without separate threads for packets.

use super::*;
use crate::port::memory::{self, MemoryPort};
use crate::port::testing::{eventually, frame};
use crate::runner::{ControllerState, RunError, StopHandle, Threads};
use crate::{FailMode, Switch, SwitchConfig};
use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;
use urtica_wire::{MacAddr, Message, PortReason, split_frame};

/// A running switch with two ports, `one` and `two`, which forwards as a learning switch, and is stopped on drop.
struct Running {
    remote: Remote,
    hosts: Vec<MemoryPort>,
    stop: StopHandle,
    thread: Option<JoinHandle<Result<(), RunError>>>,
}

impl Running {
    fn start(thread_count: usize) -> Self {
        let mut switch = Switch::new(SwitchConfig {
            fail_mode: FailMode::Standalone,
            ..SwitchConfig::default()
        });
        let mut hosts = Vec::new();
        for (number, name) in [(1, "one"), (2, "two")] {
            let (port, host) = link(name);
            switch.add_port(PortNo(number), Box::new(port), Duration::ZERO);
            hosts.push(host);
        }
        let threads = Threads {
            count: thread_count,
            cores: Vec::new(),
        };
        let runner = Runner::new(switch, &[]).unwrap();
        let runner = runner.with_threads(&threads).unwrap();
        let (remote, stop) = (runner.remote(), runner.stop_handle());
        Self {
            remote,
            hosts,
            stop,
            thread: Some(std::thread::spawn(|| runner.run())),
        }
    }

    /// Adds a port with this name; returns its number and the other end of its link.
    fn add(&self, name: &str) -> (PortNo, MemoryPort) {
        let (port, host) = link(name);
        let number = self.remote.add_port(None, Box::new(port)).unwrap();
        (number, host)
    }

    fn numbers(&self) -> Vec<u32> {
        let ports = self.remote.status().unwrap().ports;
        ports
            .iter()
            .map(|port| port.description.port_no.0)
            .collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.stop();
        let ended = self.thread.take().map(JoinHandle::join);
        if !std::thread::panicking() {
            ended.unwrap().expect("no panic").expect("an orderly end");
        }
    }
}

fn link(name: &str) -> (MemoryPort, MemoryPort) {
    let mac = MacAddr::new([2, 0, 0, 0, 1, name.len() as u8]);
    memory::pair((name, mac), ("host", mac), 64)
}

/// Waits until a frame from one host arrives at the other. It is sent repeatedly, since threads learn of new ports one after
/// the other.
fn reaches(from: &mut MemoryPort, to: &mut MemoryPort, mark: u8) {
    let sent = frame(60, mark);
    eventually(|| {
        from.send(&sent);
        from.flush();
        let mut came = false;
        to.receive(32, &mut |frame| came |= frame == sent).unwrap();
        came
    });
}

#[test]
fn ports_are_added_and_removed_with_any_number_of_threads() {
    for thread_count in [0, 1, 2] {
        let mut running = Running::start(thread_count);
        let (number, mut third) = running.add("three");
        assert_eq!(number, PortNo(3));
        reaches(&mut running.hosts[0], &mut third, 1);
        reaches(&mut third, &mut running.hosts[1], 2);
        assert_eq!(running.remote.remove_port("three").unwrap(), PortNo(3));
        // The switch's end is closed.
        assert!(!third.is_up(), "{thread_count}");
        assert_eq!(running.numbers(), [1, 2]);
        let [first, second] = &mut running.hosts[..] else {
            panic!("expected two hosts");
        };
        reaches(first, second, 3);
    }
}

#[test]
fn numbers_belong_to_names() {
    let running = Running::start(1);
    let (three, _) = running.add("three");
    running.remote.remove_port("3").unwrap();
    let (four, _) = running.add("four");
    let (again, _) = running.add("three");
    assert_eq!([three, four, again], [PortNo(3), PortNo(4), PortNo(3)]);
    let (port, _host) = link("nine");
    let asked_for = running.remote.add_port(Some(PortNo(9)), Box::new(port));
    assert_eq!(asked_for.unwrap(), PortNo(9));
    assert_eq!(running.numbers(), [1, 2, 3, 4, 9]);
}

#[test]
fn invalid_requests_are_refused_without_effect() {
    let running = Running::start(1);
    let add = |number, name| {
        let (port, _host) = link(name);
        let added = running.remote.add_port(number, Box::new(port));
        added.unwrap_err().to_string()
    };
    assert!(add(None, "one").contains("'one' is already port 1"));
    assert!(add(Some(PortNo(2)), "new").contains("expected an unused number"));
    assert!(add(Some(PortNo(0)), "new").contains("expected 1 to"));
    assert!(add(Some(PortNo::LOCAL), "new").contains("expected 1 to"));
    let error = running.remote.remove_port("seven").unwrap_err();
    assert!(error.to_string().contains("no port 'seven'"));
    let address = "tcp:127.0.0.1:1".parse().unwrap();
    let error = running.remote.remove_controller(&address).unwrap_err();
    assert!(matches!(error, RemoteError::NoController(_)));
    let tls = "pssl:0:127.0.0.1".parse().unwrap();
    assert!(running.remote.add_controller(&tls).is_err());
    assert_eq!(running.numbers(), [1, 2]);
    assert!(running.remote.status().unwrap().controllers.is_empty());
}

#[test]
fn the_local_port_cannot_be_removed() {
    let mut switch = Switch::new(SwitchConfig::default());
    let (local, _host) = link("br0");
    switch.add_port(PortNo::LOCAL, Box::new(local), Duration::ZERO);
    let runner = Runner::new(switch, &[]).unwrap();
    let (remote, stop) = (runner.remote(), runner.stop_handle());
    let thread = std::thread::spawn(|| runner.run());
    for name in ["br0", "LOCAL"] {
        let refused = remote.remove_port(name);
        assert!(matches!(refused, Err(RemoteError::LocalStays)), "{name}");
    }
    let (other, _host) = link("eth1");
    assert_eq!(remote.add_port(None, Box::new(other)).unwrap(), PortNo(1));
    stop.stop();
    thread.join().unwrap().unwrap();
}

#[test]
fn controllers_are_added_and_removed() {
    let running = Running::start(1);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let address = format!("tcp:127.0.0.1:{port}").parse().unwrap();
    running.remote.add_controller(&address).unwrap();
    let again = running.remote.add_controller(&address);
    assert!(matches!(again, Err(RemoteError::ControllerTwice(_))));
    let (mut stream, _) = listener.accept().unwrap();
    eventually(|| {
        let status = running.remote.status().unwrap();
        status.controllers[0].state == ControllerState::Connected
    });
    assert_eq!(running.remote.status().unwrap().connections.len(), 1);
    running.remote.remove_controller(&address).unwrap();
    // This reads the hello, and the end of the connection.
    assert!(stream.read_to_end(&mut Vec::new()).unwrap() > 0);
    assert!(running.remote.status().unwrap().controllers.is_empty());
}

#[test]
fn listeners_are_added_and_removed_with_their_connections() {
    let running = Running::start(1);
    running
        .remote
        .add_controller(&"ptcp:0:127.0.0.1".parse().unwrap())
        .unwrap();
    let listening = &running.remote.status().unwrap().controllers[0];
    assert_eq!(listening.state, ControllerState::Listening);
    let bound = listening.address.listen_addr().unwrap();
    let mut stream = TcpStream::connect(bound).unwrap();
    stream.read_exact(&mut [0; 8]).unwrap();
    running
        .remote
        .remove_controller(&listening.address)
        .unwrap();
    stream.read_to_end(&mut Vec::new()).unwrap();
    assert!(TcpStream::connect(bound).is_err());
}

#[test]
fn controllers_are_notified_of_added_and_removed_ports() {
    let running = Running::start(2);
    running
        .remote
        .add_controller(&"ptcp:0:127.0.0.1".parse().unwrap())
        .unwrap();
    let status = running.remote.status().unwrap();
    let bound = status.controllers[0].address.listen_addr().unwrap();
    let mut stream = TcpStream::connect(bound).unwrap();
    // OpenFlow 1.3's OFPT_HELLO.
    std::io::Write::write_all(&mut stream, &[4, 0, 0, 8, 0, 0, 0, 1]).unwrap();
    eventually(|| {
        let connections = running.remote.status().unwrap().connections;
        connections.iter().any(|one| one.agreed.is_some())
    });
    let (number, _host) = running.add("three");
    running.remote.remove_port("three").unwrap();
    let mut told = Vec::new();
    let mut input = Vec::new();
    while told.len() < 2 {
        let mut some = [0; 4096];
        let count = stream.read(&mut some).unwrap();
        assert!(count > 0, "the switch has closed the connection");
        input.extend_from_slice(&some[..count]);
        while let Ok(Some((first, rest))) = split_frame(&input) {
            if let Ok((_, Message::PortStatus(status))) = Message::decode(first) {
                told.push((status.reason, status.port.port_no));
            }
            input = rest.to_vec();
        }
    }
    assert_eq!(
        told,
        [(PortReason::Add, number), (PortReason::Delete, number)]
    );
}

#[test]
fn requests_to_a_stopped_switch_fail() {
    let mut running = Running::start(0);
    let remote = running.remote.clone();
    running.stop.stop();
    running
        .thread
        .take()
        .map(JoinHandle::join)
        .unwrap()
        .unwrap()
        .unwrap();
    assert!(matches!(remote.status(), Err(RemoteError::Ended)));
    // For `drop`.
    running.thread = Some(std::thread::spawn(|| Ok(())));
}

#[test]
fn entries_are_read_in_steps() {
    const COUNT: u32 = 3 * LOOKS as u32 + 1;
    let mut switch = Switch::new(SwitchConfig::default());
    let flow_mods =
        (1..=COUNT).map(|port| format!("table=1,priority=7,in_port={port},actions=drop"));
    for text in flow_mods {
        let flow_mod =
            urtica_wire::FlowMod::parse(urtica_wire::FlowModCommand::Add, &text).unwrap();
        switch
            .shared
            .change(|pipeline| pipeline.flow_mod(&flow_mod, Duration::ZERO, &mut Vec::new()))
            .unwrap();
    }
    let (port, _host) = link("one");
    switch.add_port(PortNo(1), Box::new(port), Duration::ZERO);
    let runner = Runner::new(switch, &[]).unwrap();
    let (remote, stop) = (runner.remote(), runner.stop_handle());
    let thread = std::thread::spawn(|| runner.run());
    let parts: Vec<_> = remote
        .flows(&FlowStatsRequest::default())
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert!(parts.len() > 3 && parts.iter().all(|part| part.len() <= LOOKS));
    assert_eq!(parts.concat().len(), COUNT as usize);
    assert_eq!(remote.tables()[0].active_count, COUNT);
    let beyond = FlowStatsRequest {
        table_id: 254,
        ..FlowStatsRequest::default()
    };
    assert!(matches!(
        remote.flows(&beyond),
        Err(RemoteError::Request(_))
    ));
    stop.stop();
    thread.join().unwrap().unwrap();
}

#[test]
fn drops_are_counted_by_cause() {
    let mut running = Running::start(1);
    let short = [0; 13];
    running.hosts[0].send(&short);
    running.hosts[0].flush();
    eventually(|| running.remote.status().unwrap().drops.receive_errors == 1);
    // The second host's queue is never read.
    eventually(|| {
        running.hosts[0].send(&frame(60, 1));
        running.hosts[0].flush();
        running.remote.status().unwrap().drops.send_overruns > 0
    });
    let drops = running.remote.status().unwrap().drops;
    let told = |cause| drops.iter().find(|one| one.0 == cause).unwrap().2;
    assert_eq!(told("receive_errors"), 1);
    assert_eq!(told("send_overruns"), drops.send_overruns);
}
