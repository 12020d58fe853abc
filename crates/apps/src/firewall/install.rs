//! The installation of the rules on switches.
//!
//! **Closed until confirmed.** Until a switch has confirmed all entries, one entry above them sends every packet to the
//! controller, which checks it against the rules. So a switch that refuses an entry, or does not answer, is slow but not
//! open. If it refuses even that entry, the firewall's other entries have been deleted, and the table-miss entry sends every
//! packet to the controller.
//!
//! **Fairness.** Each switch has its own job, so that a switch that does not answer delays no other. A job sends a limited
//! number of entries at a time and waits for their confirmation, so the backlog of a switch is bounded.

use super::rules::{self, FirewallRules, Verdict};
use super::{fragments, takes_entries};
use futures_util::future::{AbortHandle, Either, abortable, select};
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;
use urtica_controller::{
    Background, EntryOptions, NetworkEvent, PendingReply, Reply, RequestError,
};
use urtica_services::is_provisioned;
use urtica_state::Snapshot;
use urtica_wire::{
    Action, CONTROLLER_NO_BUFFER, ConfigFlags, DatapathId, FlowMod, Instruction, List, Match,
    Message, SwitchConfig,
};

/// Marks the entries of rules, so that only these are deleted: `uwalled` in ASCII.
const COOKIE: u64 = u64::from_be_bytes(*b"\0uwalled");

/// Marks the guard entry, which sends every packet to the controller: `uguards` in ASCII.
const GUARD_COOKIE: u64 = u64::from_be_bytes(*b"\0uguards");
const _: () = assert!(!is_provisioned(COOKIE) && !is_provisioned(GUARD_COOKIE));

/// The priority of the guard entry.
const GUARD_PRIORITY: u16 = u16::MAX;

/// The priority of entries for packets that always pass.
const ALWAYS_PRIORITY: u16 = GUARD_PRIORITY - 1;

/// The priority of the first rule; each further one has one less.
const FIRST_PRIORITY: u16 = ALWAYS_PRIORITY - 1;

/// The priority of the default: above the table-miss entry, which remains if the default is not installed.
const DEFAULT_PRIORITY: u16 = 1;

/// The maximum number of unconfirmed messages to a switch.
const CHUNK: usize = 1_000;

/// The time for a switch to confirm them.
const CONFIRM_WITHIN: Duration = Duration::from_secs(10);

/// The pause before the rules are sent again to a switch that did not accept them; doubled each time.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The longest pause.
const RETRY_AFTER_AT_MOST: Duration = Duration::from_secs(60);

/// The error of an installation.
#[derive(Debug, thiserror::Error)]
enum InstallError {
    #[error("{0}")]
    Request(#[from] RequestError),
    #[error("the switch did not confirm them within {CONFIRM_WITHIN:?}")]
    Timeout,
    #[error(
        "it neither matches fragments as Open vSwitch does nor drops them, and fragments would bypass rules that match ports \
         or protocols"
    )]
    Fragments,
}

impl InstallError {
    /// Returns `true` if the switch has disconnected, or another controller has taken it over. It gets the rules again when
    /// it returns.
    fn is_departure(&self) -> bool {
        matches!(
            self,
            Self::Request(
                RequestError::UnknownSwitch(_)
                    | RequestError::Disconnected
                    | RequestError::Secondary(_)
            )
        )
    }
}

/// Installs the rules on all switches.
#[derive(Clone)]
pub(super) struct Installer {
    rules: Arc<Snapshot<FirewallRules>>,
    background: Background,
}

impl Installer {
    pub fn new(rules: &Arc<Snapshot<FirewallRules>>, background: &Background) -> Self {
        Self {
            rules: Arc::clone(rules),
            background: background.clone(),
        }
    }

    /// Runs one job per connected switch.
    pub async fn run(self) {
        type Job = Pin<Box<dyn Future<Output = ()> + Send>>;
        let mut events = self.background.network().events();
        let mut running: BTreeMap<DatapathId, AbortHandle> = BTreeMap::new();
        let mut jobs: FuturesUnordered<Job> = FuturesUnordered::new();
        // Without a job, waiting would return immediately.
        jobs.push(Box::pin(std::future::pending()));
        loop {
            let event = match select(pin!(events.next()), jobs.next()).await {
                Either::Left((Some(event), _)) => event,
                Either::Left((None, _)) => return,
                Either::Right(_) => continue,
            };
            for switch in self.take_in(event, &mut running) {
                let (job, handle) = abortable(self.clone().keep(switch));
                running.insert(switch, handle);
                jobs.push(Box::pin(async move {
                    let _ = job.await;
                }));
            }
        }
    }

    /// Removes finished jobs, and returns the switches that need a job.
    fn take_in(
        &self,
        event: NetworkEvent,
        running: &mut BTreeMap<DatapathId, AbortHandle>,
    ) -> Vec<DatapathId> {
        let mut end = |switch: &DatapathId| running.remove(switch).inspect(AbortHandle::abort);
        let network = self.background.network();
        let infos = match event {
            NetworkEvent::Down(info) => {
                end(&info.datapath_id);
                return Vec::new();
            }
            NetworkEvent::Up(info) | NetworkEvent::Role(info) => {
                end(&info.datapath_id);
                vec![info]
            }
            NetworkEvent::Missed(_) => {
                running.values().for_each(AbortHandle::abort);
                running.clear();
                let all = network.switches().into_iter();
                all.filter_map(|switch| network.info(switch)).collect()
            }
            _ => return Vec::new(),
        };
        let guarded = infos
            .iter()
            .filter(|info| takes_entries(info) && info.role.may_write());
        guarded.map(|info| info.datapath_id).collect()
    }

    /// Keeps one switch up to date with the rules: its job.
    async fn keep(self, switch: DatapathId) {
        let mut has_failed = false;
        let mut pause = RETRY_AFTER;
        loop {
            let version = self.rules.version();
            let rules = self.rules.load();
            let attempt = self.attempt(switch, &rules);
            // Newer rules do not wait for a switch that does not answer: the job restarts with them.
            let Either::Left((succeeded, _)) =
                select(pin!(attempt), pin!(self.rules.changed(version))).await
            else {
                continue;
            };
            let changed = self.rules.changed(version);
            if succeeded {
                if std::mem::take(&mut has_failed) {
                    urtica_log::info!(about: switch, dp_id = %switch, "installed the firewall rules");
                }
                pause = RETRY_AFTER;
                changed.await;
            } else {
                has_failed = true;
                self.background.timeout(pause, changed).await;
                pause = RETRY_AFTER_AT_MOST.min(2 * pause);
            }
        }
    }

    /// Installs the rules. If that fails, makes the switch send every packet to the controller, and returns `false`.
    async fn attempt(&self, switch: DatapathId, rules: &FirewallRules) -> bool {
        let Err(error) = self.install(switch, rules).await else {
            return true;
        };
        if !error.is_departure() {
            urtica_log::error!(about: switch, dp_id = %switch, %error, "cannot install the firewall rules; the switch sends every packet to the controller, which checks it");
        }
        // Even if the switch refuses this, too, it has no rules that allow packets.
        let _ = self.confirm(switch, &closing()).await;
        false
    }

    async fn install(&self, switch: DatapathId, rules: &FirewallRules) -> Result<(), InstallError> {
        self.confirm(switch, &closing()).await?;
        if fragments::matter_to(rules) {
            self.settle_fragments(switch).await?;
        }
        for chunk in entries(rules).chunks(CHUNK) {
            self.confirm(switch, chunk).await?;
        }
        self.confirm(switch, &[delete(GUARD_COOKIE)]).await
    }

    /// Finds a way to treat fragments that the switch supports.
    async fn settle_fragments(&self, switch: DatapathId) -> Result<(), InstallError> {
        for flags in fragments::SAFE_WAYS {
            if self.has_taken(switch, flags).await? {
                if flags == ConfigFlags::FRAG_DROP {
                    urtica_log::warn!(about: switch, dp_id = %switch, "the switch cannot match the ports of fragments as Open vSwitch does; dropping all IP fragments while rules match ports");
                }
                return Ok(());
            }
        }
        Err(InstallError::Fragments)
    }

    async fn has_taken(
        &self,
        switch: DatapathId,
        flags: ConfigFlags,
    ) -> Result<bool, InstallError> {
        let config = SwitchConfig {
            flags,
            miss_send_len: CONTROLLER_NO_BUFFER,
        };
        match self.confirm(switch, &[Message::SetConfig(config)]).await {
            Err(InstallError::Request(RequestError::Refused(_))) => return Ok(false),
            other => other?,
        }
        let network = self.background.network();
        let ask = || network.request(switch, &Message::GetConfigRequest);
        let reply = self.reply(switch, ask).await?;
        Ok(reply.messages().any(|reply| match reply {
            Message::GetConfigReply(found) => found.flags & ConfigFlags::FRAG_NX_MATCH == flags,
            _ => false,
        }))
    }

    async fn confirm(
        &self,
        switch: DatapathId,
        messages: &[Message<'_>],
    ) -> Result<(), InstallError> {
        let network = self.background.network();
        let send = || network.confirm(switch, messages);
        self.reply(switch, send).await.map(drop)
    }

    /// Sends a request as soon as the switch accepts it, and returns the reply if it arrives in time.
    async fn reply(
        &self,
        switch: DatapathId,
        send: impl FnMut() -> Result<PendingReply, RequestError>,
    ) -> Result<Reply, InstallError> {
        let network = self.background.network();
        let reply = async { network.when_ready(switch, send).await?.await };
        let reply = self.background.timeout(CONFIRM_WITHIN, reply).await;
        Ok(reply.ok_or(InstallError::Timeout)??)
    }
}

/// Makes a switch send every packet to the controller.
pub(super) fn closing() -> [Message<'static>; 2] {
    let to_controller = Instruction::apply(vec![Action::controller()]);
    let guard = Message::FlowMod(FlowMod {
        instructions: List::from(vec![to_controller]),
        ..options(GUARD_COOKIE, GUARD_PRIORITY).flow_mod()
    });
    [guard, delete(COOKIE)]
}

fn delete(cookie: u64) -> Message<'static> {
    Message::FlowMod(FlowMod::delete_by_cookie(cookie))
}

/// Returns the entries of these rules. The switch has no earlier ones.
fn entries(rules: &FirewallRules) -> Vec<Message<'static>> {
    let always =
        rules::always_allowed().map(|match_| entry(ALWAYS_PRIORITY, match_, Verdict::Allow));
    let mut entries = Vec::from(always);
    let mut hidden = BTreeSet::new();
    for (priority, rule) in (0..=FIRST_PRIORITY).rev().zip(&rules.rules) {
        entries.push(entry(priority, rule.match_.clone(), rule.verdict));
        for match_ in fragments::hidden_from(rule) {
            // An earlier rule for other ports may already deny these packets.
            if hidden.insert(match_.to_string()) {
                entries.push(entry(priority, match_, Verdict::Deny));
            }
        }
    }
    entries.push(entry(DEFAULT_PRIORITY, Match::any(), rules.default));
    entries
}

fn entry(priority: u16, match_: Match<'static>, verdict: Verdict) -> Message<'static> {
    let instructions = match verdict {
        Verdict::Allow => vec![Instruction::GotoTable(1)],
        Verdict::Deny => Vec::new(),
    };
    Message::FlowMod(FlowMod {
        match_,
        instructions: List::from(instructions),
        ..options(COOKIE, priority).flow_mod()
    })
}

fn options(cookie: u64, priority: u16) -> EntryOptions {
    EntryOptions {
        cookie,
        ..EntryOptions::PERMANENT.priority(priority)
    }
}
