//! From an entry's instructions to its action program.

use crate::fast::datapath::action_program::{ActionShape, End, MAX_PARAMS, Step};
use crate::fast::datapath::kinds::Kinds;
use crate::{FlowEntry, Instructions};
use urtica_wire::{Action, Field, OxmField, PortNo};

/// What an entry does, compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Deed {
    pub shape: ActionShape,
    /// The steps' parameters, one after the other.
    pub params: Vec<u8>,
    /// A port or a table.
    pub target: u32,
}

impl Deed {
    /// What an entry does to frames that have these headers.
    pub fn new(entry: &FlowEntry, require: Kinds) -> Self {
        Self::of(&entry.instructions, require).unwrap_or_else(|| Self::punt(require))
    }

    fn punt(require: Kinds) -> Self {
        Self {
            shape: ActionShape {
                require,
                steps: Vec::new(),
                end: End::Punt,
            },
            params: Vec::new(),
            target: 0,
        }
    }

    /// `None` where only the plain form can do it: meters, groups, the action set, several outputs, rare actions.
    pub fn of(instructions: &Instructions, require: Kinds) -> Option<Self> {
        if instructions.meter.is_some() || instructions.clear || instructions.write.is_some() {
            return None;
        }
        let mut deed = Self::punt(require);
        deed.shape.end = End::Drop;
        let mut actions = instructions.apply.iter().flatten().peekable();
        while let Some(action) = actions.next() {
            match *action {
                Action::Output { port, .. } if actions.peek().is_none() => deed.output(port)?,
                _ => deed.step(action)?,
            }
        }
        if let Some((metadata, mask)) = instructions.metadata {
            deed.push(
                Step::WriteMetadata,
                &[(metadata & mask).to_ne_bytes(), (!mask).to_ne_bytes()].concat(),
            );
        }
        if let Some(table_id) = instructions.goto {
            if deed.shape.end != End::Drop {
                return None;
            }
            (deed.shape.end, deed.target) = (End::Goto, table_id.into());
        }
        (deed.params.len() <= MAX_PARAMS).then_some(deed)
    }

    fn output(&mut self, port: PortNo) -> Option<()> {
        self.shape.end = match port {
            PortNo::IN_PORT => End::InPort,
            port if port.is_reserved() && port != PortNo::LOCAL => return None,
            _ => End::Output,
        };
        self.target = port.0;
        Some(())
    }

    fn step(&mut self, action: &Action) -> Option<()> {
        match *action {
            Action::SetField(Field::Basic { field, value, .. }) => self.set_field(field, value)?,
            Action::DecNwTtl => self.push(Step::DecNwTtl, &[]),
            Action::PushVlan(ether_type) => self.push(Step::PushVlan(ether_type), &[]),
            Action::PopVlan => self.push(Step::PopVlan, &[]),
            _ => return None,
        }
        Some(())
    }

    fn set_field(&mut self, field: OxmField, value: u128) -> Option<()> {
        use OxmField::*;
        let require = self.shape.require;
        let step = match field {
            EthDst => Step::SetEthDst,
            EthSrc => Step::SetEthSrc,
            VlanVid => Step::SetVlanVid,
            VlanPcp => Step::SetVlanPcp,
            Ipv4Src if require.contains(Kinds::IPV4) => Step::SetIpv4Src,
            Ipv4Dst if require.contains(Kinds::IPV4) => Step::SetIpv4Dst,
            TcpSrc if require.contains(Kinds::TCP) => Step::SetTransportSrc,
            UdpSrc if require.contains(Kinds::UDP) => Step::SetTransportSrc,
            TcpDst if require.contains(Kinds::TCP) => Step::SetTransportDst,
            UdpDst if require.contains(Kinds::UDP) => Step::SetTransportDst,
            _ => return None,
        };
        let value = match step {
            Step::SetVlanVid => value & 0xfff,
            _ => value,
        };
        self.push(step, &value.to_be_bytes()[16 - step.params_len()..]);
        Some(())
    }

    fn push(&mut self, step: Step, params: &[u8]) {
        self.shape.steps.push(step);
        self.params.extend_from_slice(params);
    }
}
