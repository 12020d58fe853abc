//! The rows of services, which `urtica run` accepts by name as well.

use super::about::{About, Service};
use super::row::Row;

pub(super) static DISCOVERY: Row = Row {
    about: About::service(
        Service::Discovery,
        "finds links between switches, and floods without loops",
    ),
    add: |setup, ()| {
        setup.discovery();
        Ok(())
    },
};

pub(super) static HOSTS: Row = Row {
    about: About::service(
        Service::Hosts,
        "finds hosts and their addresses, and tracks their moves",
    ),
    add: |setup, ()| {
        setup.hosts();
        Ok(())
    },
};

pub(super) static NEIGHBOUR_PROXY: Row = Row {
    about: About::service(
        Service::NeighbourProxy,
        "answers requests for hosts' addresses (ARP, IPv6 neighbour discovery)",
    ),
    add: |setup, ()| {
        setup.neighbour_proxy();
        Ok(())
    },
};

pub(super) static ROUTES: Row = Row {
    about: About::service(
        Service::Routes,
        "maintains shortest paths between all switches",
    ),
    add: |setup, ()| {
        setup.routes();
        Ok(())
    },
};

pub(super) static PROVISIONER: Row = Row {
    about: About::service(
        Service::Provisioner,
        "sets up paths across switches, all or nothing",
    ),
    add: |setup, ()| {
        setup.provisioner();
        Ok(())
    },
};
