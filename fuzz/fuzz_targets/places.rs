//! Any text as what names a place to connect to, to listen at, or a port of the switch: nothing panics; what reads is written
//! and reads again as the same; an error says something.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::fmt::{Debug, Display};
use std::str::FromStr;
use urtica_switch::PortSpec;
use urtica_socket::Address;

fuzz_target!(|text: &str| {
    read_twice::<Address>(text);
    read_twice::<PortSpec>(text);
});

fn read_twice<T>(text: &str)
where
    T: FromStr<Err: Display> + Display + Debug + PartialEq,
{
    match text.parse::<T>() {
        Ok(value) => {
            let again = value.to_string().parse::<T>();
            assert_eq!(
                again.map_err(|error| error.to_string()),
                Ok(value),
                "{text:?}"
            );
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
