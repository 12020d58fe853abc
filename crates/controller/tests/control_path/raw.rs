//! Raw programs: frames arrive in order and unchanged, in both directions, and nothing is added.

use crate::support::*;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use urtica_controller::{
    Background, Controller, Frames, KernelHalf, KernelHalves, Network, Program, ProgramSlot,
    RawHandler, RawProgram, RawSwitch, RequestError, Running, Stage, Switch, SwitchHandler,
    SwitchInfo,
};
use urtica_wire::{
    DatapathId, ErrorCode, ErrorMessage, Header, Message, MultipartFlags, PacketIn, PortReason,
    PortStatus, Version,
};

const ID: DatapathId = DatapathId(1);

type React = dyn Fn(&mut RawSwitch, &[u8]) + Send + Sync;

/// Passes each frame to the test, and then to a function of the test.
#[derive(Clone)]
struct Raw {
    seen: Sender<Vec<u8>>,
    network: Arc<Mutex<Option<Network>>>,
    react: Arc<React>,
}

struct RawPart(Raw);

/// The frames received by a raw program.
struct Seen(Receiver<Vec<u8>>);

impl Seen {
    fn next(&self) -> Vec<u8> {
        self.0.recv_timeout(DEADLINE).expect("a frame")
    }
}

impl Raw {
    fn new(react: impl Fn(&mut RawSwitch, &[u8]) + Send + Sync + 'static) -> (Self, Seen) {
        let (seen, receiver) = mpsc::channel();
        let raw = Self {
            seen,
            network: Arc::default(),
            react: Arc::new(react),
        };
        (raw, Seen(receiver))
    }

    fn network(&self) -> Network {
        self.network
            .lock()
            .unwrap()
            .clone()
            .expect("it has started")
    }
}

impl RawProgram for Raw {
    fn handler(&self, _: &SwitchInfo) -> Box<dyn RawHandler> {
        Box::new(RawPart(self.clone()))
    }

    fn start(&self, background: &Background) {
        *self.network.lock().unwrap() = Some(background.network().clone());
    }
}

impl RawHandler for RawPart {
    fn frame(&mut self, switch: &mut RawSwitch, frame: &[u8]) {
        // The test may have ended.
        let _ = self.0.seen.send(frame.to_vec());
        (self.0.react)(switch, frame);
    }

    fn switch_down(&mut self, info: &SwitchInfo) {
        let _ = self.0.seen.send(info.datapath_id.0.to_be_bytes().to_vec());
    }
}

/// Returns a frame with this type, xid and body.
fn frame(version: Version, message_type: u8, xid: u32, body: &[u8]) -> Vec<u8> {
    let length = (Header::SIZE + body.len()) as u16;
    let mut frame = vec![version.to_wire(), message_type];
    frame.extend_from_slice(&length.to_be_bytes());
    frame.extend_from_slice(&xid.to_be_bytes());
    frame.extend_from_slice(body);
    frame
}

fn started(raw: Raw) -> Running {
    controller(1).raw_program(raw).start().unwrap()
}

/// Returns a switch that has sent hello and features reply, and these two frames.
fn joined(running: &Running, version: Version, id: u64) -> (FakeSwitch, Vec<Vec<u8>>) {
    let mut switch = FakeSwitch::over(connect(running), version);
    let hello = frame(version, 0, 0x55, &[]);
    switch.send_bytes(&hello);
    assert!(matches!(switch.receive().message(), Message::Hello(_)));
    let request = switch.receive();
    assert_eq!(request.message(), Message::FeaturesRequest);
    let features = encode(version, request.header().xid, &features(version, id));
    switch.send_bytes(&features);
    (switch, vec![hello, features])
}

fn type_and_xid(frame: &[u8]) -> (u8, u32) {
    let header = Header::peek(frame).unwrap();
    (header.message_type, header.xid)
}

const BARRIER_REQUEST: [u8; 8] = [4, 20, 0, 8, 0, 0, 0, 1];

#[test]
fn receives_every_frame_unchanged_in_order() {
    for version in Version::ALL {
        let (raw, seen) = Raw::new(|_, _| {});
        let running = started(raw);
        let (mut switch, mut sent) = joined(&running, version, 1);
        let status = PortStatus {
            reason: PortReason::Add,
            port: port(9),
        };
        let later = [
            frame(version, 10, 0, &[1, 2, 3]),
            encode(version, 0, &Message::PacketIn(packet_in(&UDP))),
            frame(version, 4, 5, b"\0\0\x23\x20what no codec knows"),
            frame(version, 99, 6, &[]),
            frame(version, 2, 7, b"alive?"),
            frame(Version::Of10, 14, 8, &[0; 3]),
            encode(version, 0, &Message::PortStatus(status)),
            frame(version, 1, 9, &[0, 1, 0, 1]),
            frame(version, 10, 0, &vec![0xa5; 0xffff - 8]),
            encode(version, 0x0123_4567, &Message::BarrierReply),
        ];
        switch.send_bytes(&later.concat());
        sent.extend(later);
        for (index, expected) in sent.iter().enumerate() {
            assert_eq!(&seen.next(), expected, "{version}, frame {index}");
        }
        // No frame is refused, and the session keeps the connection alive.
        let reply = switch.read_frame().unwrap();
        assert_eq!(reply.0, frame(version, 3, 7, b"alive?"));
        switch.assert_served();
        let info = running.network().info(ID).unwrap();
        assert!(info.port(urtica_wire::PortNo(9)).is_some());
        let counters = running.network().counters(ID).unwrap();
        assert_eq!(counters.packet_ins.get(), 3);
        drop(switch);
        assert_eq!(type_and_xid(&seen.next()).0, 2, "the last question");
        assert_eq!(seen.next(), 1_u64.to_be_bytes());
        running.stop().unwrap();
    }
}

#[test]
fn only_given_frames_are_sent_unchanged() {
    for version in Version::ALL {
        let flow_mod = frame(version, 14, 0x0300_0001, &[0xff; 72]);
        let unknown = frame(version, 77, 0, b"nothing");
        let echo_reply = frame(version, 3, 0xff00_0001, b"mine");
        let sent = [flow_mod, unknown, echo_reply];
        let answers = sent.concat();
        let (raw, _seen) = Raw::new(move |switch, frame| {
            if type_and_xid(frame).0 == 10 {
                for answer in &sent {
                    switch.send_frame(answer).unwrap();
                }
            }
        });
        let running = started(raw);
        let (mut switch, _) = joined(&running, version, 1);
        switch.send_bytes(&[&frame(version, 10, 0, &[])[..], &frame(version, 2, 1, &[])].concat());
        let mut received = Vec::new();
        for _ in 0..3 {
            received.extend(switch.read_frame().unwrap().0);
        }
        assert_eq!(received, answers, "{version}");
        assert_eq!(switch.read_frame().unwrap().0, frame(version, 3, 1, &[]));
        running.stop().unwrap();
    }
}

#[test]
fn early_frames_wait_for_the_features_reply() {
    let (raw, seen) = Raw::new(|_, _| {});
    let running = started(raw);
    let mut switch = FakeSwitch::over(connect(&running), Version::Of13);
    let early = [
        frame(Version::Of13, 0, 1, &[]),
        frame(Version::Of13, 10, 0, &[1]),
        frame(Version::Of13, 2, 3, &[2]),
        frame(Version::Of13, 10, 0, &[3]),
    ];
    switch.send_bytes(&early.concat());
    let features_xid = std::iter::from_fn(|| switch.read_frame())
        .find(|frame| frame.message() == Message::FeaturesRequest)
        .unwrap()
        .header()
        .xid;
    switch.send(features_xid, &features(Version::Of13, 1));
    for frame in early {
        assert_eq!(seen.next(), frame);
    }
    assert_eq!(type_and_xid(&seen.next()), (6, features_xid));
    running.stop().unwrap();
}

#[test]
fn excessive_input_before_the_features_reply_is_refused() {
    let (raw, _seen) = Raw::new(|_, _| {});
    let running = started(raw);
    let mut switch = FakeSwitch::over(connect(&running), Version::Of13);
    switch.send_bytes(&frame(Version::Of13, 0, 1, &[]));
    let long = frame(Version::Of13, 10, 0, &[0; 60_000]);
    for _ in 0..18 {
        // The controller may have closed the connection.
        let _ = std::io::Write::write_all(&mut switch.socket, &long);
    }
    switch.read_to_end();
    let (mut other, _) = joined(&running, Version::Of13, 2);
    other.assert_served();
    running.stop().unwrap();
}

/// A service that requests a barrier when its switch comes up, and hides all packet-ins.
struct Service {
    network: Arc<Mutex<Option<Network>>>,
}

struct ServicePart(Sender<u32>);

impl SwitchHandler for ServicePart {
    fn switch_up(&mut self, switch: &mut Switch) {
        assert_eq!(switch.info().ports.len(), 2);
        switch.send(&Message::BarrierRequest).unwrap();
    }

    fn packet_in(&mut self, switch: &mut Switch, _: &PacketIn) {
        switch.consume();
    }

    fn message(&mut self, _: &mut Switch, xid: u32, _: &Message) {
        let _ = self.0.send(xid);
    }
}

#[test]
fn programs_that_observe_share_a_switch_with_it() {
    let (told, replies) = mpsc::channel();
    let network = Arc::new(Mutex::new(None));
    struct Observer(Service, Sender<u32>);
    impl Program for Observer {
        fn handler(&self, _: &SwitchInfo) -> Box<dyn SwitchHandler> {
            Box::new(ServicePart(self.1.clone()))
        }

        fn start(&self, background: &Background) {
            *self.0.network.lock().unwrap() = Some(background.network().clone());
        }

        fn stage(&self) -> Stage {
            Stage::Observe
        }
    }
    let service = Observer(
        Service {
            network: Arc::clone(&network),
        },
        told,
    );
    // Its xids may collide with the xids of the service's barrier and of requests from outside of handlers.
    let (raw, seen) = Raw::new(|switch, frame| {
        if type_and_xid(frame).0 == 10 {
            for tag in [0x01, 0xfa, 0xfe, 0xff_u32] {
                let request = crate::raw::frame(Version::Of13, 20, tag << 24 | 3, &[]);
                switch.send_frame(&request).unwrap();
            }
        }
    });
    let running = controller(1)
        .program(service)
        .raw_program(raw)
        .start()
        .unwrap();
    let (mut switch, sent) = joined(&running, Version::Of13, 1);
    let ports = switch.receive();
    assert!(matches!(ports.message(), Message::MultipartRequest(_)));
    switch.send(
        ports.header().xid,
        &port_desc(MultipartFlags::empty(), &[1, 2]),
    );
    let services = switch.receive().header();
    let network = network.lock().unwrap().clone().unwrap();
    let outside = network.barrier(ID).unwrap();
    let outsides = switch.receive().header();
    switch.send(0, &Message::PacketIn(packet_in(&UDP)));
    let raws: Vec<_> = (0..4).map(|_| switch.receive().header().xid).collect();
    assert!(raws.iter().all(|xid| xid >> 24 == 0xfa), "{raws:x?}");
    // All but the last are answered, in another order; the last is refused.
    for xid in [raws[2], services.xid, raws[0], outsides.xid, raws[1]] {
        switch.send(xid, &Message::BarrierReply);
    }
    let mut data = BARRIER_REQUEST;
    data[4..].copy_from_slice(&raws[3].to_be_bytes());
    let refusal = ErrorMessage {
        code: ErrorCode::BadRequestBadType,
        data: &data,
    };
    switch.send(raws[3], &Message::Error(refusal));
    assert_eq!(replies.recv_timeout(DEADLINE), Ok(services.xid));
    outside.wait(DEADLINE).unwrap();
    for expected in sent {
        assert_eq!(seen.next(), expected);
    }
    assert_eq!(type_and_xid(&seen.next()).0, 10, "consumed by the service");
    for xid in [0xfe00_0003, 0x0100_0003, 0xfa00_0003] {
        assert_eq!(type_and_xid(&seen.next()), (21, xid));
    }
    let error = seen.next();
    assert_eq!(type_and_xid(&error), (1, 0xff00_0003));
    assert_eq!(type_and_xid(&error[12..]), (20, 0xff00_0003));
    running.stop().unwrap();
}

#[test]
fn frames_with_wrong_lengths_are_not_sent() {
    let (told, errors) = mpsc::channel();
    let (raw, _seen) = Raw::new(move |switch, _| {
        for wrong in [
            &[][..],
            &[4, 20, 0],
            &[4, 20, 0, 9, 0, 0, 0, 1],
            &[4, 20, 0, 0, 0, 0, 0, 1],
        ] {
            let _ = told.send(switch.send_frame(wrong).unwrap_err().to_string());
        }
    });
    let running = started(raw.clone());
    let (mut switch, _) = joined(&running, Version::Of13, 1);
    let expected = [
        "a frame has 0 bytes: expected at least 8, the size of an OpenFlow header",
        "a frame has 3 bytes: expected at least 8, the size of an OpenFlow header",
        "the header of a frame has the length 9, but 8 bytes follow from its start",
        "the header of a frame has the length 0, but 8 bytes follow from its start",
    ];
    for expected in expected {
        assert_eq!(errors.recv_timeout(DEADLINE).unwrap(), expected);
    }
    let network = raw.network();
    for wrong in [
        &[4, 20, 0, 9, 0, 0, 0, 1][..],
        &[BARRIER_REQUEST.as_slice(), &[4]].concat(),
    ] {
        let refused = network.send_frames(ID, wrong).unwrap_err();
        assert!(matches!(refused, RequestError::Frame(_)), "{refused}");
    }
    switch.assert_served();
    running.stop().unwrap();
}

#[test]
fn lengths_below_8_affect_only_their_switch() {
    let (raw, _seen) = Raw::new(|_, _| {});
    let running = started(raw);
    let (mut other, _) = joined(&running, Version::Of13, 2);
    for length in [0, 7] {
        let (mut switch, _) = joined(&running, Version::Of13, 1);
        switch.send_bytes(&[4, 10, 0, length, 0, 0, 0, 0]);
        assert_eq!(switch.receive().error_code(), ErrorCode::BadRequestBadLen);
        assert!(switch.try_receive().is_none());
    }
    other.assert_served();
    running.stop().unwrap();
}

#[test]
fn panics_affect_only_their_switch() {
    let (raw, _seen) = Raw::new(|_, frame| assert_ne!(type_and_xid(frame).0, 10, "a packet-in"));
    let running = started(raw);
    let (mut other, _) = joined(&running, Version::Of13, 2);
    let (mut switch, _) = joined(&running, Version::Of13, 1);
    switch.send_bytes(&frame(Version::Of13, 10, 0, &[]));
    assert!(switch.try_receive().is_none());
    other.assert_served();
    let panics = running.network().shard_counters().map(|it| it.panics.get());
    assert_eq!(panics.sum::<u64>(), 1);
    running.stop().unwrap();
}

#[test]
fn other_threads_send_frames_in_their_order() {
    const COUNT: u32 = 500;
    let (raw, _seen) = Raw::new(|_, _| {});
    let running = started(raw.clone());
    let (mut switch, _) = joined(&running, Version::Of13, 1);
    switch.assert_served();
    let senders: Vec<_> = (0..4_u32)
        .map(|sender| {
            let network = raw.network();
            thread::spawn(move || {
                for index in 0..COUNT {
                    let xid = sender << 16 | index;
                    let two = [(); 2].map(|()| frame(Version::Of13, 20, xid, &[]));
                    network.send_frames(ID, two.concat()).unwrap();
                }
            })
        })
        .collect();
    let mut next = [0; 4];
    for _ in 0..4 * COUNT {
        let [first, second] = [(); 2].map(|()| switch.receive().header().xid);
        assert_eq!(first, second, "the frames of one call are together");
        let sender = (first >> 16) as usize;
        assert_eq!(first & 0xffff, next[sender]);
        next[sender] += 1;
    }
    for sender in senders {
        sender.join().unwrap();
    }
    drop(switch);
    eventually("it has left", || raw.network().switches().is_empty());
    let refused = raw.network().send_frames(ID, BARRIER_REQUEST);
    assert_eq!(refused, Err(RequestError::UnknownSwitch(ID)));
    running.stop().unwrap();
}

#[test]
fn many_replies_keep_their_order() {
    const COUNT: u32 = 3000;
    let (raw, _seen) = Raw::new(|switch, request| {
        let (kind, xid) = type_and_xid(request);
        if kind == 10 {
            let reply = frame(Version::Of13, 13, xid, &[0; 1000]);
            switch.send_frame(&reply).unwrap();
        }
    });
    let running = started(raw);
    let (mut switch, _) = joined(&running, Version::Of13, 1);
    let mut requests = Vec::new();
    for xid in 0..COUNT {
        requests.extend(frame(Version::Of13, 10, xid, &[]));
    }
    switch.send_bytes(&requests);
    for xid in 0..COUNT {
        assert_eq!(switch.receive().header().xid, xid);
    }
    switch.assert_served();
    running.stop().unwrap();
}

#[test]
fn unread_frames_are_skipped() {
    struct Lazy(Sender<u8>);
    impl RawHandler for Lazy {
        fn frames(&mut self, switch: &mut RawSwitch, frames: &mut Frames) {
            if let Some(frame) = frames.next(switch) {
                let _ = self.0.send(type_and_xid(frame).0);
            }
        }
    }
    let (told, seen) = mpsc::channel();
    let running = controller(1)
        .raw_program(move |_: &SwitchInfo| Lazy(told.clone()))
        .start()
        .unwrap();
    let (mut switch, _) = joined(&running, Version::Of13, 1);
    switch.assert_served();
    let run = frame(Version::Of13, 10, 0, &[]).repeat(5);
    switch.send_bytes(&run);
    switch.assert_served();
    assert_eq!(
        seen.recv_timeout(DEADLINE),
        Ok(0),
        "the hello, of two frames"
    );
    let counters = running.network().counters(ID).unwrap();
    assert_eq!(counters.packet_ins.get(), 5);
    running.stop().unwrap();
}

#[test]
fn an_embedded_controller_has_raw_programs_too() {
    let (raw, seen) = Raw::new(|switch, frame| {
        if type_and_xid(frame).0 == 10 {
            switch.send_frame(&BARRIER_REQUEST).unwrap();
        }
    });
    let mut embedded = Controller::new().raw_program(raw.clone()).embed().unwrap();
    let now = Duration::from_millis(5);
    let switch = embedded.connect("a test".into(), now);
    let hello = frame(Version::Of13, 0, 1, &[]);
    embedded.handle_input(switch, &hello, now).unwrap();
    let output = embedded.output(switch).unwrap();
    let request = output.split_off(output.len() - Header::SIZE);
    output.clear();
    let (kind, xid) = type_and_xid(&request);
    assert_eq!(kind, 5);
    let features = encode(Version::Of13, xid, &features(Version::Of13, 1));
    let packet_in = frame(Version::Of13, 10, 0, &[]);
    let input = [&features[..], &packet_in].concat();
    embedded.handle_input(switch, &input, now).unwrap();
    for expected in [hello, features, packet_in] {
        assert_eq!(seen.next(), expected);
    }
    raw.network().send_frames(ID, BARRIER_REQUEST).unwrap();
    assert!(embedded.poll(now).is_empty());
    assert_eq!(*embedded.output(switch).unwrap(), BARRIER_REQUEST.repeat(2));
}

#[test]
fn frames_of_auxiliary_connections_reach_the_handler_of_their_switch() {
    let (raw, seen) = Raw::new(|switch, frame| {
        if type_and_xid(frame).0 == 10 {
            switch.send_frame(&BARRIER_REQUEST).unwrap();
        }
    });
    let running = started(raw);
    let (mut main, mut expected) = joined(&running, Version::Of13, 1);
    main.assert_served();
    let mut auxiliary = FakeSwitch::over(connect(&running), Version::Of13);
    let hello = frame(Version::Of13, 0, 9, &[]);
    auxiliary.send_bytes(&hello);
    assert!(matches!(auxiliary.receive().message(), Message::Hello(_)));
    let request = auxiliary.receive().header();
    let mut features = encode(Version::Of13, request.xid, &features(Version::Of13, 1));
    // `auxiliary_id` in `ofp_switch_features` (1.3.5 section 7.3.1).
    features[21] = 1;
    let packet_in = frame(Version::Of13, 10, 0, &[]);
    auxiliary.send_bytes(&[&features[..], &packet_in].concat());
    assert_eq!(auxiliary.receive().0, BARRIER_REQUEST);
    let question = encode(Version::Of13, 0x77, &Message::EchoRequest(b"still there?"));
    expected.extend([question, hello, features, packet_in]);
    for expected in expected {
        assert_eq!(seen.next(), expected);
    }
    main.assert_served();
    running.stop().unwrap();
}

#[test]
fn programs_that_do_more_than_observe_cannot_be_added_later() {
    let (raw, _seen) = Raw::new(|_, _| {});
    let running = started(raw);
    let hub = ProgramSlot::Add(Arc::new(|_: &SwitchInfo| Hub));
    let refused = running.set_programs(&[hub]).unwrap_err().to_string();
    assert!(refused.contains("restart the controller"), "{refused}");
    assert_eq!(running.set_programs(&[]).unwrap(), []);
    running.stop().unwrap();
}

#[test]
fn programs_that_hide_frames_are_refused() {
    struct Halves;
    impl KernelHalves for Halves {
        fn open(&self, _: &SwitchInfo) -> Option<Box<dyn KernelHalf>> {
            None
        }
    }
    let refusal = |controller: Controller| {
        let (raw, _seen) = Raw::new(|_, _| {});
        match controller.raw_program(raw).start() {
            Err(error) => error.to_string(),
            Ok(_) => panic!("expected it to be refused"),
        }
    };
    let forwarding = refusal(controller(1).program(|_: &SwitchInfo| Hub));
    assert!(forwarding.contains("Stage::Observe"), "{forwarding}");
    let halves = refusal(controller(1).kernel_halves(Halves));
    assert!(halves.contains("kernel halves"), "{halves}");
    let running = controller(1).program(|_: &SwitchInfo| Hub).start().unwrap();
    let _switch = FakeSwitch::join(&running, Version::Of13, 1);
    let refused = running.network().send_frames(ID, BARRIER_REQUEST);
    assert_eq!(refused, Err(RequestError::NoRawProgram));
    running.stop().unwrap();
}
