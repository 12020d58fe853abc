//! The features reply, `ofp_switch_features` (1.3.5 section 7.3.1).

use super::lacks;
use crate::{Capabilities, DatapathId, DecodeError, EncodeError, Features, List, Reader, Write};

pub(crate) fn decode<'a>(reader: &mut Reader<'a>) -> Result<Features<'a>, DecodeError> {
    let datapath_id = DatapathId(reader.u64()?);
    let n_buffers = reader.u32()?;
    let n_tables = reader.u8()?;
    let auxiliary_id = reader.u8()?;
    reader.skip(2)?;
    let capabilities = Capabilities::from_bits_retain(reader.u32()?);
    reader.skip(4)?;
    Ok(Features {
        datapath_id,
        n_buffers,
        n_tables,
        auxiliary_id,
        capabilities,
        actions: 0,
        ports: List::default(),
    })
}

pub(crate) fn encode(features: &Features, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    lacks("actions in ofp_switch_features", features.actions, 0)?;
    lacks(
        "ports in ofp_switch_features",
        features.ports.is_empty(),
        true,
    )?;
    out.put_u64(features.datapath_id.0);
    out.put_u32(features.n_buffers);
    out.put(&[features.n_tables, features.auxiliary_id]);
    out.put_zeros(2);
    out.put_u32(features.capabilities.bits());
    out.put_zeros(4);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::unsupported;
    use super::*;
    use crate::Message;
    use crate::of13::golden::{decode_error, frame, message, refused_message};

    fn features() -> Features<'static> {
        Features {
            datapath_id: DatapathId(0x42),
            n_buffers: 256,
            n_tables: 254,
            auxiliary_id: 1,
            capabilities: Capabilities::FLOW_STATS | Capabilities::PORT_BLOCKED,
            actions: 0,
            ports: List::default(),
        }
    }

    #[test]
    fn reply() {
        let bytes = frame(6, "0000000000000042 00000100 fe 01 0000 00000101 00000000");
        message(&bytes, &Message::FeaturesReply(features()));
    }

    #[test]
    fn the_length_must_fit() {
        let short = frame(6, "0000000000000042 00000100 fe 01 0000 00000101");
        assert_eq!(
            decode_error(&short).to_string(),
            "the features reply is cut short: 4 more bytes were expected and 0 are left"
        );
        let long = frame(
            6,
            "0000000000000042 00000100 fe 01 0000 00000101 00000000 00",
        );
        assert!(matches!(
            decode_error(&long),
            DecodeError::TrailingBytes { count: 1, .. }
        ));
    }

    #[test]
    fn what_only_1_0_has_is_refused() {
        let features = Features {
            actions: 1,
            ..features()
        };
        assert_eq!(
            refused_message(&Message::FeaturesReply(features)),
            unsupported("actions in ofp_switch_features")
        );
    }
}
