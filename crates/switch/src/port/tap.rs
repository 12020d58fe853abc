//! A tap device: the machine's own network stack, or a virtual machine, at the other end of the link.
//!
//! **What.** Makes (or takes over, where it is persistent) the tap device of the given name, and switches it on. What the
//! machine sends to the device comes in here; what is sent here the machine receives from the device. Gone when dropped.
//!
//! **Cost.** A system call for each frame each way.
//!
//! **Limits.** No offloads: the kernel completes checksums and cuts segments before we see them, since we ask for neither.

use super::interface::{Interface, request};
use super::{Opening, PortError, PortIo};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::io;
use urtica_wire::MacAddr;

/// The longest frame that any device sends.
const MAX_FRAME_BYTES: usize = 64 << 10;

/// A port on a tap device.
pub struct TapPort {
    device: OwnedFd,
    interface: Interface,
    buffer: Box<[u8]>,
}

impl TapPort {
    /// Makes the device `name` in the process's network namespace.
    ///
    /// # Errors
    /// Where that is not allowed, or something else has the name.
    pub fn open(name: &str) -> Result<Self, PortError> {
        let opening = Opening {
            port: name,
            needs: "CAP_NET_ADMIN",
        };
        if name.is_empty() || name.len() >= libc::IFNAMSIZ {
            return Err(opening.unsuitable("has no name of 1 to 15 bytes; expected one"));
        }
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let device = rustix::fs::open("/dev/net/tun", flags, Mode::empty())
            .map_err(opening.failed("open /dev/net/tun"))?;
        attach(&device, name).map_err(|error| match error.raw_os_error() {
            Some(libc::EINVAL) => opening
                .unsuitable("is another kind of interface; expected a tap device or a free name"),
            _ => opening.failed("make a tap device")(error),
        })?;
        let interface = Interface::find(name)?;
        interface
            .bring_up()
            .map_err(opening.failed("switch the tap device on"))?;
        Ok(Self {
            device,
            interface,
            buffer: vec![0; MAX_FRAME_BYTES].into(),
        })
    }
}

impl PortIo for TapPort {
    fn name(&self) -> &str {
        &self.interface.name
    }

    /// Not the device's own, which belongs to the machine at the other end.
    fn hw_addr(&self) -> MacAddr {
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
                // EIO: the device is switched off; it comes back when it is on again.
                Err(Errno::AGAIN | Errno::INTR | Errno::IO) => return Ok(count),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(max)
    }

    fn send(&mut self, frame: &[u8]) -> bool {
        rustix::io::write(&self.device, frame).is_ok()
    }

    /// Frames leave at once.
    fn flush(&mut self) {}

    fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.device.as_fd())
    }
}

/// Ties the descriptor to the tap device `name`, which is made where there is none.
fn attach(device: &OwnedFd, name: &str) -> io::Result<()> {
    let mut request = request(name);
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
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
    fn the_device_goes_with_the_port() {
        in_namespace(|| {
            drop(TapPort::open("t0").unwrap());
            // A process that another test has just begun has the descriptor until it runs its program.
            eventually(|| matches!(Interface::find("t0"), Err(PortError::NoInterface(_))));
        });
    }

    #[test]
    fn refusals_say_what_is_wrong() {
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
}
