//! The `urtica` binary: one file per subcommand.

mod bench;
mod decode;
mod demo;
mod flows;
mod log;
mod net;
#[cfg(feature = "northbound")]
mod northbound;
mod run;
mod say;
mod status;
mod switch;
mod trace;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// An OpenFlow stack: controller framework, switch and benchmark.
#[derive(Parser)]
#[command(version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show a network with loops and its controller, and heal a cut in it; needs no switch and no root.
    Demo(demo::DemoArgs),
    /// Run control programs for the switches that connect.
    Run(Box<run::RunArgs>),
    /// Look into a switch, or change its flow entries, groups and meters, as ovs-ofctl does.
    Flows(flows::FlowsArgs),
    /// Tell what happens to a packet in a switch, table by table.
    Trace(trace::TraceArgs),
    /// Switch frames between ports, as OpenFlow controllers say.
    Switch(switch::SwitchArgs),
    /// A whole network in this process: switches, hosts, and a controller; needs no root.
    Net(Box<net::NetArgs>),
    /// Print OpenFlow messages, from hex digits or a capture.
    Decode(decode::DecodeArgs),
    /// Load an OpenFlow controller from emulated switches, and measure it.
    Bench(Box<bench::BenchArgs>),
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Demo(args) => demo::run(args),
        Command::Run(args) => run::run(*args),
        Command::Flows(args) => flows::run(args),
        Command::Trace(args) => trace::run(args),
        Command::Switch(args) => switch::run(args),
        Command::Net(args) => net::run(*args),
        Command::Decode(args) => decode::run(args),
        Command::Bench(args) => bench::run(*args),
    }
}
