//! The messages that configure a switch and request its ports.

use super::Session;
use std::ops::Range;
use urtica_wire::{
    Action, CONTROLLER_NO_BUFFER, ConfigFlags, FlowMod, Instruction, List, Message, MultipartFlags,
    MultipartRequest, MultipartRequestBody, SwitchConfig, Version,
};

impl Session {
    /// Makes every switch send whole packets; from a 1.3 switch also requests port descriptions, and adds its table-miss
    /// entry. This is sent together with the features request, since each round trip costs a pass of the switch's main loop:
    /// Open vSwitch with many bridges needs milliseconds for one. If a role may have to be requested, all but the first must
    /// wait.
    pub(super) fn write_configuration(&mut self, version: Version, out: &mut Vec<u8>) {
        if self.is_raw() {
            return;
        }
        let config = SwitchConfig {
            flags: ConfigFlags::empty(),
            miss_send_len: CONTROLLER_NO_BUFFER,
        };
        self.write(version, &Message::SetConfig(config), out);
        if version != Version::Of10 && !self.may_ask_for_role() {
            self.ask_for_ports(version, out);
            self.write_table_misses(version, 0..1, out);
        }
    }

    /// Writes the configuration that depends on the features reply: for further tables, and for ports that were described too
    /// early and ignored. With roles this is all of it, without table-miss entries if ours permits only reading.
    pub(super) fn write_rest_of_configuration(&mut self, version: Version, out: &mut Vec<u8>) {
        if version == Version::Of10 {
            return;
        }
        if self.awaits_ports && self.port_desc_xid.is_none() {
            self.ask_for_ports(version, out);
        }
        if self.role().may_write() {
            let first = self.table_misses.count();
            self.write_table_misses(version, first..self.n_tables, out);
        }
    }

    pub(super) fn ask_for_ports(&mut self, version: Version, out: &mut Vec<u8>) {
        let request = MultipartRequest {
            flags: MultipartFlags::empty(),
            body: MultipartRequestBody::PortDesc,
        };
        self.port_desc_xid = Some(self.write(version, &Message::MultipartRequest(request), out));
    }

    pub(super) fn write_table_misses(
        &mut self,
        version: Version,
        tables: Range<u8>,
        out: &mut Vec<u8>,
    ) {
        if self.config.table_miss && !self.is_raw() {
            for table_id in tables.start..tables.end.min(self.config.tables) {
                self.write_table_miss(version, table_id, out);
            }
        }
    }

    pub(super) fn write_table_miss(&mut self, version: Version, table_id: u8, out: &mut Vec<u8>) {
        let actions = [Action::controller()];
        let instructions = [Instruction::apply(&actions)];
        let entry = FlowMod {
            table_id,
            priority: 0,
            instructions: List::from(&instructions),
            ..FlowMod::default()
        };
        let xid = self.write(version, &Message::FlowMod(entry), out);
        self.table_misses.note_sent(table_id, xid);
    }
}
