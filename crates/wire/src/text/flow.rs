//! Flow entries: `table=1,priority=10,tcp,tp_dst=80 actions=output:2`.

use super::ParseError;
use super::instruction::{parse_instructions, write_instructions};
use super::item::{Item, Span};
use super::matching::{MatchItems, write_match};
use super::value::parse_port;
use crate::{
    BufferId, FlowMod, FlowModCommand, FlowModFlags, FlowStats, GROUP_ANY, Match, PortNo,
    TABLE_ALL, Version,
};
use std::fmt::{self, Write};

/// The default priority, which is omitted when writing.
const DEFAULT_PRIORITY: u16 = 0x8000;

/// The flags, in the order in which they are written.
const FLAGS: &[(&str, FlowModFlags)] = &[
    ("send_flow_rem", FlowModFlags::SEND_FLOW_REM),
    ("check_overlap", FlowModFlags::CHECK_OVERLAP),
    ("reset_counts", FlowModFlags::RESET_COUNTS),
    ("no_packet_counts", FlowModFlags::NO_PKT_COUNTS),
    ("no_byte_counts", FlowModFlags::NO_BYT_COUNTS),
    ("emerg", FlowModFlags::EMERG),
];

type Parse = fn(&mut FlowMod<'static>, &Item<'_>) -> Result<(), ParseError>;

/// The keys of a flow in addition to its match, flags and actions.
const KEYS: &[(&str, Parse)] = &[
    ("table", |flow, item| {
        put(&mut flow.table_id, item.value()?.u8())
    }),
    ("priority", |flow, item| {
        put(&mut flow.priority, item.value()?.u16())
    }),
    ("cookie", cookie),
    ("idle_timeout", |flow, item| {
        put(&mut flow.idle_timeout, item.value()?.u16())
    }),
    ("hard_timeout", |flow, item| {
        put(&mut flow.hard_timeout, item.value()?.u16())
    }),
    ("out_port", |flow, item| {
        put(&mut flow.out_port, parse_port(item.value()?))
    }),
    ("out_group", |flow, item| {
        put(
            &mut flow.out_group,
            item.value()?.u32_or(&[("any", GROUP_ANY)]),
        )
    }),
    ("buffer_id", |flow, item| {
        put(&mut flow.buffer_id, item.value()?.u32().map(BufferId))
    }),
    ("flags", |flow, item| {
        put(
            &mut flow.flags,
            item.value()?.u16().map(FlowModFlags::from_bits_retain),
        )
    }),
];

/// Keys in dumps but not in flow mods, which are ignored so that a dump can be parsed.
const COUNTERS: [&str; 5] = ["duration", "n_packets", "n_bytes", "idle_age", "hard_age"];

fn put<T>(place: &mut T, value: Result<T, ParseError>) -> Result<(), ParseError> {
    *place = value?;
    Ok(())
}

fn cookie(flow: &mut FlowMod<'static>, item: &Item<'_>) -> Result<(), ParseError> {
    let (value, mask) = item.value_and_mask()?;
    flow.cookie = value.u64()?;
    match mask {
        Some(mask) if flow.command == FlowModCommand::Add => {
            Err(mask.error("masks the cookie of a new entry", "no mask when adding"))
        }
        Some(mask) => put(&mut flow.cookie_mask, mask.u64()),
        None => Ok(()),
    }
}

/// Returns `true` if the command deletes entries, and therefore needs no actions.
fn deletes(command: FlowModCommand) -> bool {
    matches!(
        command,
        FlowModCommand::Delete | FlowModCommand::DeleteStrict
    )
}

impl FlowMod<'static> {
    /// Parses a flow in the syntax of `ovs-ofctl add-flow` and similar commands, or a row of `ovs-ofctl dump-flows`, whose
    /// counters are ignored.
    ///
    /// Missing parts are as in [`FlowMod::default`], but a delete without `table=` applies to all tables.
    ///
    /// # Errors
    /// A [`ParseError`] that names the column; also if an add or modify has no `actions=`.
    pub fn parse(command: FlowModCommand, text: &str) -> Result<Self, ParseError> {
        let mut flow = Self {
            command,
            table_id: if deletes(command) { TABLE_ALL } else { 0 },
            ..Self::default()
        };
        let mut items = Span::new(text).items();
        let mut match_items = MatchItems::default();
        let actions = loop {
            if let Some(actions) = take_actions(&mut items) {
                break Some(actions);
            }
            let Some(span) = items.next() else { break None };
            flow.take_item(span.item()?, &mut match_items)?;
        };
        flow.match_ = match_items.finish(words())?;
        match actions {
            Some(actions) => flow.instructions = parse_instructions(actions)?,
            None if deletes(command) => {}
            None => {
                return Err(items
                    .rest()
                    .error("where the actions should be", "actions=…, or actions=drop"));
            }
        }
        Ok(flow)
    }

    fn take_item<'t>(
        &mut self,
        item: Item<'t>,
        match_items: &mut MatchItems<'t>,
    ) -> Result<(), ParseError> {
        if let Some((_, parse)) = KEYS.iter().find(|(key, _)| *key == item.name()) {
            return parse(self, &item);
        }
        if let Some((_, flag)) = FLAGS.iter().find(|(name, _)| *name == item.name()) {
            self.flags |= *flag;
            return item.no_value();
        }
        if !COUNTERS.contains(&item.name()) {
            match_items.push(item);
        }
        Ok(())
    }
}

fn take_actions<'t>(items: &mut super::item::Items<'t>) -> Option<Span<'t>> {
    ["actions=", "action="]
        .iter()
        .find_map(|prefix| items.take_rest_after(prefix))
}

fn words() -> impl Iterator<Item = &'static str> {
    let keys = KEYS.iter().map(|(key, _)| *key);
    keys.chain(FLAGS.iter().map(|(name, _)| *name))
        .chain(["actions"])
}

/// Writes the flow for `ovs-ofctl add-flow` and [`FlowMod::parse`], without the command.
impl fmt::Display for FlowMod<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_cookie(f)?;
        let table = if deletes(self.command) { TABLE_ALL } else { 0 };
        write_unless(f, "table", self.table_id, table)?;
        write_unless(f, "idle_timeout", self.idle_timeout, 0)?;
        write_unless(f, "hard_timeout", self.hard_timeout, 0)?;
        write_unless(f, "out_port", self.out_port, PortNo::ANY)?;
        write_unless(f, "out_group", self.out_group, GROUP_ANY)?;
        write_unless(f, "buffer_id", self.buffer_id.0, BufferId::NONE.0)?;
        write_flag_list(f, self.flags)?;
        write_rule(f, self.priority, &self.match_, Version::Of13)?;
        f.write_str("actions=")?;
        write_instructions(f, &self.instructions, Version::Of13)
    }
}

impl FlowMod<'_> {
    fn write_cookie(&self, out: &mut dyn Write) -> fmt::Result {
        match (self.cookie, self.cookie_mask) {
            (0, 0) => Ok(()),
            (cookie, 0) => write!(out, "cookie={cookie:#x},"),
            (cookie, mask) => write!(out, "cookie={cookie:#x}/{mask:#x},"),
        }
    }
}

fn write_unless<T: PartialEq + fmt::Display>(
    out: &mut dyn Write,
    key: &str,
    value: T,
    default: T,
) -> fmt::Result {
    if value == default {
        return Ok(());
    }
    write!(out, "{key}={value},")
}

/// Writes `send_flow_rem,check_overlap,`, or the number if a bit has no name.
fn write_flag_list(out: &mut dyn Write, flags: FlowModFlags) -> fmt::Result {
    let named = FLAGS
        .iter()
        .fold(FlowModFlags::empty(), |all, (_, flag)| all | *flag);
    if !named.contains(flags) {
        return write!(out, "flags={:#x},", flags.bits());
    }
    let set = FLAGS.iter().filter(|(_, flag)| flags.contains(*flag));
    set.map(|(name, _)| name)
        .try_for_each(|name| write!(out, "{name},"))
}

/// Writes priority and match with a space after them, or nothing if both have their defaults.
pub(super) fn write_rule(
    out: &mut dyn Write,
    priority: u16,
    match_: &Match<'_>,
    version: Version,
) -> fmt::Result {
    let any = match_.fields().next().is_none();
    if priority != DEFAULT_PRIORITY {
        write!(out, "priority={priority}{}", if any { "" } else { "," })?;
    }
    write_match(out, match_, version)?;
    if priority != DEFAULT_PRIORITY || !any {
        out.write_char(' ')?;
    }
    Ok(())
}

/// Writes a row of `ovs-ofctl dump-flows`, with 1.3's words for actions.
impl fmt::Display for FlowStats<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_flow_stats(f, self, Version::Of13)
    }
}

/// Writes a row of `ovs-ofctl dump-flows`.
pub(super) fn write_flow_stats(
    out: &mut dyn Write,
    row: &FlowStats<'_>,
    version: Version,
) -> fmt::Result {
    write!(out, " cookie={:#x}, duration=", row.cookie)?;
    write_duration(out, row.duration_sec, row.duration_nsec)?;
    write!(out, ", table={}", row.table_id)?;
    write!(
        out,
        ", n_packets={}, n_bytes={}, ",
        row.packet_count, row.byte_count
    )?;
    for (key, timeout) in [("idle", row.idle_timeout), ("hard", row.hard_timeout)] {
        if timeout != 0 {
            write!(out, "{key}_timeout={timeout}, ")?;
        }
    }
    write_flags(out, row.flags)?;
    write_rule(out, row.priority, &row.match_, version)?;
    out.write_str("actions=")?;
    write_instructions(out, &row.instructions, version)
}

/// Writes seconds with zero, three or nine decimals: as few as are exact.
pub(super) fn write_duration(out: &mut dyn Write, sec: u32, nsec: u32) -> fmt::Result {
    match nsec {
        0 => write!(out, "{sec}s"),
        nsec if nsec % 1_000_000 == 0 => write!(out, "{sec}.{:03}s", nsec / 1_000_000),
        nsec => write!(out, "{sec}.{nsec:09}s"),
    }
}

/// Writes `send_flow_rem check_overlap `, with a space after each flag.
fn write_flags(out: &mut dyn Write, flags: FlowModFlags) -> fmt::Result {
    let set = FLAGS.iter().filter(|(_, flag)| flags.contains(*flag));
    set.map(|(name, _)| name)
        .try_for_each(|name| write!(out, "{name} "))
}

const COMMANDS: [(FlowModCommand, &str); 5] = [
    (FlowModCommand::Add, "ADD"),
    (FlowModCommand::Modify, "MOD"),
    (FlowModCommand::ModifyStrict, "MOD_STRICT"),
    (FlowModCommand::Delete, "DEL"),
    (FlowModCommand::DeleteStrict, "DEL_STRICT"),
];

/// Writes a flow mod as `ovs-ofctl ofp-print` does: `ADD table:1 priority=10,tcp idle:5 actions=output:2`.
pub(super) fn write_flow_mod(
    out: &mut dyn Write,
    flow: &FlowMod<'_>,
    version: Version,
) -> fmt::Result {
    let command = COMMANDS
        .iter()
        .find(|(command, _)| *command == flow.command);
    match command {
        Some((_, name)) => write!(out, "{name} ")?,
        None => write!(out, "cmd:{} ", u8::from(flow.command))?,
    }
    if flow.table_id != 0 {
        write!(out, "table:{} ", flow.table_id)?;
    }
    write_rule(out, flow.priority, &flow.match_, version)?;
    match (flow.cookie, flow.cookie_mask) {
        (0, 0) => {}
        (cookie, 0) => write!(out, "cookie:{cookie:#x} ")?,
        (cookie, mask) => write!(out, "cookie:{cookie:#x}/{mask:#x} ")?,
    }
    write_limits(out, flow)?;
    write_flags(out, flow.flags)?;
    out.write_str("actions=")?;
    write_instructions(out, &flow.instructions, version)
}

fn write_limits(out: &mut dyn Write, flow: &FlowMod<'_>) -> fmt::Result {
    if flow.idle_timeout != 0 {
        write!(out, "idle:{} ", flow.idle_timeout)?;
    }
    if flow.hard_timeout != 0 {
        write!(out, "hard:{} ", flow.hard_timeout)?;
    }
    if flow.buffer_id.is_some() {
        write!(out, "buf:{:#x} ", flow.buffer_id.0)?;
    }
    if flow.out_port != PortNo::ANY {
        write!(out, "out_port:{} ", flow.out_port)?;
    }
    if flow.out_group != GROUP_ANY {
        write!(out, "out_group:{} ", flow.out_group)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(command: FlowModCommand, text: &str) -> String {
        FlowMod::parse(command, text).expect_err(text).to_string()
    }

    #[test]
    fn a_delete_is_for_all_tables_and_needs_no_actions() {
        let flow = FlowMod::parse(FlowModCommand::Delete, "").expect("a flow");
        assert_eq!(flow.table_id, TABLE_ALL);
        assert_eq!(
            error(FlowModCommand::Add, "tcp"),
            "column 4: nothing where the actions should be; expected actions=…, or actions=drop"
        );
    }

    #[test]
    fn a_row_of_a_dump_reads_back() {
        let row = " cookie=0x1, duration=4.200s, table=2, n_packets=1, n_bytes=60, idle_timeout=5, send_flow_rem \
                   priority=65535,tcp,in_port=1 actions=output:1";
        let flow = FlowMod::parse(FlowModCommand::Add, row).expect("a flow");
        assert_eq!(
            flow.to_string(),
            "cookie=0x1,table=2,idle_timeout=5,send_flow_rem,priority=65535,tcp,in_port=1 actions=output:1"
        );
    }

    #[test]
    fn errors_suggest_keywords_too() {
        assert_eq!(
            error(FlowModCommand::Add, "tcp,prioritty=3,actions=1"),
            "column 5: 'prioritty' is not a match field or keyword; did you mean 'priority'?"
        );
        assert_eq!(
            error(FlowModCommand::Add, "cookie=1/2,actions=1"),
            "column 10: '2' masks the cookie of a new entry; expected no mask when adding"
        );
    }

    #[test]
    fn durations_have_as_few_decimals_as_are_exact() {
        let write = |sec, nsec| {
            let mut text = String::new();
            write_duration(&mut text, sec, nsec).expect("writing to a string");
            text
        };
        assert_eq!(write(4, 0), "4s");
        assert_eq!(write(4, 200_000_000), "4.200s");
        assert_eq!(write(4, 1), "4.000000001s");
    }
}
