//! The program's row in the registry.

use super::{Bandwidth, BandwidthArgs, BandwidthConfig};
use crate::registry::{About, Forwards, ProgramOptions, Row, Setup};

impl ProgramOptions for BandwidthArgs {}

/// The program's row in the registry of `urtica run`.
pub(crate) static ROW: Row<BandwidthArgs> = Row {
    about: About {
        forwards: Forwards::Only("flows with a demand"),
        ..About::new(
            "bandwidth",
            "reserves bandwidth for flows on each link of a path; name it before programs that forward",
        )
    },
    add,
};

fn add(setup: &mut Setup, args: &BandwidthArgs) -> Result<(), String> {
    if let Some(forwarder) = setup.forwarder_before() {
        return Err(format!(
            "{forwarder} would forward its packets first; expected bandwidth before {forwarder}"
        ));
    }
    let config = BandwidthConfig::from(args);
    if config.paths == 0 {
        return Err("--bandwidth-paths is 0; expected at least 1".to_owned());
    }
    if config.demands.is_empty() {
        tracing::warn!(
            "bandwidth reserves nothing, since it has no demands; expected --bandwidth-demand 'RATE MATCH'"
        );
    }
    setup.answer_for_hosts();
    let (discovery, hosts) = (setup.discovery(), setup.hosts());
    let provisioner = setup.provisioner();
    let bandwidth = Bandwidth::new(&discovery, &hosts, &provisioner, config);
    setup.add(bandwidth.clone());
    setup.show_bandwidth(bandwidth);
    Ok(())
}
