//! Checks of the system time, on which the validity of certificates depends.

use crate::program::is_installed;
use crate::{Facts, Finding};
use std::time::{Duration, SystemTime};

/// The start of 2026, in seconds of Unix time. This program is newer, so an earlier clock is wrong.
const BEFORE_THIS_PROGRAM: u64 = 1_767_225_600;

pub fn look(facts: &Facts) -> Vec<Finding> {
    let finding = judge(
        is_synchronised(),
        SystemTime::now(),
        facts.plan.speaks_tls(),
    );
    vec![finding]
}

fn judge(is_synchronised: Option<bool>, now: SystemTime, speaks_tls: bool) -> Finding {
    if now < SystemTime::UNIX_EPOCH + Duration::from_secs(BEFORE_THIS_PROGRAM) {
        let sentence = "The clock is years behind: certificates are refused as not valid yet, and logs are useless.";
        return Finding::problem("clock-behind", sentence).command(command_to_synchronise());
    }
    let sentence = "The clock is not synchronised: if it is wrong, certificates are refused as expired or not valid \
                    yet, and logs of several machines cannot be compared.";
    match is_synchronised {
        Some(true) => Finding::ok("clock", "The clock is synchronised."),
        Some(false) if speaks_tls => {
            Finding::warning("clock-not-synchronised", sentence).command(command_to_synchronise())
        }
        Some(false) => {
            Finding::note("clock-not-synchronised", sentence).command(command_to_synchronise())
        }
        None => {
            let sentence = "The kernel does not report whether the clock is synchronised.";
            Finding::note("clock-not-looked-at", sentence).command("timedatectl")
        }
    }
}

fn command_to_synchronise() -> &'static str {
    match is_installed("chronyd") {
        true => "systemctl start chrony",
        false if is_installed("timedatectl") => "timedatectl set-ntp true",
        false => "apt-get install chrony",
    }
}

/// Returns the result of `adjtimex(2)`, which changes nothing if no field is marked for a change.
fn is_synchronised() -> Option<bool> {
    // SAFETY: the structure consists of numbers, for which zero is valid; the call writes only to it.
    let (state, asked) = unsafe {
        let mut asked: libc::timex = std::mem::zeroed();
        (libc::adjtimex(&mut asked), asked)
    };
    match state {
        -1 => None,
        libc::TIME_ERROR => Some(false),
        _ => Some(asked.status & libc::STA_UNSYNC == 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_matters_more_to_certificates() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(BEFORE_THIS_PROGRAM + 1);
        let name = |synchronised, speaks_tls| {
            let finding = judge(synchronised, now, speaks_tls);
            (finding.severity.word(), finding.name)
        };
        assert_eq!(name(Some(true), true), ("ok", "clock"));
        assert_eq!(
            name(Some(false), true),
            ("warning", "clock-not-synchronised")
        );
        assert_eq!(name(Some(false), false), ("note", "clock-not-synchronised"));
        assert_eq!(name(None, true), ("note", "clock-not-looked-at"));
        let behind = judge(Some(true), SystemTime::UNIX_EPOCH, false);
        assert_eq!(
            (behind.severity.word(), behind.name),
            ("problem", "clock-behind")
        );
    }
}
