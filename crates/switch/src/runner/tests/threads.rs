//! Tests of switches with several threads.

use super::*;

#[test]
fn one_thread_forwards_on_several_processors() {
    let processors = std::thread::available_parallelism().unwrap().get();
    let threads = Threads::for_this_machine();
    assert_eq!(threads.count, usize::from(processors > 1));
    assert_eq!(threads.cores, []);
}

/// Creates a switch with four ports on two threads, and its controller.
pub(super) fn two_threads() -> (Running, Vec<MemoryPort>, Controller) {
    let (switch, hosts) = with_hosts(crate::FailMode::Secure, 4);
    let listen = ["ptcp:0:127.0.0.1".parse().unwrap()];
    let (running, addresses) = start_with(switch, &listen, 2);
    let controller = Controller::connect(&addresses[0]);
    (running, hosts, controller)
}

#[test]
fn changes_are_in_effect_after_a_barrier_on_all_threads() {
    let (_running, mut hosts, mut controller) = two_threads();
    for mark in 0..50 {
        // Ports 2 and 4 are on one thread, 1 and 3 on the other.
        let to = 2 + usize::from(mark % 3);
        controller.forward_to(PortNo(to as u32));
        hosts[0].send(&frame(100, mark));
        hosts[0].flush();
        assert_eq!(receive(&mut hosts[to - 1], 1), [frame(100, mark)]);
    }
}

#[test]
fn a_flood_stays_in_order_while_entries_change() {
    const FRAMES: usize = 20_000;
    let (_running, mut hosts, mut controller) = two_threads();
    controller.forward_to(PortNo(2));
    let mut receiver = hosts.remove(1);
    let mut sender = hosts.remove(0);
    let changes = std::thread::spawn(move || {
        for mark in 0..300_u64 {
            // For other frames, which match other entries.
            let instructions = [Instruction::apply(vec![Action::output(PortNo(3))])];
            controller.say(&Message::FlowMod(FlowMod {
                priority: 9,
                match_: Match::any().with_exact(OxmField::EthDst, 0x0300_0000_0000 + mark % 20),
                command: match mark % 40 {
                    0..20 => FlowModCommand::Add,
                    _ => FlowModCommand::Delete,
                },
                instructions: List::from(&instructions),
                ..FlowMod::default()
            }));
        }
        controller.forward_to(PortNo(2));
    });
    let mut received = Vec::new();
    let started = Instant::now();
    let mut sent = 0;
    while received.len() < FRAMES {
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "{} came",
            received.len()
        );
        // There must be no more frames in flight than any queue has space for.
        while sent < FRAMES && sent - received.len() < 512 {
            let mut numbered = frame(100, 0);
            numbered[20..28].copy_from_slice(&(sent as u64).to_be_bytes());
            assert!(sender.send(&numbered));
            sent += 1;
        }
        sender.flush();
        let mut take = |frame: &[u8]| {
            received.push(u64::from_be_bytes(frame[20..28].try_into().unwrap()));
        };
        receiver.receive(32, &mut take).unwrap();
    }
    assert!(received.into_iter().eq(0..FRAMES as u64));
    changes.join().unwrap();
}

#[test]
fn packet_ins_and_packet_outs_pass_between_threads() {
    let (_running, mut hosts, mut controller) = two_threads();
    controller.forward_to(PortNo::CONTROLLER);
    for (number, host) in (1..).zip(&mut hosts) {
        host.send(&frame(100, number));
        host.flush();
        let (in_port, data) = controller.hear(|message| match message {
            Message::PacketIn(packet) => Some((packet.in_port(), packet.data.to_vec())),
            _ => None,
        });
        assert_eq!(
            (in_port, &data),
            (PortNo(number.into()), &frame(100, number))
        );
    }
    let all = [Action::output(PortNo::ALL)];
    controller.say(&Message::PacketOut(PacketOut {
        buffer_id: BufferId::NONE,
        in_port: PortNo(1),
        actions: List::from(&all),
        data: &frame(100, 9),
    }));
    for host in &mut hosts[1..] {
        assert_eq!(receive(host, 1), [frame(100, 9)]);
    }
    controller.say(&Message::MultipartRequest(MultipartRequest {
        flags: MultipartFlags::empty(),
        body: MultipartRequestBody::PortStats(PortNo::ANY),
    }));
    let counts = controller.hear(|message| match message {
        Message::MultipartReply(reply) => match &reply.body {
            MultipartReplyBody::PortStats(rows) => {
                let counts = rows.iter().map(|row| (row.rx_packets, row.tx_packets));
                Some(counts.collect::<Vec<_>>())
            }
            _ => None,
        },
        _ => None,
    });
    assert_eq!(counts, [(1, 0), (1, 1), (1, 1), (1, 1)]);
}

#[test]
fn controllers_are_notified_of_links_on_other_threads() {
    let (_running, mut hosts, mut controller) = two_threads();
    drop(hosts.remove(1));
    let port = controller.hear(|message| match message {
        Message::PortStatus(status) => Some(status.port),
        _ => None,
    });
    assert_eq!(port.port_no, PortNo(2));
    assert!(port.state.contains(PortState::LINK_DOWN));
}

#[test]
fn ports_on_other_threads_may_be_switched_off() {
    let (_running, mut hosts, mut controller) = two_threads();
    controller.say(&Message::PortMod(PortMod {
        port_no: PortNo(2),
        hw_addr: MacAddr::new([2, 0, 0, 0, 1, 2]),
        config: PortConfig::NO_FWD,
        mask: PortConfig::NO_FWD,
        advertise: PortFeatures::empty(),
    }));
    for to in [2, 4] {
        let host = MacAddr::new([2, 0, 0, 0, 0, to as u8]);
        controller.forward(Match::any().eth_dst(host), PortNo(to));
    }
    let mut to_4 = frame(100, 4);
    to_4[5] = 4;
    hosts[0].send(&frame(100, 2));
    hosts[0].send(&to_4);
    hosts[0].flush();
    // Ports 2 and 4 are on one thread: a frame for port 2 would have arrived before.
    assert_eq!(receive(&mut hosts[3], 1), [to_4]);
    assert_eq!(hosts[1].receive(32, &mut |_| {}).unwrap(), 0);
}

#[test]
fn a_switch_in_a_flood_can_be_stopped() {
    let (running, mut hosts, mut controller) = two_threads();
    controller.forward_to(PortNo(2));
    let is_over = Arc::new(AtomicBool::new(false));
    let flood = std::thread::spawn({
        let is_over = Arc::clone(&is_over);
        let mut host = hosts.remove(0);
        move || {
            while !is_over.load(Relaxed) {
                host.send(&frame(100, 1));
                host.flush();
            }
        }
    });
    receive(&mut hosts[0], 100);
    drop(running);
    is_over.store(true, Relaxed);
    flood.join().unwrap();
}

#[test]
fn a_thread_that_cannot_be_bound_ends_the_switch() {
    let (switch, _hosts) = with_hosts(crate::FailMode::Secure, 2);
    let threads = Threads {
        count: 2,
        cores: vec![0, 100_000],
    };
    let runner = Runner::new(switch, &[]).unwrap();
    let sentence = runner.with_threads(&threads).unwrap().run().unwrap_err();
    let sentence = sentence.to_string();
    assert!(sentence.contains("processor 100000"), "{sentence}");
}
