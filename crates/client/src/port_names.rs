//! A switch's port names, in texts that may contain ports.

use crate::{Client, ClientError};
use urtica_wire::text::ParseError;
use urtica_wire::{Message, MultipartReplyBody, MultipartRequestBody, Port, PortNo, Version};

/// A switch's port names.
pub struct PortNames(Vec<(String, PortNo)>);

impl PortNames {
    /// Requests the names from a switch.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn query(client: &mut Client) -> Result<Self, ClientError> {
        let mut ports = Vec::new();
        match client.version() {
            Version::Of10 => {
                let features = client.request(&Message::FeaturesRequest)?;
                if let Message::FeaturesReply(features) = Message::decode(&features)?.1 {
                    ports.extend(features.ports.iter());
                }
            }
            Version::Of13 => {
                for frame in client.multipart(MultipartRequestBody::PortDesc)? {
                    if let Message::MultipartReply(reply) = Message::decode(&frame)?.1 {
                        if let MultipartReplyBody::PortDesc(some) = reply.body {
                            ports.extend(some.iter());
                        }
                    }
                }
            }
        }
        Ok(Self::of(&ports))
    }

    fn of(ports: &[Port]) -> Self {
        let named = |port: &Port| (port.name.to_str_lossy().into_owned(), port.port_no);
        Self(ports.iter().map(named).collect())
    }

    /// Returns the port with this name, which may be quoted; `None` if several ports have it.
    pub fn port(&self, name: &str) -> Option<PortNo> {
        let unquoted = name
            .strip_prefix('"')
            .and_then(|name| name.strip_suffix('"'));
        let name = unquoted.unwrap_or(name);
        let mut ports = self.0.iter().filter(|(known, _)| known == name);
        match (ports.next(), ports.next()) {
            (Some(&(_, port)), None) => Some(port),
            _ => None,
        }
    }

    /// Replaces names by numbers in a text, and parses it; also returns the parsed text.
    pub fn parse<T>(
        &self,
        text: &str,
        parse: impl Fn(&str) -> Result<T, ParseError>,
    ) -> (String, Result<T, ParseError>) {
        let mut text = text.to_owned();
        loop {
            // The parser knows the positions of ports, and accepts no names: each round replaces one name.
            match parse(&text) {
                Err(error) if error.may_be_a_port() => match self.replace(&text, &error) {
                    Some(replaced) => text = replaced,
                    None => return (text, Err(error)),
                },
                parsed => return (text, parsed),
            }
        }
    }

    /// Returns the text with a number instead of the name that an error is about.
    fn replace(&self, text: &str, error: &ParseError) -> Option<String> {
        let port = self.port(error.found())?;
        let (before, after) = text.split_at_checked(error.column() - 1)?;
        let after = after.strip_prefix(error.found())?;
        Some(format!("{before}{}{after}", port.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use urtica_wire::{FlowMod, FlowModCommand};

    fn names() -> PortNames {
        let ports = [("eth1", 1), ("s1-eth2", 2), ("twin", 3), ("twin", 4)];
        PortNames(
            ports
                .map(|(name, port)| (name.to_owned(), PortNo(port)))
                .into(),
        )
    }

    fn parsed(text: &str) -> Result<String, String> {
        let (_, parsed) = names().parse(text, |text| FlowMod::parse(FlowModCommand::Add, text));
        match parsed {
            Ok(flow) => Ok(flow.to_string()),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn names_are_accepted_as_ports() {
        for (named, numbered) in [
            (
                "in_port=eth1,actions=output:s1-eth2",
                "in_port=1,actions=output:2",
            ),
            ("in_port=\"eth1\" actions=s1-eth2", "in_port=1 actions=2"),
            ("actions=enqueue:eth1:7,eth1", "actions=enqueue:1:7,1"),
            ("in_port=3,actions=eth1,LOCAL", "in_port=3,actions=1,LOCAL"),
        ] {
            assert_eq!(parsed(named), parsed(numbered));
            assert!(parsed(named).is_ok(), "{named}");
        }
    }

    #[test]
    fn other_words_are_errors() {
        for (text, expected) in [
            (
                "in_port=eth9,actions=drop",
                "column 9: 'eth9' is not a port",
            ),
            ("in_port=twin,actions=drop", "'twin' is not a port"),
            ("actions=outptu:1", "did you mean 'output'"),
            ("in_prt=eth1,actions=drop", "column 1: 'in_prt'"),
        ] {
            let error = parsed(text).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
