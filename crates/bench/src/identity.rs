//! Which addresses and ports a switch's frames have.

/// The port on which the frames arrive.
pub const IN_PORT: u32 = 1;

/// The port on which the frames' destination was announced.
pub const OUT_PORT: u32 = 2;

/// Who a switch is: its datapath id and the MAC addresses that its frames carry.
///
/// cbench writes the switch's number into one byte of each address, so that the 257th switch is taken for the first.
/// Here the numbers up to 256 give the same bytes, and larger ones spill into the neighbouring bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The switch's datapath id.
    pub datapath_id: u64,
    low: u8,
    high: u16,
}

impl Identity {
    /// The identity of the switch with this datapath id.
    pub fn new(datapath_id: u64) -> Self {
        let high = (datapath_id.saturating_sub(1) >> 8) as u16;
        Self {
            datapath_id,
            low: datapath_id as u8,
            high,
        }
    }

    /// The destination of all its frames: `80:00:00:00:00:ID`.
    pub fn destination(self) -> [u8; 6] {
        let [high, mid] = self.high.to_be_bytes();
        [0x80, 0, 0, high, mid, self.low]
    }

    /// The source MAC with this number, as the low 48 bits of a little-endian integer: the number stands in bytes 1 to
    /// 3 (little-endian, as cbench leaves it), its excess over 2^24 in byte 0 above the multicast bit.
    #[inline]
    pub fn source(self, number: u32) -> u64 {
        let own = u64::from(self.low) << 40 | u64::from(self.high as u8) << 32;
        own | u64::from(number & 0xff_ffff) << 8 | u64::from(number >> 24) << 2
    }

    /// The same address as bytes.
    pub fn source_bytes(self, number: u32) -> [u8; 6] {
        let [b0, b1, b2, b3, b4, b5, ..] = self.source(number).to_le_bytes();
        [b0, b1, b2, b3, b4, b5]
    }

    /// The number of a source MAC; `None` if it is none of this switch's.
    pub fn number_of(self, mac: [u8; 6]) -> Option<u32> {
        let number = u32::from_le_bytes([mac[1], mac[2], mac[3], mac[0] >> 2]);
        (self.source_bytes(number) == mac).then_some(number)
    }
}
