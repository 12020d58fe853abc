//! The thread beside the shards: accepts connections, hands them out, and evens out the shards' load.

use crate::connection::Connection;
use crate::mailbox::{Command, Token};
use crate::network::Network;
use crate::session::SessionConfig;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::BorrowedFd;
use std::io;
use std::time::{Duration, Instant};
use urtica_socket::Listener;

/// How often load is compared.
const BALANCE_INTERVAL: Duration = Duration::from_secs(1);

/// Differences below this much of an interval's work are not worth moving a switch for.
const BALANCE_THRESHOLD: Duration = Duration::from_millis(100);

/// How long accepting rests when the system is short of something: mostly of file descriptors.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(200);

pub(crate) struct Supervisor {
    pub network: Network,
    pub listeners: Vec<Listener>,
    pub session: SessionConfig,
    /// How long each shard had been busy when load was last compared, in nanoseconds.
    busy_before: Vec<u64>,
    next_balance: Instant,
    last_token: Token,
}

impl Supervisor {
    pub fn new(network: Network, listeners: Vec<Listener>, session: SessionConfig) -> Self {
        let busy_before = vec![0; network.shards().len()];
        let next_balance = Instant::now() + BALANCE_INTERVAL;
        Self {
            network,
            listeners,
            session,
            busy_before,
            next_balance,
            last_token: 0,
        }
    }

    /// Works until `stop` becomes readable; then nobody listens any more, and the shards are told to end.
    pub fn run(mut self, stop: BorrowedFd) -> io::Result<()> {
        while !self.wait(stop)? {
            for index in 0..self.listeners.len() {
                self.accept_all(index);
            }
            if Instant::now() >= self.next_balance {
                self.balance();
            }
        }
        drop(std::mem::take(&mut self.listeners));
        for shard in self.network.shards() {
            // Refused only where the shard has ended already.
            let _ = shard.mailbox.push(Command::Stop);
        }
        Ok(())
    }

    /// Waits for a connection, for the time to balance, or for the end, which it tells.
    fn wait(&self, stop: BorrowedFd) -> io::Result<bool> {
        let timeout = self
            .next_balance
            .saturating_duration_since(Instant::now())
            .min(BALANCE_INTERVAL);
        let timeout = Timespec {
            tv_sec: timeout.as_secs() as i64,
            tv_nsec: i64::from(timeout.subsec_nanos()),
        };
        let mut fds = vec![PollFd::from_borrowed_fd(stop, PollFlags::IN)];
        fds.extend(
            self.listeners
                .iter()
                .map(|listener| PollFd::new(listener, PollFlags::IN)),
        );
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) => Ok(!fds[0].revents().is_empty()),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn accept_all(&mut self, index: usize) {
        loop {
            let (socket, peer) = match self.listeners[index].accept() {
                Ok(accepted) => accepted,
                Err(error) => return refused(&error),
            };
            self.last_token += 1;
            let connection = Connection::new(
                socket,
                peer,
                self.last_token,
                self.session.clone(),
                Instant::now(),
            );
            let shard = self.next_shard();
            // Refused only where the shard has ended, and dropped then: the controller stops.
            let _ = self
                .network
                .shard(shard)
                .mailbox
                .push(Command::Adopt(Box::new(connection)));
        }
    }

    /// The next in turn: connections are handed out one by one, and load is evened out later, when it shows.
    fn next_shard(&self) -> usize {
        (self.last_token % self.network.shards().len() as u64) as usize
    }

    /// Where one shard has had much more to do than another, has it give half of the difference away. Time tells more
    /// than a count of messages would: handlers differ.
    fn balance(&mut self) {
        self.next_balance = Instant::now() + BALANCE_INTERVAL;
        let counters = self.network.shard_counters();
        let busy: Vec<_> = counters.map(|shard| shard.busy_ns.get()).collect();
        let loads = busy.iter().zip(&self.busy_before);
        let loads: Vec<_> = loads.map(|(now, before)| now - before).collect();
        self.busy_before = busy;
        let busiest = (0..loads.len()).max_by_key(|&shard| loads[shard]);
        let idlest = (0..loads.len()).min_by_key(|&shard| loads[shard]);
        let (Some(busiest), Some(idlest)) = (busiest, idlest) else {
            return;
        };
        let difference = loads[busiest] - loads[idlest];
        let is_worth_it = Duration::from_nanos(difference) > BALANCE_THRESHOLD;
        if is_worth_it && difference > loads[busiest] / 4 {
            let give = Command::Give {
                to: idlest,
                share: difference as f64 / 2.0 / loads[busiest] as f64,
            };
            let _ = self.network.shard(busiest).mailbox.push(give);
        }
    }
}

/// Accepting failed: there is nothing more to accept, the peer left at once, or the system is short of something, which
/// may pass. None of these is a reason to stop listening.
fn refused(error: &io::Error) {
    use rustix::io::Errno;
    match Errno::from_io_error(error) {
        Some(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => return,
        Some(Errno::MFILE | Errno::NFILE) => {
            urtica_log::error!(about: "accepting", %error, "cannot accept more connections; raise the limit of open files (`ulimit -n`)");
        }
        _ => urtica_log::error!(about: "accepting", %error, "cannot accept a connection"),
    }
    std::thread::sleep(EXHAUSTED_PAUSE);
}
