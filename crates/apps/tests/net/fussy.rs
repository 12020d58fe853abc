//! Switches that refuse some messages of the firewall: none of them passes denied packets.

use crate::support::ms;
use std::fs;
use std::time::Duration;
use urtica_apps::{Firewall, Hub};
use urtica_controller::{ConnectionId, Controller, Embedded, SwitchInfo};
use urtica_wire::{
    Action, Capabilities, ConfigFlags, DatapathId, ErrorCode, ErrorMessage, Features, Field,
    FlowMod, FlowModCommand, Instruction, List, Match, Message, MultipartFlags, MultipartReply,
    MultipartReplyBody, MultipartRequestBody, OxmField, SwitchConfig, Version, split_frame,
};

const DENY_DNS: &str = "deny tcp,tp_dst=22\ndeny udp,tp_dst=53\ndefault allow";

/// The fate of a packet in table 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Passes,
    Dropped,
    ToController,
}

/// An entry of table 0.
struct Entry {
    priority: u16,
    cookie: u64,
    match_: Match<'static>,
    fate: Fate,
}

/// A switch, and its controller with a firewall.
struct Fussy {
    controller: Embedded,
    connection: ConnectionId,
    now: Duration,
    /// The supported ways to treat fragments, and whether it refuses other ways.
    ways: &'static [ConfigFlags],
    complains: bool,
    /// The field whose entries it refuses.
    dislikes: Option<OxmField>,
    /// Whether it ignores barriers.
    is_silent: bool,
    flags: ConfigFlags,
    entries: Vec<Entry>,
}

impl Fussy {
    fn new(firewall: Firewall, ways: &'static [ConfigFlags]) -> Self {
        let controller = Controller::new()
            .program(firewall)
            .program(|_: &SwitchInfo| Hub);
        let mut controller = controller.embed().unwrap();
        let connection = controller.connect("fussy".into(), Duration::ZERO);
        Self {
            controller,
            connection,
            now: Duration::ZERO,
            ways,
            complains: true,
            dislikes: None,
            is_silent: false,
            flags: ConfigFlags::empty(),
            entries: Vec::new(),
        }
    }

    /// Waits until a second after the switch has joined.
    fn joined(mut self) -> Self {
        self.send(0, &Message::Hello(Default::default()));
        self.advance(ms(1_000));
        self
    }

    /// Advances the time.
    fn advance(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.now = end.min(self.now + ms(50));
            self.settle();
        }
    }

    fn settle(&mut self) {
        loop {
            self.controller.handle_timeout(self.now);
            let output = self.controller.output(self.connection);
            let output = std::mem::take(output.expect("it is not turned away"));
            if output.is_empty() {
                return;
            }
            let mut rest = &output[..];
            while let Ok(Some((frame, after))) = split_frame(rest) {
                let (header, message) = Message::decode(frame).unwrap();
                self.handle(header.xid, message);
                rest = after;
            }
        }
    }

    fn handle(&mut self, xid: u32, message: Message) {
        match message {
            Message::FeaturesRequest => {
                let features = Features {
                    datapath_id: DatapathId(1),
                    n_buffers: 0,
                    n_tables: 2,
                    auxiliary_id: 0,
                    capabilities: Capabilities::empty(),
                    actions: 0,
                    ports: List::default(),
                };
                self.send(xid, &Message::FeaturesReply(features));
            }
            Message::MultipartRequest(request)
                if matches!(request.body, MultipartRequestBody::PortDesc) =>
            {
                let reply = MultipartReply {
                    flags: MultipartFlags::empty(),
                    body: MultipartReplyBody::PortDesc(List::default()),
                };
                self.send(xid, &Message::MultipartReply(reply));
            }
            Message::SetConfig(config) if self.ways.contains(&config.flags) => {
                self.flags = config.flags;
            }
            Message::SetConfig(_) if self.complains => {
                self.refuse(xid, ErrorCode::SwitchConfigFailedBadFlags);
            }
            Message::GetConfigRequest => {
                let config = SwitchConfig {
                    flags: self.flags,
                    miss_send_len: 0xffff,
                };
                self.send(xid, &Message::GetConfigReply(config));
            }
            Message::BarrierRequest if !self.is_silent => self.send(xid, &Message::BarrierReply),
            Message::EchoRequest(data) => self.send(xid, &Message::EchoReply(data)),
            Message::FlowMod(flow_mod) if flow_mod.table_id == 0 => self.change(xid, &flow_mod),
            _ => {}
        }
    }

    fn change(&mut self, xid: u32, flow_mod: &FlowMod) {
        if flow_mod.command == FlowModCommand::Delete {
            let (cookie, mask) = (flow_mod.cookie, flow_mod.cookie_mask);
            return self.entries.retain(|entry| entry.cookie & mask != cookie);
        }
        let fields: Vec<_> = flow_mod.match_.fields().collect();
        if fields
            .iter()
            .any(|field| field.oxm_field() == self.dislikes)
        {
            return self.refuse(xid, ErrorCode::BadMatchBadField);
        }
        let fields = fields.into_iter().filter_map(|field| match field {
            Field::Basic { field, value, mask } => Some(Field::masked(field, value, mask)),
            Field::Raw(_) => None,
        });
        let match_ = Match::from(fields.collect::<Vec<_>>());
        let fates = flow_mod.instructions.iter().map(|does| match does {
            Instruction::GotoTable(_) => Fate::Passes,
            Instruction::ApplyActions(actions)
                if actions.iter().any(|action| action == Action::controller()) =>
            {
                Fate::ToController
            }
            _ => Fate::Dropped,
        });
        let entry = Entry {
            priority: flow_mod.priority,
            cookie: flow_mod.cookie,
            fate: fates.last().unwrap_or(Fate::Dropped),
            match_,
        };
        self.entries
            .retain(|old| (old.priority, &old.match_) != (entry.priority, &entry.match_));
        self.entries.push(entry);
    }

    fn refuse(&mut self, xid: u32, code: ErrorCode) {
        self.send(xid, &Message::Error(ErrorMessage { code, data: &[] }));
    }

    fn send(&mut self, xid: u32, message: &Message) {
        let mut bytes = Vec::new();
        message.encode(Version::Of13, xid, &mut bytes).unwrap();
        let taken = self
            .controller
            .handle_input(self.connection, &bytes, self.now);
        taken.expect("it is not turned away");
    }

    /// Returns the fate of a packet with the fields of this match.
    fn fate(&self, packet: &str) -> Fate {
        let packet: Match = packet.parse().unwrap();
        let matches = |entry: &&Entry| {
            entry.match_.fields().all(|field| match field {
                Field::Basic { field, value, mask } => packet
                    .get(field)
                    .is_some_and(|(found, _)| found & mask == value),
                Field::Raw(_) => false,
            })
        };
        let entries = self.entries.iter().filter(matches);
        let first = entries.max_by_key(|entry| entry.priority);
        first.expect("the table-miss entry matches").fate
    }
}

fn firewall(rules: &str) -> Firewall {
    Firewall::new(rules.parse().unwrap())
}

const NORMAL: ConfigFlags = ConfigFlags::empty();

#[test]
fn switches_that_accept_all_rules_forward_packets_themselves() {
    let ways = &[NORMAL, ConfigFlags::FRAG_NX_MATCH];
    let fussy = Fussy::new(firewall(DENY_DNS), ways).joined();
    assert_eq!(fussy.flags, ConfigFlags::FRAG_NX_MATCH);
    assert_eq!(fussy.fate("udp,tp_dst=53"), Fate::Dropped);
    assert_eq!(fussy.fate("udp,tp_dst=54"), Fate::Passes);
    assert_eq!(fussy.fate("tcp,tp_src=0,tp_dst=0"), Fate::Dropped);
    assert_eq!(fussy.fate("udp,tp_src=0,tp_dst=0"), Fate::Passes);
}

#[test]
fn switches_that_can_only_drop_fragments_drop_them() {
    let ways = &[NORMAL, ConfigFlags::FRAG_DROP];
    for complains in [true, false] {
        let mut fussy = Fussy::new(firewall(DENY_DNS), ways);
        fussy.complains = complains;
        let fussy = fussy.joined();
        assert_eq!(fussy.flags, ConfigFlags::FRAG_DROP);
        assert_eq!(fussy.fate("udp,tp_dst=54"), Fate::Passes);
    }
}

#[test]
fn switches_without_either_feature_send_all_packets_to_the_controller() {
    let fussy = Fussy::new(firewall(DENY_DNS), &[NORMAL]).joined();
    assert_eq!(fussy.fate("udp,tp_dst=54"), Fate::ToController);
    let rules = "deny ip,nw_src=10.0.0.1\ndefault allow";
    let fussy = Fussy::new(firewall(rules), &[NORMAL]).joined();
    assert_eq!(fussy.fate("udp,tp_dst=54"), Fate::Passes, "without ports");
}

#[test]
fn switches_that_refuse_a_rule_send_all_packets_to_the_controller() {
    let mut fussy = Fussy::new(firewall(DENY_DNS), &[NORMAL, ConfigFlags::FRAG_DROP]);
    fussy.dislikes = Some(OxmField::UdpDst);
    let mut fussy = fussy.joined();
    assert_eq!(fussy.fate("udp,tp_dst=54"), Fate::ToController);
    // The rules are sent again, after a pause that grows with each refusal.
    fussy.dislikes = None;
    fussy.advance(ms(1_500));
    assert_eq!(fussy.fate("udp,tp_dst=54"), Fate::Passes);
    assert_eq!(fussy.fate("udp,tp_dst=53"), Fate::Dropped);
}

#[test]
fn switches_that_ignore_new_rules_send_all_packets_to_the_controller() {
    for is_silent in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rules");
        fs::write(&file, "default allow").unwrap();
        let firewall = Firewall::from_file(&file).unwrap();
        let mut fussy = Fussy::new(firewall, &[NORMAL, ConfigFlags::FRAG_DROP]).joined();
        assert_eq!(fussy.fate("udp,tp_dst=53"), Fate::Passes);
        fussy.dislikes = (!is_silent).then_some(OxmField::UdpDst);
        fussy.is_silent = is_silent;
        fs::write(&file, DENY_DNS).unwrap();
        fussy.advance(ms(1_500));
        assert_eq!(fussy.fate("udp,tp_dst=53"), Fate::ToController, "at once");
        fussy.advance(Duration::from_secs(30));
        assert_eq!(fussy.fate("udp,tp_dst=53"), Fate::ToController, "later");
        fs::write(&file, "deny ip,nw_src=10.0.0.1\ndefault allow").unwrap();
        fussy.is_silent = false;
        fussy.advance(ms(1_500));
        assert_eq!(
            fussy.fate("udp,tp_dst=53"),
            Fate::Passes,
            "rules that it takes"
        );
    }
}
