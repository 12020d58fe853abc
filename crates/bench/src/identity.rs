//! The addresses and ports in the frames of a switch.

/// The port that receives the frames.
pub const IN_PORT: u32 = 1;

/// The port at which the frames' destination was announced.
pub const OUT_PORT: u32 = 2;

/// The identity of a switch: its datapath id, and the MAC addresses in its frames.
///
/// cbench writes the switch's number into one byte of each address, so the 257th switch is mistaken for the first. Here,
/// numbers up to 256 result in the same bytes as in cbench, and larger ones extend into the neighbouring bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The switch's datapath id.
    pub datapath_id: u64,
    low: u8,
    high: u16,
}

impl Identity {
    /// Creates the identity of the switch with this datapath id.
    pub fn new(datapath_id: u64) -> Self {
        let high = (datapath_id.saturating_sub(1) >> 8) as u16;
        Self {
            datapath_id,
            low: datapath_id as u8,
            high,
        }
    }

    /// Returns the destination of all its frames: `80:00:00:00:00:ID`.
    pub fn destination(self) -> [u8; 6] {
        let [high, mid] = self.high.to_be_bytes();
        [0x80, 0, 0, high, mid, self.low]
    }

    /// Returns the source MAC with this number, as the low 48 bits of a little-endian integer. The number is in bytes 1 to 3
    /// (little-endian, as in cbench), and its excess over 2^24 in byte 0 above the multicast bit.
    #[inline]
    pub fn source(self, number: u32) -> u64 {
        let own = u64::from(self.low) << 40 | u64::from(self.high as u8) << 32;
        own | u64::from(number & 0xff_ffff) << 8 | u64::from(number >> 24) << 2
    }

    /// Returns this source MAC as bytes.
    pub fn source_bytes(self, number: u32) -> [u8; 6] {
        let [b0, b1, b2, b3, b4, b5, ..] = self.source(number).to_le_bytes();
        [b0, b1, b2, b3, b4, b5]
    }

    /// Returns the number of a source MAC; `None` if it does not belong to this switch.
    pub fn number_of(self, mac: [u8; 6]) -> Option<u32> {
        let number = u32::from_le_bytes([mac[1], mac[2], mac[3], mac[0] >> 2]);
        (self.source_bytes(number) == mac).then_some(number)
    }
}
