//! Translation of an entry's instructions to its action program.

use crate::fast::datapath::action_program::{ActionProgram, End, MAX_OPS, MAX_PARAMS};
use crate::fast::datapath::action_set::{PROGRAM_LEN, SetStep, Slot};
use crate::fast::datapath::group::BucketEnd;
use crate::fast::datapath::kinds::Kinds;
use crate::fast::datapath::needs::Needs;
use crate::fast::datapath::op::{CELL_LEN, METER_PARAM_LEN, Op};
use crate::fast::datapath::way::{Origin, Way};
use crate::{ActionSet, FlowEntry, Instructions};
use urtica_wire::packet::ether_type;
use urtica_wire::{Action, Field, OxmField, PortNo};

/// An entry's instructions as an action program with its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BoundProgram {
    pub program: ActionProgram,
    /// The operations' parameters, one after the other.
    pub params: Vec<u8>,
    /// The output port or the next table.
    pub target: u32,
    /// The meter, whose cell's address must be the first parameter.
    pub meter: Option<u32>,
    /// The group, whose cell's address must be a parameter: see [`ActionProgram::cell_at`].
    pub group: Option<u32>,
    /// The additional outputs.
    sent: Vec<Way>,
    /// The parameters of the written actions.
    written: Vec<u8>,
}

impl BoundProgram {
    /// Compiles an entry for frames that have these headers, and may bring an action set or a queue.
    pub fn new(entry: &FlowEntry, require: Kinds, brings_state: bool) -> Self {
        let origin = Origin {
            cookie: entry.cookie,
            table_id: entry.table_id,
            is_miss: entry.is_table_miss(),
        };
        let bound = Self::of(&entry.instructions, require, brings_state, origin);
        bound.unwrap_or_else(|| Self::punt(require))
    }

    fn punt(require: Kinds) -> Self {
        Self {
            program: ActionProgram {
                require,
                ops: Vec::new(),
                sent: 0,
                end: End::Punt,
                set: None,
            },
            params: Vec::new(),
            target: 0,
            meter: None,
            group: None,
            sent: Vec::new(),
            written: Vec::new(),
        }
    }

    /// Translates instructions. Returns `None` if only the plain form can execute them: a group before other actions or before
    /// a next table, the controller or NORMAL as the only output, or rare actions.
    ///
    /// If no packet brings an action set, clearing it has no effect, and without a next table the written actions just follow
    /// the applied ones.
    pub fn of(
        instructions: &Instructions,
        require: Kinds,
        brings_state: bool,
        origin: Origin,
    ) -> Option<Self> {
        let mut action_set =
            ActionSet::from_actions(instructions.write.as_deref().unwrap_or_default());
        let mut bound = Self::punt(require);
        bound.program.end = End::Drop;
        if has_set_step(instructions, brings_state) {
            bound.write(&action_set, brings_state && instructions.clear)?;
            action_set.clear();
        }
        if let Some(meter_id) = instructions.meter {
            bound.meter = Some(meter_id);
            bound.push(Op::Meter, &[0; METER_PARAM_LEN]);
        }
        let applied = instructions.apply.iter().flatten();
        let mut actions = applied.chain(carried_out(&action_set)).peekable();
        let goes_on = instructions.goto.is_some();
        let mut outputs = Outputs::default();
        while let Some(action) = actions.next() {
            let is_last = !goes_on && actions.peek().is_none();
            match *action {
                Action::Output { port, max_len } => {
                    let way = Way::new(port, max_len, outputs.queue_of_next(port)?);
                    bound.output(way, is_last);
                }
                Action::Enqueue { port, queue_id } => {
                    outputs.count += 1;
                    bound.output(Way::new(port, 0, queue_id.try_into().ok()?), is_last);
                }
                Action::SetQueue(id) => outputs.queue_id = Some(id.try_into().ok()?),
                // A frame can be sent to one group only.
                Action::Group(_) if bound.group.is_some() => return None,
                Action::Group(group_id) if is_last => {
                    bound.send_copies(origin);
                    bound.group = Some(group_id);
                }
                _ => {
                    bound.send_copies(origin);
                    bound.op(action)?;
                }
            }
        }
        if let Some((metadata, mask)) = instructions.metadata {
            if bound.is_handed_over() {
                // A packet-in must have the metadata from before this instruction.
                return None;
            }
            bound.send_copies(origin);
            bound.push(
                Op::WriteMetadata,
                &[(metadata & mask).to_ne_bytes(), (!mask).to_ne_bytes()].concat(),
            );
        }
        bound.finish(instructions, origin)?;
        bound.pass_queue_on(&outputs, brings_state);
        if let Some(step) = &bound.program.set {
            let queue_id = outputs.queue_id.filter(|_| step.chooses_queue);
            bound.params.extend([0; PROGRAM_LEN]);
            bound.params.extend(origin.to_bytes());
            bound
                .params
                .extend(queue_id.iter().flat_map(|id| id.to_be_bytes()));
            bound.params.extend(std::mem::take(&mut bound.written));
        }
        let fits = bound.params.len() <= MAX_PARAMS && bound.program.ops.len() <= MAX_OPS;
        fits.then_some(bound)
    }

    /// Translates writing the actions of a set to those of frames.
    fn write(&mut self, action_set: &ActionSet, clears: bool) -> Option<()> {
        let mut slots = Vec::new();
        for action in action_set.actions() {
            let (slot, params) = match *action {
                Action::Output { port, max_len } => {
                    let way = Way {
                        port: port.0,
                        max_len_or_queue: max_len,
                    };
                    (Slot::Output, way.to_bytes().to_vec())
                }
                Action::SetQueue(id) => {
                    let id = u16::try_from(id).ok()?;
                    (Slot::Queue, id.to_be_bytes().to_vec())
                }
                Action::Group(group_id) => {
                    self.group = Some(group_id);
                    let params = [&[0; CELL_LEN][..], &group_id.to_ne_bytes()].concat();
                    (Slot::Group, params)
                }
                _ => {
                    let (kinds, op, params) = op_of(action, |_| true)?;
                    match op {
                        Op::PushVlan(pushed) => {
                            let is_service = pushed == ether_type::SERVICE_VLAN;
                            (Slot::PushVlan, vec![is_service.into()])
                        }
                        _ => (Slot::of(kinds, op)?, params),
                    }
                }
            };
            slots.push(slot);
            self.written.extend(params);
        }
        self.program.set = Some(SetStep {
            clears,
            written: slots,
            ..SetStep::default()
        });
        Some(())
    }

    /// Notes which outputs use a queue that earlier tables have chosen, and the queue for the set's output, a group or the next
    /// table.
    fn pass_queue_on(&mut self, outputs: &Outputs, brings_state: bool) {
        let hands_on = matches!(self.program.end, End::Goto | End::Group);
        let hands_queue_on = hands_on && outputs.queue_id.is_some_and(|id| id != 0 || brings_state);
        let inherits = brings_state && outputs.inherits != 0;
        if self.program.set.is_none() && !hands_queue_on && !inherits {
            return;
        }
        let step = self.program.set.get_or_insert_default();
        step.chooses_queue = outputs.queue_id.is_some();
        step.inherits = outputs.inherits;
    }

    /// Returns `true` if the applied actions send frames to a group.
    fn is_handed_over(&self) -> bool {
        let is_written = |step: &SetStep| step.written.contains(&Slot::Group);
        self.group.is_some() && !self.program.set.as_ref().is_some_and(is_written)
    }

    fn output(&mut self, way: Way, is_last: bool) {
        let port = PortNo(way.port);
        let stands_for_others = is_reserved(port) && port != PortNo::IN_PORT;
        if !is_last || stands_for_others || way.queue_id() != 0 {
            return self.sent.push(way);
        }
        self.program.end = match port {
            PortNo::IN_PORT => End::InPort,
            _ => End::Output,
        };
        self.target = port.0;
    }

    /// Converts the outputs so far to copies, since the frame may change after them.
    fn send_copies(&mut self, origin: Origin) {
        for way in std::mem::take(&mut self.sent) {
            self.push(
                Op::Send,
                &[&origin.to_bytes()[..], &way.to_bytes()].concat(),
            );
        }
    }

    /// Adds the final outputs.
    fn finish(&mut self, instructions: &Instructions, origin: Origin) -> Option<()> {
        if let Some(table_id) = instructions.goto {
            self.send_copies(origin);
            (self.program.end, self.target) = (End::Goto, table_id.into());
            return Some(());
        }
        let leaves = !self.sent.is_empty() || self.is_handed_over();
        if self.is_handed_over() {
            self.program.end = End::Group;
            self.params.extend([0; CELL_LEN]);
        }
        let for_control = |way: &Way| [PortNo::CONTROLLER.0, PortNo::NORMAL.0].contains(&way.port);
        let is_for_control = self.program.end == End::Drop
            && !self.program.sends_copies()
            && self.sent.iter().all(for_control);
        if !leaves {
            return Some(());
        }
        if is_for_control {
            return None;
        }
        self.params.extend(origin.to_bytes());
        let ways = self.sent.iter();
        self.params.extend(ways.flat_map(|way| way.to_bytes()));
        self.program.sent = u8::try_from(self.sent.len()).ok()?;
        Some(())
    }

    fn op(&mut self, action: &Action) -> Option<()> {
        let require = self.program.require;
        let (kinds, op, param) = op_of(action, |kinds| require.contains(kinds))?;
        debug_assert!(require.contains(kinds));
        self.push(op, &param);
        Some(())
    }

    fn push(&mut self, op: Op, params: &[u8]) {
        self.program.ops.push(op);
        self.params.extend_from_slice(params);
    }
}

/// The outputs of an entry's actions so far.
#[derive(Debug, Default)]
struct Outputs {
    count: u32,
    /// A bit for each output that uses the queue of earlier tables: see [`SetStep::inherits`].
    inherits: u32,
    /// The queue that the actions have chosen most recently.
    queue_id: Option<u16>,
}

impl Outputs {
    /// Counts another output, and returns its queue, which is that of earlier tables if no action has chosen one. `None` if
    /// there are more outputs than a flow record has space for.
    fn queue_of_next(&mut self, port: PortNo) -> Option<u16> {
        let bit = 1_u32.checked_shl(self.count)?;
        self.count += 1;
        if self.queue_id.is_none() && port != PortNo::CONTROLLER {
            self.inherits |= bit;
        }
        Some(self.queue_id.unwrap_or(0))
    }
}

/// Returns `true` if an entry changes or uses the action sets of frames, which may bring some.
fn has_set_step(instructions: &Instructions, brings_state: bool) -> bool {
    match instructions.goto {
        Some(_) => writes_for_next_table(instructions) || brings_state && instructions.clear,
        None => brings_state,
    }
}

/// Returns `true` if an entry passes an action set or a queue to the next table.
pub(super) fn passes_state_on(instructions: &Instructions) -> bool {
    writes_for_next_table(instructions) || chooses_queue_for_next_table(instructions)
}

fn writes_for_next_table(instructions: &Instructions) -> bool {
    let writes = |actions: &Vec<_>| !actions.is_empty();
    instructions.goto.is_some() && instructions.write.as_ref().is_some_and(writes)
}

fn chooses_queue_for_next_table(instructions: &Instructions) -> bool {
    let mut applied = instructions.apply.iter().flatten().rev();
    let last = applied.find(|action| matches!(action, Action::SetQueue(_)));
    instructions.goto.is_some() && last.is_some_and(|action| *action != Action::SetQueue(0))
}

/// Returns the actions of a set that are executed: with a group, the output is ignored (1.3.5 section 5.10).
fn carried_out(action_set: &ActionSet) -> &[Action<'static>] {
    let actions = action_set.actions();
    let is_group = |action: &Action| matches!(action, Action::Group(_));
    match actions.iter().position(is_group) {
        Some(at) => &actions[..=at],
        None => actions,
    }
}

/// Returns an action's operation for frames with these headers, and its parameter. `None` if there is none, or if
/// `can_require` does not accept the required headers.
fn op_of(action: &Action, can_require: impl Fn(Kinds) -> bool) -> Option<(Kinds, Op, Vec<u8>)> {
    use OxmField::*;
    let (field, value) = match *action {
        Action::SetField(Field::Basic { field, value, .. }) => (field, value),
        Action::DecNwTtl => return Some((Kinds::empty(), Op::DecNwTtl, Vec::new())),
        Action::PushVlan(ether_type) => {
            return Some((Kinds::empty(), Op::PushVlan(ether_type), Vec::new()));
        }
        Action::PopVlan => return Some((Kinds::empty(), Op::PopVlan, Vec::new())),
        _ => return None,
    };
    let (kinds, op) = match field {
        EthDst => (Kinds::empty(), Op::SetEthDst),
        EthSrc => (Kinds::empty(), Op::SetEthSrc),
        VlanVid => (Kinds::empty(), Op::SetVlanVid),
        VlanPcp => (Kinds::empty(), Op::SetVlanPcp),
        Ipv4Src => (Kinds::IPV4, Op::SetIpv4Src),
        Ipv4Dst => (Kinds::IPV4, Op::SetIpv4Dst),
        TcpSrc => (Kinds::TCP, Op::SetTransportSrc),
        UdpSrc => (Kinds::UDP, Op::SetTransportSrc),
        TcpDst => (Kinds::TCP, Op::SetTransportDst),
        UdpDst => (Kinds::UDP, Op::SetTransportDst),
        _ => return None,
    };
    let value = match op {
        Op::SetVlanVid => value & 0xfff,
        _ => value,
    };
    let param = value.to_be_bytes()[16 - op.params_len()..].to_vec();
    can_require(kinds).then_some((kinds, op, param))
}

/// A bucket's actions as operations with their parameters.
#[derive(Clone, Debug)]
pub(crate) struct BoundBucket {
    /// Operations, each for frames with these headers.
    pub ops: Vec<(Kinds, Op)>,
    /// The operations' parameters, one after the other.
    pub params: Vec<u8>,
    pub end: BucketEnd,
    /// The group that receives the packet at the end, if any.
    pub next_group: Option<u32>,
}

impl BoundBucket {
    /// Translates a bucket's actions. Returns `None` if only the plain form can execute them.
    pub fn of(actions: &[Action<'static>]) -> Option<Self> {
        let mut bound = Self {
            ops: Vec::new(),
            params: Vec::new(),
            end: BucketEnd::Drop,
            next_group: None,
        };
        for action in carried_out(&ActionSet::from_actions(actions)) {
            match *action {
                Action::Output {
                    port: PortNo::IN_PORT,
                    ..
                } => bound.end = BucketEnd::InPort,
                Action::Output { port, max_len } if is_reserved(port) => {
                    bound.end = BucketEnd::Reserved(Way::new(port, max_len, 0));
                }
                Action::Output { port, .. } => bound.end = BucketEnd::Output(port.0),
                Action::Group(group_id) => bound.next_group = Some(group_id),
                _ => {
                    let (kinds, op, param) = op_of(action, |_| true)?;
                    bound.ops.push((kinds, op));
                    bound.params.extend(param);
                }
            }
        }
        Some(bound)
    }

    /// Returns its operations' requirements on frames.
    pub fn needs(&self) -> Needs {
        let own = Needs {
            sent: matches!(self.end, BucketEnd::Reserved(_)).into(),
            changes: !self.ops.is_empty(),
            ..Needs::default()
        };
        let ops = self.ops.iter().map(|&(_, op)| op);
        ops.fold(own, |needs, op| needs.then(op.needs()))
    }
}

/// Returns `true` if a port number is reserved.
fn is_reserved(port: PortNo) -> bool {
    port.is_reserved() && port != PortNo::LOCAL
}
