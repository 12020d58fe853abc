//! A hash of numbers.

/// The difference between successive states of SplitMix64: 2^64 divided by the golden ratio.
pub const MIX_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A permutation of 64-bit numbers, for hashes of flows and for random streams. Each bit of the input changes about half of the
/// result's. The result is the number that SplitMix64 draws in this state (Steele, Lea and Flood, "Fast splittable pseudorandom
/// number generators", OOPSLA 2014); the next state is [`MIX_STEP`] higher.
#[inline]
pub const fn mix(state: u64) -> u64 {
    let number = state.wrapping_add(MIX_STEP);
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_splitmix64s() {
        assert_eq!(mix(1_234_567), 6_457_827_717_110_365_317);
        let next = 1_234_567_u64.wrapping_add(MIX_STEP);
        assert_eq!(mix(next), 3_203_168_211_198_807_973);
    }

    #[test]
    fn numbers_that_differ_in_one_bit_differ_in_about_half_of_the_hash() {
        for bit in 0..64 {
            let differing = (mix(12_345) ^ mix(12_345 ^ 1 << bit)).count_ones();
            assert!((16..=48).contains(&differing), "bit {bit}: {differing}");
        }
    }
}
