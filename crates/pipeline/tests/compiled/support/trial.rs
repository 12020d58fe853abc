//! A trial: random changes interleaved with random packets, each of which is compared with the plain form.

use super::changes::{self, Profile, TABLES};
use super::choices::Choices;
use super::differential::{Comparison, ComparisonConfig, PlansBeside};
use super::frames;
use std::time::Duration;
use urtica_pipeline::BURST;
use urtica_wire::{
    FlowMod, FlowModCommand, GroupMod, GroupModCommand, Instruction, MeterMod, PortConfig,
};

/// The next event.
#[derive(Clone, Copy, Debug)]
enum Event {
    Flow,
    AddMany,
    Packets,
    Wait,
    Group,
    Meter,
    Port,
    Counters,
    Recompile,
}

/// The possible events, most of which are packets.
const EVENTS: [Event; 34] = {
    use Event::*;
    [
        AddMany, Flow, Packets, Flow, Packets, Flow, Packets, Flow, Packets, Flow, Packets, Flow,
        Packets, Flow, Packets, Flow, Packets, Flow, Packets, Packets, Packets, Packets, AddMany,
        Wait, Wait, Group, Group, Meter, Port, Port, Counters, Counters, Recompile, Packets,
    ]
};

/// A trial with random pipelines and packets.
pub struct Trial<'a> {
    choices: Choices<'a>,
    pub comparison: Comparison,
    profiles: [Profile; TABLES as usize],
    /// Whether flow mods are those of 1.0.
    is_of10: bool,
}

impl<'a> Trial<'a> {
    pub fn new(mut choices: Choices<'a>) -> Self {
        let misses_to_controller = choices.is_in(30);
        let comparison = Comparison::new(ComparisonConfig {
            n_tables: TABLES,
            max_entries: choices.pick(&[200, 200, 200, 8]),
            max_bytes: choices.pick(&[16 << 20, 16 << 20, 16 << 20, 4096]),
            misses_to_controller,
            plans_beside: PlansBeside::Shared,
        });
        if !misses_to_controller && choices.is_in(50) {
            comparison.set_misses_punt(false);
        }
        let profiles = [(); TABLES as usize].map(|()| Profile::any(&mut choices));
        let mut trial = Self {
            is_of10: choices.is_in(10),
            choices,
            comparison,
            profiles,
        };
        for id in 1..4 {
            let group = GroupMod {
                command: GroupModCommand::Add,
                group_id: id,
                ..changes::group_mod(&mut trial.choices)
            };
            trial.comparison.group_mod(&group);
        }
        for id in 1..3 {
            let meter = MeterMod {
                meter_id: id,
                ..changes::meter_mod(&mut trial.choices)
            };
            trial.comparison.meter_mod(&meter);
        }
        trial
    }

    /// Creates a trial for sending packets, whose tables are full of entries that match on most fields.
    pub fn filled(seed: u64) -> Trial<'static> {
        let profiles = [
            Profile::Lists,
            Profile::Routes,
            Profile::Routes6,
            Profile::Flows,
            Profile::Hosts,
            Profile::PortLists,
            Profile::Services,
            Profile::Masks,
        ];
        Self::filled_with(seed, &profiles)
    }

    /// Creates a trial whose tables are cut into sub-tables.
    pub fn in_sub_tables(seed: u64) -> Trial<'static> {
        Self::filled_with(seed, &[Profile::PortLists, Profile::Services])
    }

    /// Creates a trial whose tables have merged tuples.
    pub fn of_many_masks(seed: u64) -> Trial<'static> {
        Self::filled_with(seed, &[Profile::Masks])
    }

    fn filled_with(seed: u64, profiles: &[Profile]) -> Trial<'static> {
        let mut trial = Trial::new(Choices::from_seed(seed));
        for table_id in 0..TABLES {
            let profile = profiles[(usize::from(table_id) + seed as usize) % profiles.len()];
            trial.profiles[usize::from(table_id)] = profile;
            for _ in 0..60 {
                let flow_mod = trial.flow_mod(FlowModCommand::Add, table_id);
                trial.carry_out(&flow_mod);
            }
        }
        trial
    }

    /// Creates a trial with so many routes for each port that packets pause in their tries.
    pub fn with_many_routes_of_ports(seed: u64) -> Trial<'static> {
        let mut trial = Trial::new(Choices::from_seed(seed));
        trial.comparison = Comparison::new(ComparisonConfig {
            plans_beside: PlansBeside::Shared,
            ..ComparisonConfig::default()
        });
        trial.is_of10 = false;
        trial.profiles[0] = Profile::PortLists;
        for number in 0..900 {
            let added = trial
                .comparison
                .flow_mod(&changes::far_route_of_port(number));
            added.expect("the flow mod is right");
        }
        let tick = Duration::from_millis(100);
        (0..10).for_each(|_| trial.comparison.wait(tick));
        trial
    }

    /// Creates a trial with so many entries that packets pause for memory: hosts, and then routes.
    pub fn with_many_entries(seed: u64) -> Trial<'static> {
        let mut trial = Trial::new(Choices::from_seed(seed));
        trial.comparison = Comparison::new(ComparisonConfig {
            plans_beside: PlansBeside::Shared,
            ..ComparisonConfig::default()
        });
        trial.is_of10 = false;
        trial.profiles[..2].copy_from_slice(&[Profile::Hosts, Profile::Routes]);
        for number in 0..4500_u32 {
            let host = changes::far_host(number);
            let route = changes::far_route(number);
            for flow_mod in [host, route] {
                trial
                    .comparison
                    .flow_mod(&flow_mod)
                    .expect("the flow mod is right");
            }
        }
        trial
    }

    /// Runs this number of events, or until no choices are left, and then compares all counters.
    pub fn run(&mut self, events: usize) {
        for _ in 0..events {
            if self.choices.is_over() {
                break;
            }
            self.step();
        }
        self.comparison.compare_counters();
    }

    fn step(&mut self) {
        match self.choices.pick(&EVENTS) {
            Event::Flow => {
                let command = changes::command(&mut self.choices);
                self.change_flow(command);
            }
            Event::AddMany => {
                let count = self.choices.pick(&[4, 12, 40, 100]);
                let table_id = self.choices.below(TABLES.into()) as u8;
                for _ in 0..count {
                    let flow_mod = self.flow_mod(FlowModCommand::Add, table_id);
                    self.carry_out(&flow_mod);
                }
            }
            Event::Packets => self.send(),
            Event::Wait => {
                let milliseconds = self.choices.pick(&[0, 1, 500, 1000, 3000]);
                self.comparison.wait(Duration::from_millis(milliseconds));
            }
            Event::Group => {
                let group_mod = changes::group_mod(&mut self.choices);
                self.comparison.group_mod(&group_mod);
            }
            Event::Meter => {
                let meter_mod = changes::meter_mod(&mut self.choices);
                self.comparison.meter_mod(&meter_mod);
            }
            Event::Port => {
                let number = 1 + self.choices.below(4) as u32;
                let config = [
                    PortConfig::empty(),
                    PortConfig::empty(),
                    PortConfig::PORT_DOWN,
                    PortConfig::NO_RECV,
                    PortConfig::NO_FWD,
                    PortConfig::NO_PACKET_IN,
                ];
                self.comparison.set_port(number, self.choices.pick(&config));
            }
            Event::Counters => self.comparison.compare_counters(),
            Event::Recompile => self.comparison.recompile(),
        }
    }

    fn change_flow(&mut self, command: FlowModCommand) {
        let table_id = self.choices.below(TABLES.into()) as u8;
        let flow_mod = self.flow_mod(command, table_id);
        self.carry_out(&flow_mod);
    }

    fn flow_mod(&mut self, command: FlowModCommand, table_id: u8) -> FlowMod<'static> {
        let profile = self.profiles[usize::from(table_id)];
        let flow_mod = changes::flow_mod(&mut self.choices, command, table_id, profile);
        if !self.is_of10 {
            return flow_mod;
        }
        // 1.0 has actions only, and a modify of all tables must not send packets back to an earlier one.
        let instructions = flow_mod.instructions.iter();
        let is_known =
            |instruction: &Instruction| matches!(instruction, Instruction::ApplyActions(_));
        FlowMod {
            instructions: instructions.filter(is_known).collect(),
            ..flow_mod
        }
    }

    fn carry_out(&mut self, flow_mod: &FlowMod) {
        // A refused flow mod changes nothing in any pipeline.
        let _ = match self.is_of10 {
            true => self.comparison.flow_mod_of10(flow_mod),
            false => self.comparison.flow_mod(flow_mod),
        };
    }

    fn send(&mut self) {
        let count = 1 + self.choices.below(BURST);
        let frames: Vec<_> = (0..count)
            .map(|_| {
                let in_port = self.choices.port();
                (in_port, frames::frame(&mut self.choices))
            })
            .collect();
        self.comparison.send(&frames);
    }
}
