//! At least one encoding of everything: messages, multipart types, actions, instructions, OXM fields, error codes.
//!
//! They are built from typed values, in which each field has a different value and few are zero, so that swapped fields are
//! noticed. The tests next to this folder check the bytes with other implementations.

mod of10;
mod of13;
pub mod peer;
mod values;

use urtica_wire::{
    BufferId, ConfigFlags, ErrorCode, ErrorMessage, Experimenter, Hello, Message, SwitchConfig,
    Version,
};
use values::{EXPERIMENTER, OPAQUE};

/// An encoded message.
pub struct Example {
    /// The example's name.
    pub name: String,
    /// All bytes, including the header.
    pub bytes: Vec<u8>,
}

/// The examples of one version.
pub struct Corpus {
    pub version: Version,
    pub examples: Vec<Example>,
}

/// Returns all examples of this version.
pub fn of(version: Version) -> Corpus {
    let mut corpus = Corpus {
        version,
        examples: Vec::new(),
    };
    corpus.add_symmetric_messages();
    corpus.add_errors();
    corpus.add_configuration();
    match version {
        Version::Of10 => of10::add_all(&mut corpus),
        Version::Of13 => of13::add_all(&mut corpus),
    }
    corpus
}

impl Corpus {
    /// Adds a message under a unique name.
    ///
    /// # Panics
    /// If the message cannot be encoded, or is decoded as another one.
    fn add(&mut self, name: impl Into<String>, message: &Message) {
        let name = name.into();
        let xid = 0x0102_0300 + self.examples.len() as u32;
        let mut bytes = Vec::new();
        message
            .encode(self.version, xid, &mut bytes)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let (header, read) =
            Message::decode(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!((header.xid, &read), (xid, message), "{name}");
        assert!(!self.has(&name), "the name {name} is used twice");
        self.examples.push(Example { name, bytes });
    }

    fn has(&self, name: &str) -> bool {
        self.examples.iter().any(|example| example.name == name)
    }

    fn add_symmetric_messages(&mut self) {
        self.add("hello", &Message::Hello(Hello::default()));
        self.add("echo_request", &Message::EchoRequest(b"are you there?"));
        self.add("echo_reply", &Message::EchoReply(b"yes"));
        let experimenter = Experimenter {
            experimenter: EXPERIMENTER,
            data: OPAQUE,
        };
        self.add("experimenter", &Message::Experimenter(experimenter));
        self.add("barrier_request", &Message::BarrierRequest);
        self.add("barrier_reply", &Message::BarrierReply);
    }

    fn add_errors(&mut self) {
        let version = self.version;
        let cause = [version.to_wire(), 2, 0, 8, 0x0b, 0xad, 0xf0, 0x0d];
        let defined = |code: &&ErrorCode| code.to_wire(version).is_some();
        for &code in ErrorCode::ALL.iter().filter(defined) {
            let is_hello = matches!(
                code,
                ErrorCode::HelloFailedIncompatible | ErrorCode::HelloFailedEperm
            );
            let data: &[u8] = if is_hello {
                b"no version in common"
            } else {
                &cause
            };
            let error = Message::Error(ErrorMessage { code, data });
            self.add(format!("error_{code:?}"), &error);
        }
    }

    fn add_configuration(&mut self) {
        self.add("features_request", &Message::FeaturesRequest);
        self.add("get_config_request", &Message::GetConfigRequest);
        let config = |flags, miss_send_len| SwitchConfig {
            flags,
            miss_send_len,
        };
        let reply = config(ConfigFlags::FRAG_DROP, 128);
        self.add("get_config_reply", &Message::GetConfigReply(reply));
        let set = config(ConfigFlags::FRAG_REASM, 0xffe5);
        self.add("set_config", &Message::SetConfig(set));
    }
}

/// The buffer id in all examples with a buffered packet.
const BUFFER: BufferId = BufferId(0x0102_0304);
