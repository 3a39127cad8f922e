//! The variables, files and hosts that a run of a CLI gets, without those of other providers.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use journeyman_sandbox::{HostEnvironment, HostPattern, NetworkRules, PortForward};
use url::{Host, Url};

use crate::{DelegateSettings, Provider};

/// The port of the sandbox's proxy, which no server of the user's can have inside the sandbox.
const PROXY_PORT: u16 = 3128;
/// The port inside the sandbox that stands for a server on [`PROXY_PORT`].
const REMAPPED_PORT: u16 = 3129;

/// The reason why a CLI can't be given its variables, files and hosts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// A base URL that can't be reached from inside a sandbox.
    #[error("{variable} is `{address}`, which a confined CLI can't be led to: {why}")]
    BaseUrl {
        /// The variable or setting with the URL.
        variable: String,
        /// The URL.
        address: String,
        /// The fault, and the accepted form.
        why: &'static str,
    },
    /// A host name that is not valid.
    #[error("`{host}` names no host that {name} could be let through to")]
    Host {
        /// The CLI.
        name: String,
        /// The host.
        host: String,
    },
}

/// The variables, files and hosts of one CLI.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CliAccess {
    /// Variables: the provider's key, the user's settings, and those that are always set.
    pub environment: BTreeMap<OsString, OsString>,
    /// The base URL as the CLI sees it, if it isn't the provider's own.
    pub base_url: Option<String>,
    /// The hosts and addresses that the CLI may reach.
    pub network: NetworkRules,
    /// Files to write into the CLI's own home, by their relative paths.
    pub files: Vec<(PathBuf, String)>,
    /// Files and directories of the user's home with credentials, by their relative paths.
    pub credentials: Vec<PathBuf>,
    /// The values of keys, which must not be shown.
    pub secrets: Vec<String>,
}

impl CliAccess {
    /// Finds what a CLI needs in the user's environment. Takes the first provider whose key or
    /// address is set; for a user who is logged in by a file, the first that needs no key.
    /// `confined` means that addresses are those inside a sandbox.
    ///
    /// # Errors
    /// [`AccessError`] for an address that can't be reached from inside a sandbox.
    pub fn from_environment(
        settings: &DelegateSettings,
        host: &HostEnvironment,
        confined: bool,
    ) -> Result<Self, AccessError> {
        let adapter = settings.adapter.as_ref();
        let needs = adapter.requirements().for_model(settings.model.as_deref());
        let credentials = existing_paths(&needs.credentials, host);
        let keyless = needs.providers.iter().find(|provider| provider.keys.is_empty());
        let chosen = needs.providers.iter().find(|provider| is_provider_configured(provider, host));
        let provider = chosen.or(keyless.filter(|_| !credentials.is_empty())).or(needs.providers.first());
        let mut access = Self { credentials, ..Self::default() };
        let mut pass = |name: &str| {
            let value = variable(host, name)?;
            access.environment.insert(name.into(), value.into());
            Some(value.to_owned())
        };
        needs.environment.iter().for_each(|name| drop(pass(name)));
        if let Some(provider) = provider {
            access.secrets = provider.keys.iter().filter_map(|name| pass(name)).collect();
            access.files.clone_from(&provider.files);
            let own = provider.base_urls.iter().find_map(|name| Some((name, variable(host, name)?)));
            match (&settings.base_url, own) {
                (Some(address), _) => access.use_base_url("base_url", address, confined)?,
                (None, Some((name, address))) => access.use_base_url(name, address, confined)?,
                (None, None) => access.add_hosts(adapter.name(), &provider.hosts)?,
            }
        }
        for place in &settings.network {
            match place.parse::<SocketAddr>() {
                Ok(to) => access.network.forwards.push(PortForward { port: to.port(), to }),
                Err(_) => access.add_hosts(adapter.name(), std::slice::from_ref(place))?,
            }
        }
        for (name, value) in needs.set {
            access.environment.insert(name.into(), value.into());
        }
        Ok(access)
    }

    fn add_hosts(&mut self, name: &str, hosts: &[String]) -> Result<(), AccessError> {
        for host in hosts {
            let pattern: HostPattern =
                host.parse().map_err(|_| AccessError::Host { name: name.to_owned(), host: host.clone() })?;
            self.network.hosts.push(pattern);
        }
        Ok(())
    }

    /// Sets the provider's base URL, and allows only its host.
    fn use_base_url(&mut self, variable: &str, address: &str, confined: bool) -> Result<(), AccessError> {
        let refuse = |why| AccessError::BaseUrl {
            variable: variable.to_owned(),
            address: strip_password(address),
            why,
        };
        let mut url = Url::parse(address).map_err(|_| refuse("it is no address"))?;
        self.base_url = Some(address.to_owned());
        if !confined {
            return Ok(());
        }
        let port = url.port_or_known_default().ok_or_else(|| refuse("it has no port"))?;
        let ip = match url.host().ok_or_else(|| refuse("it has no host"))? {
            Host::Domain(name) if name.eq_ignore_ascii_case("localhost") => IpAddr::V4(Ipv4Addr::LOCALHOST),
            Host::Domain(name) => {
                let pattern = name.parse().map_err(|_| refuse("its host has no name that is let through"))?;
                match (url.scheme(), port) {
                    ("https", 443) => {}
                    ("http", 80) => self.network.plain_http = true,
                    _ => return Err(refuse("a host by its name is reached at port 443 or 80 alone")),
                }
                self.network.hosts.push(pattern);
                return Ok(());
            }
            Host::Ipv4(ip) => IpAddr::V4(ip),
            Host::Ipv6(ip) => IpAddr::V6(ip),
        };
        if url.scheme() != "http" {
            return Err(refuse("a server by its number is reached by http:// alone"));
        }
        // Inside the sandbox the server is at the loopback address, so that nothing else of its
        // network can be reached.
        let inside = if port == PROXY_PORT { REMAPPED_PORT } else { port };
        let moved =
            url.set_ip_host(IpAddr::V4(Ipv4Addr::LOCALHOST)).and_then(|()| url.set_port(Some(inside)));
        moved.map_err(|()| refuse("it is no address of a server"))?;
        self.network.forwards.push(PortForward { port: inside, to: SocketAddr::new(ip, port) });
        self.base_url = Some(url.as_str().trim_end_matches('/').to_owned());
        Ok(())
    }

    /// Returns the names of all reachable hosts, for rules and for people.
    #[must_use]
    pub fn hosts(&self) -> Vec<String> {
        let named = self.network.hosts.iter().map(ToString::to_string);
        named.chain(self.network.forwards.iter().map(|forward| forward.to.to_string())).collect()
    }
}

/// Returns the value of a variable, if it is set and not empty.
fn variable<'a>(host: &'a HostEnvironment, name: &str) -> Option<&'a str> {
    host.vars.get(OsStr::new(name)).and_then(|value| value.to_str()).filter(|value| !value.is_empty())
}

fn is_provider_configured(provider: &Provider, host: &HostEnvironment) -> bool {
    provider.keys.iter().chain(&provider.base_urls).any(|name| variable(host, name).is_some())
}

/// Returns those paths that exist beneath the user's home.
fn existing_paths(paths: &[PathBuf], host: &HostEnvironment) -> Vec<PathBuf> {
    let Some(home) = &host.home else { return Vec::new() };
    paths.iter().filter(|path| path.is_relative() && home.join(path).exists()).cloned().collect()
}

fn strip_password(address: &str) -> String {
    let Ok(mut url) = Url::parse(address) else { return address.chars().take(80).collect() };
    // Fails for URLs that can't have a password.
    url.set_password(None).ok();
    url.set_username("").ok();
    url.set_query(None);
    url.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use crate::{Adapter, Capabilities, CommandLine, CommandRequest, Conversation, Requirements};

    struct TwoProviders;

    impl Adapter for TwoProviders {
        fn name(&self) -> &str {
            "two"
        }
        fn program(&self) -> &str {
            "two"
        }
        fn install_hint(&self) -> &str {
            ""
        }
        fn capabilities(&self) -> Capabilities {
            Capabilities::default()
        }
        fn requirements(&self) -> Requirements {
            let provider = |name: &str| Provider {
                keys: vec![format!("{name}_KEY")],
                base_urls: vec![format!("{name}_URL")],
                hosts: vec![format!("api.{}.test", name.to_lowercase())],
                ..Provider::default()
            };
            Requirements {
                providers: vec![provider("FIRST"), provider("SECOND")],
                environment: vec!["TWO_SETTING".to_owned()],
                set: vec![("NO_UPDATE".to_owned(), "1".to_owned())],
                ..Requirements::default()
            }
        }
        fn build_command(&self, _: &CommandRequest<'_>) -> CommandLine {
            CommandLine::default()
        }
        fn start_conversation(&self, _: &CommandRequest<'_>) -> Box<dyn Conversation> {
            unreachable!("nothing runs")
        }
    }

    fn settings() -> DelegateSettings {
        DelegateSettings::new(Arc::new(TwoProviders))
    }

    fn find(vars: &[(&str, &str)]) -> Result<CliAccess, AccessError> {
        let vars = vars.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        CliAccess::from_environment(&settings(), &HostEnvironment { vars, home: None }, true)
    }

    #[test]
    fn the_provider_with_a_key_counts_and_nothing_of_others_is_passed() {
        let host = HostEnvironment {
            vars: [("SECOND_KEY", "k2"), ("OTHER_KEY", "x"), ("TWO_SETTING", "s")]
                .map(|(name, value)| (name.into(), value.into()))
                .into(),
            home: None,
        };
        let access = CliAccess::from_environment(&settings(), &host, true).unwrap();
        let names: Vec<_> = access.environment.keys().map(|name| name.to_str().unwrap()).collect();
        assert_eq!(names, ["NO_UPDATE", "SECOND_KEY", "TWO_SETTING"]);
        assert_eq!(
            (access.hosts(), access.secrets),
            (vec!["api.second.test".to_owned()], vec!["k2".to_owned()])
        );
        // Of both keys the first provider's is passed.
        let both = find(&[("FIRST_KEY", "k1"), ("SECOND_KEY", "k2")]).unwrap();
        assert!(!both.environment.contains_key(OsStr::new("SECOND_KEY")));
        assert_eq!(find(&[]).unwrap().hosts(), ["api.first.test"], "logged in by a file");
    }

    #[test]
    fn an_address_of_the_users_is_reached_and_no_other() {
        let cases = [
            ("http://127.0.0.1:11434/v1", "http://127.0.0.1:11434/v1", "127.0.0.1:11434"),
            ("http://localhost:8080", "http://127.0.0.1:8080", "127.0.0.1:8080"),
            ("http://192.168.1.5:8080/", "http://127.0.0.1:8080", "192.168.1.5:8080"),
            ("http://[::1]:9000", "http://127.0.0.1:9000", "[::1]:9000"),
            ("http://127.0.0.1:3128", "http://127.0.0.1:3129", "127.0.0.1:3128"),
            ("http://10.0.0.1", "http://127.0.0.1", "10.0.0.1:80"),
            (
                "https://proxy.example.com/anthropic",
                "https://proxy.example.com/anthropic",
                "proxy.example.com",
            ),
            ("http://proxy.example.com", "http://proxy.example.com", "proxy.example.com"),
        ];
        for (address, inside, reached) in cases {
            let access = find(&[("FIRST_KEY", "k"), ("FIRST_URL", address)]).unwrap();
            assert_eq!(access.base_url.as_deref(), Some(inside));
            assert_eq!(access.hosts(), [reached], "in place of the provider's own");
        }
        let (network, base_url) = (vec!["127.0.0.1:11434".to_owned()], Some("http://10.0.0.9:80".to_owned()));
        let host =
            HostEnvironment { vars: [("FIRST_URL".into(), "http://10.1.1.1".into())].into(), home: None };
        let access =
            CliAccess::from_environment(&DelegateSettings { network, base_url, ..settings() }, &host, true)
                .unwrap();
        assert_eq!(access.hosts(), ["10.0.0.9:80", "127.0.0.1:11434"], "the configuration wins");
        for (address, expected) in [
            ("https://192.168.1.5:8443", "by http:// alone"),
            ("http://gpu.lan:8000", "port 443 or 80"),
            ("not an address", "no address"),
            ("http://u:hunter2@gpu.lan:1", "port 443"),
        ] {
            let error = find(&[("FIRST_URL", address)]).unwrap_err().to_string();
            assert!(error.contains(expected) && !error.contains("hunter2"), "{error}");
        }
    }
}
