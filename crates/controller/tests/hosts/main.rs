//! Hosts, answers in their names, routes and paths, as whole services in an embedded controller.

mod frames;
mod hosts;
// Discovery's tests use all of it.
#[allow(dead_code)]
#[path = "../discovery/mesh.rs"]
mod mesh;
mod neighbour_proxy;
mod net;
mod provision;
mod real_switches;
mod routes;
// The control path's tests use all of it.
#[allow(dead_code)]
#[path = "../control_path/support.rs"]
mod support;
mod threads;
