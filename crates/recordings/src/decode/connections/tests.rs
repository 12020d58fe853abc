//! Tests with capture files: the printed messages, and the reports of missing and invalid parts.

use super::*;
use pcap_file::DataLink;
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionBlock;
use pcap_file::pcapng::blocks::simple_packet::SimplePacketBlock;
use std::time::Duration;

const PREFIX: &str = "10.0.0.1:43210 > 10.0.0.2:6653: ";

/// Returns a segment of a connection to a controller, in Ethernet, IPv4 and TCP.
fn packet(seq: u32, payload: &[u8]) -> Vec<u8> {
    packet_with(0x18, 43210, 6653, seq, payload)
}

fn packet_with(flags: u8, from: u16, to: u16, seq: u32, payload: &[u8]) -> Vec<u8> {
    let mut tcp = [&from.to_be_bytes()[..], &to.to_be_bytes()].concat();
    tcp.extend(seq.to_be_bytes());
    tcp.extend([0, 0, 0, 1, 0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
    tcp.extend(payload);
    let mut ip = vec![0x45, 0];
    ip.extend((20 + tcp.len() as u16).to_be_bytes());
    ip.extend([0, 1, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    [&[0; 12][..], &[0x08, 0x00], &ip, &tcp].concat()
}

/// Returns a file with these packets.
fn pcap(packets: &[Vec<u8>]) -> Vec<u8> {
    let mut file = PcapWriter::with_header(Vec::new(), PcapHeader::default()).expect("a capture");
    for data in packets {
        let packet = PcapPacket::new(Duration::ZERO, data.len() as u32, data);
        file.write_packet(&packet).expect("writing to memory");
    }
    file.into_writer()
}

/// Returns the output and the outcome.
fn decoded(file: &[u8], port: u16) -> (String, Result<Outcome, String>) {
    let mut out = Vec::new();
    let outcome = print_capture(file, &[port], false, &mut out).map_err(|error| error.to_string());
    (String::from_utf8(out).expect("text"), outcome)
}

fn printed(packets: &[Vec<u8>]) -> (String, Outcome) {
    let (told, outcome) = decoded(&pcap(packets), 6653);
    (told.replace(PREFIX, ""), outcome.expect("a capture"))
}

/// Returns 1.3 barrier requests with these xids.
fn barriers(xids: std::ops::Range<u8>) -> Vec<u8> {
    xids.flat_map(|xid| [4, 20, 0, 8, 0, 0, 0, xid]).collect()
}

/// Returns a 1.3 echo request with a payload of this length.
fn echo(xid: u8, payload: usize) -> Vec<u8> {
    let [high, low] = (8 + payload as u16).to_be_bytes();
    [&[4, 2, high, low, 0, 0, 0, xid][..], &vec![0xee; payload]].concat()
}

#[test]
fn prints_whole_messages_of_a_capture() {
    let bytes = [1, 18, 0, 8, 0, 0, 0, 1, 1, 19, 0, 8, 0, 0, 0, 2];
    let cuts = [(100, 0..3), (108, 8..16), (103, 3..8)];
    let packets = cuts.map(|(seq, range)| packet(seq, &bytes[range]));
    assert_eq!(
        decoded(&pcap(&packets), 6653),
        (
            format!(
                "{PREFIX}OFPT_BARRIER_REQUEST (xid=0x1):\n{PREFIX}OFPT_BARRIER_REPLY (xid=0x2):\n"
            ),
            Ok(Outcome::AllRead)
        )
    );
}

#[test]
fn unmatched_ports_are_reported_with_the_existing_ones() {
    let file = pcap(&[packet(100, &barriers(1..2)), packet(108, &barriers(2..3))]);
    let (told, outcome) = decoded(&file, 6633);
    assert_eq!(told, "");
    assert_eq!(
        outcome.unwrap_err(),
        "no TCP connection in the capture is from or to port 6633; its connections are from and to port 6653 \
         (2 segments), port 43210 (2 segments); --port names the controller's"
    );
}

#[test]
fn a_capture_without_messages_is_reported() {
    let sentence = |packets: &[Vec<u8>]| decoded(&pcap(packets), 6653).1.unwrap_err();
    assert!(sentence(&[]).contains("in 0 packets"));
    let arp = [&[0xff; 12][..], &[0x08, 0x06], &[0; 28]].concat();
    assert!(sentence(&[arp]).contains("no readable TCP segment in 1 packets"));
    assert_eq!(
        sentence(&[packet(100, b"")]),
        "the connections from or to port 6653 carry no bytes in this capture"
    );
}

#[test]
fn a_truncated_capture_is_reported_with_the_amount_read() {
    let file = pcap(&[packet(100, &barriers(1..2)), packet(108, &barriers(2..3))]);
    let all = file.len();
    for cut in [1, 30, 70] {
        let (told, outcome) = decoded(&file[..all - cut], 6653);
        assert_eq!(
            told,
            format!("{PREFIX}OFPT_BARRIER_REQUEST (OF1.3) (xid=0x1):\n")
        );
        let (read, there) = (24 + 78, all - cut);
        assert_eq!(
            outcome.unwrap_err(),
            format!(
                "the capture ends in the middle of a packet (packets read: 1; bytes read: {read} of {there}); expected a \
                 file that its writer has closed"
            )
        );
    }
    let (_, outcome) = decoded(&file[..10], 6653);
    assert_eq!(
        outcome.unwrap_err(),
        "the capture cannot be read: it ends within its header; expected a pcap or pcapng file"
    );
}

#[test]
fn printing_continues_after_a_lost_segment() {
    let packets = [
        packet(100, &barriers(1..3)),
        // Bytes 116 to 132 are missing.
        packet(132, &barriers(5..7)),
    ];
    assert_eq!(
        printed(&packets),
        (
            "OFPT_BARRIER_REQUEST (OF1.3) (xid=0x1):\n\
             OFPT_BARRIER_REQUEST (OF1.3) (xid=0x2):\n\
             byte 16: 16 bytes are missing from the capture\n\
             OFPT_BARRIER_REQUEST (OF1.3) (xid=0x5):\n\
             OFPT_BARRIER_REQUEST (OF1.3) (xid=0x6):\n"
                .to_owned(),
            Outcome::SomeUnreadable
        )
    );
}

#[test]
fn a_message_with_a_lost_middle_is_skipped_to_its_end() {
    let bytes = [echo(1, 92), barriers(2..3)].concat();
    let packets = [
        packet_with(0x02, 43210, 6653, 99, b""),
        packet(100, &bytes[..40]),
        packet(180, &bytes[80..]),
    ];
    assert_eq!(
        printed(&packets).0,
        "byte 0: the message ends after 40 bytes; expected 100, as its header says\n\
         byte 40: 40 bytes are missing from the capture\n\
         OFPT_BARRIER_REQUEST (OF1.3) (xid=0x2):\n"
    );
}

#[test]
fn the_rest_of_a_message_with_a_lost_start_is_skipped() {
    // The lost bytes contain the start of the second message; its end is in a segment with the later messages.
    let bytes = [barriers(1..2), echo(2, 92), barriers(3..6)].concat();
    let packets = [packet(100, &bytes[..8]), packet(140, &bytes[40..])];
    assert_eq!(
        printed(&packets).0,
        "OFPT_BARRIER_REQUEST (OF1.3) (xid=0x1):\n\
         byte 8: 32 bytes are missing from the capture\n\
         byte 40: skipping 68 bytes; the next message starts at byte 108\n\
         OFPT_BARRIER_REQUEST (OF1.3) (xid=0x3):\n\
         OFPT_BARRIER_REQUEST (OF1.3) (xid=0x4):\n\
         OFPT_BARRIER_REQUEST (OF1.3) (xid=0x5):\n"
    );
}

#[test]
fn a_capture_that_starts_within_a_message_is_read_from_the_next_one() {
    let bytes = [echo(1, 92), barriers(2..3)].concat();
    let packets = [packet(140, &bytes[40..100]), packet(200, &bytes[100..])];
    assert_eq!(
        printed(&packets),
        (
            "byte 0: skipping 60 bytes; the next message starts at byte 60\n\
             OFPT_BARRIER_REQUEST (OF1.3) (xid=0x2):\n"
                .to_owned(),
            Outcome::SomeUnreadable
        )
    );
}

#[test]
fn truncated_segments_are_reported() {
    let mut cut = packet(100, &barriers(1..3));
    cut.truncate(cut.len() - 8);
    assert_eq!(
        printed(&[cut.clone()]).0,
        "OFPT_BARRIER_REQUEST (OF1.3) (xid=0x1):\nbyte 8: 8 bytes are missing from the capture\n"
    );
    let told = printed(&[cut, packet(116, &barriers(3..4))]);
    assert!(
        told.0
            .ends_with("OFPT_BARRIER_REQUEST (OF1.3) (xid=0x3):\n"),
        "{}",
        told.0
    );
    assert_eq!(told.1, Outcome::SomeUnreadable);
}

#[test]
fn a_restarted_connection_is_separate_and_the_old_one_is_reported() {
    let packets = [
        packet(5, &barriers(1..2)),
        packet(13, &[4, 20, 0]),
        packet_with(0x02, 43210, 6653, 90, b""),
        packet(91, &barriers(2..3)),
        // A retransmitted start changes nothing.
        packet_with(0x02, 43210, 6653, 90, b""),
        packet(99, &barriers(3..4)),
    ];
    assert_eq!(
        printed(&packets).0,
        "OFPT_BARRIER_REQUEST (OF1.3) (xid=0x1):\n\
         byte 8: the message ends after 3 bytes; expected at least the 8 of a header\n\
         OFPT_BARRIER_REQUEST (OF1.3) (xid=0x2):\n\
         OFPT_BARRIER_REQUEST (OF1.3) (xid=0x3):\n"
    );
}

#[test]
fn simple_packets_of_pcapng_are_read() {
    let mut file = PcapNgWriter::new(Vec::new()).expect("a capture");
    file.write_pcapng_block(InterfaceDescriptionBlock {
        linktype: DataLink::ETHERNET,
        snaplen: 0,
        options: Vec::new(),
    })
    .expect("writing to memory");
    let data = packet(100, &barriers(1..2));
    file.write_pcapng_block(SimplePacketBlock {
        original_len: data.len() as u32,
        data: data.into(),
    })
    .expect("writing to memory");
    let (told, outcome) = decoded(&file.into_inner(), 6653);
    assert_eq!(
        told,
        format!("{PREFIX}OFPT_BARRIER_REQUEST (OF1.3) (xid=0x1):\n")
    );
    assert_eq!(outcome, Ok(Outcome::AllRead));
}
