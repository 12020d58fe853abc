//! Deletes all entries of one program from switches, and no others.
//!
//! OpenFlow 1.3 deletes by cookie. A 1.0 switch cannot: its entries are requested, and the program's are deleted one by one.
//! In both cases the switch must confirm the deletion, which is repeated until it does: the switch may have refused it.
//!
//! **Thread-safety.** Any thread may call [`Sweeper::sweep`], which does not wait. One background program sweeps.

use futures_util::future::{Either, pending, select};
use futures_util::stream::{FuturesUnordered, StreamExt};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use urtica_controller::{Background, Network, NetworkEvent, OWN_COOKIE_BITS, RequestError};
use urtica_state::Snapshot;
use urtica_wire::{
    DatapathId, FlowMod, FlowModCommand, FlowStats, FlowStatsRequest, Match, Message, Version,
};

/// The time for a switch to report its entries, or to confirm a deletion.
const PATIENCE: Duration = Duration::from_secs(5);

/// The pause before the next attempt at a switch that did not keep up, or refused; doubled each time.
const PAUSE: Duration = Duration::from_millis(100);

/// The number of entries deleted per confirmation: as many as one part of a 1.0 reply holds, or more.
const AT_ONCE: usize = 1_000;

/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(3);

/// Sweeps switches on request.
pub(super) struct Sweeper {
    cookie: u64,
    due: Mutex<BTreeSet<DatapathId>>,
    /// Published when switches are due.
    bell: Snapshot<()>,
}

impl Sweeper {
    pub fn new(cookie: u64) -> Self {
        Self {
            cookie,
            due: Mutex::default(),
            bell: Snapshot::new(()),
        }
    }

    /// Requests that the program's entries be deleted from these switches soon.
    pub fn sweep(&self, switches: impl IntoIterator<Item = DatapathId>) {
        self.due.lock().extend(switches);
        self.bell.publish(());
    }

    /// Sweeps each switch that joins: its entries are from an earlier connection.
    pub async fn follow_switches(self: Arc<Self>, network: Network) {
        let mut events = network.events();
        while let Some(event) = events.next().await {
            match event {
                NetworkEvent::Up(info) | NetworkEvent::Role(info) => {
                    self.sweep([info.datapath_id]);
                }
                NetworkEvent::Missed(_) => self.sweep(network.switches()),
                _ => {}
            }
        }
    }

    /// Sweeps several switches concurrently, each at most once at a time.
    pub async fn run(self: Arc<Self>, background: Background) {
        let (mut seen, mut at_work) = (0, BTreeSet::new());
        let mut jobs = FuturesUnordered::new();
        loop {
            for switch in self.take_due(&at_work) {
                at_work.insert(switch);
                jobs.push(self.clean(&background, switch));
            }
            let rung = pin!(self.bell.changed(seen));
            match select(rung, pin!(next_of(&mut jobs))).await {
                Either::Left((version, _)) => seen = version,
                Either::Right((switch, _)) => drop(at_work.remove(&switch)),
            }
        }
    }

    /// Removes and returns the due switches, except switches that are being swept.
    fn take_due(&self, at_work: &BTreeSet<DatapathId>) -> BTreeSet<DatapathId> {
        let mut due = self.due.lock();
        let later = due.intersection(at_work).copied().collect();
        let all = std::mem::replace(&mut *due, later);
        all.difference(at_work).copied().collect()
    }

    /// Deletes the entries of a switch. Retries until it confirms the deletion, disconnects, or has another primary.
    async fn clean(&self, background: &Background, switch: DatapathId) -> DatapathId {
        let mut pause = PAUSE;
        while let Err(error) = self.try_to_clean(background, switch).await {
            tracing::debug!(dp_id = %switch, %error, "cannot delete a switch's entries yet");
            // The primary deletes the entries, until this controller takes over.
            let is_secondary = matches!(error, RequestError::Secondary(_));
            if is_secondary || background.network().info(switch).is_none() {
                break;
            }
            background.sleep(pause).await;
            pause = LONGEST_PAUSE.min(2 * pause);
        }
        switch
    }

    async fn try_to_clean(
        &self,
        background: &Background,
        switch: DatapathId,
    ) -> Result<(), RequestError> {
        let network = background.network();
        if version_of(network, switch)? != Version::Of10 {
            let all = deletion(self.cookie, Match::any());
            return in_time(background, network.confirm(switch, &[all])?)
                .await
                .map(drop);
        }
        let all = network.flow_stats(switch, FlowStatsRequest::default());
        let entries = in_time(background, all).await?;
        let is_ours = |entry: &FlowStats| entry.cookie & OWN_COOKIE_BITS == self.cookie;
        let deletions: Vec<_> = entries.iter().filter(is_ours).map(delete_entry).collect();
        for deletions in deletions.chunks(AT_ONCE) {
            in_time(background, network.confirm(switch, deletions)?).await?;
        }
        Ok(())
    }
}

async fn in_time<T>(
    background: &Background,
    reply: impl Future<Output = Result<T, RequestError>>,
) -> Result<T, RequestError> {
    let reply = background.timeout(PATIENCE, reply).await;
    reply.unwrap_or(Err(RequestError::Timeout(PATIENCE)))
}

/// Deletes the entries with this cookie that `match_` includes; in 1.0, all programs' entries.
pub(super) fn delete(
    network: &Network,
    switch: DatapathId,
    cookie: u64,
    match_: Match,
) -> Result<(), RequestError> {
    if version_of(network, switch)? == Version::Of10 {
        return network.delete(switch, match_);
    }
    network.send(switch, &deletion(cookie, match_))
}

/// Returns the deletion by cookie, for 1.3.
fn deletion(cookie: u64, match_: Match) -> Message {
    Message::FlowMod(FlowMod {
        match_,
        ..FlowMod::delete_by_cookie(cookie)
    })
}

fn version_of(network: &Network, switch: DatapathId) -> Result<Version, RequestError> {
    let info = network.info(switch);
    info.map(|info| info.version)
        .ok_or(RequestError::UnknownSwitch(switch))
}

fn delete_entry(entry: FlowStats<'_>) -> Message<'_> {
    Message::FlowMod(FlowMod {
        command: FlowModCommand::DeleteStrict,
        priority: entry.priority,
        match_: entry.match_,
        ..FlowMod::default()
    })
}

/// Waits for the next finished future; for ever if the set is empty.
async fn next_of<F: Future>(futures: &mut FuturesUnordered<F>) -> F::Output {
    match futures.next().await {
        Some(output) => output,
        None => pending().await,
    }
}
