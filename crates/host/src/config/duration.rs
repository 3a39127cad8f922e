//! Durations of settings and flags.

use std::time::Duration;

use toml::Value;

/// Maximum duration of a setting, in seconds: a year. Longer ones overflow timers.
const MAX_DURATION_SECONDS: f64 = 365.0 * 24.0 * 3600.0;

/// Converts `90s`, `1.5h` or a number of seconds. Returns `None` for zero and for more than a year.
pub(super) fn duration_from_value(value: &Value) -> Option<Duration> {
    let seconds = match value {
        #[expect(clippy::cast_precision_loss, reason = "a number of seconds this large is refused below")]
        Value::Integer(seconds) => *seconds as f64,
        Value::Float(seconds) => *seconds,
        Value::String(text) => {
            let text = text.trim();
            let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
            let (number, unit) = text.split_at_checked(split)?;
            let scale = match unit {
                "ms" => 0.001,
                "" | "s" | "sec" => 1.0,
                "m" | "min" => 60.0,
                "h" => 3600.0,
                "d" => 86_400.0,
                _ => return None,
            };
            number.trim().parse::<f64>().ok()? * scale
        }
        _ => return None,
    };
    (seconds > 0.0 && seconds <= MAX_DURATION_SECONDS).then(|| Duration::from_secs_f64(seconds))
}

/// Parses `90s`, `1.5h` or a number of seconds. Returns `None` for zero and for more than a year.
#[must_use]
pub fn parse_duration(text: &str) -> Option<Duration> {
    duration_from_value(&Value::String(text.to_owned()))
}
