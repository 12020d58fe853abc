//! The thread that accepts connections, performs TLS handshakes, distributes connections, and balances the shards' load. A
//! handshake needs a millisecond of computing, which here delays no connected switch.

use crate::connection::{Admission, Connection, Resumption};
use crate::connection_queue::ConnectionQueue;
use crate::datapath_ids::DatapathIds;
use crate::kernel_half::HeldHalves;
use crate::mailbox::{Command, Token};
use crate::network::Network;
use crate::session::{SessionConfig, Subject};
use crate::watch::Watch;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsFd;
use rustix::net::{Shutdown, shutdown};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use urtica_hold::{HeldConnection, Link, Notice};
use urtica_socket::{Accepted, Acceptor, Certificate, Stream, TlsError};

/// The interval at which load is compared.
const BALANCE_INTERVAL: Duration = Duration::from_secs(1);

/// The minimum difference of busy time in an interval for which a switch is moved.
const BALANCE_THRESHOLD: Duration = Duration::from_millis(100);

/// The interval at which the file of datapath ids is checked for changes.
const REFRESH_INTERVAL: Duration = Duration::from_secs(1);

pub(crate) struct Supervisor {
    network: Network,
    /// The connections waiting for each shard.
    queues: Arc<[ConnectionQueue]>,
    acceptor: Acceptor,
    /// The datapath ids that certificates may use.
    datapath_ids: Option<DatapathIds>,
    session: SessionConfig,
    /// Keeps connections when this program ends.
    holder: Option<Arc<Link>>,
    /// Continues the kernel halves of an earlier program.
    pub held_halves: Option<Arc<dyn HeldHalves>>,
    next_refresh: Instant,
    /// The busy time of each shard when load was last compared, in nanoseconds.
    busy_before: Vec<u64>,
    next_balance: Instant,
    last_token: Token,
}

impl Supervisor {
    pub fn new(
        network: Network,
        queues: Arc<[ConnectionQueue]>,
        acceptor: Acceptor,
        datapath_ids: Option<DatapathIds>,
        session: SessionConfig,
    ) -> Self {
        let busy_before = vec![0; network.shards().len()];
        let now = Instant::now();
        let next_balance = now + BALANCE_INTERVAL;
        Self {
            network,
            queues,
            acceptor,
            datapath_ids,
            session,
            holder: None,
            held_halves: None,
            next_refresh: now,
            busy_before,
            next_balance,
            last_token: 0,
        }
    }

    /// Adds accepted connections to this holder, and takes over the connections that it has kept for an earlier program.
    pub fn take_over(&mut self, holder: Link, connections: Vec<HeldConnection>) {
        let holder = Arc::new(holder);
        let count = connections.len();
        let taken = connections.into_iter();
        let taken: Vec<_> = taken
            .filter_map(|held| self.resume(&held, &holder))
            .collect();
        if count > 0 {
            tracing::info!(
                taken = taken.len(),
                closed = count - taken.len(),
                answered_in_kernel = taken.iter().sum::<u64>(),
                "took over the connections of an earlier program"
            );
        }
        self.holder = Some(holder);
    }

    /// Takes over a connection of an earlier program. Returns the number of packet-ins that the kernel has answered since;
    /// `None` if the connection cannot be used, and is closed.
    fn resume(&mut self, held: &HeldConnection, holder: &Arc<Link>) -> Option<u64> {
        self.last_token += 1;
        let resumption = Resumption {
            link: holder,
            halves: self.held_halves.as_deref(),
            token: self.last_token,
            config: self.session.clone(),
            now: Instant::now(),
        };
        match Connection::resume(held, resumption) {
            Ok(connection) => {
                let answered = connection.transport().uncounted_answers();
                self.pass_on(connection);
                Some(answered)
            }
            Err(reason) => {
                urtica_log::warn!(about: "taking over", peer = held.label, %reason, "cannot take over a connection of an earlier program; closing it, and its switch will reconnect");
                // Fails only if the peer has closed it first.
                let _ = shutdown(&held.socket, Shutdown::Both);
                holder.forget(held.id);
                None
            }
        }
    }

    /// Runs until the controller must stop; then closes the listeners, or leaves them, and stops the shards.
    pub fn run(mut self, watch: &Watch) -> io::Result<()> {
        while !self.wait(watch)? {
            self.handle_notice(watch);
            for accepted in self.acceptor.poll(Instant::now()) {
                self.handle_accepted(accepted);
            }
            if Instant::now() >= self.next_refresh {
                self.refresh();
            }
            if Instant::now() >= self.next_balance {
                self.balance();
            }
        }
        let is_leaving = watch.is_leaving() && self.holder.is_some();
        for listener in self.acceptor.take_listeners() {
            match is_leaving {
                true => listener.leave(),
                false => drop(listener),
            }
        }
        for shard in self.network.shards() {
            let command = match is_leaving {
                true => Command::Leave,
                false => Command::Stop,
            };
            // Fails only if the shard has ended already.
            let _ = shard.mailbox.push(command);
        }
        if let Some(holder) = self.holder.filter(|_| !is_leaving) {
            holder.end();
        }
        Ok(())
    }

    /// Handles a notice from the holder.
    fn handle_notice(&mut self, watch: &Watch) {
        let Some(holder) = &self.holder else {
            return;
        };
        holder.flush();
        match holder.next_notice() {
            None => {}
            Some(Notice::Unkept) => {
                urtica_log::warn!(about: "holding", "the holder has no file descriptors left; a connection will end with this program: raise the holder's limit of open files (`ulimit -n`)");
            }
            Some(Notice::LetGo) => {
                tracing::info!("another program takes over the connections; stopping");
                watch.give_way();
            }
            Some(Notice::Gone) => {
                tracing::error!(
                    "the holder has ended; connections will end with this program: restart it to hold them again"
                );
                self.holder = None;
            }
        }
    }

    /// Waits for a connection, for the next time-out, for the holder, or until the controller must stop. Returns `true` if it
    /// must stop.
    fn wait(&self, watch: &Watch) -> io::Result<bool> {
        let next = self.acceptor.next_timeout();
        let next = next.map_or(self.next_balance, |next| next.min(self.next_balance));
        let timeout = next.saturating_duration_since(Instant::now());
        let timeout = Timespec {
            tv_sec: timeout.as_secs() as i64,
            tv_nsec: i64::from(timeout.subsec_nanos()),
        };
        let stop = watch.stop_event();
        let mut fds = vec![
            PollFd::from_borrowed_fd(stop, PollFlags::IN),
            PollFd::new(&self.acceptor, PollFlags::IN),
        ];
        let holder = self.holder.iter();
        fds.extend(holder.map(|holder| PollFd::from_borrowed_fd(holder.as_fd(), PollFlags::IN)));
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) => Ok(!fds[0].revents().is_empty()),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn handle_accepted(&mut self, accepted: Accepted) {
        match accepted {
            Accepted::Connection { stream, peer, .. } => {
                if let Some(certificate) = stream.certificate() {
                    urtica_log::debug!(about: Subject::of_peer(&peer), peer, %certificate, "TLS handshake done");
                }
                self.adopt(stream, peer);
            }
            Accepted::Refused { peer, reason, .. } => report_refusal(&peer, &reason),
            Accepted::Paused(error) => {
                urtica_log::error!(about: "accepting", %error, "cannot accept connections");
            }
            Accepted::Notice(notice) if notice.is_warning() => tracing::warn!("TLS: {notice}"),
            Accepted::Notice(notice) => tracing::info!("TLS: {notice}"),
        }
    }

    /// Creates the connection of an accepted peer, and hands it to a shard.
    fn adopt(&mut self, stream: Stream, peer: String) {
        self.last_token += 1;
        let admission = self.admission(stream.certificate());
        let mut connection = Connection::new(
            stream,
            peer,
            self.last_token,
            self.session.clone(),
            Instant::now(),
        );
        connection.admission = admission;
        if let Some(holder) = &self.holder {
            hold(&mut connection, holder);
        }
        self.pass_on(connection);
    }

    /// Returns the check of the peer's datapath id, if the settings require one.
    fn admission(&self, certificate: Option<&Certificate>) -> Option<Admission> {
        let ids = self.datapath_ids.clone()?;
        let certificate = certificate.cloned();
        Some(Box::new(move |id| ids.admit(id, certificate.as_ref())))
    }

    /// Reloads the file of datapath ids if it has changed.
    fn refresh(&mut self) {
        self.next_refresh = Instant::now() + REFRESH_INTERVAL;
        match self.datapath_ids.as_mut().and_then(DatapathIds::refresh) {
            Some(Ok(())) => tracing::info!("new datapath ids of certificates are in use"),
            Some(Err(error)) => {
                tracing::warn!("{error}; the old datapath ids of certificates stay in use")
            }
            None => {}
        }
    }

    /// Hands a connection over to the next shard.
    fn pass_on(&self, connection: Connection) {
        let shard = self.next_shard();
        let mailbox = &self.network.shard(shard).mailbox;
        // Fails only if the shard has ended; then the connection is dropped, and the controller stops.
        let _ = self.queues[shard].put(Box::new(connection), || {
            mailbox.push(Command::Adopt).is_ok()
        });
    }

    /// Returns the shard for a new connection, round-robin. Load is balanced later, once it is known.
    fn next_shard(&self) -> usize {
        (self.last_token % self.network.shards().len() as u64) as usize
    }

    /// Makes a shard that was much busier than another hand over half of the difference. Load is measured in time, not in
    /// messages, since handlers differ.
    fn balance(&mut self) {
        self.next_balance = Instant::now() + BALANCE_INTERVAL;
        let counters = self.network.shard_counters();
        let busy: Vec<_> = counters.map(|shard| shard.busy_ns.get()).collect();
        let loads = busy.iter().zip(&self.busy_before);
        let loads: Vec<_> = loads.map(|(now, before)| now - before).collect();
        self.busy_before = busy;
        if let Some(Transfer { from, to, share }) = Transfer::between(&loads) {
            let give = Command::Give { to, share };
            let _ = self.network.shard(from).mailbox.push(give);
        }
    }
}

fn report_refusal(peer: &str, reason: &TlsError) {
    let about = Subject::of_peer(peer);
    if reason.is_noise() {
        urtica_log::debug!(about: about, peer, %reason, "connection closed before its TLS handshake");
    } else {
        urtica_log::warn!(about: about, peer, %reason, "connection refused");
    }
}

/// Adds a connection to the holder, if it can keep the connection.
fn hold(connection: &mut Connection, holder: &Arc<Link>) {
    if let Err(error) = connection.hold(holder) {
        urtica_log::warn!(about: "holding", peer = connection.name(), %error, "cannot hold a connection, which will end with this program: only connections over TCP can be held");
    }
}

/// A part of one shard's load that must move to another.
#[derive(Debug, PartialEq)]
struct Transfer {
    from: usize,
    to: usize,
    /// The share of the load of `from`, 0 to 1.
    share: f64,
}

impl Transfer {
    /// Returns half of the difference between the busiest and the least busy shard, if it is large enough, so that both have
    /// equal load. `loads` are in nanoseconds.
    fn between(loads: &[u64]) -> Option<Self> {
        let from = (0..loads.len()).max_by_key(|&shard| loads[shard])?;
        let to = (0..loads.len()).min_by_key(|&shard| loads[shard])?;
        let difference = loads[from] - loads[to];
        let is_worth_it = Duration::from_nanos(difference) > BALANCE_THRESHOLD;
        let share = difference as f64 / 2.0 / loads[from] as f64;
        (is_worth_it && difference > loads[from] / 4).then_some(Self { from, to, share })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(loads: &[u64]) -> Vec<u64> {
        loads.iter().map(|load| load * 1_000_000).collect()
    }

    #[test]
    fn transfers_balance_both_shards() {
        for loads in [[800, 200], [300, 0], [1000, 500]] {
            let transfer = Transfer::between(&ms(&loads)).expect("it is worth it");
            assert_eq!((transfer.from, transfer.to), (0, 1));
            let given = loads[0] as f64 * transfer.share;
            assert_eq!(loads[0] as f64 - given, loads[1] as f64 + given);
        }
        let transfer = Transfer::between(&ms(&[300, 500, 900, 100])).expect("it is worth it");
        assert_eq!((transfer.from, transfer.to), (2, 3));
    }

    #[test]
    fn small_differences_cause_no_transfer() {
        for loads in [&[][..], &[900], &[0, 0], &[100, 0], &[900, 700]] {
            assert_eq!(Transfer::between(&ms(loads)), None, "{loads:?}");
        }
    }
}
