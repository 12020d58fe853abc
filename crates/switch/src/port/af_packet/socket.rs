//! System calls for packet sockets.

use super::{BLOCK_BYTES, LARGE_FRAMES_BYTES, RING_BYTES};
use crate::port::interface::Interface;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with, sockopt};
use std::ffi::c_void;
use std::io;
use std::mem::size_of;
use std::ptr::NonNull;

/// Creates a packet socket that receives nothing until it is bound to a protocol.
pub(super) fn packet_socket() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)
}

pub(super) fn configure(socket: &OwnedFd, slot_bytes: usize) -> io::Result<()> {
    set(
        socket,
        libc::PACKET_VERSION,
        &libc::tpacket_versions::TPACKET_V2,
    )?;
    set(socket, libc::PACKET_VNET_HDR, &1)?;
    set(socket, libc::PACKET_COPY_THRESH, &1)?;
    set(socket, libc::PACKET_IGNORE_OUTGOING, &1)?;
    // This may exceed the system's limit if the process is privileged.
    sockopt::set_socket_recv_buffer_size_force(socket, LARGE_FRAMES_BYTES)
        .or_else(|_| sockopt::set_socket_recv_buffer_size(socket, LARGE_FRAMES_BYTES))?;
    let ring = libc::tpacket_req {
        tp_block_size: BLOCK_BYTES as u32,
        tp_block_nr: (RING_BYTES / BLOCK_BYTES) as u32,
        tp_frame_size: slot_bytes as u32,
        tp_frame_nr: (RING_BYTES / slot_bytes) as u32,
    };
    set(socket, libc::PACKET_RX_RING, &ring)
}

/// Sets an option of packet sockets. `T` must be the option's type.
pub(super) fn set<T>(socket: &OwnedFd, option: libc::c_int, value: &T) -> io::Result<()> {
    // SAFETY: the kernel reads `size_of::<T>()` bytes from `value`.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            option,
            std::ptr::from_ref(value).cast::<c_void>(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Returns the kernel's counts since the last query.
pub(super) fn statistics(socket: &OwnedFd) -> io::Result<libc::tpacket_stats> {
    // SAFETY: these are two numbers, which may be zero.
    let mut counts: libc::tpacket_stats = unsafe { std::mem::zeroed() };
    let mut len = size_of::<libc::tpacket_stats>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes, the size of the counters.
    let done = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            (&raw mut counts).cast::<c_void>(),
            &mut len,
        )
    };
    match done {
        0 => Ok(counts),
        _ => Err(io::Error::last_os_error()),
    }
}

pub(super) fn map(socket: &OwnedFd) -> Result<NonNull<u8>, Errno> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: this is a new mapping, at an address of the kernel's choice.
    let memory = unsafe {
        mmap(
            std::ptr::null_mut(),
            RING_BYTES,
            access,
            MapFlags::SHARED,
            socket,
            0,
        )?
    };
    NonNull::new(memory.cast()).ok_or(Errno::NOMEM)
}

pub(super) fn bind(socket: &OwnedFd, index: u32, protocol: u16) -> io::Result<()> {
    // SAFETY: an address of zeros is valid.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = index as libc::c_int;
    let len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the address has the given length.
    match unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), len) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Makes an interface receive all frames while this exists.
pub(in crate::port) struct Promiscuity {
    _socket: OwnedFd,
}

impl Promiscuity {
    pub fn begin(interface: &Interface) -> io::Result<Self> {
        let socket = packet_socket()?;
        let membership = libc::packet_mreq {
            mr_ifindex: interface.index as libc::c_int,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        set(&socket, libc::PACKET_ADD_MEMBERSHIP, &membership)?;
        Ok(Self { _socket: socket })
    }
}
