//! Bans hosts at all switches by HTTP: `cargo run --example northbound`, and then
//! `curl -X PUT http://127.0.0.1:8080/banned/02:00:00:00:00:01`.

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::put;
use std::net::TcpListener;
use urtica::prelude::*;

/// Serves HTTP where this listens.
pub(crate) struct Northbound(pub(crate) TcpListener);

impl Program for Northbound {
    fn handler(&self, _: &SwitchInfo) -> Box<dyn SwitchHandler> {
        Box::new(on_packet(|_, _| {}))
    }

    fn start(&self, background: &Background) {
        let (network, listener) = (background.network().clone(), self.0.try_clone());
        background.spawn("northbound", async {
            if let Err(error) = serve(network, listener).await {
                eprintln!("northbound: {error}");
            }
        });
    }
}

/// Runs a tokio runtime, which ends with this background program, and all of its tasks with it.
async fn serve(network: Network, listener: std::io::Result<TcpListener>) -> std::io::Result<()> {
    let listener = listener?;
    listener.set_nonblocking(true)?;
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(1).enable_all().build()?;
    let served = runtime.spawn(async {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let router = Router::new().route("/banned/{host}", put(ban));
        axum::serve(listener, router.with_state(network)).await
    });
    served.await?
}

/// Replies when all switches have confirmed that they drop the host's packets.
async fn ban(State(network): State<Network>, Path(host): Path<String>) -> (StatusCode, String) {
    let Ok(host) = host.parse::<MacAddr>() else {
        return (
            StatusCode::BAD_REQUEST,
            format!("{host} is no MAC address\n"),
        );
    };
    for switch in network.switches() {
        if let Err(error) = drop_from(&network, switch, host).await {
            return (StatusCode::BAD_GATEWAY, format!("{switch}: {error}\n"));
        }
    }
    (StatusCode::OK, format!("{host} is banned\n"))
}

async fn drop_from(
    network: &Network,
    switch: DatapathId,
    host: MacAddr,
) -> Result<(), RequestError> {
    let entry = FlowMod {
        match_: Match::any().eth_src(host),
        ..EntryOptions::PERMANENT.priority(u16::MAX).flow_mod()
    };
    network.confirm(switch, &[Message::FlowMod(entry)])?.await?;
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listener = TcpListener::bind("127.0.0.1:8080")?;
    Ok(Controller::from_args()
        .program(Northbound(listener))
        .run(|_: &SwitchInfo| urtica::apps::L2::default())?)
}
