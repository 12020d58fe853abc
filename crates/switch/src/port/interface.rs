//! A network interface of the machine, as the kernel describes it.
//!
//! This uses ioctl, since `/sys/class/net` shows the interfaces of the network namespace in which it was mounted, not of the
//! process's namespace.

use super::{Opening, PortError};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice, socket_with};
use std::io;
use urtica_wire::MacAddr;

/// `ARPHRD_ETHER`: interfaces that carry Ethernet frames.
const ETHERNET: u16 = 1;

/// `ETHTOOL_GSET`: speed and duplex.
const GET_SETTINGS: u32 = 1;

/// `ETHTOOL_GCHANNELS`: the number of queues.
const GET_CHANNELS: u32 = 0x3c;

/// `struct ethtool_cmd`, up to the last field that is read.
#[repr(C)]
#[derive(Default)]
struct Settings {
    command: u32,
    supported: u32,
    advertising: u32,
    speed_low: u16,
    duplex_port_address_transceiver: [u8; 4],
    autoneg_mdio: [u8; 2],
    max_packets: [u32; 2],
    speed_high: u16,
    rest: [u8; 2],
    more: [u32; 3],
}

/// `struct ethtool_channels`.
#[repr(C)]
#[derive(Default)]
struct Channels {
    command: u32,
    max: [u32; 4],
    rx: u32,
    tx: u32,
    other: u32,
    combined: u32,
}

/// An interface that existed when it was searched for.
pub(super) struct Interface {
    /// Socket for ioctl requests; any kind works.
    socket: OwnedFd,
    pub name: String,
    pub index: u32,
    pub hw_addr: MacAddr,
}

impl Interface {
    /// Finds an Ethernet interface in the process's network namespace.
    pub fn find(name: &str) -> Result<Self, PortError> {
        let opening = Opening {
            port: name,
            needs: "no capability",
        };
        let socket = socket_with(
            AddressFamily::INET,
            SocketType::DGRAM,
            SocketFlags::CLOEXEC,
            None,
        )
        .map_err(opening.failed("create a socket to query the kernel"))?;
        let index = netdevice::name_to_index(&socket, name)
            .map_err(|_| PortError::NoInterface(name.to_owned()))?;
        let mut interface = Self {
            socket,
            name: name.to_owned(),
            index,
            hw_addr: MacAddr::ZERO,
        };
        interface.hw_addr = interface
            .read_hw_addr()
            .map_err(opening.failed("read the Ethernet address"))?
            .ok_or_else(|| opening.unsuitable("is not an Ethernet interface; expected one"))?;
        Ok(interface)
    }

    /// Returns `true` if this interface was deleted, and another one has its name. A renamed interface still exists.
    pub fn is_replaced(&self) -> bool {
        let is_gone = netdevice::index_to_name(&self.socket, self.index).is_err();
        is_gone && netdevice::name_to_index(&self.socket, &self.name).is_ok()
    }

    /// Returns whether the interface is switched on and has a carrier.
    pub fn is_up(&self) -> bool {
        let wanted = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        // SAFETY: SIOCGIFFLAGS fills in `ifru_flags`.
        self.query(libc::SIOCGIFFLAGS)
            .is_ok_and(|answer| unsafe { answer.ifr_ifru.ifru_flags } & wanted == wanted)
    }

    /// Switches the interface on.
    pub fn bring_up(&self) -> io::Result<()> {
        let mut request = self.query(libc::SIOCGIFFLAGS)?;
        // SAFETY: SIOCGIFFLAGS has filled in `ifru_flags`.
        let flags = unsafe { request.ifr_ifru.ifru_flags };
        request.ifr_ifru.ifru_flags = flags | libc::IFF_UP as libc::c_short;
        self.send(libc::SIOCSIFFLAGS, request).map(drop)
    }

    /// Returns the MTU in bytes; a frame has its Ethernet header and VLAN tags in addition.
    pub fn mtu(&self) -> io::Result<usize> {
        let answer = self.query(libc::SIOCGIFMTU)?;
        // SAFETY: SIOCGIFMTU fills in `ifru_mtu`.
        Ok(unsafe { answer.ifr_ifru.ifru_mtu }.max(0) as usize)
    }

    /// Returns the rate in kb/s; 0 if it is unknown.
    pub fn speed_kbps(&self) -> u32 {
        let mut settings = Settings {
            command: GET_SETTINGS,
            ..Settings::default()
        };
        if self.ethtool(&mut settings).is_err() {
            return 0;
        }
        match u32::from(settings.speed_high) << 16 | u32::from(settings.speed_low) {
            u32::MAX => 0,
            speed_mbps => speed_mbps.saturating_mul(1000),
        }
    }

    /// Returns the number of receive queues; `None` if the driver does not report it.
    pub fn rx_queues(&self) -> Option<u32> {
        let mut channels = Channels {
            command: GET_CHANNELS,
            ..Channels::default()
        };
        self.ethtool(&mut channels).ok()?;
        Some(channels.rx + channels.combined)
    }

    fn read_hw_addr(&self) -> io::Result<Option<MacAddr>> {
        let answer = self.query(libc::SIOCGIFHWADDR)?;
        // SAFETY: SIOCGIFHWADDR fills in `ifru_hwaddr`.
        let address = unsafe { answer.ifr_ifru.ifru_hwaddr };
        if address.sa_family != ETHERNET {
            return Ok(None);
        }
        let [a, b, c, d, e, f, ..] = address.sa_data.map(|octet| octet as u8);
        Ok(Some(MacAddr::new([a, b, c, d, e, f])))
    }

    /// Sends an ethtool command. `T` is the structure of the command in its first field.
    fn ethtool<T>(&self, about: &mut T) -> io::Result<()> {
        let mut request = self.request()?;
        request.ifr_ifru.ifru_data = std::ptr::from_mut(about).cast();
        self.send(libc::SIOCETHTOOL, request).map(drop)
    }

    /// Creates a request with the interface's current name. Its number does not change when it is renamed.
    fn request(&self) -> io::Result<libc::ifreq> {
        let name = netdevice::index_to_name(&self.socket, self.index)?;
        Ok(request(&name))
    }

    fn query(&self, what: libc::Ioctl) -> io::Result<libc::ifreq> {
        self.send(what, self.request()?)
    }

    fn send(&self, what: libc::Ioctl, mut request: libc::ifreq) -> io::Result<libc::ifreq> {
        // SAFETY: all requests used here read an `ifreq` and write at most that, and, for SIOCETHTOOL, the structure to which
        // its `ifru_data` points, whose length is that of the command in it.
        match unsafe { libc::ioctl(self.socket.as_raw_fd(), what, &mut request) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(request),
        }
    }
}

/// Creates a request about the interface `name`, truncated to the length of such names.
pub(super) fn request(name: &str) -> libc::ifreq {
    // SAFETY: an `ifreq` of zeros is valid: a name and a union of plain numbers.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let room = libc::IFNAMSIZ - 1;
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes().take(room)) {
        *to = from as libc::c_char;
    }
    request
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::testing::{eventually, in_namespace, ip, veth};

    #[test]
    fn missing_interfaces_are_named() {
        let error = Interface::find("nosuch0").err().unwrap().to_string();
        assert_eq!(
            error,
            "there is no network interface 'nosuch0'; `ip link` lists them"
        );
    }

    #[test]
    fn loopback_is_no_ethernet() {
        let found = Interface::find("lo");
        // Linux has a separate type for the loopback.
        assert!(matches!(found, Err(PortError::Unsuitable { .. })));
    }

    #[test]
    fn an_interface_is_described() {
        in_namespace(|| {
            veth("v0", "v1");
            ip("link set v0 address 02:00:00:00:00:01 mtu 1400");
            let interface = Interface::find("v0").unwrap();
            assert_eq!(interface.hw_addr, MacAddr::new([2, 0, 0, 0, 0, 1]));
            assert_eq!(interface.mtu().unwrap(), 1400);
            assert_eq!(interface.speed_kbps(), 10_000_000);
            assert_eq!(interface.rx_queues(), Some(1));
            eventually(|| interface.is_up());
            ip("link set v1 down");
            eventually(|| !interface.is_up());
        });
    }

    #[test]
    fn an_interface_is_followed_when_it_is_renamed() {
        in_namespace(|| {
            veth("v0", "v1");
            let interface = Interface::find("v0").unwrap();
            eventually(|| interface.is_up());
            ip("link set v0 down");
            ip("link set v0 name w0");
            ip("link set w0 up");
            eventually(|| interface.is_up());
            assert_eq!(interface.speed_kbps(), 10_000_000);
            veth("v0", "v2");
            ip("link set v2 down");
            assert!(
                interface.is_up() && !interface.is_replaced(),
                "it has another name"
            );
            ip("link delete w0");
            assert!(interface.is_replaced() && !interface.is_up());
        });
    }
}
