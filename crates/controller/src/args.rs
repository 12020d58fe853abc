//! The options that every controller program has on its command line.

use crate::Controller;
use crate::session::SessionConfig;
use clap::Parser;
use urtica_wire::{Address, Version};

/// Options of a controller: where to listen, how many shards, which versions.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Listen here, in Open vSwitch's form: ptcp:[PORT][:HOST] or punix:FILE. May be repeated [default: ptcp:6653 and
    /// ptcp:6633].
    #[arg(long, value_name = "ADDR")]
    pub listen: Vec<Address>,
    /// How many shards (threads, each with a core of its own) serve the switches [default: one per core].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub shards: Option<u16>,
    /// Speak only this version of OpenFlow: 1.0 or 1.3. May be repeated [default: both].
    #[arg(long, value_name = "VERSION")]
    pub openflow: Vec<Version>,
}

#[derive(Parser)]
struct Alone {
    #[command(flatten)]
    args: Args,
}

impl Args {
    /// Reads the command line of a program that has no options but these. Prints help and exits where that is asked
    /// for or an option is wrong.
    pub fn parse_or_exit() -> Self {
        Alone::parse().args
    }

    /// A controller with these options.
    pub fn into_controller(self) -> Controller {
        let mut session = SessionConfig::default();
        if !self.openflow.is_empty() {
            session.versions = self.openflow;
        }
        let controller = self
            .listen
            .into_iter()
            .fold(Controller::new().session(session), Controller::listen);
        match self.shards {
            Some(shards) => controller.shards(shards.into()),
            None => controller,
        }
    }
}
