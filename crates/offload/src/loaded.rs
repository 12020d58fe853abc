//! The programs and maps of `bpf/`, loaded by libbpf.

use crate::application::Application;
use crate::maps::{Earlier, Maps};
use crate::pool::Maker;
use crate::session::session_bytes;
use crate::waker::ring_bytes;
use libbpf_rs::libbpf_sys::{BPF_F_MMAPABLE, bpf_map_create_opts};
use libbpf_rs::{MapCore, MapHandle, MapType, Object, ObjectBuilder, OpenObject, PrintLevel};
use std::hash::{DefaultHasher, Hasher};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// Returns an application's programs, as compiled by clang.
fn object_of(application: Application) -> &'static [u8] {
    match application {
        Application::LearningSwitch => {
            include_bytes!(concat!(env!("OUT_DIR"), "/learning_switch.o"))
        }
        Application::L3 => include_bytes!(concat!(env!("OUT_DIR"), "/l3.o")),
        Application::Services { .. } => include_bytes!(concat!(env!("OUT_DIR"), "/services.o")),
    }
}

/// The programs, loaded.
pub(crate) struct Loaded {
    /// Keeps the programs in the kernel, and has the application's tables. If another process has attached the programs, it has
    /// only the tables, or is `None` without tables.
    object: Option<Object>,
    application: Application,
}

/// Identifies a build of an application's programs.
pub(crate) fn code(application: Application) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(object_of(application));
    hasher.finish()
}

// SAFETY: this contains file descriptors and memory of libbpf, which are used only under the mutex, and not bound to a thread.
unsafe impl Send for Loaded {}

impl Loaded {
    /// Uses the programs that an earlier process has loaded for the application, and that its maps keep in the kernel. They
    /// must be identical to this code.
    pub fn earlier(application: Application, earlier: &Earlier) -> io::Result<Self> {
        let tables = || {
            let mut object = open(application, Some(earlier))?;
            for mut program in object.progs_mut() {
                program.set_autoload(false);
            }
            object.load()
        };
        let has_tables = !application.tables().is_empty();
        Ok(Self {
            object: has_tables.then(tables).transpose().map_err(to_io)?,
            application,
        })
    }

    /// Loads an application's programs and attaches them to their maps, which may be those of an earlier process.
    pub fn load(application: Application, earlier: Option<Earlier>) -> io::Result<(Self, Maps)> {
        Self::try_load(application, earlier.as_ref()).map_err(to_io)
    }

    fn try_load(
        application: Application,
        earlier: Option<&Earlier>,
    ) -> libbpf_rs::Result<(Self, Maps)> {
        let object = open(application, earlier)?.load()?;
        let fds = Maps::NAMES
            .into_iter()
            .map(|name| Ok(find_map(&object, name)?.as_fd().try_clone_to_owned()?));
        let maps = Maps::from_fds(fds.collect::<libbpf_rs::Result<_>>()?);
        for (name, map) in [("from_switch", "switches"), ("to_switch", "exits")] {
            let map = find_map(&object, map)?;
            let program = object.progs_mut().find(|program| program.name() == name);
            program
                .expect("the programs have this one")
                .attach_sockmap(map.as_fd().as_raw_fd())?;
        }
        let loaded = Self {
            object: Some(object),
            application,
        };
        Ok((loaded, maps.expect("there is one for each name")))
    }

    /// Returns the descriptors of the application's tables, in the order of their names.
    pub fn tables(&self) -> io::Result<Vec<OwnedFd>> {
        let names = self.application.tables().iter();
        names
            .map(|name| self.table(name)?.as_fd().try_clone_to_owned())
            .collect()
    }

    /// Returns a table of the application.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`] if the application has no tables, and another process has loaded the programs.
    pub fn table(&self, name: &str) -> io::Result<MapHandle> {
        let object = self.object.as_ref().ok_or(io::ErrorKind::Unsupported)?;
        find_map(object, name).map_err(to_io)
    }

    /// Returns the size of the application's part of a session.
    pub fn application_bytes(&self) -> usize {
        self.application.bytes()
    }

    /// Returns the constructor of sessions for these programs.
    pub fn maker(&self) -> Maker {
        let bytes = session_bytes(self.application_bytes());
        let make = move || {
            let waker = Kind {
                entries: ring_bytes() as u32,
                ..WAKER
            };
            Ok((new_session(bytes)?, Some(new_fd(&waker)?)))
        };
        Maker {
            make: Box::new(make),
            bytes,
        }
    }
}

/// Creates the map of a session of this size.
pub(crate) fn new_session(bytes: usize) -> io::Result<OwnedFd> {
    new_fd(&Kind {
        value_bytes: bytes as u32,
        ..SESSION
    })
}

fn new_fd(kind: &Kind) -> io::Result<OwnedFd> {
    let map = new_map(kind).map_err(to_io)?;
    map.as_fd().try_clone_to_owned()
}

/// Opens an application's programs, which will use the maps and tables of an earlier process, if any.
fn open(application: Application, earlier: Option<&Earlier>) -> libbpf_rs::Result<OpenObject> {
    // libbpf's messages about rejected programs are pages long, and would be printed to standard error otherwise.
    libbpf_rs::set_print(Some((PrintLevel::Debug, |_, text| {
        tracing::debug!("libbpf: {}", text.trim_end());
    })));
    let mut builder = ObjectBuilder::default();
    let mut object = builder.open_memory(object_of(application))?;
    if let Application::Services { hosts } = application {
        size_tables(&mut object, hosts)?;
    }
    if let Some(earlier) = earlier {
        reuse(&mut object, application, earlier)?;
    }
    Ok(object)
}

/// Makes the programs use these maps and tables instead of creating new ones.
fn reuse(
    object: &mut OpenObject,
    application: Application,
    earlier: &Earlier,
) -> libbpf_rs::Result<()> {
    let names = Maps::NAMES.iter().chain(application.tables());
    let tables = earlier.tables.iter().map(AsFd::as_fd);
    let fds: Vec<_> = earlier.maps.fds().into_iter().chain(tables).collect();
    for mut map in object.maps_mut() {
        let mut named = names.clone().zip(&fds);
        if let Some((_, fd)) = named.find(|(name, _)| map.name() == **name) {
            map.reuse_fd(*fd)?;
        }
    }
    Ok(())
}

/// Sizes the services' tables for this number of hosts, each with two addresses.
fn size_tables(object: &mut OpenObject, hosts: u32) -> libbpf_rs::Result<()> {
    for mut map in object.maps_mut() {
        match map.name().to_str() {
            Some("hosts" | "heard") => map.set_max_entries(hosts)?,
            Some("addresses") => map.set_max_entries(hosts.saturating_mul(2))?,
            _ => {}
        }
    }
    Ok(())
}

/// Returns the map with this name.
fn find_map(object: &Object, name: &str) -> libbpf_rs::Result<MapHandle> {
    let map = object.maps().find(|map| map.name() == name);
    MapHandle::try_from(&map.expect("the programs have this map"))
}

/// Creates a map of this kind.
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

/// A kind of map, of which each session has one.
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
    value_bytes: 0, // the size of the application's sessions
    entries: 1,
    flags: BPF_F_MMAPABLE,
};

const WAKER: Kind = Kind {
    map_type: MapType::RingBuf,
    name: "waker",
    key_bytes: 0,
    value_bytes: 0,
    entries: 0, // the size of a page
    flags: 0,
};

/// Converts an error of libbpf, with its whole text.
pub(crate) fn to_io(error: libbpf_rs::Error) -> io::Error {
    let kind = match error.kind() {
        libbpf_rs::ErrorKind::PermissionDenied => io::ErrorKind::PermissionDenied,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, format!("{error:#}"))
}
