//! Transaction ids that say who sent a message, so that replies and errors find back.

/// Who sent a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The session: handshake, keep-alive.
    Session,
    /// The program with this index among those of the controller.
    Program(u8),
    /// Code outside of handlers that awaits the reply.
    Request,
}

/// The highest number of programs that one controller can run: the top byte of an xid tells them apart.
pub(crate) const MAX_PROGRAMS: usize = 250;

const REQUEST: u8 = 0xff;

impl Origin {
    fn tag(self) -> u8 {
        match self {
            Self::Session => 0,
            Self::Program(index) => index + 1,
            Self::Request => REQUEST,
        }
    }

    /// Who sent the message that had this xid.
    pub fn of(xid: u32) -> Self {
        match (xid >> 24) as u8 {
            0 => Self::Session,
            REQUEST => Self::Request,
            tag => Self::Program(tag - 1),
        }
    }
}

/// The xids of one session: a tag for the origin in the top byte, a counter below it.
#[derive(Debug, Default)]
pub(crate) struct Xids {
    last: u32,
}

impl Xids {
    /// A new xid. Repeats after 16 million messages, long after any reply.
    #[inline]
    pub fn next(&mut self, origin: Origin) -> u32 {
        self.last = (self.last + 1) & 0x00ff_ffff;
        u32::from(origin.tag()) << 24 | self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_xid_tells_its_origin_also_after_the_counter_wraps() {
        let mut xids = Xids { last: 0x00ff_fffe };
        for origin in [
            Origin::Session,
            Origin::Program(0),
            Origin::Program(249),
            Origin::Request,
        ] {
            assert_eq!(Origin::of(xids.next(origin)), origin);
        }
    }
}
