//! Checks of a bridge's controllers and their settings.

use super::database::{OpenVswitch, Row};
use super::target::{parse, socket_of};
use crate::Finding;
use crate::finding::quoted;
use crate::plan::Plan;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;
use urtica_socket::Address;

/// Open vSwitch's default probe interval, in milliseconds.
const PROBE_MS: u64 = 5000;

/// The time limit for a controller to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Tries a connection.
type Connect = fn(SocketAddr) -> io::Result<()>;

/// A bridge, and its controllers.
struct Bridge<'a> {
    name: &'a str,
    controllers: Vec<&'a Row>,
    has_files_for_tls: bool,
    plan: &'a Plan,
    /// Connects from this machine, like the bridge.
    connect: Connect,
}

pub fn look(switch: &OpenVswitch, bridge: &Row, plan: &Plan) -> Vec<Finding> {
    look_with(switch, bridge, plan, |socket| {
        TcpStream::connect_timeout(&socket, CONNECT_TIMEOUT).map(drop)
    })
}

fn look_with(switch: &OpenVswitch, bridge: &Row, plan: &Plan, connect: Connect) -> Vec<Finding> {
    let bridge = Bridge {
        name: bridge.text("name").unwrap_or_default(),
        controllers: switch.controllers(bridge),
        has_files_for_tls: switch.ssl().is_some(),
        plan,
        connect,
    };
    let mut findings = Vec::new();
    for controller in &bridge.controllers {
        findings.extend(bridge.connection(controller));
        findings.extend(bridge.probe(controller));
        findings.extend(bridge.rate_limit(controller));
        findings.extend(bridge.connection_mode(controller));
    }
    findings.extend(bridge.roles());
    findings
}

impl Bridge<'_> {
    /// Returns the command that replaces the controller `old` by `new`.
    fn command_to_replace(&self, old: &str, new: &str) -> String {
        let targets = self.controllers.iter().filter_map(|row| row.text("target"));
        let targets = targets.map(|target| quoted(if target == old { new } else { target }));
        let targets: Vec<_> = targets.collect();
        format!(
            "ovs-vsctl set-controller {} {}",
            quoted(self.name),
            targets.join(" ")
        )
    }

    fn command_to_set(&self, controller: &Row, setting: &str) -> String {
        let id = controller.text("_uuid").unwrap_or_default();
        let record = if self.controllers.len() == 1 {
            self.name
        } else {
            id
        };
        format!("ovs-vsctl set controller {} {setting}", quoted(record))
    }

    fn connection(&self, controller: &Row) -> Option<Finding> {
        if controller.is_true("is_connected") {
            return None;
        }
        let target = controller.text("target").unwrap_or_default();
        let error = controller.entry("status", "last_error");
        let state = controller.entry("status", "state").unwrap_or("not started");
        let advice = self.advice(target, error);
        let sentence = format!(
            "Bridge {} is not connected to its controller {target} ({state}{}): {}",
            self.name,
            error.map_or_else(String::new, |error| format!(", {error}")),
            advice.reason
        );
        Some(Finding::problem(advice.name, sentence).command(advice.command))
    }

    fn advice(&self, target: &str, error: Option<&str>) -> Advice {
        let Some((address, host, port)) = parse(target) else {
            let new = self.own_target("127.0.0.1", false);
            return Advice::new(
                "bridge-controller-address",
                "this is not an address to connect to; expected tcp:HOST:PORT or ssl:HOST:PORT.",
                self.command_to_replace(target, &new),
            );
        };
        if let Some(wrong) = self.wrong_protocol(target, &address, &host, port) {
            return wrong;
        }
        if address.is_tls() && !self.has_files_for_tls {
            return Advice::new(
                "bridge-without-certificates",
                "Open vSwitch has no key and no certificates for ssl:; ovs-pki makes them.",
                "ovs-pki req+sign s1 switch && ovs-vsctl set-ssl \"$PWD/s1-privkey.pem\" \"$PWD/s1-cert.pem\" \
                 /var/lib/openvswitch/pki/controllerca/cacert.pem",
            );
        }
        let is_served = self.plan.sockets().any(|(socket, _)| socket.port() == port);
        if is_here(&host) && !is_served {
            let new = self.own_target(&host, address.is_tls());
            let reason = format!(
                "this is the local machine, but the controller listens at {}, not at port {port}.",
                self.listening()
            );
            let command = self.command_to_replace(target, &new);
            return Advice::new("bridge-controller-address", reason, command);
        }
        match error {
            Some(error) if error.contains("refused") && is_here(&host) => Advice::new(
                "bridge-not-connected",
                "no controller listens there; start it.",
                self.plan.run_with(&[]),
            ),
            _ => Advice::new(
                "bridge-not-connected",
                self.tried(target),
                format!("nc -zv {} {port}", quoted(&host)),
            ),
        }
    }

    /// Describes the result of a connection to the target from this machine.
    fn tried(&self, target: &str) -> &'static str {
        let Some(socket) = socket_of(target) else {
            return "expected an IP address, or a name that resolves to one.";
        };
        match (self.connect)(socket).map_err(|error| error.kind()) {
            Ok(()) => {
                "a connection from this machine succeeds now; if the bridge stays disconnected, the controller refuses it: see the controller's log."
            }
            Err(ErrorKind::ConnectionRefused) => {
                "nothing listens there, or a firewall rejects the connection."
            }
            Err(ErrorKind::TimedOut | ErrorKind::WouldBlock) => {
                "nothing replies there: a firewall drops the packets, or the machine is off."
            }
            Err(ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable) => {
                "there is no path to that address from this machine."
            }
            Err(_) => "a connection from this machine fails, too.",
        }
    }

    /// Reports that only one end uses TLS.
    fn wrong_protocol(
        &self,
        target: &str,
        address: &Address,
        host: &str,
        port: u16,
    ) -> Option<Advice> {
        let mut sockets = self.plan.sockets();
        let (_, listen) = sockets.find(|(socket, _)| socket.port() == port)?;
        if !is_here(host) || listen.is_tls() == address.is_tls() {
            return None;
        }
        let (reason, method) = match listen.is_tls() {
            true => (
                "the controller speaks TLS at that port; expected ssl:.",
                "ssl",
            ),
            false => (
                "the controller does not speak TLS at that port; expected tcp:.",
                "tcp",
            ),
        };
        let (_, rest) = target.split_once(':')?;
        let command = self.command_to_replace(target, &format!("{method}:{rest}"));
        Some(Advice::new("bridge-controller-tls", reason, command))
    }

    /// Returns the planned controller's address at this host; `is_tls` chooses between addresses with and without
    /// TLS.
    fn own_target(&self, host: &str, is_tls: bool) -> String {
        let sockets: Vec<(SocketAddr, &Address)> = self.plan.sockets().collect();
        let suitable = sockets
            .iter()
            .find(|(_, address)| address.is_tls() == is_tls);
        let Some((socket, address)) = suitable.or(sockets.first()) else {
            return format!("tcp:{host}:{}", urtica_socket::DEFAULT_PORT);
        };
        let method = if address.is_tls() { "ssl" } else { "tcp" };
        match socket.ip().is_unspecified() {
            true if host.contains(':') => format!("{method}:[{host}]:{}", socket.port()),
            true => format!("{method}:{host}:{}", socket.port()),
            false => format!("{method}:{socket}"),
        }
    }

    fn listening(&self) -> String {
        let addresses = self.plan.listen.iter().map(Address::to_string);
        addresses.collect::<Vec<_>>().join(" and ")
    }

    fn probe(&self, controller: &Row) -> Option<Finding> {
        let probe_ms = controller.number("inactivity_probe")?;
        let target = controller.text("target").unwrap_or_default();
        let why = match probe_ms {
            0 => "it never notices that a controller has died".to_owned(),
            1..1000 => "it disconnects from a controller that is briefly busy".to_owned(),
            60_001.. => format!(
                "it notices a dead controller only after {} s",
                probe_ms / 1000
            ),
            _ => return None,
        };
        let sentence = format!(
            "Bridge {} probes {target} after {probe_ms} ms of silence (inactivity_probe): {why}. The default is \
             {PROBE_MS}.",
            self.name
        );
        let command = self.command_to_set(controller, &format!("inactivity_probe={PROBE_MS}"));
        Some(Finding::warning("bridge-inactivity-probe", sentence).command(command))
    }

    fn rate_limit(&self, controller: &Row) -> Option<Finding> {
        let limit = controller.number("controller_rate_limit")?;
        let target = controller.text("target").unwrap_or_default();
        let sentence = format!(
            "Bridge {} sends {target} at most {limit} packet-ins a second (controller_rate_limit), and drops the others: \
             their flows wait, or fail.",
            self.name
        );
        let id = controller.text("_uuid").unwrap_or_default();
        let columns = "controller_rate_limit controller_burst_limit";
        let command = format!("ovs-vsctl clear controller {} {columns}", quoted(id));
        Some(Finding::warning("bridge-rate-limit", sentence).command(command))
    }

    fn connection_mode(&self, controller: &Row) -> Option<Finding> {
        let (_, host, _) = parse(controller.text("target")?)?;
        if controller.text("connection_mode") == Some("out-of-band") || !is_here(&host) {
            return None;
        }
        let sentence = format!(
            "Bridge {} expects its controller behind its own ports (connection_mode in-band), and has hidden flow \
             entries for that, but the controller is on this machine.",
            self.name
        );
        let command = self.command_to_set(controller, "connection_mode=out-of-band");
        Some(Finding::note("bridge-in-band", sentence).command(command))
    }

    fn roles(&self) -> Option<Finding> {
        let connected = self
            .controllers
            .iter()
            .filter(|row| row.is_true("is_connected"));
        let equal = connected.filter(|row| !matches!(row.text("role"), Some("master" | "slave")));
        let targets: Vec<_> = equal.filter_map(|row| row.text("target")).collect();
        if targets.len() < 2 {
            return None;
        }
        let sentence = format!(
            "Bridge {} has several equal controllers ({}): each of them answers every packet-in, so packets arrive \
             twice; make one the primary, and the others secondaries.",
            self.name,
            targets.join(" and ")
        );
        let finding = Finding::warning("bridge-equal-controllers", sentence);
        Some(finding.command(self.plan.run_with(&[("--role", "primary")])))
    }
}

/// The reason why a bridge is not connected, with commands.
struct Advice {
    name: &'static str,
    reason: String,
    command: String,
}

impl Advice {
    fn new(name: &'static str, reason: impl Into<String>, command: impl Into<String>) -> Self {
        Self {
            name,
            reason: reason.into(),
            command: command.into(),
        }
    }
}

/// Returns `true` if this is the local machine.
fn is_here(host: &str) -> bool {
    let address = host.parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| UdpSocket::bind((address, 0)).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the findings for a bridge with these controllers: target, connected, role, probe, mode.
    fn found(listen: &str, controllers: &[&str]) -> Vec<Finding> {
        let rows: Vec<_> = (0..)
            .zip(controllers)
            .map(|(id, row)| format!(r#"[["uuid","{id}"],{row}]"#))
            .collect();
        let ids: Vec<_> = (0..controllers.len())
            .map(|id| format!(r#"["uuid","{id}"]"#))
            .collect();
        let printed = format!(
            r#"{{"data":[],"headings":[]}}{{"data":[["b",["set",[{}]]]],"headings":["name","controller"]}}
               {{"data":[{}],"headings":["_uuid","target","is_connected","role","inactivity_probe","connection_mode","controller_rate_limit"]}}"#,
            ids.join(","),
            rows.join(",")
        );
        let switch = OpenVswitch::of(&printed);
        let plan = Plan {
            listen: vec![listen.parse().unwrap()],
            ..Plan::default()
        };
        let timed_out = |_| Err(ErrorKind::TimedOut.into());
        look_with(&switch, switch.bridges().next().unwrap(), &plan, timed_out)
    }

    fn names(listen: &str, controllers: &[&str]) -> Vec<&'static str> {
        found(listen, controllers)
            .iter()
            .map(|finding| finding.name)
            .collect()
    }

    #[test]
    fn reports_why_a_bridge_is_alone() {
        let with = |target: &str| format!(r#""{target}",false,"other",5000,"out-of-band""#);
        for (target, name, command) in [
            (
                "tcp:127.0.0.1:7000",
                "bridge-controller-address",
                "ovs-vsctl set-controller b tcp:127.0.0.1:6653",
            ),
            (
                "ssl:127.0.0.1:6653",
                "bridge-controller-tls",
                "ovs-vsctl set-controller b tcp:127.0.0.1:6653",
            ),
            (
                "tcp:",
                "bridge-controller-address",
                "ovs-vsctl set-controller b tcp:127.0.0.1:6653",
            ),
            (
                "tcp:192.0.2.1:6653",
                "bridge-not-connected",
                "nc -zv 192.0.2.1 6653",
            ),
        ] {
            let found = found("ptcp:6653", &[&with(target)]);
            assert_eq!((found.len(), found[0].name), (1, name), "{target}");
            assert_eq!(found[0].commands, [command], "{target}");
        }
        let found = found("pssl:6653:127.0.0.1", &[&with("ssl:127.0.0.1:6653")]);
        assert_eq!(found[0].name, "bridge-without-certificates");
    }

    #[test]
    fn reports_the_result_of_a_connection() {
        let plan = Plan::default();
        let bridge = |connect| Bridge {
            name: "b",
            controllers: Vec::new(),
            has_files_for_tls: false,
            plan: &plan,
            connect,
        };
        let connects: [(Connect, &str); 4] = [
            (|_| Ok(()), "succeeds now"),
            (
                |_| Err(ErrorKind::ConnectionRefused.into()),
                "nothing listens",
            ),
            (|_| Err(ErrorKind::TimedOut.into()), "nothing replies"),
            (|_| Err(ErrorKind::HostUnreachable.into()), "no path"),
        ];
        for (connect, expected) in connects {
            let told = bridge(connect).tried("tcp:192.0.2.1:6653");
            assert!(told.contains(expected), "{told}");
        }
        let told = bridge(|_| Ok(())).tried("tcp:name.example:6653");
        assert!(told.contains("expected an IP address"), "{told}");
    }

    #[test]
    fn settings_of_the_connection_are_judged() {
        let right = r#""tcp:127.0.0.1:6653",true,"master",["set",[]],"out-of-band""#;
        assert!(names("ptcp:6653", &[right]).is_empty());
        let mute = r#""tcp:127.0.0.1:6653",true,"other",0,"out-of-band""#;
        assert_eq!(names("ptcp:6653", &[mute]), ["bridge-inactivity-probe"]);
        let inside = r#""tcp:127.0.0.1:6653",true,"other",5000,["set",[]]"#;
        assert_eq!(names("ptcp:6653", &[inside]), ["bridge-in-band"]);
        let limited = format!("{right},100");
        assert_eq!(names("ptcp:6653", &[&limited]), ["bridge-rate-limit"]);
        let equal = right.replace("master", "other");
        assert_eq!(
            names("ptcp:6653", &[&equal, &equal]),
            ["bridge-equal-controllers"]
        );
        assert!(names("ptcp:6653", &[right, &right.replace("master", "slave")]).is_empty());
    }
}
