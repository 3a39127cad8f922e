//! Waits before retries.

use std::time::Duration;

use journeyman_protocol::UnixMillis;

use crate::{ModelError, RetryPolicy};

/// The error of an attempt, and the wait that the provider requests.
pub(crate) struct AttemptError {
    pub(crate) error: ModelError,
    pub(crate) retry_after: Option<Duration>,
}

impl From<ModelError> for AttemptError {
    fn from(error: ModelError) -> Self {
        Self { error, retry_after: None }
    }
}

/// Returns the wait before the attempt after number `attempt` (from 1), or the error that ends the
/// request.
pub(crate) fn choose_wait(
    policy: &RetryPolicy,
    attempt: u32,
    failure: &AttemptError,
    random: &mut fastrand::Rng,
) -> Result<Duration, ModelError> {
    let AttemptError { error, retry_after } = failure;
    if !error.is_retryable() || policy.max_attempts <= 1 {
        return Err(error.clone());
    }
    if attempt >= policy.max_attempts {
        return Err(ModelError::GaveUp { attempts: attempt, last: Box::new(error.clone()) });
    }
    match *retry_after {
        Some(asked) if asked > policy.max_retry_after => Err(ModelError::RetryAfterTooLong {
            asked,
            longest: policy.max_retry_after,
            message: error.to_string(),
        }),
        Some(asked) => Ok(asked),
        None => Ok(jittered_wait(policy, attempt, random)),
    }
}

/// Returns the wait that a provider requests: `retry-after-ms` (OpenAI, Azure), else `retry-after`,
/// which is a number of seconds or an HTTP date (RFC 9110, section 10.2.3). A date is compared with
/// the response's own `date`, which agrees with it whatever this machine's clock says, or with
/// `clock` if the response has no date.
pub(crate) fn requested_wait<'a>(
    header: impl Fn(&str) -> Option<&'a str>,
    now: impl Fn() -> Option<UnixMillis>,
) -> Option<Duration> {
    if let Some(wait) = header("retry-after-ms").and_then(|text| parse_duration(text, 0.001)) {
        return Some(wait);
    }
    let text = header("retry-after")?;
    if let Some(wait) = parse_duration(text, 1.0) {
        return Some(wait);
    }
    let until = parse_http_date(text)?;
    let now = header("date").and_then(parse_http_date).or_else(|| now().map(|now| now.0))?;
    Some(Duration::from_millis(until.saturating_sub(now)))
}

/// Parses a number of `unit` seconds. Text that is not a number and negative numbers return `None`;
/// a number that is too large for a duration returns the maximum.
fn parse_duration(text: &str, unit: f64) -> Option<Duration> {
    let number: f64 = text.trim().parse().ok()?;
    if !number.is_finite() || number < 0.0 {
        return None;
    }
    Some(Duration::try_from_secs_f64(number * unit).unwrap_or(Duration::MAX))
}

fn parse_http_date(date: &str) -> Option<u64> {
    let time = httpdate::parse_http_date(date.trim()).ok()?;
    let since = time.duration_since(std::time::UNIX_EPOCH).ok()?;
    u64::try_from(since.as_millis()).ok()
}

/// Returns a random wait before the attempt that follows attempt number `attempt` (from 1).
fn jittered_wait(policy: &RetryPolicy, attempt: u32, random: &mut fastrand::Rng) -> Duration {
    let doublings = attempt.saturating_sub(1).min(31);
    let bound = policy.base_wait.saturating_mul(1_u32 << doublings).min(policy.max_wait);
    bound.mul_f64(random.f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_providers_ask_for() {
        let date = "Wed, 21 Oct 2015 07:28:00 GMT";
        let later = "Wed, 21 Oct 2015 07:28:30 GMT";
        let now = UnixMillis(1_445_412_479_500);
        type Headers<'a> = &'a [(&'a str, &'a str)];
        let cases: &[(Headers<'_>, Option<Duration>)] = &[
            (&[], None),
            (&[("retry-after", "2")], Some(Duration::from_secs(2))),
            (&[("retry-after", " 0.5 ")], Some(Duration::from_millis(500))),
            (&[("retry-after-ms", "70"), ("retry-after", "9")], Some(Duration::from_millis(70))),
            (&[("retry-after-ms", "soon"), ("retry-after", "9")], Some(Duration::from_secs(9))),
            (&[("retry-after", later), ("date", date)], Some(Duration::from_secs(30))),
            (&[("retry-after", later)], Some(Duration::from_millis(30_500))),
            (&[("retry-after", date), ("date", later)], Some(Duration::ZERO)),
            (&[("retry-after", "-3")], None),
            (&[("retry-after", "NaN")], None),
            (&[("retry-after", "tomorrow")], None),
            (&[("retry-after", "1e300")], Some(Duration::MAX)),
        ];
        for (headers, expected) in cases {
            let header = |name: &str| headers.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
            assert_eq!(requested_wait(header, || Some(now)), *expected, "{headers:?}");
        }
        let dated = |name: &str| (name == "retry-after").then_some(later);
        assert_eq!(requested_wait(dated, || None), None, "a date alone says nothing without a clock");
    }

    #[test]
    fn jitter_fills_the_whole_of_a_growing_range() {
        let policy = RetryPolicy::default();
        let mut random = fastrand::Rng::with_seed(7);
        for (attempt, bound_ms) in [(1, 500), (2, 1_000), (3, 2_000), (7, 32_000), (99, 32_000)] {
            let bound = Duration::from_millis(bound_ms);
            let waits: Vec<Duration> =
                (0..200).map(|_| jittered_wait(&policy, attempt, &mut random)).collect();
            assert!(waits.iter().all(|wait| *wait <= bound), "{attempt}");
            assert!(waits.iter().any(|wait| *wait < bound / 10), "{attempt}: never short");
            assert!(waits.iter().any(|wait| *wait > bound * 9 / 10), "{attempt}: never long");
        }
    }
}
