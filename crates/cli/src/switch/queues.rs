//! The file of `urtica switch --queues`: the ports' queues.
//!
//! ```toml
//! [[ports]]
//! port = "eth1"
//! rate = "1Gbit"
//!
//! [[ports.queues]]
//! id = 1
//! min-rate = "100Mbit"
//! max-rate = "500Mbit"
//! priority = 0
//! ```

use serde::Deserialize;
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;
use toml::Spanned;
use urtica_config::{Fault, FileError, read_file};
use urtica_switch::{PortQueues, Queue, QueueError, Switch};
use urtica_topology::spec::bandwidth_bps;

/// A file that was read.
#[derive(Debug)]
pub struct QueueFile {
    file: PathBuf,
    text: String,
    ports: Vec<PortInFile>,
}

/// The queues of a port, and the position of its name.
#[derive(Debug, PartialEq, Eq)]
struct PortInFile {
    port: String,
    place: Range<usize>,
    queues: PortQueues,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sections {
    #[serde(default)]
    ports: Vec<PortSection>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PortSection {
    port: Spanned<String>,
    rate: Option<Spanned<String>>,
    #[serde(default)]
    queues: Vec<QueueSection>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct QueueSection {
    id: Spanned<u32>,
    min_rate: Option<Spanned<String>>,
    max_rate: Option<Spanned<String>>,
    priority: Option<u8>,
    max_packets: Option<u32>,
    max_bytes: Option<u32>,
}

impl QueueFile {
    /// Reads a file.
    ///
    /// # Errors
    /// All its faults, each with its line and the expected value.
    pub fn read(file: &Path) -> Result<Self, FileError> {
        let (file, text) = (file.to_owned(), read_file(file)?);
        match parse(&text) {
            Ok(ports) => Ok(Self { file, text, ports }),
            Err(faults) => Err(FileError::Faults { file, faults }),
        }
    }

    /// Configures the queues of the switch's ports.
    ///
    /// # Errors
    /// The faults for these ports: one does not exist, is named twice, or is too slow for the minimum rates.
    pub fn apply(&self, switch: &mut Switch, now: Duration) -> Result<(), FileError> {
        let (mut faults, mut seen) = (Vec::new(), BTreeSet::new());
        for PortInFile {
            port,
            place,
            queues,
        } in &self.ports
        {
            let problem = match switch.configure_queues(port, queues.clone(), now) {
                Ok(port_no) if seen.insert(port_no) => continue,
                Ok(port_no) => format!("port {port_no} is named twice; expected each port once"),
                Err(error) => error.to_string(),
            };
            faults.push(Fault::new(&self.text, place.clone(), problem));
        }
        match faults.is_empty() {
            true => Ok(()),
            false => Err(FileError::Faults {
                file: self.file.clone(),
                faults,
            }),
        }
    }
}

fn parse(text: &str) -> Result<Vec<PortInFile>, Vec<Fault>> {
    let sections: Sections = toml::from_str(text).map_err(|error| {
        let place = error.span().unwrap_or_default();
        vec![Fault::new(text, place, error.message().replace('\n', ", "))]
    })?;
    let mut reader = Reader {
        text,
        faults: Vec::new(),
    };
    let ports = sections.ports.into_iter();
    let ports: Vec<_> = ports.map(|section| reader.port(section)).collect();
    match reader.faults.is_empty() {
        true => Ok(ports),
        false => {
            reader.faults.sort_by_key(Fault::position);
            Err(reader.faults)
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    faults: Vec<Fault>,
}

impl Reader<'_> {
    fn port(&mut self, section: PortSection) -> PortInFile {
        let place = section.port.span();
        let before = self.faults.len();
        let mut queues = PortQueues {
            rate_bps: self.rate(section.rate),
            ..PortQueues::default()
        };
        for section in section.queues {
            let (id, place) = (*section.id.get_ref(), section.id.span());
            let queue = self.queue(section);
            if queues.queues.insert(id, queue).is_some() {
                let problem = format!("the port has a queue {id} already; expected another number");
                self.fault(place, problem);
            }
        }
        // Consequences of other faults would only distract.
        if self.faults.len() == before {
            self.check(place.clone(), queues.check());
        }
        PortInFile {
            port: section.port.into_inner(),
            place,
            queues,
        }
    }

    fn queue(&mut self, section: QueueSection) -> Queue {
        let (id, place) = (*section.id.get_ref(), section.id.span());
        let default = Queue::default();
        let before = self.faults.len();
        let queue = Queue {
            min_rate_bps: self.rate(section.min_rate),
            max_rate_bps: self.rate(section.max_rate),
            priority: section.priority.unwrap_or(default.priority),
            max_packets: section.max_packets.unwrap_or(default.max_packets),
            max_bytes: section.max_bytes.unwrap_or(default.max_bytes),
        };
        if self.faults.len() == before {
            self.check(
                place,
                PortQueues::check_number(id).and_then(|()| queue.check()),
            );
        }
        queue
    }

    fn rate(&mut self, text: Option<Spanned<String>>) -> Option<u64> {
        let text = text?;
        let rate = bandwidth_bps(text.get_ref());
        rate.map_err(|error| self.fault(text.span(), error.to_string()))
            .ok()
    }

    fn check(&mut self, place: Range<usize>, checked: Result<(), QueueError>) {
        if let Err(error) = checked {
            self.fault(place, error.to_string());
        }
    }

    fn fault(&mut self, place: Range<usize>, problem: String) {
        self.faults.push(Fault::new(self.text, place, problem));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FILE: &str = r#"
[[ports]]
port = "eth1"
rate = "1Gbit"

[[ports.queues]]
id = 1
min-rate = "100Mbit"
max-rate = "0.5Gbit"
priority = 1

[[ports.queues]]
id = 2
max-packets = 50
max-bytes = 100000

[[ports]]
port = "2"
"#;

    #[test]
    fn all_settings_are_read() {
        let ports = parse(FILE).unwrap();
        let [eth1, second] = &ports[..] else {
            panic!("expected two ports, not {ports:?}");
        };
        assert_eq!((eth1.port.as_str(), second.port.as_str()), ("eth1", "2"));
        assert_eq!(eth1.queues.rate_bps, Some(1_000_000_000));
        let first = Queue {
            min_rate_bps: Some(100_000_000),
            max_rate_bps: Some(500_000_000),
            priority: 1,
            ..Queue::default()
        };
        let other = Queue {
            max_packets: 50,
            max_bytes: 100_000,
            ..Queue::default()
        };
        assert!(eth1.queues.queues.iter().eq([(&1, &first), (&2, &other)]));
        assert_eq!(second.queues, PortQueues::default());
        assert_eq!(parse("").unwrap(), []);
    }

    /// Returns the lines and problems of a text's faults.
    fn faults(text: &str) -> Vec<String> {
        let faults = parse(text).unwrap_err();
        let faults = faults.iter();
        faults
            .map(|fault| format!("{}: {}", fault.position().0, fault.problem()))
            .collect()
    }

    #[test]
    fn faults_name_the_line_and_the_expected_value() {
        let text = "[[ports]]\nport = \"a\"\nrate = \"fast\"\n[[ports.queues]]\nid = 1\nmin-rate = \"2Mbit\"\nmax-rate = \"1Mbit\"\n\
                    [[ports.queues]]\nid = 1\n[[ports.queues]]\nid = 4294967295\n";
        let [rate, above, twice, all] = &faults(text)[..] else {
            panic!("expected four faults, not {:?}", faults(text));
        };
        assert!(
            rate.starts_with("3: 'fast' is not a bandwidth; expected a number and"),
            "{rate}"
        );
        assert!(
            above.starts_with("5: the minimum rate of 2000000 bit/s is above"),
            "{above}"
        );
        assert_eq!(
            twice,
            "9: the port has a queue 1 already; expected another number"
        );
        assert!(
            all.starts_with("11: no queue can have the number 4294967295"),
            "{all}"
        );
    }

    #[test]
    fn unknown_keys_and_sums_are_faults_of_their_lines() {
        let [unknown] = &faults("[[ports]]\nport = \"a\"\nspeed = \"1Gbit\"\n")[..] else {
            panic!("expected one fault");
        };
        assert!(
            unknown.starts_with("3: unknown field `speed`, expected"),
            "{unknown}"
        );
        let text = "\n[[ports]]\nport = \"a\"\nrate = \"1Mbit\"\n[[ports.queues]]\nid = 1\nmin-rate = \"2Mbit\"\n";
        let [sum] = &faults(text)[..] else {
            panic!("expected one fault");
        };
        assert!(
            sum.starts_with("3: the minimum rates add up to 2000000 bit/s"),
            "{sum}"
        );
    }

    proptest! {
        #[test]
        fn reading_never_panics(text in "[a-z0-9\\[\\]=.\"\n -]{0,80}") {
            let _ = parse(&text);
        }
    }
}
