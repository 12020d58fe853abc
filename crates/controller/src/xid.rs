//! Transaction ids that identify the sender of a message, so that replies and errors are routed back to it.

/// The sender of a message, as the top byte of its xid, already shifted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin(u32);

/// An [`Origin`] as an enum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sender {
    /// The session: handshake, keep-alive.
    Session,
    /// A program.
    Program,
    /// Code outside of handlers that awaits the reply.
    Request,
}

/// The maximum number of programs of one controller. A raw program is one of them, and has this number.
pub(crate) const MAX_PROGRAMS: usize = 250;

const COUNTER_BITS: u32 = 24;
const COUNTER: u32 = (1 << COUNTER_BITS) - 1;

impl Origin {
    pub const SESSION: Self = Self(0);
    pub const REQUEST: Self = Self(0xff << COUNTER_BITS);
    /// The session of a controller with a raw program, whose xids mostly have 0 there.
    pub const RAW_SESSION: Self = Self(0xfe << COUNTER_BITS);
    /// Substitutes for xids of a raw program.
    pub const RAW: Self = Self((MAX_PROGRAMS as u32) << COUNTER_BITS);

    /// Returns the origin of the program with this index, which is below [`MAX_PROGRAMS`].
    #[inline]
    pub fn program(index: usize) -> Self {
        debug_assert!(index < MAX_PROGRAMS);
        Self((index as u32 + 1) << COUNTER_BITS)
    }

    /// Returns a cookie with this origin in its top byte, and zeros below.
    #[inline(always)]
    pub fn cookie(self) -> u64 {
        u64::from(self.0) << 32
    }

    /// Returns the top byte of its xids.
    pub fn tag(self) -> u8 {
        (self.0 >> COUNTER_BITS) as u8
    }

    /// Returns the xid of all messages that a program sends outside its handlers: an error shows which switch has refused a
    /// message, but not which message.
    pub fn xid(self) -> u32 {
        self.0
    }

    /// Returns `true` if a message with this xid was sent outside the handlers. One in 16 million of the handlers' messages
    /// is mistaken for such a message.
    pub fn is_xid(self, xid: u32) -> bool {
        self.0 == xid
    }

    /// Returns the origin of a message with this xid.
    pub fn of(xid: u32) -> Self {
        Self(xid & !COUNTER)
    }

    /// Returns the sender.
    pub fn sender(self) -> Sender {
        match self {
            Self::SESSION => Sender::Session,
            Self::REQUEST => Sender::Request,
            Self(_) => Sender::Program,
        }
    }
}

/// The xids of one session: the origin in the top byte, a counter below it.
#[derive(Debug, Default)]
pub(crate) struct Xids {
    last: u32,
}

impl Xids {
    /// Returns the counter of the last xid.
    pub fn last(&self) -> u32 {
        self.last
    }

    /// Continues after the xid with this counter, since a kernel half may have used some.
    pub fn go_on_after(&mut self, last: u32) {
        self.last = last;
    }

    /// Returns a new xid. Xids repeat after 16 million messages, long after any reply.
    #[inline]
    pub fn next(&mut self, origin: Origin) -> u32 {
        self.last = self.last.wrapping_add(1);
        origin.0 | self.last & COUNTER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xids_identify_their_sender_after_the_counter_wraps() {
        let mut xids = Xids { last: u32::MAX - 2 };
        for _ in 0..3 {
            assert_eq!(
                Origin::of(xids.next(Origin::SESSION)).sender(),
                Sender::Session
            );
            assert_eq!(
                Origin::of(xids.next(Origin::program(0))),
                Origin::program(0)
            );
            assert_eq!(
                Origin::of(xids.next(Origin::program(249))),
                Origin::program(249)
            );
            assert_eq!(
                Origin::of(xids.next(Origin::REQUEST)).sender(),
                Sender::Request
            );
        }
    }
}
