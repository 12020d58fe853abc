//! Limits the rate of each client's requests, with a token bucket per address.

use crate::error::ApiError;
use axum::http::StatusCode;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Instant;
use urtica_log::{Rate, TokenBucket};

/// The remaining requests of each client's address, as token buckets.
#[derive(Default)]
pub(crate) struct Rates(Mutex<HashMap<IpAddr, TokenBucket>>);

/// The maximum number of remembered addresses. Those with full buckets are forgotten first, which does not affect them.
const MAX_ADDRESSES: usize = 4096;

impl Rates {
    /// Counts a request of an address.
    ///
    /// # Errors
    /// If the address has used up its requests.
    pub fn take(&self, address: IpAddr, per_second: u32) -> Result<(), ApiError> {
        self.take_at(address, per_second, Instant::now())
    }

    fn take_at(&self, address: IpAddr, per_second: u32, now: Instant) -> Result<(), ApiError> {
        let rate = Rate::per_second(per_second, per_second.saturating_mul(2));
        let mut buckets = self.0.lock();
        if buckets.len() >= MAX_ADDRESSES && !buckets.contains_key(&address) {
            buckets.retain(|_, bucket| !bucket.is_full(now));
        }
        let is_full = buckets.len() >= MAX_ADDRESSES && !buckets.contains_key(&address);
        let known = buckets.get(&address).copied();
        let mut bucket = known.unwrap_or_else(|| TokenBucket::new(now));
        if is_full || !bucket.take(rate, now) {
            let refused = format!("too many requests: expected at most {per_second} a second");
            return Err(ApiError::new(StatusCode::TOO_MANY_REQUESTS, refused));
        }
        buckets.insert(address, bucket);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;
    use std::time::Duration;

    #[test]
    fn each_address_has_its_own_rate() {
        let (rates, now) = (Rates::default(), Instant::now());
        let address = |last| IpAddr::V4(Ipv4Addr::new(192, 0, 2, last));
        for _ in 0..20 {
            assert!(rates.take_at(address(1), 10, now).is_ok());
        }
        assert!(rates.take_at(address(1), 10, now).is_err());
        assert!(rates.take_at(address(2), 10, now).is_ok());
        let later = now + Duration::from_millis(100);
        assert!(rates.take_at(address(1), 10, later).is_ok());
        assert!(rates.take_at(address(1), 10, later).is_err());
    }

    #[test]
    fn the_number_of_remembered_addresses_is_bounded() {
        let (rates, now) = (Rates::default(), Instant::now());
        let address = |number: u32| IpAddr::V4(Ipv4Addr::from_bits(number));
        let admitted =
            (0..10_000).filter(|&number| rates.take_at(address(number), 10, now).is_ok());
        assert_eq!(admitted.count(), MAX_ADDRESSES);
        let later = now + Duration::from_secs(10);
        assert!(rates.take_at(address(20_000), 10, later).is_ok());
        assert_eq!(rates.0.lock().len(), 1);
    }
}
