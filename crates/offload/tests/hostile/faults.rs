//! Messages with one fault each.

use urtica_wire::Version;

/// A message with a fault.
pub struct Fault {
    pub name: String,
    bytes: Vec<u8>,
}

const OF13: u8 = 4;
const OF10: u8 = 1;

/// Faults whose bytes do not depend on other bytes. Those with a known type are of 1.3.
const FIXED: [(&str, &[u8]); 13] = [
    ("a length of 0", &[4, 2, 0, 0, 0, 0, 0, 9]),
    ("a length of 7", &[4, 10, 0, 7, 0, 0, 0, 9]),
    ("an unknown type", &[4, 30, 0, 8, 0, 0, 0, 9]),
    ("an unknown version", &[9, 2, 0, 8, 0, 0, 0, 9]),
    ("the other version", &[1, 2, 0, 8, 0, 0, 0, 9]),
    ("a message for switches", &[4, 5, 0, 8, 0, 0, 0, 9]),
    (
        "a packet-in that is cut",
        &[4, 10, 0, 16, 0, 0, 0, 9, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0],
    ),
    (
        "a port status that is cut",
        &[4, 12, 0, 12, 0, 0, 0, 9, 0, 0, 0, 0],
    ),
    ("a second hello", &[4, 0, 0, 8, 0, 0, 0, 9]),
    ("a reply that nobody wants", &[4, 21, 0, 8, 0, 0, 0, 9]),
    (
        "an error of its own",
        &[4, 1, 0, 12, 0, 0, 0, 9, 0, 1, 0, 1],
    ),
    (
        "an experimenter's message",
        &[4, 4, 0, 16, 0, 0, 0, 9, 1, 2, 3, 4, 5, 6, 7, 8],
    ),
    // A single message, according to its length.
    ("no OpenFlow", &[b'G'; 0x4747]),
];

impl Fault {
    /// Returns all faults.
    pub fn all() -> Vec<Self> {
        let fixed = FIXED.iter().map(|(name, bytes)| Self {
            name: (*name).into(),
            bytes: bytes.to_vec(),
        });
        let lengths = [0, 1, 0x7fff, 0xffff]
            .into_iter()
            .flat_map(with_inner_length);
        fixed.chain(lengths).collect()
    }

    /// Returns the bytes for a switch of this version.
    pub fn bytes(&self, version: Version) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        if version == Version::Of10 {
            bytes[0] = match bytes[0] {
                OF13 => OF10,
                OF10 => OF13,
                other => other,
            };
        }
        bytes
    }
}

/// Returns messages of 1.3 with an inner length that is 0, or beyond the messages' ends.
fn with_inner_length(length: u16) -> Vec<Fault> {
    let [high, low] = length.to_be_bytes();
    let header = |message_type, length| vec![OF13, message_type, 0, length, 0, 0, 0, 9];
    let mut packet_in = header(10, 42);
    packet_in.extend([0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    packet_in.extend([0, 1, high, low]);
    packet_in.resize(42, 0);
    let mut flow_stats = header(19, 72);
    flow_stats.extend([0, 1, 0, 0, 0, 0, 0, 0, high, low]);
    flow_stats.resize(72, 0);
    let mut instruction = header(19, 80);
    instruction.extend([0, 1, 0, 0, 0, 0, 0, 0, 0, 64]);
    instruction.resize(64, 0);
    instruction.extend([0, 1, 0, 4, 0, 0, 0, 0, 0, 4, high, low, 0, 0, 0, 0]);
    let mut queue = header(23, 32);
    queue.extend([0; 8]);
    queue.extend([0, 0, 0, 1, 0, 0, 0, 1, high, low]);
    queue.resize(32, 0);
    let mut feature = header(19, 88);
    feature.extend([0, 12, 0, 0, 0, 0, 0, 0, 0, 72]);
    feature.resize(80, 0);
    feature.extend([0, 0, high, low, 0, 0, 0, 0]);
    let all = [
        ("the match of a packet-in", packet_in),
        ("a flow's statistics", flow_stats),
        ("an instruction", instruction),
        ("a queue", queue),
        ("a table's feature", feature),
    ];
    let faults = all.into_iter().map(|(what, bytes)| Fault {
        name: format!("a length of {length} in {what}"),
        bytes,
    });
    faults.collect()
}
