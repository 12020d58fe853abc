//! Watchers: the tracer, and captures.

use crate::say::PipedOutput;
use std::error::Error;
use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use urtica_net::Net;
use urtica_net::pcap::Capture;
use urtica_net::tracer::Tracer;

/// Adds the requested watchers.
pub(super) fn attach(
    net: &mut Net,
    traces: bool,
    captures: &[(String, String, PathBuf)],
) -> Result<(), Box<dyn Error>> {
    if traces {
        net.watch(Tracer::new(net, PipedOutput));
    }
    for (a, b, path) in captures {
        let link = net.link(a, b)?;
        let file = File::create(path)
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        net.watch(Capture::new(link, BufWriter::new(file))?);
    }
    Ok(())
}
