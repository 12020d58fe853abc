//! Flow entries, in the text form of `ovs-ofctl`.

use super::OUT_PORT;
use super::network::{EDGES, SERVICE_NET, SERVICES, USER_NET, USERS, l2_host, public_address};
use super::routes::{Route, routes};
use std::net::Ipv4Addr;

/// The gateway's table for packets from the network.
const GATEWAY_DOWN_TABLE: u8 = 50;

/// The gateway's table of routes.
pub const GATEWAY_ROUTE_TABLE: u8 = 60;

/// One entry for each of the first `count` hosts.
pub fn l2(count: u32) -> Vec<String> {
    let entry = |host| {
        format!(
            "table=0,priority=10,dl_dst={},actions=output:{OUT_PORT}",
            l2_host(host)
        )
    };
    (0..count).map(entry).collect()
}

/// One entry for each route.
pub fn l3() -> Vec<String> {
    routes()
        .into_iter()
        .map(|route| route_entry(route, 0, OUT_PORT))
        .collect()
}

/// Two back ends for each service, chosen by the top bit of the source address; everything else is dropped.
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

/// All tables of the gateway, both ways.
pub fn gateway() -> Vec<String> {
    let mut entries = Vec::new();
    for edge in 0..EDGES {
        let table = edge + 1;
        entries.push(format!(
            "table=0,priority=20,in_port=1,dl_vlan={table},actions=pop_vlan,goto_table:{table}"
        ));
        for user in 0..USERS {
            entries.extend(user_entries(edge, user));
        }
        entries.push(format!("table={table},priority=0,actions=drop"));
    }
    entries.push(format!(
        "table=0,priority=10,ip,vlan_tci=0x0000/0x1000,actions=goto_table:{GATEWAY_DOWN_TABLE}"
    ));
    let routes = routes().into_iter();
    entries.extend(routes.map(|route| route_entry(route, GATEWAY_ROUTE_TABLE, OUT_PORT)));
    entries
}

/// A user's address translation: to the network, and back.
fn user_entries(edge: u32, user: u32) -> [String; 2] {
    let (table, vlan_vid) = (edge + 1, 0x1000 | (edge + 1));
    let private = Ipv4Addr::from(USER_NET + user + 1);
    let public = Ipv4Addr::from(public_address(edge, user));
    [
        format!(
            "table={table},priority=10,ip,nw_src={private},\
             actions=set_field:{public}->ip_src,goto_table:{GATEWAY_ROUTE_TABLE}"
        ),
        format!(
            "table={GATEWAY_DOWN_TABLE},priority=10,ip,nw_dst={public},actions=set_field:{private}->ip_dst,\
             push_vlan:0x8100,set_field:{vlan_vid}->vlan_vid,output:{OUT_PORT}"
        ),
    ]
}

/// A route's entry in a table, by which packets leave through `out_port`.
pub fn route_entry(route: Route, table: u8, out_port: u32) -> String {
    format!(
        "table={table},priority={},ip,nw_dst={},actions=set_field:02:aa:00:00:00:{:02x}->eth_dst,\
         set_field:02:bb:00:00:00:01->eth_src,dec_ttl,output:{out_port}",
        route.priority(),
        route.network(),
        route.next_hop
    )
}
