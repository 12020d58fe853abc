//! Tables: table mod (1.3.5 section 7.3.3), statistics (7.3.5.4) and features (7.3.5.5).

use super::action::OFPAT_EXPERIMENTER;
use super::instruction::OFPIT_EXPERIMENTER;
use super::lacks;
use super::oxm::OFPXMC_EXPERIMENTER;
use crate::port::FixedName;
use crate::{
    DecodeError, EncodeError, List, Put, Reader, Structure, TableFeatureKind, TableFeatureProperty,
    TableFeatures, TableMod, TableStats, Version,
};

/// The size of `ofp_table_features` without properties.
const FEATURES_MIN_SIZE: usize = 64;
/// The size of a property's type and length.
const PROPERTY_MIN_SIZE: usize = 4;

pub(crate) fn decode_mod(reader: &mut Reader) -> Result<TableMod, DecodeError> {
    let table_id = reader.u8()?;
    reader.skip(3)?;
    Ok(TableMod {
        table_id,
        config: reader.u32()?,
    })
}

pub(crate) fn decode_stats(reader: &mut Reader) -> Result<TableStats, DecodeError> {
    let table_id = reader.u8()?;
    reader.skip(3)?;
    Ok(TableStats {
        table_id,
        name: FixedName([0; 32]),
        wildcards: 0,
        max_entries: 0,
        active_count: reader.u32()?,
        lookup_count: reader.u64()?,
        matched_count: reader.u64()?,
    })
}

pub(crate) fn decode_features<'a>(
    reader: &mut Reader<'a>,
) -> Result<TableFeatures<'a>, DecodeError> {
    let mut body = reader.sized_by_8(0, FEATURES_MIN_SIZE, Structure::TableFeatures)?;
    body.skip(2)?;
    let table_id = body.u8()?;
    body.skip(5)?;
    Ok(TableFeatures {
        table_id,
        name: FixedName(body.array()?),
        metadata_match: body.u64()?,
        metadata_write: body.u64()?,
        config: body.u32()?,
        max_entries: body.u32()?,
        properties: List::decode(Version::Of13, &mut body)?,
    })
}

pub(crate) fn decode_property<'a>(
    reader: &mut Reader<'a>,
) -> Result<TableFeatureProperty<'a>, DecodeError> {
    let mut body =
        reader.sized_and_padded(2, PROPERTY_MIN_SIZE, Structure::TableFeatureProperty)?;
    let kind = TableFeatureKind::from(body.u16()?);
    body.skip(2)?;
    check_ids(kind, body)?;
    Ok(TableFeatureProperty {
        kind,
        ids: body.rest(),
    })
}

/// Checks that a property consists of complete ids of its kind.
fn check_ids(kind: TableFeatureKind, mut ids: Reader) -> Result<(), DecodeError> {
    use TableFeatureKind::*;
    match kind {
        Instructions | InstructionsMiss => {
            check_each(&mut ids, |id| skip_id(id, OFPIT_EXPERIMENTER))
        }
        WriteActions | WriteActionsMiss | ApplyActions | ApplyActionsMiss => {
            check_each(&mut ids, |id| skip_id(id, OFPAT_EXPERIMENTER))
        }
        Match | Wildcards | WriteSetfield | WriteSetfieldMiss | ApplySetfield
        | ApplySetfieldMiss => check_each(&mut ids, skip_oxm_id),
        NextTables | NextTablesMiss | Experimenter | ExperimenterMiss | Other(_) => Ok(()),
    }
}

fn check_each(
    ids: &mut Reader,
    skip: impl Fn(&mut Reader) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    while !ids.is_empty() {
        skip(ids)?;
    }
    Ok(())
}

/// Skips the type and length of an instruction or action, and an experimenter's id after them. The length is ignored for
/// others: some switches send that of the id, others that of the whole action.
fn skip_id(ids: &mut Reader, experimenter: u16) -> Result<(), DecodeError> {
    let mut header = *ids;
    match header.u16()? {
        id if id == experimenter => ids.sized(2, 8, Structure::TableFeatureProperty).map(drop),
        _ => ids.skip(4),
    }
}

/// Skips the header of an OXM TLV, and an experimenter's id after it.
fn skip_oxm_id(ids: &mut Reader) -> Result<(), DecodeError> {
    let class = ids.u16()?;
    ids.skip(2)?;
    match class {
        OFPXMC_EXPERIMENTER => ids.skip(4),
        _ => Ok(()),
    }
}

pub(crate) fn encode_mod(table_mod: &TableMod, out: &mut Vec<u8>) {
    out.put_u8(table_mod.table_id);
    out.put_zeros(3);
    out.put_u32(table_mod.config);
}

pub(crate) fn encode_stats(stats: &TableStats, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    lacks("name in ofp_table_stats", stats.name.0, [0; 32])?;
    lacks("wildcards in ofp_table_stats", stats.wildcards, 0)?;
    lacks("max_entries in ofp_table_stats", stats.max_entries, 0)?;
    out.put_u8(stats.table_id);
    out.put_zeros(3);
    out.put_u32(stats.active_count);
    out.put_u64(stats.lookup_count);
    out.put_u64(stats.matched_count);
    Ok(())
}

pub(crate) fn encode_features(
    features: &TableFeatures,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let start = out.len();
    out.put_u16(0);
    out.put_u8(features.table_id);
    out.put_zeros(5);
    out.put(&features.name.0);
    out.put_u64(features.metadata_match);
    out.put_u64(features.metadata_write);
    out.put_u32(features.config);
    out.put_u32(features.max_entries);
    features.properties.encode(Version::Of13, out)?;
    out.set_length(start, start, "table features")
}

pub(crate) fn encode_property(
    property: &TableFeatureProperty,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let start = out.len();
    out.put_u16(property.kind.into());
    out.put_u16(0);
    out.put(property.ids);
    out.set_length(start + 2, start, "table feature property")?;
    out.pad_to_8(start);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::unsupported;
    use super::*;
    use crate::of13::golden::{decode_element, element, frame, hex, message, refused_message};
    use crate::{ErrorCode, Message, MultipartFlags, MultipartReply, MultipartReplyBody};

    #[test]
    fn table_mods_both_ways() {
        let table_mod = TableMod {
            table_id: 5,
            config: 3,
        };
        message(
            &frame(17, "05 000000 00000003"),
            &Message::TableMod(table_mod),
        );
    }

    fn stats() -> TableStats {
        TableStats {
            table_id: 1,
            name: FixedName([0; 32]),
            wildcards: 0,
            max_entries: 0,
            active_count: 2,
            lookup_count: 3,
            matched_count: 4,
        }
    }

    #[test]
    fn statistics_both_ways() {
        element(
            &hex("01 000000 00000002 0000000000000003 0000000000000004"),
            stats(),
        );
    }

    #[test]
    fn refuses_a_name_in_statistics() {
        let named = TableStats {
            name: FixedName::truncated("main"),
            ..stats()
        };
        let reply = MultipartReply {
            flags: MultipartFlags::empty(),
            body: MultipartReplyBody::Table(vec![named].into()),
        };
        assert_eq!(
            refused_message(&Message::MultipartReply(reply)),
            unsupported("name in ofp_table_stats")
        );
    }

    #[test]
    fn properties_both_ways() {
        for (bytes, kind, ids) in [
            (
                "0000 000c 0001 0004 0004 0004 00000000",
                TableFeatureKind::Instructions,
                "0001 0004 0004 0004",
            ),
            (
                "0006 0010 0000 0004 ffff 0008 00002320",
                TableFeatureKind::ApplyActions,
                "0000 0004 ffff 0008 00002320",
            ),
            (
                "0002 0007 01 02 03 00",
                TableFeatureKind::NextTables,
                "01 02 03",
            ),
            (
                "0008 0010 80000004 ffff0008 00002320",
                TableFeatureKind::Match,
                "80000004 ffff0008 00002320",
            ),
            (
                "fffe 000d 00002320 00000001 aa 000000",
                TableFeatureKind::Experimenter,
                "00002320 00000001 aa",
            ),
            ("0009 0004 00000000", TableFeatureKind::Other(9), ""),
        ] {
            let ids = &hex(ids);
            element(&hex(bytes), TableFeatureProperty { kind, ids });
        }
    }

    #[test]
    fn bad_properties_are_errors() {
        for bytes in [
            "0000 0000 0001 0004",
            "0000 0003 0001 0004",
            "0000 0010 0001 0004",
            "0000 0006 0001 0000",
            "0006 0008 ffff 0008",
            "0006 000c ffff 0004 00002320 00000000",
            "0008 0006 8000 0000",
            "0008 0008 ffff 0008",
            "0002 0007 01 02 03",
        ] {
            let error = decode_element::<TableFeatureProperty>(&hex(bytes)).unwrap_err();
            assert_eq!(
                error.code(),
                ErrorCode::TableFeaturesFailedBadLen,
                "{bytes}"
            );
        }
    }

    #[test]
    fn features_both_ways() {
        let features = TableFeatures {
            table_id: 1,
            name: FixedName::truncated("main"),
            metadata_match: 2,
            metadata_write: 3,
            config: 0,
            max_entries: 1000,
            properties: vec![TableFeatureProperty {
                kind: TableFeatureKind::NextTables,
                ids: &[2, 3],
            }]
            .into(),
        };
        let name = format!("6d61696e{}", "00".repeat(28));
        let bytes = hex(&format!(
            "0048 01 0000000000 {name} 0000000000000002 0000000000000003 00000000 000003e8
             0002 0006 02 03 0000"
        ));
        element(&bytes, features);
    }
}
