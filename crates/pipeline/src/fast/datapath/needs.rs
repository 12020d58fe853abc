//! The requirements of groups on frames.

/// The requirements of everything that follows a group on a frame. Other frames are left to the plain form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    /// The space before the frame for pushed tags, in bytes.
    pub headroom: u32,
    /// The number of TTL decrements.
    pub ttl_decrements: u32,
    /// The number of additional outputs, and of copies among them. They are bounded when groups are compiled.
    pub sent: u32,
    pub copies: u32,
    /// Whether the frame changes.
    pub changes: bool,
}

impl Needs {
    /// Returns the requirements for either of two alternatives.
    pub fn or(self, other: Self) -> Self {
        Self {
            headroom: self.headroom.max(other.headroom),
            ttl_decrements: self.ttl_decrements.max(other.ttl_decrements),
            sent: self.sent.max(other.sent),
            copies: self.copies.max(other.copies),
            changes: self.changes | other.changes,
        }
    }

    /// Returns the requirements for both, each on a separate copy.
    pub fn beside(self, other: Self) -> Self {
        Self {
            sent: self.sent + other.sent + 1,
            copies: self.copies + other.copies + 1,
            ..self.or(other)
        }
    }

    /// Returns the requirements for both in sequence.
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
