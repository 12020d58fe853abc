//! Invalid settings, and the checks that reject them.

use std::time::Duration;

/// An invalid setting of the controller or a program. Its text is a message that names the setting and the expected values.
///
/// ```
/// use urtica_controller::setting::SettingError;
///
/// let error = SettingError::new("ShaperConfig::rate is 0: expected 1 or more");
/// assert_eq!(error.to_string(), "ShaperConfig::rate is 0: expected 1 or more");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SettingError(String);

impl SettingError {
    /// Creates the error with this message.
    pub fn new(sentence: impl Into<String>) -> Self {
        Self(sentence.into())
    }
}

/// Checks that a time is longer than zero.
///
/// # Errors
/// If it is zero; the error names the setting.
pub fn expect_time(setting: &str, time: Duration) -> Result<(), SettingError> {
    match time.is_zero() {
        true => Err(SettingError(format!(
            "{setting} is 0: expected a time longer than that"
        ))),
        false => Ok(()),
    }
}

/// Checks that a limit is 1 or more.
///
/// # Errors
/// If it is 0; the error names the setting.
pub fn expect_some(setting: &str, bound: usize) -> Result<(), SettingError> {
    match bound {
        0 => Err(SettingError(format!("{setting} is 0: expected 1 or more"))),
        _ => Ok(()),
    }
}
