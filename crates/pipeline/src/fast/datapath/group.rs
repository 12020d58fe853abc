//! Compiled groups, and the processing of frames in them, for both backends.
//!
//! **What.** Flow records of entries with a group have the address of its [`GroupCell`], which refers to the current group.
//! [`can_hand_over`] first checks whether the group can process the frame; only then is the frame counted and changed. At the
//! end, [`hand_over`] selects a bucket, which changes the frame and sends it, or passes it to the next group.
//!
//! **How.** A [`CompiledGroup`] does not change, except for the liveness of its buckets. It contains the groups to which it
//! passes frames. A changed group is rebuilt with all groups that lead to it, so [`Needs`] covers everything behind the
//! cell.

use super::buffer::MAX_COPIED;
use super::context::Context;
use super::counting::{add, counters_of};
use super::frame::{DROP, Frame};
use super::kinds::Kinds;
use super::needs::Needs;
use super::op::Op;
use super::operations::{carry_out, ttl};
use super::sent::{AllSent, FrameLocation};
use super::way::{Origin, SentList, Way};
use crate::counters::EntryCounters;
use crate::flow_hash::FlowWords;
use crate::group_select::{Weighed, select};
use crate::layout::Layout;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::atomic::{AtomicBool, AtomicPtr};
use urtica_wire::{OxmField, PortNo};

/// The index in [`Frame::kept`] of the group, from [`can_hand_over`] to [`hand_over`], since the cell may change between
/// the two.
const GROUP: usize = 0;

/// The target of the flow records of all entries with one group. Its address is stable while any of them exists. A changed
/// group is swapped in here, and the old one is kept until no packet can use it.
#[derive(Debug)]
pub(crate) struct GroupCell {
    /// The group; null if packets must be left to the plain form.
    pub group: AtomicPtr<CompiledGroup>,
    /// The group's number.
    pub group_id: u32,
}

/// A group in the compiled form.
#[derive(Debug)]
pub(crate) struct CompiledGroup {
    pub choice: Choice,
    pub needs: Needs,
    /// The group's counters, in the arena; `None` for a group that does not exist, which drops frames.
    pub counters: Option<*const EntryCounters>,
    pub buckets: Box<[CompiledBucket]>,
}

/// The buckets to which a group passes a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// The first bucket, if there is one.
    First,
    /// The first live bucket.
    FirstLive,
    /// One of the live buckets, chosen by the frame's flow.
    ByFlow,
    /// All buckets. If any of them changes the frame, all but the last get copies.
    All,
}

/// A bucket in the compiled form.
#[derive(Debug)]
pub(crate) struct CompiledBucket {
    pub is_live: AtomicBool,
    pub weight: u16,
    pub seed: u64,
    /// The bucket's counters, in the arena.
    pub counters: *const EntryCounters,
    /// Operations, each for frames with these headers.
    pub ops: Box<[(Kinds, Op)]>,
    /// The operations' parameters, one after the other.
    pub params: Box<[u8]>,
    pub end: BucketEnd,
}

/// The destination of a bucket's packets.
#[derive(Clone, Debug)]
pub(crate) enum BucketEnd {
    /// A port, unless it is the input port.
    Output(u32),
    /// The input port.
    InPort,
    /// Another reserved port.
    Reserved(Way),
    /// None: the packet is dropped.
    Drop,
    /// Another group.
    Group(Arc<CompiledGroup>),
}

// SAFETY: counters belong to no thread; accesses are atomic, and they are freed when no thread can see the group.
unsafe impl Send for CompiledBucket {}
// SAFETY: as above.
unsafe impl Sync for CompiledBucket {}
// SAFETY: as above.
unsafe impl Send for CompiledGroup {}
// SAFETY: as above.
unsafe impl Sync for CompiledGroup {}

impl GroupCell {
    /// Creates the cell of a group that is not known yet.
    pub fn new(group_id: u32) -> Self {
        Self {
            group: AtomicPtr::new(null_mut()),
            group_id,
        }
    }
}

impl CompiledGroup {
    /// Creates the representation of a group that does not exist, which drops frames.
    pub fn missing() -> Self {
        Self {
            choice: Choice::First,
            needs: Needs::default(),
            counters: None,
            buckets: Box::default(),
        }
    }
}

impl Weighed for CompiledBucket {
    fn weight(&self) -> u16 {
        self.weight
    }

    fn seed(&self) -> u64 {
        self.seed
    }
}

impl CompiledBucket {
    fn is_live(&self) -> bool {
        self.is_live.load(Relaxed)
    }
}

/// Returns whether a frame can be passed to a cell's current group, after a program with these needs. The frame is not
/// changed, but keeps the group for [`hand_over`].
///
/// # Safety
/// The frame is parsed up to the transport header. The cell's current group is not freed before the burst ends.
pub(crate) unsafe extern "sysv64" fn can_hand_over(
    frame: *mut Frame,
    cell: *const GroupCell,
    headroom: u32,
    ttl_decrements: u32,
) -> bool {
    // SAFETY: both are alive, as this function requires, and the frame is not shared.
    let (frame, shown) = unsafe { (&mut *frame, (*cell).group.load(Acquire)) };
    // SAFETY: this is null, or a group that lives as long as the burst.
    let Some(group) = (unsafe { shown.as_ref() }) else {
        return false;
    };
    frame.kept[GROUP] = shown.expose_provenance() as u64;
    let own = Needs {
        headroom,
        ttl_decrements,
        ..Needs::default()
    };
    let needs = own.then(group.needs);
    let room = frame.data as usize - frame.floor as usize;
    // SAFETY: the frame is parsed up to the network header.
    let ttl_is_enough =
        || unsafe { ttl(frame).is_none_or(|(ttl, _)| u32::from(*ttl) > needs.ttl_decrements) };
    let can_copy = (frame.len + needs.headroom) as usize <= MAX_COPIED;
    room >= needs.headroom as usize
        && (needs.ttl_decrements == 0 || ttl_is_enough())
        && (needs.copies == 0 || can_copy)
}

/// Passes a frame to the group that it keeps, and to further ones, until it has an output. `origin` points to the
/// [`Origin`] of packets to the controller.
///
/// # Safety
/// The frame is parsed up to the transport header, and [`can_hand_over`] has returned `true` for it; since then only the
/// program with the needs passed there has changed the frame. The context is that of its pipeline and burst.
pub(crate) unsafe extern "sysv64" fn hand_over(
    frame: *mut Frame,
    context: *const Context,
    origin: *const u8,
) {
    // SAFETY: all are alive, as this function requires, and neither frame nor outputs are shared.
    let (frame, mut hand) = unsafe {
        let hand = Hand {
            context: &*context,
            sent: &mut *(*context).sent,
            list: (*frame).sent,
            queue_id: (*frame).carried_queue(),
            origin: Origin {
                is_miss: false,
                ..Origin::at(origin)
            },
        };
        (&mut *frame, hand)
    };
    let kept = std::ptr::with_exposed_provenance::<CompiledGroup>(frame.kept[GROUP] as usize);
    // SAFETY: a cell referred to the group within this burst, for this frame.
    unsafe { hand.through(&*kept, frame, FrameLocation::Own) };
    frame.sent = hand.list;
}

/// The state of passing a frame and its copies through groups.
struct Hand<'a> {
    context: &'a Context,
    sent: &'a mut AllSent,
    /// The frame's outputs so far.
    list: SentList,
    /// The queue for all outputs, or 0.
    queue_id: u16,
    origin: Origin,
}

impl Hand<'_> {
    /// Passes a frame through a group and further ones. `place` is the location of the frame's bytes.
    ///
    /// # Safety
    /// The frame meets the group's needs; both belong to the context's pipeline.
    unsafe fn through(&mut self, group: &CompiledGroup, frame: &mut Frame, place: FrameLocation) {
        let (mut group, mut ends) = (group, false);
        while !ends {
            // SAFETY: counters of a group that packets can see are in the arena of the context's pipeline; the frame meets the
            // group's needs.
            let bucket = unsafe {
                if let Some(counters) = group.counters {
                    count(self.context, counters, frame.len);
                }
                match group.choice {
                    Choice::All => self.all_but_last(group, frame, place),
                    choice => choose(group, choice, frame),
                }
            };
            let Some(bucket) = bucket else {
                frame.out_port = DROP;
                return;
            };
            // SAFETY: as above.
            unsafe {
                count(self.context, bucket.counters, frame.len);
                change(frame, bucket);
            }
            ends = true;
            frame.out_port = match &bucket.end {
                BucketEnd::Output(port) if *port == frame.in_port => DROP,
                BucketEnd::Output(port) if self.queue_id == 0 => *port,
                BucketEnd::Output(port) => self.note(frame, place, Way::new(PortNo(*port), 0, 0)),
                BucketEnd::InPort if self.queue_id == 0 => frame.in_port,
                BucketEnd::InPort => self.note(frame, place, Way::new(PortNo::IN_PORT, 0, 0)),
                BucketEnd::Drop => DROP,
                BucketEnd::Reserved(way) => self.note(frame, place, *way),
                BucketEnd::Group(next) => {
                    (group, ends) = (next, false);
                    continue;
                }
            };
        }
    }

    /// Passes a frame through all buckets of a group except the last, and returns that one.
    unsafe fn all_but_last<'a>(
        &mut self,
        group: &'a CompiledGroup,
        frame: &mut Frame,
        place: FrameLocation,
    ) -> Option<&'a CompiledBucket> {
        let (last, others) = group.buckets.split_last()?;
        for bucket in others {
            // SAFETY: the frame meets the group's needs, and is short enough to be copied if copies are needed.
            unsafe {
                if group.needs.changes {
                    let (mut copy, place) = self.sent.copy(frame);
                    self.through_bucket(bucket, &mut copy, place);
                } else {
                    self.through_bucket(bucket, frame, place);
                }
            }
        }
        Some(last)
    }

    /// Passes a frame through one bucket of several, and sends it.
    unsafe fn through_bucket(
        &mut self,
        bucket: &CompiledBucket,
        frame: &mut Frame,
        place: FrameLocation,
    ) {
        // SAFETY: the frame meets the bucket's needs.
        unsafe {
            count(self.context, bucket.counters, frame.len);
            change(frame, bucket);
        }
        let way = |port| Way::new(PortNo(port), 0, 0);
        let way = match &bucket.end {
            BucketEnd::Output(port) if *port == frame.in_port => return,
            BucketEnd::Output(port) => way(*port),
            BucketEnd::InPort => way(PortNo::IN_PORT.0),
            BucketEnd::Reserved(way) => *way,
            BucketEnd::Drop => return,
            BucketEnd::Group(next) => {
                // SAFETY: the frame meets the next group's needs.
                unsafe { self.through(next, frame, place) };
                match frame.out_port {
                    DROP => return,
                    port if port == frame.in_port => way(PortNo::IN_PORT.0),
                    port => way(port),
                }
            }
        };
        self.note(frame, place, way);
    }

    /// Notes an output through the frame's queue. Returns [`DROP`], since there is no other output.
    fn note(&mut self, frame: &Frame, place: FrameLocation, way: Way) -> u32 {
        let way = way.through(self.queue_id);
        self.sent
            .note(&mut self.list, frame, place, way, self.origin);
        DROP
    }
}

unsafe fn count(context: &Context, counters: *const EntryCounters, bytes: u32) {
    // SAFETY: the counters are in the arena of the context's pipeline.
    let counters = unsafe { counters_of(context, counters) };
    add(&counters.packets, 1);
    add(&counters.bytes, bytes.into());
}

unsafe fn choose<'a>(
    group: &'a CompiledGroup,
    choice: Choice,
    frame: &Frame,
) -> Option<&'a CompiledBucket> {
    let mut live = group.buckets.iter().filter(|bucket| bucket.is_live());
    match choice {
        Choice::First | Choice::All => group.buckets.first(),
        Choice::FirstLive => live.next(),
        // SAFETY: the frame is parsed up to the transport header.
        Choice::ByFlow => select(live, unsafe { flow_words(frame) }.hash()),
    }
}

/// Executes a bucket's operations.
unsafe fn change(frame: &mut Frame, bucket: &CompiledBucket) {
    let mut params = bucket.params.as_ptr();
    for &(kinds, op) in &bucket.ops {
        // SAFETY: the frame is parsed up to the transport header and has the headers for which the operation was made; the
        // bucket has parameters for all of its operations.
        unsafe {
            if frame.kinds.contains(kinds) {
                carry_out(frame, op, params);
            }
            params = params.add(op.params_len());
        }
    }
}

/// Returns the identity of the frame's flow, which is equal to that of a [`Packet`](crate::Packet).
unsafe fn flow_words(frame: &Frame) -> FlowWords {
    let is = |kinds| frame.kinds.intersects(kinds);
    if is(Kinds::ICMPV6) || !is(Kinds::IPV4 | Kinds::IPV6 | Kinds::ARP) {
        // SAFETY: `data` and `len` describe the frame's part of its buffer, which does not change here.
        return rare_flow_words(frame, unsafe {
            std::slice::from_raw_parts(frame.data, frame.len as usize)
        });
    }
    // SAFETY: the frame has both Ethernet addresses, the type before `network`, and complete headers for all `kinds`.
    unsafe {
        let mut words = FlowWords {
            ethernet: [
                u64_at(frame.data) >> 16 | u64::from(frame.vlan_vid) << 48,
                u64_at(frame.data.add(4)) & 0xffff_ffff_ffff | u64_at(frame.network.sub(8)) << 48,
            ],
            ..FlowWords::default()
        };
        if is(Kinds::ARP) {
            let address = |at| u64::from(u32_at(frame.network.add(at)));
            words.ports_and_ipv4[1] = address(14) << 32 | address(24);
            words.arp = [8, 18].map(|at| u64_at(frame.network.add(at)) >> 16);
            return words;
        }
        let proto = if is(Kinds::IPV4) {
            words.ports_and_ipv4[1] = u64_at(frame.network.add(12));
            *frame.network.add(9)
        } else {
            words.ipv6_src = [8, 16].map(|at| u64_at(frame.network.add(at)));
            words.ipv6_dst = [24, 32].map(|at| u64_at(frame.network.add(at)));
            words.labels[0] = u64::from(u32_at(frame.network) & 0xf_ffff);
            frame.ip_proto as u8
        };
        words.ports_and_ipv4[0] = u64::from(proto) << 32;
        if is(Kinds::TCP | Kinds::UDP | Kinds::SCTP) {
            words.ports_and_ipv4[0] |= u64::from(u32_at(frame.transport));
        }
        words
    }
}

/// Like `flow_words`, for frames whose parsed headers are insufficient.
#[cold]
fn rare_flow_words(frame: &Frame, bytes: &[u8]) -> FlowWords {
    let layout = Layout::of(bytes);
    FlowWords::from_fields(|field| match field {
        OxmField::VlanVid => frame.vlan_vid.into(),
        OxmField::EthType => layout.eth_type.unwrap_or(0).into(),
        _ => layout.place(field).map_or(0, |place| place.read(bytes)),
    })
}

unsafe fn u64_at(at: *const u8) -> u64 {
    // SAFETY: callers pass the address of 8 bytes in a frame.
    u64::from_be_bytes(unsafe { at.cast::<[u8; 8]>().read() })
}

unsafe fn u32_at(at: *const u8) -> u32 {
    // SAFETY: callers pass the address of 4 bytes in a frame.
    u32::from_be_bytes(unsafe { at.cast::<[u8; 4]>().read() })
}
