//! Two links between switches, of which the second is used while the first is down, and at most 100 packets a second from
//! each switch's host. The switches do both without the controller: `cargo run --example backup_link`.

use urtica::prelude::*;
use urtica::wire::EncodeError;

/// Each switch has its host here.
const HOST: PortNo = PortNo(1);
/// The links to the other switch, the preferred one first.
const LINKS: [PortNo; 2] = [PortNo(2), PortNo(3)];

const TO_OTHER: u32 = 1;
const LIMIT: u32 = 1;
const PACKETS_PER_SECOND: u32 = 100;

pub(crate) struct BackupLink;

impl SwitchHandler for BackupLink {
    fn switch_up(&mut self, switch: &mut Switch) {
        if let Err(error) = set_up(switch) {
            eprintln!("{}: {error}", switch.datapath_id());
        }
    }
}

fn set_up(switch: &mut Switch) -> Result<(), EncodeError> {
    // They may be there from an earlier connection, and a switch refuses to add them again.
    switch.send(&Message::GroupMod(GroupMod::delete(TO_OTHER)))?;
    switch.send(&Message::MeterMod(MeterMod::delete(LIMIT)))?;
    let buckets = LINKS.map(|link| Bucket::new(vec![Action::output(link)]).watch_port(link));
    let to_other = GroupMod::fast_failover(TO_OTHER, buckets);
    switch.send(&Message::GroupMod(to_other))?;
    let drop = MeterBand::drop_above(PACKETS_PER_SECOND).burst(PACKETS_PER_SECOND);
    let limit = MeterMod::packets_per_second(LIMIT, [drop]);
    switch.send(&Message::MeterMod(limit))?;

    let from_host = [
        Instruction::Meter(LIMIT),
        Instruction::apply(vec![Action::Group(TO_OTHER)]),
    ];
    switch.send(&Message::FlowMod(FlowMod {
        match_: Match::any().in_port(HOST),
        instructions: from_host.as_slice().into(),
        ..FlowMod::default()
    }))?;
    for link in LINKS {
        switch.install(Match::any().in_port(link), HOST, EntryOptions::PERMANENT)?;
    }
    Ok(())
}

fn main() -> urtica::Result<()> {
    Controller::from_args().run(|_: &SwitchInfo| BackupLink)
}
