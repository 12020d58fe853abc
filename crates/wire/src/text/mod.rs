//! Text forms in the syntax of `ovs-ofctl`, parsed and printed.
//!
//! | Text | Type |
//! | --- | --- |
//! | `tcp,in_port=1,nw_dst=10.0.0.0/8,tp_dst=80` | [`crate::Match`] |
//! | `output:2`, `set_field:10.0.0.1->ip_dst` | [`crate::Action`] |
//! | `meter:1,output:2,goto_table:3` | [`Instructions`] |
//! | `table=1,priority=10,tcp actions=output:2` | [`crate::FlowMod`] |
//! | `group_id=1,type=select,bucket=weight:10,actions=output:2` | [`crate::GroupMod`] |
//! | `meter=1,kbps,burst,bands=type=drop,rate=1000,burst_size=100` | [`crate::MeterMod`] |
//! | ` cookie=0x0, duration=4.200s, table=0, … actions=output:1` | [`crate::FlowStats`], written only |
//! | `OFPT_FLOW_MOD (OF1.3) (xid=0x1): ADD priority=10,… actions=output:2` | [`message`], written only |
//!
//! **Names.** Open vSwitch's names (`dl_src`, `nw_dst`, `tp_dst`) are parsed and written, since operators and scripts use them.
//! Names that depend on the protocol, such as `tp_dst`, refer to the protocol of their match, in any order. The
//! specification's names (`eth_src`, `ipv4_dst`, `tcp_dst`) are also parsed, always mean exactly that field, and are written
//! if Open vSwitch's name would be ambiguous. Written text is parsed as an equal value.
//!
//! **Values without text.** Experimenter actions and instructions, and match fields of other classes, are written as
//! `experimenter(0x2320,0a0b)` and `oxm(0xffff,3,0a0b)`, but not parsed, since a parsed value cannot own such bytes.
//! `max_len` of an output to a port other than the controller has no meaning and is omitted.
//!
//! **Errors.** A [`ParseError`] contains the column, the text there and the expected text. No text makes a parser panic.

mod action;
mod error;
mod field;
mod flow;
mod group;
mod instruction;
mod item;
mod matching;
mod message;
mod meter;
mod multipart;
mod outline;
mod port;
mod table;
mod value;

pub use action::Actions;
pub use error::ParseError;
pub use instruction::Instructions;
pub use message::{MessageText, message};
