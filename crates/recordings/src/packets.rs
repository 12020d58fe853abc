//! The packets of a pcap or pcapng file, which may be truncated.

use pcap_file::pcap::PcapParser;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::{Block, PcapNgParser};
use pcap_file::{DataLink, PcapError, TsResolution};
use std::time::Duration;

/// The magic number of a pcapng file.
const PCAPNG: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
/// The magic numbers of a pcap file: with micro- or nanoseconds, in either byte order.
const PCAP: [[u8; 4]; 4] = [
    [0xa1, 0xb2, 0xc3, 0xd4],
    [0xd4, 0xc3, 0xb2, 0xa1],
    [0xa1, 0xb2, 0x3c, 0x4d],
    [0x4d, 0x3c, 0xb2, 0xa1],
];

/// Returns `true` for the first bytes of a capture.
pub fn is_capture(bytes: &[u8]) -> bool {
    bytes
        .first_chunk()
        .is_some_and(|magic| *magic == PCAPNG || PCAP.contains(magic))
}

/// Why the packets end before the file does.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
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
        /// The number of packets before the error.
        packets: u64,
        /// The length of these packets, with all headers.
        read: usize,
        /// The bytes in the file.
        all: usize,
    },
    /// The file is malformed.
    #[error(
        "the capture cannot be read any further (packets read: {packets}; bytes read: {read} of {all}): {error}"
    )]
    Broken {
        /// The number of packets before the error.
        packets: u64,
        /// The length of these packets, with all headers.
        read: usize,
        /// The bytes in the file.
        all: usize,
        /// The problem.
        error: String,
    },
}

/// The packets of a file, from the first on.
pub struct Packets<'a> {
    form: Form,
    rest: &'a [u8],
    all: usize,
    count: u64,
}

enum Form {
    Pcap(PcapParser),
    PcapNg(PcapNgParser),
}

/// A captured packet.
pub struct Packet<'a> {
    /// The link type.
    pub link: DataLink,
    /// The time since 1970; zero if the file has no times.
    pub time: Duration,
    /// The captured bytes.
    pub data: std::borrow::Cow<'a, [u8]>,
}

impl<'a> Packets<'a> {
    /// Reads the file's header.
    ///
    /// # Errors
    /// [`ReadError::NoCapture`].
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

    /// Returns the number of packets read.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the next packet; `None` at the end.
    ///
    /// # Errors
    /// [`ReadError::CutOff`] and [`ReadError::Broken`]; after an error there are no more packets.
    #[allow(clippy::should_implement_trait, reason = "it can fail")]
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
    /// Reads the next packet or block; `None` for blocks that are not packets.
    fn take<'a>(&mut self, bytes: &'a [u8]) -> Result<(&'a [u8], Option<Packet<'a>>), PcapError> {
        match self {
            Self::Pcap(parser) => {
                // In the raw form, the bytes are readable even if times and lengths are invalid.
                let (rest, packet) = parser.next_raw_packet(bytes)?;
                let header = parser.header();
                let link = header.datalink;
                let fraction_ns = match header.ts_resolution {
                    TsResolution::MicroSecond => u64::from(packet.ts_frac) * 1000,
                    TsResolution::NanoSecond => packet.ts_frac.into(),
                };
                let whole = Duration::from_secs(packet.ts_sec.into());
                let time = whole + Duration::from_nanos(fraction_ns);
                let data = packet.data;
                Ok((rest, Some(Packet { link, time, data })))
            }
            Self::PcapNg(parser) => {
                let (rest, block) = parser.next_block(bytes)?;
                Ok((rest, packet_of(parser, block)))
            }
        }
    }
}

fn packet_of<'a>(parser: &PcapNgParser, block: Block<'a>) -> Option<Packet<'a>> {
    let (interface, units, data) = match block {
        // The library interprets all units as nanoseconds.
        Block::EnhancedPacket(packet) => {
            let units = packet.timestamp.as_nanos() as u64;
            (packet.interface_id, units, packet.data)
        }
        Block::Packet(packet) => (packet.interface_id.into(), packet.timestamp, packet.data),
        // A simple packet belongs to the first interface.
        Block::SimplePacket(packet) => (0, 0, packet.data),
        _ => return None,
    };
    let interface = parser.interfaces().get(interface as usize);
    let link = interface.map_or(DataLink::Unknown(u32::MAX), |interface| interface.linktype);
    let time = interface.map_or(Duration::ZERO, |interface| time_of(units, interface));
    Some(Packet { link, time, data })
}

/// Returns the time of a timestamp since 1970: in microseconds, unless the interface has another resolution
/// (`if_tsresol`).
fn time_of(units: u64, interface: &InterfaceDescriptionBlock<'_>) -> Duration {
    let resolution = interface.options.iter().find_map(|option| match option {
        InterfaceDescriptionOption::IfTsResol(resolution) => Some(*resolution),
        _ => None,
    });
    let resolution = resolution.unwrap_or(6);
    let exponent = u32::from(resolution & 0x7f);
    let base: u64 = if resolution & 0x80 == 0 { 10 } else { 2 };
    // No clock has a finer resolution than 64 bits allow.
    let per_second = base.checked_pow(exponent).unwrap_or(u64::MAX);
    let fraction = u128::from(units % per_second) * 1_000_000_000 / u128::from(per_second);
    Duration::new(units / per_second, fraction as u32)
}

/// Returns the library's message, without its "invalid field".
fn reason(error: &PcapError) -> String {
    match error {
        PcapError::IncompleteBuffer => "it ends within its header".to_owned(),
        PcapError::InvalidField(what) => (*what).to_owned(),
        other => other.to_string(),
    }
}
