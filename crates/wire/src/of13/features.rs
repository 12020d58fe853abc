//! The features reply, `ofp_switch_features` (1.3.5 section 7.3.1).

use super::lacks;
use crate::{Capabilities, DatapathId, DecodeError, EncodeError, Features, List, Put, Reader};

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
mod tests;
