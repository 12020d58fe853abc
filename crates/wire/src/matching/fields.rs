//! The fields of a match, however it is stored.

use super::{Match, Repr};
use crate::{Field, of10};

impl<'a> Match<'a> {
    /// Returns the fields, in the order of the wire or in which they were added. The fields of a match from the wire
    /// are decoded without allocating; only an exact match makes a list of them first.
    pub fn fields(&self) -> impl Iterator<Item = Field<'a>> {
        let (mut of10, mut list, mut exact) = (None, None, None);
        match &self.0 {
            Repr::Of10(bytes) => of10 = Some(of10::matching::fields(bytes)),
            Repr::InPort(port) => of10 = Some(of10::matching::Fields::only_in_port(*port)),
            Repr::Fields(fields) => list = Some(fields.iter()),
            Repr::Exact(packet) => exact = Some(packet.fields()),
        }
        of10.into_iter()
            .flatten()
            .chain(list.into_iter().flatten())
            .chain(exact.into_iter().flatten())
    }

    /// Returns `true` if 1.0 has no wildcard bit set for this match: such entries have the highest priority (1.0 section
    /// 3.4).
    pub fn is_exact_in_of10(&self) -> bool {
        of10::matching::is_without_wildcards(self)
    }

    /// Returns the `dl_vlan_pcp` of a match from 1.0 with `dl_vlan=OFP_VLAN_NONE`. It is not a field, because untagged
    /// packets have no priority. To write it back, add [`Match::vlan_pcp`].
    pub fn pcp_of_untagged(&self) -> Option<u8> {
        match &self.0 {
            Repr::Of10(bytes) => of10::matching::pcp_of_untagged(bytes),
            _ => None,
        }
    }
}
