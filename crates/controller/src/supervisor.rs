//! The thread next to the shards: accepts connections, performs TLS handshakes, distributes connections, and balances the shards'
//! load. A handshake needs a millisecond of computing, and here it delays no connected switch.

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
use std::time::{Duration, Instant, SystemTime};
use urtica_hold::{HeldConnection, Link, Notice};
use urtica_socket::{Certificate, Ended, Handshakes, Listener, Stream};

/// The interval at which load is compared.
const BALANCE_INTERVAL: Duration = Duration::from_secs(1);

/// Differences below this much of an interval's work are not worth moving a switch for.
const BALANCE_THRESHOLD: Duration = Duration::from_millis(100);

/// The interval at which files are checked for changes.
const REFRESH_INTERVAL: Duration = Duration::from_secs(1);

/// The time for which accepting pauses when the system is out of a resource, usually file descriptors.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(200);

pub(crate) struct Supervisor {
    network: Network,
    /// The connections on their way into each shard.
    queues: Arc<[ConnectionQueue]>,
    acceptor: Acceptor,
    session: SessionConfig,
    /// Keeps connections when this program ends.
    holder: Option<Arc<Link>>,
    /// Continues the kernel halves of an earlier program.
    pub held_halves: Option<Arc<dyn HeldHalves>>,
    next_refresh: Instant,
    /// The busy time of each shard when load was last compared, in nanoseconds.
    busy_before: Vec<u64>,
    next_balance: Instant,
    /// The end of a pause in which nothing is accepted, since the system was out of a resource.
    paused_until: Option<Instant>,
    last_token: Token,
}

/// The listeners, and the checks of peers.
pub(crate) struct Acceptor {
    pub listeners: Vec<Listener>,
    /// TLS connections whose handshake is not finished.
    pub handshakes: Option<Handshakes>,
    /// Which datapath ids certificates may use.
    pub datapath_ids: Option<DatapathIds>,
}

impl Supervisor {
    pub fn new(
        network: Network,
        queues: Arc<[ConnectionQueue]>,
        acceptor: Acceptor,
        session: SessionConfig,
    ) -> Self {
        let busy_before = vec![0; network.shards().len()];
        let now = Instant::now();
        let next_balance = now + BALANCE_INTERVAL;
        Self {
            network,
            queues,
            acceptor,
            session,
            holder: None,
            held_halves: None,
            next_refresh: now,
            busy_before,
            next_balance,
            paused_until: None,
            last_token: 0,
        }
    }

    /// Adds accepted connections to this holder, and takes over those that it has kept for an earlier program.
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

    /// Takes over a connection of an earlier program. Returns the number of packet-ins that the kernel has answered since; `None`
    /// if it could not, and the connection is closed.
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
                let answered = connection.answered_meanwhile();
                self.pass_on(connection);
                Some(answered)
            }
            Err(reason) => {
                urtica_log::warn!(about: "taking over", peer = held.label, %reason, "cannot take over a connection of an earlier program; closing it, and its switch will reconnect");
                // Fails only if the peer was faster.
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
            for index in 0..self.listening(Instant::now()).len() {
                self.accept_all(index);
            }
            self.finish_handshakes();
            if Instant::now() >= self.next_refresh {
                self.refresh();
            }
            if Instant::now() >= self.next_balance {
                self.balance();
            }
        }
        let is_leaving = watch.is_leaving() && self.holder.is_some();
        for listener in self.acceptor.listeners.drain(..) {
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

    /// Returns the listeners to accept connections from: none during a pause.
    fn listening(&self, now: Instant) -> &[Listener] {
        match self.paused_until {
            Some(until) if now < until => &[],
            _ => &self.acceptor.listeners,
        }
    }

    /// Returns when there is work to do if no connection arrives.
    fn next_timeout(&self, now: Instant) -> Instant {
        let paused_until = self.paused_until.filter(|until| now < *until);
        let handshake = self
            .acceptor
            .handshakes
            .as_ref()
            .and_then(Handshakes::next_timeout);
        [paused_until, handshake]
            .into_iter()
            .flatten()
            .fold(self.next_balance, Instant::min)
    }

    /// Waits for a connection, for the next time-out, for the holder, or until the controller must stop; returns `true` for the
    /// last.
    fn wait(&self, watch: &Watch) -> io::Result<bool> {
        let now = Instant::now();
        let timeout = self.next_timeout(now).saturating_duration_since(now);
        let timeout = Timespec {
            tv_sec: timeout.as_secs() as i64,
            tv_nsec: i64::from(timeout.subsec_nanos()),
        };
        let stop = watch.stop_event();
        let mut fds = vec![PollFd::from_borrowed_fd(stop, PollFlags::IN)];
        let holder = self.holder.iter();
        fds.extend(holder.map(|holder| PollFd::from_borrowed_fd(holder.as_fd(), PollFlags::IN)));
        let listening = self.listening(now).iter();
        fds.extend(listening.map(|listener| PollFd::new(listener, PollFlags::IN)));
        let handshakes = self.acceptor.handshakes.iter();
        fds.extend(handshakes.map(|handshakes| PollFd::new(handshakes, PollFlags::IN)));
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) => Ok(!fds[0].revents().is_empty()),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn accept_all(&mut self, index: usize) {
        loop {
            let listener = &self.acceptor.listeners[index];
            let is_tls = listener.address().is_tls();
            let (socket, peer) = match listener.accept() {
                Ok(accepted) => accepted,
                Err(error) => return self.note_refusal(&error, Instant::now()),
            };
            match &mut self.acceptor.handshakes {
                Some(handshakes) if is_tls => handshakes.accept(socket, peer, Instant::now()),
                _ => self.adopt(socket.into(), peer),
            }
        }
    }

    /// Makes a connection of an accepted peer, and hands it to a shard.
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

    /// Returns the check of the datapath id that a peer uses, if there is one.
    fn admission(&self, certificate: Option<&Certificate>) -> Option<Admission> {
        let ids = self.acceptor.datapath_ids.clone()?;
        let certificate = certificate.cloned();
        Some(Box::new(move |id| ids.admit(id, certificate.as_ref())))
    }

    /// Continues TLS handshakes, and adopts the peers that have finished theirs.
    fn finish_handshakes(&mut self) {
        let Some(handshakes) = &mut self.acceptor.handshakes else {
            return;
        };
        for Ended { peer, outcome, .. } in handshakes.poll(Instant::now()) {
            let about = Subject::of_peer(&peer);
            match outcome {
                Ok(stream) => {
                    let certificate = stream.certificate().map(Certificate::to_string);
                    urtica_log::debug!(about: about, peer, certificate, "TLS handshake done");
                    self.adopt(stream, peer);
                }
                Err(reason) if reason.is_noise() => {
                    urtica_log::debug!(about: about, peer, %reason, "connection closed before its TLS handshake");
                }
                Err(reason) => {
                    urtica_log::warn!(about: about, peer, %reason, "connection refused");
                }
            }
        }
    }

    /// Reads files again that have changed.
    fn refresh(&mut self) {
        self.next_refresh = Instant::now() + REFRESH_INTERVAL;
        let handshakes = self.acceptor.handshakes.iter_mut();
        for notice in handshakes.flat_map(|handshakes| handshakes.refresh(SystemTime::now())) {
            match notice.is_warning() {
                true => tracing::warn!("TLS: {notice}"),
                false => tracing::info!("TLS: {notice}"),
            }
        }
        match self
            .acceptor
            .datapath_ids
            .as_mut()
            .and_then(DatapathIds::refresh)
        {
            Some(Ok(())) => tracing::info!("new datapath ids of certificates are in use"),
            Some(Err(error)) => {
                tracing::warn!("{error}; the old datapath ids of certificates stay in use")
            }
            None => {}
        }
    }

    /// Gives a connection to the next shard.
    fn pass_on(&self, connection: Connection) {
        let shard = self.next_shard();
        let mailbox = &self.network.shard(shard).mailbox;
        // Fails only if the shard has ended, and drops the connection: the controller stops.
        let _ = self.queues[shard].put(Box::new(connection), || {
            mailbox.push(Command::Adopt).is_ok()
        });
    }

    /// Round robin: load is balanced later, when it shows.
    fn next_shard(&self) -> usize {
        (self.last_token % self.network.shards().len() as u64) as usize
    }

    /// If one shard was much busier than another, makes it hand over half of the difference. Load is measured in time and not in
    /// messages: handlers differ.
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

    /// Accepting failed: no connection is waiting, the peer has disconnected at once, or the system is out of a resource, which
    /// may pass. None of these is a reason to stop listening; for the last, accepting pauses, as it would fail again at once.
    fn note_refusal(&mut self, error: &io::Error, now: Instant) {
        use rustix::io::Errno;
        match Errno::from_io_error(error) {
            Some(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => return,
            Some(Errno::MFILE | Errno::NFILE) => {
                urtica_log::error!(about: "accepting", %error, "cannot accept more connections; raise the limit of open files (`ulimit -n`)");
            }
            _ => urtica_log::error!(about: "accepting", %error, "cannot accept a connection"),
        }
        self.paused_until = Some(now + EXHAUSTED_PAUSE);
    }
}

/// Gives a connection to the holder, if that can keep it.
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
    /// Of the load of `from`, 0 to 1.
    share: f64,
}

impl Transfer {
    /// Returns half of the difference between the busiest shard and the least busy one, if it is large enough: then both have
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
    use crate::stage::Tables;
    use rustix::io::Errno;

    fn ms(loads: &[u64]) -> Vec<u64> {
        loads.iter().map(|load| load * 1_000_000).collect()
    }

    #[test]
    fn a_transfer_makes_both_shards_equally_busy() {
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
    fn small_differences_are_left_alone() {
        for loads in [&[][..], &[900], &[0, 0], &[100, 0], &[900, 700]] {
            assert_eq!(Transfer::between(&ms(loads)), None, "{loads:?}");
        }
    }

    #[test]
    fn accepting_pauses_when_the_system_is_out_of_a_resource() {
        let network = Network::new(1, Tables::Shared).expect("a mailbox");
        let anywhere = "ptcp:0:127.0.0.1".parse().expect("an address");
        let listener = Listener::bind(&anywhere).expect("a port");
        let queues = ConnectionQueue::for_shards(1);
        let session = SessionConfig::default();
        let acceptor = Acceptor {
            listeners: vec![listener],
            handshakes: None,
            datapath_ids: None,
        };
        let mut supervisor = Supervisor::new(network, queues, acceptor, session);
        let now = Instant::now();
        for passing in [Errno::AGAIN, Errno::INTR, Errno::CONNABORTED] {
            supervisor.note_refusal(&passing.into(), now);
            assert_eq!(supervisor.listening(now).len(), 1, "{passing}");
        }
        for lasting in [Errno::MFILE, Errno::NFILE, Errno::NOBUFS] {
            supervisor.note_refusal(&lasting.into(), now);
            let over = now + EXHAUSTED_PAUSE;
            let just_before = over - Duration::from_millis(1);
            assert_eq!(supervisor.listening(just_before).len(), 0, "{lasting}");
            assert_eq!(supervisor.next_timeout(now), over);
            assert_eq!(supervisor.listening(over).len(), 1, "{lasting}");
            assert_eq!(supervisor.next_timeout(over), supervisor.next_balance);
        }
    }
}
