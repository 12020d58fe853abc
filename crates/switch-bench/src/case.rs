//! The input of a measurement: entries and packets, from a workload or from files.

use super::replay::Cells;
use super::workload::{Frame, IN_PORT, OUT_PORT, PROBE_PORT, RuleSet, Trace, Workload};
use crate::{CaptureError, Error};
use pcap_file::DataLink;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use urtica_client::Loader;
use urtica_recordings::Packets;
use urtica_wire::PortNo;

/// The shortest frame: an Ethernet header.
const FRAME_MIN: usize = 14;

/// The longest frame.
const FRAME_MAX: usize = u16::MAX as usize;

/// Entries and packets.
pub struct Case {
    pub(crate) name: String,
    /// The number of packets, which are replayed repeatedly.
    pub(crate) flows: u32,
    /// The distribution of the packets over the flows; `None` if the packets come from a file.
    pub(crate) trace: Option<Trace>,
    pub(crate) entries: Loader,
    pub(crate) cells: Arc<Cells>,
    /// The table of routes, if any, and a packet for the probe's route.
    pub(crate) route_table: Option<u8>,
    pub(crate) probe: Option<Frame>,
    /// The rules from which the entries were made, if any, for a linear search.
    pub(crate) rules: Option<RuleSet>,
}

impl Case {
    /// Creates a case from a workload and a number of flows.
    ///
    /// # Errors
    /// [`Error::System`] if memory for the packets cannot be allocated.
    pub fn of(workload: Workload, flows: u32, trace: Trace) -> Result<Self, Error> {
        let mut entries = Loader::default();
        for entry in workload.entries() {
            let read = entries.read_line(&entry);
            read.map_err(|error| Error::Entry { entry, error })?;
        }
        let frames = trace.of(workload.population(flows));
        Ok(Self {
            name: workload.to_string(),
            flows,
            trace: Some(trace),
            entries,
            cells: cells(&frames)?,
            route_table: workload.route_table(),
            probe: workload.probe(),
            rules: workload.rules(),
        })
    }

    /// Reads the entries from one file, and the packets from another.
    ///
    /// # Errors
    /// An error with the file, and the invalid line or packet.
    pub fn read(flows_file: &Path, pcap: &Path) -> Result<Self, Error> {
        let mut entries = Loader::default();
        entries.read(flows_file)?;
        if entries.flow_count() == 0 {
            return Err(Error::NoEntries(flows_file.to_owned()));
        }
        let bytes =
            std::fs::read(pcap).map_err(Error::system(format!("read {}", pcap.display())))?;
        let frames = frames(&bytes).map_err(|error| Error::Capture {
            file: pcap.to_owned(),
            error,
        })?;
        let stem = flows_file.file_stem().unwrap_or(flows_file.as_os_str());
        Ok(Self {
            name: stem.to_string_lossy().into_owned(),
            flows: u32::try_from(frames.len()).unwrap_or(u32::MAX),
            trace: None,
            entries,
            cells: cells(&frames)?,
            route_table: None,
            probe: None,
            rules: None,
        })
    }

    /// Returns all ports that the switch needs.
    pub(crate) fn ports(&self) -> BTreeSet<PortNo> {
        let own = [IN_PORT, OUT_PORT, PROBE_PORT].map(PortNo);
        let mentioned = self.entries.mentioned_ports();
        own.into_iter().chain(mentioned).collect()
    }

    /// Returns `true` if every packet must be sent, because the entries were made for the packets.
    pub(crate) fn is_forwarded_whole(&self) -> bool {
        self.trace.is_some()
    }
}

fn cells(frames: &[impl AsRef<[u8]>]) -> Result<Arc<Cells>, Error> {
    let cells = Cells::new(frames);
    let count = frames.len();
    let cells = cells.map_err(Error::system(format!("allocate memory for {count} frames")))?;
    Ok(Arc::new(cells))
}

/// Returns the frames in a capture.
fn frames(capture: &[u8]) -> Result<Vec<Vec<u8>>, CaptureError> {
    let mut packets = Packets::new(capture)?;
    let mut frames = Vec::new();
    while let Some(packet) = packets.next()? {
        let (number, length) = (packets.count(), packet.data.len());
        if packet.link != DataLink::ETHERNET {
            let link = format!("{:?}", packet.link);
            return Err(CaptureError::Link { number, link });
        }
        if !(FRAME_MIN..=FRAME_MAX).contains(&length) {
            return Err(CaptureError::Length {
                number,
                length,
                min: FRAME_MIN,
                max: FRAME_MAX,
            });
        }
        frames.push(packet.data.into_owned());
    }
    match frames.is_empty() {
        true => Err(CaptureError::Empty),
        false => Ok(frames),
    }
}

#[cfg(test)]
mod tests {
    use super::super::workload::{write_flows, write_pcap};
    use super::*;
    use std::fs;

    #[test]
    fn written_cases_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let (flows, pcap) = (
            folder.path().join("lb.flows"),
            folder.path().join("lb.pcap"),
        );
        write_flows(Workload::Lb, fs::File::create(&flows).unwrap()).unwrap();
        write_pcap(
            Workload::Lb,
            50,
            Trace::Uniform,
            fs::File::create(&pcap).unwrap(),
        )
        .unwrap();
        let read = Case::read(&flows, &pcap).unwrap();
        let drawn = Case::of(Workload::Lb, 50, Trace::Uniform).unwrap();
        assert_eq!((&*read.name, read.flows), ("lb", 50));
        let texts = |case: &Case| -> Vec<_> {
            case.entries
                .messages()
                .map(|message| format!("{message:?}"))
                .collect()
        };
        assert_eq!(texts(&read), texts(&drawn));
        assert_eq!(read.ports(), drawn.ports());
        assert!(!read.is_forwarded_whole() && drawn.is_forwarded_whole());
    }

    #[test]
    fn invalid_files_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, content: &[u8]| {
            let path = folder.path().join(name);
            fs::write(&path, content).unwrap();
            path
        };
        let mut capture = Vec::new();
        write_pcap(Workload::Port, 2, Trace::Uniform, &mut capture).unwrap();
        let short = [&capture[..24], &[0; 8], &[9, 0, 0, 0, 9, 0, 0, 0], &[0; 9]].concat();
        let mut raw = capture.clone();
        raw[20] = 101;
        let (flows, pcap) = (
            file("good.flows", b"# a comment\n\nactions=output:2\n"),
            file("good.pcap", &capture),
        );
        assert!(Case::read(&flows, &pcap).is_ok());
        for (flows, pcap, expected) in [
            (
                file("a", b"in_port=1,actions=output:2\nactoins=drop\n"),
                &pcap,
                "a:2: column ",
            ),
            (file("b", b"# nothing\n"), &pcap, "b has no flow entries"),
            (folder.path().join("none"), &pcap, "none: No such file"),
            (
                flows.clone(),
                &folder.path().join("none"),
                "none: No such file",
            ),
            (
                flows.clone(),
                &file("c", b"text"),
                "expected a pcap or pcapng file",
            ),
            (
                flows.clone(),
                &file("d", &capture[..24]),
                "d: it has no packets",
            ),
            (
                flows.clone(),
                &file("e", &capture[..90]),
                "ends in the middle of a packet",
            ),
            (
                flows.clone(),
                &file("f", &short),
                "packet 1 has 9 bytes; expected 14 to 65535",
            ),
            (flows.clone(), &file("g", &raw), "expected Ethernet frames"),
        ] {
            let sentence = Case::read(&flows, pcap).err().unwrap().to_string();
            assert!(sentence.contains(expected), "{sentence}");
        }
    }
}
