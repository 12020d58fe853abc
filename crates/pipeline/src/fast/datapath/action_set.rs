//! Action sets and queues that tables pass on with frames (1.3.5 sections 5.10 and 5.12).
//!
//! **What.** An entry with a next table may write actions, which are executed after the last table, in the specification's
//! order. Such a frame has [`Kinds::ACTION_SET`] and a [`FrameSet`]. Entries of later tables write more, or clear it. An
//! applied `set_queue` affects all outputs until the next one, even in later tables: a frame that is passed to one has
//! [`Kinds::QUEUE`] and the queue.
//!
//! **How.** The set has one [`Slot`] for each kind of action, in the order of execution, so writing means copying parameters.
//! The order among set-field actions is irrelevant, since each has its own field.
//!
//! **Cost.** Nothing for frames without either. Code does not check for them until the first entry that writes actions or
//! chooses a queue for a next table; from then on, it tests two bits when frames leave. One function handles sets and queues
//! for both machine code and interpreter (`execute.rs`).

use super::kinds::{Depth, Kinds};
use super::op::{CELL_LEN, Op};
use super::way::{ORIGIN_LEN, WAY_LEN, Way};
use crate::ActionSet;
use urtica_wire::packet::ether_type;
use urtica_wire::{Action, Field, OxmField, PortNo, VLAN_PRESENT};

/// The size of a [`SetStep`]'s parameters before those of its slots, in bytes: the address of the
/// [`ActionProgram`](super::action_program::ActionProgram), and an [`Origin`](super::way::Origin).
pub(crate) const SET_PARAM_LEN: usize = PROGRAM_LEN + ORIGIN_LEN;

/// The size of the address, in bytes.
pub(crate) const PROGRAM_LEN: usize = size_of::<u64>();

/// The size of the parameter for a chosen queue, in bytes. It follows the [`Origin`](super::way::Origin), in network order.
pub(crate) const QUEUE_LEN: usize = size_of::<u16>();

/// The size of a group's number, which follows its cell, in bytes.
const GROUP_ID_LEN: usize = size_of::<u32>();

/// An entry's effect on the action sets and queues of frames.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct SetStep {
    /// Whether it clears the set before it writes.
    pub clears: bool,
    /// The actions that it writes. Their parameters follow the others of the program.
    pub written: Vec<Slot>,
    /// Whether the applied actions choose a queue, which the set's output, a group or the next table then uses.
    pub chooses_queue: bool,
    /// A bit for each applied output, starting with the lowest: whether it precedes any choice of a queue, and so uses the queue
    /// of earlier tables.
    pub inherits: u32,
}

impl SetStep {
    /// Returns `true` if it changes the set of a frame without one.
    pub fn writes(&self) -> bool {
        self.clears || !self.written.is_empty()
    }

    /// Returns the offset of the slots' parameters among its own.
    pub fn slots_at(&self) -> usize {
        SET_PARAM_LEN + if self.chooses_queue { QUEUE_LEN } else { 0 }
    }

    /// Returns the size of its parameters, in bytes.
    pub fn params_len(&self) -> usize {
        let slots = self.written.iter().map(|slot| slot.len());
        self.slots_at() + slots.sum::<usize>()
    }
}

/// A kind of action, of which a set has at most one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(crate) enum Slot {
    PopVlan,
    /// 1 byte: 1 for a service tag (0x88a8), 0 for a customer tag (0x8100). No other type can be pushed.
    PushVlan,
    DecNwTtl,
    // Set-field actions have the parameters of their operations.
    EthDst,
    EthSrc,
    VlanVid,
    VlanPcp,
    Ipv4Src,
    Ipv4Dst,
    TcpSrc,
    TcpDst,
    UdpSrc,
    UdpDst,
    /// 2 bytes.
    Queue,
    /// The address of a cell, and the group's number in the machine's byte order. An output is ignored, and shares these bytes.
    Group,
    /// A [`Way`].
    Output,
}

/// The slots that change the frame: all but the last three.
const CHANGES: u16 = (1 << Slot::Queue as u16) - 1;

/// The size of all slots' parameters, in bytes.
const SLOTS_LEN: usize = Slot::Group.at() + Slot::Group.len();

impl Slot {
    pub(super) const ALL: [Self; 16] = [
        Self::PopVlan,
        Self::PushVlan,
        Self::DecNwTtl,
        Self::EthDst,
        Self::EthSrc,
        Self::VlanVid,
        Self::VlanPcp,
        Self::Ipv4Src,
        Self::Ipv4Dst,
        Self::TcpSrc,
        Self::TcpDst,
        Self::UdpSrc,
        Self::UdpDst,
        Self::Queue,
        Self::Group,
        Self::Output,
    ];

    /// Returns the slot of an operation for frames with these headers; `None` if action sets do not use the operation.
    pub fn of(kinds: Kinds, op: Op) -> Option<Self> {
        Some(match op {
            Op::PopVlan => Self::PopVlan,
            Op::PushVlan(_) => Self::PushVlan,
            Op::DecNwTtl => Self::DecNwTtl,
            Op::SetEthDst => Self::EthDst,
            Op::SetEthSrc => Self::EthSrc,
            Op::SetVlanVid => Self::VlanVid,
            Op::SetVlanPcp => Self::VlanPcp,
            Op::SetIpv4Src => Self::Ipv4Src,
            Op::SetIpv4Dst => Self::Ipv4Dst,
            Op::SetTransportSrc if kinds == Kinds::TCP => Self::TcpSrc,
            Op::SetTransportDst if kinds == Kinds::TCP => Self::TcpDst,
            Op::SetTransportSrc => Self::UdpSrc,
            Op::SetTransportDst => Self::UdpDst,
            Op::WriteMetadata | Op::Meter | Op::Send => return None,
        })
    }

    /// Returns the size of its parameters, in bytes.
    pub const fn len(self) -> usize {
        match self {
            Self::PopVlan | Self::DecNwTtl => 0,
            Self::PushVlan | Self::VlanPcp => 1,
            Self::VlanVid | Self::Queue => 2,
            Self::TcpSrc | Self::TcpDst | Self::UdpSrc | Self::UdpDst => 2,
            Self::Ipv4Src | Self::Ipv4Dst => 4,
            Self::EthDst | Self::EthSrc => 6,
            Self::Group => CELL_LEN + GROUP_ID_LEN,
            Self::Output => WAY_LEN,
        }
    }

    /// Returns the depth to which frames must have been parsed for it.
    pub fn depth(self) -> Depth {
        match self {
            Self::EthDst | Self::EthSrc | Self::Queue | Self::Output => Depth::Ethernet,
            Self::PopVlan | Self::PushVlan | Self::VlanVid | Self::VlanPcp => Depth::Type,
            Self::DecNwTtl => Depth::Network,
            _ => Depth::Transport,
        }
    }

    /// Returns its offset among the parameters of all slots.
    const fn at(self) -> usize {
        if matches!(self, Self::Output) {
            return Self::Group.at();
        }
        let (mut at, mut before) = (0, 0);
        while before < self as usize {
            at += Self::ALL[before].len();
            before += 1;
        }
        at
    }

    const fn bit(self) -> u16 {
        1 << self as u16
    }
}

/// The action set of a frame.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct FrameSet {
    /// A bit for each filled slot.
    filled: u16,
    params: [u8; SLOTS_LEN],
}

impl FrameSet {
    pub const EMPTY: Self = Self {
        filled: 0,
        params: [0; SLOTS_LEN],
    };

    pub fn is_empty(&self) -> bool {
        self.filled == 0
    }

    pub(super) fn has(&self, slot: Slot) -> bool {
        self.filled & slot.bit() != 0
    }

    /// Writes an action, which replaces an earlier one of its kind.
    ///
    /// # Safety
    /// `params` points to the slot's parameters.
    pub unsafe fn write(&mut self, slot: Slot, params: *const u8) {
        match slot {
            Slot::Output if self.has(Slot::Group) => return,
            Slot::Group => self.filled &= !Slot::Output.bit(),
            _ => {}
        }
        self.filled |= slot.bit();
        let place = self.params[slot.at()..][..slot.len()].as_mut_ptr();
        // SAFETY: both are this number of bytes long, and parameters never overlap with a set.
        unsafe { place.copy_from_nonoverlapping(params, slot.len()) };
    }

    pub(super) fn read<const N: usize>(&self, slot: Slot) -> [u8; N] {
        std::array::from_fn(|index| self.params[slot.at() + index])
    }

    /// Returns `true` if it changes the frame.
    pub fn changes(&self) -> bool {
        self.filled & CHANGES != 0
    }

    /// Returns the space before the frame that it needs.
    pub fn headroom(&self) -> usize {
        4 * usize::from(self.has(Slot::PushVlan))
    }

    /// Returns the number of TTL decrements.
    pub fn ttl_decrements(&self) -> u8 {
        self.has(Slot::DecNwTtl).into()
    }

    /// Returns its output, if it has one and no group.
    pub fn output(&self) -> Option<Way> {
        let way = Way::from_bytes(self.read(Slot::Output));
        self.has(Slot::Output).then_some(way)
    }

    /// Returns the queue of its output or group, if the set chooses one.
    pub fn queue_id(&self) -> Option<u16> {
        let queue_id = u16::from_be_bytes(self.read(Slot::Queue));
        self.has(Slot::Queue).then_some(queue_id)
    }

    /// Returns the EtherType of the tag that it pushes.
    fn tag_type(&self) -> u16 {
        match self.read(Slot::PushVlan) {
            [0] => ether_type::VLAN,
            _ => ether_type::SERVICE_VLAN,
        }
    }

    /// Returns the parameters of a slot.
    pub(super) fn params_of(&self, slot: Slot) -> &[u8] {
        &self.params[slot.at()..][..slot.len()]
    }

    /// Returns the operation of a slot, for frames with these headers.
    pub(super) fn op(&self, slot: Slot) -> Option<(Kinds, Op)> {
        let any = Kinds::empty();
        Some(match slot {
            Slot::PopVlan => (any, Op::PopVlan),
            Slot::PushVlan => (any, Op::PushVlan(self.tag_type())),
            Slot::DecNwTtl => (any, Op::DecNwTtl),
            Slot::EthDst => (any, Op::SetEthDst),
            Slot::EthSrc => (any, Op::SetEthSrc),
            Slot::VlanVid => (any, Op::SetVlanVid),
            Slot::VlanPcp => (any, Op::SetVlanPcp),
            Slot::Ipv4Src => (Kinds::IPV4, Op::SetIpv4Src),
            Slot::Ipv4Dst => (Kinds::IPV4, Op::SetIpv4Dst),
            Slot::TcpSrc => (Kinds::TCP, Op::SetTransportSrc),
            Slot::TcpDst => (Kinds::TCP, Op::SetTransportDst),
            Slot::UdpSrc => (Kinds::UDP, Op::SetTransportSrc),
            Slot::UdpDst => (Kinds::UDP, Op::SetTransportDst),
            Slot::Queue | Slot::Group | Slot::Output => return None,
        })
    }

    /// Converts it to the plain form's type.
    pub fn to_action_set(self) -> ActionSet {
        let filled = Slot::ALL.into_iter().filter(|slot| self.has(*slot));
        let actions: Vec<_> = filled.map(|slot| self.action(slot)).collect();
        ActionSet::from_actions(&actions)
    }

    fn action(&self, slot: Slot) -> Action<'static> {
        let number = |len: usize| {
            let bytes = &self.params[slot.at()..][..len];
            let push = |number: u128, &byte: &u8| number << 8 | u128::from(byte);
            bytes.iter().fold(0, push)
        };
        let set = |field| Action::SetField(Field::exact(field, number(slot.len())));
        match slot {
            Slot::PopVlan => Action::PopVlan,
            Slot::PushVlan => Action::PushVlan(self.tag_type()),
            Slot::DecNwTtl => Action::DecNwTtl,
            Slot::EthDst => set(OxmField::EthDst),
            Slot::EthSrc => set(OxmField::EthSrc),
            Slot::VlanVid => {
                let vid = number(2) | u128::from(VLAN_PRESENT);
                Action::SetField(Field::exact(OxmField::VlanVid, vid))
            }
            Slot::VlanPcp => set(OxmField::VlanPcp),
            Slot::Ipv4Src => set(OxmField::Ipv4Src),
            Slot::Ipv4Dst => set(OxmField::Ipv4Dst),
            Slot::TcpSrc => set(OxmField::TcpSrc),
            Slot::TcpDst => set(OxmField::TcpDst),
            Slot::UdpSrc => set(OxmField::UdpSrc),
            Slot::UdpDst => set(OxmField::UdpDst),
            Slot::Queue => Action::SetQueue(number(slot.len()) as u32),
            Slot::Group => {
                let id = std::array::from_fn(|index| self.params[slot.at() + CELL_LEN + index]);
                Action::Group(u32::from_ne_bytes(id))
            }
            Slot::Output => {
                let Way {
                    port,
                    max_len_or_queue,
                } = Way::from_bytes(self.read(Slot::Output));
                Action::Output {
                    port: PortNo(port),
                    max_len: max_len_or_queue,
                }
            }
        }
    }
}
