//! A capture file as a port, which receives the captured frames, and records the frames that it sends.
//!
//! **What.** The port reads Ethernet frames from a pcap file, once or repeatedly, as fast as it is polled, ignoring their
//! times. It writes sent frames to another file, with the time of day.
//!
//! **Cost.** The replayed file is read into memory when it is opened, so that no read blocks the switch.
//!
//! **Limits.** The port supports pcap, not pcapng (`editcap -F pcap` converts). A port without a file to replay only records.

use super::{Opening, PortError, PortIo};
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapReader, PcapWriter};
use pcap_file::{DataLink, PcapError};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};
use urtica_wire::MacAddr;

/// Snapshot length of recorded files, which is larger than any frame.
const SNAP_LEN: u32 = 256 << 10;

/// How often a capture is replayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Replay {
    /// Each frame is received once.
    #[default]
    Once,
    /// The capture starts again after the last frame.
    Forever,
}

/// A port on capture files.
pub struct PcapPort {
    name: String,
    frames: Vec<Vec<u8>>,
    /// Index of the next frame.
    next: usize,
    replay: Replay,
    /// Readable while there are frames to receive.
    pending: OwnedFd,
    record: Option<Record>,
}

type Record = PcapWriter<BufWriter<File>>;

impl PcapPort {
    /// Opens a port that receives the frames of the file `input` and writes sent frames to the file `output`, which is
    /// overwritten.
    ///
    /// # Errors
    /// If a file cannot be opened, or `input` is not a pcap of Ethernet frames.
    pub fn open(
        input: Option<&Path>,
        output: Option<&Path>,
        replay: Replay,
    ) -> Result<Self, PortError> {
        let path = input.or(output).unwrap_or(Path::new("pcap"));
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let frames = input.map(read_frames).transpose()?.unwrap_or_default();
        let record = output.map(create).transpose()?;
        let opening = opening(&name);
        let waiting = u32::from(!frames.is_empty());
        let pending = eventfd(waiting, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(opening.failed("create an event"))?;
        Ok(Self {
            name,
            frames,
            next: 0,
            replay,
            pending,
            record,
        })
    }

    /// Returns the next frame's index, and advances.
    fn advance(&mut self) -> Option<usize> {
        if self.next == self.frames.len() && self.replay == Replay::Forever {
            self.next = 0;
        }
        let at = (self.next < self.frames.len()).then_some(self.next)?;
        self.next += 1;
        Some(at)
    }

    fn silence(&self) {
        // Fails only if it is silent already.
        let _ = rustix::io::read(&self.pending, &mut [0_u8; 8]);
    }
}

impl PortIo for PcapPort {
    fn name(&self) -> &str {
        &self.name
    }

    /// Returns one locally administered address for all such ports, since a capture has none.
    fn hw_addr(&self) -> MacAddr {
        MacAddr::new([2, 0, 0, b'c', b'a', b'p'])
    }

    fn is_up(&self) -> bool {
        true
    }

    fn speed_kbps(&self) -> u32 {
        0
    }

    fn receive(&mut self, max: usize, handle: &mut dyn FnMut(&[u8])) -> io::Result<usize> {
        for count in 0..max {
            let Some(at) = self.advance() else {
                if count == 0 {
                    self.silence();
                }
                return Ok(count);
            };
            handle(&self.frames[at]);
        }
        Ok(max)
    }

    fn send(&mut self, frame: &[u8]) -> bool {
        let Some(record) = &mut self.record else {
            return false;
        };
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let packet = PcapPacket::new(now.unwrap_or(Duration::ZERO), frame.len() as u32, frame);
        record.write_packet(&packet).is_ok()
    }

    /// Does nothing. Records stay in memory until the file is closed or [`BufWriter`]'s buffer is full, since a record need not
    /// be durable.
    fn flush(&mut self) {}

    fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.pending.as_fd())
    }
}

impl Drop for PcapPort {
    fn drop(&mut self) {
        let Some(record) = self.record.take() else {
            return;
        };
        if let Err(error) = record.into_writer().flush() {
            tracing::warn!(port = self.name, %error, "cannot write the end of the recording; it is lost");
        }
    }
}

fn opening(name: &str) -> Opening<'_> {
    Opening {
        port: name,
        needs: "permission for the file",
    }
}

fn read_frames(path: &Path) -> Result<Vec<Vec<u8>>, PortError> {
    let name = path.to_string_lossy();
    let opening = opening(&name);
    let file = File::open(path).map_err(opening.failed("open the capture"))?;
    let no_pcap = |error: PcapError| {
        opening.unsuitable(format!(
            "is not a readable pcap file ({error}); expected one"
        ))
    };
    let mut reader = PcapReader::new(io::BufReader::new(file)).map_err(no_pcap)?;
    if reader.header().datalink != DataLink::ETHERNET {
        return Err(opening.unsuitable("is a capture of frames other than Ethernet's"));
    }
    let mut frames = Vec::new();
    while let Some(packet) = reader.next_packet() {
        frames.push(packet.map_err(no_pcap)?.data.into_owned());
    }
    Ok(frames)
}

fn create(path: &Path) -> Result<Record, PortError> {
    let name = path.to_string_lossy();
    let opening = opening(&name);
    let file = File::create(path).map_err(opening.failed("create the file"))?;
    let header = PcapHeader {
        snaplen: SNAP_LEN,
        datalink: DataLink::ETHERNET,
        ..PcapHeader::default()
    };
    PcapWriter::with_header(BufWriter::new(file), header)
        .map_err(io::Error::other)
        .map_err(opening.failed("write the file header"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::testing::{frame, is_readable, receive};

    /// Creates a capture of three frames in a folder that is deleted when dropped.
    fn capture() -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("three.pcap");
        let mut port = PcapPort::open(None, Some(&path), Replay::Once).unwrap();
        for mark in 0..3 {
            assert!(port.send(&frame(60 + usize::from(mark), mark)));
        }
        port.flush();
        (folder, path)
    }

    #[test]
    fn recorded_frames_can_be_replayed() {
        let (_folder, path) = capture();
        let mut port = PcapPort::open(Some(&path), None, Replay::Once).unwrap();
        assert_eq!(port.name(), "three.pcap");
        assert!(is_readable(&port, 0));
        assert_eq!(
            receive(&mut port, 3),
            [frame(60, 0), frame(61, 1), frame(62, 2)]
        );
        assert_eq!(port.receive(8, &mut |_| {}).unwrap(), 0);
        assert!(!is_readable(&port, 0), "nothing comes any more");
        assert!(!port.send(&frame(60, 0)), "there is no file for it");
    }

    #[test]
    fn replay_forever_restarts() {
        let (_folder, path) = capture();
        let mut port = PcapPort::open(Some(&path), None, Replay::Forever).unwrap();
        let marks: Vec<_> = receive(&mut port, 7)[..7]
            .iter()
            .map(|frame| frame[20])
            .collect();
        assert_eq!(marks, [0, 1, 2, 0, 1, 2, 0]);
        assert!(is_readable(&port, 0));
    }

    #[test]
    fn an_empty_capture_does_not_loop() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("empty.pcap");
        drop(PcapPort::open(None, Some(&path), Replay::Once).unwrap());
        let mut port = PcapPort::open(Some(&path), None, Replay::Forever).unwrap();
        assert_eq!(port.receive(8, &mut |_| {}).unwrap(), 0);
        assert!(!is_readable(&port, 0));
    }

    #[test]
    fn errors_name_what_was_expected() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text");
        std::fs::write(&path, "this is not a capture, but long enough for a header").unwrap();
        let refuse = |input: &Path| {
            let opened = PcapPort::open(Some(input), None, Replay::Once);
            opened.err().unwrap().to_string()
        };
        assert!(
            refuse(&path).contains("is not a readable pcap file"),
            "{}",
            refuse(&path)
        );
        let missing = refuse(&folder.path().join("none"));
        assert!(
            missing.contains("cannot open the capture") && missing.contains("No such file"),
            "{missing}"
        );
    }
}
