//! Programs that are replaced while the controller runs, on switches that carry traffic.

use crate::support::{config, ms, plan, settle};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use urtica_apps::{Apps, Options};
use urtica_controller::{
    Controller, EntryOptions, Program, ProgramSlot, Switch, SwitchHandler, SwitchInfo,
};
use urtica_net::watch::{Event, Violation, Watcher};
use urtica_net::{Datagrams, Net, SwitchId};
use urtica_wire::{Match, Message, PortNo, split_frame};

/// The number of entries of each program in each switch.
const ENTRIES: u16 = 25;

/// A program with its own permanent entries, which drop packets to the UDP ports from `first` on.
#[derive(Clone, Copy)]
struct Drops {
    first: u16,
    /// Whether it floods packets that match no other entry.
    floods: bool,
}

impl Program for Drops {
    fn handler(&self, _: &SwitchInfo) -> Box<dyn SwitchHandler> {
        Box::new(*self)
    }
}

impl SwitchHandler for Drops {
    fn switch_up(&mut self, switch: &mut Switch) {
        // Programs that discard entries of an earlier run do this, too.
        let _ = switch.delete(Match::any());
        if self.floods {
            let lowest = EntryOptions {
                priority: 1,
                ..EntryOptions::PERMANENT
            };
            let _ = switch.install(Match::any(), PortNo::FLOOD, lowest);
        }
        for port in (self.first..).take(ENTRIES.into()) {
            let udp = Match::any().eth_type(0x0800).ip_proto(17);
            let _ = switch.install(udp.udp_dst(port), &[], EntryOptions::PERMANENT);
        }
    }
}

/// Counts the flow mods that arrive at each switch, and closed connections.
#[derive(Default)]
struct Count {
    flow_mods: BTreeMap<SwitchId, usize>,
    disconnected: usize,
}

impl Watcher for Count {
    fn see(&mut self, _: Duration, event: &Event<'_>) -> Result<(), Violation> {
        match event {
            Event::Disconnected(..) => self.disconnected += 1,
            Event::ToSwitch(switch, bytes) => {
                let mut rest = *bytes;
                while let Ok(Some((frame, after))) = split_frame(rest) {
                    rest = after;
                    if let Ok((_, Message::FlowMod(_))) = Message::decode(frame) {
                        *self.flow_mods.entry(*switch).or_default() += 1;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}

fn entries_of(net: &mut Net) -> usize {
    let switches = net.switches();
    let entries = switches.map(|id| net.switch_mut(id).unwrap().unwrap().entry_count());
    entries.sum()
}

/// Replaces one of four programs while packets are in flight through all switches.
fn replace_one_of_four(switches: usize) {
    let mut net = Net::new(&plan(&format!("linear,{switches}")), config()).unwrap();
    let drops = |first| Drops {
        first,
        floods: first == 1000,
    };
    let firsts = [1000, 2000, 3000, 4000];
    let controller = firsts
        .into_iter()
        .fold(Controller::new(), |controller, first| {
            controller.program(drops(first))
        });
    net.start_controller(controller).unwrap();
    assert!(settle(&mut net, Duration::from_secs(5)));
    let all = switches * (4 * usize::from(ENTRIES) + 2);
    assert_eq!(entries_of(&mut net), all, "with the table-miss entries");

    let (from, to) = (net.host("h1").unwrap(), net.host("h2").unwrap());
    let flow = Datagrams {
        count: 200,
        payload_bytes: 100,
        interval: ms(20),
    };
    let flow = net.start_datagrams(from, to, flow).unwrap();
    net.run_for(ms(200));
    let count = Rc::new(RefCell::new(Count::default()));
    net.watch(Rc::clone(&count));

    // Five of its entries are removed, and five others are added.
    let changed: Arc<dyn Program> = Arc::new(Drops {
        first: 1005,
        floods: true,
    });
    let mut slots: Vec<_> = net
        .program_ids()
        .into_iter()
        .map(ProgramSlot::Keep)
        .collect();
    let ProgramSlot::Keep(id) = slots[0] else {
        panic!("it was just made");
    };
    slots[0] = ProgramSlot::Replace(id, changed);
    net.set_programs(&slots).unwrap();
    net.run_for(Duration::from_secs(6));

    let report = net.flow_report(flow).unwrap();
    assert_eq!((report.sent, report.received), (200, 200), "{report}");
    let count = count.borrow();
    assert_eq!(count.disconnected, 0);
    assert_eq!(count.flow_mods.len(), switches);
    let per_switch = count.flow_mods.values();
    assert!(
        per_switch.clone().all(|sent| *sent == 10),
        "{:?}",
        count.flow_mods
    );
    assert_eq!(entries_of(&mut net), all);
}

#[test]
fn sends_only_changed_entries_and_loses_no_packet() {
    replace_one_of_four(8);
}

#[test]
fn sends_only_changed_entries_to_200_switches() {
    replace_one_of_four(200);
}

#[test]
fn bundled_programs_can_be_added_while_switches_are_connected() {
    let mut net = Net::new(&plan("tree,depth=2,fanout=2"), config()).unwrap();
    let options = Options::default();
    let mut apps = Apps::new(&["hub"], &options).unwrap();
    net.start_controller(apps.add_to(Controller::new()))
        .unwrap();
    apps.note_started(&net.program_ids());
    assert!(settle(&mut net, ms(2_000)));
    assert!(net.ping_all().unwrap().is_complete());
    for names in [
        &["routing"][..],
        &["discovery", "l2"],
        &["l2"],
        &["hosts", "routing"],
    ] {
        let next = apps.next(names, &options).unwrap();
        let ids = net.set_programs(next.slots()).unwrap();
        apps = next.into_apps(&ids);
        // Links and hosts are discovered during this time.
        net.run_for(Duration::from_secs(10));
        // The first packets to unknown hosts may be lost.
        net.ping_all().unwrap();
        let report = net.ping_all().unwrap();
        assert!(report.is_complete(), "{names:?}: {report}");
        assert_eq!(net.connections(), (3, 3));
    }
}
