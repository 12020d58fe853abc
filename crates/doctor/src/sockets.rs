//! Reads listening and connected sockets, and their processes, from `/proc`.

use crate::finding::quoted;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The state of a listening socket in `/proc/net/tcp`.
const LISTEN: &str = "0A";

/// The state of a connected socket.
const ESTABLISHED: &str = "01";

/// A TCP socket.
#[derive(Debug, PartialEq, Eq)]
pub struct TcpSocket {
    /// Its own address.
    pub address: SocketAddr,
    remote: SocketAddr,
    state: String,
    inode: u64,
}

/// A process that has a socket.
#[derive(Debug)]
pub struct Process {
    pub id: u32,
    pub name: String,
    /// The systemd unit of which it is the main process, if visible.
    unit: Option<String>,
}

/// Returns all listening TCP sockets of this network namespace.
pub fn listening() -> Vec<TcpSocket> {
    in_state(LISTEN).collect()
}

/// Returns `true` if a process of this name is connected to that address.
pub fn is_connected(process: &str, remote: SocketAddr) -> bool {
    let mut connected = in_state(ESTABLISHED).filter(|socket| socket.remote == remote);
    connected.any(|socket| socket.process().is_some_and(|found| found.name == process))
}

fn in_state(state: &'static str) -> impl Iterator<Item = TcpSocket> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(fs::read_to_string);
    let tables = tables.into_iter().flatten();
    let sockets = tables.flat_map(|table| parse(&table));
    sockets.filter(move |socket| socket.state == state)
}

fn parse(table: &str) -> Vec<TcpSocket> {
    table.lines().filter_map(parse_line).collect()
}

/// Parses `sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode …`.
fn parse_line(line: &str) -> Option<TcpSocket> {
    let fields: Vec<_> = line.split_whitespace().collect();
    Some(TcpSocket {
        address: parse_address(fields.get(1)?)?,
        remote: parse_address(fields.get(2)?)?,
        state: (*fields.get(3)?).to_owned(),
        inode: fields.get(9)?.parse().ok()?,
    })
}

fn parse_address(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    Some(SocketAddr::new(parse_ip(address)?, port))
}

/// Parses an address of 32-bit words, each in the machine's byte order.
fn parse_ip(digits: &str) -> Option<IpAddr> {
    let word = |index: usize| {
        let digits = digits.get(8 * index..8 * index + 8)?;
        Some(u32::from_str_radix(digits, 16).ok()?.to_ne_bytes())
    };
    match digits.len() {
        8 => Some(Ipv4Addr::from(word(0)?).into()),
        32 => {
            let words = [word(0)?, word(1)?, word(2)?, word(3)?].concat();
            let bytes: [u8; 16] = words.try_into().ok()?;
            Some(Ipv6Addr::from(bytes).into())
        }
        _ => None,
    }
}

impl TcpSocket {
    /// Returns `true` if it prevents listening on that address.
    pub fn is_in_the_way_of(&self, wanted: SocketAddr) -> bool {
        let (own, other) = (self.address.ip(), wanted.ip());
        self.address.port() == wanted.port()
            && (own == other || own.is_unspecified() || other.is_unspecified())
    }

    /// Returns its process; `None` if not visible to us.
    pub fn process(&self) -> Option<Process> {
        let socket = format!("socket:[{}]", self.inode);
        let processes = fs::read_dir("/proc").ok()?.flatten();
        let mut ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        ids.find(|id| has_open(*id, &socket)).map(Process::new)
    }
}

fn has_open(process: u32, file: &str) -> bool {
    let Ok(files) = fs::read_dir(format!("/proc/{process}/fd")) else {
        return false;
    };
    let mut links = files
        .flatten()
        .filter_map(|entry| fs::read_link(entry.path()).ok());
    links.any(|link| link.as_os_str() == file)
}

impl Process {
    fn new(id: u32) -> Self {
        let read =
            |file: &str| fs::read_to_string(format!("/proc/{id}/{file}")).unwrap_or_default();
        let is_main = parent(&read("stat")) == Some(1);
        let unit = unit(&read("cgroup")).filter(|_| is_main);
        Self {
            id,
            name: read("comm").trim_end().to_owned(),
            unit,
        }
    }

    /// Returns the command that ends the process for good: systemd would restart a service.
    pub fn command_to_end(&self) -> String {
        match &self.unit {
            Some(unit) => format!("systemctl stop {}", quoted(unit)),
            None => format!("kill {}", self.id),
        }
    }
}

/// Returns the fourth field, after a name in parentheses that may itself contain spaces and parentheses.
fn parent(stat: &str) -> Option<u32> {
    let (_, after) = stat.rsplit_once(')')?;
    after.split_whitespace().nth(1)?.parse().ok()
}

fn unit(cgroups: &str) -> Option<String> {
    let mut units = cgroups.lines().filter_map(|line| line.rsplit('/').next());
    units
        .find(|name| name.ends_with(".service"))
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn listening_sockets_are_read() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 0100007F:19FD 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0\n\
            1: 0100007F:19FD 0100007F:8000 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 0\n\
            2: 00000000000000000000000001000000:1F90 00000000000000000000000000000000:0000 0A 0:0 00:0 0 0 0 12 1\n\
            nonsense 0 0 0A\n";
        let mut found = parse(table);
        let connected = found.remove(1);
        assert_eq!(connected.state, ESTABLISHED);
        assert_eq!(connected.remote.to_string(), "127.0.0.1:32768");
        let addresses: Vec<_> = found
            .iter()
            .map(|found| found.address.to_string())
            .collect();
        assert_eq!(addresses, ["127.0.0.1:6653", "[::1]:8080"]);
        assert_eq!(found[0].inode, 4711);
        assert!(found[0].is_in_the_way_of("0.0.0.0:6653".parse().unwrap()));
        assert!(!found[0].is_in_the_way_of("127.0.0.2:6653".parse().unwrap()));
        assert!(!found[0].is_in_the_way_of("127.0.0.1:6633".parse().unwrap()));
    }

    #[test]
    fn our_own_socket_is_found() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let found = listening()
            .into_iter()
            .find(|found| found.address == address);
        let process = found.unwrap().process().unwrap();
        assert_eq!(process.id, std::process::id());
        assert!(process.command_to_end().ends_with(&process.id.to_string()));
    }

    #[test]
    fn our_own_connection_is_found() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let name = fs::read_to_string("/proc/self/comm").unwrap();
        assert!(!is_connected(name.trim_end(), address));
        let _connected = std::net::TcpStream::connect(address).unwrap();
        assert!(is_connected(name.trim_end(), address));
        assert!(!is_connected("another", address));
    }

    #[test]
    fn services_are_stopped_and_not_killed() {
        assert_eq!(parent("12 (a b) c) S 1 12"), Some(1));
        assert_eq!(parent("broken"), None);
        let cgroup = "0::/system.slice/nginx.service\n";
        assert_eq!(unit(cgroup).as_deref(), Some("nginx.service"));
        assert_eq!(unit("0::/user.slice/session-1.scope\n"), None);
    }
}
