//! Converts the bodies of Ryu's requests to messages: flow entries, groups, meters, ports, roles.

use super::payload::Payloads;
use super::read::features_of_bits;
use super::typed::{Type, reader_of};
use super::{action13, match13, of10};
use crate::error::ApiError;
use crate::number::{BUFFERS, GROUPS, METERS, PORTS_13, ROLES, integer};
use crate::object::Object;
use serde_json::Value;
use urtica_controller::OWN_COOKIE_BITS;
use urtica_wire::{
    Bucket, BufferId, ControllerRole, FlowMod, FlowModCommand, FlowModFlags, FlowStatsRequest,
    GROUP_ANY, GroupMod, GroupModCommand, GroupType, Match, MeterBand, MeterFlags, MeterMod,
    MeterModCommand, Port, PortConfig, PortMod, PortNo, Role, TABLE_ALL, Version,
};

/// The fields of a body for a flow entry, in both versions: for 1.0, Ryu ignored those of 1.3.
const FLOW: [&str; 13] = [
    "dpid",
    "cookie",
    "cookie_mask",
    "table_id",
    "idle_timeout",
    "hard_timeout",
    "priority",
    "buffer_id",
    "flags",
    "out_port",
    "out_group",
    "match",
    "actions",
];

/// Builds the message for a body of `/stats/flowentry/…`.
pub(super) fn flow_mod<'a>(
    version: Version,
    command: FlowModCommand,
    body: &Object<'a>,
    payloads: &'a Payloads,
) -> Result<FlowMod<'a>, ApiError> {
    body.only(&FLOW)?;
    let actions = body.objects("actions")?;
    let common = FlowMod {
        command,
        cookie: own_cookie(body)?,
        idle_timeout: body.number("idle_timeout", 0)?,
        hard_timeout: body.number("hard_timeout", 0)?,
        priority: body.number("priority", default_priority(version))?,
        buffer_id: BufferId(body.named("buffer_id", &BUFFERS, BufferId::NONE.0)?),
        flags: FlowModFlags::from_bits_retain(body.number("flags", 0)?),
        out_port: out_port(version, body)?,
        match_: match_of(version, body)?,
        ..FlowMod::default()
    };
    Ok(match version {
        Version::Of10 => FlowMod {
            instructions: of10::parse_instructions(&actions)?.into(),
            ..common
        },
        Version::Of13 => FlowMod {
            cookie_mask: body.number("cookie_mask", 0)?,
            table_id: table_or(body, 0)?,
            out_group: body.named("out_group", &GROUPS, GROUP_ANY)?,
            instructions: action13::parse_instructions(&actions, payloads)?.into(),
            ..common
        },
    })
}

/// Reads a cookie. Its top byte must be 0, since it identifies the program that installed the entry.
fn own_cookie(body: &Object) -> Result<u64, ApiError> {
    let cookie = body.number("cookie", 0)?;
    match cookie <= OWN_COOKIE_BITS {
        true => Ok(cookie),
        false => {
            let expected = format!(
                "a number from 0 to {OWN_COOKIE_BITS}, as the top byte belongs to the controller"
            );
            Err(body.wrong("cookie", &expected).example("\"cookie\": 1"))
        }
    }
}

/// Returns Ryu's default priority; that of 1.0 is the specification's (`OFP_DEFAULT_PRIORITY`).
fn default_priority(version: Version) -> u16 {
    match version {
        Version::Of10 => 0x8000,
        Version::Of13 => 0,
    }
}

fn out_port(version: Version, body: &Object) -> Result<PortNo, ApiError> {
    match version {
        Version::Of10 => of10::port(body, "out_port", PortNo::ANY),
        Version::Of13 => body.named("out_port", &PORTS_13, PortNo::ANY.0).map(PortNo),
    }
}

fn match_of(version: Version, body: &Object) -> Result<Match<'static>, ApiError> {
    let object = body.object("match")?;
    match version {
        Version::Of10 => of10::parse_match(object.as_ref()),
        Version::Of13 => match13::parse(object.as_ref()),
    }
}

fn table_or(body: &Object, or: u8) -> Result<u8, ApiError> {
    match body.get("table_id") {
        Some(_) => action13::table(body, "table_id"),
        None => Ok(or),
    }
}

/// Builds the message for `DELETE /stats/flowentry/clear/…`, which deletes all entries of all tables.
pub(super) fn clear(version: Version) -> FlowMod<'static> {
    FlowMod {
        command: FlowModCommand::Delete,
        table_id: match version {
            Version::Of10 => 0,
            Version::Of13 => TABLE_ALL,
        },
        priority: default_priority(version),
        ..FlowMod::default()
    }
}

/// Reads the filter for entries in a body of `/stats/flow/…` and `/stats/aggregateflow/…`.
pub(super) fn flow_filter(
    version: Version,
    body: &Object,
) -> Result<FlowStatsRequest<'static>, ApiError> {
    body.only(&[
        "dpid",
        "table_id",
        "out_port",
        "out_group",
        "cookie",
        "cookie_mask",
        "match",
        "priority",
    ])?;
    let common = FlowStatsRequest {
        table_id: table_or(body, TABLE_ALL)?,
        out_port: out_port(version, body)?,
        match_: match_of(version, body)?,
        ..FlowStatsRequest::default()
    };
    if version == Version::Of10 {
        return Ok(common);
    }
    let (cookie, cookie_mask) = (body.number("cookie", 0)?, body.number("cookie_mask", 0)?);
    Ok(FlowStatsRequest {
        out_group: body.named("out_group", &GROUPS, GROUP_ANY)?,
        cookie,
        // A cookie without a program's number matches entries of all programs.
        cookie_mask: match cookie <= OWN_COOKIE_BITS {
            true => cookie_mask & OWN_COOKIE_BITS,
            false => cookie_mask,
        },
        ..common
    })
}

/// Reads the priority by which to filter. OpenFlow has no such filter; Ryu's `-1` means no filter.
pub(super) fn priority_filter(body: &Object) -> Result<Option<u16>, ApiError> {
    let is_none = |value: &Value| {
        value.as_i64() == Some(-1) || value.as_str().is_some_and(|text| text.trim() == "-1")
    };
    match body.get("priority") {
        Some(value) if !is_none(value) => body.needed_number("priority").map(Some),
        _ => Ok(None),
    }
}

/// Builds the message for a body of `/stats/groupentry/…`.
pub(super) fn group_mod<'a>(
    command: GroupModCommand,
    body: &Object<'a>,
    payloads: &'a Payloads,
) -> Result<GroupMod<'a>, ApiError> {
    body.only(&["dpid", "type", "group_id", "buckets"])?;
    let group_type = match body.text_or("type", "ALL")? {
        "ALL" => GroupType::All,
        "SELECT" => GroupType::Select,
        "INDIRECT" => GroupType::Indirect,
        "FF" => GroupType::FastFailover,
        _ => {
            return Err(body
                .wrong("type", "ALL, SELECT, INDIRECT or FF")
                .example("\"type\": \"ALL\""));
        }
    };
    let bucket = |object| bucket(object, payloads);
    let buckets = body.objects("buckets")?;
    let buckets: Vec<_> = buckets.iter().map(bucket).collect::<Result<_, _>>()?;
    Ok(GroupMod {
        command,
        group_type,
        group_id: body.named("group_id", &GROUPS, 0)?,
        buckets: buckets.into(),
    })
}

fn bucket<'a>(object: &Object<'a>, payloads: &'a Payloads) -> Result<Bucket<'a>, ApiError> {
    object.only(&["weight", "watch_port", "watch_group", "actions"])?;
    let actions = action13::parse_actions(&object.objects("actions")?, payloads)?;
    Ok(Bucket {
        weight: object.number("weight", 0)?,
        watch_port: PortNo(object.named("watch_port", &PORTS_13, PortNo::ANY.0)?),
        watch_group: object.named("watch_group", &GROUPS, GROUP_ANY)?,
        actions: actions.into(),
    })
}

/// Builds the message for a body of `/stats/meterentry/…`.
pub(super) fn meter_mod<'a>(
    command: MeterModCommand,
    body: &Object<'a>,
) -> Result<MeterMod<'a>, ApiError> {
    body.only(&["dpid", "flags", "meter_id", "bands"])?;
    let bands = body.objects("bands")?;
    let bands: Vec<_> = bands.iter().map(meter_band).collect::<Result<_, _>>()?;
    Ok(MeterMod {
        command,
        flags: meter_flags(body)?,
        meter_id: body.named("meter_id", &METERS, 0)?,
        bands: bands.into(),
    })
}

/// Reads a flag, or a list of flags.
fn meter_flags(body: &Object) -> Result<MeterFlags, ApiError> {
    let flags = match body.get("flags") {
        None => return Ok(MeterFlags::empty()),
        Some(Value::Array(flags)) => flags.as_slice(),
        Some(flag) => std::slice::from_ref(flag),
    };
    let flag = |flag: &Value| match flag.as_str()? {
        "KBPS" => Some(MeterFlags::KBPS),
        "PKTPS" => Some(MeterFlags::PKTPS),
        "BURST" => Some(MeterFlags::BURST),
        "STATS" => Some(MeterFlags::STATS),
        _ => None,
    };
    let flags: Option<Vec<_>> = flags.iter().map(flag).collect();
    let flags = flags.ok_or_else(|| {
        let expected = "KBPS, PKTPS, BURST or STATS, or a list of these";
        body.wrong("flags", expected)
            .example("\"flags\": [\"KBPS\", \"BURST\"]")
    })?;
    Ok(flags.into_iter().collect())
}

/// Reads a meter band.
pub(super) type ReadBand = for<'a> fn(&Object<'a>) -> Result<MeterBand<'a>, ApiError>;

pub(super) const BANDS: &[Type<ReadBand>] = &[
    ("DROP", &["rate", "burst_size"], |band| {
        Ok(MeterBand::Drop {
            rate: band.number("rate", 0)?,
            burst_size: band.number("burst_size", 0)?,
        })
    }),
    (
        "DSCP_REMARK",
        &["rate", "burst_size", "prec_level"],
        |band| {
            Ok(MeterBand::DscpRemark {
                rate: band.number("rate", 0)?,
                burst_size: band.number("burst_size", 0)?,
                prec_level: band.number("prec_level", 0)?,
            })
        },
    ),
    (
        "EXPERIMENTER",
        &["rate", "burst_size", "experimenter"],
        |band| {
            Ok(MeterBand::Experimenter {
                rate: band.number("rate", 0)?,
                burst_size: band.number("burst_size", 0)?,
                experimenter: band.number("experimenter", 0)?,
                data: &[],
            })
        },
    ),
];

pub(super) fn meter_band<'a>(band: &Object<'a>) -> Result<MeterBand<'a>, ApiError> {
    let expected = "DROP, DSCP_REMARK or EXPERIMENTER";
    reader_of(band, BANDS, expected, "\"type\": \"DROP\"")?(band)
}

/// Returns the port in a body of `/stats/portdesc/modify`.
pub(super) fn port_no(version: Version, body: &Object) -> Result<PortNo, ApiError> {
    match version {
        Version::Of10 => of10::port(body, "port_no", PortNo(0)),
        Version::Of13 => body.named("port_no", &PORTS_13, 0).map(PortNo),
    }
}

/// Builds the message for a body of `/stats/portdesc/modify`; `known` is the port's current state.
pub(super) fn port_mod(
    version: Version,
    body: &Object,
    known: Option<&Port>,
) -> Result<PortMod, ApiError> {
    body.only(&["dpid", "port_no", "hw_addr", "config", "mask", "advertise"])?;
    let expected = "a MAC address";
    let hw_addr = match (body.get("hw_addr"), known) {
        (None, Some(port)) => port.hw_addr,
        _ => {
            let parsed = body.text("hw_addr", expected)?.parse();
            parsed.map_err(|_| {
                body.wrong("hw_addr", expected)
                    .example("\"hw_addr\": \"02:00:00:00:00:01\"")
            })?
        }
    };
    let advertise = match (body.get("advertise").and_then(integer), known) {
        (None, Some(port)) if body.get("advertise").is_none() => port.advertised,
        _ => features_of_bits(version, body.needed_number("advertise")?),
    };
    Ok(PortMod {
        port_no: port_no(version, body)?,
        hw_addr,
        config: PortConfig::from_bits_retain(body.number("config", 0)?),
        mask: PortConfig::from_bits_retain(body.number("mask", 0)?),
        advertise,
    })
}

/// Builds the message for a body of `/stats/role`.
pub(super) fn role(body: &Object) -> Result<Role, ApiError> {
    body.only(&["dpid", "role"])?;
    let role = match body.named("role", &ROLES, 1)? {
        0 => ControllerRole::NoChange,
        1 => ControllerRole::Equal,
        2 => ControllerRole::Master,
        3 => ControllerRole::Slave,
        _ => return Err(body.wrong("role", &ROLES.expected())),
    };
    Ok(Role {
        role,
        generation_id: 0,
    })
}

/// Returns the experimenter in a body of `/stats/experimenter/…`, and the bytes after it: in 1.3, its type and then its data.
pub(super) fn experimenter(
    version: Version,
    body: &Object,
    payloads: &Payloads,
) -> Result<(u32, Vec<u8>), ApiError> {
    body.only(&["dpid", "experimenter", "exp_type", "data", "data_type"])?;
    let exp_type: u32 = body.number("exp_type", 0)?;
    let mut data = match version {
        Version::Of10 => Vec::new(),
        Version::Of13 => exp_type.to_be_bytes().to_vec(),
    };
    data.extend_from_slice(payloads.data(body)?);
    Ok((body.number("experimenter", 0)?, data))
}
