//! The fields of a match, in any representation.

use super::{Match, Repr, inline};
use crate::{Field, codec, of10};

/// The iterator of [`Match::fields`].
#[expect(
    clippy::large_enum_variant,
    reason = "it is on the stack, where a box would be an allocation for each match of 1.0"
)]
enum Fields<'a, 'l> {
    Of10(of10::matching::Fields<'a>),
    Inline(inline::Iter<'l>),
    List(codec::Iter<'a, 'l, Field<'a>>),
    Exact(std::vec::IntoIter<Field<'a>>),
}

impl<'a> Iterator for Fields<'a, '_> {
    type Item = Field<'a>;

    fn next(&mut self) -> Option<Field<'a>> {
        match self {
            Self::Of10(fields) => fields.next(),
            Self::Inline(fields) => fields.next_field(),
            Self::List(fields) => fields.next(),
            Self::Exact(fields) => fields.next(),
        }
    }
}

impl<'a> Match<'a> {
    /// Returns the fields, in the order of the wire or in which they were added. The fields of a match from the wire are decoded
    /// without allocating; only an exact match first creates a list of them.
    pub fn fields(&self) -> impl Iterator<Item = Field<'a>> {
        match &self.0 {
            Repr::Of10(bytes) => Fields::Of10(of10::matching::fields(bytes)),
            Repr::InPort(port) => Fields::Of10(of10::matching::Fields::only_in_port(*port)),
            Repr::Inline(fields) => Fields::Inline(fields.iter()),
            Repr::Fields(fields) => Fields::List(fields.iter()),
            Repr::Exact(packet) => Fields::Exact(packet.fields().into_iter()),
        }
    }

    /// Returns `true` if this match has no wildcard bits in 1.0. Such entries have the highest priority (1.0 section 3.4).
    pub fn is_exact_in_of10(&self) -> bool {
        of10::matching::is_without_wildcards(self)
    }

    /// Returns the `dl_vlan_pcp` of a match from 1.0 with `dl_vlan=OFP_VLAN_NONE`. It is not a field, since untagged packets have
    /// no priority. [`Match::vlan_pcp`] adds it again for writing.
    pub fn pcp_of_untagged(&self) -> Option<u8> {
        match &self.0 {
            Repr::Of10(bytes) => of10::matching::pcp_of_untagged(bytes),
            _ => None,
        }
    }
}
