//! The commands of the prompt: Mininet's, if they make sense here.

use super::names::Names;
use std::time::Duration;

/// The default number of pings of `h1 ping h2`.
const PINGS: u32 = 4;

/// A parsed line.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Command {
    Nothing,
    Help(Option<&'static Verb>),
    Nodes,
    Net,
    Links,
    Intfs,
    Dump,
    Flows(Option<String>),
    PingAll,
    PingPair,
    Ping {
        from: String,
        to: String,
        count: u32,
    },
    Iperf(Option<(String, String)>),
    Link {
        a: String,
        b: String,
        is_up: bool,
    },
    Switch {
        name: String,
        is_on: bool,
    },
    Wait(Duration),
    Exit,
}

/// A command in the help.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Verb {
    pub name: &'static str,
    pub arguments: &'static str,
    pub about: &'static str,
}

impl Verb {
    /// Its syntax.
    pub fn usage(&self) -> String {
        format!("{} {}", self.name, self.arguments)
            .trim_end()
            .to_owned()
    }
}

const fn verb(name: &'static str, arguments: &'static str, about: &'static str) -> Verb {
    Verb {
        name,
        arguments,
        about,
    }
}

/// The syntax of pings, which start with a host's name.
pub(super) const PING: Verb = verb(
    "HOST ping",
    "[-c COUNT] HOST",
    "Pings a host from another, by name or address.",
);

pub(super) const VERBS: [Verb; 15] = [
    verb("help", "[COMMAND]", "Lists the commands."),
    verb(
        "nodes",
        "",
        "Lists the hosts, the switches and the controller.",
    ),
    verb("net", "", "Lists the connections of each node."),
    verb("links", "", "Lists the links, and their states."),
    verb("intfs", "", "Lists the interfaces of each node."),
    verb(
        "dump",
        "",
        "Lists the nodes, with their addresses and states.",
    ),
    verb(
        "flows",
        "[SWITCH]",
        "Prints the flow entries of a switch, or of all.",
    ),
    verb("pingall", "", "Pings from every host to every other."),
    verb(
        "pingpair",
        "",
        "Pings between the first two hosts, in both directions.",
    ),
    verb(
        "iperf",
        "[HOST HOST]",
        "Sends 64 MiB from a host to another (default: first to last), for 5 s at most.",
    ),
    verb(
        "link",
        "A B up|down",
        "Repairs or cuts the links between two nodes.",
    ),
    verb("switch", "SWITCH start|stop", "Starts or stops a switch."),
    verb("wait", "SECONDS", "Waits, for commands from a file."),
    verb(
        "exit",
        "",
        "Ends the network, as does the end of the input, Ctrl-D.",
    ),
    verb("quit", "", "Like exit."),
];

/// Why a line is not a command.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum CommandError {
    #[error("there is no command '{0}'; `help` lists all commands")]
    Unknown(String),
    #[error("incomplete command '{line}'; expected: {expected}")]
    Usage { line: String, expected: String },
    #[error("there is no {kind} '{name}'; `nodes` lists all nodes")]
    NoSuchNode { kind: &'static str, name: String },
    #[error("hosts are simulated, and cannot run programs; expected: {0} ping [-c COUNT] HOST")]
    NoShell(String),
}

impl Command {
    /// Parses a line. Blank lines and lines that start with # do nothing.
    pub fn parse(line: &str, names: &Names) -> Result<Self, CommandError> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some((&first, rest)) = words.split_first() else {
            return Ok(Self::Nothing);
        };
        if first.starts_with('#') {
            return Ok(Self::Nothing);
        }
        if let Some(host) = names.host(first) {
            return Self::of_host(line, host, rest, names);
        }
        let usage = |verb: &Verb| CommandError::Usage {
            line: line.trim().to_owned(),
            expected: verb.usage(),
        };
        let known = VERBS.iter().find(|verb| verb.name == first);
        match (first, rest) {
            ("help" | "?", []) => Ok(Self::Help(None)),
            ("help" | "?", [name]) => match VERBS.iter().find(|verb| verb.name == *name) {
                Some(verb) => Ok(Self::Help(Some(verb))),
                None if *name == "ping" => Ok(Self::Help(Some(&PING))),
                None => Err(CommandError::Unknown((*name).to_owned())),
            },
            ("nodes", []) => Ok(Self::Nodes),
            ("net", []) => Ok(Self::Net),
            ("links", []) => Ok(Self::Links),
            ("intfs", []) => Ok(Self::Intfs),
            ("dump", []) => Ok(Self::Dump),
            ("flows", []) | ("dpctl", ["dump-flows"]) => Ok(Self::Flows(None)),
            ("flows", [switch]) => Ok(Self::Flows(Some(switch_of(switch, names)?))),
            ("pingall", []) => Ok(Self::PingAll),
            ("pingpair", []) => Ok(Self::PingPair),
            ("iperf", []) => Ok(Self::Iperf(None)),
            ("iperf", [from, to]) => {
                let ends = (host_of(from, names)?, host_of(to, names)?);
                Ok(Self::Iperf(Some(ends)))
            }
            ("link", [a, b, state @ ("up" | "down")]) => Ok(Self::Link {
                a: node_of(a, names)?,
                b: node_of(b, names)?,
                is_up: *state == "up",
            }),
            ("switch", [switch, state @ ("start" | "stop")]) => Ok(Self::Switch {
                name: switch_of(switch, names)?,
                is_on: *state == "start",
            }),
            ("wait", [seconds]) => match seconds.parse().map(Duration::try_from_secs_f64) {
                Ok(Ok(time)) => Ok(Self::Wait(time)),
                _ => Err(known.map_or_else(|| CommandError::Unknown(first.to_owned()), usage)),
            },
            ("exit" | "quit", []) => Ok(Self::Exit),
            _ => Err(known.map_or_else(|| CommandError::Unknown(first.to_owned()), usage)),
        }
    }

    /// Parses a command of a host.
    fn of_host(
        line: &str,
        from: &str,
        words: &[&str],
        names: &Names,
    ) -> Result<Self, CommandError> {
        let Some((&"ping", arguments)) = words.split_first() else {
            return Err(CommandError::NoShell(from.to_owned()));
        };
        let usage = || CommandError::Usage {
            line: line.trim().to_owned(),
            expected: format!("{from} ping {}", PING.arguments),
        };
        let (mut to, mut count) = (None, PINGS);
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match argument.strip_prefix("-c") {
                Some("") => count = parsed(arguments.next(), usage)?,
                Some(number) => count = parsed(Some(&number), usage)?,
                None if to.is_none() && !argument.starts_with('-') => {
                    to = Some(host_of(argument, names)?);
                }
                None => return Err(usage()),
            }
        }
        Ok(Self::Ping {
            from: from.to_owned(),
            to: to.ok_or_else(usage)?,
            count,
        })
    }
}

/// Parses a count, which must be at least 1.
fn parsed(word: Option<&&str>, usage: impl Fn() -> CommandError) -> Result<u32, CommandError> {
    let count = word.and_then(|word| word.parse().ok());
    count.filter(|&count| count > 0).ok_or_else(usage)
}

fn host_of(text: &str, names: &Names) -> Result<String, CommandError> {
    let host = names.host(text).map(str::to_owned);
    host.ok_or_else(|| no_such("host", text))
}

fn switch_of(text: &str, names: &Names) -> Result<String, CommandError> {
    let known = names.is_switch(text).then(|| text.to_owned());
    known.ok_or_else(|| no_such("switch", text))
}

fn node_of(text: &str, names: &Names) -> Result<String, CommandError> {
    match names.is_switch(text) {
        true => Ok(text.to_owned()),
        false => host_of(text, names).map_err(|_| no_such("host or switch", text)),
    }
}

fn no_such(kind: &'static str, name: &str) -> CommandError {
    CommandError::NoSuchNode {
        kind,
        name: name.to_owned(),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns the names of h1 and h2 at s1 and s2, with a link between these.
    pub fn names() -> Names {
        let owned = |(a, b): (&str, &str)| (a.to_owned(), b.to_owned());
        Names {
            hosts: vec![
                ("h1".to_owned(), [10, 0, 0, 1].into()),
                ("h2".to_owned(), [10, 0, 0, 2].into()),
            ],
            switches: vec!["s1".to_owned(), "s2".to_owned()],
            links: [("s1", "s2"), ("h1", "s1"), ("h2", "s2")].map(owned).into(),
        }
    }

    fn parse(line: &str) -> Result<Command, String> {
        Command::parse(line, &names()).map_err(|error| error.to_string())
    }

    #[test]
    fn commands_are_mininets() {
        let ping = |count| {
            Ok(Command::Ping {
                from: "h1".to_owned(),
                to: "h2".to_owned(),
                count,
            })
        };
        assert_eq!(parse("h1 ping h2"), ping(4));
        assert_eq!(parse("h1 ping -c1 h2"), ping(1));
        assert_eq!(parse("h1 ping h2 -c 7"), ping(7));
        assert_eq!(parse("h1 ping 10.0.0.2"), ping(4));
        assert_eq!(parse(" pingall "), Ok(Command::PingAll));
        assert_eq!(parse("dpctl dump-flows"), Ok(Command::Flows(None)));
        assert_eq!(parse("flows s2"), Ok(Command::Flows(Some("s2".to_owned()))));
        assert_eq!(
            parse("link s1 h1 down"),
            Ok(Command::Link {
                a: "s1".to_owned(),
                b: "h1".to_owned(),
                is_up: false
            })
        );
        assert_eq!(
            parse("wait 0.5"),
            Ok(Command::Wait(Duration::from_millis(500)))
        );
        assert_eq!(parse(""), Ok(Command::Nothing));
        assert_eq!(parse("# pingall"), Ok(Command::Nothing));
    }

    #[test]
    fn each_command_of_the_help_is_known() {
        for verb in &VERBS {
            let unknown = CommandError::Unknown(verb.name.to_owned()).to_string();
            assert_ne!(parse(verb.name), Err(unknown));
            assert_eq!(
                parse(&format!("help {}", verb.name)),
                Ok(Command::Help(Some(verb)))
            );
        }
    }

    #[test]
    fn errors_name_the_expected_input() {
        for (line, expected) in [
            (
                "dance",
                "there is no command 'dance'; `help` lists all commands",
            ),
            ("help dance", "there is no command 'dance'"),
            (
                "link s1 s2",
                "incomplete command 'link s1 s2'; expected: link A B up|down",
            ),
            (
                "link s1 s9 up",
                "there is no host or switch 's9'; `nodes` lists all nodes",
            ),
            ("flows s9", "there is no switch 's9'"),
            ("iperf h1 s1", "there is no host 's1'"),
            ("h1 ping h9", "there is no host 'h9'"),
            ("h1 ping", "expected: h1 ping [-c COUNT] HOST"),
            ("h1 ping -c 0 h2", "expected: h1 ping [-c COUNT] HOST"),
            ("h1 ping -f h2", "expected: h1 ping [-c COUNT] HOST"),
            ("h1 ifconfig", "cannot run programs; expected: h1 ping"),
            ("wait -5", "expected: wait SECONDS"),
            ("wait soon", "expected: wait SECONDS"),
            ("switch s1 off", "expected: switch SWITCH start|stop"),
        ] {
            let sentence = parse(line).unwrap_err();
            assert!(sentence.contains(expected), "{line}: {sentence}");
        }
    }
}
