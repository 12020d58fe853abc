//! A firewall: hosts at guest ports reach the web and name servers, and nothing else; all others reach everything. It works
//! with any forwarding program, here a learning switch: `cargo run --example guest_port`.

use urtica::prelude::*;
use urtica::wire::EncodeError;

/// The ports of each switch that guests are at.
const GUESTS: [PortNo; 1] = [PortNo(3)];

/// What guests may use.
fn permitted() -> Vec<Match<'static>> {
    let tcp = |port| {
        let web = Match::any()
            .eth_type(EtherType::IPV4)
            .ip_proto(IpProtocol::TCP);
        web.tcp_dst(port)
    };
    let names = Match::any()
        .eth_type(EtherType::IPV4)
        .ip_proto(IpProtocol::UDP);
    vec![
        tcp(80),
        tcp(443),
        names.udp_dst(53),
        Match::any().eth_type(EtherType::ARP),
    ]
}

#[derive(Clone)]
pub(crate) struct GuestPorts;

impl Program for GuestPorts {
    fn handler(&self, _: &SwitchInfo) -> Box<dyn SwitchHandler> {
        Box::new(GuestPorts)
    }

    /// It comes before the forwarding programs, and its entries are in a table before theirs.
    fn stage(&self) -> Stage {
        Stage::Filter
    }
}

impl SwitchHandler for GuestPorts {
    fn switch_up(&mut self, switch: &mut Switch) {
        if let Err(error) = set_up(switch) {
            // Without entries that let packets pass, as in OpenFlow 1.0, each packet is judged below.
            eprintln!("{}: {error}", switch.datapath_id());
        }
    }

    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        let fields: Vec<_> = Match::exact(packet).fields().collect();
        let is_of = |match_: Match| match_.fields().all(|field| fields.contains(&field));
        if GUESTS.contains(&packet.in_port()) && !permitted().into_iter().any(is_of) {
            switch.consume();
        }
    }
}

fn set_up(switch: &mut Switch) -> Result<(), EncodeError> {
    let (high, low) = (
        EntryOptions::PERMANENT.priority(2),
        EntryOptions::PERMANENT.priority(1),
    );
    for guest in GUESTS {
        for match_ in permitted() {
            switch.let_pass(match_.in_port(guest), high)?;
        }
        switch.install(Match::any().in_port(guest), &[], low)?;
    }
    // The rest passes.
    switch.let_pass(Match::any(), EntryOptions::PERMANENT.priority(0))?;
    Ok(())
}

fn main() -> urtica::Result<()> {
    Controller::from_args()
        .program(GuestPorts)
        .run(|_: &SwitchInfo| urtica::apps::L2::default())
}
