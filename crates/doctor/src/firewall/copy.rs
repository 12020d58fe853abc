//! Two private network namespaces: one with the machine's interfaces and a table of its firewall, and one of switches.

use super::interfaces::{Entrance, Interface};
use super::tables::Table;
use crate::program::{NoAnswer, ask_with_input};
use rustix::thread::{UnshareFlags, gettid, unshare_unsafe};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

/// The time limit of a connection. Only a rule can delay it, as both ends are in this process.
const TIMEOUT: Duration = Duration::from_millis(700);

/// The result of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Passes,
    /// A reply refused it.
    Refused,
    /// There was no reply.
    Dropped,
}

/// The machine's namespace, which the calling thread has entered.
pub struct Copy {
    switches: Switches,
}

/// The handle of the thread in the namespace of switches.
struct Switches {
    requests: Sender<Request>,
    replies: Receiver<Reply>,
}

enum Request {
    /// Lines for `ip -batch`.
    Configure(String),
    Connect(SocketAddr),
}

enum Reply {
    Configured(Result<(), NoAnswer>),
    Connected(io::Result<()>),
}

impl Copy {
    /// Creates both namespaces, with these interfaces; they are removed when `work` is done.
    ///
    /// # Errors
    /// If this process may not create namespaces, or `ip` is not installed.
    pub fn with<R: Send>(
        interfaces: &[Interface],
        work: impl FnOnce(&mut Self) -> R + Send,
    ) -> Result<R, NoAnswer> {
        thread::scope(|scope| {
            let (requests, for_switches) = channel();
            let (to_us, replies) = channel();
            let (entered, switches_thread) = channel();
            scope.spawn(move || {
                let _ = entered.send(enter_new_namespace());
                serve(&for_switches, &to_us);
            });
            let machine = scope.spawn(move || {
                let thread = switches_thread.recv().map_err(|_| stopped())??;
                enter_new_namespace()?;
                let mut copy = Self {
                    switches: Switches { requests, replies },
                };
                copy.configure(interfaces, thread)?;
                Ok(work(&mut copy))
            });
            machine.join().unwrap_or_else(|_| Err(stopped()))
        })
    }

    /// Sets the interfaces and addresses of both sides. A failing line, such as of IPv6 on a machine without it, does
    /// not affect the others.
    fn configure(&self, interfaces: &[Interface], switches: i32) -> Result<(), NoAnswer> {
        let (mut own, mut theirs) = ("link set lo up\n".to_owned(), String::new());
        for (index, Interface { name, addresses }) in interfaces.iter().enumerate() {
            own += &format!("link add {name} type veth peer name s{index} netns {switches}\n");
            own += &format!("link set {name} up\n");
            theirs += &format!("link set s{index} up\n");
            for address in addresses {
                let add = |address: IpAddr, prefix, device: &str| {
                    let nodad = if address.is_ipv6() { " nodad" } else { "" };
                    format!("address add {address}/{prefix} dev {device}{nodad}\n")
                };
                own += &add(address.local, address.prefix, name);
                if let Some(peer) = address.peer() {
                    theirs += &add(peer, address.prefix, &format!("s{index}"));
                }
            }
        }
        configure(&own)?;
        match self.switches.ask(Request::Configure(theirs)) {
            Some(Reply::Configured(configured)) => configured,
            _ => Err(stopped()),
        }
    }

    /// Loads a table.
    ///
    /// # Errors
    /// If its program refuses the text.
    pub fn load(&self, table: &Table) -> Result<(), NoAnswer> {
        let (program, arguments) = table.loader();
        ask_with_input(&program, arguments, &table.rules).map(drop)
    }

    /// Removes the table, and all others of its manager.
    pub fn unload(&self, table: &Table) {
        self.run(&table.command_to_flush());
    }

    /// Loads a table again, with its original rules.
    pub fn reload(&self, table: &Table) {
        self.unload(table);
        // Loading this text succeeded before.
        let _ = self.load(table);
    }

    /// Runs a shell command. Callers only check its effect, so failures are ignored.
    pub fn run(&self, command: &str) {
        let _ = ask_with_input("sh", &["-s"], command);
    }

    /// Connects as a switch. `None` if this cannot be tried, such as to an IPv6 address on a machine without IPv6.
    pub fn connect(&self, entrance: &Entrance, port: u16) -> Option<Verdict> {
        let target = SocketAddr::new(entrance.address(), port);
        // The kernel completes connections without an accept.
        let _listener = TcpListener::bind(target).ok()?;
        let connected = match entrance {
            Entrance::Local(_) => connect(target),
            Entrance::From { .. } => match self.switches.ask(Request::Connect(target))? {
                Reply::Connected(connected) => connected,
                Reply::Configured(_) => return None,
            },
        };
        match connected.map_err(|error| error.kind()) {
            Ok(()) => Some(Verdict::Passes),
            Err(ErrorKind::TimedOut | ErrorKind::WouldBlock) => Some(Verdict::Dropped),
            Err(ErrorKind::NetworkUnreachable | ErrorKind::AddrNotAvailable) => None,
            Err(_) => Some(Verdict::Refused),
        }
    }
}

impl Switches {
    fn ask(&self, request: Request) -> Option<Reply> {
        self.requests.send(request).ok()?;
        self.replies.recv().ok()
    }
}

/// Serves requests in the switches' thread, until the other thread ends.
fn serve(requests: &Receiver<Request>, replies: &Sender<Reply>) {
    for request in requests {
        let reply = match request {
            Request::Configure(lines) => Reply::Configured(configure(&lines)),
            Request::Connect(target) => Reply::Connected(connect(target)),
        };
        if replies.send(reply).is_err() {
            return;
        }
    }
}

fn connect(target: SocketAddr) -> io::Result<()> {
    TcpStream::connect_timeout(&target, TIMEOUT).map(drop)
}

fn configure(lines: &str) -> Result<(), NoAnswer> {
    match ask_with_input("ip", &["-force", "-batch", "-"], lines) {
        Ok(_) | Err(NoAnswer::Refused(_)) => Ok(()),
        Err(missing) => Err(missing),
    }
}

/// Moves this thread, and so its children, into its own network namespace; returns the thread's number.
fn enter_new_namespace() -> Result<i32, NoAnswer> {
    // SAFETY: the table of open files stays shared with the other threads.
    let entered = unsafe { unshare_unsafe(UnshareFlags::NEWNET) };
    entered.map_err(|error| {
        NoAnswer::Refused(format!("a copy of the rules cannot be made: {error}"))
    })?;
    Ok(gettid().as_raw_nonzero().get())
}

fn stopped() -> NoAnswer {
    NoAnswer::Refused("the copy of the rules failed".to_owned())
}
