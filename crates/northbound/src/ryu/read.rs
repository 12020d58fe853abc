//! Prints switches' replies as JSON, in Ryu's form.

use super::{action13, match13, of10};
use crate::number::{GROUPS, METERS, PORTS_10, PORTS_13, QUEUES, TABLES};
use serde_json::{Map, Value, json};
use urtica_controller::{OWN_COOKIE_BITS, ProgramId};
use urtica_wire::{
    Bucket, BucketCounter, ControllerRole, Element, FlowStats, GroupCapabilities, GroupDesc,
    GroupFeatures, GroupStats, GroupType, Message, MeterBand, MeterConfig, MeterFeatures,
    MeterFlags, MeterStats, MultipartReplyBody, OxmField, PacketQueue, Port, PortFeatures,
    PortStats, QueueConfig, QueueProperty, QueueStats, Role, TableFeatureKind,
    TableFeatureProperty, TableFeatures, TableStats, Version,
};

/// A printer of rows.
#[derive(Clone, Copy)]
pub(super) struct Printer {
    pub version: Version,
    /// The program whose number is omitted from cookies, since scripts do not know it.
    pub program: ProgramId,
}

/// The printed content of a reply.
pub(super) enum Printed {
    /// The whole response.
    One(Value),
    /// Elements of the list that is the response.
    Rows(Vec<Value>),
}

impl Printer {
    /// Prints a reply. Returns `None` if no path requests replies of its type.
    pub fn print(self, message: &Message, priority: Option<u16>) -> Option<Printed> {
        let rows = match message {
            Message::MultipartReply(part) => return self.print_part(&part.body, priority),
            Message::FeaturesReply(features) => {
                features.ports.iter().map(|port| self.port(&port)).collect()
            }
            Message::QueueGetConfigReply(config) => vec![queue_config(config)],
            Message::RoleReply(role) => vec![print_role(*role)],
            _ => return None,
        };
        Some(Printed::Rows(rows))
    }

    fn print_part(self, body: &MultipartReplyBody, priority: Option<u16>) -> Option<Printed> {
        use MultipartReplyBody as Body;
        let rows = match body {
            Body::Desc(desc) => {
                return Some(Printed::One(json!({
                    "mfr_desc": desc.mfr_desc.to_str_lossy(),
                    "hw_desc": desc.hw_desc.to_str_lossy(),
                    "sw_desc": desc.sw_desc.to_str_lossy(),
                    "serial_num": desc.serial_num.to_str_lossy(),
                    "dp_desc": desc.dp_desc.to_str_lossy(),
                })));
            }
            Body::Flow(entries) => {
                let is_wanted =
                    |entry: &FlowStats| priority.is_none_or(|wanted| entry.priority == wanted);
                let wanted = entries.iter().filter(is_wanted);
                wanted.map(|entry| self.flow(&entry)).collect()
            }
            Body::Aggregate(sums) => vec![json!({
                "packet_count": sums.packet_count,
                "byte_count": sums.byte_count,
                "flow_count": sums.flow_count,
            })],
            Body::Table(tables) => tables.iter().map(|table| self.table(&table)).collect(),
            Body::PortStats(ports) => ports.iter().map(|port| self.port_stats(&port)).collect(),
            Body::Queue(queues) => queues.iter().map(|queue| self.queue(&queue)).collect(),
            Body::Group(groups) => groups.iter().map(|group| group_stats(&group)).collect(),
            Body::GroupDesc(groups) => groups.iter().map(|group| group_desc(&group)).collect(),
            Body::GroupFeatures(features) => vec![group_features(features)],
            Body::Meter(meters) => meters.iter().map(|meter| meter_stats(&meter)).collect(),
            Body::MeterConfig(meters) => meters.iter().map(|meter| meter_config(&meter)).collect(),
            Body::MeterFeatures(features) => vec![meter_features(features)],
            Body::TableFeatures(tables) => {
                tables.iter().map(|table| table_features(&table)).collect()
            }
            Body::PortDesc(ports) => ports.iter().map(|port| self.port(&port)).collect(),
            Body::Experimenter(_) => return None,
        };
        Some(Printed::Rows(rows))
    }

    fn flow(self, entry: &FlowStats) -> Value {
        let mut printed = json!({
            "priority": entry.priority,
            "cookie": self.cookie(entry.cookie),
            "idle_timeout": entry.idle_timeout,
            "hard_timeout": entry.hard_timeout,
            "byte_count": entry.byte_count,
            "duration_sec": entry.duration_sec,
            "duration_nsec": entry.duration_nsec,
            "packet_count": entry.packet_count,
            "table_id": TABLES.value(entry.table_id.into()),
        });
        let (match_, actions) = match self.version {
            Version::Of10 => (
                of10::print_match(&entry.match_),
                of10::print_instructions(&entry.instructions),
            ),
            Version::Of13 => (
                match13::print(&entry.match_),
                action13::print_instructions(&entry.instructions),
            ),
        };
        printed["match"] = match_.into();
        printed["actions"] = actions.into();
        if self.version == Version::Of13 {
            printed["flags"] = entry.flags.bits().into();
            printed["length"] = wire_length(entry).into();
        }
        printed
    }

    fn cookie(self, cookie: u64) -> u64 {
        match ProgramId::of_cookie(cookie) == Some(self.program) {
            true => cookie & OWN_COOKIE_BITS,
            false => cookie,
        }
    }

    fn port_no(self, port: u32) -> Value {
        match self.version {
            Version::Of10 => PORTS_10.value(port),
            Version::Of13 => PORTS_13.value(port),
        }
    }

    fn table(self, table: &TableStats) -> Value {
        let mut printed = json!({
            "table_id": TABLES.value(table.table_id.into()),
            "active_count": table.active_count,
            "lookup_count": table.lookup_count,
            "matched_count": table.matched_count,
        });
        if self.version == Version::Of10 {
            printed["name"] = table.name.to_str_lossy().into();
            printed["max_entries"] = table.max_entries.into();
            printed["wildcards"] = wildcards(table.wildcards).into();
        }
        printed
    }

    fn port_stats(self, port: &PortStats) -> Value {
        let mut printed = json!({
            "port_no": self.port_no(port.port_no.0),
            "rx_packets": port.rx_packets,
            "tx_packets": port.tx_packets,
            "rx_bytes": port.rx_bytes,
            "tx_bytes": port.tx_bytes,
            "rx_dropped": port.rx_dropped,
            "tx_dropped": port.tx_dropped,
            "rx_errors": port.rx_errors,
            "tx_errors": port.tx_errors,
            "rx_frame_err": port.rx_frame_err,
            "rx_over_err": port.rx_over_err,
            "rx_crc_err": port.rx_crc_err,
            "collisions": port.collisions,
        });
        self.add_duration(&mut printed, port.duration_sec, port.duration_nsec);
        printed
    }

    fn queue(self, queue: &QueueStats) -> Value {
        let mut printed = json!({
            // Ryu prints a number here even if the port has a name.
            "port_no": self.plain_port_no(queue.port_no.0),
            "queue_id": queue.queue_id,
            "tx_bytes": queue.tx_bytes,
            "tx_errors": queue.tx_errors,
            "tx_packets": queue.tx_packets,
        });
        self.add_duration(&mut printed, queue.duration_sec, queue.duration_nsec);
        printed
    }

    fn plain_port_no(self, port: u32) -> u32 {
        match self.version {
            Version::Of10 => port & 0xffff,
            Version::Of13 => port,
        }
    }

    /// Adds a port's duration, which 1.0 does not report.
    fn add_duration(self, printed: &mut Value, seconds: u32, nanoseconds: u32) {
        if self.version == Version::Of13 {
            printed["duration_sec"] = seconds.into();
            printed["duration_nsec"] = nanoseconds.into();
        }
    }

    fn port(self, port: &Port) -> Value {
        let mut printed = json!({
            "port_no": self.port_no(port.port_no.0),
            "hw_addr": port.hw_addr.to_string(),
            "name": port.name.to_str_lossy(),
            "config": port.config.bits(),
            "state": port.state.bits(),
            "curr": features_bits(self.version, port.curr),
            "advertised": features_bits(self.version, port.advertised),
            "supported": features_bits(self.version, port.supported),
            "peer": features_bits(self.version, port.peer),
        });
        if self.version == Version::Of13 {
            printed["curr_speed"] = port.curr_speed.into();
            printed["max_speed"] = port.max_speed.into();
        }
        printed
    }
}

/// Returns a port's features as the bits of this version. 1.0 has fewer speeds, so its other features have lower bits.
fn features_bits(version: Version, features: PortFeatures) -> u32 {
    let bits = features.bits();
    match version {
        Version::Of10 => bits & OF10_SPEEDS | bits >> 4 & !OF10_SPEEDS,
        Version::Of13 => bits,
    }
}

/// Returns the features for the bits of this version.
pub(super) fn features_of_bits(version: Version, bits: u32) -> PortFeatures {
    let bits = match version {
        Version::Of10 => bits & OF10_SPEEDS | (bits & !OF10_SPEEDS) << 4,
        Version::Of13 => bits,
    };
    PortFeatures::from_bits_retain(bits)
}

/// The speeds that 1.0 has (`OFPPF_*`, 1.0 section 5.2.1).
const OF10_SPEEDS: u32 = 0x7f;

/// Returns the length of a row in a message of 1.3, in bytes.
fn wire_length<'a>(row: &impl Element<'a>) -> usize {
    let mut bytes = Vec::new();
    // Decoded messages can be encoded.
    let _ = row.encode(Version::Of13, &mut bytes);
    bytes.len()
}

/// Returns the names of 1.0's wildcards (section 5.2.3).
fn wildcards(bits: u32) -> Vec<&'static str> {
    const NAMES: [(u32, &str); 12] = [
        (1 << 0, "IN_PORT"),
        (1 << 1, "DL_VLAN"),
        (1 << 2, "DL_SRC"),
        (1 << 3, "DL_DST"),
        (1 << 4, "DL_TYPE"),
        (1 << 5, "NW_PROTO"),
        (1 << 6, "TP_SRC"),
        (1 << 7, "TP_DST"),
        (0x3f << 8, "NW_SRC_ALL"),
        (0x3f << 14, "NW_DST_ALL"),
        (1 << 20, "DL_VLAN_PCP"),
        (1 << 21, "NW_TOS"),
    ];
    set_names(bits, &NAMES)
}

fn set_names(bits: u32, names: &[(u32, &'static str)]) -> Vec<&'static str> {
    let set = names.iter().filter(|(mask, _)| bits & mask != 0);
    set.map(|(_, name)| *name).collect()
}

fn queue_config(config: &QueueConfig) -> Value {
    let queues: Vec<_> = config
        .queues
        .iter()
        .map(|queue| packet_queue(&queue))
        .collect();
    json!({ "port": PORTS_13.value(config.port.0), "queues": queues })
}

fn packet_queue(queue: &PacketQueue) -> Value {
    let property = |property| match property {
        QueueProperty::MinRate(rate) => json!({"property": "MIN_RATE", "rate": rate}),
        QueueProperty::MaxRate(rate) => json!({"property": "MAX_RATE", "rate": rate}),
        QueueProperty::Experimenter { experimenter, data } => {
            json!({"property": "EXPERIMENTER", "experimenter": experimenter, "data": data})
        }
        _ => json!({"property": "UNKNOWN"}),
    };
    json!({
        "port": PORTS_13.value(queue.port.0),
        "queue_id": QUEUES.value(queue.queue_id),
        "properties": queue.properties.iter().map(property).collect::<Vec<_>>(),
    })
}

fn print_role(role: Role) -> Value {
    let name = match role.role {
        ControllerRole::NoChange => Value::from("NOCHANGE"),
        ControllerRole::Equal => "EQUAL".into(),
        ControllerRole::Master => "MASTER".into(),
        ControllerRole::Slave => "SLAVE".into(),
        ControllerRole::Other(number) => number.into(),
    };
    json!({ "role": name, "generation_id": role.generation_id })
}

fn group_stats(group: &GroupStats) -> Value {
    let bucket = |bucket: BucketCounter| json!({"packet_count": bucket.packet_count, "byte_count": bucket.byte_count});
    json!({
        "length": wire_length(group),
        "group_id": GROUPS.value(group.group_id),
        "ref_count": group.ref_count,
        "packet_count": group.packet_count,
        "byte_count": group.byte_count,
        "duration_sec": group.duration_sec,
        "duration_nsec": group.duration_nsec,
        "bucket_stats": group.buckets.iter().map(bucket).collect::<Vec<_>>(),
    })
}

/// The types of groups, in the order of their bits and of their positions in group features.
const GROUP_TYPES: [(GroupType, &str); 4] = [
    (GroupType::All, "ALL"),
    (GroupType::Select, "SELECT"),
    (GroupType::Indirect, "INDIRECT"),
    (GroupType::FastFailover, "FF"),
];

fn group_desc(group: &GroupDesc) -> Value {
    let bucket = |bucket: Bucket| {
        json!({
            "weight": bucket.weight,
            "watch_port": bucket.watch_port.0,
            "watch_group": bucket.watch_group,
            "actions": action13::print_actions(&bucket.actions),
        })
    };
    let named = GROUP_TYPES
        .iter()
        .find(|(kind, _)| *kind == group.group_type);
    json!({
        "group_id": GROUPS.value(group.group_id),
        "type": named.map(|(_, name)| name),
        "buckets": group.buckets.iter().map(bucket).collect::<Vec<_>>(),
    })
}

fn group_features(features: &GroupFeatures) -> Value {
    const CAPABILITIES: [(u32, &str); 4] = [
        (GroupCapabilities::SELECT_WEIGHT.bits(), "SELECT_WEIGHT"),
        (GroupCapabilities::SELECT_LIVENESS.bits(), "SELECT_LIVENESS"),
        (GroupCapabilities::CHAINING.bits(), "CHAINING"),
        (GroupCapabilities::CHAINING_CHECKS.bits(), "CHAINING_CHECKS"),
    ];
    /// The numbers of `ofp_action_type` are the bits (1.3.5 section 7.3.5.10).
    const ACTIONS: [(u32, &str); 16] = [
        (1 << 0, "OUTPUT"),
        (1 << 11, "COPY_TTL_OUT"),
        (1 << 12, "COPY_TTL_IN"),
        (1 << 15, "SET_MPLS_TTL"),
        (1 << 16, "DEC_MPLS_TTL"),
        (1 << 17, "PUSH_VLAN"),
        (1 << 18, "POP_VLAN"),
        (1 << 19, "PUSH_MPLS"),
        (1 << 20, "POP_MPLS"),
        (1 << 21, "SET_QUEUE"),
        (1 << 22, "GROUP"),
        (1 << 23, "SET_NW_TTL"),
        (1 << 24, "DEC_NW_TTL"),
        (1 << 25, "SET_FIELD"),
        (1 << 26, "PUSH_PBB"),
        (1 << 27, "POP_PBB"),
    ];
    let of_type = |value: fn(&GroupFeatures, usize) -> Value| -> Vec<Value> {
        let types = GROUP_TYPES.iter().enumerate();
        let one = |(index, (_, name)): (usize, &(_, &str))| -> Value {
            Map::from_iter([((*name).to_owned(), value(features, index))]).into()
        };
        types.map(one).collect()
    };
    let types = GROUP_TYPES.iter().enumerate();
    let types = types.filter(|(index, _)| features.types & 1 << index != 0);
    json!({
        "types": types.map(|(_, (_, name))| name).collect::<Vec<_>>(),
        "capabilities": set_names(features.capabilities.bits(), &CAPABILITIES),
        "max_groups": of_type(|features, index| features.max_groups[index].into()),
        "actions": of_type(|features, index| set_names(features.actions[index], &ACTIONS).into()),
    })
}

fn meter_stats(meter: &MeterStats) -> Value {
    let band = |band: BucketCounter| json!({"packet_band_count": band.packet_count, "byte_band_count": band.byte_count});
    json!({
        "len": wire_length(meter),
        "meter_id": METERS.value(meter.meter_id),
        "flow_count": meter.flow_count,
        "packet_in_count": meter.packet_in_count,
        "byte_in_count": meter.byte_in_count,
        "duration_sec": meter.duration_sec,
        "duration_nsec": meter.duration_nsec,
        "band_stats": meter.bands.iter().map(band).collect::<Vec<_>>(),
    })
}

const METER_FLAGS: [(u32, &str); 4] = [
    (MeterFlags::KBPS.bits() as u32, "KBPS"),
    (MeterFlags::PKTPS.bits() as u32, "PKTPS"),
    (MeterFlags::BURST.bits() as u32, "BURST"),
    (MeterFlags::STATS.bits() as u32, "STATS"),
];

fn meter_config(meter: &MeterConfig) -> Value {
    json!({
        "meter_id": METERS.value(meter.meter_id),
        "flags": set_names(meter.flags.bits().into(), &METER_FLAGS),
        "bands": meter.bands.iter().map(|band| meter_band(&band)).collect::<Vec<_>>(),
    })
}

fn meter_band(band: &MeterBand) -> Value {
    match *band {
        MeterBand::Drop { rate, burst_size } => {
            json!({"type": "DROP", "rate": rate, "burst_size": burst_size})
        }
        MeterBand::DscpRemark {
            rate,
            burst_size,
            prec_level,
        } => json!({
            "type": "DSCP_REMARK", "rate": rate, "burst_size": burst_size, "prec_level": prec_level,
        }),
        MeterBand::Experimenter {
            rate,
            burst_size,
            experimenter,
            ..
        } => json!({
            "type": "EXPERIMENTER", "rate": rate, "burst_size": burst_size, "experimenter": experimenter,
        }),
    }
}

fn meter_features(features: &MeterFeatures) -> Value {
    const BAND_TYPES: [(u32, &str); 2] = [(1 << 1, "DROP"), (1 << 2, "DSCP_REMARK")];
    json!({
        "max_meter": features.max_meter,
        "band_types": set_names(features.band_types, &BAND_TYPES),
        "capabilities": set_names(features.capabilities, &METER_FLAGS),
        "max_bands": features.max_bands,
        "max_color": features.max_color,
    })
}

fn table_features(table: &TableFeatures) -> Value {
    json!({
        "table_id": TABLES.value(table.table_id.into()),
        "name": table.name.to_str_lossy(),
        "metadata_match": table.metadata_match,
        "metadata_write": table.metadata_write,
        "config": table.config,
        "max_entries": table.max_entries,
        "properties": table.properties.iter().map(|property| table_property(&property)).collect::<Vec<_>>(),
    })
}

fn table_property(property: &TableFeatureProperty) -> Value {
    use TableFeatureKind as Kind;
    let (name, ids) = match property.kind {
        Kind::Instructions => ("INSTRUCTIONS", Some(("instruction_ids", type_ids as Ids))),
        Kind::InstructionsMiss => (
            "INSTRUCTIONS_MISS",
            Some(("instruction_ids", type_ids as Ids)),
        ),
        Kind::NextTables => ("NEXT_TABLES", Some(("table_ids", table_ids as Ids))),
        Kind::NextTablesMiss => ("NEXT_TABLES_MISS", Some(("table_ids", table_ids as Ids))),
        Kind::WriteActions => ("WRITE_ACTIONS", Some(("action_ids", type_ids as Ids))),
        Kind::WriteActionsMiss => ("WRITE_ACTIONS_MISS", Some(("action_ids", type_ids as Ids))),
        Kind::ApplyActions => ("APPLY_ACTIONS", Some(("action_ids", type_ids as Ids))),
        Kind::ApplyActionsMiss => ("APPLY_ACTIONS_MISS", Some(("action_ids", type_ids as Ids))),
        Kind::Match => ("MATCH", Some(("oxm_ids", oxm_ids as Ids))),
        Kind::Wildcards => ("WILDCARDS", Some(("oxm_ids", oxm_ids as Ids))),
        Kind::WriteSetfield => ("WRITE_SETFIELD", Some(("oxm_ids", oxm_ids as Ids))),
        Kind::WriteSetfieldMiss => ("WRITE_SETFIELD_MISS", Some(("oxm_ids", oxm_ids as Ids))),
        Kind::ApplySetfield => ("APPLY_SETFIELD", Some(("oxm_ids", oxm_ids as Ids))),
        Kind::ApplySetfieldMiss => ("APPLY_SETFIELD_MISS", Some(("oxm_ids", oxm_ids as Ids))),
        Kind::Other(_) => ("UNKNOWN", None),
        Kind::Experimenter => ("EXPERIMENTER", None),
        Kind::ExperimenterMiss => ("EXPERIMENTER_MISS", None),
    };
    let mut printed = json!({ "type": name });
    if let Some((key, ids)) = ids {
        printed[key] = ids(property.ids).into();
    }
    printed
}

/// Prints the list of a property.
type Ids = fn(&[u8]) -> Vec<Value>;

/// Prints instructions or actions: type, length, and an experimenter's bytes.
fn type_ids(mut bytes: &[u8]) -> Vec<Value> {
    let mut ids = Vec::new();
    while let [t0, t1, l0, l1, ..] = *bytes {
        let length = u16::from_be_bytes([l0, l1]);
        ids.push(json!({"type": u16::from_be_bytes([t0, t1]), "len": length}));
        bytes = bytes.get(usize::from(length).max(4)..).unwrap_or_default();
    }
    ids
}

fn table_ids(bytes: &[u8]) -> Vec<Value> {
    bytes.iter().map(|table| Value::from(*table)).collect()
}

/// Prints OXM headers (1.3.5 section 7.2.3.2). The header of an experimenter is followed by its id.
fn oxm_ids(mut bytes: &[u8]) -> Vec<Value> {
    const BASIC: u16 = 0x8000;
    const EXPERIMENTER: u16 = 0xffff;
    let mut ids = Vec::new();
    while let [c0, c1, field, length, ref rest @ ..] = *bytes {
        let class = u16::from_be_bytes([c0, c1]);
        let known = (class == BASIC)
            .then(|| OxmField::from_wire(field >> 1))
            .flatten();
        let name = known.map_or_else(
            || format!("field_{}", u32::from(class) << 7 | u32::from(field >> 1)),
            |field| field.name().to_owned(),
        );
        ids.push(json!({"type": name, "hasmask": field & 1, "length": length}));
        let skipped = if class == EXPERIMENTER { 4 } else { 0 };
        bytes = rest.get(skipped..).unwrap_or_default();
    }
    ids
}
