//! Workloads as files, for measurements of other switches.

use super::{FRAME_SIZE, Trace, Workload};
use std::borrow::Cow;
use std::io::{self, Write};
use std::time::Duration;

use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::{DataLink, Endianness, PcapError, TsResolution};

/// Writes the flow entries of a workload, one per line, as `ovs-ofctl -O OpenFlow13 add-flows` reads them.
///
/// # Errors
/// Errors of `out`.
pub fn write_flows(workload: Workload, mut out: impl Write) -> io::Result<()> {
    for entry in workload.entries() {
        writeln!(out, "{entry}")?;
    }
    out.flush()
}

/// Writes the packets of a trace of `flows` flows as a capture, in the order of the replay, all at time 0.
///
/// # Errors
/// Errors of `out`.
pub fn write_pcap(
    workload: Workload,
    flows: u32,
    trace: Trace,
    mut out: impl Write,
) -> io::Result<()> {
    // A fixed byte order, so that the file is equal on every machine.
    let header = PcapHeader {
        version_major: 2,
        version_minor: 4,
        ts_correction: 0,
        ts_accuracy: 0,
        snaplen: 65_535,
        datalink: DataLink::ETHERNET,
        ts_resolution: TsResolution::MicroSecond,
        endianness: Endianness::Little,
    };
    let mut capture = PcapWriter::with_header(&mut out, header).map_err(io_error)?;
    for frame in trace.of(workload.population(flows)) {
        let packet = PcapPacket {
            timestamp: Duration::ZERO,
            orig_len: FRAME_SIZE as u32,
            data: Cow::Borrowed(&frame),
        };
        capture.write_packet(&packet).map_err(io_error)?;
    }
    out.flush()
}

fn io_error(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::{Digest, Sha256};

    /// SHA-256 of every file, as `sha256sum` writes it: `urtica bench switch --write DIR --flows 1,1000`, then
    /// `cd DIR && sha256sum *`.
    const DIGESTS: &str = include_str!("digests.txt");

    fn digest_line(name: &str, content: &[u8]) -> String {
        let digest = Sha256::digest(content);
        let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{hex}  {name}")
    }

    #[test]
    fn files_are_equal_on_every_machine() {
        let mut lines = Vec::new();
        for workload in Workload::ALL {
            let mut content = Vec::new();
            write_flows(workload, &mut content).unwrap();
            lines.push(digest_line(&format!("{workload}.flows"), &content));
            for flows in [1, 1000] {
                let mut content = Vec::new();
                write_pcap(workload, flows, Trace::Uniform, &mut content).unwrap();
                lines.push(digest_line(&format!("{workload}-{flows}.pcap"), &content));
            }
        }
        assert_eq!(lines.join("\n") + "\n", DIGESTS);
    }
}
