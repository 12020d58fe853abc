//! The background programs of `routing`: they follow routes, hosts and ports.

use super::absence::BACK_WITHIN;
use super::late::{Late, Reason};
use super::{
    EntryRequest, Found, LONGEST_REFUSAL_PAUSE, PORTS_PAUSE, REFUSAL_PAUSE, RoutingState,
    TELLS_WITHIN, entry,
};
use futures_util::future::{Either, select};
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;
use urtica_controller::{Background, Reply, RequestError};
use urtica_services::{HostEvent, LeftReason};
use urtica_wire::{DatapathId, Message, MultipartReplyBody};

impl RoutingState {
    /// Replaces invalid paths whenever next hops change, or a switch's time to return has passed.
    pub(super) async fn follow_routes(self: Arc<Self>, background: Background) {
        self.started.get_or_init(|| background.now());
        let mut seen = 0;
        loop {
            let changed = self.routes.changed(seen);
            match self.next_timeout(background.now()) {
                Some(due) => {
                    let pause = due.saturating_duration_since(background.now());
                    seen = background.timeout(pause, changed).await.unwrap_or(seen);
                }
                None => seen = changed.await,
            }
            let now = background.now();
            self.repair(background.network(), now, |_| true);
            self.flows().absences.forget_past(now);
        }
    }

    fn next_timeout(&self, now: Instant) -> Option<Instant> {
        let flows = self.flows();
        let timeouts = [
            flows.absences.next_timeout(),
            flows.inherited.next_timeout(now),
            self.all_back_at().filter(|at| now < *at),
        ];
        timeouts.into_iter().flatten().min()
    }

    /// Returns the time by which all returning switches of an earlier run of the controller have connected.
    pub(super) fn all_back_at(&self) -> Option<Instant> {
        self.started.get().map(|started| *started + BACK_WITHIN)
    }

    /// Updates a host's flows whenever it appears, moves or leaves.
    pub(super) async fn follow_hosts(self: Arc<Self>, background: Background) {
        let mut events = self.hosts.events();
        while let Some(event) = events.next().await {
            match event {
                // Its flows stay: the host is probably still at its switch.
                HostEvent::Left {
                    reason: LeftReason::SwitchLeft,
                    ..
                } => {}
                HostEvent::Left { host, .. } => {
                    self.remove(background.network(), |flow| flow.has(host.vlan, host.mac));
                }
                HostEvent::Joined(host) | HostEvent::Moved { host, .. } => {
                    let (network, now) = (background.network(), background.now());
                    self.repair(network, now, |flow| flow.has(host.vlan, host.mac));
                }
                // Lost events may have been about such hosts.
                HostEvent::Missed(_) => {
                    self.repair(background.network(), background.now(), |_| true);
                }
                _ => {}
            }
        }
    }

    /// Deletes the entries of flows that start or end at a port whenever it goes down. Known hosts cause events, but a host
    /// whose switch was away is unknown while its packets follow entries.
    pub(super) async fn follow_ports(self: Arc<Self>, background: Background) {
        let mut seen = 0;
        loop {
            seen = self.ports_down.changed(seen).await;
            self.repair(background.network(), background.now(), |_| true);
            background.sleep(PORTS_PAUSE).await;
        }
    }

    /// Starts to catch up with each switch that did not keep up, or refused a message.
    pub(super) async fn follow_late(self: Arc<Self>, background: Background) {
        let late = self.flows().late.clone();
        let mut running = BTreeSet::new();
        let mut jobs = FuturesUnordered::new();
        let mut seen = 0;
        loop {
            for &switch in late.load().keys() {
                if running.insert(switch) {
                    jobs.push(self.catch_up(switch, &background, &late));
                }
            }
            let changed = pin!(late.changed(seen));
            if jobs.is_empty() {
                seen = changed.await;
                continue;
            }
            match select(changed, jobs.next()).await {
                Either::Left((version, _)) => seen = version,
                Either::Right((done, _)) => {
                    done.map(|switch| running.remove(&switch));
                }
            }
        }
    }

    /// Compares a switch's entries with the expected ones as soon as it accepts more, and repeats that while it refuses some.
    async fn catch_up(
        &self,
        switch: DatapathId,
        background: &Background,
        late: &Late,
    ) -> DatapathId {
        let mut pause = REFUSAL_PAUSE;
        while let Some(reason) = late.reason(switch) {
            if reason == Reason::Refused {
                background.sleep(pause).await;
                pause = LONGEST_REFUSAL_PAUSE.min(2 * pause);
            }
            let ready = background.network().ready(switch).await;
            // The next round resends messages that fail from here on.
            late.remove(switch);
            let caught_up = match ready {
                Ok(()) => self.compare_again(switch, background).await,
                left => left,
            };
            if let Err(error) = caught_up {
                urtica_log::debug!(about: switch, dp_id = %switch, %error, "cannot send a switch all its entries; sending them when it joins again");
                break;
            }
        }
        switch
    }

    async fn compare_again(
        &self,
        switch: DatapathId,
        background: &Background,
    ) -> Result<(), RequestError> {
        let network = background.network();
        let info = network.info(switch);
        let version = info.ok_or(RequestError::UnknownSwitch(switch))?.version;
        self.begin_comparison(switch);
        let request = entry::request(version);
        let ask = || network.request(switch, &request);
        let reply = network.when_ready(switch, ask).await?;
        let told = background.timeout(TELLS_WITHIN, reply).await;
        let told = told.unwrap_or(Err(RequestError::Timeout(TELLS_WITHIN)));
        let asked = EntryRequest {
            network,
            switch,
            table_id: self.table_id.load(Ordering::Relaxed),
            now: background.now(),
        };
        let mut found = Found::default();
        for message in told.iter().flat_map(Reply::messages) {
            if let Message::MultipartReply(reply) = message {
                if let MultipartReplyBody::Flow(entries) = &reply.body {
                    self.compare(&asked, entries.iter(), &mut found);
                }
            }
        }
        match told {
            Err(error @ (RequestError::Disconnected | RequestError::UnknownSwitch(_))) => {
                Err(error)
            }
            // A switch that does not report its entries is sent all of them.
            _ => {
                self.finish_comparison(&asked, &found);
                self.wait_for_refusals(switch, background).await
            }
        }
    }

    /// Waits until a switch has processed all sent messages: by then its refusals are known.
    async fn wait_for_refusals(
        &self,
        switch: DatapathId,
        background: &Background,
    ) -> Result<(), RequestError> {
        let network = background.network();
        let barrier = network
            .when_ready(switch, || network.barrier(switch))
            .await?;
        // A switch that does not answer counts as one that refused nothing.
        let _ = background.timeout(TELLS_WITHIN, barrier).await;
        Ok(())
    }
}
