//! The programs of a controller, in the order in which they see messages, and changes of that list while they run.
//!
//! **How.** A list is immutable: a change replaces it ([`Programs::change`]). Each shard is notified through its mailbox, and
//! updates its connections between two batches, so that a packet-in costs no more. A connection that moves between shards is
//! updated when it is adopted. Lists have versions, since one shard may have received a change before the other.
//!
//! **Numbers.** A program has a number while it runs, which its entries' cookies and its messages' xids contain. A program
//! that replaces another inherits its number, and with it the entries.

use crate::error::Error;
use crate::network::Network;
use crate::setting::SettingError;
use crate::stage::{Stage, Tables};
use crate::switch::Identity;
use crate::xid::{MAX_PROGRAMS, Origin};
use crate::{Background, PacketInTimes, Program, ProgramId, RawProgram};
use std::sync::Arc;
use urtica_state::Snapshot;

/// A program that the controller shall run: see [`Running::set_programs`](crate::Running::set_programs).
#[derive(Clone)]
#[non_exhaustive]
pub enum ProgramSlot {
    /// A running program, unchanged.
    Keep(ProgramId),
    /// A program that replaces a running one, and inherits its number and its entries.
    Replace(ProgramId, Arc<dyn Program>),
    /// An additional program.
    Add(Arc<dyn Program>),
}

/// A program in a list.
#[derive(Clone)]
pub(crate) struct Listed {
    pub program: Arc<dyn Program>,
    /// Distinguishes the program from one that it has replaced.
    run: u64,
    pub identity: Identity,
}

impl Listed {
    fn new(program: Arc<dyn Program>, run: u64, index: usize, network: &Network) -> Self {
        let origin = Origin::program(index);
        let times = PacketInTimes::new(
            ProgramId::of_handler(origin),
            program.program_name(),
            network.shards().len(),
        );
        let identity = Identity {
            times: Arc::new(times),
            origin,
            network: network.for_program(index),
            own_table: network.tables().own_table(program.stage()),
        };
        Self {
            program,
            run,
            identity,
        }
    }

    pub fn id(&self) -> ProgramId {
        ProgramId::of_handler(self.identity.origin)
    }

    /// Returns whether both are one run of a program, and not one that has replaced the other.
    pub fn is(&self, other: &Self) -> bool {
        self.run == other.run
    }
}

/// The programs, in the order in which they see messages.
pub(crate) struct ProgramList {
    /// Increases with each list.
    pub version: u64,
    pub programs: Vec<Listed>,
    /// The programs' identities, in the same order: the part that a batch needs.
    pub identities: Vec<Identity>,
    /// The raw program, if any; it never changes.
    pub raw: Option<Raw>,
}

/// A raw program in a list.
#[derive(Clone)]
pub(crate) struct Raw {
    pub program: Arc<dyn RawProgram>,
    pub network: Network,
}

/// The index of a raw program, the last one.
const RAW_INDEX: usize = MAX_PROGRAMS - 1;

/// The list in use, which shards read.
pub(crate) type CurrentPrograms = Arc<Snapshot<Arc<ProgramList>>>;

impl ProgramList {
    fn new(version: u64, programs: Vec<Listed>, raw: Option<Raw>) -> Arc<Self> {
        let identities = programs.iter().map(|listed| listed.identity.clone());
        Arc::new(Self {
            version,
            identities: identities.collect(),
            programs,
            raw,
        })
    }

    /// Creates the first list of a controller.
    pub fn first(
        programs: Vec<Arc<dyn Program>>,
        raw: Option<Arc<dyn RawProgram>>,
        network: &Network,
    ) -> Arc<Self> {
        let programs = programs.into_iter().enumerate();
        let programs =
            programs.map(|(index, program)| Listed::new(program, index as u64, index, network));
        let raw = raw.map(|program| Raw {
            program,
            network: network.for_program(RAW_INDEX),
        });
        let first = Self::new(0, programs.collect(), raw);
        network.show_times(first.times());
        first
    }

    /// Returns the durations of packet-ins in each program, in the same order.
    fn times(&self) -> Vec<Arc<PacketInTimes>> {
        let times = self.identities.iter().map(|it| Arc::clone(&it.times));
        times.collect()
    }

    /// Returns the position of the program with this number.
    pub fn position(&self, id: ProgramId) -> Option<usize> {
        self.programs.iter().position(|listed| listed.id() == id)
    }
}

/// The programs of a running controller, with their background programs.
pub(crate) struct Programs {
    list: Arc<ProgramList>,
    network: Network,
    /// A background that belongs to no program, from which the programs' backgrounds are created.
    background: Background,
    /// The background of each program of the list.
    backgrounds: Vec<Background>,
    last_run: u64,
}

/// A prepared change: its programs start, shards get its list, and then the programs' background programs start.
pub(crate) struct Prepared {
    pub list: Arc<ProgramList>,
    /// The programs' numbers, in the order of the slots.
    pub ids: Vec<ProgramId>,
    /// The positions of the new programs.
    starting: Vec<usize>,
}

impl Programs {
    /// Starts the programs of a controller that has no switches yet.
    pub fn start(list: Arc<ProgramList>, network: &Network, background: &Background) -> Self {
        let backgrounds = list.programs.iter().map(|listed| {
            let own = background.for_program(&listed.identity.network, listed.program.stage());
            listed.program.start(&own);
            own
        });
        let backgrounds = backgrounds.collect();
        if let Some(raw) = &list.raw {
            let own = background.for_program(&raw.network, Stage::Forward);
            raw.program.start(&own);
        }
        Self {
            backgrounds,
            last_run: list.programs.len() as u64,
            list,
            network: network.clone(),
            background: background.clone(),
        }
    }

    /// Returns the programs' numbers, in the order in which they see messages.
    pub fn ids(&self) -> Vec<ProgramId> {
        self.list.programs.iter().map(Listed::id).collect()
    }

    /// Changes to the programs in `slots`. Background programs of removed programs have ended when this returns. The caller
    /// must then call [`Programs::start_new`], pass the new list to shards, and call [`Programs::release_new`].
    pub fn change(&mut self, slots: &[ProgramSlot]) -> Result<Prepared, Error> {
        let wanted = self.wanted(slots)?;
        let ids = wanted.iter().map(|(listed, _)| listed.id()).collect();
        let mut in_order: Vec<_> = wanted.into_iter().collect();
        in_order.sort_by_key(|(listed, _)| listed.program.stage());
        let mut backgrounds = Vec::new();
        let mut starting = Vec::new();
        for (position, (listed, old)) in in_order.iter().enumerate() {
            backgrounds.push(match old {
                Some(old) => self.backgrounds[*old].clone(),
                None => {
                    starting.push(position);
                    let stage = listed.program.stage();
                    self.background
                        .held_for_program(&listed.identity.network, stage)
                }
            });
        }
        for (old, background) in self.backgrounds.iter().enumerate() {
            if !in_order.iter().any(|(_, kept)| *kept == Some(old)) {
                background.end();
                self.network
                    .forget_flood_ports(self.list.programs[old].identity.origin);
            }
        }
        self.last_run += starting.len() as u64;
        self.backgrounds = backgrounds;
        let programs = in_order.into_iter().map(|(listed, _)| listed);
        let raw = self.list.raw.clone();
        self.list = ProgramList::new(self.list.version + 1, programs.collect(), raw);
        self.network.show_times(self.list.times());
        Ok(Prepared {
            list: Arc::clone(&self.list),
            ids,
            starting,
        })
    }

    /// Returns the background for programs that are previewed: see [`preview`](crate::preview).
    pub fn background(&self) -> &Background {
        &self.background
    }

    pub fn list(&self) -> &ProgramList {
        &self.list
    }

    /// Starts the new programs, before their handlers are created. Background programs that they spawn are held.
    pub fn start_new(&self, prepared: &Prepared) {
        for &position in &prepared.starting {
            let program = &prepared.list.programs[position].program;
            program.start(&self.backgrounds[position]);
        }
    }

    /// Releases the new programs' background programs: shards know the programs now, and settle their changes of entries.
    pub fn release_new(&self, prepared: &Prepared) {
        let starting = prepared.starting.iter();
        starting.for_each(|position| self.backgrounds[*position].release());
    }

    /// Returns the programs to run, each with its current position if it is kept; rejects slots that cannot be run.
    pub fn wanted(&self, slots: &[ProgramSlot]) -> Result<Vec<(Listed, Option<usize>)>, Error> {
        let has_raw = self.list.raw.is_some();
        check_count(slots.len(), has_raw)?;
        let mut taken = self.numbers_kept(slots)?;
        let mut run = self.last_run;
        let mut wanted = Vec::new();
        for slot in slots {
            if let ProgramSlot::Replace(_, program) | ProgramSlot::Add(program) = slot {
                program.check()?;
                run += 1;
            }
            let listed = |program: &Arc<dyn Program>, id: ProgramId| {
                let index = usize::from(id.number()) - 1;
                (
                    Listed::new(Arc::clone(program), run, index, &self.network),
                    None,
                )
            };
            wanted.push(match slot {
                ProgramSlot::Keep(id) => {
                    let position = self.position(*id)?;
                    (self.list.programs[position].clone(), Some(position))
                }
                ProgramSlot::Replace(id, program) => listed(program, *id),
                ProgramSlot::Add(program) => {
                    let id = first_free(&taken);
                    taken.push(id);
                    listed(program, id)
                }
            });
        }
        if has_raw {
            self.check_kept_services(!wanted.is_empty())?;
            check_beside_raw(wanted.iter().map(|(listed, _)| &*listed.program))?;
        }
        let stages = wanted.iter().map(|(listed, _)| listed.program.stage());
        check_tables(self.network.tables(), stages)?;
        Ok(wanted)
    }

    /// Checks that services do not start or end: sessions request ports on behalf of services when they start, or never.
    fn check_kept_services(&self, has_services: bool) -> Result<(), SettingError> {
        match has_services != self.list.programs.is_empty() {
            true => Ok(()),
            false => Err(SettingError::new(
                "the first program cannot be added to a raw program while the controller runs, nor the last one be removed: \
                 restart the controller",
            )),
        }
    }

    /// Returns the numbers that stay in use, and rejects duplicates.
    fn numbers_kept(&self, slots: &[ProgramSlot]) -> Result<Vec<ProgramId>, Error> {
        let mut taken = Vec::new();
        for slot in slots {
            if let ProgramSlot::Keep(id) | ProgramSlot::Replace(id, _) = slot {
                self.position(*id)?;
                if taken.contains(id) {
                    return Err(Error::ProgramTwice(*id));
                }
                taken.push(*id);
            }
        }
        Ok(taken)
    }

    fn position(&self, id: ProgramId) -> Result<usize, Error> {
        self.list.position(id).ok_or(Error::NoSuchProgram(id))
    }
}

/// Rejects a number of programs that one controller cannot run.
pub(crate) fn check_count(programs: usize, has_raw: bool) -> Result<(), Error> {
    match programs + usize::from(has_raw) {
        0 => Err(Error::NoProgram),
        1..=MAX_PROGRAMS => Ok(()),
        count => Err(Error::TooManyPrograms(count)),
    }
}

/// Rejects programs that share a controller with a raw program and do more than observe.
pub(crate) fn check_beside_raw<'p>(
    mut programs: impl Iterator<Item = &'p (dyn Program + 'static)>,
) -> Result<(), SettingError> {
    match programs.all(|program| program.stage() == Stage::Observe) {
        true => Ok(()),
        false => Err(SettingError::new(
            "a program that filters or forwards cannot be combined with a raw program, which installs entries in all tables: \
             expected only programs of Stage::Observe with it",
        )),
    }
}

/// Checks that the programs' tables do not change, since the table-miss entries in the switches depend on them.
fn check_tables(tables: Tables, stages: impl Iterator<Item = Stage>) -> Result<(), Error> {
    match Tables::of(stages) == tables {
        true => Ok(()),
        false => Err(Error::FilterAtRunTime),
    }
}

/// Returns a free number, which exists because there are no more programs than numbers.
fn first_free(taken: &[ProgramId]) -> ProgramId {
    let numbers = (0..MAX_PROGRAMS).map(|index| ProgramId::of_handler(Origin::program(index)));
    let mut free = numbers.filter(|id| !taken.contains(id));
    free.next().unwrap_or(ProgramId::OUTSIDE)
}
