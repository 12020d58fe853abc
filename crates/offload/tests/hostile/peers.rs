//! Switches that behave well, and the misbehaviour of others.

use crate::faults::Fault;
use crate::modes::{App, Form};
use crate::packets::Packet;
use crate::plan::{self, PORTS, port_of, question_for_gateway};
use crate::switch::{PATIENCE, connect, headers, join_with_ports};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::{Duration, Instant};
use urtica_controller::Running;
use urtica_wire::{Header, Version};

const ERROR: u8 = 1;
const ECHO_REPLY: u8 = 3;
const PACKET_OUT: u8 = 13;
const FLOW_MOD: u8 = 14;

/// The xid of a peer's last message, an echo request.
const LAST_XID: u32 = 0x77;

/// The offset of the quoted input in an error.
const QUOTE_AT: usize = 12;

/// The maximum that is sent to the router without reading.
const FLOOD_BYTES: usize = 32 << 20;

/// A switch.
pub struct Peer {
    pub socket: TcpStream,
    app: App,
    version: Version,
    /// The number of its host.
    host: u8,
    /// The received start of a message of the controller.
    said: Vec<u8>,
}

/// The controller's messages to a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The answers to requests.
    pub answers: usize,
    /// The errors, from their xids on.
    pub errors: Vec<Vec<u8>>,
    /// Whether the connection ended.
    pub is_closed: bool,
}

impl Peer {
    /// Joins as the switch with this id.
    pub fn join(controller: &Running, form: Form, version: Version, id: u64) -> Self {
        let mut socket = connect(controller);
        let ports = match form.app {
            App::L3 => PORTS,
            _ => 0,
        };
        join_with_ports(&mut socket, version, id, ports);
        let mut peer = Self {
            socket,
            app: form.app,
            version,
            // Hosts of other switches have other numbers, and no host has a gateway's number.
            host: (id % 200) as u8 + 2,
            said: Vec::new(),
        };
        peer.introduce_hosts();
        peer
    }

    /// Introduces the switch's two hosts to the learning switch, because packets to unknown hosts are flooded within a limit.
    fn introduce_hosts(&mut self) {
        if self.app != App::L3 {
            let mut packets = Vec::new();
            Packet::udp(1, 2).encode(self.version, 1, &mut packets);
            Packet::udp(2, 1).encode(self.version, 2, &mut packets);
            self.send(&packets);
            assert!(self.wait_for_answers(2));
        }
    }

    /// Joins, and is answered a few times, by the kernel if it answers.
    pub fn earned(controller: &Running, form: Form, version: Version, id: u64) -> Self {
        let mut peer = Self::join(controller, form, version, id);
        (0..4).for_each(|_| peer.assert_served());
        peer
    }

    /// Appends a request, which has one answer.
    pub fn request(&self, number: u32, to: &mut Vec<u8>) {
        match self.app {
            // In this mode, the kernel answers echo requests.
            App::Services if number % 8 != 7 => self.echo_request(number, to),
            _ => self.packet().encode(self.version, number, to),
        }
    }

    /// Returns a packet that has one answer.
    fn packet(&self) -> Packet {
        match self.app {
            App::L2 | App::Services => Packet::udp(1, 2),
            App::L3 => Packet {
                buffer_id: u32::MAX,
                in_port: port_of(self.host),
                frame: question_for_gateway(self.host),
            },
        }
    }

    /// Returns this number of requests.
    pub fn requests(&self, count: u32) -> Vec<u8> {
        let mut requests = Vec::new();
        (0..count).for_each(|number| self.request(number, &mut requests));
        requests
    }

    fn echo_request(&self, xid: u32, to: &mut Vec<u8>) {
        let [.., third, last] = xid.to_be_bytes();
        to.extend([self.version.to_wire(), 2, 0, 8, 0, 0, third, last]);
    }

    fn is_answer(&self, header: &Header) -> bool {
        match self.app {
            App::L2 => [PACKET_OUT, FLOW_MOD].contains(&header.message_type),
            App::Services => {
                let answers = [PACKET_OUT, FLOW_MOD, ECHO_REPLY];
                answers.contains(&header.message_type) && header.xid != LAST_XID
            }
            App::L3 => (header.message_type, header.xid) == (PACKET_OUT, plan::XID),
        }
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).unwrap();
    }

    /// Sends a request. Returns whether it was answered and the connection still exists.
    pub fn is_served(&mut self) -> bool {
        self.send(&self.requests(1));
        self.wait_for_answers(1)
    }

    /// Fails if a request is not answered.
    pub fn assert_served(&mut self) {
        assert!(self.is_served());
    }

    /// Reads until this number of answers has arrived. Returns whether it has, before the connection ended.
    pub fn wait_for_answers(&mut self, count: usize) -> bool {
        let mut answers = 0;
        while answers < count {
            if !self.receive() {
                return false;
            }
            answers += self.take_answers();
        }
        assert_eq!(answers, count);
        true
    }

    /// Removes the complete messages, and returns the number of answers among them.
    fn take_answers(&mut self) -> usize {
        let (mut answers, mut end) = (0, 0);
        for header in headers(&self.said) {
            answers += usize::from(self.is_answer(&header));
            end += usize::from(header.length);
        }
        self.said.drain(..end);
        answers
    }

    /// Reads once; returns `false` at the end of the stream.
    fn receive(&mut self) -> bool {
        let mut buffer = [0; 1 << 16];
        match self.socket.read(&mut buffer) {
            Ok(0) => false,
            Ok(count) => {
                self.said.extend_from_slice(&buffer[..count]);
                true
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => false,
            Err(error) => panic!("nothing comes: {error}"),
        }
    }

    /// Closes its side, and reads until the controller has closed the connection. Returns the number of answers.
    pub fn finish(&mut self) -> usize {
        let _ = self.socket.shutdown(Shutdown::Write);
        self.read_to_end()
    }

    /// Reads until the controller has closed the connection. Returns the number of answers.
    pub fn read_to_end(&mut self) -> usize {
        let mut answers = 0;
        while self.receive() {
            answers += self.take_answers();
        }
        answers
    }

    /// Returns the outcome of a fault among requests, sent as one piece, or as one piece per message.
    pub fn outcome(&mut self, fault: &Fault, is_apart: bool) -> Outcome {
        let mut last = self.requests(1);
        self.echo_request(LAST_XID, &mut last);
        let messages = [self.requests(2), fault.bytes(self.version), last];
        let messages = match is_apart {
            true => messages.to_vec(),
            false => vec![messages.concat()],
        };
        for message in messages {
            // Fails if the connection has ended already.
            let _ = self.socket.write_all(&message);
        }
        let is_last = |header: Header| (header.message_type, header.xid) == (ECHO_REPLY, LAST_XID);
        let mut is_closed = false;
        while !is_closed && !headers(&self.said).any(is_last) {
            is_closed = !self.receive();
        }
        let mut errors = Vec::new();
        let mut rest = &self.said[..];
        for header in headers(&self.said) {
            let (message, after) = rest.split_at(header.length.into());
            if header.message_type == ERROR {
                // An error quotes the input from the fault on, as much as has arrived.
                let bytes = message
                    .len()
                    .min(if is_apart { QUOTE_AT } else { usize::MAX });
                errors.push(message[message.len().min(4)..bytes].to_vec());
            }
            rest = after;
        }
        // The router's answers pass through a mailbox, in no certain order with those of the session.
        let answers = match self.app {
            App::L3 => 0,
            _ => self.take_answers(),
        };
        Outcome {
            answers,
            errors,
            is_closed,
        }
    }

    /// Sends requests without reading, until the socket accepts no more for a while. Returns the number of complete ones, and
    /// the rest of the last one. The router's messages are read in any case: they pass through a mailbox, whose limit they must
    /// not exceed.
    pub fn fill(&mut self) -> (usize, Vec<u8>) {
        let stop = Duration::from_millis(500);
        self.socket.set_write_timeout(Some(stop)).unwrap();
        let mut request = Vec::new();
        let mut packet = self.packet();
        packet.frame.resize(1_400, 0);
        packet.encode(self.version, 1, &mut request);
        let requests = request.repeat(50);
        let mut sent = 0;
        while let Ok(count) = self.socket.write(&requests[sent % request.len()..]) {
            sent += count;
            if self.app == App::L3 && sent > FLOOD_BYTES {
                break;
            }
            assert!(sent < 1 << 28, "it is read for ever");
        }
        self.socket.set_write_timeout(None).unwrap();
        let rest = sent.next_multiple_of(request.len()) - sent;
        (
            sent.div_ceil(request.len()),
            request[request.len() - rest..].to_vec(),
        )
    }
}

/// Waits until the controller has this number of switches, and no other has a kernel half.
pub fn wait_for_switches(controller: &Running, count: usize) {
    let (start, network) = (Instant::now(), controller.network());
    while network.switches().len() > count || network.kernel_half_totals().switches() > count as u64
    {
        assert!(start.elapsed() < PATIENCE, "they have left");
        thread::sleep(Duration::from_millis(1));
    }
}
