//! A hub that speaks OpenFlow itself: `cargo run --example raw_hub`.
//!
//! It gets frames instead of messages, and configures its switches itself.

use urtica::controller::{RawHandler, RawSwitch};
use urtica::prelude::*;

/// One switch's part.
#[derive(Default)]
pub(crate) struct RawHub {
    last_xid: u32,
}

impl RawHub {
    fn send(&mut self, switch: &mut RawSwitch, message: &Message) {
        self.last_xid += 1;
        let mut frame = Vec::new();
        let encoded = message.encode(switch.info().version, self.last_xid, &mut frame);
        if let Err(error) = encoded {
            eprintln!("{}: {error}", switch.datapath_id());
        } else if let Err(error) = switch.send_frame(&frame) {
            eprintln!("{}: {error}", switch.datapath_id());
        }
    }

    /// A 1.3 switch drops packets without a table-miss entry, and nobody else adds one.
    fn add_table_miss(&mut self, switch: &mut RawSwitch) {
        let actions = [Action::controller()];
        let instructions = [Instruction::apply(&actions)];
        let entry = FlowMod {
            priority: 0,
            instructions: List::from(&instructions),
            ..FlowMod::default()
        };
        self.send(switch, &Message::FlowMod(entry));
    }

    fn flood(&mut self, switch: &mut RawSwitch, packet: &PacketIn) {
        let actions = [Action::output(PortNo::FLOOD)];
        let packet_out = PacketOut {
            buffer_id: packet.buffer_id,
            in_port: packet.in_port,
            actions: List::from(&actions),
            data: match packet.buffer_id.is_some() {
                true => &[],
                false => packet.data,
            },
        };
        self.send(switch, &Message::PacketOut(packet_out));
    }
}

impl RawHandler for RawHub {
    fn frame(&mut self, switch: &mut RawSwitch, frame: &[u8]) {
        match Message::decode(frame) {
            Ok((_, Message::FeaturesReply(_))) if switch.info().version == Version::Of13 => {
                self.add_table_miss(switch);
            }
            Ok((_, Message::PacketIn(packet))) => self.flood(switch, &packet),
            _ => {}
        }
    }
}

fn main() -> urtica::Result<()> {
    Controller::from_args()
        .raw_program(|_: &SwitchInfo| RawHub::default())
        .run_programs()
}
