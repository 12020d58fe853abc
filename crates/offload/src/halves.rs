//! Kernel halves that an earlier program left with a holder, which the next program continues.
//!
//! **What.** A holder keeps the maps that all sessions share, and for each connection its session (a map), its waker, and the
//! two ends of its relay. With these descriptors, everything in the kernel keeps running while no program is attached.
//!
//! **How.** The next program continues with these maps. If its own programs for the kernel differ, it loads them with these
//! maps, so that they run for connections that enter the maps from then on. It reclaims the ownership of each session,
//! determines the last program's progress from the session's counts and the kernel's own ([`Link::resume`]), and hands the
//! connection over again. Maps of another layout are released: a connection leaves them once all passed input has been read and
//! all replies are written.

use crate::application::Application;
use crate::kernel::{Kernel, Unavailable};
use crate::link::Link;
use crate::loaded::code;
use crate::maps::{Earlier, MAX_SESSIONS, Maps};
use crate::mode::Mode;
use crate::router::RouterKernel;
use crate::services::{self, Driven};
use crate::session::Memory;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use urtica_controller::hold::{Attachment, Held, HeldConnection, Id, Link as HolderLink};
use urtica_controller::{HeldHalves, Resumed};

/// The prefix of labels.
const LABEL: &str = "urtica kernel half";

/// The number that stands for no programs, in labels of maps whose programs are still being loaded. As a text, it is the least
/// number.
const UNKNOWN: u64 = 0;

/// Follows the form in labels of an application's tables. The number of the part follows it; the number that identifies the
/// maps ends the label.
const TABLES: &str = "-tables";

/// The number of tables in a part, each of which the holder keeps as an item.
const PART: usize = 8;

/// The kernel halves that an earlier program left with a holder; empty without such a program.
pub struct Halves {
    sets: Vec<Set>,
    mode: Mode,
    /// Whether a release has been logged.
    has_logged: AtomicBool,
}

/// Maps, and the sessions in them.
struct Set {
    /// The maps' id at the holder.
    id: Id,
    /// The application of the maps, and its layout.
    form: String,
    kernel: Kernel,
    /// The maps and tables, until a program continues with them.
    earlier: Option<Earlier>,
    /// The slots of the maps' sessions, in order.
    used: Vec<u32>,
    /// The application that continues with the maps.
    application: Option<Application>,
}

impl Halves {
    /// Finds the kernel halves in the kept descriptors. The holder is requested to forget useless ones.
    pub fn of(held: &mut Held) -> Self {
        let mut sets = Vec::new();
        let mut tables = Parts::of(held);
        for common in std::mem::take(&mut held.commons) {
            let Some((form, code)) = parse(&common.attachment.label) else {
                continue;
            };
            let form = form.to_owned();
            let used = used_slots(&held.connections, common.id);
            let fds = common.attachment.fds;
            let copies: io::Result<Vec<_>> = fds.iter().map(|fd| fd.try_clone()).collect();
            let maps = copies.ok().and_then(Maps::from_fds);
            let earlier = Maps::from_fds(fds).filter(|_| !used.is_empty());
            match earlier.and_then(|maps| Kernel::of_earlier(maps, &used).ok()) {
                Some(kernel) => {
                    let tables = tables.take(common.id);
                    sets.push(Set {
                        id: common.id,
                        form,
                        kernel,
                        earlier: maps.map(|maps| Earlier { maps, tables, code }),
                        used,
                        application: None,
                    });
                }
                None => held.link.forget(common.id),
            }
        }
        tables.forget_rest(&held.link);
        Self {
            sets,
            mode: Mode::default(),
            has_logged: AtomicBool::new(false),
        }
    }

    /// Sets the mode: see [`LearningSwitch::mode`](crate::LearningSwitch::mode).
    pub fn mode(self, mode: Mode) -> Self {
        Self { mode, ..self }
    }

    /// Loads the programs of the learning switch, with the maps of an earlier program if they exist and have this layout, and
    /// makes the holder keep the maps.
    ///
    /// # Errors
    /// Those of [`Kernel::start`]. The maps of the earlier program are then released.
    pub fn start(&mut self, holder: &HolderLink) -> Result<Kernel, Unavailable> {
        self.start_application(Application::LearningSwitch, holder)
    }

    /// Loads the programs of the router, like [`Halves::start`].
    ///
    /// # Errors
    /// Those of [`RouterKernel::start`]. The maps of the earlier program are then released.
    pub fn start_router(&mut self, holder: &HolderLink) -> Result<RouterKernel, Unavailable> {
        let kernel = self.start_application(Application::L3, holder)?;
        Ok(RouterKernel::of(kernel).mode(self.mode))
    }

    /// Loads the programs of the services, like [`Halves::start`]. The hosts in the tables of an earlier program become known to
    /// [`Hosts`](urtica_services::Hosts) when their switches' connections continue; its other tables are emptied.
    ///
    /// # Errors
    /// Those of [`Driven::start`]. The maps of the earlier program are then released.
    pub fn start_driven(&mut self, holder: &HolderLink) -> Result<Driven, Unavailable> {
        let kernel = self.start_application(Driven::APPLICATION, holder)?;
        Driven::of_held(kernel)
    }

    fn start_application(
        &mut self,
        application: Application,
        holder: &HolderLink,
    ) -> Result<Kernel, Unavailable> {
        let form = application.form();
        let tables = application.tables().len();
        let is_whole = |set: &&mut Set| {
            let earlier = set.earlier.as_ref();
            set.form == form && earlier.is_some_and(|earlier| earlier.tables.len() == tables)
        };
        if let Some(set) = self.sets.iter_mut().find(is_whole) {
            if let Some(earlier) = set.earlier.take() {
                let (id, own) = (set.id, code(application));
                let of_session = label(&form, id);
                let is_other = earlier.code != own;
                if is_other {
                    // If this program dies now, the next one cannot know how far the loading has come.
                    rename(holder, id, label(&form, UNKNOWN), &earlier.maps.fds());
                }
                set.kernel = Kernel::start_again(application, earlier, &set.used, of_session)?;
                if is_other {
                    set.kernel
                        .with_maps(|fds| rename(holder, id, label(&form, own), fds));
                }
                set.application = Some(application);
                return Ok(set.kernel.clone());
            }
        }
        let kernel = Kernel::load(application)?;
        let keep = |fds: &[BorrowedFd], tables: &[BorrowedFd]| {
            let id = holder.keep_common(label(&form, code(application)), fds)?;
            for (part, tables) in tables.chunks(PART).enumerate() {
                let form = format!("{form}{TABLES}{part}");
                holder.keep_common(label(&form, id), tables)?;
            }
            Ok(label(&form, id))
        };
        if let Err(error) = kernel.hold(keep) {
            tracing::warn!(%error, "the holder cannot keep the kernel half's tables; the program answers switches alone");
        }
        Ok(kernel)
    }

    /// Returns the number of connections whose tables continue to be used.
    pub fn going_on(&self) -> usize {
        let going_on = self.sets.iter().filter(|set| set.application.is_some());
        going_on.map(|set| set.used.len()).sum()
    }

    /// Logs once that tables are released, and the reason.
    fn log_release(&self, set: &Set) {
        if self.has_logged.swap(true, Relaxed) {
            return;
        }
        match Application::HELD.map(Application::form).contains(&set.form) {
            true => tracing::info!(
                "this program does not use the tables that an earlier one left in the kernel; releasing them, and answering alone"
            ),
            false => tracing::warn!(
                found = set.form,
                "the tables that an earlier program left in the kernel have another version; releasing them and learning hosts again"
            ),
        }
    }
}

impl HeldHalves for Halves {
    fn resume(&self, id: Id, kept: &Attachment, socket: BorrowedFd) -> io::Result<Resumed> {
        let named = parse(&kept.label);
        let set = named.and_then(|(_, maps)| self.sets.iter().find(|set| set.id == maps));
        let set =
            set.ok_or_else(|| io::Error::other("the holder does not have the kernel half's maps"))?;
        let kernel = set.kernel.clone();
        // A program that only releases it can still handle the events of services.
        let services = Some(Driven::APPLICATION).filter(|services| services.form() == set.form);
        let application = set.application.or(services);
        let (link, session) = Link::resume(kernel, kept, socket, application, self.mode)?;
        let mut resumed = match services {
            Some(_) => services::resume(link, &session.memory, socket)?,
            None => link.into_resumed(socket, |link| Box::new(link))?,
        };
        match set.application {
            Some(_) => set.kernel.put_resumed(id, session),
            None => {
                resumed.is_let_go = true;
                self.log_release(set);
            }
        }
        Ok(resumed)
    }
}

/// Returns the label of a session of this form, whose maps have this id at the holder; or of maps whose programs are identified
/// by this number.
fn label(form: &str, number: u64) -> String {
    format!("{LABEL} {form} {number}")
}

/// Reports to the holder which programs are loaded for its maps.
fn rename(holder: &HolderLink, id: Id, label: String, maps: &[BorrowedFd]) {
    if let Err(error) = holder.replace_common(id, label, maps) {
        tracing::warn!(%error, "cannot notify the holder of the programs in the kernel; the next program may use outdated ones");
    }
}

/// Returns the form and the number in a label.
fn parse(label: &str) -> Option<(&str, u64)> {
    let (form, number) = label.strip_prefix(LABEL)?.trim_start().split_once(' ')?;
    Some((form, number.parse().ok()?))
}

/// Tables that a holder keeps as an item.
struct Part {
    id: Id,
    form: String,
    tables: Vec<OwnedFd>,
}

/// The parts of applications' tables, by the maps' id at the holder.
struct Parts(BTreeMap<Id, Vec<Part>>);

impl Parts {
    /// Removes the tables from the kept descriptors.
    fn of(held: &mut Held) -> Self {
        let mut by_maps: BTreeMap<Id, Vec<_>> = BTreeMap::new();
        for common in std::mem::take(&mut held.commons) {
            match parse(&common.attachment.label) {
                Some((form, maps)) if form.contains(TABLES) => {
                    by_maps.entry(maps).or_default().push(Part {
                        id: common.id,
                        form: form.to_owned(),
                        tables: common.attachment.fds,
                    });
                }
                _ => held.commons.push(common),
            }
        }
        Self(by_maps)
    }

    /// Returns the tables that belong to these maps, in order.
    fn take(&mut self, maps: Id) -> Vec<OwnedFd> {
        let mut parts = self.0.remove(&maps).unwrap_or_default();
        parts.sort_by(|one, other| one.form.cmp(&other.form));
        parts.into_iter().flat_map(|part| part.tables).collect()
    }

    /// Requests the holder to forget the tables whose maps are useless.
    fn forget_rest(self, holder: &HolderLink) {
        for part in self.0.into_values().flatten() {
            holder.forget(part.id);
        }
    }
}

/// Returns the slots of the sessions in these maps, in order.
fn used_slots(connections: &[HeldConnection], maps: Id) -> Vec<u32> {
    let attachments = connections
        .iter()
        .filter_map(|held| held.attachment.as_ref());
    let of_maps = attachments.filter(|kept| parse(&kept.label).is_some_and(|(_, id)| id == maps));
    let slots = of_maps.filter_map(|kept| {
        let memory = Memory::map_front(kept.fds.first()?.as_fd()).ok()?;
        Some(memory.shared().slot.load(Relaxed))
    });
    let mut slots: Vec<_> = slots.filter(|slot| *slot < MAX_SESSIONS).collect();
    slots.sort_unstable();
    slots
}
