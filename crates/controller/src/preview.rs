//! Computes the changes in switches' flow tables that a change of programs would cause, without sending anything.
//!
//! **How.** The new programs run for a while: handlers for each switch that is up, and their background programs. Their
//! messages are kept, and their requests are sent. Then the result is compared with the entries that switches report
//! ([`reconciliation`](crate::reconciliation)).
//!
//! **Limits.** Reactions of programs to packets, links and hosts are not included.

use crate::connection::contain;
use crate::network::Network;
use crate::program_list::{Listed, ProgramSlot, Programs};
use crate::reconciliation::{Entries, QUIET, TOLD_WITHIN, request};
use crate::unsent::Unsent;
use crate::xid::{Origin, Xids};
use crate::{Background, Error, ProgramId, Switch, SwitchCounters, SwitchInfo};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use urtica_wire::{DatapathId, Message, split_frame};

/// The maximum time for which programs are run.
const AT_MOST: Duration = Duration::from_secs(8);

/// The interval at which the preview checks whether they are quiet.
const INTERVAL: Duration = Duration::from_millis(20);

/// A flow entry that a change of programs would add, change or delete: see
/// [`Running::preview_programs`](crate::Running::preview_programs).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowChange {
    /// The switch.
    pub switch: DatapathId,
    /// The program that owns, or would own, the entry.
    pub program: ProgramId,
    frame: Vec<u8>,
}

impl FlowChange {
    /// Returns the flow mod that would be sent.
    pub fn message(&self) -> Message<'_> {
        // This crate encoded it, so it can be decoded.
        Message::decode(&self.frame).map_or(Message::BarrierRequest, |(_, message)| message)
    }
}

/// Returns the changes in flow tables that these slots would cause; runs the new programs for a while.
pub(crate) fn preview(
    programs: &Programs,
    network: &Network,
    slots: &[ProgramSlot],
) -> Result<(Vec<ProgramId>, Vec<FlowChange>), Error> {
    let (wanted, list) = (programs.wanted(slots)?, programs.list());
    let ids = wanted.iter().map(|(listed, _)| listed.id()).collect();
    let stays = |listed: &Listed| wanted.iter().any(|(kept, _)| kept.id() == listed.id());
    let gone = list.programs.iter().filter(|listed| !stays(listed));
    let gone: Vec<_> = gone.map(Listed::id).collect();
    let fresh = wanted.into_iter().filter(|(_, kept)| kept.is_none());
    let trials = fresh.map(|(listed, _)| Trial::start(listed, programs.background()));
    let trials: Vec<_> = trials.collect();
    Trial::wait(&trials);
    let mut changes = Vec::new();
    for program in gone {
        for switch in network.switches() {
            changes.extend(changes_in(network, switch, program, &[], false));
        }
    }
    for trial in trials {
        let is_new = list.position(trial.listed.id()).is_none();
        changes.extend(trial.end(network, is_new));
    }
    changes.sort_by_key(|change| (change.switch, change.program));
    Ok((ids, changes))
}

/// A program that is previewed, and its messages.
struct Trial {
    listed: Listed,
    background: Background,
    unsent: Arc<Unsent>,
}

impl Trial {
    /// Runs a program without side effects.
    fn start(mut listed: Listed, background: &Background) -> Self {
        let unsent = Unsent::new();
        let network = &mut listed.identity.network;
        *network = network.for_trial(&unsent);
        let background = background.for_program(&listed.identity.network, listed.program.stage());
        listed.program.start(&background);
        for switch in listed.identity.network.switches() {
            if let Some(info) = listed.identity.network.info(switch) {
                // A program that panics here sends nothing; the panic is reported when it runs.
                let _ = contain(|| {
                    unsent.keep(switch, &said_at_start(&listed, &info), info.version, None);
                    Ok(())
                });
            }
        }
        Self {
            listed,
            background,
            unsent,
        }
    }

    /// Waits until all have finished their initial messages.
    fn wait(trials: &[Self]) {
        let deadline = Instant::now() + AT_MOST;
        while Instant::now() < deadline
            && !trials.iter().all(|trial| trial.unsent.quiet_for() >= QUIET)
        {
            thread::sleep(INTERVAL);
        }
    }

    /// Ends the trial. Returns the changes that the program would make in the existing entries of its number; a new program
    /// has no such entries.
    fn end(self, network: &Network, is_new: bool) -> Vec<FlowChange> {
        self.background.end();
        let program = self.listed.id();
        let messages = self.unsent.take();
        let switches = network.switches().into_iter();
        let changes = switches.flat_map(|switch| {
            let said = messages.get(&switch).map_or(&[][..], Vec::as_slice);
            changes_in(network, switch, program, said, is_new)
        });
        changes.collect()
    }
}

/// Returns the messages that a program's handler sends to a switch that is up.
fn said_at_start(listed: &Listed, info: &SwitchInfo) -> Vec<u8> {
    let mut out = Vec::new();
    let (mut xids, counters) = (Xids::default(), SwitchCounters::default());
    let mut handler = listed.program.handler(info);
    let mut switch = Switch {
        info,
        out: &mut out,
        xids: &mut xids,
        counters: &counters,
        network: &listed.identity.network,
        now: Instant::now(),
        now_s: 0,
        origin: Origin::SESSION,
        cookie_be: 0,
        own_table: None,
        programs: std::slice::from_ref(&listed.identity),
        consumed: false,
        sent: 0,
    };
    switch.begin(0);
    handler.switch_up(&mut switch);
    drop(switch);
    out
}

/// Returns the changes in a switch's entries of a program that would send these messages; none if the switch does not report
/// its entries.
fn changes_in(
    network: &Network,
    switch: DatapathId,
    program: ProgramId,
    said: &[u8],
    is_new: bool,
) -> Vec<FlowChange> {
    let Some(info) = network.info(switch) else {
        return Vec::new();
    };
    let mut entries = Entries::new(info.version);
    if !is_new {
        let asked = network.request(switch, &request(program, info.version));
        match asked.and_then(|told| told.wait(TOLD_WITHIN)) {
            Ok(reply) => entries.note_told(program, &reply),
            Err(error) => {
                tracing::warn!(dp_id = %switch, %error, "cannot read the switch's entries; its changes are unknown");
                return Vec::new();
            }
        }
    }
    let (mut out, mut rest) = (Vec::new(), said);
    while let Ok(Some((frame, after))) = split_frame(rest) {
        entries.apply(frame, &mut out);
        rest = after;
    }
    entries.delete_rest(|| 0, &mut out);
    let mut rest = &out[..];
    let mut changes = Vec::new();
    while let Ok(Some((frame, after))) = split_frame(rest) {
        rest = after;
        if matches!(Message::decode(frame), Ok((_, Message::FlowMod(_)))) {
            changes.push(FlowChange {
                switch,
                program,
                frame: frame.to_vec(),
            });
        }
    }
    changes
}
