//! Routes, which `l3` and `gateway` share.

use super::SEED;
use super::python_random::PythonRandom;
use std::collections::HashSet;
use std::net::Ipv4Addr;

/// The number of routes.
const ROUTES: usize = 10_000;

/// The number of next hops of the routes.
pub const NEXT_HOPS: u32 = 16;

/// The share of each prefix length in percent, near that of the public BGP table.
const LENGTH_PERCENTS: [(u8, usize); 11] = [
    (24, 57),
    (23, 9),
    (22, 11),
    (21, 5),
    (20, 5),
    (19, 3),
    (18, 2),
    (17, 1),
    (16, 5),
    (15, 1),
    (14, 1),
];

/// An additional route outside the addresses of the others, whose packets show when a change of the route takes effect.
pub const PROBE_ROUTE: Route = Route {
    prefix: 0xdfff_ff01,
    length: 32,
    next_hop: 0,
};

/// A route for the packets of a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The first address.
    pub prefix: u32,
    /// The prefix length, 1 to 32.
    pub length: u8,
    /// The last byte of the next hop's Ethernet address.
    pub next_hop: u8,
}

impl Route {
    /// Draws an address in the route's prefix.
    pub fn address(self, random: &mut PythonRandom) -> u32 {
        self.prefix | random.bits(32 - u32::from(self.length))
    }

    /// Returns the priority of the route's entry: longer prefixes match first.
    pub fn priority(self) -> u16 {
        100 + u16::from(self.length)
    }

    /// Returns the prefix as `ADDRESS/LENGTH`.
    pub fn network(self) -> String {
        format!("{}/{}", Ipv4Addr::from(self.prefix), self.length)
    }
}

/// Returns the routes: distinct prefixes from 11.0.0.0 to 222.255.255.255 without 127.0.0.0/8, some of them nested.
pub fn routes() -> Vec<Route> {
    let mut random = PythonRandom::new(&format!("{SEED}/routes"));
    let lengths: Vec<u8> = LENGTH_PERCENTS
        .iter()
        .flat_map(|&(length, percent)| std::iter::repeat_n(length, percent))
        .collect();
    let mut seen = HashSet::with_capacity(ROUTES);
    let mut routes = Vec::with_capacity(ROUTES);
    while routes.len() < ROUTES {
        let length = random.choice(&lengths);
        let address = random.between(0x0b00_0000, 0xdeff_ffff);
        let prefix = address & u32::MAX << (32 - length);
        if prefix >> 24 != 127 && seen.insert((prefix, length)) {
            let next_hop = random.below(NEXT_HOPS) as u8;
            routes.push(Route {
                prefix,
                length,
                next_hop,
            });
        }
    }
    routes
}

/// Returns the routes in the order in which updates delete them and add them back.
pub fn route_updates() -> Vec<Route> {
    let mut routes = routes();
    PythonRandom::new(&format!("{SEED}/updates")).shuffle(&mut routes);
    routes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_route_contains_the_probes_address() {
        let routes = routes();
        assert_eq!(routes.len(), ROUTES);
        assert!(routes.iter().all(|route| {
            let mask = u32::MAX << (32 - route.length);
            PROBE_ROUTE.prefix & mask != route.prefix
        }));
    }

    #[test]
    fn updates_contain_each_route_once() {
        let (mut all, mut updates) = (routes(), route_updates());
        assert_ne!(all, updates);
        all.sort_by_key(|route| (route.prefix, route.length));
        updates.sort_by_key(|route| (route.prefix, route.length));
        assert_eq!(all, updates);
    }
}
