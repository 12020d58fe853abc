//! Writing whole messages like `ovs-ofctl ofp-print`.

use super::action::{write_actions, write_experimenter};
mod experimenter;

use super::flow::{write_duration, write_flow_mod, write_rule};
use super::group::write_group_mod;
use super::matching::write_match;
use super::meter::write_meter_mod;
use super::multipart::{reply_name, request_name, write_reply, write_request};
use super::outline::{OneLine, write_foreign, write_hex_dump};
use super::port::{write_bits, write_port, write_port_mod, write_port_status};
use crate::{
    AsyncConfig, Capabilities, ConfigFlags, ControllerRole, ErrorCode, ErrorMessage, Features,
    FlowRemoved, FlowRemovedReason, Header, Hello, HelloElement, Match, Message, MultipartFlags,
    PacketIn, PacketInReason, PacketOut, QueueConfig, QueueProperty, Role, SwitchConfig, TABLE_ALL,
    TableMod, Version,
};
use experimenter::write_experimenter_message;
use std::fmt::{self, Write};

/// Returns a message as text: `{}` writes one line, `{:#}` the several lines of `ovs-ofctl ofp-print`, with payloads in
/// hexadecimal.
pub fn message<'m, 'a>(header: &'m Header, message: &'m Message<'a>) -> MessageText<'m, 'a> {
    MessageText { header, message }
}

/// The text of a message, from [`message`].
#[derive(Clone, Copy, Debug)]
pub struct MessageText<'m, 'a> {
    header: &'m Header,
    message: &'m Message<'a>,
}

impl fmt::Display for MessageText<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() {
            self.write(f, Detail::Full)
        } else {
            self.write(&mut OneLine::new(f), Detail::Brief)
        }
    }
}

/// Whether to write payloads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    Brief,
    Full,
}

impl MessageText<'_, '_> {
    pub(super) fn write(&self, out: &mut dyn Write, detail: Detail) -> fmt::Result {
        self.write_head(out)?;
        // A hello may have any version, and its content is the same in all.
        let version = Version::from_wire(self.header.version).unwrap_or(Version::Of13);
        match self.message {
            Message::Hello(hello) => write_hello(out, self.header, hello),
            Message::Error(error) => write_error(out, error, version, detail),
            Message::EchoRequest(payload) | Message::EchoReply(payload) => {
                write!(out, " {} bytes of payload", payload.len())?;
                write_payload(out, payload, detail)
            }
            Message::Experimenter(body) => write_experimenter_message(out, body, detail),
            Message::FeaturesReply(features) => write_features(out, features, version),
            Message::GetConfigReply(config) | Message::SetConfig(config) => {
                write_config(out, *config)
            }
            Message::PacketIn(packet) => write_packet_in(out, packet, version, detail),
            Message::FlowRemoved(removed) => write_flow_removed(out, removed, version),
            Message::PortStatus(status) => write_port_status(out, status, version),
            Message::PacketOut(packet) => write_packet_out(out, packet, version, detail),
            Message::FlowMod(flow) => {
                out.write_char(' ')?;
                write_flow_mod(out, flow, version)
            }
            Message::GroupMod(group) => write_group_mod(out, group),
            Message::PortMod(port) => write_port_mod(out, port),
            Message::TableMod(table) => write_table_mod(out, table),
            Message::MultipartRequest(request) => {
                write_multipart_flags(out, request.flags)?;
                write_request(out, &request.body, version)
            }
            Message::MultipartReply(reply) => {
                write_multipart_flags(out, reply.flags)?;
                write_reply(out, &reply.body, version)
            }
            Message::QueueGetConfigRequest(port) => write!(out, " port={port}"),
            Message::QueueGetConfigReply(config) => write_queues(out, config),
            Message::RoleRequest(role) | Message::RoleReply(role) => write_role(out, role),
            Message::GetAsyncReply(config) | Message::SetAsync(config) => write_async(out, config),
            Message::MeterMod(meter) => write_meter_mod(out, meter),
            Message::FeaturesRequest
            | Message::GetConfigRequest
            | Message::BarrierRequest
            | Message::BarrierReply
            | Message::GetAsyncRequest => Ok(()),
        }
    }

    /// Writes `OFPT_FLOW_MOD (OF1.3) (xid=0x1):`; version 1.0 is omitted.
    fn write_head(&self, out: &mut dyn Write) -> fmt::Result {
        match self.message {
            Message::MultipartRequest(request) => {
                write!(out, "OFPST_{} request", request_name(&request.body))?;
            }
            Message::MultipartReply(reply) => {
                write!(out, "OFPST_{} reply", reply_name(&reply.body))?;
            }
            message => write!(out, "OFPT_{}", name(message))?,
        }
        match self.header.version {
            0x01 => {}
            version @ 0x02..=0x06 => write!(out, " (OF1.{})", version - 1)?,
            version => write!(out, " (OF {version:#04x})")?,
        }
        write!(out, " (xid={:#x}):", self.header.xid)
    }
}

/// Returns the specification's name of a message, without `OFPT_`.
fn name(message: &Message<'_>) -> &'static str {
    match message {
        Message::Hello(_) => "HELLO",
        Message::Error(_) => "ERROR",
        Message::EchoRequest(_) => "ECHO_REQUEST",
        Message::EchoReply(_) => "ECHO_REPLY",
        Message::Experimenter(_) => "EXPERIMENTER",
        Message::FeaturesRequest => "FEATURES_REQUEST",
        Message::FeaturesReply(_) => "FEATURES_REPLY",
        Message::GetConfigRequest => "GET_CONFIG_REQUEST",
        Message::GetConfigReply(_) => "GET_CONFIG_REPLY",
        Message::SetConfig(_) => "SET_CONFIG",
        Message::PacketIn(_) => "PACKET_IN",
        Message::FlowRemoved(_) => "FLOW_REMOVED",
        Message::PortStatus(_) => "PORT_STATUS",
        Message::PacketOut(_) => "PACKET_OUT",
        Message::FlowMod(_) => "FLOW_MOD",
        Message::GroupMod(_) => "GROUP_MOD",
        Message::PortMod(_) => "PORT_MOD",
        Message::TableMod(_) => "TABLE_MOD",
        Message::MultipartRequest(_) => "MULTIPART_REQUEST",
        Message::MultipartReply(_) => "MULTIPART_REPLY",
        Message::BarrierRequest => "BARRIER_REQUEST",
        Message::BarrierReply => "BARRIER_REPLY",
        Message::QueueGetConfigRequest(_) => "QUEUE_GET_CONFIG_REQUEST",
        Message::QueueGetConfigReply(_) => "QUEUE_GET_CONFIG_REPLY",
        Message::RoleRequest(_) => "ROLE_REQUEST",
        Message::RoleReply(_) => "ROLE_REPLY",
        Message::GetAsyncRequest => "GET_ASYNC_REQUEST",
        Message::GetAsyncReply(_) => "GET_ASYNC_REPLY",
        Message::SetAsync(_) => "SET_ASYNC",
        Message::MeterMod(_) => "METER_MOD",
    }
}

fn write_multipart_flags(out: &mut dyn Write, flags: MultipartFlags) -> fmt::Result {
    match flags {
        flags if flags.is_empty() => Ok(()),
        MultipartFlags::MORE => out.write_str(" flags=[more]"),
        flags => write!(out, " flags={:#06x}", flags.bits()),
    }
}

fn write_payload(out: &mut dyn Write, payload: &[u8], detail: Detail) -> fmt::Result {
    match detail {
        Detail::Brief => Ok(()),
        Detail::Full => write_hex_dump(out, payload),
    }
}

fn write_hello(out: &mut dyn Write, header: &Header, hello: &Hello<'_>) -> fmt::Result {
    let bitmaps = |element: &HelloElement| matches!(element, HelloElement::VersionBitmap(_));
    let bitmap = hello.elements.iter().find(bitmaps);
    let includes = |version: &u8| match bitmap {
        Some(bitmap) => bitmap.includes(*version),
        None => *version <= header.version,
    };
    out.write_str("\n version bitmap: ")?;
    // Versions above 0x1f would need a second word, which no specification uses.
    for (index, version) in (0x01..0x20).filter(includes).enumerate() {
        let separator = if index == 0 { "" } else { ", " };
        write!(out, "{separator}{version:#04x}")?;
    }
    for element in &hello.elements {
        if let HelloElement::Other { element_type, data } = element {
            write!(out, "\n element {element_type}: {} bytes", data.len())?;
        }
    }
    Ok(())
}

fn write_error(
    out: &mut dyn Write,
    error: &ErrorMessage<'_>,
    version: Version,
    detail: Detail,
) -> fmt::Result {
    match error.code {
        unknown @ ErrorCode::Other { .. } => write!(out, " {unknown}")?,
        known => write!(out, " {}", known.name_in(version))?,
    }
    match (error.code, std::str::from_utf8(error.data)) {
        (ErrorCode::HelloFailedIncompatible | ErrorCode::HelloFailedEperm, Ok(text)) => {
            out.write_char('\n')?;
            write_foreign(out, text.trim_end_matches('\0'))
        }
        _ => write_offender(out, error.data, detail),
    }
}

/// Writes the message that caused an error: decoded if it was returned completely, otherwise as bytes.
fn write_offender(out: &mut dyn Write, data: &[u8], detail: Detail) -> fmt::Result {
    match Message::decode(data) {
        // The peer must not determine how deeply errors about errors recurse.
        Ok((_, Message::Error(inner))) => write!(out, "\nOFPT_ERROR: {}", inner.code),
        Ok((header, offender)) => {
            out.write_char('\n')?;
            message(&header, &offender).write(out, detail)
        }
        Err(_) if data.is_empty() => Ok(()),
        Err(_) => {
            write!(out, "\n{} bytes of the message that caused it", data.len())?;
            write_payload(out, data, detail)
        }
    }
}

const CAPABILITIES: [(u32, &str); 7] = [
    (Capabilities::FLOW_STATS.bits(), "FLOW_STATS"),
    (Capabilities::TABLE_STATS.bits(), "TABLE_STATS"),
    (Capabilities::PORT_STATS.bits(), "PORT_STATS"),
    (Capabilities::IP_REASM.bits(), "IP_REASM"),
    (Capabilities::QUEUE_STATS.bits(), "QUEUE_STATS"),
    (Capabilities::ARP_MATCH_IP.bits(), "ARP_MATCH_IP"),
    (Capabilities::PORT_BLOCKED.bits(), "PORT_BLOCKED"),
];

/// 1.0's actions, by the bits of their numbers, in Open vSwitch's order.
const OF10_ACTIONS: [(u32, &str); 12] = [
    (1 << 0, "output"),
    (1 << 11, "enqueue"),
    (1 << 1, "set_vlan_vid"),
    (1 << 2, "set_vlan_pcp"),
    (1 << 3, "strip_vlan"),
    (1 << 4, "mod_dl_src"),
    (1 << 5, "mod_dl_dst"),
    (1 << 6, "mod_nw_src"),
    (1 << 7, "mod_nw_dst"),
    (1 << 8, "mod_nw_tos"),
    (1 << 9, "mod_tp_src"),
    (1 << 10, "mod_tp_dst"),
];

fn write_features(out: &mut dyn Write, features: &Features<'_>, version: Version) -> fmt::Result {
    write!(out, " dpid:{}", features.datapath_id)?;
    write!(out, "\nn_tables:{}", features.n_tables)?;
    write!(out, ", n_buffers:{}", features.n_buffers)?;
    if features.auxiliary_id != 0 {
        write!(out, ", auxiliary_id:{}", features.auxiliary_id)?;
    }
    out.write_str("\ncapabilities: ")?;
    let versions_own = match version {
        Version::Of10 => "STP",
        Version::Of13 => "GROUP_STATS",
    };
    let mut names = CAPABILITIES.to_vec();
    names.insert(3, (Capabilities::GROUP_STATS.bits(), versions_own));
    write_bits(out, features.capabilities.bits(), &names)?;
    if version == Version::Of10 {
        out.write_str("\nactions: ")?;
        write_bits(out, features.actions, &OF10_ACTIONS)?;
    }
    features.ports.iter().try_for_each(|port| {
        out.write_char('\n')?;
        write_port(out, &port, version)
    })
}

fn write_config(out: &mut dyn Write, config: SwitchConfig) -> fmt::Result {
    let fragments = config.flags & ConfigFlags::FRAG_NX_MATCH;
    let fragments = match fragments.bits() {
        0 => "normal",
        1 => "drop",
        2 => "reassemble",
        _ => "nx-match",
    };
    write!(out, " frags={fragments}")?;
    if config
        .flags
        .contains(ConfigFlags::INVALID_TTL_TO_CONTROLLER)
    {
        out.write_str(" invalid_ttl_to_controller")?;
    }
    write!(out, " miss_send_len={}", config.miss_send_len)
}

fn write_packet_in(
    out: &mut dyn Write,
    packet: &PacketIn<'_>,
    version: Version,
    detail: Detail,
) -> fmt::Result {
    if packet.table_id != 0 {
        write!(out, " table_id={}", packet.table_id)?;
    }
    if version == Version::Of13 && packet.cookie != u64::MAX {
        write!(out, " cookie={:#x}", packet.cookie)?;
    }
    write!(out, " total_len={} ", packet.total_len)?;
    match version {
        Version::Of10 => write!(out, "in_port={}", packet.in_port)?,
        Version::Of13 => write_match(out, &packet.match_, version)?,
    }
    match packet.reason {
        PacketInReason::NoMatch => out.write_str(" (via no_match)")?,
        PacketInReason::Action => out.write_str(" (via action)")?,
        PacketInReason::InvalidTtl => out.write_str(" (via invalid_ttl)")?,
        PacketInReason::Other(reason) => write!(out, " (via {reason})")?,
    }
    write!(out, " data_len={}", packet.data.len())?;
    if packet.buffer_id.is_some() {
        write!(out, " buffer={:#010x}", packet.buffer_id.0)?;
    } else {
        out.write_str(" (unbuffered)")?;
    }
    write_packet(out, packet.data, detail)
}

fn write_packet_out(
    out: &mut dyn Write,
    packet: &PacketOut<'_>,
    version: Version,
    detail: Detail,
) -> fmt::Result {
    write!(out, " in_port={} actions=", packet.in_port)?;
    write_actions(out, &packet.actions, version)?;
    if packet.buffer_id.is_some() {
        return write!(out, " buffer={:#010x}", packet.buffer_id.0);
    }
    write!(out, " data_len={}", packet.data.len())?;
    write_packet(out, packet.data, detail)
}

/// Writes the fields of a packet's headers on a separate line, and its bytes.
fn write_packet(out: &mut dyn Write, data: &[u8], detail: Detail) -> fmt::Result {
    if data.is_empty() {
        return Ok(());
    }
    out.write_char('\n')?;
    let headers = Match::exact_frame(crate::PortNo::ANY, data);
    let of_packet = headers
        .fields()
        .filter(|field| field.oxm_field() != Some(crate::OxmField::InPort));
    write_match(
        out,
        &Match::from(of_packet.collect::<Vec<_>>()),
        Version::Of10,
    )?;
    write_payload(out, data, detail)
}

fn write_flow_removed(
    out: &mut dyn Write,
    removed: &FlowRemoved<'_>,
    version: Version,
) -> fmt::Result {
    out.write_char(' ')?;
    write_rule(out, removed.priority, &removed.match_, version)?;
    match removed.reason {
        FlowRemovedReason::IdleTimeout => out.write_str("reason=idle")?,
        FlowRemovedReason::HardTimeout => out.write_str("reason=hard")?,
        FlowRemovedReason::Delete => out.write_str("reason=delete")?,
        FlowRemovedReason::GroupDelete => out.write_str("reason=group_delete")?,
        FlowRemovedReason::Other(reason) => write!(out, "reason={reason}")?,
    }
    if version == Version::Of13 {
        write!(out, " table_id={}", removed.table_id)?;
    }
    if removed.cookie != 0 {
        write!(out, " cookie:{:#x}", removed.cookie)?;
    }
    out.write_str(" duration")?;
    write_duration(out, removed.duration_sec, removed.duration_nsec)?;
    write!(out, " idle{}", removed.idle_timeout)?;
    if version == Version::Of13 {
        write!(out, " hard{}", removed.hard_timeout)?;
    }
    write!(
        out,
        " pkts{} bytes{}",
        removed.packet_count, removed.byte_count
    )
}

fn write_table_mod(out: &mut dyn Write, table: &TableMod) -> fmt::Result {
    match table.table_id {
        TABLE_ALL => out.write_str(" table_id=ALL_TABLES")?,
        table_id => write!(out, " table_id={table_id}")?,
    }
    match table.config {
        0 => Ok(()),
        config => write!(out, ", config={config:#x}"),
    }
}

/// Writes a queue's rate, in tenths of a percent. More than the port's rate means no limit.
fn write_rate(out: &mut dyn Write, name: &str, rate: u16) -> fmt::Result {
    match rate {
        0..=1000 => write!(out, " {name}:{}.{}%", rate / 10, rate % 10),
        _ => write!(out, " {name}:(disabled)"),
    }
}

fn write_queues(out: &mut dyn Write, config: &QueueConfig<'_>) -> fmt::Result {
    write!(out, " port={}", config.port)?;
    for queue in &config.queues {
        write!(out, "\nqueue {}:", queue.queue_id)?;
        for property in &queue.properties {
            match property {
                QueueProperty::None => {}
                QueueProperty::MinRate(rate) => write_rate(out, "min_rate", rate)?,
                QueueProperty::MaxRate(rate) => write_rate(out, "max_rate", rate)?,
                QueueProperty::Experimenter { experimenter, data } => {
                    out.write_char(' ')?;
                    write_experimenter(out, experimenter, data)?;
                }
                QueueProperty::Other { property, data } => {
                    write!(out, " property {property}: {} bytes", data.len())?;
                }
            }
        }
    }
    Ok(())
}

fn write_role(out: &mut dyn Write, role: &Role) -> fmt::Result {
    out.write_str(" role=")?;
    write_role_name(out, role.role)?;
    match role.generation_id {
        u64::MAX => Ok(()),
        generation_id => write!(out, " generation_id={generation_id}"),
    }
}

pub(super) fn write_role_name(out: &mut dyn Write, role: ControllerRole) -> fmt::Result {
    match role {
        ControllerRole::NoChange => out.write_str("nochange"),
        ControllerRole::Equal => out.write_str("equal"),
        ControllerRole::Master => out.write_str("master"),
        ControllerRole::Slave => out.write_str("slave"),
        ControllerRole::Other(role) => write!(out, "{role}"),
    }
}

pub(super) fn write_async(out: &mut dyn Write, config: &AsyncConfig) -> fmt::Result {
    for (index, role) in ["master", "slave"].iter().enumerate() {
        let blank = if index == 0 { "" } else { "\n" };
        write!(out, "{blank}\n {role}:")?;
        let masks = [
            ("      PACKET_IN", config.packet_in_mask, PACKET_IN_REASONS),
            ("    PORT_STATUS", config.port_status_mask, PORT_REASONS),
            ("   FLOW_REMOVED", config.flow_removed_mask, FLOW_REASONS),
        ];
        for (name, mask, reasons) in masks {
            write!(out, "\n {name}:")?;
            write_reasons(out, mask[index], reasons)?;
        }
    }
    Ok(())
}

const PACKET_IN_REASONS: &[&str] = &["no_match", "action", "invalid_ttl"];
const PORT_REASONS: &[&str] = &["add", "delete", "modify"];
const FLOW_REASONS: &[&str] = &["idle", "hard", "delete", "group_delete"];

/// Writes reasons by name, or by number if they have none.
fn write_reasons(out: &mut dyn Write, mask: u32, reasons: &[&str]) -> fmt::Result {
    if mask == 0 {
        return out.write_str(" (off)");
    }
    for bit in (0..u32::BITS).filter(|bit| mask & (1 << bit) != 0) {
        match reasons.get(bit as usize) {
            Some(reason) => write!(out, " {reason}")?,
            None => write!(out, " {bit}")?,
        }
    }
    Ok(())
}
