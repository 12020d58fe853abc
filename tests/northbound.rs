//! The example that serves HTTP does what it says: with sockets, and in real time, which nothing here depends on.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;
use urtica::controller::Address;
use urtica::prelude::*;
use urtica::topology::spec::TopologySpec;
use urtica_net::{Net, NetConfig};

#[expect(dead_code, reason = "an example has a `main`")]
#[path = "../examples/northbound.rs"]
mod northbound;

/// Longer than anything takes; whoever waits this long has failed.
const BOUND: Duration = Duration::from_secs(60);

/// What the server replies to a request.
fn put(server: SocketAddr, path: &str) -> String {
    let mut socket = TcpStream::connect(server).unwrap();
    write!(
        socket,
        "PUT {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut reply = String::new();
    socket.read_to_string(&mut reply).unwrap();
    reply
}

/// Lets the network run while something else is waited for.
fn run_beside<T: Send + 'static>(net: &mut Net, wait: impl FnOnce() -> T + Send + 'static) -> T {
    let waiting = thread::spawn(wait);
    assert!(net.run_until(|_| waiting.is_finished(), BOUND));
    waiting.join().unwrap()
}

#[test]
fn a_host_is_banned_by_http() {
    let http = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = http.local_addr().unwrap();
    let running = Controller::new()
        .listen("ptcp:0:127.0.0.1".parse().unwrap())
        .shards(1)
        .program(northbound::Northbound(http))
        .program(|_: &SwitchInfo| urtica::apps::L2::default())
        .start()
        .unwrap();
    let Address::PassiveTcp { port, .. } = running.addresses()[0] else {
        panic!("expected a TCP port");
    };
    let plan = "linear,2".parse::<TopologySpec>().unwrap().plan().unwrap();
    let mut net = Net::new(&plan, NetConfig::default()).unwrap();
    let address = format!("tcp:127.0.0.1:{port}");
    net.connect_to(&address.parse().unwrap()).unwrap();
    let network = running.network().clone();
    let have_joined = |_: &mut Net| network.switches().len() == 2;
    assert!(net.run_until(have_joined, BOUND));

    let (h1, h2) = (net.host("h1").unwrap(), net.host("h2").unwrap());
    let (mac, _) = net.host_addresses(h1).unwrap();
    // A ping waits for a second, which a busy machine may need.
    assert!((0..60).any(|_| net.ping(h1, h2).unwrap().received == 1));
    let reply = run_beside(&mut net, move || put(server, &format!("/banned/{mac}")));
    assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
    assert_eq!(net.ping(h1, h2).unwrap().received, 0);

    let reply = run_beside(&mut net, move || put(server, "/banned/nobody"));
    assert!(reply.starts_with("HTTP/1.1 400"), "{reply}");
    running.stop().unwrap();
    // Nobody listens any more: the runtime has ended with its program.
    assert!(TcpStream::connect(server).is_err());
}
