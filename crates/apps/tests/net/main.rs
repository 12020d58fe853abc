//! Tests of bundled programs and services together, in whole networks in simulated time.

mod bandwidth;
mod elephants;
mod firewall;
mod floods;
mod full_tables;
mod fussy;
mod global;
mod l3;
mod lasting_flows;
mod learning;
mod liars;
mod neighbours;
mod rejoining;
mod rest_firewall;
mod rest_qos;
mod rest_router;
mod routing;
mod security;
mod support;
mod together;
