//! Watches how much of each request the provider reads from its cache.

use journeyman_protocol::{Tokens, UnixMillis, Usage};

use crate::Clock;

/// Time in which a following request still finds its prefix in the provider's cache, in
/// milliseconds. The shortest time that providers document is five minutes.
const CACHE_LIFETIME_MS: u64 = 4 * 60 * 1_000;
/// Share of the last request's input that has to come from the cache, in hundredths.
const MIN_CACHED_PERCENT: u64 = 50;
/// Minimum input that every provider caches.
const MIN_CACHEABLE_INPUT: Tokens = Tokens(4_000);
/// Requests in a row with a low share after which a warning is given.
const MAX_LOW_REQUESTS: u32 = 3;

/// Detects that a provider's prompt cache stops working in a session.
pub(crate) struct CacheWatch {
    clock: Clock,
    /// True once the provider has read something from its cache in this session.
    has_hit: bool,
    last: Option<(Tokens, UnixMillis)>,
    low: u32,
    is_told: bool,
}

impl CacheWatch {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, has_hit: false, last: None, low: 0, is_told: false }
    }

    /// Observes the usage of a request. Returns a warning if the share that came from the cache has
    /// dropped, once a session.
    pub(crate) fn observe(&mut self, usage: &Usage) -> Option<String> {
        let now = self.clock.now();
        let input = usage.total_input();
        let last = self.last.replace((input, now));
        self.has_hit |= usage.cache_read.0 > 0;
        let (before, at) = last?;
        // A shorter request doesn't continue the last one.
        let continues = input >= before && now.0.saturating_sub(at.0) <= CACHE_LIFETIME_MS;
        if !self.has_hit || !continues || before < MIN_CACHEABLE_INPUT || self.is_told {
            self.low = 0;
            return None;
        }
        let share = usage.cache_read.0.saturating_mul(100) / before.0.max(1);
        self.low = if share < MIN_CACHED_PERCENT { self.low + 1 } else { 0 };
        if self.low < MAX_LOW_REQUESTS {
            return None;
        }
        self.is_told = true;
        Some(format!(
            "the provider read only {share} % of the conversation so far from its cache, {MAX_LOW_REQUESTS} times in a row; \
             before, it read more, so the session costs more now"
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    fn usage(input: u64, cache_read: u64) -> Usage {
        Usage { input: Tokens(input - cache_read), cache_read: Tokens(cache_read), ..Usage::default() }
    }

    fn watch(requests: &[(u64, u64, u64)]) -> usize {
        let minute = Arc::new(AtomicU64::new(0));
        let time = Arc::clone(&minute);
        let clock = Clock::new(move || UnixMillis(time.load(Ordering::Relaxed) * 60_000));
        let mut watch = CacheWatch::new(clock);
        let observed = requests.iter().map(|(input, read, at)| {
            minute.store(*at, Ordering::Relaxed);
            watch.observe(&usage(*input, *read))
        });
        observed.flatten().count()
    }

    #[test]
    fn a_cache_that_stops_working_is_told_once() {
        let good = [(10_000, 0, 0), (11_000, 10_000, 1), (12_000, 11_000, 2)];
        assert_eq!(watch(&good), 0);
        let bad = [(13_000, 400, 3), (14_000, 400, 4), (15_000, 400, 5), (16_000, 400, 6), (17_000, 0, 7)];
        assert_eq!(watch(&[good.as_slice(), bad.as_slice()].concat()), 1);
    }

    #[test]
    fn what_explains_itself_is_not_told() {
        let never = [(10_000, 0, 0), (11_000, 0, 1), (12_000, 0, 2), (13_000, 0, 3), (14_000, 0, 4)];
        assert_eq!(watch(&never), 0, "a provider without a cache");
        let slow = [(10_000, 0, 0), (11_000, 9_000, 1), (12_000, 0, 20), (13_000, 0, 40), (14_000, 0, 60)];
        assert_eq!(watch(&slow), 0, "the user was away");
        let shortened = [(90_000, 0, 0), (95_000, 90_000, 1), (20_000, 0, 2), (21_000, 20_000, 3)];
        assert_eq!(watch(&shortened), 0, "the conversation was shortened");
    }
}
