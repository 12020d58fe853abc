//! Tells every ten seconds how many entries each program has in each switch: `cargo run --example who_installed`.

use std::collections::BTreeMap;
use std::time::Duration;
use urtica::prelude::*;

/// The number of entries of each program, and of those that no program installed.
pub(crate) type Counts = BTreeMap<Option<ProgramId>, usize>;

/// Looks on, and hands each switch's counts to `T`.
#[derive(Clone)]
pub(crate) struct WhoInstalled<T>(pub(crate) T);

impl<T: Fn(DatapathId, Counts) + Clone + Send + Sync + 'static> Program for WhoInstalled<T> {
    fn handler(&self, _: &SwitchInfo) -> Box<dyn SwitchHandler> {
        Box::new(on_packet(|_, _| {}))
    }

    fn stage(&self) -> Stage {
        Stage::Observe
    }

    fn start(&self, background: &Background) {
        background.spawn("who installed", watch(background.clone(), self.0.clone()));
    }
}

async fn watch(background: Background, tell: impl Fn(DatapathId, Counts)) {
    loop {
        background.sleep(Duration::from_secs(10)).await;
        for switch in background.network().switches() {
            let all = FlowStatsRequest::default();
            match background.network().flow_stats(switch, all).await {
                Ok(entries) => {
                    let mut counts = Counts::new();
                    for entry in entries.iter() {
                        *counts
                            .entry(ProgramId::of_cookie(entry.cookie))
                            .or_default() += 1;
                    }
                    tell(switch, counts);
                }
                Err(error) => eprintln!("{switch}: {error}"),
            }
        }
    }
}

fn main() -> urtica::Result<()> {
    let tell = |switch, counts: Counts| {
        for (program, entries) in counts {
            let who = program.map_or("no program".to_owned(), |program| program.to_string());
            println!("{switch}: {entries} of {who}");
        }
    };
    Controller::from_args()
        .program(WhoInstalled(tell))
        .run(|_: &SwitchInfo| urtica::apps::L2::default())
}
