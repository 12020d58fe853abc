//! The programs and maps of `bpf/`, by way of libbpf.

use crate::maps::Maps;
use crate::session::SESSION_BYTES;
use crate::waker::ring_bytes;
use libbpf_rs::libbpf_sys::{BPF_F_MMAPABLE, bpf_map_create_opts};
use libbpf_rs::{MapCore, MapHandle, MapType, Object, ObjectBuilder, PrintLevel};
use std::hash::{DefaultHasher, Hasher};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// The programs, as clang has compiled them.
const PROGRAMS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/programs.o"));

/// The programs, loaded.
pub(crate) struct Loaded {
    /// Keeps the programs in the kernel, unless another process has attached them.
    _object: Option<Object>,
}

/// Tells one build of the programs from another.
pub(crate) fn code() -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(PROGRAMS);
    hasher.finish()
}

// SAFETY: what is in here are file descriptors and memory of libbpf's, which is used under the mutex alone, and bound to no
// thread.
unsafe impl Send for Loaded {}

impl Loaded {
    /// What an earlier process has loaded, and its maps keep in the kernel, where that is this code.
    pub fn earlier(earlier_code: u64) -> Option<Self> {
        (earlier_code == code()).then_some(Self { _object: None })
    }

    /// Loads the programs and attaches them to their maps: to these of an earlier process, where there are any.
    pub fn load(maps: Option<Maps>) -> io::Result<(Self, Maps)> {
        Self::try_load(maps).map_err(to_io)
    }

    fn try_load(maps: Option<Maps>) -> libbpf_rs::Result<(Self, Maps)> {
        // What it says of programs that are refused is pages long, and goes to standard error otherwise.
        libbpf_rs::set_print(Some((PrintLevel::Debug, |_, text| {
            tracing::debug!("libbpf: {}", text.trim_end());
        })));
        let mut builder = ObjectBuilder::default();
        let mut object = builder.open_memory(PROGRAMS)?;
        if let Some(maps) = &maps {
            for mut map in object.maps_mut() {
                let mut named = Maps::NAMES.iter().zip(maps.fds());
                if let Some((_, fd)) = named.find(|(name, _)| map.name() == **name) {
                    map.reuse_fd(fd)?;
                }
            }
        }
        let object = object.load()?;
        let map = |name: &str| -> libbpf_rs::Result<OwnedFd> {
            let map = object.maps().find(|map| map.name() == name);
            let map = map.expect("the programs have this map");
            Ok(map.as_fd().try_clone_to_owned()?)
        };
        let fds = Maps::NAMES.into_iter().map(map);
        let maps = Maps::from_fds(fds.collect::<Result<_, _>>()?);
        for (name, map) in [("from_switch", "switches"), ("to_switch", "exits")] {
            let program = object.progs_mut().find(|program| program.name() == name);
            let map = object.maps().find(|found| found.name() == map);
            let map = map.expect("the programs have this map").as_fd().as_raw_fd();
            program
                .expect("the programs have this one")
                .attach_sockmap(map)?;
        }
        let loaded = Self {
            _object: Some(object),
        };
        Ok((loaded, maps.expect("there is one for each name")))
    }

    /// The memory of a new session, and what wakes its program.
    pub fn new_session(&self) -> io::Result<(OwnedFd, OwnedFd)> {
        let waker = Kind {
            entries: ring_bytes() as u32,
            ..WAKER
        };
        let make = |kind: &Kind| -> libbpf_rs::Result<OwnedFd> {
            Ok(new_map(kind)?.as_fd().try_clone_to_owned()?)
        };
        Ok((make(&SESSION).map_err(to_io)?, make(&waker).map_err(to_io)?))
    }
}

/// A map of this kind.
fn new_map(kind: &Kind) -> libbpf_rs::Result<MapHandle> {
    let options = bpf_map_create_opts {
        sz: size_of::<bpf_map_create_opts>() as _,
        map_flags: kind.flags,
        ..Default::default()
    };
    MapHandle::create(
        kind.map_type,
        Some(kind.name),
        kind.key_bytes,
        kind.value_bytes,
        kind.entries,
        &options,
    )
}

/// A kind of map that each session has one of.
struct Kind {
    map_type: MapType,
    name: &'static str,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
    flags: u32,
}

const SESSION: Kind = Kind {
    map_type: MapType::Array,
    name: "session",
    key_bytes: size_of::<u32>() as u32,
    value_bytes: SESSION_BYTES as u32,
    entries: 1,
    flags: BPF_F_MMAPABLE,
};

const WAKER: Kind = Kind {
    map_type: MapType::RingBuf,
    name: "waker",
    key_bytes: 0,
    value_bytes: 0,
    entries: 0, // as many bytes as a page has
    flags: 0,
};

/// An error of libbpf's, with all that it tells.
pub(crate) fn to_io(error: libbpf_rs::Error) -> io::Error {
    let kind = match error.kind() {
        libbpf_rs::ErrorKind::PermissionDenied => io::ErrorKind::PermissionDenied,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, format!("{error:#}"))
}
