//! Where a model is reached, and how patiently.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use journeyman_protocol::UnixMillis;

/// The four wire protocols.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wire {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Responses.
    Responses,
    /// OpenAI Chat Completions, which most other servers speak.
    Chat,
    /// Gemini `streamGenerateContent`.
    Gemini,
}

impl Wire {
    /// Every protocol.
    pub const ALL: [Self; 4] = [Self::Anthropic, Self::Responses, Self::Chat, Self::Gemini];

    /// The protocol's name as people type it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Responses => "responses",
            Self::Chat => "chat",
            Self::Gemini => "gemini",
        }
    }
}

impl fmt::Display for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a string is not a [`Wire`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("«{given}» is not a wire protocol; they are anthropic, responses, chat, gemini")]
pub struct ParseWireError {
    /// The string as given.
    pub given: String,
}

impl FromStr for Wire {
    type Err = ParseWireError;

    fn from_str(given: &str) -> Result<Self, ParseWireError> {
        Self::ALL
            .into_iter()
            .find(|wire| wire.name() == given)
            .ok_or_else(|| ParseWireError { given: given.to_owned() })
    }
}

/// A key. It shows itself to nobody but the one who asks for it by name.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Takes a key; white space around it (a line break from a file) is dropped.
    #[must_use]
    pub fn new(key: impl AsRef<str>) -> Self {
        Self(Arc::from(key.as_ref().trim()))
    }

    /// The key itself.
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

/// How long to wait for what. Each runs anew in every attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlines {
    /// For name look-up, TCP and TLS together.
    pub connect: Duration,
    /// From the request to the first byte of the answer's body.
    pub first_byte: Duration,
    /// Between two pieces of the body.
    pub idle: Duration,
    /// For one whole attempt.
    pub total: Duration,
}

impl Default for Deadlines {
    /// Ten seconds to connect, as curl-like tools use; five minutes to the first byte, because a thinking
    /// model behind a gateway that sends no keep-alives may be silent that long; two minutes of silence
    /// once it talks; one hour in all.
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(300),
            idle: Duration::from_secs(120),
            total: Duration::from_secs(3600),
        }
    }
}

/// The time of day, given by the edge.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> UnixMillis + Send + Sync>);

impl Clock {
    /// A clock that asks `now`.
    #[must_use]
    pub fn new(now: impl Fn() -> UnixMillis + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> UnixMillis {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

/// When and how often to try again.
///
/// The wait before attempt n + 1 is a random time between nothing and `min(cap, base · 2ⁿ⁻¹)`: «full
/// jitter», from Marc Brooker, «Exponential Backoff And Jitter», AWS Architecture Blog, 2015. What the
/// provider asks for in `retry-after` or `retry-after-ms` comes first.
#[derive(Debug, Clone)]
pub struct RetryPolicy {
    /// How many attempts there are at most, the first one included.
    pub attempts: u32,
    /// The upper bound of the first wait.
    pub base: Duration,
    /// The upper bound of every wait that this client chooses.
    pub cap: Duration,
    /// The longest wait that a provider may ask for; more is an error that says so.
    pub longest_asked: Duration,
    /// Where the jitter's randomness begins.
    pub seed: u64,
    /// The time of day, for a `retry-after` that is a date in an answer that carries no date of its own.
    pub clock: Option<Clock>,
}

impl Default for RetryPolicy {
    /// Five attempts from half a second up to 32 s: together about half a minute on average, which
    /// outlasts the hiccup of a gateway and not a person's patience. Five minutes of `retry-after`
    /// cover a per-minute rate limit with room to spare.
    fn default() -> Self {
        Self {
            attempts: 5,
            base: Duration::from_millis(500),
            cap: Duration::from_secs(32),
            longest_asked: Duration::from_secs(300),
            seed: 0x9E37_79B9_7F4A_7C15,
            clock: None,
        }
    }
}

/// Proxies, as the environment's `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` would say; the edge reads them.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct ProxySettings {
    /// The proxy of plain `http` URLs.
    pub http: Option<String>,
    /// The proxy of `https` URLs.
    pub https: Option<String>,
    /// Hosts that are reached directly, separated by commas. Loopback always is.
    pub no_proxy: String,
}

impl fmt::Debug for ProxySettings {
    /// A proxy's URL may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxySettings")
            .field("http", &self.http.as_deref().map(crate::transport::shown_url))
            .field("https", &self.https.as_deref().map(crate::transport::shown_url))
            .field("no_proxy", &self.no_proxy)
            .finish()
    }
}

/// One provider's address, key and manners: everything but the model's name.
#[derive(Clone)]
pub struct Endpoint {
    /// The provider's name, for people.
    pub provider: String,
    /// The protocol it speaks.
    pub wire: Wire,
    /// Where it is, without a trailing slash, such as `https://api.anthropic.com`.
    pub base_url: String,
    /// Its key; `None` where it wants none.
    pub key: Option<Secret>,
    /// The environment variables that may hold the key, for the advice in errors.
    pub key_env: Vec<String>,
    /// Further headers, by name. Their values are kept out of errors and recordings as keys are.
    pub headers: BTreeMap<String, String>,
    /// How long to wait for what.
    pub deadlines: Deadlines,
    /// When to try again.
    pub retry: RetryPolicy,
    /// Whether its models call tools; a request with tools is refused otherwise.
    pub tools: bool,
    /// Whether it runs on this machine, for the advice in errors.
    pub local: bool,
    /// The proxies.
    pub proxy: ProxySettings,
    /// A file of PEM certificates to trust in place of the platform's. Where it is `None` the platform's
    /// are looked for as its own tools do, which includes the variables `SSL_CERT_FILE` and `SSL_CERT_DIR`.
    pub ca_file: Option<PathBuf>,
}

impl Endpoint {
    /// An endpoint without key, headers or proxy, with the default patience.
    #[must_use]
    pub fn new(provider: impl Into<String>, wire: Wire, base_url: impl Into<String>) -> Self {
        Self {
            provider: provider.into(),
            wire,
            base_url: base_url.into(),
            key: None,
            key_env: Vec::new(),
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
    /// Header values may be secrets, so only their names are shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("provider", &self.provider)
            .field("wire", &self.wire)
            .field("base_url", &crate::transport::shown_url(&self.base_url))
            .field("key", &self.key)
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .field("deadlines", &self.deadlines)
            .field("tools", &self.tools)
            .finish_non_exhaustive()
    }
}
