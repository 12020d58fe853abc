//! Addresses that a controller can listen at, and the errors for others.

use crate::support::*;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use urtica_controller::{Controller, Error, ListenError, SwitchInfo};
use urtica_socket::Address;
use urtica_wire::{Message, Version};

/// The path of a socket in a temporary folder, which is removed with it.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("urtica-{name}-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        Self(folder.join("of.sock"))
    }

    fn address(&self) -> Address {
        Address::PassiveUnix(self.0.clone())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(self.0.parent().unwrap());
    }
}

fn at(address: Address) -> Controller {
    Controller::new()
        .shards(1)
        .pin(false)
        .listen(address)
        .program(|_: &SwitchInfo| Hub)
}

fn refusal(controller: Controller) -> Error {
    controller.start().err().expect("it cannot start")
}

#[test]
fn tcp_over_ipv4_and_ipv6_and_unix_sockets() {
    let place = Place::new("all");
    let running = at("ptcp:0:127.0.0.1".parse().unwrap())
        .listen("ptcp:0:[::1]".parse().unwrap())
        .listen(place.address())
        .start()
        .unwrap();
    let prefixes = ["tcp:127.0.0.1:", "tcp:[::1]:", "punix:"];
    assert_eq!(running.addresses().len(), prefixes.len());
    for (index, (address, prefix)) in running.addresses().iter().zip(prefixes).enumerate() {
        let id = index as u64 + 1;
        let mut switch = FakeSwitch::start(connect_to(address), Version::Of10, id);
        switch.send(0, &Message::PacketIn(packet_in(&UDP)));
        assert!(matches!(switch.receive().message(), Message::PacketOut(_)));
        let peer = &running
            .network()
            .info(urtica_wire::DatapathId(id))
            .unwrap()
            .peer;
        assert!(peer.starts_with(prefix), "{peer}");
    }
    running.stop().unwrap();
    assert!(!place.0.exists(), "the socket's file is removed");
}

#[test]
fn a_port_in_use_is_named() {
    let running = at("ptcp:0:127.0.0.1".parse().unwrap()).start().unwrap();
    let address = &running.addresses()[0];
    let error = refusal(at(address.clone()));
    assert!(matches!(&error, Error::Listen(ListenError::InUse(named)) if named == address));
    let sentence = error.to_string();
    assert!(
        sentence.starts_with(&format!(
            "cannot listen at {address}: the address is in use"
        )),
        "{sentence}"
    );
    running.stop().unwrap();
}

#[test]
fn an_address_to_connect_to_is_refused() {
    let error = refusal(at("tcp:127.0.0.1:6653".parse().unwrap()));
    let expected = "cannot listen at tcp:127.0.0.1:6653, which is an address to connect to; to listen there use \
                    ptcp:6653:127.0.0.1";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn an_address_of_another_machine_is_refused() {
    let error = refusal(at("ptcp:0:192.0.2.1".parse().unwrap()));
    assert!(
        error
            .to_string()
            .starts_with("cannot listen at ptcp:0:192.0.2.1: "),
        "{error}"
    );
}

#[test]
fn a_controller_without_programs_or_with_too_many_is_refused() {
    assert!(matches!(refusal(controller(1)), Error::NoProgram));
    let many = (0..251).fold(controller(1), |controller, _| {
        controller.program(|_: &SwitchInfo| Hub)
    });
    let sentence = refusal(many).to_string();
    assert_eq!(
        sentence,
        "251 control programs were given; at most 250 fit into one controller"
    );
}

#[test]
fn stale_sockets_are_replaced() {
    let place = Place::new("stale");
    drop(UnixListener::bind(&place.0).unwrap());
    assert!(place.0.exists());
    let running = at(place.address()).start().unwrap();
    FakeSwitch::start(connect(&running), Version::Of10, 1).assert_served();
    running.stop().unwrap();
}

#[test]
fn sockets_with_a_listener_are_kept() {
    let place = Place::new("taken");
    let other = UnixListener::bind(&place.0).unwrap();
    let error = refusal(at(place.address()));
    assert!(
        matches!(error, Error::Listen(ListenError::InUse(_))),
        "{error}"
    );
    assert!(place.0.exists());
    drop(other);
}

#[test]
fn files_that_are_no_sockets_are_kept() {
    let place = Place::new("file");
    std::fs::write(&place.0, "precious").unwrap();
    let sentence = refusal(at(place.address())).to_string();
    assert!(
        sentence.contains("exists and is not a socket"),
        "{sentence}"
    );
    assert_eq!(std::fs::read_to_string(&place.0).unwrap(), "precious");
}
