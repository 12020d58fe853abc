//! Meters, groups and flow entries, in the text form of `ovs-ofctl`.

use super::network::{
    BEARER_PORT, EDGES, SERVICE_NET, SERVICES, STATIONS, SUBSCRIBERS, USER_NET, USERS, l2_host,
    public_address, subscriber_address,
};
use super::routes::{NEXT_HOPS, Route, routes};
use super::{OUT_PORT, PROBE_PORT};
use std::net::Ipv4Addr;

/// The gateway's table for packets from the network.
const GATEWAY_DOWN_TABLE: u8 = 50;

/// The gateway's table of routes.
pub const GATEWAY_ROUTE_TABLE: u8 = 60;

/// The mobile gateway's table of base stations.
const STATION_TABLE: u8 = 70;

/// The rate and burst of each meter in kilobits (per second), higher than any core forwards, so that no packet is dropped.
const METER_KBITS: u32 = 100_000_000;

/// Groups and meters that a gateway's entries use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Extras {
    /// Entries without groups and meters.
    None,
    /// A group for each next hop.
    Groups,
    /// A group for each next hop, and a meter for each user.
    GroupsAndMeters,
}

impl Extras {
    /// Returns the instruction that passes a packet through a user's meter, if users have meters.
    fn meter(self, user: u32) -> String {
        match self {
            Self::GroupsAndMeters => format!("meter:{},", user + 1),
            Self::None | Self::Groups => String::new(),
        }
    }

    /// Returns the meters of `users` users, if users have meters.
    fn meters(self, users: u32) -> Vec<String> {
        let meter = |number| {
            format!(
                "meter={number},kbps,burst,band=type=drop,rate={METER_KBITS},burst_size={METER_KBITS}"
            )
        };
        match self {
            Self::GroupsAndMeters => (1..=users).map(meter).collect(),
            Self::None | Self::Groups => Vec::new(),
        }
    }

    /// Returns the groups of `next_hops` next hops, if next hops have groups.
    fn groups(self, next_hops: u32, group: impl Fn(u32) -> String) -> Vec<String> {
        match self {
            Self::None => Vec::new(),
            Self::Groups | Self::GroupsAndMeters => (0..next_hops).map(group).collect(),
        }
    }
}

/// Returns an entry for each of the first `count` hosts.
pub fn l2(count: u32) -> Vec<String> {
    let entry = |host| {
        format!(
            "table=0,priority=10,dl_dst={},actions=output:{OUT_PORT}",
            l2_host(host)
        )
    };
    (0..count).map(entry).collect()
}

/// Returns an entry for each route.
pub fn l3() -> Vec<String> {
    routes()
        .into_iter()
        .map(|route| route_entry(route, 0, OUT_PORT))
        .collect()
}

/// Returns two back ends for each service, chosen by the top bit of the source address; all other packets are dropped.
pub fn lb() -> Vec<String> {
    let mut entries = Vec::new();
    for service in 0..SERVICES {
        let address = Ipv4Addr::from(SERVICE_NET + service);
        for (half, back_end) in [("0.0.0.0/1", 1), ("128.0.0.0/1", 2)] {
            entries.push(format!(
                "table=0,priority=20,tcp,nw_dst={address},tp_dst=80,nw_src={half},\
                 actions=set_field:10.1.{service}.{back_end}->ip_dst,output:{OUT_PORT}"
            ));
        }
    }
    entries.push("table=0,priority=1,actions=drop".to_owned());
    entries
}

/// Returns all tables of the gateway, in both directions.
pub fn gateway(extras: Extras) -> Vec<String> {
    let mut entries = extras.meters(EDGES * USERS);
    entries.extend(extras.groups(NEXT_HOPS, link_group));
    for edge in 0..EDGES {
        let table = edge + 1;
        entries.push(format!(
            "table=0,priority=20,in_port=1,dl_vlan={table},actions=pop_vlan,goto_table:{table}"
        ));
        for user in 0..USERS {
            entries.extend(user_entries(edge, user, extras));
        }
        entries.push(format!("table={table},priority=0,actions=drop"));
    }
    entries.push(format!(
        "table=0,priority=10,ip,vlan_tci=0x0000/0x1000,actions=goto_table:{GATEWAY_DOWN_TABLE}"
    ));
    let routes = routes().into_iter();
    entries.extend(routes.map(|route| match extras {
        Extras::None => route_entry(route, GATEWAY_ROUTE_TABLE, OUT_PORT),
        Extras::Groups | Extras::GroupsAndMeters => grouped_route_entry(route),
    }));
    entries
}

/// Returns a user's address translation: to the network, and back.
fn user_entries(edge: u32, user: u32, extras: Extras) -> [String; 2] {
    let (table, vlan_vid) = (edge + 1, 0x1000 | (edge + 1));
    let private = Ipv4Addr::from(USER_NET + user + 1);
    let public = Ipv4Addr::from(public_address(edge, user));
    let meter = extras.meter(edge * USERS + user);
    [
        format!(
            "table={table},priority=10,ip,nw_src={private},\
             actions={meter}set_field:{public}->ip_src,goto_table:{GATEWAY_ROUTE_TABLE}"
        ),
        format!(
            "table={GATEWAY_DOWN_TABLE},priority=10,ip,nw_dst={public},actions={meter}set_field:{private}->ip_dst,\
             push_vlan:0x8100,set_field:{vlan_vid}->vlan_vid,output:{OUT_PORT}"
        ),
    ]
}

/// Returns the group of a next hop with two links, which share its flows.
fn link_group(next_hop: u32) -> String {
    let bucket = |link: u32| {
        format!(
            "bucket=weight:1,actions=set_field:02:aa:00:00:{link:02x}:{next_hop:02x}->eth_dst,\
             set_field:02:bb:00:00:{link:02x}:01->eth_src,output:{OUT_PORT}"
        )
    };
    format!(
        "group_id={},type=select,{},{}",
        next_hop + 1,
        bucket(0),
        bucket(1)
    )
}

/// Returns a route's entry; the group of its next hop sets the Ethernet addresses and the port.
fn grouped_route_entry(route: Route) -> String {
    format!(
        "table={GATEWAY_ROUTE_TABLE},priority={},ip,nw_dst={},actions=dec_ttl,group:{}",
        route.priority(),
        route.network(),
        u32::from(route.next_hop) + 1
    )
}

/// Returns all tables of the mobile gateway: subscribers' bearers, which lead into a VLAN for each base station.
pub fn mobile(extras: Extras) -> Vec<String> {
    let mut entries = extras.meters(2 * SUBSCRIBERS);
    entries.extend(extras.groups(STATIONS, station_group));
    for subscriber in 0..SUBSCRIBERS {
        entries.extend(bearer_entries(subscriber, extras));
    }
    entries.push("table=0,priority=0,actions=drop".to_owned());
    entries.extend((0..STATIONS).map(|station| station_entry(station, extras)));
    entries
}

/// Returns a subscriber's dedicated bearer and default bearer, each with its own meter.
fn bearer_entries(subscriber: u32, extras: Extras) -> [String; 2] {
    let address = Ipv4Addr::from(subscriber_address(subscriber));
    let vlan_vid = 0x1000 | (subscriber % STATIONS + 1);
    let bearer = |priority, flow: &str, number| {
        format!(
            "table=0,priority={priority},{flow},nw_dst={address},actions={}dec_ttl,\
             push_vlan:0x8100,set_field:{vlan_vid}->vlan_vid,goto_table:{STATION_TABLE}",
            extras.meter(2 * subscriber + number)
        )
    };
    [
        bearer(20, &format!("udp,tp_src={BEARER_PORT}"), 0),
        bearer(10, "ip", 1),
    ]
}

/// Returns the entry that leads to a base station.
fn station_entry(station: u32, extras: Extras) -> String {
    let actions = match extras {
        Extras::None => station_actions(station, 0),
        Extras::Groups | Extras::GroupsAndMeters => format!("group:{}", station + 1),
    };
    format!(
        "table={STATION_TABLE},priority=10,dl_vlan={},actions={actions}",
        station + 1
    )
}

/// Returns the group of a base station, whose second link is used if the first is down.
fn station_group(station: u32) -> String {
    let bucket = |port: u32, link: u32| {
        format!(
            "bucket=watch_port:{port},actions={}",
            station_actions(station, link)
        )
    };
    format!(
        "group_id={},type=ff,{},{}",
        station + 1,
        bucket(OUT_PORT, 0),
        bucket(PROBE_PORT, 1)
    )
}

/// Returns the actions that send over one of a base station's links.
fn station_actions(station: u32, link: u32) -> String {
    let port = [OUT_PORT, PROBE_PORT][link as usize];
    format!(
        "set_field:02:cc:00:00:{link:02x}:{station:02x}->eth_dst,\
         set_field:02:bb:00:00:{link:02x}:01->eth_src,output:{port}"
    )
}

/// Returns a route's entry in a table, by which packets leave through `out_port`.
pub fn route_entry(route: Route, table: u8, out_port: u32) -> String {
    format!(
        "table={table},priority={},ip,nw_dst={},actions=set_field:02:aa:00:00:00:{:02x}->eth_dst,\
         set_field:02:bb:00:00:00:01->eth_src,dec_ttl,output:{out_port}",
        route.priority(),
        route.network(),
        route.next_hop
    )
}
