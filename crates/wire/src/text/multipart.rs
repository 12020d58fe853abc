//! Writing multipart messages like `ovs-ofctl ofp-print`.

use super::action::write_experimenter;
use super::flow::{write_duration, write_flow_stats};
use super::group::{write_group, write_group_id};
use super::matching::write_match;
use super::meter::{self, write_meter, write_meter_id};
use super::outline::write_foreign;
use super::port::{write_bits, write_port};
use super::table::{write_table_features, write_table_name};
use crate::{
    AggregateStats, Desc, Element, FlowStatsRequest, GROUP_ANY, GroupFeatures, GroupStats, List,
    MeterFeatures, MeterStats, MultipartReplyBody, MultipartRequestBody, PortNo, PortStats,
    QUEUE_ALL, QueueStats, TABLE_ALL, TableFeatures, TableForm, TableStats, Version,
};
use std::fmt::{self, Write};

/// Returns the specification's name of a request, without `OFPMP_`.
pub(super) fn request_name(body: &MultipartRequestBody<'_>) -> &'static str {
    match body {
        MultipartRequestBody::Desc => "DESC",
        MultipartRequestBody::Flow(_) => "FLOW",
        MultipartRequestBody::Aggregate(_) => "AGGREGATE",
        MultipartRequestBody::Table => "TABLE",
        MultipartRequestBody::PortStats(_) => "PORT",
        MultipartRequestBody::Queue { .. } => "QUEUE",
        MultipartRequestBody::Group(_) => "GROUP",
        MultipartRequestBody::GroupDesc => "GROUP_DESC",
        MultipartRequestBody::GroupFeatures => "GROUP_FEATURES",
        MultipartRequestBody::Meter(_) => "METER",
        MultipartRequestBody::MeterConfig(_) => "METER_CONFIG",
        MultipartRequestBody::MeterFeatures => "METER_FEATURES",
        MultipartRequestBody::TableFeatures(_) => "TABLE_FEATURES",
        MultipartRequestBody::PortDesc => "PORT_DESC",
        MultipartRequestBody::Experimenter(_) => "EXPERIMENTER",
    }
}

/// Returns the specification's name of a reply, without `OFPMP_`.
pub(super) fn reply_name(body: &MultipartReplyBody<'_>) -> &'static str {
    match body {
        MultipartReplyBody::Desc(_) => "DESC",
        MultipartReplyBody::Flow(_) => "FLOW",
        MultipartReplyBody::Aggregate(_) => "AGGREGATE",
        MultipartReplyBody::Table(_) => "TABLE",
        MultipartReplyBody::PortStats(_) => "PORT",
        MultipartReplyBody::Queue(_) => "QUEUE",
        MultipartReplyBody::Group(_) => "GROUP",
        MultipartReplyBody::GroupDesc(_) => "GROUP_DESC",
        MultipartReplyBody::GroupFeatures(_) => "GROUP_FEATURES",
        MultipartReplyBody::Meter(_) => "METER",
        MultipartReplyBody::MeterConfig(_) => "METER_CONFIG",
        MultipartReplyBody::MeterFeatures(_) => "METER_FEATURES",
        MultipartReplyBody::TableFeatures(_) => "TABLE_FEATURES",
        MultipartReplyBody::PortDesc(_) => "PORT_DESC",
        MultipartReplyBody::Experimenter(_) => "EXPERIMENTER",
    }
}

/// Writes the body of a request.
pub(super) fn write_request(
    out: &mut dyn Write,
    body: &MultipartRequestBody<'_>,
    version: Version,
) -> fmt::Result {
    match body {
        MultipartRequestBody::Flow(which) | MultipartRequestBody::Aggregate(which) => {
            write_flow_request(out, which, version)
        }
        MultipartRequestBody::PortStats(port) => write!(out, " port_no={port}"),
        MultipartRequestBody::Queue { port, queue_id } => {
            write_queue_request(out, *port, *queue_id, version)
        }
        MultipartRequestBody::Group(group_id) => {
            out.write_str(" group_id=")?;
            write_group_id(out, *group_id)
        }
        MultipartRequestBody::Meter(meter_id) | MultipartRequestBody::MeterConfig(meter_id) => {
            out.write_str(" meter=")?;
            write_meter_id(out, *meter_id)
        }
        MultipartRequestBody::TableFeatures(tables) => write_tables_features(out, tables),
        MultipartRequestBody::Experimenter(body) if TableForm::is_request(body) => {
            out.write_str(" TABLE_FORMS")
        }
        MultipartRequestBody::Experimenter(body) => {
            out.write_char(' ')?;
            write_experimenter(out, body.experimenter, body.data)
        }
        MultipartRequestBody::Desc
        | MultipartRequestBody::Table
        | MultipartRequestBody::GroupDesc
        | MultipartRequestBody::GroupFeatures
        | MultipartRequestBody::MeterFeatures
        | MultipartRequestBody::PortDesc => Ok(()),
    }
}

fn write_flow_request(
    out: &mut dyn Write,
    which: &FlowStatsRequest<'_>,
    version: Version,
) -> fmt::Result {
    if which.table_id != TABLE_ALL {
        write!(out, " table={}", which.table_id)?;
    }
    if which.out_port != PortNo::ANY {
        write!(out, " out_port={}", which.out_port)?;
    }
    if which.out_group != GROUP_ANY {
        write!(out, " out_group={}", which.out_group)?;
    }
    if which.cookie_mask != 0 {
        write!(out, " cookie={:#x}/{:#x}", which.cookie, which.cookie_mask)?;
    }
    if which.match_.fields().next().is_some() {
        out.write_char(' ')?;
    }
    write_match(out, &which.match_, version)
}

fn write_queue_request(
    out: &mut dyn Write,
    port: PortNo,
    queue_id: u32,
    version: Version,
) -> fmt::Result {
    // 1.0 uses "all ports" for 1.3's "any port".
    let any = version == Version::Of10 && port == PortNo::ALL;
    write!(out, " port={} queue=", if any { PortNo::ANY } else { port })?;
    match queue_id {
        QUEUE_ALL => out.write_str("ALL"),
        queue_id => write!(out, "{queue_id}"),
    }
}

/// Writes the body of a reply.
pub(super) fn write_reply(
    out: &mut dyn Write,
    body: &MultipartReplyBody<'_>,
    version: Version,
) -> fmt::Result {
    match body {
        MultipartReplyBody::Desc(desc) => write_desc(out, desc),
        MultipartReplyBody::Flow(rows) => {
            write_lines(out, rows, |out, row| write_flow_stats(out, row, version))
        }
        MultipartReplyBody::Aggregate(sums) => write_aggregate(out, sums),
        MultipartReplyBody::Table(rows) => {
            write_lines(out, rows, |out, row| write_table(out, row, version))
        }
        MultipartReplyBody::PortStats(rows) => {
            write!(out, " {} ports", rows.len())?;
            write_lines(out, rows, |out, row| write_port_stats(out, row, version))
        }
        MultipartReplyBody::Queue(rows) => {
            write!(out, " {} queues", rows.len())?;
            write_lines(out, rows, |out, row| write_queue(out, row, version))
        }
        MultipartReplyBody::Group(rows) => write_lines(out, rows, write_group_stats),
        MultipartReplyBody::GroupDesc(rows) => write_lines(out, rows, |out, row| {
            out.write_char(' ')?;
            write_group(out, row.group_id, row.group_type, &row.buckets)
        }),
        MultipartReplyBody::GroupFeatures(features) => write_group_features(out, features),
        MultipartReplyBody::Meter(rows) => write_blocks(out, rows, write_meter_stats),
        MultipartReplyBody::MeterConfig(rows) => write_blocks(out, rows, |out, row| {
            write_meter(out, row.meter_id, row.flags, &row.bands, "\n")
        }),
        MultipartReplyBody::MeterFeatures(features) => write_meter_features(out, features),
        MultipartReplyBody::TableFeatures(rows) => write_tables_features(out, rows),
        MultipartReplyBody::PortDesc(ports) => {
            write_lines(out, ports, |out, port| write_port(out, port, version))
        }
        MultipartReplyBody::Experimenter(body) => match TableForm::rows(version, body) {
            Ok(Some(rows)) => {
                out.write_str(" TABLE_FORMS")?;
                write_lines(out, &rows, |out, row| {
                    write!(out, "table={} form={:?}", row.table_id, row.form)
                })
            }
            Ok(None) | Err(_) => {
                out.write_char(' ')?;
                write_experimenter(out, body.experimenter, body.data)
            }
        },
    }
}

/// Writes each row after a line break.
fn write_lines<'a, T: Element<'a>>(
    out: &mut dyn Write,
    rows: &List<'a, T>,
    write_row: impl Fn(&mut dyn Write, &T) -> fmt::Result,
) -> fmt::Result {
    rows.iter().try_for_each(|row| {
        out.write_char('\n')?;
        write_row(out, &row)
    })
}

/// Writes rows of several lines, with an empty line between them.
fn write_blocks<'a, T: Element<'a>>(
    out: &mut dyn Write,
    rows: &List<'a, T>,
    write_row: impl Fn(&mut dyn Write, &T) -> fmt::Result,
) -> fmt::Result {
    for (index, row) in rows.iter().enumerate() {
        out.write_str(if index == 0 { "\n" } else { "\n\n" })?;
        write_row(out, &row)?;
    }
    Ok(())
}

fn write_desc(out: &mut dyn Write, desc: &Desc) -> fmt::Result {
    let parts = [
        ("Manufacturer", desc.mfr_desc.to_str_lossy()),
        ("Hardware", desc.hw_desc.to_str_lossy()),
        ("Software", desc.sw_desc.to_str_lossy()),
        ("Serial Num", desc.serial_num.to_str_lossy()),
        ("DP Description", desc.dp_desc.to_str_lossy()),
    ];
    parts.iter().try_for_each(|(name, text)| {
        write!(out, "\n{name}: ")?;
        write_foreign(out, text)
    })
}

fn write_aggregate(out: &mut dyn Write, sums: &AggregateStats) -> fmt::Result {
    write!(out, " packet_count={}", sums.packet_count)?;
    write!(out, " byte_count={}", sums.byte_count)?;
    write!(out, " flow_count={}", sums.flow_count)
}

fn write_table(out: &mut dyn Write, table: &TableStats, version: Version) -> fmt::Result {
    write!(out, "  table {}", table.table_id)?;
    if version == Version::Of10 {
        write_table_name(out, &table.name)?;
    }
    write!(out, ":\n    active={}", table.active_count)?;
    write!(out, ", lookup={}", table.lookup_count)?;
    write!(out, ", matched={}", table.matched_count)?;
    if version == Version::Of10 {
        write!(out, "\n    max_entries={}", table.max_entries)?;
        write!(out, "\n    wildcards={:#x}", table.wildcards)?;
    }
    Ok(())
}

/// Writes a counter by its name, or `?` if the switch does not keep it.
fn write_counter(out: &mut dyn Write, name: &str, count: u64) -> fmt::Result {
    match count {
        u64::MAX => write!(out, "{name}=?"),
        count => write!(out, "{name}={count}"),
    }
}

fn write_counters(out: &mut dyn Write, counters: &[(&str, u64)]) -> fmt::Result {
    for (index, (name, count)) in counters.iter().enumerate() {
        if index > 0 {
            out.write_str(", ")?;
        }
        write_counter(out, name, *count)?;
    }
    Ok(())
}

/// Returns `true` if the switch reports durations.
fn has_duration(sec: u32, version: Version) -> bool {
    version == Version::Of13 && sec != u32::MAX
}

fn write_port_stats(out: &mut dyn Write, port: &PortStats, version: Version) -> fmt::Result {
    write!(out, "  port {:>2}: rx ", port.port_no.to_string())?;
    let received = [
        ("pkts", port.rx_packets),
        ("bytes", port.rx_bytes),
        ("drop", port.rx_dropped),
        ("errs", port.rx_errors),
        ("frame", port.rx_frame_err),
        ("over", port.rx_over_err),
        ("crc", port.rx_crc_err),
    ];
    write_counters(out, &received)?;
    out.write_str("\n           tx ")?;
    let sent = [
        ("pkts", port.tx_packets),
        ("bytes", port.tx_bytes),
        ("drop", port.tx_dropped),
        ("errs", port.tx_errors),
        ("coll", port.collisions),
    ];
    write_counters(out, &sent)?;
    if has_duration(port.duration_sec, version) {
        out.write_str("\n           duration=")?;
        write_duration(out, port.duration_sec, port.duration_nsec)?;
    }
    Ok(())
}

fn write_queue(out: &mut dyn Write, queue: &QueueStats, version: Version) -> fmt::Result {
    write!(out, "  port {} queue {}: ", queue.port_no, queue.queue_id)?;
    let counters = [
        ("bytes", queue.tx_bytes),
        ("pkts", queue.tx_packets),
        ("errors", queue.tx_errors),
    ];
    write_counters(out, &counters)?;
    out.write_str(", duration=")?;
    if has_duration(queue.duration_sec, version) {
        write_duration(out, queue.duration_sec, queue.duration_nsec)
    } else {
        out.write_char('?')
    }
}

fn write_group_stats(out: &mut dyn Write, group: &GroupStats<'_>) -> fmt::Result {
    write!(out, " group_id={},duration=", group.group_id)?;
    write_duration(out, group.duration_sec, group.duration_nsec)?;
    write!(out, ",ref_count={}", group.ref_count)?;
    write!(
        out,
        ",packet_count={},byte_count={}",
        group.packet_count, group.byte_count
    )?;
    for (index, bucket) in group.buckets.iter().enumerate() {
        write!(out, ",bucket{index}:packet_count={}", bucket.packet_count)?;
        write!(out, ",byte_count={}", bucket.byte_count)?;
    }
    Ok(())
}

fn write_group_features(out: &mut dyn Write, features: &GroupFeatures) -> fmt::Result {
    write!(out, "\n Group table:\n    Types:  {:#x}", features.types)?;
    write!(
        out,
        "\n    Capabilities:  {:#x}",
        features.capabilities.bits()
    )?;
    let types = ["all", "select", "indirect", "fast failover"];
    let limits = features.max_groups.iter().zip(features.actions);
    for (name, (max_groups, actions)) in types.iter().zip(limits) {
        write!(
            out,
            "\n    {name} group:\n       max_groups={max_groups:#x}"
        )?;
        write!(out, "\n       actions: {actions:#010x}")?;
    }
    Ok(())
}

fn write_meter_stats(out: &mut dyn Write, meter: &MeterStats<'_>) -> fmt::Result {
    out.write_str("meter:")?;
    write_meter_id(out, meter.meter_id)?;
    write!(out, " flow_count:{}", meter.flow_count)?;
    write!(out, " packet_in_count:{}", meter.packet_in_count)?;
    write!(out, " byte_in_count:{} duration:", meter.byte_in_count)?;
    write_duration(out, meter.duration_sec, meter.duration_nsec)?;
    out.write_str(" bands:")?;
    for (index, band) in meter.bands.iter().enumerate() {
        write!(out, "\n{index}: packet_count:{}", band.packet_count)?;
        write!(out, " byte_count:{}", band.byte_count)?;
    }
    Ok(())
}

/// Types of bands by the bit of their number.
const BAND_TYPES: [(u32, &str); 2] = [(1 << 1, "drop"), (1 << 2, "dscp_remark")];

fn write_meter_features(out: &mut dyn Write, features: &MeterFeatures) -> fmt::Result {
    write!(out, "\nmax_meter:{}", features.max_meter)?;
    write!(out, " max_bands:{}", features.max_bands)?;
    write!(out, " max_color:{}", features.max_color)?;
    out.write_str("\nband_types: ")?;
    write_bits(out, features.band_types, &BAND_TYPES)?;
    out.write_str("\ncapabilities: ")?;
    let flags = meter::FLAGS.map(|(name, flag)| (flag.bits().into(), name));
    write_bits(out, features.capabilities, &flags)
}

fn write_tables_features<'a>(
    out: &mut dyn Write,
    tables: &List<'a, TableFeatures<'a>>,
) -> fmt::Result {
    write_lines(out, tables, write_table_features)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ExperimenterMultipart;

    fn reply(data: &[u8]) -> String {
        let mut out = String::new();
        let body = MultipartReplyBody::Experimenter(ExperimenterMultipart {
            data,
            ..TableForm::REPLY
        });
        write_reply(&mut out, &body, Version::Of13).expect("a String takes all");
        out
    }

    #[test]
    fn forms_of_tables_are_lines() {
        let mut out = String::new();
        let asked = MultipartRequestBody::Experimenter(TableForm::REQUEST);
        write_request(&mut out, &asked, Version::Of13).expect("a String takes all");
        assert_eq!(out, " TABLE_FORMS");
        let mut data = TableForm::REPLY.data.to_vec();
        // Control characters are escaped.
        for (table_id, form) in [(0, "direct code"), (3, "\u{1b}[2J")] {
            let form = form.into();
            let row = TableForm { table_id, form };
            row.encode(Version::Of13, &mut data).expect("it is short");
        }
        assert_eq!(
            reply(&data),
            " TABLE_FORMS\ntable=0 form=\"direct code\"\ntable=3 form=\"\\u{1b}[2J\""
        );
    }

    #[test]
    fn truncated_forms_are_written_as_bytes() {
        assert_eq!(
            reply(&[0, 0, 0, 1, 0, 9]),
            " experimenter(0x27572,000000010009)"
        );
    }
}
