//! Groups: the group mod (1.3.5 section 7.3.4.2) and their statistics (7.3.5.9 to 7.3.5.11).

use crate::{
    Bucket, BucketCounter, DecodeError, EncodeError, GroupCapabilities, GroupDesc, GroupFeatures,
    GroupMod, GroupStats, List, PortNo, Put, Reader, Structure, Version,
};

/// The size of `ofp_bucket` without actions.
const BUCKET_MIN_SIZE: usize = 16;
/// The size of `ofp_group_stats` without buckets.
const STATS_MIN_SIZE: usize = 40;
/// The size of `ofp_group_desc` without buckets.
const DESC_MIN_SIZE: usize = 8;

pub(crate) fn decode_mod<'a>(reader: &mut Reader<'a>) -> Result<GroupMod<'a>, DecodeError> {
    let command = reader.u16()?.into();
    let group_type = reader.u8()?.into();
    reader.skip(1)?;
    Ok(GroupMod {
        command,
        group_type,
        group_id: reader.u32()?,
        buckets: List::decode(Version::Of13, reader)?,
    })
}

pub(crate) fn decode_bucket<'a>(reader: &mut Reader<'a>) -> Result<Bucket<'a>, DecodeError> {
    let mut body = reader.sized_by_8(0, BUCKET_MIN_SIZE, Structure::Bucket)?;
    body.skip(2)?;
    let weight = body.u16()?;
    let watch_port = PortNo(body.u32()?);
    let watch_group = body.u32()?;
    body.skip(4)?;
    Ok(Bucket {
        weight,
        watch_port,
        watch_group,
        actions: List::decode(Version::Of13, &mut body)?,
    })
}

pub(crate) fn decode_stats<'a>(reader: &mut Reader<'a>) -> Result<GroupStats<'a>, DecodeError> {
    let mut body = reader.sized(0, STATS_MIN_SIZE, Structure::GroupStats)?;
    body.skip(4)?;
    let group_id = body.u32()?;
    let ref_count = body.u32()?;
    body.skip(4)?;
    Ok(GroupStats {
        group_id,
        ref_count,
        packet_count: body.u64()?,
        byte_count: body.u64()?,
        duration_sec: body.u32()?,
        duration_nsec: body.u32()?,
        buckets: List::decode(Version::Of13, &mut body)?,
    })
}

/// Decodes an `ofp_bucket_counter`, or an `ofp_meter_band_stats`, which has the same layout.
pub(crate) fn decode_counter(reader: &mut Reader) -> Result<BucketCounter, DecodeError> {
    Ok(BucketCounter {
        packet_count: reader.u64()?,
        byte_count: reader.u64()?,
    })
}

pub(crate) fn decode_desc<'a>(reader: &mut Reader<'a>) -> Result<GroupDesc<'a>, DecodeError> {
    let mut body = reader.sized(0, DESC_MIN_SIZE, Structure::GroupDesc)?;
    body.skip(2)?;
    let group_type = body.u8()?.into();
    body.skip(1)?;
    Ok(GroupDesc {
        group_type,
        group_id: body.u32()?,
        buckets: List::decode(Version::Of13, &mut body)?,
    })
}

pub(crate) fn decode_features(reader: &mut Reader) -> Result<GroupFeatures, DecodeError> {
    Ok(GroupFeatures {
        types: reader.u32()?,
        capabilities: GroupCapabilities::from_bits_retain(reader.u32()?),
        max_groups: decode_four(reader)?,
        actions: decode_four(reader)?,
    })
}

fn decode_four(reader: &mut Reader) -> Result<[u32; 4], DecodeError> {
    Ok([reader.u32()?, reader.u32()?, reader.u32()?, reader.u32()?])
}

pub(crate) fn encode_mod(group_mod: &GroupMod, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    out.put_u16(group_mod.command.into());
    out.put_u8(group_mod.group_type.into());
    out.put_zeros(1);
    out.put_u32(group_mod.group_id);
    group_mod.buckets.encode(Version::Of13, out)
}

pub(crate) fn encode_bucket(bucket: &Bucket, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let start = out.len();
    out.put_u16(0);
    out.put_u16(bucket.weight);
    out.put_u32(bucket.watch_port.0);
    out.put_u32(bucket.watch_group);
    out.put_zeros(4);
    bucket.actions.encode(Version::Of13, out)?;
    out.set_length(start, start, "bucket")
}

pub(crate) fn encode_stats(stats: &GroupStats, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let start = out.len();
    out.put_zeros(4);
    out.put_u32(stats.group_id);
    out.put_u32(stats.ref_count);
    out.put_zeros(4);
    out.put_u64(stats.packet_count);
    out.put_u64(stats.byte_count);
    out.put_u32(stats.duration_sec);
    out.put_u32(stats.duration_nsec);
    stats.buckets.encode(Version::Of13, out)?;
    out.set_length(start, start, "group stats")
}

pub(crate) fn encode_counter(counter: &BucketCounter, out: &mut Vec<u8>) {
    out.put_u64(counter.packet_count);
    out.put_u64(counter.byte_count);
}

pub(crate) fn encode_desc(desc: &GroupDesc, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let start = out.len();
    out.put_u16(0);
    out.put_u8(desc.group_type.into());
    out.put_zeros(1);
    out.put_u32(desc.group_id);
    desc.buckets.encode(Version::Of13, out)?;
    out.set_length(start, start, "group description")
}

pub(crate) fn encode_features(features: &GroupFeatures, out: &mut Vec<u8>) {
    out.put_u32(features.types);
    out.put_u32(features.capabilities.bits());
    for number in features.max_groups.iter().chain(&features.actions) {
        out.put_u32(*number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::of13::golden::{decode_element, decode_error, element, frame, hex, message};
    use crate::{
        Action, ErrorCode, GROUP_ANY, GroupModCommand, GroupType, Message, MultipartFlags,
        MultipartReply, MultipartReplyBody,
    };

    const BUCKET: &str = "0018 0002 00000003 ffffffff 00000000 0015 0008 00000001";

    fn bucket() -> Bucket<'static> {
        Bucket {
            weight: 2,
            watch_port: PortNo(3),
            watch_group: GROUP_ANY,
            actions: vec![Action::SetQueue(1)].into(),
        }
    }

    #[test]
    fn buckets_both_ways() {
        element(&hex(BUCKET), bucket());
    }

    #[test]
    fn bad_buckets_are_errors() {
        for length in ["0000", "0008", "0014", "0020"] {
            let bytes = hex(&format!("{length}{}", &BUCKET[4..]));
            let error = decode_element::<Bucket>(&bytes).unwrap_err();
            assert_eq!(error.code(), ErrorCode::GroupModFailedBadBucket, "{length}");
        }
    }

    #[test]
    fn group_mods_both_ways() {
        let group_mod = GroupMod {
            command: GroupModCommand::Modify,
            group_type: GroupType::FastFailover,
            group_id: 7,
            buckets: vec![bucket(), bucket()].into(),
        };
        let bytes = frame(15, &format!("0001 03 00 00000007 {BUCKET} {BUCKET}"));
        message(&bytes, &Message::GroupMod(group_mod));
    }

    #[test]
    fn stats_both_ways() {
        let stats = GroupStats {
            group_id: 1,
            ref_count: 2,
            packet_count: 3,
            byte_count: 4,
            duration_sec: 5,
            duration_nsec: 6,
            buckets: vec![BucketCounter {
                packet_count: 7,
                byte_count: 8,
            }]
            .into(),
        };
        let bytes = hex(
            "0038 0000 00000001 00000002 00000000 0000000000000003 0000000000000004
                         00000005 00000006 0000000000000007 0000000000000008",
        );
        element(&bytes, stats);
    }

    #[test]
    fn descriptions_both_ways() {
        let desc = GroupDesc {
            group_type: GroupType::Select,
            group_id: 7,
            buckets: vec![bucket()].into(),
        };
        element(&hex(&format!("0020 01 00 00000007 {BUCKET}")), desc);
    }

    #[test]
    fn features_both_ways() {
        let reply = MultipartReply {
            flags: MultipartFlags::empty(),
            body: MultipartReplyBody::GroupFeatures(GroupFeatures {
                types: 0xf,
                capabilities: GroupCapabilities::SELECT_WEIGHT | GroupCapabilities::CHAINING,
                max_groups: [1, 2, 3, 4],
                actions: [5, 6, 7, 8],
            }),
        };
        let bytes = frame(
            19,
            "0008 0000 00000000 0000000f 00000005 00000001 00000002 00000003 00000004
             00000005 00000006 00000007 00000008",
        );
        message(&bytes, &Message::MultipartReply(reply));
    }

    #[test]
    fn a_list_of_zero_length_rows_ends() {
        let bytes = frame(19, "0006 0000 00000000 0000 0000 00000000");
        assert_eq!(decode_error(&bytes).code(), ErrorCode::BadRequestBadLen);
    }
}
