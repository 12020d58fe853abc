//! How long a switch takes to load flow entries that all come at once.
//!
//! **What.** A whole switch, served on the measured core, and a controller on the others, over a unix socket.
//! The flow mods are encoded beforehand. The time is from sending the first to having the reply to a barrier after the
//! last: reading, decoding, checking and adding.

use super::failed;
use super::measured_core::MeasuredCore;
use super::workload::{OUT_PORT, l2_entries};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use urtica_bench::Error;
use urtica_client::{Client, ClientError};
use urtica_socket::Address;
use urtica_switch::port::memory;
use urtica_switch::{Runner, Switch, SwitchConfig};
use urtica_wire::{
    FlowMod, FlowModCommand, FlowStatsRequest, MacAddr, Message, MultipartReplyBody,
    MultipartRequestBody, PortNo, TABLE_ALL, Version,
};

/// The most entries: as many as a table of the switch holds.
pub const MAX_ENTRIES: u32 = 1 << 20;

/// How long to wait for any answer.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Loads so many entries into an empty table, once for each reading; returns the seconds that each took.
///
/// # Errors
/// A sentence where the switch cannot be served, or refuses an entry.
pub fn measure(core: MeasuredCore, entries: u32, readings: u32) -> Result<Vec<f64>, Error> {
    let directory = tempfile::tempdir().map_err(Error::system("make a temporary directory"))?;
    let socket = directory.path().join("switch");
    let flow_mods = encoded_flow_mods(entries)?;
    // Entries need the port that they name; its link leads nowhere.
    let addr = MacAddr::from_u64(0x0200_0000_ff02);
    let (port, _other_end) = memory::pair(("out", addr), ("nowhere", addr), 1);
    let mut switch = Switch::new(SwitchConfig::default());
    switch.add_port(PortNo(OUT_PORT), Box::new(port), Duration::ZERO);
    let runner = Runner::new(switch, &[Address::PassiveUnix(socket.clone())]).map_err(failed)?;
    let stop = runner.stop_handle();
    let ask = || {
        let seconds = ask_switch(socket, &flow_mods, entries, readings);
        stop.stop();
        seconds
    };
    let (served, seconds) = core.run(|| runner.run(), ask)?;
    served.map_err(failed)?;
    seconds
}

/// All flow mods, one after the other.
fn encoded_flow_mods(entries: u32) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    for entry in l2_entries(entries) {
        let flow_mod = FlowMod::parse(FlowModCommand::Add, &entry).map_err(failed)?;
        let message = Message::FlowMod(flow_mod);
        message
            .encode(Version::Of13, 0, &mut bytes)
            .map_err(failed)?;
    }
    Ok(bytes)
}

fn ask_switch(
    socket: PathBuf,
    flow_mods: &[u8],
    entries: u32,
    readings: u32,
) -> Result<Vec<f64>, Error> {
    let address = Address::Unix(socket);
    let mut client = Client::connect(&address, None, &[Version::Of13], TIMEOUT).map_err(failed)?;
    let reading = |_| {
        let seconds = load(&mut client, flow_mods)?;
        let found = count_entries(&mut client).map_err(failed)?;
        if found != Some(entries) {
            return Err(Error::invalid(format!(
                "the switch holds {} entries after {entries} were sent; expected all of them",
                found.unwrap_or(0)
            )));
        }
        delete_entries(&mut client).map_err(failed)?;
        Ok(seconds)
    };
    (0..readings).map(reading).collect()
}

/// Seconds from the first flow mod sent to the barrier's reply.
fn load(client: &mut Client, flow_mods: &[u8]) -> Result<f64, Error> {
    client.barrier().map_err(failed)?;
    let start = Instant::now();
    client.send_encoded(flow_mods).map_err(failed)?;
    let refusals = client.barrier().map_err(failed)?;
    let seconds = start.elapsed().as_secs_f64();
    match refusals.first() {
        Some(refusal) => Err(failed(format!(
            "the switch refused an entry: {}",
            refusal.code
        ))),
        None => Ok(seconds),
    }
}

fn count_entries(client: &mut Client) -> Result<Option<u32>, ClientError> {
    let all = FlowStatsRequest::default();
    for frame in client.multipart(MultipartRequestBody::Aggregate(all))? {
        if let (_, Message::MultipartReply(reply)) = Message::decode(&frame)? {
            if let MultipartReplyBody::Aggregate(sum) = reply.body {
                return Ok(Some(sum.flow_count));
            }
        }
    }
    Ok(None)
}

fn delete_entries(client: &mut Client) -> Result<(), ClientError> {
    client.send(&Message::FlowMod(FlowMod {
        command: FlowModCommand::Delete,
        table_id: TABLE_ALL,
        ..FlowMod::default()
    }))?;
    client.barrier().map(|_| ())
}
