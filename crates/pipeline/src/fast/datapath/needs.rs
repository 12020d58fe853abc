//! What frames need to be carried through groups.

/// What a frame must have for all that may happen to it behind a group; one that does not takes the plain way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    /// How many bytes before the frame tags take that are pushed.
    pub headroom: u32,
    /// How often the TTL is decremented.
    pub ttl_decrements: u32,
    /// How often the frame leaves besides what its verdict tells, and how many of these are copies. The bounds of these are seen to
    /// where groups are made.
    pub sent: u32,
    pub copies: u32,
    /// Whether the frame changes.
    pub changes: bool,
}

impl Needs {
    /// What is needed if one of two happens.
    pub fn or(self, other: Self) -> Self {
        Self {
            headroom: self.headroom.max(other.headroom),
            ttl_decrements: self.ttl_decrements.max(other.ttl_decrements),
            sent: self.sent.max(other.sent),
            copies: self.copies.max(other.copies),
            changes: self.changes | other.changes,
        }
    }

    /// What is needed if both happen, each to a copy.
    pub fn beside(self, other: Self) -> Self {
        Self {
            sent: self.sent + other.sent + 1,
            copies: self.copies + other.copies + 1,
            ..self.or(other)
        }
    }

    /// What is needed if one happens after the other.
    pub fn then(self, next: Self) -> Self {
        Self {
            headroom: self.headroom + next.headroom,
            ttl_decrements: self.ttl_decrements + next.ttl_decrements,
            sent: self.sent + next.sent,
            copies: self.copies + next.copies,
            changes: self.changes | next.changes,
        }
    }
}
