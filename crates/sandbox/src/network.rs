//! The hosts that a command may reach, and the proxy that leads to them.
//!
//! A command whose network is [`Network::Filtered`] has a loopback and nothing else. A listener on
//! it is made inside and passed, before the command begins, to the program that runs the sandbox,
//! which serves it as a proxy ([`proxy`]): HTTP's `CONNECT` and whole addresses ([`head`]), and
//! SOCKS 5 ([`socks`]). The target ([`target`]) is judged before its name is resolved, and the
//! address ([`address`]) before anything is connected, and TLS has to name the same host
//! ([`hello`]). An address that a caller names itself is reached through a listener of its own
//! ([`forward`]). Connections are logged ([`journal`]). Without the proxy there is no network.

mod address;
mod connection_log;
mod forward;
mod host_proxy;
mod http_head;
mod proxy;
mod proxy_environment;
mod service;
mod socks;
mod target;
mod tls_hello;
mod upstream;

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::Arc;

pub use host_proxy::HostProxy;
pub(crate) use proxy_environment::set_proxy_variables;
pub(crate) use service::{RunningService, Service, create_services};
pub use upstream::{Upstream, UpstreamFuture};

/// The longest name that DNS has.
const MAX_HOST_NAME_BYTES: usize = 253;

/// The network that the command sees.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Network {
    /// A loopback of its own and nothing else.
    #[default]
    Off,
    /// A loopback of its own, and a proxy on it that leads to these hosts alone.
    Filtered(Arc<NetworkRules>),
    /// The host's, whole; only where
    /// [`Needs::network_off`](journeyman_protocol::SandboxNeeds::network_off) isn't asked for.
    Host,
}

/// The rules of a proxy.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NetworkRules {
    /// The hosts.
    pub hosts: Vec<HostPattern>,
    /// True if port 80 and plain HTTP are allowed too, not only port 443.
    pub plain_http: bool,
    /// Ports on the loopback inside, each of which leads to one address outside, whatever address
    /// that is.
    pub forwards: Vec<PortForward>,
}

/// A port on the sandbox's own loopback that leads to one address, and to no other, outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortForward {
    /// The port on `127.0.0.1` inside.
    pub port: u16,
    /// The address outside.
    pub to: SocketAddr,
}

/// A host name, or `*.` and the end of one, which stands for every name below it, not for itself.
/// Lower case, ASCII; never an address, never `*` alone, never a wildcard of a
/// whole top-level domain.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPattern {
    name: String,
    below: bool,
}

/// The reason why a text is no [`HostPattern`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` names no host: {why}")]
pub struct HostPatternError {
    /// The text.
    pub given: String,
    /// The fault.
    pub why: &'static str,
}

impl HostPattern {
    /// Returns true if the pattern matches a host's name. Letter case and one dot at the end don't
    /// count.
    #[must_use]
    pub fn matches(&self, host: &str) -> bool {
        let host = host.strip_suffix('.').unwrap_or(host);
        if !self.below {
            return host.eq_ignore_ascii_case(&self.name);
        }
        let Some(dot) = host.len().checked_sub(self.name.len() + 1).filter(|at| *at > 0) else {
            return false;
        };
        host.is_char_boundary(dot + 1)
            && host.as_bytes().get(dot) == Some(&b'.')
            && host.get(dot + 1..).is_some_and(|end| end.eq_ignore_ascii_case(&self.name))
    }
}

impl FromStr for HostPattern {
    type Err = HostPatternError;

    fn from_str(given: &str) -> Result<Self, HostPatternError> {
        let wrong = |why| Err(HostPatternError { given: given.chars().take(80).collect(), why });
        let (below, name) = match given.strip_prefix("*.") {
            Some(rest) => (true, rest),
            None => (false, given),
        };
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        if name.is_empty() || name.len() > MAX_HOST_NAME_BYTES {
            return wrong("it is empty or longer than 253 characters");
        }
        let label = |label: &str| {
            !label.is_empty()
                && label.len() <= 63
                && label.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
                && !label.starts_with('-')
                && !label.ends_with('-')
        };
        if !name.split('.').all(label) {
            return wrong(
                "a name has letters, digits and hyphens between dots; other scripts go in as `xn--…`",
            );
        }
        if name.rsplit('.').next().is_some_and(|last| last.bytes().all(|b| b.is_ascii_digit())) {
            return wrong("addresses aren't let through, names are");
        }
        if below && !name.contains('.') {
            return wrong("a whole top-level domain is too much");
        }
        Ok(Self { name, below })
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.below { "*." } else { "" }, self.name)
    }
}

/// A connection that a command asked the proxy for, once or several times in the same way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyConnection {
    /// The host as asked for, cleaned and cut; `(others)` stands for those beyond the first 256.
    pub host: String,
    /// The port; 0 where none was understood.
    pub port: u16,
    /// The number of connections.
    pub times: u64,
    /// Bytes that were handed on from the command to the host, all of them together.
    pub sent: u64,
    /// Bytes that were handed on from the host to the command.
    pub received: u64,
    /// The reason of a denial.
    pub denied: Option<String>,
    /// The reason of a failure after the connection was allowed.
    pub failed: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        let meant = |pattern: &str, host: &str| pattern.parse::<HostPattern>().unwrap().matches(host);
        assert!(meant("crates.io", "Crates.IO."));
        assert!(!meant("crates.io", "static.crates.io") && !meant("crates.io", "xcrates.io"));
        assert!(meant("*.crates.io", "static.crates.io") && meant("*.crates.io", "a.b.CRATES.io"));
        assert!(!meant("*.crates.io", "crates.io") && !meant("*.crates.io", ".crates.io"));
        assert!(!meant("*.crates.io", "xcrates.io") && !meant("*.crates.io", "ücrates.io"));
        for wrong in [
            "", "*", "*.", "*.com", "1.2.3.4", "[::1]", "a b", "http://x", "x:80", "-a.b", "a..b", "*.*.a",
            "ä.de",
        ] {
            assert!(wrong.parse::<HostPattern>().is_err(), "{wrong}");
        }
    }
}
