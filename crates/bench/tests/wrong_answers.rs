//! Controllers that each answer incorrectly in a different way: `--verify` reports each fault, and accepts none of them.

mod common;

use std::io::Write;
use std::net::TcpStream;

use common::{config, controller_of, load, load_until_answered, next_packet_in};
use urtica_bench::Report;
use urtica_bench::config::{Expect, LoadConfig, Mode, Version};
use urtica_bench::frame::FrameKind;
use urtica_bench::report::text;

use Version::{V10, V13};

const RIGHT: u16 = 2;
const NO_BUFFER: [u8; 4] = [0xff; 4];

/// Runs a load against a controller that sends `answer` for each packet-in, and returns the report.
fn report_on(
    version: Version,
    kind: FrameKind,
    answer: impl Fn(&PacketIn) -> Vec<u8> + Send + Sync + 'static,
) -> Report {
    let address = controller_of(version, move |_, stream| {
        answer_all(stream, version, &answer)
    });
    load_until_answered(&LoadConfig {
        switches: 1,
        version,
        frames: vec![kind],
        expect: Expect::Learning,
        ..config(address)
    })
}

fn answer_all(stream: &mut TcpStream, version: Version, answer: &impl Fn(&PacketIn) -> Vec<u8>) {
    while let Some(message) = next_packet_in(stream) {
        let packet_in = PacketIn { version, message };
        if stream.write_all(&answer(&packet_in)).is_err() {
            return;
        }
    }
}

/// Asserts that the report contains the expected fault.
fn named(
    version: Version,
    kind: FrameKind,
    expected: &str,
    answer: impl Fn(&PacketIn) -> Vec<u8> + Send + Sync + 'static,
) {
    let report = report_on(version, kind, answer);
    let summary = text::summary(&report);
    assert!(
        report.failed_verification(),
        "expected {expected:?} in\n{summary}"
    );
    let checked = summary
        .lines()
        .find(|line| line.trim_start().starts_with("checked"));
    assert!(
        checked.unwrap().contains(expected),
        "expected {expected:?} in\n{summary}"
    );
}

struct PacketIn {
    version: Version,
    message: Vec<u8>,
}

impl PacketIn {
    fn xid(&self) -> &[u8] {
        &self.message[4..8]
    }

    fn buffer_id(&self) -> &[u8] {
        &self.message[8..12]
    }

    fn frame(&self) -> &[u8] {
        &self.message[if self.version == V10 { 18 } else { 42 }..]
    }

    fn eth_dst(&self) -> &[u8] {
        &self.frame()[..6]
    }

    fn eth_src(&self) -> &[u8] {
        &self.frame()[6..12]
    }

    /// Returns a correct flow mod of 1.0 that matches on ports and addresses, with these actions.
    fn flow_mod_10(&self, actions: &[u8]) -> Vec<u8> {
        let mut message = vec![1, 14, 0, 72 + actions.len() as u8];
        message.extend(self.xid());
        message.extend(0x003f_fff2u32.to_be_bytes());
        message.extend([0, 1]);
        message.extend(self.eth_src());
        message.extend(self.eth_dst());
        message.resize(64, 0);
        message.extend(self.buffer_id());
        message.extend([0xff, 0xff, 0, 0]);
        message.extend(actions);
        message
    }

    /// Like `flow_mod_10`, with these wildcards, and these bytes of the match given by offset.
    fn matching_10(&self, wildcards: u32, fields: &[(usize, &[u8])]) -> Vec<u8> {
        let mut message = self.flow_mod_10(&output_10(RIGHT));
        message[8..12].copy_from_slice(&wildcards.to_be_bytes());
        for &(at, bytes) in fields {
            message[8 + at..8 + at + bytes.len()].copy_from_slice(bytes);
        }
        message
    }

    /// Returns a flow mod of 1.3 with these OXM fields and instructions.
    fn flow_mod_13(&self, oxm: &[u8], instructions: &[u8]) -> Vec<u8> {
        let mut message = vec![4, 14, 0, 0];
        message.extend(self.xid());
        message.resize(32, 0);
        message.extend(self.buffer_id());
        message.resize(48, 0);
        message.extend([0, 1, 0, 4 + oxm.len() as u8]);
        message.extend(oxm);
        message.resize(message.len().next_multiple_of(8), 0);
        message.extend(instructions);
        message[3] = message.len() as u8;
        message
    }

    /// Returns a flow mod that matches on the destination and these fields, with the correct output.
    fn matching_13(&self, more: &[u8]) -> Vec<u8> {
        let oxm = [&[0x80, 0, 6, 6], self.eth_dst(), more].concat();
        self.flow_mod_13(&oxm, &apply(&output_13(RIGHT)))
    }

    fn packet_out_10(
        &self,
        buffer_id: &[u8],
        in_port: u16,
        actions: &[u8],
        frame: &[u8],
    ) -> Vec<u8> {
        let len = 16 + actions.len() + frame.len();
        let mut message = vec![1, 13, 0, len as u8];
        message.extend(self.xid());
        message.extend(buffer_id);
        message.extend(in_port.to_be_bytes());
        message.extend([0, actions.len() as u8]);
        message.extend(actions);
        message.extend(frame);
        message
    }
}

fn output_10(port: u16) -> Vec<u8> {
    [&[0, 0, 0, 8], &port.to_be_bytes()[..], &[0, 0]].concat()
}

fn output_13(port: u16) -> Vec<u8> {
    [&[0, 0, 0, 16, 0, 0], &port.to_be_bytes()[..], &[0; 8]].concat()
}

fn apply(actions: &[u8]) -> Vec<u8> {
    [&[0, 4, 0, 8 + actions.len() as u8, 0, 0, 0, 0], actions].concat()
}

const ETH_TYPE_IPV4: [u8; 6] = [0x80, 0, 10, 2, 8, 0];
const WRONG_MATCH: &str = "with a wrong match";
const WRONG_PORT: &str = "to a wrong port";
const BROAD: &str = "that also match other packets";
const NO_ENTRY: &str = "that add no entry";
const CHANGED: &str = "that change the packet";
const CBENCH: FrameKind = FrameKind::Cbench;
const UDP: FrameKind = FrameKind::Udp;

#[test]
fn accepts_many_forms_of_correct_answers() {
    type Answer = fn(&PacketIn) -> Vec<u8>;
    let answers: [(Version, FrameKind, Answer); 8] = [
        (V10, CBENCH, |packet| packet.flow_mod_10(&output_10(RIGHT))),
        (V10, CBENCH, |packet| {
            packet.flow_mod_10(&[output_10(2), output_10(3), output_10(4)].concat())
        }),
        (V10, UDP, |packet| {
            // All fields from in_port to tp_dst, no VLAN, TOS 0x28, and full-length prefixes.
            let network = [
                &[0x28, 17, 0, 0, 192, 168, 0, 40, 192, 168, 1, 40][..],
                &[0xc0, 0, 0, 53],
            ];
            packet.matching_10(
                0,
                &[(18, &[0xff; 2]), (22, &[8, 0]), (24, &network.concat())],
            )
        }),
        // A queue of the correct port.
        (V10, CBENCH, |packet| {
            packet.flow_mod_10(&[0, 11, 0, 16, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1])
        }),
        // The packet is modified after the output.
        (V10, CBENCH, |packet| {
            packet.flow_mod_10(&[&output_10(RIGHT)[..], &[0, 3, 0, 8, 0, 0, 0, 0]].concat())
        }),
        (V10, CBENCH, |packet| {
            packet.packet_out_10(&NO_BUFFER, 1, &output_10(RIGHT), packet.frame())
        }),
        (V13, UDP, |packet| {
            let ipv4 = [
                &ETH_TYPE_IPV4[..],
                &[0x80, 0, 25, 8, 192, 168, 1, 0, 255, 255, 255, 0],
            ];
            packet.matching_13(&ipv4.concat())
        }),
        (V13, CBENCH, |packet| {
            let oxm = [&[0x80, 0, 6, 6], packet.eth_dst()].concat();
            let mut write = apply(&output_13(RIGHT));
            write[1] = 3;
            packet.flow_mod_13(&oxm, &write)
        }),
    ];
    for (index, (version, kind, answer)) in answers.into_iter().enumerate() {
        let report = report_on(version, kind, answer);
        assert!(
            !report.failed_verification(),
            "{index}: {}",
            text::summary(&report)
        );
        assert!(report.tally.answered > 0, "{index}");
    }
}

#[test]
fn flow_mods_that_add_no_entry() {
    for command in [3, 4, 5] {
        named(V10, CBENCH, NO_ENTRY, move |packet| {
            let mut message = packet.flow_mod_10(&output_10(RIGHT));
            message[57] = command;
            message
        });
    }
    // Only in 1.0 does modifying a missing entry add it. There is only one table.
    for (at, value) in [(25, 1), (25, 3), (24, 1)] {
        named(V13, CBENCH, NO_ENTRY, move |packet| {
            let mut message = packet.matching_13(&[]);
            message[at] = value;
            message
        });
    }
}

#[test]
fn matches_that_are_too_broad() {
    named(V10, CBENCH, BROAD, |packet| {
        packet.matching_10(0x003f_ffff, &[])
    });
    named(V10, CBENCH, BROAD, |packet| {
        packet.matching_10(0x003f_fffa, &[])
    });
    named(V13, CBENCH, BROAD, |packet| {
        packet.flow_mod_13(&[], &apply(&output_13(RIGHT)))
    });
    // The destination under a mask without its last byte.
    named(V13, CBENCH, BROAD, |packet| {
        let oxm = [
            &[0x80, 0, 7, 12],
            &packet.eth_dst()[..5],
            &[0],
            &[0xff; 5],
            &[0],
        ]
        .concat();
        packet.flow_mod_13(&oxm, &apply(&output_13(RIGHT)))
    });
}

#[test]
fn matches_of_1_0_that_miss_the_packet() {
    // VLAN 7 on an untagged frame; then no VLAN, and the wrong priority, on a tagged one.
    named(V10, UDP, WRONG_MATCH, |packet| {
        packet.matching_10(0x003f_fff0, &[(18, &[0, 7])])
    });
    named(V10, FrameKind::Vlan, WRONG_MATCH, |packet| {
        packet.matching_10(0x003f_fff0, &[(18, &[0xff; 2])])
    });
    named(V10, FrameKind::Vlan, WRONG_MATCH, |packet| {
        packet.matching_10(0x002f_fff0, &[(18, &[0, 5]), (20, &[4])])
    });
    // Type of service, protocol, address and port.
    let ipv4: (usize, &[u8]) = (22, &[8, 0]);
    named(V10, UDP, WRONG_MATCH, move |packet| {
        packet.matching_10(0x001f_ffe2, &[ipv4, (24, &[0x2c])])
    });
    named(V10, UDP, WRONG_MATCH, move |packet| {
        packet.matching_10(0x003f_ffc2, &[ipv4, (25, &[6])])
    });
    named(V10, UDP, WRONG_MATCH, move |packet| {
        packet.matching_10(0x003f_c0e2 & !0x3f00, &[ipv4, (28, &[192, 168, 0, 41])])
    });
    named(V10, UDP, WRONG_MATCH, move |packet| {
        packet.matching_10(0x003f_ff42, &[ipv4, (25, &[17]), (38, &[0, 54])])
    });
}

#[test]
fn matches_of_1_3_that_miss_the_packet_or_that_switches_refuse() {
    for wrong in [
        // VLAN 7; IP protocol 6; DSCP 11; UDP port 54; a TCP port.
        &[0x80, 0, 12, 2, 0x10, 7][..],
        &[0x80, 0, 10, 2, 8, 0, 0x80, 0, 20, 1, 6],
        &[0x80, 0, 10, 2, 8, 0, 0x80, 0, 16, 1, 11],
        &[
            0x80, 0, 10, 2, 8, 0, 0x80, 0, 20, 1, 17, 0x80, 0, 32, 2, 0, 54,
        ],
        &[
            0x80, 0, 10, 2, 8, 0, 0x80, 0, 20, 1, 17, 0x80, 0, 28, 2, 0, 53,
        ],
        // A masked address that differs under the mask; bits outside the mask; a mask of a field that cannot be masked.
        &[
            0x80, 0, 10, 2, 8, 0, 0x80, 0, 25, 8, 192, 168, 2, 0, 255, 255, 255, 0,
        ],
        &[
            0x80, 0, 10, 2, 8, 0, 0x80, 0, 25, 8, 192, 168, 1, 40, 255, 255, 255, 0,
        ],
        &[0x80, 0, 11, 4, 8, 0, 0xff, 0xff],
        // An unknown field, an experimenter's field, the destination again, and an address without its EtherType.
        &[0x80, 0, 0x80, 1, 0],
        &[0xff, 0xff, 0, 4, 0, 0, 0, 1],
        &[0x80, 0, 6, 6, 0x80, 0, 0, 0, 0, 1],
        &[0x80, 0, 24, 4, 192, 168, 1, 40],
    ] {
        named(V13, UDP, WRONG_MATCH, move |packet| {
            packet.matching_13(wrong)
        });
    }
}

#[test]
fn outputs_to_wrong_ports() {
    for ports in [
        &[3][..],
        // To the ingress port, to the controller, to some ports, which is not a flood, twice, and to no port.
        &[1],
        &[0xfffd],
        &[2, 3],
        &[3, 4],
        &[2, 2],
        &[0xfffb, 2],
        &[],
    ] {
        named(V10, CBENCH, WRONG_PORT, move |packet| {
            let actions: Vec<u8> = ports.iter().flat_map(|&port| output_10(port)).collect();
            packet.flow_mod_10(&actions)
        });
    }
    // To another table, to a group, and both immediately and at the end.
    let to_table: &[u8] = &[0, 1, 0, 8, 1, 0, 0, 0];
    let to_group: &[u8] = &[0, 4, 0, 16, 0, 0, 0, 0, 0, 22, 0, 8, 0, 0, 0, 1];
    let mut twice = [apply(&output_13(RIGHT)), apply(&output_13(RIGHT))].concat();
    twice[1] = 3;
    for instructions in [to_table, to_group, &twice] {
        let instructions = instructions.to_vec();
        named(V13, CBENCH, WRONG_PORT, move |packet| {
            let oxm = [&[0x80, 0, 6, 6], packet.eth_dst()].concat();
            packet.flow_mod_13(&oxm, &instructions)
        });
    }
    // A flood that includes the ingress port, since the packet-out does not specify it.
    named(V10, CBENCH, WRONG_PORT, |packet| {
        packet.packet_out_10(packet.buffer_id(), 0xffff, &output_10(0xfffb), &[])
    });
}

#[test]
fn modified_packets() {
    // A new VLAN, a stripped tag, another destination address.
    for change in [
        &[0, 1, 0, 8, 0, 9, 0, 0][..],
        &[0, 3, 0, 8, 0, 0, 0, 0],
        &[0, 5, 0, 16, 2, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0],
    ] {
        named(V10, CBENCH, CHANGED, move |packet| {
            packet.flow_mod_10(&[change, &output_10(RIGHT)].concat())
        });
    }
    named(V13, CBENCH, CHANGED, |packet| {
        // In an action set, the output is executed last, whatever its position.
        let decrement_ttl = [0, 24, 0, 8, 0, 0, 0, 0];
        let mut write = apply(&[&output_13(RIGHT)[..], &decrement_ttl].concat());
        write[1] = 3;
        let oxm = [&[0x80, 0, 6, 6], packet.eth_dst()].concat();
        packet.flow_mod_13(&oxm, &write)
    });
    named(V10, CBENCH, "with another frame", |packet| {
        let mut frame = packet.frame().to_vec();
        frame[40] ^= 1;
        packet.packet_out_10(&NO_BUFFER, 1, &output_10(RIGHT), &frame)
    });
}

#[test]
fn a_wrong_flow_mod_with_a_right_packet_out() {
    // Without a buffer id and with another xid, it answers nothing, but its fault is detected.
    named(V10, CBENCH, WRONG_PORT, |packet| {
        let mut flow_mod = packet.flow_mod_10(&output_10(3));
        flow_mod[4] = 0x77;
        flow_mod[64..68].copy_from_slice(&NO_BUFFER);
        let packet_out = packet.packet_out_10(packet.buffer_id(), 1, &output_10(RIGHT), &[]);
        [flow_mod, packet_out].concat()
    });
    // A wrong packet-out after a correct flow mod.
    named(V10, CBENCH, WRONG_PORT, |packet| {
        let mut flow_mod = packet.flow_mod_10(&output_10(RIGHT));
        flow_mod[64..68].copy_from_slice(&NO_BUFFER);
        let packet_out = packet.packet_out_10(packet.buffer_id(), 1, &output_10(4), &[]);
        [flow_mod, packet_out].concat()
    });
}

#[test]
fn unsolicited_and_repeated_answers() {
    named(V10, CBENCH, "answered twice", |packet| {
        packet.flow_mod_10(&output_10(RIGHT)).repeat(2)
    });
    named(V10, CBENCH, "with an unknown buffer id", |packet| {
        let right = packet.flow_mod_10(&output_10(RIGHT));
        let mut wrong = right.clone();
        wrong[64..68].copy_from_slice(&99_999u32.to_be_bytes());
        [right, wrong].concat()
    });
    named(V10, CBENCH, "malformed", |packet| {
        let right = packet.flow_mod_10(&output_10(RIGHT));
        let mut wrong = right.clone();
        wrong[75] = 0;
        [wrong, right].concat()
    });
    named(V10, CBENCH, "OFPT_ERROR", |packet| {
        let error = [1, 1, 0, 12, 0, 0, 0, 0, 0, 1, 0, 1];
        [&error[..], &packet.flow_mod_10(&output_10(RIGHT))].concat()
    });
}

#[test]
fn unanswered_packet_ins_at_the_end_are_faults() {
    // One answer for two packet-ins: the other is lost, because its switch is skipped or the run ends first.
    let address = controller_of(V10, |_, stream| {
        while let Some(message) = next_packet_in(stream) {
            let packet_in = PacketIn {
                version: V10,
                message,
            };
            let is_second = packet_in.xid()[3] % 2 == 1;
            let answer = packet_in.flow_mod_10(&output_10(RIGHT));
            if is_second && stream.write_all(&answer).is_err() {
                return;
            }
        }
    });
    let report = load(&LoadConfig {
        mode: Mode::Window(4),
        expect: Expect::Learning,
        ..config(address)
    });
    let report = report.unwrap();
    assert!(report.failed_verification(), "{}", text::summary(&report));
    assert!(report.tally.lost + report.unanswered > 0);
}
