//! The effect of a reply's actions and instructions on a packet: its output, and whether the packet is modified.
//!
//! Section numbers are those of OpenFlow 1.0.0 and 1.3.5.

use crate::bytes::{be16, be32};
use crate::config::Version;
use crate::emulated_switch::PORTS;
use crate::identity::{IN_PORT, OUT_PORT};

/// The output of a packet, determined by a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// The port on which the destination was announced.
    Right,
    /// All ports except the ingress port.
    Flood,
    /// Any other port, several ports, duplicates, or no port.
    Wrong,
}

const FLOOD: u32 = 0xffff_fffb;
const ALL: u32 = 0xffff_fffc;

/// The effect of a list of actions or instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effect {
    /// The number of outputs to each of the switch's ports.
    ports: [u32; PORTS as usize],
    floods: u32,
    /// Whether it is output to a missing port, or sent to a group, table or meter that the switch does not have.
    astray: bool,
    /// Whether a field has been changed so far.
    changed: bool,
    /// Whether it was output after a field had been changed.
    rewritten: bool,
}

impl Effect {
    /// Determines the effect of an action list; `None` if a length is invalid.
    pub fn of_actions(version: Version, actions: &[u8]) -> Option<Self> {
        let mut effect = Self::default();
        effect.add_actions(version, actions)?;
        Some(effect)
    }

    /// Determines the effect of a flow mod's instructions (1.3: 7.2.4), in the order in which a switch executes them; `None` if
    /// a length is invalid.
    pub fn of_instructions(instructions: &[u8]) -> Option<Self> {
        const WRITE_METADATA: u16 = 2;
        const WRITE_ACTIONS: u16 = 3;
        const APPLY_ACTIONS: u16 = 4;
        const CLEAR_ACTIONS: u16 = 5;
        let mut effect = Self::default();
        let mut written: &[u8] = &[];
        let mut rest = instructions;
        while !rest.is_empty() {
            let len = usize::from(be16(rest, 2)?);
            let instruction = rest.get(..len).filter(|_| len >= 8)?;
            match be16(instruction, 0)? {
                APPLY_ACTIONS => effect.add_actions(Version::V13, &instruction[8..])?,
                WRITE_ACTIONS => written = &instruction[8..],
                WRITE_METADATA | CLEAR_ACTIONS => {}
                // Another table, a meter, or an experimenter's instruction: the switch has none of these.
                _ => effect.astray = true,
            }
            rest = &rest[len..];
        }
        effect.add_action_set(written)?;
        Some(effect)
    }

    /// Adds an action set, which is executed after everything else, with its output last.
    fn add_action_set(&mut self, written: &[u8]) -> Option<()> {
        let set = Self::of_actions(Version::V13, written)?;
        let is_output = set.floods + set.ports.iter().sum::<u32>() > 0;
        self.rewritten |= is_output && (self.changed || set.changed) || set.rewritten;
        self.floods += set.floods;
        self.astray |= set.astray;
        for (port, count) in self.ports.iter_mut().zip(set.ports) {
            *port += count;
        }
        Some(())
    }

    fn add_actions(&mut self, version: Version, mut actions: &[u8]) -> Option<()> {
        while !actions.is_empty() {
            let len = usize::from(be16(actions, 2)?);
            let action = actions.get(..len).filter(|_| len >= 8 && len % 8 == 0)?;
            match version {
                Version::V10 => self.add_action_10(action)?,
                Version::V13 => self.add_action_13(action)?,
            }
            actions = &actions[len..];
        }
        Some(())
    }

    /// `ofp_action_header` (1.0: 5.2.4).
    fn add_action_10(&mut self, action: &[u8]) -> Option<()> {
        const OUTPUT: u16 = 0;
        const FIRST_SET: u16 = 1;
        const LAST_SET: u16 = 10;
        const ENQUEUE: u16 = 11;
        match be16(action, 0)? {
            OUTPUT | ENQUEUE => {
                let port = u32::from(be16(action, 4)?);
                let is_reserved = port >= 0xff00;
                self.add_output(port | if is_reserved { 0xffff_0000 } else { 0 });
            }
            FIRST_SET..=LAST_SET => self.changed = true,
            _ => self.astray = true,
        }
        Some(())
    }

    /// `ofp_action_header` (1.3: 7.2.5).
    fn add_action_13(&mut self, action: &[u8]) -> Option<()> {
        const OUTPUT: u16 = 0;
        const FIRST_CHANGE: u16 = 11;
        const SET_QUEUE: u16 = 21;
        const GROUP: u16 = 22;
        const LAST_CHANGE: u16 = 27;
        match be16(action, 0)? {
            OUTPUT => self.add_output(be32(action, 4)?),
            SET_QUEUE => {}
            GROUP => self.astray = true,
            FIRST_CHANGE..=LAST_CHANGE => self.changed = true,
            _ => self.astray = true,
        }
        Some(())
    }

    fn add_output(&mut self, port: u32) {
        self.rewritten |= self.changed;
        match port {
            FLOOD | ALL => self.floods += 1,
            1..=PORTS => self.ports[port as usize - 1] += 1,
            _ => self.astray = true,
        }
    }

    /// Returns `true` if the packet is modified before it is output.
    pub fn rewrites(&self) -> bool {
        self.rewritten
    }

    /// Returns the packet's output. Outputs to all ports one by one also count as a flood. An output to the ingress port has no
    /// effect.
    pub fn output(&self) -> Output {
        let counts = (1..=PORTS).zip(self.ports);
        let mut others = counts.filter(|&(port, _)| port != IN_PORT);
        let only_to = |wanted: u32| {
            let counts = (1..=PORTS).zip(self.ports);
            counts
                .clone()
                .all(|(port, count)| count == u32::from(port == wanted))
        };
        match self.floods {
            _ if self.astray => Output::Wrong,
            0 if only_to(OUT_PORT) => Output::Right,
            0 if others.all(|(_, count)| count == 1) => Output::Flood,
            1 if self.ports == [0; PORTS as usize] => Output::Flood,
            _ => Output::Wrong,
        }
    }
}
