//! A tap device: the machine's own network stack, or a virtual machine, at the other end of the link.
//!
//! **What.** The port creates the tap device with the given name, or attaches to it if it is persistent, and brings it up. It
//! receives the frames that the machine sends to the device, and the machine receives the frames that the port sends. The
//! device is removed on drop.
//!
//! **Cost.** One system call for each frame, in each direction.
//!
//! **The LOCAL port.** [`TapPort::create_local`] always creates the device, and reports the device's own Ethernet address:
//! controllers receive the address by which they reach the machine, as Open vSwitch reports its bridge's.
//!
//! **Limits.** There is no offload: the kernel completes checksums and splits segments before the port receives them, since
//! it requests neither.

use super::interface::{Interface, request};
use super::{Opening, PortError, PortIo};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::io;
use urtica_wire::MacAddr;

/// Maximum length of a frame that any device sends.
const MAX_FRAME_BYTES: usize = 64 << 10;

/// Refuses the name of an existing interface (`linux/if_tun.h`).
const IFF_TUN_EXCL: libc::c_int = 0x8000;

/// A port on a tap device.
pub struct TapPort {
    device: OwnedFd,
    interface: Interface,
    /// Whether it is the switch's LOCAL port.
    is_local: bool,
    buffer: Box<[u8]>,
}

impl TapPort {
    /// Opens the device `name` in the process's network namespace; creates it if it does not exist.
    ///
    /// If that is not permitted, or the name belongs to another kind of interface.
    /// If that is not allowed, or the name belongs to something else.
    pub fn open(name: &str) -> Result<Self, PortError> {
        let opening = opening(name);
        let refused = |error: io::Error| match error.raw_os_error() {
            Some(libc::EINVAL) => opening
                .unsuitable("is another kind of interface; expected a tap device or a free name"),
            _ => opening.failed("create a tap device")(error),
        };
        Self::attached(name, 0, false, refused)
    }

    /// Creates the device `name` in the process's network namespace, for the switch's LOCAL port.
    ///
    /// # Errors
    /// If that is not permitted, the name is in use, or it is not valid for an interface.
    pub fn create_local(name: &str) -> Result<Self, PortError> {
        let opening = opening(name);
        // The kernel would replace '%d' with a number.
        if name.contains('%') {
            return Err(opening.unsuitable("has a '%' in its name; expected a name without one"));
        }
        let refused = |error: io::Error| match error.raw_os_error() {
            Some(libc::EBUSY) => opening
                .unsuitable("has the name of another interface; expected a free name for LOCAL"),
            Some(libc::EINVAL) => {
                opening.unsuitable("has a name that no interface can have; expected one like br0")
            }
            _ => opening.failed("create a tap device")(error),
        };
        Self::attached(name, IFF_TUN_EXCL, true, refused)
    }

    fn attached(
        name: &str,
        flags: libc::c_int,
        is_local: bool,
        refused: impl FnOnce(io::Error) -> PortError,
    ) -> Result<Self, PortError> {
        let opening = opening(name);
        if name.is_empty() || name.len() >= libc::IFNAMSIZ {
            return Err(opening.unsuitable("has no name of 1 to 15 bytes; expected one"));
        }
        let open_flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let device = rustix::fs::open("/dev/net/tun", open_flags, Mode::empty())
            .map_err(opening.failed("open /dev/net/tun"))?;
        attach(&device, name, flags).map_err(refused)?;
        let interface = Interface::find(name)?;
        interface
            .bring_up()
            .map_err(opening.failed("set the tap device up"))?;
        Ok(Self {
            device,
            interface,
            is_local,
            buffer: vec![0; MAX_FRAME_BYTES].into(),
        })
    }
}

fn opening(name: &str) -> Opening<'_> {
    Opening {
        port: name,
        needs: "CAP_NET_ADMIN",
    }
}

impl PortIo for TapPort {
    fn name(&self) -> &str {
        &self.interface.name
    }

    /// Returns an address other than the device's, which belongs to the machine at the other end; for the LOCAL port, the
    /// device's.
    fn hw_addr(&self) -> MacAddr {
        if self.is_local {
            return self.interface.hw_addr;
        }
        let mut octets = self.interface.hw_addr.octets();
        octets[5] ^= 1;
        MacAddr::new(octets)
    }

    fn is_up(&self) -> bool {
        self.interface.is_up()
    }

    fn link_index(&self) -> Option<u32> {
        Some(self.interface.index)
    }

    fn speed_kbps(&self) -> u32 {
        self.interface.speed_kbps()
    }

    fn receive(&mut self, max: usize, handle: &mut dyn FnMut(&[u8])) -> io::Result<usize> {
        for count in 0..max {
            match rustix::io::read(&self.device, &mut self.buffer[..]) {
                Ok(len) => handle(&self.buffer[..len]),
                // EIO: the device is down. It works again when it is up.
                Err(Errno::AGAIN | Errno::INTR | Errno::IO) => return Ok(count),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(max)
    }

    fn send(&mut self, frame: &[u8]) -> bool {
        rustix::io::write(&self.device, frame).is_ok()
    }

    /// Does nothing, since frames are sent immediately.
    fn flush(&mut self) {}

    fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.device.as_fd())
    }
}

/// Attaches the descriptor to the tap device `name`, which is created if it does not exist.
fn attach(device: &OwnedFd, name: &str, flags: libc::c_int) -> io::Result<()> {
    let mut request = request(name);
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI | flags) as libc::c_short;
    // SAFETY: TUNSETIFF reads and writes one `ifreq`.
    match unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETIFF, &mut request) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::af_packet::AfPacketPort;
    use crate::port::testing::{eventually, frame, in_namespace, ip, receive, veth};

    #[test]
    fn frames_pass_between_the_tap_and_the_machine() {
        in_namespace(|| {
            let mut tap = TapPort::open("t0").unwrap();
            ip("link set t0 addrgenmode none");
            eventually(|| tap.is_up());
            let mut machine = AfPacketPort::open("t0").unwrap();
            assert!(machine.hw_addr() != tap.hw_addr());
            assert!(machine.send(&frame(80, 1)));
            machine.flush();
            assert!(receive(&mut tap, 1).contains(&frame(80, 1)));
            assert!(tap.send(&frame(90, 2)));
            assert!(receive(&mut machine, 1).contains(&frame(90, 2)));
            ip("link set t0 down");
            eventually(|| !tap.is_up());
            assert!(tap.receive(8, &mut |_| {}).is_ok(), "it may come back");
        });
    }

    #[test]
    fn the_device_is_removed_with_the_port() {
        in_namespace(|| {
            drop(TapPort::open("t0").unwrap());
            // A process that another test has just started has the descriptor until it executes its program.
            eventually(|| matches!(Interface::find("t0"), Err(PortError::NoInterface(_))));
        });
    }

    #[test]
    fn errors_name_the_problem() {
        in_namespace(|| {
            veth("v0", "v1");
            let refuse = |name| TapPort::open(name).err().unwrap().to_string();
            assert!(
                refuse("v0").contains("another kind of interface"),
                "{}",
                refuse("v0")
            );
            assert!(refuse("sixteen-bytes-it").contains("1 to 15 bytes"));
            let _tap = TapPort::open("t0").unwrap();
            assert!(refuse("t0").contains("in use"), "{}", refuse("t0"));
        });
    }

    #[test]
    fn the_local_port_is_a_new_device_with_its_address() {
        in_namespace(|| {
            let local = TapPort::create_local("br0").unwrap();
            let device = Interface::find("br0").unwrap();
            assert_eq!(local.hw_addr(), device.hw_addr);
            eventually(|| local.is_up());
            drop((local, device));
            eventually(|| matches!(Interface::find("br0"), Err(PortError::NoInterface(_))));
        });
    }

    #[test]
    fn errors_of_a_local_port_name_the_problem() {
        in_namespace(|| {
            veth("v0", "v1");
            ip("tuntap add dev t0 mode tap");
            for (name, problem) in [
                ("v0", "expected a free name"),
                ("t0", "expected a free name"),
                ("sixteen-bytes-it", "1 to 15 bytes"),
                ("", "1 to 15 bytes"),
                ("br%d", "without one"),
                ("a/b", "expected one like br0"),
            ] {
                let sentence = TapPort::create_local(name).err().unwrap().to_string();
                assert!(sentence.contains(problem), "{name}: {sentence}");
            }
        });
    }
}
