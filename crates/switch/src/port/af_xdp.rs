//! A network interface by AF_XDP: frames go past most of the kernel, into memory that is shared with it.
//!
//! **What.** A small XDP program (see the module `program`) hands the frames of each of the interface's receive queues to a
//! socket, in the driver where that can (native), or else right behind it (generic). Without copies where the driver can do
//! that, with one where it cannot (see `opening`). Frames are lent to the switch where they are, and a port that shares their
//! memory sends them from there (see `memory`). The interface is promiscuous as long as the port exists.
//!
//! **Cost.** 13 MiB of memory for each queue. Receiving is no system call. Sending is one for a burst; where the kernel copies,
//! it does 32 frames at a time.
//!
//! **Threads.** Queues can be dealt out to several. The first sends by the rings of the first queue, the others by AF_PACKET.
//!
//! **Limits.** Frames leave by the first queue. Where the kernel has no frames of several parts (before Linux 6.6), frames up to
//! `MAX_MTU` and their headers. Partial checksums of local senders are completed; segments that are larger than the MTU do not
//! come, natively because the kernel then has the sender cut them, generically because it drops them. A VLAN tag that the
//! sender's kernel left to the hardware of a veth is lost: `ethtool -K PEER txvlan off` has it put in.

mod memory;
mod opening;
mod program;
mod queue;
mod ring;

use super::af_packet::{Promiscuity, open_sender};
use super::interface::Interface;
use super::lent::{LentFrame, Received};
use super::{Opening, PortError, PortIo, PortSender};
pub use memory::FrameMemory;
use memory::{FRAME_BYTES, Memory, SPARE_FRAMES, frame_of};
use opening::Queues;
use program::Redirect;
use queue::{Receiver, Sender};
use rustix::event::epoll;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::io;
use std::sync::Arc;
use urtica_wire::MacAddr;

/// What the kernel keeps free before each frame that it receives (`XDP_PACKET_HEADROOM`).
const HEADROOM_BYTES: usize = 256;

/// The largest MTU with which a frame, its Ethernet header and two VLAN tags have one part.
const MAX_MTU: usize = FRAME_BYTES - HEADROOM_BYTES - 22;

/// A port on a network interface.
pub struct AfXdpPort {
    interface: Interface,
    // Declared before the sockets: no frame may be redirected to a socket that is gone. Shared by those that were split.
    _redirect: Arc<Redirect>,
    _promiscuity: Arc<Promiscuity>,
    receivers: Vec<Receiver>,
    /// The one whose turn it is.
    next_receiver: usize,
    sender: Outgoing,
    /// What watches all receivers, if there are several.
    watch: Option<OwnedFd>,
    /// Free frames, by address.
    spare: Vec<u64>,
    /// Lent frames that their receiver has not passed on.
    unused: Vec<LentFrame>,
    memory: Arc<Memory>,
}

/// How frames leave.
enum Outgoing {
    /// By the rings of the first queue, which take one thread.
    Rings(Sender),
    /// By AF_PACKET.
    Beside(Box<dyn PortSender>),
}

/// What it takes to send by the interface beside the port.
struct Way {
    interface: Interface,
    sender: Box<dyn PortSender>,
}

impl Way {
    fn open(name: &str) -> Result<Self, PortError> {
        let interface = Interface::find(name)?;
        let sender = open_sender(&interface)?;
        Ok(Self { interface, sender })
    }
}

impl AfXdpPort {
    /// Opens the interface `name` of the process's network namespace.
    ///
    /// # Errors
    /// Where there is no such interface, it cannot be used so, another program has it, or we may not.
    pub fn open(name: &str) -> Result<Self, PortError> {
        Self::open_sharing(name, &mut FrameMemory::for_ports(1))
    }

    /// The same, with the memory of other ports if that is possible.
    ///
    /// # Errors
    /// As [`AfXdpPort::open`].
    pub fn open_sharing(name: &str, memory: &mut FrameMemory) -> Result<Self, PortError> {
        let interface = Interface::find(name)?;
        let opening = opening(name);
        let mtu = interface.mtu().map_err(opening.failed("read the MTU"))?;
        let count = interface.rx_queues().unwrap_or(1).max(1);
        let opened = opening::open(interface.index, count, mtu > MAX_MTU, memory);
        let queues = opened.map_err(|(what, error)| match error {
            Errno::OPNOTSUPP | Errno::INVAL if mtu > MAX_MTU => opening.unsuitable(format!(
                "has an MTU of {mtu}; expected {MAX_MTU} at most, as the kernel or the driver has no frames of several parts (use afpacket, or `ip link set mtu`)"
            )),
            error => opening.failed(what)(error),
        })?;
        let promiscuity = Promiscuity::begin(&interface)
            .map_err(opening.failed("listen to all of the interface"))?;
        let sockets = queues.receivers.iter().map(AsFd::as_fd);
        let redirect = Redirect::attach(interface.index, sockets, queues.kind.has_parts)
            .map_err(opening.failed("attach an XDP program"))?;
        let watch = watch_all(&queues.receivers).map_err(opening.failed("watch its queues"))?;
        match queues.kind.is_zero_copy {
            true => tracing::info!(port = name, queues = count, "AF_XDP, without copies"),
            false => tracing::info!(
                port = name,
                queues = count,
                "AF_XDP; the kernel copies frames, since the driver has no zero copy"
            ),
        }
        Ok(Self::with(interface, queues, redirect, promiscuity, watch))
    }

    fn with(
        interface: Interface,
        queues: Queues,
        redirect: Redirect,
        promiscuity: Promiscuity,
        watch: Option<OwnedFd>,
    ) -> Self {
        let mut port = Self {
            interface,
            _redirect: Arc::new(redirect),
            _promiscuity: Arc::new(promiscuity),
            receivers: queues.receivers,
            next_receiver: 0,
            sender: Outgoing::Rings(queues.sender),
            watch,
            spare: Vec::new(),
            unused: Vec::new(),
            memory: queues.memory,
        };
        port.refill();
        port
    }

    /// The port for another thread, with these of the queues.
    fn part(&self, way: Way, receivers: Vec<Receiver>, watch: Option<OwnedFd>) -> Self {
        Self {
            interface: way.interface,
            _redirect: Arc::clone(&self._redirect),
            _promiscuity: Arc::clone(&self._promiscuity),
            receivers,
            next_receiver: 0,
            sender: Outgoing::Beside(way.sender),
            watch,
            spare: Vec::new(),
            unused: Vec::new(),
            memory: Arc::clone(&self.memory),
        }
    }

    fn refill(&mut self) {
        for receiver in &mut self.receivers {
            receiver.refill(&self.memory, &mut self.spare);
        }
    }
}

impl PortIo for AfXdpPort {
    fn name(&self) -> &str {
        &self.interface.name
    }

    fn hw_addr(&self) -> MacAddr {
        self.interface.hw_addr
    }

    fn is_up(&self) -> bool {
        self.receivers.iter().for_each(Receiver::take_error);
        self.interface.is_up()
    }

    fn link_index(&self) -> Option<u32> {
        Some(self.interface.index)
    }

    fn speed_kbps(&self) -> u32 {
        self.interface.speed_kbps()
    }

    fn max_threads(&self) -> usize {
        self.receivers.len()
    }

    /// Deals its queues out, round-robin.
    fn split(&mut self, count: usize) -> Result<Vec<Box<dyn PortIo>>, PortError> {
        let count = count.min(self.receivers.len());
        let ways = (1..count).map(|_| Way::open(&self.interface.name));
        let ways = ways.collect::<Result<Vec<_>, _>>()?;
        let mut shares = deal(std::mem::take(&mut self.receivers), count);
        let watches = shares.iter().map(|share| watch_all(share));
        let mut watches = match watches.collect::<Result<Vec<_>, _>>() {
            Ok(watches) => watches.into_iter(),
            Err(error) => {
                self.receivers = shares.into_iter().flatten().collect();
                return Err(opening(&self.interface.name).failed("watch its queues")(
                    error,
                ));
            }
        };
        let others = shares.split_off(1);
        self.receivers = shares.remove(0);
        self.watch = watches.next().flatten();
        self.next_receiver = 0;
        let parts = ways.into_iter().zip(others).zip(watches);
        let parts = parts.map(|((way, receivers), watch)| self.part(way, receivers, watch));
        Ok(parts
            .map(|part| Box::new(part) as Box<dyn PortIo>)
            .collect())
    }

    fn receive(&mut self, max: usize, handle: &mut dyn FnMut(&[u8])) -> io::Result<usize> {
        let mut unused = std::mem::take(&mut self.unused);
        let received = self.receive_lent(max, &mut |received| match received {
            Received::Bytes(bytes) => handle(bytes),
            Received::Lent(frame) => {
                // SAFETY: this port shares the memory, and nothing else has the frame.
                handle(unsafe { frame.bytes() });
                unused.push(frame);
            }
        });
        self.take_back(&mut unused);
        self.unused = unused;
        received
    }

    fn receive_lent(
        &mut self,
        max: usize,
        handle: &mut dyn FnMut(Received<'_>),
    ) -> io::Result<usize> {
        let mut count = 0;
        let queues = self.receivers.len();
        for _ in 0..queues {
            let receiver = &mut self.receivers[self.next_receiver];
            let left = max - count;
            let received = receiver.receive(left, &self.memory, &mut self.spare, handle);
            count += received;
            if received > 0 {
                receiver.refill(&self.memory, &mut self.spare);
            }
            self.next_receiver = (self.next_receiver + 1) % queues;
            if count == max {
                break;
            }
        }
        Ok(count)
    }

    fn take_back(&mut self, frames: &mut Vec<LentFrame>) {
        let ours = |frame: &LentFrame| frame.memory() == self.memory.id();
        let addresses = frames
            .drain(..)
            .filter(ours)
            .map(|frame| frame_of(self.memory.address_of(&frame)));
        self.spare.extend(addresses);
        self.memory.give_back(&mut self.spare, SPARE_FRAMES);
    }

    fn send(&mut self, frame: &[u8]) -> bool {
        match &mut self.sender {
            Outgoing::Rings(sender) => sender.send(frame, &self.memory, &mut self.spare),
            Outgoing::Beside(sender) => sender.send(frame),
        }
    }

    fn send_lent(&mut self, frame: LentFrame) -> Result<(), LentFrame> {
        match &mut self.sender {
            Outgoing::Rings(sender) if frame.memory() == self.memory.id() => {
                sender.send_lent(frame, &self.memory, &mut self.spare)
            }
            _ => Err(frame),
        }
    }

    fn flush(&mut self) {
        match &mut self.sender {
            Outgoing::Rings(sender) => sender.flush(&self.memory, &mut self.spare),
            Outgoing::Beside(sender) => sender.flush(),
        }
    }

    fn has_unsent(&self) -> bool {
        match &self.sender {
            Outgoing::Rings(sender) => sender.is_congested(),
            Outgoing::Beside(sender) => sender.has_unsent(),
        }
    }

    /// By AF_PACKET: a socket's rings take one thread.
    fn sender(&self) -> Option<Result<Box<dyn PortSender>, PortError>> {
        Some(open_sender(&self.interface))
    }

    fn take_dropped(&mut self) -> u64 {
        self.receivers.iter_mut().map(Receiver::take_dropped).sum()
    }

    fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        match &self.watch {
            Some(watch) => Some(watch.as_fd()),
            None => self.receivers.first().map(AsFd::as_fd),
        }
    }
}

/// `count` shares of all queues, as equal as can be.
fn deal(receivers: Vec<Receiver>, count: usize) -> Vec<Vec<Receiver>> {
    let mut shares: Vec<_> = (0..count).map(|_| Vec::new()).collect();
    for (number, receiver) in receivers.into_iter().enumerate() {
        shares[number % count].push(receiver);
    }
    shares
}

fn opening(name: &str) -> Opening<'_> {
    Opening {
        port: name,
        needs: "CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF",
    }
}

/// Several sockets as one descriptor, which is readable when one of them is.
fn watch_all(receivers: &[Receiver]) -> Result<Option<OwnedFd>, Errno> {
    if receivers.len() == 1 {
        return Ok(None);
    }
    let watch = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for receiver in receivers {
        let data = epoll::EventData::new_u64(0);
        epoll::add(&watch, receiver, data, epoll::EventFlags::IN)?;
    }
    Ok(Some(watch))
}

#[cfg(test)]
mod tests {
    use super::memory::RX_FRAMES;
    use super::*;
    use crate::port::af_packet::AfPacketPort;
    use crate::port::testing::{
        FLOWS, by_flow, eventually, frame, in_namespace, ip, is_quiet_without_interface,
        is_readable, receive, receive_from_all, send_flows, tcp_passes, veth,
    };
    use crate::{Switch, SwitchConfig};
    use std::time::{Duration, Instant};
    use urtica_wire::{FlowMod, FlowModCommand, Message, PortNo, Version};

    fn link() -> (AfXdpPort, AfXdpPort) {
        veth("v0", "v1");
        let open = |name| AfXdpPort::open(name).unwrap();
        (open("v0"), open("v1"))
    }

    #[test]
    fn bursts_arrive_whole_and_in_order() {
        in_namespace(|| {
            let (mut a, mut b) = link();
            let expected: Vec<_> = (0..100)
                .map(|mark| frame(60 + usize::from(mark), mark))
                .collect();
            for _ in 0..2 * RX_FRAMES / 100 {
                expected.iter().for_each(|frame| assert!(a.send(frame)));
                a.flush();
                assert_eq!(receive(&mut b, 100), expected);
            }
            assert_eq!(
                a.receive(32, &mut |_| {}).unwrap(),
                0,
                "own frames do not come back"
            );
        });
    }

    #[test]
    fn frames_that_find_no_room_are_counted() {
        in_namespace(|| {
            let (mut a, mut b) = link();
            for _ in 0..(RX_FRAMES + 100) / 4 {
                (0..4).for_each(|_| assert!(a.send(&frame(60, 1))));
                a.flush();
            }
            assert_eq!(receive(&mut b, RX_FRAMES).len(), RX_FRAMES);
            assert_eq!((b.take_dropped(), b.take_dropped()), (100, 0));
        });
    }

    #[test]
    fn readable_exactly_while_frames_wait() {
        in_namespace(|| {
            let (mut a, mut b) = link();
            assert!(!is_readable(&b, 0));
            a.send(&frame(1514, 1));
            a.flush();
            assert!(is_readable(&b, 500));
            receive(&mut b, 1);
            assert!(!is_readable(&b, 0));
        });
    }

    #[test]
    fn local_tcp_passes() {
        in_namespace(|| tcp_passes(|name| Box::new(AfXdpPort::open(name).unwrap())));
    }

    /// A veth has no XDP in the driver while its peer has more queues than itself.
    #[test]
    fn frames_pass_where_the_driver_has_no_xdp() {
        in_namespace(|| {
            ip("link add v0 numtxqueues 4 type veth peer name v1");
            for end in ["v0", "v1"] {
                ip(&format!("link set {end} addrgenmode none"));
                ip(&format!("link set {end} up"));
            }
            let mut a = AfPacketPort::open("v0").unwrap();
            let mut b = AfXdpPort::open("v1").unwrap();
            assert!(a.send(&frame(100, 1)) && a.send(&frame(1514, 2)));
            a.flush();
            assert_eq!(receive(&mut b, 2), [frame(100, 1), frame(1514, 2)]);
            assert!(b.send(&frame(200, 3)));
            b.flush();
            assert_eq!(receive(&mut a, 1), [frame(200, 3)]);
        });
    }

    #[test]
    fn an_interface_can_be_opened_again_at_once() {
        in_namespace(|| {
            drop(link());
            assert!(AfXdpPort::open("v0").is_ok());
        });
    }

    #[test]
    fn an_interface_that_another_program_has_is_refused() {
        in_namespace(|| {
            let _ports = link();
            let error = AfXdpPort::open("v0").err().unwrap();
            assert!(matches!(error, PortError::InUse { .. }), "{error}");
        });
    }

    /// A host, and a port with four queues.
    fn with_queues() -> (AfPacketPort, AfXdpPort) {
        ip(
            "link add w0 numrxqueues 4 numtxqueues 1 type veth peer name w1 numtxqueues 4 numrxqueues 1",
        );
        for end in ["w0", "w1"] {
            ip(&format!("link set {end} addrgenmode none"));
            ip(&format!("link set {end} up"));
        }
        let host = AfPacketPort::open("w1").unwrap();
        let port = AfXdpPort::open("w0").unwrap();
        assert_eq!(port.receivers.len(), 4);
        (host, port)
    }

    #[test]
    fn queues_are_dealt_out_to_threads() {
        for count in [2, 3, 9] {
            in_namespace(move || {
                let (mut a, mut b) = with_queues();
                let others = b.split(count).unwrap();
                let mut ports: Vec<Box<dyn PortIo>> = vec![Box::new(b)];
                ports.extend(others);
                assert_eq!(ports.len(), count.min(4));
                let sent = usize::from(FLOWS) * 20;
                for number in 0..20 {
                    send_flows(&mut a, number);
                }
                let received = receive_from_all(&mut ports, sent);
                // The peer's queue is that of the processor which sends, so that a flow may come by several.
                for mut numbers in by_flow(&received.concat()).into_values() {
                    numbers.sort_unstable();
                    assert!(numbers.into_iter().eq(0..20));
                }
                for (mark, port) in (1..).zip(&mut ports) {
                    assert!(!is_readable(&**port, 0));
                    assert!(port.send(&frame(100, mark)));
                    port.flush();
                    assert_eq!(receive(&mut a, 1), [frame(100, mark)]);
                }
            });
        }
    }

    #[test]
    fn all_queues_are_received_from() {
        in_namespace(|| {
            let (mut a, mut b) = with_queues();
            assert!(!is_readable(&b, 0));
            let sent: Vec<_> = (0..64)
                .map(|mark| frame(60 + usize::from(mark), mark))
                .collect();
            for frame in &sent {
                assert!(a.send(frame));
                a.flush();
            }
            assert!(is_readable(&b, 500));
            let mut received = receive(&mut b, sent.len());
            received.sort_by_key(Vec::len);
            assert_eq!(received, sent);
            assert!(!is_readable(&b, 0));
            assert!(b.send(&frame(100, 9)));
            b.flush();
            assert_eq!(receive(&mut a, 1), [frame(100, 9)]);
        });
    }

    #[test]
    fn frames_of_every_length_pass_or_are_refused() {
        in_namespace(|| {
            veth("v0", "v1");
            for end in ["v0", "v1"] {
                ip(&format!("link set {end} mtu 65535"));
            }
            let open = |name| AfXdpPort::open(name).unwrap();
            let (mut a, mut b) = (open("v0"), open("v1"));
            let edges = (1..=17).flat_map(|parts| [3840, 4096].map(|bytes| parts * bytes));
            let around = edges.flat_map(|edge| edge - 2..=edge + 2);
            let lengths: Vec<_> = (14..=1600).chain(around).chain(65_500..=65_549).collect();
            for length in lengths.into_iter().filter(|&length| length <= 65_549) {
                let sent = frame(length, length as u8);
                assert!(a.send(&sent), "{length} bytes");
                a.flush();
                assert!(receive(&mut b, 1) == [sent], "{length} bytes");
            }
            for length in (0..14).chain([65_558, 70_000, 200_000]) {
                assert!(!a.send(&vec![1; length]), "{length} bytes");
            }
        });
    }

    /// Two links, whose inner ends share memory.
    fn two_links() -> (AfPacketPort, AfXdpPort, AfXdpPort, AfPacketPort) {
        let mut memory = FrameMemory::for_ports(2);
        veth("p1", "h1");
        veth("p2", "h2");
        let mut open = |name| AfXdpPort::open_sharing(name, &mut memory).unwrap();
        let (p1, p2) = (open("p1"), open("p2"));
        let host = |name| AfPacketPort::open(name).unwrap();
        (host("h1"), p1, p2, host("h2"))
    }

    #[test]
    fn frames_go_from_port_to_port_without_a_copy() {
        in_namespace(|| {
            let (mut a, mut p1, mut p2, mut b) = two_links();
            for round in 0..3 * RX_FRAMES / 32 {
                let mark = round as u8;
                (0..32).for_each(|_| assert!(a.send(&frame(100, mark))));
                a.flush();
                let mut passed = 0;
                while passed < 32 {
                    let received = p1.receive_lent(32, &mut |received| match received {
                        Received::Lent(lent) => p2.send_lent(lent).unwrap(),
                        Received::Bytes(bytes) => panic!("{} bytes to copy", bytes.len()),
                    });
                    passed += received.unwrap();
                }
                p2.flush();
                assert_eq!(receive(&mut b, 32), vec![frame(100, mark); 32]);
            }
        });
    }

    /// Does a controller's part.
    fn add_entries(switch: &mut Switch, entries: &[&str]) {
        let controller = switch.connect("a test".to_owned(), Duration::ZERO);
        let hello = [4, 0, 0, 8, 0, 0, 0, 1];
        let mut input = hello.to_vec();
        for entry in entries {
            let entry = FlowMod::parse(FlowModCommand::Add, entry).unwrap();
            let message = Message::FlowMod(entry);
            message.encode(Version::Of13, 7, &mut input).unwrap();
        }
        switch
            .handle_input(controller, &input, Duration::ZERO)
            .unwrap();
        assert_eq!(switch.entry_count(), entries.len());
    }

    /// More frames than there is memory, by all ways out of the switch, so that none may keep its memory.
    #[test]
    fn a_switch_passes_frames_on_from_where_they_are() {
        in_namespace(|| {
            let (mut a, p1, p2, mut b) = two_links();
            let mut switch = Switch::new(SwitchConfig::default());
            let now = Duration::from_secs(1);
            switch.add_port(PortNo(1), Box::new(p1), now);
            switch.add_port(PortNo(2), Box::new(p2), now);
            add_entries(
                &mut switch,
                &[
                    "in_port=1,dl_dst=02:00:00:00:00:01,actions=output:2",
                    "in_port=1,dl_dst=02:00:00:00:00:02,actions=push_vlan:0x8100,set_field:4103->vlan_vid,output:2",
                    "in_port=1,dl_dst=02:00:00:00:00:03,dl_vlan=7,actions=pop_vlan,output:2",
                    "in_port=1,dl_dst=02:00:00:00:00:04,actions=output:2,output:in_port",
                    "in_port=1,dl_dst=02:00:00:00:00:05,actions=drop",
                    "in_port=1,dl_dst=02:00:00:00:00:06,actions=output:in_port",
                ],
            );
            for round in 0..1500 {
                let len = 60 + round * 7 % 1440;
                let sent: Vec<_> = (1..=6).map(|kind| of_kind(kind, len)).collect();
                sent.iter().for_each(|frame| assert!(a.send(frame)));
                a.flush();
                let (mut there, mut back) = (Vec::new(), Vec::new());
                let start = Instant::now();
                while there.len() < 4 || back.len() < 2 {
                    assert!(start.elapsed() < Duration::from_secs(5), "round {round}");
                    switch.poll_ports(now);
                    b.receive(32, &mut |frame| there.push(frame.to_vec()))
                        .unwrap();
                    a.receive(32, &mut |frame| back.push(frame.to_vec()))
                        .unwrap();
                }
                let mut tagged = sent[1].clone();
                tagged.splice(12..12, [0x81, 0, 0, 7]);
                let mut popped = sent[2].clone();
                popped.drain(12..16);
                popped.resize(popped.len().max(60), 0);
                let expected = [sent[0].clone(), tagged, popped, sent[3].clone()];
                assert!(there == expected, "round {round}");
                assert!(back == [sent[3].clone(), sent[5].clone()], "round {round}");
            }
            assert_eq!(switch.plain_packets(), 1500, "those with two outputs");
        });
    }

    /// A frame to the address that ends in `kind`; the third has a tag.
    fn of_kind(kind: u8, len: usize) -> Vec<u8> {
        let mut frame = frame(len, kind);
        frame[5] = kind;
        if kind == 3 {
            frame[12..18].copy_from_slice(&[0x81, 0, 0, 7, 0x88, 0xb5]);
        }
        frame
    }

    #[test]
    fn memory_that_is_not_shared_is_told_apart() {
        in_namespace(|| {
            let (mut a, mut p1, _p2, _b) = two_links();
            let mut other = {
                veth("p3", "h3");
                AfXdpPort::open("p3").unwrap()
            };
            let mut back = Vec::new();
            for mark in 0..100 {
                assert!(a.send(&frame(100, mark)));
                a.flush();
                while back.is_empty() {
                    p1.receive_lent(1, &mut |received| {
                        let Received::Lent(lent) = received else {
                            panic!("a frame to copy");
                        };
                        back.push(other.send_lent(lent).unwrap_err());
                    })
                    .unwrap();
                }
                p1.take_back(&mut back);
                assert!(back.is_empty());
            }
        });
    }

    #[test]
    fn an_interface_that_is_deleted_disturbs_nobody() {
        in_namespace(|| {
            let (mut a, mut p1, mut p2, mut b) = two_links();
            assert!(is_quiet_without_interface(&mut p1));
            drop(p1);
            assert!(b.send(&frame(60, 1)) && p2.send(&frame(60, 2)));
            b.flush();
            p2.flush();
            assert_eq!(
                receive(&mut p2, 1),
                [frame(60, 1)],
                "which shares its memory"
            );
            assert_eq!(receive(&mut b, 1), [frame(60, 2)]);
            a.flush();
        });
    }

    /// As long as its peer is down nothing leaves, and frames are refused when the ring is full; then all goes on.
    #[test]
    fn an_interface_that_goes_and_comes() {
        in_namespace(|| {
            let (mut a, mut b) = link();
            ip("link set v0 down");
            let refused = (0..5000).filter(|_| {
                let is_sent = a.send(&frame(60, 1));
                a.flush();
                !is_sent
            });
            assert!(refused.count() > 0);
            ip("link set v0 up");
            eventually(|| a.is_up() && b.is_up());
            let mut came = false;
            eventually(|| {
                a.send(&frame(60, 2));
                a.flush();
                b.receive(RX_FRAMES, &mut |got| came |= got == frame(60, 2))
                    .unwrap();
                came
            });
        });
    }
}
