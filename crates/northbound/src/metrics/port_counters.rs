//! The counters of all switches' ports, for a scrape.
//!
//! **What.** A scrape requests the counters of all switches at once, and waits for the replies until a common deadline. If a
//! switch is late, its previous counters are shown, with their age, until its reply arrives.
//!
//! **How.** Each request is a task, which may outlive the scrape. A switch has at most one pending request. Only one scrape
//! requests counters at a time; scrapes that wait for it, or follow soon, use its result. Therefore the number of scraping
//! clients does not affect how often switches are polled.

use futures_util::future::join_all;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::timeout;
use urtica_controller::RequestError;
use urtica_wire::{DatapathId, PortStats};

/// The time for which a scrape waits for all switches together. Prometheus waits for the page for 10 s.
const DEADLINE: Duration = Duration::from_secs(2);

/// The interval within which scrapes share replies.
const SHORTEST_INTERVAL: Duration = Duration::from_secs(1);

/// The counters of the ports of all switches. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct PortCounters {
    switches: Arc<Mutex<HashMap<DatapathId, Known>>>,
    /// The time when the last round was complete, or its deadline passed. Held while a scrape requests counters; locked
    /// before `switches`.
    last_round: Arc<tokio::sync::Mutex<Option<Instant>>>,
}

/// The counters of one switch.
#[derive(Clone, Default)]
pub(crate) struct Known {
    /// The counters of its last reply, and when it arrived.
    pub counters: Option<(Arc<[PortStats]>, Instant)>,
    /// Whether the switch did not answer its last request.
    pub is_mute: bool,
    is_requested: bool,
}

impl PortCounters {
    /// Requests the counters of these switches with `request`, and waits for the replies, 2 s in total. Returns the known
    /// counters of each switch, in the order of `ids`.
    pub(super) async fn collect<F>(
        &self,
        ids: &[DatapathId],
        request: impl Fn(DatapathId) -> F,
    ) -> Vec<Known>
    where
        F: Future<Output = Result<Vec<PortStats>, RequestError>> + Send + 'static,
    {
        self.collect_within(DEADLINE, ids, request).await
    }

    async fn collect_within<F>(
        &self,
        deadline: Duration,
        ids: &[DatapathId],
        request: impl Fn(DatapathId) -> F,
    ) -> Vec<Known>
    where
        F: Future<Output = Result<Vec<PortStats>, RequestError>> + Send + 'static,
    {
        let mut last_round = self.last_round.lock().await;
        if last_round.is_none_or(|ended| ended.elapsed() >= SHORTEST_INTERVAL) {
            let replies = self.request_all(ids, request);
            // The tasks of late switches continue.
            let _ = timeout(deadline, join_all(replies)).await;
            *last_round = Some(Instant::now());
        }
        let switches = self.switches.lock();
        let known = |id| switches.get(id).cloned().unwrap_or_default();
        ids.iter().map(known).collect()
    }

    /// Starts a request to each of these switches that has no pending one, and forgets all other switches.
    fn request_all<F>(
        &self,
        ids: &[DatapathId],
        request: impl Fn(DatapathId) -> F,
    ) -> Vec<tokio::task::JoinHandle<()>>
    where
        F: Future<Output = Result<Vec<PortStats>, RequestError>> + Send + 'static,
    {
        let mut switches = self.switches.lock();
        let mut before = std::mem::take(&mut *switches);
        let mut started = Vec::with_capacity(ids.len());
        for &id in ids {
            let mut known = before.remove(&id).unwrap_or_default();
            known.is_mute |= known.is_requested;
            if !known.is_requested {
                known.is_requested = true;
                let (counters, reply) = (self.clone(), request(id));
                started.push(tokio::spawn(async move {
                    let reply = reply.await;
                    counters.note(id, reply);
                }));
            }
            switches.insert(id, known);
        }
        started
    }

    fn note(&self, id: DatapathId, reply: Result<Vec<PortStats>, RequestError>) {
        let mut switches = self.switches.lock();
        let Some(known) = switches.get_mut(&id) else {
            return;
        };
        known.is_requested = false;
        // A refusal is an answer, too.
        known.is_mute = matches!(reply, Err(RequestError::Timeout(_)));
        if let Ok(counters) = reply {
            known.counters = Some((counters.into(), Instant::now()));
        }
    }
}

impl Known {
    /// Returns `true` if the switch has not yet replied to the request of this or an earlier scrape.
    pub fn owes_reply(&self) -> bool {
        self.is_mute || self.is_requested
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::runtime::{Builder, Runtime};
    use tokio::sync::{Barrier, oneshot};
    use urtica_wire::PortNo;

    /// A timeout that never expires in a test.
    const LONG: Duration = Duration::from_secs(600);

    /// A timeout that expires soon, for switches that never reply.
    const SHORT: Duration = Duration::from_millis(20);

    const NO_COUNTERS: PortStats = PortStats {
        port_no: PortNo(1),
        rx_packets: 0,
        tx_packets: 0,
        rx_bytes: 0,
        tx_bytes: 0,
        rx_dropped: 0,
        tx_dropped: 0,
        rx_errors: 0,
        tx_errors: 0,
        rx_frame_err: 0,
        rx_over_err: 0,
        rx_crc_err: 0,
        collisions: 0,
        duration_sec: 0,
        duration_nsec: 0,
    };

    type Reply = Result<Vec<PortStats>, RequestError>;

    fn runtime() -> Runtime {
        let mut runtime = Builder::new_multi_thread();
        runtime.worker_threads(1).enable_time().build().unwrap()
    }

    fn ids(count: u64) -> Vec<DatapathId> {
        (1..=count).map(DatapathId).collect()
    }

    fn counters(rx_packets: u64) -> Reply {
        Ok(vec![PortStats {
            rx_packets,
            ..NO_COUNTERS
        }])
    }

    fn received(known: &Known) -> Option<u64> {
        let (ports, _) = known.counters.as_ref()?;
        Some(ports[0].rx_packets)
    }

    impl PortCounters {
        /// Makes the next scrape request the counters again.
        async fn let_time_pass(&self) {
            *self.last_round.lock().await = None;
        }
    }

    #[test]
    fn all_switches_are_requested_at_once() {
        const COUNT: u64 = 400;
        let all = Arc::new(Barrier::new(COUNT as usize));
        let request = |_| {
            let all = Arc::clone(&all);
            async move {
                all.wait().await;
                counters(1)
            }
        };
        let known = runtime().block_on(async {
            let counters = PortCounters::default();
            counters.collect_within(LONG, &ids(COUNT), request).await
        });
        assert_eq!(known.iter().filter_map(received).sum::<u64>(), COUNT);
    }

    #[test]
    fn late_switches_keep_their_last_counters_and_owe_a_reply() {
        runtime().block_on(async {
            let port_counters = PortCounters::default();
            let ids = ids(3);
            let first = |id: DatapathId| async move {
                match id.0 {
                    3 => pending().await,
                    _ => counters(id.0),
                }
            };
            let known = port_counters.collect_within(SHORT, &ids, first).await;
            let owe: Vec<_> = known.iter().map(Known::owes_reply).collect();
            assert_eq!(
                known.iter().map(received).collect::<Vec<_>>(),
                [Some(1), Some(2), None]
            );
            assert_eq!(owe, [false, false, true]);
            let (_, age) = known[1].counters.clone().unwrap();

            port_counters.let_time_pass().await;
            let requested = Arc::new(Mutex::new(Vec::new()));
            let (send, reply) = oneshot::channel::<Reply>();
            let reply = Mutex::new(Some(reply));
            let second = |id: DatapathId| {
                requested.lock().push(id.0);
                let late = (id.0 == 2).then(|| reply.lock().take().unwrap());
                async move {
                    match late {
                        Some(reply) => reply.await.unwrap(),
                        None => counters(10),
                    }
                }
            };
            let known = port_counters.collect_within(SHORT, &ids, second).await;
            assert_eq!(*requested.lock(), [1, 2], "the third has a request");
            assert_eq!(received(&known[1]), Some(2));
            assert_eq!(known[1].counters.clone().unwrap().1, age);
            assert!(known[1].owes_reply());

            // A late reply counts when it arrives.
            send.send(counters(20)).unwrap();
            while port_counters.switches.lock()[&ids[1]].is_requested {
                tokio::task::yield_now().await;
            }
            let known = port_counters.collect_within(SHORT, &ids, second).await;
            assert_eq!(received(&known[1]), Some(20));
            assert!(!known[1].owes_reply());
        });
    }

    #[test]
    fn refusals_are_answers_and_timeouts_are_not() {
        runtime().block_on(async {
            let port_counters = PortCounters::default();
            let request = |id: DatapathId| async move {
                match id.0 {
                    1 => Err(RequestError::Disconnected),
                    _ => Err(RequestError::Timeout(SHORT)),
                }
            };
            let known = port_counters.collect_within(LONG, &ids(2), request).await;
            let owe: Vec<_> = known.iter().map(Known::owes_reply).collect();
            assert_eq!(owe, [false, true]);
        });
    }

    #[test]
    fn clients_share_a_round_of_requests() {
        let requests = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&requests);
        let request = move |_| {
            count.fetch_add(1, Ordering::Relaxed);
            async { counters(1) }
        };
        runtime().block_on(async {
            let port_counters = PortCounters::default();
            // For the whole test, this round stays recent.
            *port_counters.last_round.lock().await = Some(Instant::now() + LONG);
            for _ in 0..5 {
                port_counters.collect(&ids(3), &request).await;
            }
            assert_eq!(requests.load(Ordering::Relaxed), 0);
            port_counters.let_time_pass().await;
            port_counters.collect_within(LONG, &ids(3), &request).await;
            assert_eq!(requests.load(Ordering::Relaxed), 3);
        });
    }
}
