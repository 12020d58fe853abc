//! Features reply, `ofp_switch_features` (section 5.3.1).

use super::{lacks, unsupported};
use crate::{
    Capabilities, DatapathId, DecodeError, EncodeError, Features, List, Put, Reader, Version,
};

pub(super) fn decode<'a>(reader: &mut Reader<'a>) -> Result<Features<'a>, DecodeError> {
    let datapath_id = DatapathId(reader.u64()?);
    let n_buffers = reader.u32()?;
    let n_tables = reader.u8()?;
    reader.skip(3)?;
    Ok(Features {
        datapath_id,
        n_buffers,
        n_tables,
        auxiliary_id: 0,
        capabilities: decode_capabilities(reader.u32()?),
        actions: reader.u32()?,
        ports: List::decode(Version::Of10, reader)?,
    })
}

/// Decodes capabilities. A bit that 1.0 does not define must not become a capability that only 1.3 has.
fn decode_capabilities(bits: u32) -> Capabilities {
    Capabilities::from_bits_retain(bits) - Capabilities::PORT_BLOCKED
}

pub(super) fn encode(features: &Features, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    lacks(
        "the auxiliary_id of a features reply",
        features.auxiliary_id,
        0,
    )?;
    if features.capabilities.contains(Capabilities::PORT_BLOCKED) {
        return Err(unsupported("the capability OFPC_PORT_BLOCKED"));
    }
    out.put_u64(features.datapath_id.0);
    out.put_u32(features.n_buffers);
    out.put(&[features.n_tables, 0, 0, 0]);
    out.put_u32(features.capabilities.bits());
    out.put_u32(features.actions);
    features.ports.encode(Version::Of10, out)
}

#[cfg(test)]
mod tests;
