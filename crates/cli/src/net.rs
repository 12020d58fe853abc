//! `urtica net`: a network in this process.

mod draw;
mod need;
mod prompt;
mod signals;
mod simulate;
mod watch;

use crate::log::log_to_stderr;
use crate::say::{complain, say};
use crate::served::Served;
use draw::Drawing;
use signals::Signals;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use urtica_apps as apps;
use urtica_controller::Controller;
use urtica_net::{Net, NetConfig, NetError, PingAllReport};
use urtica_socket::Address;
use urtica_switch::FailMode;
use urtica_topology::spec::{Plan, SpecError, TopologySpec};

const EXAMPLES: &str = "\
Examples:
  urtica net tree,depth=2,fanout=2 --ping-all
  urtica net linear,3 --apps l2 --ping-all --trace
  urtica net tree,depth=2,fanout=2 --controller tcp:127.0.0.1:6653 --ping-all --seconds 10
  urtica net linear,2 --ping-all --pcap s1,s2=trunk.pcap
  urtica net tree,depth=2,fanout=2 --apps discovery,hosts,l2 --northbound
  urtica net fattree,4 --draw network.svg
  urtica net simulate --seeds 100

Without --ping-all and --seconds it accepts Mininet's commands: at a prompt, or from a pipe, as in
  echo 'h1 ping -c 3 h2' | urtica net linear,3
`help` there lists them.

Topologies: single,N linear,N[,HOSTS] tree,depth=D,fanout=F torus,X,Y fattree,K ring,N mesh,N file:PATH. \
Hosts are h1, h2, … with the addresses 10.0.0.1, 10.0.0.2, …";

/// The time limit for switches to connect.
const CONNECTED_WITHIN: Duration = Duration::from_secs(10);

/// The time for a controller to configure the switches.
const TOLD_WITHIN: Duration = Duration::from_millis(300);

/// The hint if a network has loops and hosts do not reach each other.
const LOOPS: &str = "this topology has loops, in which floods circulate; l2 and learning switches need a topology without loops";

/// The refusal of an interface without a controller in real time.
#[cfg(feature = "northbound")]
const NOTHING_TO_SERVE: &str = "--northbound is the interface of the network's controller, in real time: expected --apps, as in \
     --apps discovery,hosts,l2, and no --simulated";

/// The interval of checks for the end, and for requests of the page.
const LOOK: Duration = Duration::from_millis(5);

/// Options of `urtica net`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct NetArgs {
    #[command(subcommand)]
    command: Option<NetCommand>,
    #[command(flatten)]
    show: ShowArgs,
}

#[derive(Debug, clap::Subcommand)]
enum NetCommand {
    /// Run random networks with random faults in simulated time, and check invariants.
    Simulate(simulate::SimulateArgs),
}

/// Options of one network in real time.
#[derive(Debug, clap::Args)]
struct ShowArgs {
    /// The network, as below.
    #[arg(required = true)]
    topology: Option<TopologySpec>,
    /// The controller that switches connect to: tcp:HOST[:PORT] or unix:FILE [default: none].
    #[arg(long, value_name = "ADDR", conflicts_with = "apps")]
    controller: Option<Address>,
    /// Run these programs in a controller in this process, separated by commas. Without --apps and --controller, switches learn
    /// addresses themselves.
    #[arg(long, value_name = "APP", value_delimiter = ',')]
    apps: Vec<String>,
    #[command(flatten)]
    options: apps::Options,
    /// Ping from every host to every other; the exit status is 0 if all were reached.
    #[arg(long)]
    ping_all: bool,
    /// End after this time, without commands [default: at once with --ping-all, else at the end of commands].
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds, allow_negative_numbers = true)]
    seconds: Option<Duration>,
    /// Jump to the next event instead of waiting for it. Not with --controller.
    #[arg(long, conflicts_with = "controller")]
    simulated: bool,
    /// Seed of delays, losses and back-offs.
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    /// Write a line for each frame and message.
    #[arg(long)]
    trace: bool,
    /// Capture a link's frames into a file, as in s1,s2=trunk.pcap. May be repeated.
    #[arg(long, value_name = "A,B=FILE", value_parser = parse_capture)]
    pcap: Vec<(String, String, PathBuf)>,
    /// Draw the network into FILE.svg, FILE.dot (for Graphviz) or FILE.json (names and positions), and end without starting it;
    /// - writes DOT to standard output.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["controller", "apps", "ping_all", "seconds", "simulated", "trace", "pcap"]
    )]
    #[cfg_attr(feature = "northbound", arg(conflicts_with = "northbound"))]
    draw: Option<Drawing>,
    #[cfg(feature = "northbound")]
    #[command(flatten)]
    northbound: crate::northbound::NorthboundArgs,
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().map(Duration::try_from_secs_f64);
    let Some(Ok(seconds)) = seconds else {
        return Err(format!(
            "'{text}' is not a time; expected seconds, 0 or more, as in 2.5"
        ));
    };
    Ok(seconds)
}

fn parse_capture(text: &str) -> Result<(String, String, PathBuf), String> {
    let parts = text.split_once('=').and_then(|(ends, file)| {
        let (a, b) = ends.split_once(',')?;
        Some((a.to_owned(), b.to_owned(), file.into()))
    });
    parts.ok_or_else(|| {
        format!("'{text}' is not a link and a file; expected A,B=FILE, as in s1,s2=trunk.pcap")
    })
}

/// Runs until everything requested is done, or SIGINT or SIGTERM.
pub fn run(args: NetArgs) -> ExitCode {
    let ended = match args.command {
        Some(NetCommand::Simulate(args)) => simulate::run(args),
        None => {
            log_to_stderr();
            show(&args.show)
        }
    };
    ended.unwrap_or_else(|error| {
        complain(format_args!("urtica: {error}"));
        ExitCode::FAILURE
    })
}

fn show(args: &ShowArgs) -> Result<ExitCode, Box<dyn std::error::Error>> {
    if let Some(drawing) = &args.draw {
        let spec = args.topology()?;
        drawing.write(spec, &spec.plan()?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let signals = Signals::register()?;
    let (mut net, mut served) = args.build()?;
    args.end_in_time(&mut net, &signals);
    if args.waits_for_controller() {
        wait_for_controller(&mut net, args.patience(), &signals)?;
    }
    let hint = args.hint()?;
    if !args.ping_all && args.seconds.is_none() {
        return prompt::run(&mut net, served.as_mut(), hint, &signals);
    }
    let all_reached = !args.ping_all || ping_all(&mut net, hint, &signals)?;
    let end = args.end(&net);
    while net.now() < end && !net.is_interrupted() {
        net.run_for(LOOK.min(end - net.now()));
        if let Some(served) = &mut served {
            served.obey(&mut net);
        }
        net.broken().map_or(Ok(()), |broken| Err(broken.clone()))?;
    }
    Ok(match all_reached {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Makes each host ping each other, and prints the results; returns whether all were reached.
fn ping_all(net: &mut Net, hint: Option<&str>, signals: &Signals) -> Result<bool, NetError> {
    let report = net.ping_all()?;
    tell_pings(net, &report)?;
    if report.is_interrupted && !signals.have_come() {
        say("the time given by --seconds was over");
    }
    if let Some(hint) = hint.filter(|_| !report.is_complete()) {
        say(hint);
    }
    Ok(report.is_complete())
}

impl ShowArgs {
    fn topology(&self) -> Result<&TopologySpec, &'static str> {
        self.topology.as_ref().ok_or("no topology was given")
    }

    /// Builds the network, and starts the controller if it runs on its own threads; the controller must live as long.
    fn build(&self) -> Result<(Net, Option<Served>), Box<dyn std::error::Error>> {
        let spec = self.topology()?;
        let plan = spec.plan()?;
        // Report wrong names and options before anything is built.
        let (controller, services) = with_services(Controller::new(), &self.apps, &self.options)?;
        let (controller, served) = self.serve(controller, &services)?;
        if let Some(need) = need::check(&spec.to_string(), &plan, self.ping_all)? {
            say(need);
        }
        let mut net = Net::new(&plan, self.config())?;
        say(format!(
            "{spec}: {} switches, {} hosts, {} links",
            net.switches().len(),
            net.hosts().len(),
            net.links().len()
        ));
        watch::attach(&mut net, self.trace, &self.pcap)?;
        if !self.simulated {
            net.follow_the_clock();
        }
        let elsewhere = served.as_ref().map(Served::address);
        match (self.controller.as_ref().or(elsewhere), controller) {
            (Some(address), _) => net.connect_to(address)?,
            (None, Some(controller)) if !self.apps.is_empty() => {
                net.start_controller(controller)?
            }
            _ => {}
        }
        Ok((net, served))
    }

    /// Starts the controller if it serves HTTP; otherwise returns it.
    #[cfg(feature = "northbound")]
    fn serve(
        &self,
        controller: Controller,
        services: &apps::Services,
    ) -> Result<(Option<Controller>, Option<Served>), Box<dyn std::error::Error>> {
        let Some(northbound) = self.northbound.bind(&self.apps, services)? else {
            return Ok((Some(controller), None));
        };
        if self.apps.is_empty() || self.simulated {
            return Err(NOTHING_TO_SERVE.into());
        }
        let served = Served::start(controller, northbound)?;
        Ok((None, Some(served)))
    }

    #[cfg(not(feature = "northbound"))]
    fn serve(
        &self,
        controller: Controller,
        _: &apps::Services,
    ) -> Result<(Option<Controller>, Option<Served>), Box<dyn std::error::Error>> {
        Ok((Some(controller), None))
    }

    /// Returns the hint if hosts do not reach each other.
    fn hint(&self) -> Result<Option<&'static str>, SpecError> {
        let plan = self.topology.as_ref().map(TopologySpec::plan).transpose()?;
        Ok(plan.is_some_and(|plan| has_loops(&plan)).then_some(LOOPS))
    }

    /// Interrupts the network at a signal, and when `--seconds` of real time have passed, since an overloaded network is late.
    fn end_in_time(&self, net: &mut Net, signals: &Signals) {
        let signals = signals.clone();
        let follows_the_clock = self.seconds.is_some() && net.follows_the_clock();
        let end = follows_the_clock.then(|| Instant::now().checked_add(self.end_of_time()));
        let end = end.flatten();
        net.interrupt_when(move || {
            signals.have_come() || end.is_some_and(|end| Instant::now() >= end)
        });
    }

    fn config(&self) -> NetConfig {
        let mut config = NetConfig {
            seed: self.seed,
            ..NetConfig::default()
        };
        if !self.waits_for_controller() {
            config.switch.fail_mode = FailMode::Standalone;
        }
        config
    }

    fn waits_for_controller(&self) -> bool {
        self.controller.is_some() || !self.apps.is_empty()
    }

    /// Returns the time to wait for a controller.
    fn patience(&self) -> Duration {
        CONNECTED_WITHIN.min(self.end_of_time())
    }

    /// Returns the time of the end, by the network's clock.
    fn end(&self, net: &Net) -> Duration {
        match self.seconds {
            None if self.ping_all => net.now(),
            _ => self.end_of_time(),
        }
    }

    fn end_of_time(&self) -> Duration {
        self.seconds.unwrap_or(Duration::MAX)
    }
}

/// Returns `true` if there are more links than in a tree of the switches.
fn has_loops(plan: &Plan) -> bool {
    plan.links.len() >= plan.switches.len()
}

/// Adds these programs to a controller with fixed keys, so that runs are reproducible. Also returns the services that the
/// programs share.
fn with_services(
    controller: Controller,
    names: &[String],
    options: &apps::Options,
) -> Result<(Controller, apps::Services), apps::SetupError> {
    let mut options = options.clone();
    options.discovery.secret = Some([0; 32]);
    apps::add_all_with_services(controller, names, &options)
}

fn wait_for_controller(
    net: &mut Net,
    patience: Duration,
    signals: &Signals,
) -> Result<(), Box<dyn std::error::Error>> {
    let connected = |net: &Net| {
        let switches = net.switches();
        let connected = switches.filter(|&switch| net.has_controller(switch).unwrap_or(false));
        connected.count()
    };
    let all = net.switches().len();
    let is_done = |net: &mut Net| connected(net) == all || signals.have_come();
    net.run_until(is_done, patience);
    let count = connected(net);
    say(format!(
        "{count} of {all} switches are connected after {:.3} s",
        net.now().as_secs_f64()
    ));
    if count < all && !signals.have_come() {
        return Err(format!(
            "{} switches found no controller within {patience:?}; is it running, and does it speak OpenFlow 1.0 or 1.3?",
            all - count
        )
        .into());
    }
    net.run_for(TOLD_WITHIN);
    Ok(())
}

fn tell_pings(net: &Net, report: &PingAllReport) -> Result<(), urtica_net::NetError> {
    say(format!(
        "{report}, longest {:.3} ms",
        report.rtt_max.as_secs_f64() * 1e3
    ));
    // In an interrupted round, many pings had no time for a reply.
    let failed = report.failed.iter().filter(|_| !report.is_interrupted);
    for &(from, to) in failed {
        say(format!(
            "  {} received no reply from {}",
            net.host_name(from)?,
            net.host_name(to)?
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Alone {
        #[command(flatten)]
        args: NetArgs,
    }

    fn parse(arguments: &[&str]) -> Result<NetArgs, String> {
        let program = ["net"].iter().chain(arguments);
        let parsed = Alone::try_parse_from(program).map_err(|error| error.to_string())?;
        Ok(parsed.args)
    }

    #[test]
    fn parses_a_network_or_a_simulation() {
        let args = parse(&["tree,depth=2,fanout=3", "--ping-all", "--pcap=s1,h1=x.pcap"]).unwrap();
        assert!(args.command.is_none() && args.show.ping_all);
        assert_eq!(
            args.show.pcap,
            [("s1".to_owned(), "h1".to_owned(), PathBuf::from("x.pcap"))]
        );
        assert!(parse(&["simulate", "--seeds=3"]).unwrap().command.is_some());
    }

    #[test]
    fn errors_name_the_expected_input() {
        for (arguments, expected) in [
            (&[][..], "required"),
            (&["star,3"], "is not a topology"),
            (
                &["single,2", "--apps=l2", "--controller=tcp:a"],
                "cannot be used with",
            ),
            (
                &["single,2", "--simulated", "--controller=tcp:a"],
                "cannot be used with",
            ),
            (&["single,2", "--pcap=s1=x"], "expected A,B=FILE"),
            (&["single,2", "--draw=x.png"], "expected FILE.svg"),
            (
                &["single,2", "--draw=x.svg", "--ping-all"],
                "cannot be used with",
            ),
            (
                &["single,2", "--draw=-", "--apps=l2"],
                "cannot be used with",
            ),
            (&["simulate", "--seeds=0"], "--seeds"),
        ] {
            let sentence = parse(arguments).unwrap_err();
            assert!(sentence.contains(expected), "{arguments:?}: {sentence}");
        }
    }

    #[test]
    fn unknown_programs_and_links_are_refused() {
        for (arguments, expected) in [
            (
                &["single,2", "--apps=l9"][..],
                "there is no control program 'l9'",
            ),
            (
                &["single,2", "--pcap=s1,s7=/dev/null"],
                "no link between 's1' and 's7'",
            ),
        ] {
            let args = parse(arguments).unwrap();
            let sentence = args.show.build().err().unwrap().to_string();
            assert!(sentence.contains(expected), "{sentence}");
        }
    }
}
