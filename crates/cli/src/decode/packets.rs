//! The packets of a pcap or pcapng file, which may be truncated.

use pcap_file::pcap::PcapParser;
use pcap_file::pcapng::{Block, PcapNgParser};
use pcap_file::{DataLink, PcapError};

/// The magic number of a pcapng file.
const PCAPNG: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
/// The magic numbers of a pcap file: with micro- or nanoseconds, in either byte order.
const PCAP: [[u8; 4]; 4] = [
    [0xa1, 0xb2, 0xc3, 0xd4],
    [0xd4, 0xc3, 0xb2, 0xa1],
    [0xa1, 0xb2, 0x3c, 0x4d],
    [0x4d, 0x3c, 0xb2, 0xa1],
];

/// Whether these are the first bytes of a capture.
pub(super) fn is_capture(bytes: &[u8]) -> bool {
    bytes
        .first_chunk()
        .is_some_and(|magic| *magic == PCAPNG || PCAP.contains(magic))
}

/// Why the packets end before the file does.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file is not a capture.
    #[error("the capture cannot be read: {0}; expected a pcap or pcapng file")]
    NoCapture(String),
    /// The file is truncated.
    #[error(
        "the capture ends in the middle of a packet (packets read: {packets}; bytes read: {read} of {all}); expected a file \
         that its writer has closed"
    )]
    CutOff {
        /// The number of packets before.
        packets: u64,
        /// Their bytes, with all headers.
        read: usize,
        /// The bytes in the file.
        all: usize,
    },
    /// The file is malformed.
    #[error(
        "the capture cannot be read any further (packets read: {packets}; bytes read: {read} of {all}): {error}"
    )]
    Broken {
        /// The number of packets before.
        packets: u64,
        /// Their bytes, with all headers.
        read: usize,
        /// The bytes in the file.
        all: usize,
        /// What is wrong.
        error: String,
    },
}

/// The packets of a file, from the first on.
pub(super) struct Packets<'a> {
    form: Form,
    rest: &'a [u8],
    all: usize,
    count: u64,
}

enum Form {
    Pcap(PcapParser),
    PcapNg(PcapNgParser),
}

/// A packet's link type, and its captured bytes.
pub(super) struct Packet<'a> {
    pub link: DataLink,
    pub data: std::borrow::Cow<'a, [u8]>,
}

impl<'a> Packets<'a> {
    /// Reads the file's header.
    pub fn new(bytes: &'a [u8]) -> Result<Self, ReadError> {
        let opened = match bytes.starts_with(&PCAPNG) {
            true => PcapNgParser::new(bytes).map(|(rest, parser)| (Form::PcapNg(parser), rest)),
            false => PcapParser::new(bytes).map(|(rest, parser)| (Form::Pcap(parser), rest)),
        };
        let (form, rest) = opened.map_err(|error| ReadError::NoCapture(reason(&error)))?;
        Ok(Self {
            form,
            rest,
            all: bytes.len(),
            count: 0,
        })
    }

    /// The number of packets read.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The next packet; `None` at the end.
    pub fn next(&mut self) -> Result<Option<Packet<'a>>, ReadError> {
        while !self.rest.is_empty() {
            let (rest, packet) = match self.form.take(self.rest) {
                Ok(taken) => taken,
                Err(error) => return Err(self.stopped_by(&error)),
            };
            self.rest = rest;
            if let Some(packet) = packet {
                self.count += 1;
                return Ok(Some(packet));
            }
        }
        Ok(None)
    }

    fn stopped_by(&self, error: &PcapError) -> ReadError {
        let (packets, all) = (self.count, self.all);
        let read = all - self.rest.len();
        match error {
            PcapError::IncompleteBuffer => ReadError::CutOff { packets, read, all },
            _ => ReadError::Broken {
                packets,
                read,
                all,
                error: reason(error),
            },
        }
    }
}

impl Form {
    /// Takes the next packet or block; `None` is for blocks that are not packets.
    fn take<'a>(&mut self, bytes: &'a [u8]) -> Result<(&'a [u8], Option<Packet<'a>>), PcapError> {
        match self {
            Self::Pcap(parser) => {
                // The raw form: the bytes are readable even if times and lengths are nonsense.
                let (rest, packet) = parser.next_raw_packet(bytes)?;
                let link = parser.header().datalink;
                let data = packet.data;
                Ok((rest, Some(Packet { link, data })))
            }
            Self::PcapNg(parser) => {
                let (rest, block) = parser.next_block(bytes)?;
                Ok((rest, packet_of(parser, block)))
            }
        }
    }
}

fn packet_of<'a>(parser: &PcapNgParser, block: Block<'a>) -> Option<Packet<'a>> {
    let (interface, data) = match block {
        Block::EnhancedPacket(packet) => (packet.interface_id, packet.data),
        Block::Packet(packet) => (packet.interface_id.into(), packet.data),
        // It belongs to the first interface.
        Block::SimplePacket(packet) => (0, packet.data),
        _ => return None,
    };
    let interface = parser.interfaces().get(interface as usize);
    let link = interface.map_or(DataLink::Unknown(u32::MAX), |interface| interface.linktype);
    Some(Packet { link, data })
}

/// The library's message, without its "invalid field".
fn reason(error: &PcapError) -> String {
    match error {
        PcapError::IncompleteBuffer => "it ends within its header".to_owned(),
        PcapError::InvalidField(what) => (*what).to_owned(),
        other => other.to_string(),
    }
}
