//! Writes packets to a pcapng file in its own thread, from a bounded queue.
//!
//! **Why a thread.** A disk may be slow or full, and no connection should wait for it: packets that do not fit into the
//! queue are counted, and missing from the file.

use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::interface_statistics::{
    InterfaceStatisticsBlock, InterfaceStatisticsOption,
};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::{DataLink, Endianness, PcapError};
use std::borrow::Cow;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

/// Maximum number of bytes that wait to be written.
const QUEUE_BYTES_MAX: usize = 64 << 20;

/// The overhead of a packet, which limits the number of small packets.
const PACKET_BYTES: usize = 64;

/// The resolution of timestamps, as a negative power of ten of a second: nanoseconds.
const NANOSECONDS: u8 = 9;

/// Only the owner may read the messages of switches and controllers.
const OWNER_ONLY: u32 = 0o600;

/// The destination of packets, with a handle for each thread.
#[derive(Clone)]
pub struct Recorder {
    queue: Sender<Packet>,
    tally: Arc<Tally>,
}

struct Packet {
    /// Time since 1970.
    time: Duration,
    bytes: Vec<u8>,
}

#[derive(Default)]
struct Tally {
    queued_bytes: AtomicUsize,
    dropped: AtomicU64,
}

/// The handle of the writing thread.
pub struct Writing {
    thread: JoinHandle<io::Result<u64>>,
    tally: Arc<Tally>,
}

/// Creates an empty file that only its owner can read, or empties an existing one.
///
/// # Errors
/// The errors of `open(2)`.
pub fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let options = options.write(true).create(true).mode(OWNER_ONLY);
    let file = options.open(path)?;
    // Restricts an existing file before anything is written to it. Pipes and devices stay unchanged.
    if file.metadata()?.is_file() {
        file.set_permissions(Permissions::from_mode(OWNER_ONLY))?;
        file.set_len(0)?;
    }
    Ok(file)
}

/// Starts a recording.
pub fn start(out: Box<dyn Write + Send>) -> io::Result<(Recorder, Writing)> {
    let file = begin(BufWriter::new(out))?;
    let (queue, packets) = channel();
    let tally = Arc::<Tally>::default();
    let counted = Arc::clone(&tally);
    let thread = std::thread::Builder::new().name("recorder".to_owned());
    let thread = thread.spawn(move || write_all(file, &packets, &counted));
    let recorder = Recorder {
        queue,
        tally: Arc::clone(&tally),
    };
    Ok((
        recorder,
        Writing {
            thread: thread?,
            tally,
        },
    ))
}

impl Recorder {
    /// Queues packets with the current time; packets that do not fit into the queue are counted.
    pub fn record(&self, packets: Vec<Vec<u8>>) {
        let time = since_1970();
        for bytes in packets {
            let length = bytes.len() + PACKET_BYTES;
            let before = self.tally.queued_bytes.fetch_add(length, Relaxed);
            let has_room = before + length <= QUEUE_BYTES_MAX;
            if !has_room || self.queue.send(Packet { time, bytes }).is_err() {
                self.tally.queued_bytes.fetch_sub(length, Relaxed);
                self.tally.dropped.fetch_add(1, Relaxed);
            }
        }
    }
}

impl Writing {
    /// Waits until all packets are written. Every [`Recorder`] must have been dropped. Returns the number of packets in
    /// the file, or the error that left it incomplete, and the number of missing packets.
    pub fn finish(self) -> (io::Result<u64>, u64) {
        let written = self
            .thread
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the thread that writes has panicked")));
        (written, self.tally.dropped.load(Relaxed))
    }
}

fn since_1970() -> Duration {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.unwrap_or_default()
}

type Out = PcapNgWriter<BufWriter<Box<dyn Write + Send>>>;

/// Writes the header of the file.
fn begin(out: BufWriter<Box<dyn Write + Send>>) -> io::Result<Out> {
    let application = concat!("urtica ", env!("CARGO_PKG_VERSION"));
    let section = SectionHeaderBlock {
        endianness: Endianness::Little,
        options: vec![SectionHeaderOption::UserApplication(application.into())],
        ..SectionHeaderBlock::default()
    };
    let mut file = PcapNgWriter::with_section_header(out, section).map_err(reason)?;
    let mut interface = InterfaceDescriptionBlock::new(DataLink::RAW, 0);
    interface.options = vec![
        InterfaceDescriptionOption::IfName("openflow".into()),
        InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
    ];
    file.write_pcapng_block(interface).map_err(reason)?;
    file.get_mut().flush()?;
    Ok(file)
}

/// Writes until all senders are dropped; returns the number of packets. After an error it only counts packets, so that
/// the queue does not fill up.
fn write_all(mut file: Out, packets: &Receiver<Packet>, tally: &Tally) -> io::Result<u64> {
    let mut written = Ok(0);
    while let Some(packet) = next(&mut file, packets) {
        let length = packet.bytes.len() + PACKET_BYTES;
        written = match written {
            Ok(count) => write(&mut file, packet).map(|()| count + 1),
            Err(error) => {
                tally.dropped.fetch_add(1, Relaxed);
                Err(error)
            }
        };
        tally.queued_bytes.fetch_sub(length, Relaxed);
    }
    let count = written?;
    write_statistics(&mut file, count, tally.dropped.load(Relaxed))?;
    file.get_mut().flush()?;
    Ok(count)
}

/// Returns the next packet. While the queue is empty, earlier packets are flushed for concurrent readers of the file.
/// An error of the flush recurs with the next packet.
fn next(file: &mut Out, packets: &Receiver<Packet>) -> Option<Packet> {
    match packets.try_recv() {
        Ok(packet) => Some(packet),
        Err(TryRecvError::Disconnected) => None,
        Err(TryRecvError::Empty) => {
            if let Err(error) = file.get_mut().flush() {
                complain_once(&error);
            }
            packets.recv().ok()
        }
    }
}

fn complain_once(error: &io::Error) {
    urtica_log::error!(about: "recording", %error, "cannot write the capture; still relaying connections");
}

fn write(file: &mut Out, packet: Packet) -> io::Result<()> {
    let block = EnhancedPacketBlock {
        interface_id: 0,
        timestamp: packet.time,
        original_len: packet.bytes.len() as u32,
        data: Cow::Owned(packet.bytes),
        options: Vec::new(),
    };
    let written = file.write_pcapng_block(block).map(drop);
    written.map_err(reason).inspect_err(complain_once)
}

/// Writes the numbers of packets and of missing packets to the file itself.
fn write_statistics(file: &mut Out, written: u64, dropped: u64) -> io::Result<()> {
    let statistics = InterfaceStatisticsBlock {
        interface_id: 0,
        // The format has the upper word first; the library writes one number, with the lower word first in this byte
        // order.
        timestamp: (since_1970().as_nanos() as u64).rotate_left(32),
        options: vec![
            InterfaceStatisticsOption::IsbIfRecv(written + dropped),
            InterfaceStatisticsOption::IsbIfDrop(dropped),
        ],
    };
    file.write_pcapng_block(statistics)
        .map(drop)
        .map_err(reason)
}

/// Returns the system's error, if there is one.
fn reason(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packets::Packets;
    use std::sync::mpsc::sync_channel;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path)
            .expect("it is there")
            .permissions()
            .mode()
            & 0o777
    }

    #[test]
    fn recordings_are_readable_and_only_by_their_owner() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.pcapng");
        std::fs::write(
            &path,
            "something longer, which anybody could read".repeat(99),
        )
        .expect("written");
        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).expect("permitted");
        let (recorder, writing) =
            start(Box::new(create_private(&path).expect("created"))).expect("begun");
        let began = since_1970();
        recorder.record(vec![vec![1; 40], vec![2; 41]]);
        drop(recorder);
        let (written, dropped) = writing.finish();
        assert_eq!(written.expect("written"), 2);
        assert_eq!(dropped, 0);
        assert_eq!(mode(&path), OWNER_ONLY);
        let bytes = std::fs::read(&path).expect("read");
        let mut packets = Packets::new(&bytes).expect("pcapng");
        for length in [40, 41] {
            let packet = packets.next().expect("readable").expect("a packet");
            assert_eq!(packet.data.len(), length);
            assert!(packet.time >= began, "{:?} {began:?}", packet.time);
            assert!(packet.time < began + Duration::from_secs(3600));
        }
        assert!(packets.next().expect("readable").is_none());
    }

    /// A disk on which every write waits for a message.
    struct SlowDisk(std::sync::mpsc::Receiver<()>);

    impl Write for SlowDisk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // Fails once the sender is dropped.
            let _ = self.0.recv();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_slow_disk_drops_packets_without_delay() {
        let (go_on, wait) = sync_channel(1);
        go_on.send(()).expect("received");
        let (recorder, writing) = start(Box::new(SlowDisk(wait))).expect("begun");
        let one = 1 << 20;
        for _ in 0..100 {
            recorder.record(vec![vec![0; one]]);
        }
        let queued = recorder.tally.queued_bytes.load(Relaxed);
        assert!(queued <= QUEUE_BYTES_MAX);
        drop((recorder, go_on));
        let (written, dropped) = writing.finish();
        let written = written.expect("written");
        assert_eq!(written + dropped, 100);
        assert!(dropped >= 100 - (QUEUE_BYTES_MAX / one) as u64 - 1);
    }

    /// A disk that is full after the headers.
    struct FullDisk(usize);

    impl Write for FullDisk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if bytes.len() > self.0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.0 -= bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_ends_the_recording_and_missing_packets_are_counted() {
        let (recorder, writing) = start(Box::new(FullDisk(200))).expect("begun");
        for _ in 0..10 {
            recorder.record(vec![vec![0; 20_000]]);
        }
        drop(recorder);
        let (written, dropped) = writing.finish();
        assert!(written.is_err());
        assert!(dropped >= 8, "{}", dropped);
    }
}
