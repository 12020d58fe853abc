//! From an entry's instructions to its action program.

use crate::fast::datapath::action_program::{
    ActionProgram, End, MAX_OPS, MAX_PARAMS, METER_PARAM_LEN, Op,
};
use crate::fast::datapath::kinds::Kinds;
use crate::{ActionSet, FlowEntry, Instructions};
use urtica_wire::{Action, Field, OxmField, PortNo};

/// What an entry does, compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BoundProgram {
    pub program: ActionProgram,
    /// The operations' parameters, one after the other.
    pub params: Vec<u8>,
    /// A port or a table.
    pub target: u32,
    /// The meter, the address of whose cell the first parameter has to become.
    pub meter: Option<u32>,
}

impl BoundProgram {
    /// What an entry does to frames that have these headers.
    pub fn new(entry: &FlowEntry, require: Kinds) -> Self {
        Self::of(&entry.instructions, require).unwrap_or_else(|| Self::punt(require))
    }

    fn punt(require: Kinds) -> Self {
        Self {
            program: ActionProgram {
                require,
                ops: Vec::new(),
                end: End::Punt,
            },
            params: Vec::new(),
            target: 0,
            meter: None,
        }
    }

    /// `None` if only the plain form can do it: groups, an action set for the next table, several outputs, rare actions.
    ///
    /// So no packet brings an action set to a table: clearing it changes nothing, and without a next table the actions
    /// that are written follow the applied ones.
    pub fn of(instructions: &Instructions, require: Kinds) -> Option<Self> {
        let written = instructions.write.as_deref().unwrap_or_default();
        if !written.is_empty() && instructions.goto.is_some() {
            return None;
        }
        let action_set = ActionSet::from_actions(written);
        let mut bound = Self::punt(require);
        bound.program.end = End::Drop;
        if let Some(meter_id) = instructions.meter {
            bound.meter = Some(meter_id);
            bound.push(Op::Meter, &[0; METER_PARAM_LEN]);
        }
        let applied = instructions.apply.iter().flatten();
        let mut actions = applied.chain(action_set.actions()).peekable();
        while let Some(action) = actions.next() {
            match *action {
                Action::Output { port, .. } if actions.peek().is_none() => bound.output(port)?,
                _ => bound.op(action)?,
            }
        }
        if let Some((metadata, mask)) = instructions.metadata {
            bound.push(
                Op::WriteMetadata,
                &[(metadata & mask).to_ne_bytes(), (!mask).to_ne_bytes()].concat(),
            );
        }
        if let Some(table_id) = instructions.goto {
            if bound.program.end != End::Drop {
                return None;
            }
            (bound.program.end, bound.target) = (End::Goto, table_id.into());
        }
        let fits = bound.params.len() <= MAX_PARAMS && bound.program.ops.len() <= MAX_OPS;
        fits.then_some(bound)
    }

    fn output(&mut self, port: PortNo) -> Option<()> {
        self.program.end = match port {
            PortNo::IN_PORT => End::InPort,
            port if port.is_reserved() && port != PortNo::LOCAL => return None,
            _ => End::Output,
        };
        self.target = port.0;
        Some(())
    }

    fn op(&mut self, action: &Action) -> Option<()> {
        match *action {
            Action::SetField(Field::Basic { field, value, .. }) => self.set_field(field, value)?,
            Action::DecNwTtl => self.push(Op::DecNwTtl, &[]),
            Action::PushVlan(ether_type) => self.push(Op::PushVlan(ether_type), &[]),
            Action::PopVlan => self.push(Op::PopVlan, &[]),
            _ => return None,
        }
        Some(())
    }

    fn set_field(&mut self, field: OxmField, value: u128) -> Option<()> {
        use OxmField::*;
        let require = self.program.require;
        let op = match field {
            EthDst => Op::SetEthDst,
            EthSrc => Op::SetEthSrc,
            VlanVid => Op::SetVlanVid,
            VlanPcp => Op::SetVlanPcp,
            Ipv4Src if require.contains(Kinds::IPV4) => Op::SetIpv4Src,
            Ipv4Dst if require.contains(Kinds::IPV4) => Op::SetIpv4Dst,
            TcpSrc if require.contains(Kinds::TCP) => Op::SetTransportSrc,
            UdpSrc if require.contains(Kinds::UDP) => Op::SetTransportSrc,
            TcpDst if require.contains(Kinds::TCP) => Op::SetTransportDst,
            UdpDst if require.contains(Kinds::UDP) => Op::SetTransportDst,
            _ => return None,
        };
        let value = match op {
            Op::SetVlanVid => value & 0xfff,
            _ => value,
        };
        self.push(op, &value.to_be_bytes()[16 - op.params_len()..]);
        Some(())
    }

    fn push(&mut self, op: Op, params: &[u8]) {
        self.program.ops.push(op);
        self.params.extend_from_slice(params);
    }
}
