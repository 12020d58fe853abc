//! The benchmark's settings, with cbench's defaults.

use std::time::Duration;

use urtica_socket::{Address, NoTlsConfig, Tls};

use crate::Error;
use crate::frame::FrameKind;

/// The maximum number of emulated switches, whose MAC spaces are 16 bits apart.
pub const MAX_SWITCHES: u32 = 65_536;

/// The maximum number of source MACs per switch: the number of values that a source address can have below its destination
/// address, in addition to the switch's own number.
pub const MAX_MACS: u32 = 1 << 29;

/// The maximum number of packet-ins that a switch may have outstanding, in any mode. Buffer ids repeat after 100,000, and a
/// reply must identify its request.
pub const MAX_OUTSTANDING: u32 = 65_536;

/// The maximum number of kinds of frame. A kind that is given twice is sent twice as often.
pub const MAX_FRAMES: usize = 16;

/// The minimum length of a frame: the headers, and Ethernet's minimum without its checksum.
pub const MIN_FRAME_LEN: usize = 60;

/// The maximum length of a frame: a jumbo frame.
pub const MAX_FRAME_LEN: usize = 9_000;

/// When the emulated switches send packet-ins.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Mode {
    /// One packet-in outstanding per switch: cbench's latency mode.
    PingPong,
    /// As many outstanding as the socket accepts, up to [`Mode::max_outstanding`] per switch: cbench's throughput mode.
    MaxRate,
    /// At most this many outstanding per switch.
    Window(u32),
    /// This many packet-ins per second from each switch, whether or not they are answered. Latency starts when a packet-in was
    /// due, so that a stalling controller cannot hide it (no coordinated omission).
    Rate(f64),
}

impl Mode {
    /// Returns the maximum number of packet-ins outstanding per switch, for `switches` switches that share the machine. Without
    /// a window, all switches together are limited to one or two million, a power of two for each. With a thousand switches, four
    /// million exhausted the kernel's socket memory, and the run then did not measure the controller.
    pub fn max_outstanding(self, switches: u32) -> u32 {
        let shared = ((1 << 20) / switches.max(1)).next_power_of_two();
        match self {
            Self::PingPong => 1,
            Self::Window(window) => window,
            Self::MaxRate | Self::Rate(_) => shared.clamp(256, MAX_OUTSTANDING),
        }
    }
}

/// The OpenFlow version of the emulated switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Version {
    /// OpenFlow 1.0, wire version 0x01.
    V10,
    /// OpenFlow 1.3, wire version 0x04.
    V13,
}

impl Version {
    /// Returns the version byte of the OpenFlow header.
    pub const fn wire(self) -> u8 {
        match self {
            Self::V10 => 1,
            Self::V13 => 4,
        }
    }

    /// Returns `1.0` or `1.3`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V10 => "1.0",
            Self::V13 => "1.3",
        }
    }
}

/// The addresses of hosts, and the order in which hosts send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Addresses {
    /// Consecutive addresses; the hosts of a switch send round-robin, as in cbench.
    InTurn,
    /// Pseudo-random addresses; the sender of each packet-in is drawn uniformly.
    Random,
    /// Pseudo-random addresses; senders are drawn by Zipf's law: the second host sends half as much as the first.
    Zipf,
}

impl Addresses {
    /// Returns its name on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::InTurn => "in-turn",
            Self::Random => "random",
            Self::Zipf => "zipf",
        }
    }
}

/// The replies that verification accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Expect {
    /// The replies of a learning switch: a match on the packet, and an output to its destination's port.
    Learning,
    /// Any flow mod or packet-out with the packet-in's buffer id, as the null responder sends it.
    Any,
}

/// A load: the controller, the number of switches, their mode, and the duration.
#[derive(Clone, Debug)]
pub struct LoadConfig {
    /// The controller's address: [`Address::Tcp`], [`Address::Ssl`] or [`Address::Unix`].
    pub controller: Address,
    /// The switches' settings for TLS, if the controller's address needs it.
    pub tls: Option<Tls>,
    /// The number of switches to emulate.
    pub switches: u32,
    /// When they send packet-ins.
    pub mode: Mode,
    /// The maximum number of packet-ins outstanding over all switches, in addition to the limit of each. The switches share it
    /// round-robin.
    pub most_outstanding: Option<u32>,
    /// Their OpenFlow version.
    pub version: Version,
    /// The number of distinct source MACs per switch. More of them make the workload more write-heavy.
    pub macs: u32,
    /// The kinds of addresses, and the order in which hosts send.
    pub addresses: Addresses,
    /// The kinds of frame in the packet-ins, which are sent in rotation.
    pub frames: Vec<FrameKind>,
    /// The number of tests, including warm-up and cool-down.
    pub tests: u32,
    /// The duration of each test.
    pub test_length: Duration,
    /// The number of tests to disregard at the start.
    pub warmup: u32,
    /// The number of tests to disregard at the end.
    pub cooldown: u32,
    /// Whether each switch announces the destination by a gratuitous ARP before the tests.
    pub learn_dst_macs: bool,
    /// The wait between the last features-reply and the first packet-in.
    pub delay: Duration,
    /// The number of connections in such a group.
    pub connect_delay: Duration,
    /// The size of those groups.
    pub connect_group_size: u32,
    /// The datapath id of the first switch.
    pub dpid_offset: u64,
    /// The number of threads that share the switches.
    pub threads: usize,
    /// Whether every reply is checked against its request; otherwise replies are only counted.
    pub verify: bool,
    /// The replies that pass the check.
    pub expect: Expect,
    /// The cores to which threads are pinned, round-robin. If this is empty, threads are not pinned.
    pub cores: Vec<usize>,
    /// The length of the frame in each packet-in, in bytes.
    pub frame_len: usize,
    /// The controller's process, if it is on this machine but cannot be found by its socket.
    pub controller_pid: Option<u32>,
}

impl Default for LoadConfig {
    /// Returns cbench's defaults.
    fn default() -> Self {
        Self {
            controller: Address::Tcp {
                host: "localhost".to_owned(),
                port: 6633,
            },
            tls: None,
            switches: 16,
            mode: Mode::PingPong,
            most_outstanding: None,
            version: Version::V10,
            macs: 100_000,
            addresses: Addresses::InTurn,
            frames: vec![FrameKind::Cbench],
            tests: 16,
            test_length: Duration::from_secs(1),
            warmup: 1,
            cooldown: 0,
            learn_dst_macs: true,
            delay: Duration::ZERO,
            connect_delay: Duration::ZERO,
            connect_group_size: 1,
            dpid_offset: 1,
            threads: 1,
            verify: false,
            expect: Expect::Learning,
            cores: Vec::new(),
            frame_len: 64,
            controller_pid: None,
        }
    }
}

impl LoadConfig {
    /// Returns the tests that count, without warm-up and cool-down.
    pub fn counted_tests(&self) -> std::ops::Range<u32> {
        self.warmup..self.tests - self.cooldown
    }

    /// Refuses settings that contradict each other or cannot be run.
    pub fn validate(&self) -> Result<(), Error> {
        if self.controller.is_passive() {
            return Err(Error::invalid(format!(
                "'{}' is an address to listen at; give the controller's, as tcp:HOST:PORT",
                self.controller
            )));
        }
        if self.controller.is_tls() && self.tls.is_none() {
            let missing = NoTlsConfig(self.controller.clone());
            return Err(Error::invalid(missing.to_string()));
        }
        at_least_one("switches", self.switches)?;
        at_least_one("MAC addresses", self.macs)?;
        at_least_one("connect-group-size", self.connect_group_size)?;
        at_most("switches", self.switches, MAX_SWITCHES)?;
        at_most("MAC addresses per switch", self.macs, MAX_MACS)?;
        if self.threads == 0 || self.threads > self.switches as usize {
            let (threads, switches) = (self.threads, self.switches);
            return Err(Error::invalid(format!(
                "{threads} threads cannot share {switches} switches; use from 1 to {switches}"
            )));
        }
        if self.test_length.is_zero() {
            return Err(Error::invalid(
                "a test of 0 ms measures nothing; give --ms-per-test at least 1",
            ));
        }
        if u64::from(self.warmup) + u64::from(self.cooldown) >= u64::from(self.tests) {
            let (warmup, cooldown, tests) = (self.warmup, self.cooldown, self.tests);
            return Err(Error::invalid(format!(
                "warmup ({warmup}) + cooldown ({cooldown}) leave no tests of {tests} to count"
            )));
        }
        if !(MIN_FRAME_LEN..=MAX_FRAME_LEN).contains(&self.frame_len) {
            let len = self.frame_len;
            return Err(Error::invalid(format!(
                "a frame of {len} bytes is not from {MIN_FRAME_LEN} to {MAX_FRAME_LEN}"
            )));
        }
        self.validate_frames()?;
        self.validate_mode()?;
        self.validate_most_outstanding()
    }

    fn validate_frames(&self) -> Result<(), Error> {
        const IPV6_FRAME_LEN: usize = 62;
        if !(1..=MAX_FRAMES).contains(&self.frames.len()) {
            let count = self.frames.len();
            return Err(Error::invalid(format!(
                "{count} kinds of frame are not from 1 to {MAX_FRAMES}"
            )));
        }
        if self.frames.contains(&FrameKind::Ipv6) && self.frame_len < IPV6_FRAME_LEN {
            let len = self.frame_len;
            return Err(Error::invalid(format!(
                "a frame of {len} bytes is too short for IPv6 and UDP; give --packet-size at least {IPV6_FRAME_LEN}"
            )));
        }
        if self.addresses == Addresses::Zipf && self.macs == MAX_MACS {
            return Err(Error::invalid(
                "by Zipf's law hosts send repeatedly, so that not each packet-in has a new one; omit --unique-macs",
            ));
        }
        Ok(())
    }

    fn validate_most_outstanding(&self) -> Result<(), Error> {
        let Some(most) = self.most_outstanding else {
            return Ok(());
        };
        if matches!(self.mode, Mode::Rate(_)) {
            return Err(Error::invalid(
                "a fixed rate sends whether or not packet-ins are answered; omit --outstanding",
            ));
        }
        if (most as usize) < self.threads {
            let threads = self.threads;
            return Err(Error::invalid(format!(
                "{threads} threads cannot share {most} outstanding packet-ins; use from 1 to {most}"
            )));
        }
        at_least_one("the packet-ins outstanding together", most)
    }

    fn validate_mode(&self) -> Result<(), Error> {
        match self.mode {
            Mode::Window(window) => {
                at_least_one("the window", window)?;
                at_most("the window", window, MAX_OUTSTANDING)
            }
            Mode::Rate(rate) if !(rate.is_finite() && (0.001..=1e8).contains(&rate)) => {
                Err(Error::invalid(format!(
                    "a rate of {rate} per second is not from 0.001 to 100,000,000"
                )))
            }
            _ => Ok(()),
        }
    }
}

fn at_least_one(what: &str, value: u32) -> Result<(), Error> {
    if value == 0 {
        Err(Error::invalid(format!("{what} must be at least 1")))
    } else {
        Ok(())
    }
}

fn at_most(what: &str, value: u32, most: u32) -> Result<(), Error> {
    if value > most {
        Err(Error::invalid(format!(
            "{what} must be at most {most}, not {value}"
        )))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_valid() {
        LoadConfig::default().validate().unwrap();
        assert_eq!(LoadConfig::default().counted_tests(), 1..16);
    }

    #[test]
    fn rejects_contradictory_settings() {
        let refusal = |change: fn(&mut LoadConfig)| {
            let mut config = LoadConfig::default();
            change(&mut config);
            config.validate().unwrap_err().to_string()
        };
        assert!(refusal(|c| c.switches = 0).contains("at least 1"));
        assert!(refusal(|c| c.switches = 100_000).contains("at most 65536"));
        assert!(refusal(|c| c.warmup = 16).contains("leave no tests of 16"));
        assert!(refusal(|c| c.threads = 17).contains("cannot share 16 switches"));
        assert!(refusal(|c| c.mode = Mode::Window(0)).contains("window"));
        assert!(refusal(|c| c.mode = Mode::Rate(f64::NAN)).contains("rate"));
        assert!(refusal(|c| c.most_outstanding = Some(0)).contains("share 0 outstanding"));
        assert!(refusal(|c| c.frames.clear()).contains("0 kinds of frame"));
        assert!(
            refusal(|c| (c.frames, c.frame_len) = (vec![FrameKind::Ipv6], 60)).contains("for IPv6")
        );
        assert!(refusal(|c| (c.addresses, c.macs) = (Addresses::Zipf, MAX_MACS)).contains("Zipf"));
        assert!(refusal(|c| c.frame_len = 20).contains("frame of 20 bytes"));
        assert!(refusal(|c| c.test_length = Duration::ZERO).contains("0 ms"));
        assert!(refusal(|c| c.controller = "ssl:h".parse().unwrap()).contains("--private-key"));
        assert!(
            refusal(|c| c.controller = "ptcp:6653".parse().unwrap())
                .contains("address to listen at")
        );
    }

    #[test]
    fn outstanding_is_bounded_for_thousands_of_switches() {
        assert_eq!(Mode::MaxRate.max_outstanding(16), MAX_OUTSTANDING);
        assert_eq!(Mode::MaxRate.max_outstanding(5000), 256);
        assert_eq!(Mode::PingPong.max_outstanding(5000), 1);
        assert_eq!(Mode::Window(7).max_outstanding(1), 7);
    }
}
