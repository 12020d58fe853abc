//! A switch that a controller and hosts say anything to: nothing panics, and what waits for the controller stays bounded.
//!
//! The input is a sequence of events: a byte that says what happens (0: the controller speaks, 1 and 2: a frame comes in by
//! that port, others: time passes), two bytes of length, the bytes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::time::Duration;
use urtica_switch::port::memory;
use urtica_switch::{ConnectionId, Switch, SwitchConfig};
use urtica_wire::{Hello, MacAddr, PortNo, Version};

/// Far more than the switch ever lets wait, and far less than a machine has.
const BOUND: usize = 64 << 20;

fuzz_target!(|bytes: &[u8]| {
    let mut bench = Bench::new(bytes.len() % 2 == 0);
    let mut rest = bytes;
    while let [kind, l0, l1, after @ ..] = rest {
        let length = usize::from(u16::from_le_bytes([*l0, *l1])).min(after.len());
        let (data, following) = after.split_at(length);
        bench.handle(*kind, data);
        rest = following;
    }
});

struct Bench {
    switch: Switch,
    controller: ConnectionId,
    /// The other ends of ports 1 and 2.
    hosts: Vec<memory::MemoryPort>,
    now: Duration,
}

impl Bench {
    fn new(is_newest: bool) -> Self {
        let mut switch = Switch::new(SwitchConfig::default());
        let mut hosts = Vec::new();
        for number in 1..=2_u32 {
            let mac = MacAddr::from_u64(u64::from(number));
            let (port, host) = memory::pair(("port", mac), ("host", mac), 64);
            switch.add_port(PortNo(number), Box::new(port), Duration::ZERO);
            hosts.push(host);
        }
        let controller = switch.connect("a fuzzer".to_owned(), Duration::ZERO);
        let mut bench = Self {
            switch,
            controller,
            hosts,
            now: Duration::ZERO,
        };
        let version = if is_newest { Version::Of13 } else { Version::Of10 };
        let mut hello = Vec::new();
        Hello::write(&[version], 1, &mut hello);
        bench.say(&hello);
        bench
    }

    fn handle(&mut self, kind: u8, data: &[u8]) {
        match kind {
            0 => self.say(data),
            1 | 2 => {
                use urtica_switch::PortIo;
                let host = &mut self.hosts[usize::from(kind) - 1];
                host.send(data);
                host.flush();
                self.switch.poll_ports(self.now);
                for host in &mut self.hosts {
                    let _ = host.receive(64, &mut |_| {});
                }
            }
            seconds => {
                self.now += Duration::from_secs(u64::from(seconds));
                for (connection, _) in self.switch.handle_timeout(self.now) {
                    self.renew(connection);
                }
            }
        }
        if let Some(output) = self.switch.output(self.controller) {
            assert!(output.len() < BOUND, "{} bytes wait", output.len());
            output.clear();
        }
    }

    fn say(&mut self, bytes: &[u8]) {
        let result = self.switch.handle_input(self.controller, bytes, self.now);
        if result.is_err() {
            self.renew(self.controller);
        }
    }

    fn renew(&mut self, ended: ConnectionId) {
        self.switch.disconnect(ended, self.now);
        self.controller = self.switch.connect("a fuzzer".to_owned(), self.now);
    }
}
