//! Port specifications on the command line: `KIND:NAME`.

use super::af_packet::AfPacketPort;
use super::af_xdp::{AfXdpPort, FrameMemory};
use super::pcap::{PcapPort, Replay};
use super::tap::TapPort;
use super::{PortError, PortIo};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// The syntax of a port, for errors.
pub(super) const EXPECTED: &str =
    "INTERFACE, afpacket:INTERFACE, afxdp:INTERFACE, tap:NAME or pcap:[IN][,OUT]";

/// A port that can be opened, by kind and name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PortSpec {
    /// `afpacket:INTERFACE`, or only the interface's name: a network interface through AF_PACKET.
    AfPacket(String),
    /// `afxdp:INTERFACE`: a network interface through AF_XDP.
    AfXdp(String),
    /// `tap:NAME`: a tap device.
    Tap(String),
    /// `pcap:[IN][,OUT]`: replays the frames of one file, and records sent frames in another.
    Pcap {
        /// The file to replay, once.
        input: Option<PathBuf>,
        /// The file to record into.
        output: Option<PathBuf>,
    },
}

impl PortSpec {
    /// Opens the port.
    ///
    /// # Errors
    /// [`PortError`] if it does not exist, is in use, is unsuitable, or the process lacks the permission.
    pub fn open(&self) -> Result<Box<dyn PortIo>, PortError> {
        self.open_sharing(&mut FrameMemory::for_ports(1))
    }

    /// Like [`PortSpec::open`], for a port that forwards to others which share this memory.
    ///
    /// A network interface that AF_XDP cannot use is opened with AF_PACKET instead, with a warning.
    ///
    /// # Errors
    /// As [`PortSpec::open`].
    pub fn open_sharing(&self, memory: &mut FrameMemory) -> Result<Box<dyn PortIo>, PortError> {
        Ok(match self {
            Self::AfPacket(interface) => Box::new(AfPacketPort::open(interface)?),
            Self::AfXdp(interface) => {
                or_af_packet(interface, AfXdpPort::open_sharing(interface, memory))?
            }
            Self::Tap(name) => Box::new(TapPort::open(name)?),
            Self::Pcap { input, output } => Box::new(PcapPort::open(
                input.as_deref(),
                output.as_deref(),
                Replay::Once,
            )?),
        })
    }
}

/// Returns the AF_XDP port. If AF_XDP was refused for a reason other than permissions and other programs, returns an
/// AF_PACKET port.
fn or_af_packet(
    interface: &str,
    opened: Result<AfXdpPort, PortError>,
) -> Result<Box<dyn PortIo>, PortError> {
    match opened {
        Ok(port) => Ok(Box::new(port)),
        Err(reason @ (PortError::Unsuitable { .. } | PortError::Io { .. })) => {
            tracing::warn!(interface, %reason, "cannot use AF_XDP; using AF_PACKET, which is slower");
            Ok(Box::new(AfPacketPort::open(interface)?))
        }
        Err(error) => Err(error),
    }
}

impl FromStr for PortSpec {
    type Err = PortError;

    fn from_str(text: &str) -> Result<Self, PortError> {
        let wrong = |problem| PortError::Syntax {
            text: text.to_owned(),
            problem,
        };
        let (kind, name) = text.split_once(':').unwrap_or(("afpacket", text));
        if name.is_empty() || name == "," {
            return Err(wrong("has no name"));
        }
        match kind {
            "afpacket" => Ok(Self::AfPacket(name.to_owned())),
            "afxdp" => Ok(Self::AfXdp(name.to_owned())),
            "tap" => Ok(Self::Tap(name.to_owned())),
            "pcap" => {
                let (input, output) = name.split_once(',').unwrap_or((name, ""));
                let file = |name: &str| (!name.is_empty()).then(|| PathBuf::from(name));
                Ok(Self::Pcap {
                    input: file(input),
                    output: file(output),
                })
            }
            _ => Err(wrong("has an unknown kind")),
        }
    }
}

impl fmt::Display for PortSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AfPacket(interface) => write!(f, "afpacket:{interface}"),
            Self::AfXdp(interface) => write!(f, "afxdp:{interface}"),
            Self::Tap(name) => write!(f, "tap:{name}"),
            Self::Pcap { input, output } => {
                let text = |path: &Option<PathBuf>| {
                    path.as_ref()
                        .map_or(String::new(), |path| path.display().to_string())
                };
                match output {
                    None => write!(f, "pcap:{}", text(input)),
                    Some(_) => write!(f, "pcap:{},{}", text(input), text(output)),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::testing::{frame, in_namespace, receive, veth};

    #[test]
    fn ports_are_read_and_printed() {
        for text in [
            "afpacket:eth0",
            "afxdp:eth0",
            "tap:t0",
            "pcap:a.pcap",
            "pcap:a,b",
            "pcap:,b",
        ] {
            assert_eq!(text.parse::<PortSpec>().unwrap().to_string(), text);
        }
        assert_eq!(
            "eth0".parse::<PortSpec>().unwrap(),
            PortSpec::AfPacket("eth0".into())
        );
    }

    #[test]
    fn an_interface_without_af_xdp_uses_af_packet() {
        in_namespace(|| {
            veth("v0", "v1");
            let refused = |error| PortError::Io {
                port: "v0".to_owned(),
                what: "attach an XDP program",
                error,
            };
            let unsupported = refused(std::io::ErrorKind::Unsupported.into());
            let mut port = or_af_packet("v0", Err(unsupported)).unwrap();
            let mut peer = AfPacketPort::open("v1").unwrap();
            assert!(port.send(&frame(60, 1)));
            port.flush();
            assert_eq!(receive(&mut peer, 1), [frame(60, 1)]);
            let in_use = PortError::InUse {
                port: "v0".to_owned(),
            };
            let error = or_af_packet("v0", Err(in_use)).err().unwrap();
            assert!(matches!(error, PortError::InUse { .. }));
        });
    }

    #[test]
    fn errors_name_what_was_expected() {
        for (text, problem) in [
            ("dpdk:0", "unknown kind"),
            ("tap:", "no name"),
            ("", "no name"),
            ("pcap:,", "no name"),
        ] {
            let sentence = text.parse::<PortSpec>().unwrap_err().to_string();
            assert!(
                sentence.contains(problem) && sentence.contains("afpacket:INTERFACE"),
                "{sentence}"
            );
        }
    }
}
