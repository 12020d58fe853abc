//! Any bytes, as text and as a message: nothing panics; a text that reads is written and reads again as the same value;
//! a message that decodes is printed in both forms.

#![no_main]

use std::fmt::{Debug, Display};

use libfuzzer_sys::fuzz_target;
use urtica_wire::text::{Actions, Instructions, ParseError, message};
use urtica_wire::{
    FlowMod, FlowModCommand, GroupMod, GroupModCommand, Match, Message, MeterMod, MeterModCommand,
};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = std::str::from_utf8(bytes) {
        read_twice(text, |text| text.parse::<Match>());
        read_twice(text, |text| text.parse::<Actions>());
        read_twice(text, |text| text.parse::<Instructions>());
        for command in 0..5 {
            read_twice(text, |text| {
                FlowMod::parse(FlowModCommand::from(command), text)
            });
        }
        read_twice(text, |text| GroupMod::parse(GroupModCommand::Add, text));
        read_twice(text, |text| MeterMod::parse(MeterModCommand::Add, text));
    }
    if let Ok((header, decoded)) = Message::decode(bytes) {
        let line = message(&header, &decoded).to_string();
        assert!(!line.contains('\n'), "{line:?}");
        let _ = format!("{:#}", message(&header, &decoded));
    }
});

fn read_twice<T: Display + Debug + PartialEq>(
    text: &str,
    parse: impl Fn(&str) -> Result<T, ParseError>,
) {
    match parse(text) {
        Ok(value) => assert_eq!(parse(&value.to_string()).as_ref(), Ok(&value), "{text:?}"),
        Err(error) => assert!(text[error.column() - 1..].starts_with(error.found())),
    }
}
