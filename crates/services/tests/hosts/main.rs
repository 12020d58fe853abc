//! Host tracking, replies on hosts' behalf, routes and paths: whole services in an embedded controller.

mod frames;
mod hosts;
#[allow(dead_code, reason = "discovery's tests use all of it")]
#[path = "../discovery/mesh.rs"]
mod mesh;
mod neighbour_proxy;
mod net;
mod provision;
mod real_switches;
mod routes;
mod settings;
#[allow(dead_code, reason = "the control path's tests use all of it")]
#[path = "../../../controller/tests/control_path/support.rs"]
mod support;
mod threads;
