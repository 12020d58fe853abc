//! The prompt of `urtica net`: Mininet's commands, typed or from a pipe.

mod act;
mod command;
mod complete;
mod lines;
mod names;
mod show;

use crate::net::signals::Signals;
use crate::say::say;
use crate::served::Served;
use command::{Command, PING, VERBS, Verb};
use lines::{Line, Lines};
use names::Names;
use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;
use urtica_net::{Net, NetError};

/// The time that the network runs between two checks for input.
const LOOK: Duration = Duration::from_millis(5);

/// The result of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Done {
    Well,
    /// It failed, and the error was printed.
    Badly,
    Exit,
}

impl Done {
    fn well_if(is_well: bool) -> Self {
        match is_well {
            true => Self::Well,
            false => Self::Badly,
        }
    }
}

/// The network on which commands work.
struct Prompt<'n> {
    net: &'n mut Net,
    /// Its controller, if it serves a page. Requests of the page act on the network, too.
    served: Option<&'n mut Served>,
    names: Names,
    /// The hint if hosts do not reach each other.
    hint: Option<&'static str>,
}

/// Executes commands until the input ends. For input from a pipe, the exit status is 0 only if all commands succeeded.
pub(super) fn run(
    net: &mut Net,
    served: Option<&mut Served>,
    hint: Option<&'static str>,
    signals: &Signals,
) -> Result<ExitCode, Box<dyn Error>> {
    let names = Names::of(net)?;
    let lines = Lines::open(&names);
    if lines.are_typed() {
        say("`help` lists the commands, the tab key completes them, and `exit` ends the network.");
    }
    let mut prompt = Prompt {
        net,
        served,
        names,
        hint,
    };
    let mut all_well = true;
    loop {
        let done = match prompt.next_line(&lines, signals)? {
            Some(Line::Text(line)) => prompt.execute(&line)?,
            Some(Line::GivenUp) => Done::Well,
            Some(Line::Failed(error)) => {
                return Err(format!("cannot read commands: {error}").into());
            }
            Some(Line::End) | None => break,
        };
        all_well &= done != Done::Badly;
        // At a terminal, Ctrl-C interrupts only the command; otherwise it ends the program.
        let is_over = signals.is_terminated() || !lines.are_typed() && signals.have_come();
        signals.take_interrupt();
        if done == Done::Exit || is_over {
            break;
        }
    }
    Ok(match all_well || lines.are_typed() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

impl Prompt<'_> {
    /// Returns the next line, and runs the network until it arrives; `None` at the end.
    fn next_line(
        &mut self,
        lines: &Lines,
        signals: &Signals,
    ) -> Result<Option<Line>, Box<dyn Error>> {
        lines.ask();
        loop {
            // Simulated time stands still while waiting.
            let within = match self.net.follows_the_clock() {
                true => Duration::ZERO,
                false => LOOK,
            };
            if let Some(line) = lines.take(within) {
                return Ok(Some(line));
            }
            if signals.is_terminated() || !lines.are_typed() && signals.have_come() {
                return Ok(None);
            }
            signals.take_interrupt();
            if self.net.follows_the_clock() {
                self.net.run_for(LOOK);
            }
            if let Some(served) = &mut self.served {
                served.obey(self.net);
            }
            if let Some(broken) = self.net.broken() {
                return Err(broken.clone().into());
            }
        }
    }

    /// Executes a line. An error is printed and does not end the prompt; a network that has stopped does.
    fn execute(&mut self, line: &str) -> Result<Done, Box<dyn Error>> {
        let done = match Command::parse(line, &self.names) {
            Ok(command) => self.obey(command),
            Err(error) => {
                say(error);
                return Ok(Done::Badly);
            }
        };
        match done {
            Err(NetError::Interrupted(_)) => {
                say("interrupted");
                Ok(Done::Badly)
            }
            other => Ok(other?),
        }
    }

    fn obey(&mut self, command: Command) -> Result<Done, NetError> {
        match command {
            Command::Nothing => {}
            Command::Help(verb) => help(verb),
            Command::Nodes => show::nodes(self.net, &self.names),
            Command::Net => show::net(self.net)?,
            Command::Links => show::links(self.net)?,
            Command::Intfs => show::intfs(self.net)?,
            Command::Dump => show::dump(self.net)?,
            Command::Flows(switch) => show::flows(self.net, switch.as_deref())?,
            Command::PingAll => return self.ping_all(),
            Command::PingPair => return self.ping_pair(),
            Command::Ping { from, to, count } => return self.ping(&from, &to, count),
            Command::Iperf(ends) => return self.iperf(ends),
            Command::Link { a, b, is_up } => return self.link(&a, &b, is_up),
            Command::Switch { name, is_on } => self.switch(&name, is_on)?,
            Command::Wait(time) => return self.wait(time),
            Command::Exit => return Ok(Done::Exit),
        }
        Ok(Done::Well)
    }
}

fn help(verb: Option<&Verb>) {
    if let Some(verb) = verb {
        return say(format!("{}: {}", verb.usage(), verb.about));
    }
    for verb in [&PING].into_iter().chain(&VERBS) {
        say(format!("{:27} {}", verb.usage(), verb.about));
    }
}
