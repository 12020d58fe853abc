//! The jobs of the program: set up a path, remove a path, clean a switch.

use super::flow::{EntryKey, Flow, PathEntry, delete_strict};
use super::ledger::Reserved;
use super::{COOKIE_TAG, COOKIE_TAG_MASK, ProvisionError, ProvisionState, Provisioned};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use urtica_controller::{
    Background, Network, OWN_COOKIE_BITS, PendingReply, Reply, RequestError, Stage,
};
use urtica_wire::{DatapathId, FlowStats, FlowStatsRequest, Message, Version};

/// Number of attempts to clean a switch for which new paths wait.
const ATTEMPTS_WAITED_FOR: u32 = 3;

/// The pause before a switch that refused a request for its entries, or did not answer, gets another; doubled each time.
const CLEANING_PAUSE: Duration = Duration::from_secs(1);

/// The maximum of the doubled pause.
const LONGEST_CLEANING_PAUSE: Duration = Duration::from_secs(3);

/// Maximum number of messages sent to a switch between barriers while it is cleaned; they fit into its send queue.
const CLEANING_BATCH: usize = 1024;

type Answer<T> = oneshot::Sender<Result<T, ProvisionError>>;

/// A job.
pub(super) enum Job {
    SetUp(Box<SetUp>),
    /// Remove the path with this cookie.
    Remove {
        cookie: u64,
        answer: Answer<()>,
    },
    /// Delete these entries of a path that is being removed because it lost one of them.
    TakeDown {
        cookie: u64,
        entries: Arc<[PathEntry]>,
    },
    /// Make the entries of a switch equal the expected ones.
    Clean(DatapathId),
}

pub(super) struct SetUp {
    flow: Flow,
    replaces: Option<u64>,
    answer: Answer<Provisioned>,
}

impl Job {
    pub fn set_up(flow: Flow, replaces: Option<u64>, answer: Answer<Provisioned>) -> Self {
        Self::SetUp(Box::new(SetUp {
            flow,
            replaces,
            answer,
        }))
    }

    pub fn remove(cookie: u64, answer: Answer<()>) -> Self {
        Self::Remove { cookie, answer }
    }
}

/// Carries out jobs.
#[derive(Clone)]
pub(super) struct Worker {
    shared: Arc<ProvisionState>,
    background: Background,
    /// For entries that forward: they receive only packets that filtering programs pass.
    network: Network,
}

impl Worker {
    pub fn new(shared: Arc<ProvisionState>, background: Background) -> Self {
        let network = background.network().for_stage(Stage::Forward);
        Self {
            shared,
            background,
            network,
        }
    }

    /// Carries out a job, and reports its outcome if the caller still waits for it.
    pub async fn work(&self, job: Job) {
        match job {
            Job::SetUp(job) => {
                let outcome = self.set_up(&job.flow, job.replaces).await;
                self.count(|counts| match outcome {
                    Ok(_) => counts.provisioned += 1,
                    Err(_) => counts.failed += 1,
                });
                let _ = job.answer.send(outcome);
                self.shared.queue().asked -= 1;
            }
            Job::Remove { cookie, answer } => {
                let outcome = self.remove(cookie).await;
                let _ = answer.send(outcome);
                self.shared.queue().asked -= 1;
            }
            Job::TakeDown { cookie, entries } => self.finish_removal(cookie, &entries).await,
            Job::Clean(switch) => self.clean(switch).await,
        }
    }

    async fn set_up(
        &self,
        flow: &Flow,
        replaces: Option<u64>,
    ) -> Result<Provisioned, ProvisionError> {
        flow.check()?;
        self.check_ports(flow)?;
        let reserved = self.reserve(flow, replaces)?;
        self.install(&reserved).await?;
        if let Some((switch, message)) = flow.release() {
            // The path is installed even if the packet is lost.
            let _ = self.release(switch, &message).await;
        }
        self.take_back(&reserved.leftovers()).await;
        Ok(Provisioned {
            cookie: reserved.cookie,
            path: Arc::new(flow.path.clone()),
        })
    }

    async fn release(&self, switch: DatapathId, message: &Message<'_>) -> Result<(), RequestError> {
        let send = || self.network.send(switch, message);
        self.in_time(self.network.when_ready(switch, send)).await
    }

    fn check_ports(&self, flow: &Flow) -> Result<(), ProvisionError> {
        for port in flow.ports() {
            let switch = port.switch;
            let info = self.network.info(switch);
            let info = info.ok_or(ProvisionError::NotConnected { switch })?;
            // A 1.3 switch has no ports here until it has described them; the job waits for that.
            if !info.ports.is_empty() && info.port(port.port_no).is_none() {
                return Err(ProvisionError::NoSuchPort { port });
            }
        }
        Ok(())
    }

    fn reserve(&self, flow: &Flow, replaces: Option<u64>) -> Result<Reserved, ProvisionError> {
        let max_flows = self.shared.config.max_flows;
        let mut ledger = self.shared.ledger();
        if ledger.live_paths() >= max_flows {
            return Err(ProvisionError::TooManyFlows { max_flows });
        }
        ledger.reserve(flow, replaces)
    }

    /// Installs the entries from the egress switch to the ingress switch, or rolls back.
    async fn install(&self, reserved: &Reserved) -> Result<(), ProvisionError> {
        for (index, entry) in reserved.entries.iter().enumerate().rev() {
            if let Err(error) = self.install_entry(reserved.cookie, entry).await {
                return Err(self.undo(reserved, index, error).await);
            }
        }
        let completed = self.shared.ledger().complete(reserved);
        match completed {
            Ok(()) => {
                self.take_down_if_half(reserved.cookie);
                Ok(())
            }
            Err(error) => Err(self.undo(reserved, 0, error).await),
        }
    }

    async fn install_entry(&self, cookie: u64, entry: &PathEntry) -> Result<(), ProvisionError> {
        self.until_clean(entry.switch).await?;
        self.shared.ledger().check_complete(cookie)?;
        self.confirm(entry.switch, &[entry.add()]).await
    }

    /// Deletes the entries from index `from` on, which may or may not be installed, and restores the entries that they
    /// replaced. The nearest is handled first, so that packets at every step reach an entry that was handled before.
    async fn undo(
        &self,
        reserved: &Reserved,
        from: usize,
        error: ProvisionError,
    ) -> ProvisionError {
        self.shared.ledger().begin_undoing(reserved.cookie);
        for entry in &reserved.entries[from..] {
            match reserved.replaced_by(entry) {
                Some(old) => self.put_right(entry.switch, old.add()).await,
                None => self.delete(entry).await,
            }
        }
        self.shared.ledger().give_up(reserved);
        if let Some((old, _)) = &reserved.replaced {
            self.take_down_if_half(*old);
        }
        if let ProvisionError::Left { switch } = error {
            // If the switch has joined again, it was cleaned while the replaced path was not installed.
            self.shared.request_cleaning(switch);
        }
        error
    }

    /// Removes a path that was just completed if one of its entries is gone already.
    fn take_down_if_half(&self, cookie: u64) {
        let is_half = self.shared.ledger().is_half(cookie);
        if is_half {
            self.shared.take_down(cookie);
        }
    }

    async fn remove(&self, cookie: u64) -> Result<(), ProvisionError> {
        let entries = self.shared.ledger().begin_removal(cookie)?;
        if let Some(entries) = entries {
            self.finish_removal(cookie, &entries).await;
        }
        Ok(())
    }

    async fn finish_removal(&self, cookie: u64, entries: &[PathEntry]) {
        self.take_back(entries).await;
        self.shared.ledger().forget(cookie);
        self.count(|counts| counts.removed += 1);
    }

    /// Deletes entries in this order, starting at the ingress switch.
    async fn take_back(&self, entries: &[PathEntry]) {
        for entry in entries {
            self.delete(entry).await;
        }
    }

    async fn delete(&self, entry: &PathEntry) {
        if let Some(info) = self.network.info(entry.switch) {
            self.put_right(entry.switch, entry.delete(info.version))
                .await;
        }
    }

    /// Sends messages that must not be lost. If the switch does not confirm them, it is compared with its expected entries, at
    /// its next join if it has disconnected.
    async fn put_right(&self, switch: DatapathId, message: Message<'_>) {
        let sent = self.confirm(switch, &[message]).await;
        if sent.is_err() && self.network.info(switch).is_some() {
            self.shared.request_cleaning(switch);
        }
    }

    /// Sends messages to a switch and waits until it has processed them.
    async fn confirm(
        &self,
        switch: DatapathId,
        messages: &[Message<'_>],
    ) -> Result<(), ProvisionError> {
        let limit = self.shared.config.timeout;
        let send = || self.network.confirm(switch, messages);
        let confirmed = self.reply(switch, send).await.map(drop);
        confirmed.map_err(|error| ProvisionError::of_request(switch, error, limit))
    }

    /// Sends as soon as the send queue has space, and returns the reply if it arrives in time.
    async fn reply(
        &self,
        switch: DatapathId,
        send: impl FnMut() -> Result<PendingReply, RequestError>,
    ) -> Result<Reply, RequestError> {
        self.in_time(async { self.network.when_ready(switch, send).await?.await })
            .await
    }

    async fn in_time<T>(
        &self,
        pending: impl Future<Output = Result<T, RequestError>>,
    ) -> Result<T, RequestError> {
        let limit = self.shared.config.timeout;
        let reply = self.background.timeout(limit, pending).await;
        reply.unwrap_or(Err(RequestError::Timeout(limit)))
    }

    /// Waits until a switch has only expected entries.
    async fn until_clean(&self, switch: DatapathId) -> Result<(), ProvisionError> {
        let after = self.shared.config.timeout;
        let clean = async {
            loop {
                // Read before the check, so that this task is woken by a cleaning in between.
                let seen = self.shared.cleaned.version();
                if self.shared.ledger().is_clean(switch) {
                    return Ok(());
                }
                if self.network.info(switch).is_none() {
                    return Err(ProvisionError::NotConnected { switch });
                }
                self.shared.cleaned.changed(seen).await;
            }
        };
        let outcome = self.background.timeout(after, clean).await;
        outcome.unwrap_or(Err(ProvisionError::Timeout { switch, after }))
    }

    /// Makes the entries of a switch equal the expected ones; starts again if that is requested during the cleaning.
    async fn clean(&self, switch: DatapathId) {
        loop {
            self.shared.ledger().begin_cleaning(switch);
            self.try_to_clean(switch).await;
            let is_there = self.network.info(switch).is_some();
            let is_done = self.shared.ledger().end_cleaning(switch, is_there);
            if is_done {
                break;
            }
        }
        self.shared.cleaned.publish(());
    }

    /// Compares a switch with its expected entries until it is clean, must be cleaned again, or has disconnected.
    async fn try_to_clean(&self, switch: DatapathId) {
        let (mut attempt, mut pause) = (1, CLEANING_PAUSE);
        while let Err(error) = self.compare(switch).await {
            let is_requested_again = self.shared.ledger().is_requested_again(switch);
            if is_requested_again || self.network.info(switch).is_none() {
                return;
            }
            if attempt == ATTEMPTS_WAITED_FOR {
                urtica_log::warn!(about: switch, dp_id = %switch, %error, "cannot clean a switch of old entries of provisioned paths; retrying every 3 s");
                self.shared.ledger().use_unclean(switch);
                self.shared.cleaned.publish(());
            }
            attempt += 1;
            self.background.sleep(pause).await;
            pause = LONGEST_CLEANING_PAUSE.min(2 * pause);
        }
    }

    /// Requests a switch's entries, deletes stale ones, and installs missing ones.
    async fn compare(&self, switch: DatapathId) -> Result<(), ProvisionError> {
        let limit = self.shared.config.timeout;
        let of_request = |error| ProvisionError::of_request(switch, error, limit);
        let network = &self.network;
        let info = network.info(switch);
        let version = info.ok_or(ProvisionError::NotConnected { switch })?.version;
        let entries = self.in_time(network.flow_stats(switch, ours(version)));
        let entries = entries.await.map_err(of_request)?;
        let entries: Vec<_> = entries.iter().collect();
        for entries in entries.chunks(CLEANING_BATCH) {
            self.delete_stale(switch, version, entries).await?;
        }
        let found = entries.iter().map(own_cookie).collect();
        self.install_missing(switch, &found).await
    }

    async fn delete_stale(
        &self,
        switch: DatapathId,
        version: Version,
        entries: &[FlowStats<'_>],
    ) -> Result<(), ProvisionError> {
        let is_by_place = version == Version::Of10;
        let deletes: Vec<_> = {
            let ledger = self.shared.ledger();
            let place = |entry: &FlowStats| {
                EntryKey::new(switch, entry.table_id, entry.priority, &entry.match_)
            };
            let stale = entries
                .iter()
                .filter(|entry| ledger.is_stale(own_cookie(entry), &place(entry), is_by_place));
            stale.map(|entry| delete_entry(version, entry)).collect()
        };
        if deletes.is_empty() {
            return Ok(());
        }
        self.count(|counts| counts.stale_entries += deletes.len() as u64);
        self.confirm(switch, &deletes).await
    }

    async fn install_missing(
        &self,
        switch: DatapathId,
        found: &BTreeSet<u64>,
    ) -> Result<(), ProvisionError> {
        let missing = self.shared.ledger().missing(switch, found);
        for entries in missing.chunks(CLEANING_BATCH) {
            let adds: Vec<_> = entries.iter().map(PathEntry::add).collect();
            self.confirm(switch, &adds).await?;
        }
        Ok(())
    }

    fn count(&self, count: impl FnOnce(&mut super::ProvisionCounts)) {
        count(&mut self.shared.queue().counts);
    }
}

/// Returns a request for our entries in 1.3, and for all entries in 1.0, which cannot select by cookie.
fn ours(version: Version) -> FlowStatsRequest<'static> {
    match version {
        Version::Of10 => FlowStatsRequest::default(),
        Version::Of13 => FlowStatsRequest {
            cookie: COOKIE_TAG,
            cookie_mask: COOKIE_TAG_MASK,
            ..FlowStatsRequest::default()
        },
    }
}

fn own_cookie(entry: &FlowStats) -> u64 {
    entry.cookie & OWN_COOKIE_BITS
}

fn delete_entry<'a>(version: Version, entry: &FlowStats<'a>) -> Message<'a> {
    let FlowStats {
        cookie,
        table_id,
        priority,
        match_,
        ..
    } = entry.clone();
    delete_strict(version, cookie, table_id, priority, match_)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ProvisionConfig, Provisioner};
    use std::pin::pin;
    use std::sync::OnceLock;
    use std::task::{Context, Wake, Waker};
    use urtica_controller::{Controller, Program, SwitchHandler, SwitchInfo};

    /// Stores the background that programs run with.
    #[derive(Clone, Default)]
    struct Catch(Arc<OnceLock<Background>>);

    struct Nobody;

    impl SwitchHandler for Nobody {}

    impl Program for Catch {
        fn handler(&self, _: &SwitchInfo) -> Box<dyn SwitchHandler> {
            Box::new(Nobody)
        }

        fn start(&self, background: &Background) {
            self.0.get_or_init(|| background.clone());
        }
    }

    struct Count;

    impl Wake for Count {
        fn wake(self: Arc<Self>) {}
    }

    #[test]
    fn waiting_for_a_clean_switch_leaves_no_state() {
        let (provisioner, catch) = (
            Provisioner::new(ProvisionConfig::default()),
            Catch::default(),
        );
        let controller = Controller::new()
            .program(provisioner.clone())
            .program(catch.clone());
        let _controller = controller.embed().unwrap();
        let worker = Worker::new(Arc::clone(&provisioner.0), catch.0.get().unwrap().clone());
        let [clean, missing] = [DatapathId(1), DatapathId(2)];
        provisioner.0.ledger().end_cleaning(clean, true);
        let woken = Arc::new(Count);
        let waker = Waker::from(Arc::clone(&woken));
        for _ in 0..1_000 {
            for switch in [clean, missing] {
                let waiting = pin!(worker.until_clean(switch));
                let outcome = waiting.poll(&mut Context::from_waker(&waker));
                assert!(outcome.is_ready());
            }
        }
        drop(waker);
        assert_eq!(Arc::strong_count(&woken), 1, "somebody has a waker still");
    }

    #[test]
    fn switches_that_disconnect_are_forgotten() {
        let provisioner = Provisioner::new(ProvisionConfig::default());
        let mut ledger = provisioner.0.ledger();
        for id in (1..=10_000).map(DatapathId) {
            ledger.mark_unclean(id);
            assert!(ledger.request_cleaning(id));
            assert!(!ledger.request_cleaning(id), "one is enough");
            ledger.begin_cleaning(id);
            assert!(ledger.end_cleaning(id, true));
            assert!(ledger.is_clean(id));
            ledger.forget_switch(id);
        }
        assert_eq!(ledger.known_switches(), 0);
    }
}
