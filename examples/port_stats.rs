//! Tells every ten seconds what went through each port: `cargo run --example port_stats`.

use std::time::Duration;
use urtica::prelude::*;

/// Floods packets, and hands each port's counters to `T`.
#[derive(Clone)]
pub(crate) struct Poller<T>(pub(crate) T);

impl<T: Fn(DatapathId, PortStats) + Clone + Send + Sync + 'static> Program for Poller<T> {
    fn handler(&self, _: &SwitchInfo) -> Box<dyn SwitchHandler> {
        Box::new(on_packet(|switch, packet| {
            switch.forward(packet, PortNo::FLOOD)
        }))
    }

    fn start(&self, background: &Background) {
        background.spawn("poller", poll(background.clone(), self.0.clone()));
    }
}

async fn poll(background: Background, tell: impl Fn(DatapathId, PortStats)) {
    loop {
        background.sleep(Duration::from_secs(10)).await;
        for switch in background.network().switches() {
            match background.network().port_stats(switch).await {
                Ok(ports) => ports.into_iter().for_each(|port| tell(switch, port)),
                Err(error) => eprintln!("{switch}: {error}"),
            }
        }
    }
}

fn main() -> urtica::Result<()> {
    Controller::from_args().run(Poller(|switch, port: PortStats| {
        println!(
            "{switch} {} {} bytes in, {} out",
            port.port_no, port.rx_bytes, port.tx_bytes
        );
    }))
}
