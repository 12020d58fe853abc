//! Captures of a link, for Wireshark.

use crate::LinkId;
use crate::watch::{Event, Violation, Watcher};
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::{DataLink, Endianness, PcapError, TsResolution};
use std::io::Write;
use std::time::Duration;

/// The snapshot length: no frame is longer.
const SNAP_LEN: u32 = 256 << 10;

/// Records all frames that are sent into one link, including lost ones, with the network's time.
pub struct Capture<W: Write> {
    link: LinkId,
    writer: PcapWriter<W>,
}

impl<W: Write> Capture<W> {
    /// Creates a capture of this link.
    ///
    /// # Errors
    /// If the file's header cannot be written.
    pub fn new(link: LinkId, out: W) -> Result<Self, PcapError> {
        let header = PcapHeader {
            snaplen: SNAP_LEN,
            datalink: DataLink::ETHERNET,
            ts_resolution: TsResolution::NanoSecond,
            endianness: Endianness::Little,
            ..PcapHeader::default()
        };
        let writer = PcapWriter::with_header(out, header)?;
        Ok(Self { link, writer })
    }
}

impl<W: Write> Watcher for Capture<W> {
    /// Writes a frame.
    ///
    /// # Errors
    /// If a frame cannot be written.
    fn see(&mut self, now: Duration, event: &Event<'_>) -> Result<(), Violation> {
        let Event::Sent(link, _, frame) = *event else {
            return Ok(());
        };
        if link != self.link {
            return Ok(());
        }
        let packet = PcapPacket::new(now, frame.len() as u32, frame);
        let written = self.writer.write_packet(&packet);
        written
            .map(drop)
            .map_err(|error| Violation::new(format!("the capture cannot be written: {error}")))
    }
}
