//! Golden records: a line `key: value`, further lines indented by two blanks, and an empty line. `#` starts a comment; an
//! indented dot alone stands for an empty line.

use urtica_wire::{
    FlowMod, FlowModCommand, GroupMod, GroupModCommand, Message, MeterMod, MeterModCommand,
};

/// A record of a golden file.
pub struct Record<'t> {
    head: &'t str,
    rest: Vec<&'t str>,
}

/// Returns the records of a file.
pub fn records(text: &str) -> impl Iterator<Item = Record<'_>> {
    text.split("\n\n").filter_map(|block| {
        let mut lines = block
            .lines()
            .filter(|line| !line.starts_with('#') && !line.is_empty());
        let head = lines.next()?;
        let rest = lines.map(|line| line.strip_prefix("  ").unwrap_or(line));
        let rest = rest.map(|line| if line == "." { "" } else { line });
        let rest = rest.collect();
        Some(Record { head, rest })
    })
}

impl<'t> Record<'t> {
    /// Returns the key and value of the first line.
    pub fn head(&self) -> (&'t str, &'t str) {
        self.head
            .split_once(": ")
            .or(self.head.split_once(':'))
            .expect("a key and a value")
    }

    /// Returns the value of a further line.
    pub fn get(&self, key: &str) -> Option<&'t str> {
        let mut pairs = self.rest.iter().filter_map(|line| line.split_once(": "));
        pairs.find(|(name, _)| *name == key).map(|(_, value)| value)
    }

    /// Returns all further lines.
    pub fn body(&self) -> String {
        self.rest.join("\n")
    }
}

/// Returns pairs of hex digits, in groups of four bytes.
pub fn hex(bytes: &[u8]) -> String {
    let groups = bytes.chunks(4).map(|group| {
        let pairs = group.iter().map(|byte| format!("{byte:02x}"));
        pairs.collect::<String>()
    });
    groups.collect::<Vec<_>>().join(" ")
}

/// Returns the bytes for pairs of hex digits.
pub fn bytes(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let pair = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair).expect("hex digits");
        u8::from_str_radix(pair, 16).expect("hex digits")
    };
    digits.chunks(2).map(pair).collect()
}

/// Parses a request according to its command.
pub fn parse_request(command: &str, text: &str) -> Message<'static> {
    let flow = |command| FlowMod::parse(command, text).map(Message::FlowMod);
    let parsed = match command {
        "add" => flow(FlowModCommand::Add),
        "modify" => flow(FlowModCommand::Modify),
        "modify_strict" => flow(FlowModCommand::ModifyStrict),
        "delete" => flow(FlowModCommand::Delete),
        "delete_strict" => flow(FlowModCommand::DeleteStrict),
        "add-group" => GroupMod::parse(GroupModCommand::Add, text).map(Message::GroupMod),
        "del-group" => GroupMod::parse(GroupModCommand::Delete, text).map(Message::GroupMod),
        "add-meter" => MeterMod::parse(MeterModCommand::Add, text).map(Message::MeterMod),
        other => panic!("'{other}' is not a command of golden files"),
    };
    parsed.unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Writes a request in the form that [`parse_request`] parses.
pub fn written(request: &Message<'_>) -> String {
    match request {
        Message::FlowMod(flow) => flow.to_string(),
        Message::GroupMod(group) => group.to_string(),
        Message::MeterMod(meter) => meter.to_string(),
        other => panic!("{other:?} is not a request"),
    }
}
