//! The `urtica` binary: one file per subcommand.

#![forbid(unsafe_code)]

mod bench;
mod capture;
mod check;
mod config;
mod control_socket;
mod decode;
mod demo;
mod doctor;
mod flows;
mod generate;
mod hold;
mod log;
mod net;
#[cfg(feature = "northbound")]
mod northbound;
mod replay;
mod run;
mod ryu_manager;
mod say;
#[cfg_attr(not(feature = "northbound"), path = "unserved.rs")]
mod served;
mod service;
mod status;
mod switch;
mod top;
mod trace;
mod version;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// An OpenFlow stack: controller framework, switch and benchmark.
#[derive(Parser)]
#[command(name = "urtica", version, long_version = version::LONG.as_str(), arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show a network with loops and its controller, cut a link and repair it; needs no switch and no root.
    Demo(demo::DemoArgs),
    /// Run control programs for the switches that connect.
    Run(Box<run::RunArgs>),
    /// Check a configuration file of urtica run and report its errors.
    Check(check::CheckArgs),
    /// Find out why switches do not connect, or packets do not pass: ports, firewall, Open vSwitch, certificates, clock, kernel, limits, MTU.
    Doctor(doctor::DoctorArgs),
    /// Keep the connections of urtica run --hold while it is replaced; started automatically.
    Hold(hold::HoldArgs),
    /// Watch a running controller: its switches, packet-ins, latencies, queues and programs.
    Top(top::TopArgs),
    /// Query a switch, or change its flow entries, groups and meters, like ovs-ofctl.
    Flows(flows::FlowsArgs),
    /// Trace a packet through a switch, table by table.
    Trace(trace::TraceArgs),
    /// Run an OpenFlow switch between network interfaces.
    Switch(Box<switch::SwitchArgs>),
    /// Run a whole network in this process: switches, hosts, and a controller; needs no root.
    Net(Box<net::NetArgs>),
    /// Record messages between switches and a controller, for Wireshark, also under TLS.
    Capture(capture::CaptureArgs),
    /// Print OpenFlow messages, from hex digits or a capture.
    Decode(decode::DecodeArgs),
    /// Send a controller the switches' messages of a recording, as a test or as load.
    Replay(replay::ReplayArgs),
    /// Run Ryu programs, unmodified, with the Python package urtica-ryu.
    RyuManager(ryu_manager::RyuManagerArgs),
    /// Load an OpenFlow controller from emulated switches, and measure it.
    Bench(Box<bench::BenchArgs>),
    /// Print a completion script for a shell.
    Completions(generate::CompletionsArgs),
    /// Write the manual pages.
    Man(generate::ManArgs),
}

fn main() -> ExitCode {
    // Its options may also be in a file and the environment, and are read again while it runs.
    if let Some(sources) = config::sources(std::env::args_os().collect()) {
        return run::run(&sources);
    }
    match Cli::parse().command {
        Command::Demo(args) => demo::run(args),
        // `urtica run --help` has been printed.
        Command::Run(_) => ExitCode::SUCCESS,
        Command::Check(args) => check::run(args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Hold(args) => hold::run(args),
        Command::Top(args) => top::run(args),
        Command::Flows(args) => flows::run(args),
        Command::Trace(args) => trace::run(args),
        Command::Switch(args) => switch::run(*args),
        Command::Net(args) => net::run(*args),
        Command::Capture(args) => capture::run(args),
        Command::Decode(args) => decode::run(args),
        Command::Replay(args) => replay::run(args),
        Command::RyuManager(args) => ryu_manager::run(args),
        Command::Bench(args) => bench::run(*args),
        Command::Completions(args) => generate::completions::<Cli>(&args),
        Command::Man(args) => generate::man::<Cli>(&args),
    }
}
