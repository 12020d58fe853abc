//! Durations and bandwidths in text: a number and a unit.

use std::time::Duration;

/// The name of a unit, and its size in the smallest unit.
type Unit = (&'static str, u128);

const DURATIONS: [Unit; 4] = [
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1000),
    ("ns", 1),
];

const BANDWIDTHS: [Unit; 4] = [
    ("Gbit", 1_000_000_000),
    ("Mbit", 1_000_000),
    ("kbit", 1000),
    ("bit", 1),
];

/// The error for a text that is not a duration, or not a bandwidth.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a {expected}")]
pub struct ParseQuantityError {
    text: String,
    expected: &'static str,
}

/// Reads a duration such as `1.5ms`.
pub(super) fn duration(text: &str) -> Result<Duration, ParseQuantityError> {
    let nanos = amount(text, &DURATIONS).and_then(|nanos| u64::try_from(nanos).ok());
    nanos
        .map(Duration::from_nanos)
        .ok_or_else(|| ParseQuantityError {
            text: text.to_owned(),
            expected: "duration; expected a number and ns, us, ms or s, such as 5ms",
        })
}

/// Writes a duration in the form that [`duration`] reads.
pub(super) fn duration_text(duration: Duration) -> String {
    amount_text(duration.as_nanos(), &DURATIONS)
}

/// Reads a bandwidth such as `10Mbit`, in bits per second.
///
/// # Errors
/// [`ParseQuantityError`], with the text and the expected form.
pub fn bandwidth_bps(text: &str) -> Result<u64, ParseQuantityError> {
    let bits = amount(text, &BANDWIDTHS).and_then(|bits| u64::try_from(bits).ok());
    bits.ok_or_else(|| ParseQuantityError {
        text: text.to_owned(),
        expected: "bandwidth; expected a number and bit, kbit, Mbit or Gbit, such as 10Mbit",
    })
}

/// Writes a bandwidth in the form that [`bandwidth_bps`] reads.
pub fn bandwidth_text(bits: u64) -> String {
    amount_text(bits.into(), &BANDWIDTHS)
}

/// Returns a text's value in the smallest unit; `None` if it has another form, or is not a whole number.
fn amount(text: &str, units: &[Unit]) -> Option<u128> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, name) = text.split_at(end);
    let name = name.trim_start();
    let &(_, unit) = units
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name))?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let scale = 10_u128.checked_pow(fraction.len().try_into().ok()?)?;
    let parts = fraction.parse::<u128>().ok()?.checked_mul(unit)?;
    let whole = whole.parse::<u128>().ok()?.checked_mul(unit)?;
    (parts % scale == 0).then(|| whole.checked_add(parts / scale))?
}

/// Writes an amount in the largest unit of which it is a whole number.
fn amount_text(amount: u128, units: &[Unit]) -> String {
    let whole = units.iter().find(|(_, unit)| amount % *unit == 0);
    let &(name, unit) = whole.expect("every amount is a whole number of the smallest unit");
    format!("{}{name}", amount / unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fractions_and_any_case_are_read() {
        assert_eq!(duration("1.5ms"), Ok(Duration::from_micros(1500)));
        assert_eq!(duration("0.000000001s"), Ok(Duration::from_nanos(1)));
        assert_eq!(duration("5 MS"), Ok(Duration::from_millis(5)));
        assert_eq!(bandwidth_bps("2.5gbit"), Ok(2_500_000_000));
        assert_eq!(bandwidth_bps("0bit"), Ok(0));
    }

    #[test]
    fn fractions_of_the_smallest_unit_are_refused() {
        for text in [
            "",
            "ms",
            "5",
            ".5s",
            "5.s",
            "1.2.3s",
            "-1s",
            "+1s",
            "1e3s",
            "0.5ns",
            "1.0000000001s",
            "5m",
        ] {
            assert!(duration(text).is_err(), "{text}");
        }
        for number in [
            "9".repeat(40),
            format!("0.{}", "0".repeat(60)),
            u64::MAX.to_string(),
        ] {
            assert!(duration(&(number + "s")).is_err());
        }
    }

    proptest! {
        #[test]
        fn amounts_round_trip(amount: u64) {
            let time = Duration::from_nanos(amount);
            prop_assert_eq!(duration(&duration_text(time)), Ok(time));
            prop_assert_eq!(bandwidth_bps(&bandwidth_text(amount)), Ok(amount));
        }

        #[test]
        fn reading_never_panics(text: String) {
            let _ = (duration(&text), bandwidth_bps(&text));
        }
    }
}
