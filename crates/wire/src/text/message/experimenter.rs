//! Writing experimenter messages: Open vSwitch's standard messages (Nicira's), and the bundles that the Open Networking
//! Foundation added to 1.3 (extension 230). Others are written as bytes.

use super::{Detail, message, write_async, write_role_name};
use crate::text::action;
use crate::{Experimenter, Message, NICIRA, NiciraMessage};
use std::fmt::{self, Write};

/// The Open Networking Foundation's experimenter id.
const ONF: u32 = 0x4f4e_4600;

const NXT_SET_FLOW_FORMAT: u32 = 12;
const NXT_FLOW_MOD_TABLE_ID: u32 = 15;
const NXT_SET_PACKET_IN_FORMAT: u32 = 16;
const NXT_FLOW_AGE: u32 = 18;
const NXT_SET_CONTROLLER_ID: u32 = 20;

const ONFT_BUNDLE_CONTROL: u32 = 2300;
const ONFT_BUNDLE_ADD_MESSAGE: u32 = 2301;

const FLOW_FORMATS: &[(u32, &str)] = &[(0, "openflow10"), (2, "nxm")];
const PACKET_IN_FORMATS: &[(u32, &str)] =
    &[(0, "standard"), (1, "nxt_packet_in"), (2, "nxt_packet_in2")];
const BUNDLE_CONTROLS: &[(u32, &str)] = &[
    (0, "OPEN_REQUEST"),
    (1, "OPEN_REPLY"),
    (2, "CLOSE_REQUEST"),
    (3, "CLOSE_REPLY"),
    (4, "COMMIT_REQUEST"),
    (5, "COMMIT_REPLY"),
    (6, "DISCARD_REQUEST"),
    (7, "DISCARD_REPLY"),
];

/// Writes an experimenter message after its head.
pub(super) fn write_experimenter_message(
    out: &mut dyn Write,
    vendor: &Experimenter<'_>,
    detail: Detail,
) -> fmt::Result {
    out.write_char(' ')?;
    let number = |bytes: &[u8; 4]| u32::from_be_bytes(*bytes);
    let (what, body) = match vendor.data.split_first_chunk() {
        Some((what, body)) => (number(what), body),
        None => return write_bytes(out, vendor),
    };
    match (vendor.experimenter, what, body) {
        (NICIRA, NXT_SET_FLOW_FORMAT, &[a, b, c, d]) => {
            out.write_str("NXT_SET_FLOW_FORMAT format=")?;
            write_named(out, number(&[a, b, c, d]), FLOW_FORMATS)
        }
        (NICIRA, NXT_FLOW_MOD_TABLE_ID, &[set, ..]) if body.len() == 8 => {
            out.write_str("NXT_FLOW_MOD_TABLE_ID ")?;
            out.write_str(if set == 0 { "disable" } else { "enable" })
        }
        (NICIRA, NXT_SET_PACKET_IN_FORMAT, &[a, b, c, d]) => {
            out.write_str("NXT_SET_PACKET_IN_FORMAT format=")?;
            write_named(out, number(&[a, b, c, d]), PACKET_IN_FORMATS)
        }
        (NICIRA, NXT_FLOW_AGE, []) => out.write_str("NXT_FLOW_AGE"),
        (NICIRA, NXT_SET_CONTROLLER_ID, &[.., high, low]) if body.len() == 8 => {
            let id = u16::from_be_bytes([high, low]);
            write!(out, "NXT_SET_CONTROLLER_ID id={id}")
        }
        (NICIRA, ..) => write_nicira(out, vendor),
        (ONF, ONFT_BUNDLE_CONTROL, &[a, b, c, d, t0, t1, f0, f1]) => {
            out.write_str("ONFT_BUNDLE_CONTROL ")?;
            write!(out, "bundle_id={:#x} type=", number(&[a, b, c, d]))?;
            write_named(out, number(&[0, 0, t0, t1]), BUNDLE_CONTROLS)?;
            write_bundle_flags(out, u16::from_be_bytes([f0, f1]))
        }
        (ONF, ONFT_BUNDLE_ADD_MESSAGE, &[a, b, c, d, _, _, f0, f1, ref added @ ..]) => {
            out.write_str("ONFT_BUNDLE_ADD_MESSAGE ")?;
            write!(out, "bundle_id={:#x}", number(&[a, b, c, d]))?;
            write_bundle_flags(out, u16::from_be_bytes([f0, f1]))?;
            write_added(out, added, detail)
        }
        _ => write_bytes(out, vendor),
    }
}

/// Writes the messages that this library decodes.
fn write_nicira(out: &mut dyn Write, vendor: &Experimenter<'_>) -> fmt::Result {
    match NiciraMessage::decode(vendor) {
        Ok(Some(NiciraMessage::RoleRequest(role))) => {
            out.write_str("NXT_ROLE_REQUEST role=")?;
            write_role_name(out, role)
        }
        Ok(Some(NiciraMessage::RoleReply(role))) => {
            out.write_str("NXT_ROLE_REPLY role=")?;
            write_role_name(out, role)
        }
        Ok(Some(NiciraMessage::SetAsync(config))) => {
            out.write_str("NXT_SET_ASYNC_CONFIG")?;
            write_async(out, &config)
        }
        Ok(None) | Err(_) => write_bytes(out, vendor),
    }
}

fn write_bytes(out: &mut dyn Write, vendor: &Experimenter<'_>) -> fmt::Result {
    action::write_experimenter(out, vendor.experimenter, vendor.data)
}

/// Writes a number by its name, if it has one.
fn write_named(out: &mut dyn Write, number: u32, names: &[(u32, &str)]) -> fmt::Result {
    match names.iter().find(|(known, _)| *known == number) {
        Some((_, name)) => out.write_str(name),
        None => write!(out, "{number}"),
    }
}

fn write_bundle_flags(out: &mut dyn Write, flags: u16) -> fmt::Result {
    match flags {
        0 => Ok(()),
        1 => out.write_str(" flags=atomic"),
        2 => out.write_str(" flags=ordered"),
        3 => out.write_str(" flags=atomic,ordered"),
        other => write!(out, " flags={other:#06x}"),
    }
}

/// Writes the message that is added to a bundle.
fn write_added(out: &mut dyn Write, added: &[u8], detail: Detail) -> fmt::Result {
    match Message::decode(added) {
        // The peer must not determine how deeply bundles and errors, which contain messages, recurse.
        Ok((_, Message::Experimenter(inner))) => {
            out.write_char('\n')?;
            write_bytes(out, &inner)
        }
        Ok((_, Message::Error(inner))) => write!(out, "\nOFPT_ERROR: {}", inner.code),
        Ok((header, inner)) => {
            out.write_char('\n')?;
            message(&header, &inner).write(out, detail)
        }
        Err(_) => write!(out, "\n{} bytes that are no message", added.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(experimenter: u32, data: &[u8]) -> String {
        let mut out = String::new();
        let vendor = Experimenter { experimenter, data };
        write_experimenter_message(&mut out, &vendor, Detail::Brief).expect("a String takes all");
        out
    }

    #[test]
    fn standard_messages_are_written_in_words() {
        for (data, text) in [
            (
                &[0, 0, 0, 10, 0, 0, 0, 1][..],
                " NXT_ROLE_REQUEST role=master",
            ),
            (&[0, 0, 0, 11, 0, 0, 0, 2], " NXT_ROLE_REPLY role=slave"),
            (
                &[0, 0, 0, 12, 0, 0, 0, 2],
                " NXT_SET_FLOW_FORMAT format=nxm",
            ),
            (&[0, 0, 0, 12, 0, 0, 0, 9], " NXT_SET_FLOW_FORMAT format=9"),
            (
                &[0, 0, 0, 15, 1, 0, 0, 0, 0, 0, 0, 0],
                " NXT_FLOW_MOD_TABLE_ID enable",
            ),
            (
                &[0, 0, 0, 16, 0, 0, 0, 1],
                " NXT_SET_PACKET_IN_FORMAT format=nxt_packet_in",
            ),
            (&[0, 0, 0, 18], " NXT_FLOW_AGE"),
            (
                &[0, 0, 0, 20, 0, 0, 0, 0, 0, 0, 1, 2],
                " NXT_SET_CONTROLLER_ID id=258",
            ),
        ] {
            assert_eq!(written(NICIRA, data), text);
        }
        let open = [0, 0, 8, 0xfc, 0, 0, 0, 7, 0, 0, 0, 3];
        let text = " ONFT_BUNDLE_CONTROL bundle_id=0x7 type=OPEN_REQUEST flags=atomic,ordered";
        assert_eq!(written(ONF, &open), text);
        let mut add = vec![0, 0, 8, 0xfd, 0, 0, 0, 7, 0, 0, 0, 1];
        add.extend([4, 20, 0, 8, 0, 0, 0, 9]);
        let text = " ONFT_BUNDLE_ADD_MESSAGE bundle_id=0x7 flags=atomic\nOFPT_BARRIER_REQUEST (OF1.3) (xid=0x9):";
        assert_eq!(written(ONF, &add), text);
    }

    #[test]
    fn unknown_and_malformed_messages_are_written_as_bytes() {
        for (experimenter, data, text) in [
            (7, &[1, 2][..], " experimenter(0x7,0102)"),
            (
                NICIRA,
                &[0, 0, 0, 10, 0],
                " experimenter(0x2320,0000000a00)",
            ),
            (
                NICIRA,
                &[0, 0, 0, 20, 1],
                " experimenter(0x2320,0000001401)",
            ),
            (NICIRA, &[0, 0, 0, 99], " experimenter(0x2320,00000063)"),
            (
                ONF,
                &[0, 0, 8, 0xfc, 1],
                " experimenter(0x4f4e4600,000008fc01)",
            ),
        ] {
            assert_eq!(written(experimenter, data), text);
        }
    }

    /// Each level is an error about a message that adds the next error to a bundle.
    #[test]
    fn errors_in_bundles_are_not_followed() {
        let mut message = Vec::new();
        while message.len() < 60_000 {
            let add = [&[4, 4][..], &length(message.len() + 24), &[0, 0, 0, 9]].concat();
            let add = [
                &add[..],
                &[0x4f, 0x4e, 0x46, 0, 0, 0, 8, 0xfd, 0, 0, 0, 7, 0, 0, 0, 1],
            ]
            .concat();
            let add = [add, message].concat();
            let error = [
                &[4, 1][..],
                &length(add.len() + 12),
                &[0, 0, 0, 9, 0, 1, 0, 1],
            ]
            .concat();
            message = [error, add].concat();
        }
        let (header, decoded) = Message::decode(&message).expect("a message");
        let text = format!("{:#}", crate::text::message(&header, &decoded));
        assert_eq!(text.matches("ONFT_BUNDLE_ADD_MESSAGE").count(), 1, "{text}");
    }

    fn length(bytes: usize) -> [u8; 2] {
        (bytes as u16).to_be_bytes()
    }

    #[test]
    fn bundles_in_bundles_are_not_followed() {
        let inner = [
            4, 4, 0, 28, 0, 0, 0, 9, 0x4f, 0x4e, 0x46, 0, 0, 0, 8, 0xfd, 0, 0, 0, 7, 0, 0, 0, 1, 4,
            20, 0, 8,
        ];
        let data = [&[0, 0, 8, 0xfd, 0, 0, 0, 7, 0, 0, 0, 1][..], &inner].concat();
        let text = written(ONF, &data);
        assert!(
            text.ends_with("\nexperimenter(0x4f4e4600,000008fd000000070000000104140008)"),
            "{text}"
        );
        let cut = written(ONF, &data[..20]);
        assert!(cut.ends_with("\n8 bytes that are no message"), "{cut}");
    }
}
