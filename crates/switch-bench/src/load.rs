//! Measures the time in which a switch loads flow entries that are sent all at once.
//!
//! **What.** A whole switch, served on the measured core, and a controller on the other cores, over a Unix socket.
//! The flow mods are encoded beforehand. The time is from sending the first flow mod to receiving the reply to a barrier
//! after the last: reading, decoding, checking and adding.

use super::measured_core::MeasuredCore;
use super::record::{Load, Setting};
use super::workload::{OUT_PORT, l2_entries};
use crate::Error;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use urtica_client::{Client, ClientError};
use urtica_socket::Address;
use urtica_switch::port::memory;
use urtica_switch::{Runner, Switch, SwitchConfig};
use urtica_wire::{
    FlowMod, FlowModCommand, FlowStatsRequest, MacAddr, Message, MultipartReplyBody,
    MultipartRequestBody, PortNo, TABLE_ALL, Version,
};

/// The maximum number of entries, which is the size of a table.
pub const MAX_ENTRIES: u32 = 1 << 20;

/// The time to wait for any reply.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Measures the time in which a switch loads `entries` flow entries into an empty table, once for each reading.
///
/// # Errors
/// [`Error::EntryRefused`] or [`Error::EntriesMissing`] if the switch does not load all entries; other errors if the
/// measurement fails.
pub fn measure_load(core: MeasuredCore, entries: u32, readings: u32) -> Result<Load, Error> {
    let seconds = time_loading(core, entries, readings)?;
    Ok(Load::new(Setting::now("load", core), entries, seconds))
}

/// Returns the time of each reading in seconds.
fn time_loading(core: MeasuredCore, entries: u32, readings: u32) -> Result<Vec<f64>, Error> {
    let directory = tempfile::tempdir().map_err(Error::system("create a temporary directory"))?;
    let socket = directory.path().join("switch");
    let flow_mods = encoded_flow_mods(entries)?;
    // The entries' port must exist, but needs no peer.
    let addr = MacAddr::from_u64(0x0200_0000_ff02);
    let (port, _other_end) = memory::pair(("out", addr), ("nowhere", addr), 1);
    let mut switch = Switch::new(SwitchConfig::default());
    switch.add_port(PortNo(OUT_PORT), Box::new(port), Duration::ZERO);
    let runner = Runner::new(switch, &[Address::PassiveUnix(socket.clone())])?;
    let stop = runner.stop_handle();
    let ask = || {
        let seconds = ask_switch(socket, &flow_mods, entries, readings);
        stop.stop();
        seconds
    };
    let (served, seconds) = core.run(|| runner.run(), ask)?;
    served?;
    seconds
}

/// Encodes all flow mods, one after another.
fn encoded_flow_mods(entries: u32) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    for entry in l2_entries(entries) {
        let parsed = FlowMod::parse(FlowModCommand::Add, &entry);
        let flow_mod = parsed.map_err(|error| Error::Entry { entry, error })?;
        Message::FlowMod(flow_mod).encode(Version::Of13, 0, &mut bytes)?;
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
    let mut client = Client::connect(&address, None, &[Version::Of13], TIMEOUT)?;
    let reading = |_| {
        let seconds = load(&mut client, flow_mods)?;
        let found = count_entries(&mut client)?;
        if found != Some(entries) {
            return Err(Error::EntriesMissing {
                found: found.unwrap_or(0),
                sent: entries,
            });
        }
        delete_entries(&mut client)?;
        Ok(seconds)
    };
    (0..readings).map(reading).collect()
}

/// Returns the seconds from the first flow mod sent to the reply to the barrier.
fn load(client: &mut Client, flow_mods: &[u8]) -> Result<f64, Error> {
    client.barrier()?;
    let start = Instant::now();
    client.send_encoded(flow_mods)?;
    let refusals = client.barrier()?;
    let seconds = start.elapsed().as_secs_f64();
    match refusals.first() {
        Some(refusal) => Err(Error::EntryRefused(refusal.code)),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reading_loads_all_entries_into_an_empty_table() {
        let load = measure_load(MeasuredCore::last().unwrap(), 300, 2).unwrap();
        assert_eq!((load.entries, load.readings.len()), (300, 2));
        assert!(load.openflow_s_min > 0.0 && load.openflow_s_min <= load.openflow_s_max);
    }
}
