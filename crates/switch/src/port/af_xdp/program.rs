//! The XDP program that passes an interface's frames to sockets, one for each queue. It has few instructions, so it is
//! assembled here instead of by a compiler.
//!
//! ```c
//! return bpf_redirect_map(&sockets, context->rx_queue_index, XDP_PASS);
//! ```

use rustix::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::io;
use std::mem::size_of;

// Commands and types of bpf(2), from linux/bpf.h.
const MAP_CREATE: libc::c_long = 0;
const MAP_UPDATE_ELEM: libc::c_long = 2;
const PROG_LOAD: libc::c_long = 5;
const LINK_CREATE: libc::c_long = 28;
const MAP_TYPE_XSKMAP: u32 = 17;
const PROG_TYPE_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;

/// Attach in the driver (`XDP_FLAGS_DRV_MODE`), or right after it (`XDP_FLAGS_SKB_MODE`).
const NATIVE: u32 = 1 << 2;
const GENERIC: u32 = 1 << 1;

/// The program accepts frames of several parts (`BPF_F_XDP_HAS_FRAGS`), since Linux 5.18.
const HAS_FRAGS: u32 = 1 << 5;

/// The result for frames of queues without a socket: the kernel handles them as without a program.
const XDP_PASS: i32 = 2;
const REDIRECT_MAP: i32 = 51;

/// The arguments of bpf(2) for each command, up to the last field used.
#[repr(C)]
struct MapCreate {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
}

#[repr(C)]
struct MapUpdate {
    map_fd: u64,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
struct ProgLoad {
    prog_type: u32,
    insn_count: u32,
    insns: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log_buf: u64,
    kern_version: u32,
    prog_flags: u32,
}

#[repr(C)]
struct LinkCreate {
    prog_fd: u32,
    target_ifindex: u32,
    attach_type: u32,
    flags: u32,
}

/// The program attached to an interface, which is detached on drop.
pub(super) struct Redirect {
    _link: OwnedFd,
}

impl Redirect {
    /// Passes all frames of the interface's queues to these sockets, in order; in the driver if possible. `takes_parts` tells
    /// whether the sockets accept frames of several parts.
    pub fn attach<'a>(
        index: u32,
        queues: impl ExactSizeIterator<Item = BorrowedFd<'a>>,
        takes_parts: bool,
    ) -> io::Result<Self> {
        let sockets = create_map(queues.len() as u32)?;
        for (queue, socket) in (0..).zip(queues) {
            put(&sockets, queue, socket)?;
        }
        let program = load(&sockets, if takes_parts { HAS_FRAGS } else { 0 })?;
        let link = link(&program, index, NATIVE).or_else(|error| match error.raw_os_error() {
            // Another program is attached, which would also conflict with this one after the driver.
            Some(libc::EBUSY) => Err(error),
            _ => {
                tracing::info!(interface = index, %error, "the driver has no XDP; running it after the driver");
                link(&program, index, GENERIC)
            }
        })?;
        Ok(Self { _link: link })
    }
}

/// Creates a map from queues to sockets.
fn create_map(queues: u32) -> io::Result<OwnedFd> {
    let arguments = MapCreate {
        map_type: MAP_TYPE_XSKMAP,
        key_size: 4,
        value_size: 4,
        max_entries: queues,
    };
    bpf_fd(MAP_CREATE, &arguments)
}

fn put(sockets: &OwnedFd, queue: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
    let socket = socket.as_raw_fd();
    let arguments = MapUpdate {
        map_fd: sockets.as_raw_fd() as u64,
        key: &raw const queue as u64,
        value: &raw const socket as u64,
        flags: 0,
    };
    bpf(MAP_UPDATE_ELEM, &arguments).map(drop)
}

fn load(sockets: &OwnedFd, prog_flags: u32) -> io::Result<OwnedFd> {
    let instructions = [
        // r2 = context->rx_queue_index
        instruction(0x61, 2, 1, 16, 0),
        // r1 = &sockets, in two slots
        instruction(0x18, 1, 1, 0, sockets.as_raw_fd()),
        instruction(0, 0, 0, 0, 0),
        // r3 = XDP_PASS
        instruction(0xb7, 3, 0, 0, XDP_PASS),
        // return bpf_redirect_map(r1, r2, r3)
        instruction(0x85, 0, 0, 0, REDIRECT_MAP),
        instruction(0x95, 0, 0, 0, 0),
    ];
    let arguments = ProgLoad {
        prog_type: PROG_TYPE_XDP,
        insn_count: instructions.len() as u32,
        insns: instructions.as_ptr() as u64,
        // The kernel requires a GPL-compatible licence only for some helpers, not for this one.
        license: c"Apache-2.0 OR MIT".as_ptr() as u64,
        log_level: 0,
        log_size: 0,
        log_buf: 0,
        kern_version: 0,
        prog_flags,
    };
    bpf_fd(PROG_LOAD, &arguments)
}

/// Encodes a `struct bpf_insn`. Its registers share a byte, with the destination in the first four bits in the machine's bit
/// order.
fn instruction(code: u8, destination: u8, source: u8, offset: i16, immediate: i32) -> [u8; 8] {
    let registers = match cfg!(target_endian = "little") {
        true => source << 4 | destination,
        false => destination << 4 | source,
    };
    let ([a, b], [c, d, e, f]) = (offset.to_ne_bytes(), immediate.to_ne_bytes());
    [code, registers, a, b, c, d, e, f]
}

fn link(program: &OwnedFd, index: u32, flags: u32) -> io::Result<OwnedFd> {
    let arguments = LinkCreate {
        prog_fd: program.as_raw_fd() as u32,
        target_ifindex: index,
        attach_type: ATTACH_XDP,
        flags,
    };
    bpf_fd(LINK_CREATE, &arguments)
}

fn bpf_fd<T>(command: libc::c_long, arguments: &T) -> io::Result<OwnedFd> {
    let fd = bpf(command, arguments)?;
    // SAFETY: the command creates a descriptor, which has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as libc::c_int) })
}

/// Calls bpf(2). `T` is the command's structure; pointers in it must be valid.
fn bpf<T>(command: libc::c_long, arguments: &T) -> io::Result<libc::c_long> {
    // SAFETY: the kernel reads `size_of::<T>()` bytes, and the memory to which they point.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            std::ptr::from_ref(arguments),
            size_of::<T>(),
        )
    };
    match result {
        -1 => Err(io::Error::last_os_error()),
        result => Ok(result),
    }
}
