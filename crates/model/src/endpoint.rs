//! The address, key, deadlines and retry policy of a provider.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use journeyman_protocol::Clock;

use crate::Wire;

/// A secret key. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Creates a key. White space around the text, such as a line break from a file, is dropped.
    #[must_use]
    pub fn new(key: impl AsRef<str>) -> Self {
        Self(Arc::from(key.as_ref().trim()))
    }

    /// Returns the key as text.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

/// Time limits of a request. Each starts anew in every attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlines {
    /// Limit for name look-up, TCP and TLS together.
    pub connect: Duration,
    /// Limit from the request to the first byte of the response's body.
    pub first_byte: Duration,
    /// Limit between two chunks of the body.
    pub idle: Duration,
    /// Limit for one whole attempt.
    pub total: Duration,
}

impl Default for Deadlines {
    /// Ten seconds to connect, as other HTTP clients use; five minutes to the first byte, because a
    /// thinking model behind a gateway that sends no keep-alives may be silent that long; two
    /// minutes of silence after the first byte; one hour in total.
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(300),
            idle: Duration::from_secs(120),
            total: Duration::from_secs(3600),
        }
    }
}

/// The number of attempts and the waits between them.
///
/// The wait before attempt n + 1 is random between zero and `min(max_wait, base_wait · 2ⁿ⁻¹)`:
/// "full jitter", from Marc Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
/// A wait that the provider requests in `retry-after` or `retry-after-ms` takes precedence.
#[derive(Debug, Clone)]
pub struct RetryPolicy {
    /// Maximum number of attempts, including the first.
    pub max_attempts: u32,
    /// Upper bound of the first wait.
    pub base_wait: Duration,
    /// Upper bound of every wait that this client chooses.
    pub max_wait: Duration,
    /// Maximum wait that a provider may request; a longer wait is an error.
    pub max_retry_after: Duration,
    /// The seed of the random waits.
    pub seed: u64,
    /// The time of day, used if `retry-after` is a date and the response has no date of its own.
    pub clock: Option<Clock>,
}

impl Default for RetryPolicy {
    /// Five attempts with waits between half a second and 32 s: about half a minute in total on
    /// average, which outlasts short failures of a gateway. Five minutes of `retry-after` cover a
    /// rate limit per minute with room to spare.
    fn default() -> Self {
        Self {
            max_attempts: 5,
            base_wait: Duration::from_millis(500),
            max_wait: Duration::from_secs(32),
            max_retry_after: Duration::from_secs(300),
            seed: 0x9E37_79B9_7F4A_7C15,
            clock: None,
        }
    }
}

/// Proxies, as in the variables `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`. The surface reads the
/// environment.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct ProxySettings {
    /// The proxy of plain `http` URLs.
    pub http: Option<String>,
    /// The proxy of `https` URLs.
    pub https: Option<String>,
    /// Hosts that are reached without a proxy, separated by commas. Loopback never needs one.
    pub no_proxy: String,
}

impl fmt::Debug for ProxySettings {
    /// Shows the proxies' URLs without passwords.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxySettings")
            .field("http", &self.http.as_deref().map(crate::transport::display_url))
            .field("https", &self.https.as_deref().map(crate::transport::display_url))
            .field("no_proxy", &self.no_proxy)
            .finish()
    }
}

/// A provider's address, key and settings: everything but the model's name.
#[derive(Clone)]
pub struct Endpoint {
    /// The provider's name, for people.
    pub provider: String,
    /// The provider's protocol.
    pub wire: Wire,
    /// The base URL without a trailing slash, such as `https://api.anthropic.com`.
    pub base_url: String,
    /// The key; `None` if the provider needs none.
    pub key: Option<Secret>,
    /// The environment variables that may hold the key, for the advice in errors.
    pub key_env: Vec<String>,
    /// True if there is no client without a key where `key_env` names variables; false if only the
    /// server knows whether a key is needed.
    pub key_required: bool,
    /// Additional headers, by name. Their values are kept out of errors and recordings, as keys
    /// are.
    pub headers: BTreeMap<String, String>,
    /// The time limits.
    pub deadlines: Deadlines,
    /// The retry policy.
    pub retry: RetryPolicy,
    /// True if the provider's models can call tools; otherwise a request with tools is refused.
    pub tools: bool,
    /// True if the provider runs on this machine, for the advice in errors.
    pub local: bool,
    /// The proxies.
    pub proxy: ProxySettings,
    /// A file of PEM certificates to trust instead of the platform's. If `None`, the platform's
    /// certificates are searched as its own tools do, which includes the variables `SSL_CERT_FILE`
    /// and `SSL_CERT_DIR`.
    pub ca_file: Option<PathBuf>,
}

impl Endpoint {
    /// Creates an endpoint without key, headers or proxy, with the default deadlines and retry
    /// policy.
    #[must_use]
    pub fn new(provider: impl Into<String>, wire: Wire, base_url: impl Into<String>) -> Self {
        Self {
            provider: provider.into(),
            wire,
            base_url: base_url.into(),
            key: None,
            key_env: Vec::new(),
            key_required: true,
            headers: BTreeMap::new(),
            deadlines: Deadlines::default(),
            retry: RetryPolicy::default(),
            tools: true,
            local: false,
            proxy: ProxySettings::default(),
            ca_file: None,
        }
    }
}

impl fmt::Debug for Endpoint {
    /// Shows only the names of headers, because their values may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("provider", &self.provider)
            .field("wire", &self.wire)
            .field("base_url", &crate::transport::display_url(&self.base_url))
            .field("key", &self.key)
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .field("deadlines", &self.deadlines)
            .field("tools", &self.tools)
            .finish_non_exhaustive()
    }
}
