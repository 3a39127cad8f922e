//! The target of a client's request, and the judgement of it.

use super::NetworkRules;

/// The longest name that DNS has.
const MAX_HOST_NAME_BYTES: usize = 253;
/// The longest label of one.
const MAX_LABEL_BYTES: usize = 63;
/// Maximum characters of a target in the log: a name's length.
const MAX_SHOWN_CHARACTERS: usize = MAX_HOST_NAME_BYTES;
/// Encrypted.
pub(super) const TLS_PORT: u16 = 443;
/// Plain.
pub(super) const HTTP_PORT: u16 = 80;

/// The reason of a refusal. Each text is plain ASCII, because it goes into the status line of an
/// answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It isn't what the proxy speaks, or not exactly.
    Malformed(&'static str),
    /// The rules are against it.
    Denied(&'static str),
}

impl Refusal {
    pub(super) fn reason(self) -> &'static str {
        let (Self::Malformed(why) | Self::Denied(why)) = self;
        why
    }
}

/// A host's name and a port: lower case, checked for its form, and nothing else yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) host: String,
    pub(super) port: u16,
}

impl Target {
    /// Parses `host:port`; the port may be left out where there is a usual one.
    pub(super) fn parse(text: &str, usual: Option<u16>) -> Result<Self, Refusal> {
        if text.contains('@') {
            return Err(Refusal::Malformed("user names in addresses aren't taken"));
        }
        if text.starts_with('[') {
            return Err(ADDRESS_REFUSAL);
        }
        let (host, port) = match (text.rsplit_once(':'), usual) {
            (Some((host, port)), _) => (host, parse_port(port)?),
            (None, Some(usual)) => (text, usual),
            (None, None) => return Err(Refusal::Malformed("a port is missing")),
        };
        Self::new(host, port)
    }

    pub(super) fn new(host: &str, port: u16) -> Result<Self, Refusal> {
        check_host_name(host)?;
        Ok(Self { host: host.to_ascii_lowercase(), port })
    }

    /// Returns true if a `Host` header names this target.
    pub(super) fn matches_host_header(&self, header: &str, usual: u16) -> bool {
        Self::parse(header, Some(usual)).is_ok_and(|target| target == *self)
    }

    /// Makes the first checks, before anything is resolved.
    pub(super) fn check_rules(&self, rules: &NetworkRules) -> Result<(), Refusal> {
        if !rules.hosts.iter().any(|pattern| pattern.matches(&self.host)) {
            return Err(Refusal::Denied("this host isn't among those that the command may reach"));
        }
        match self.port {
            TLS_PORT => Ok(()),
            HTTP_PORT if rules.plain_http => Ok(()),
            HTTP_PORT => Err(Refusal::Denied("plain HTTP isn't allowed, ask by HTTPS")),
            _ => Err(Refusal::Denied("only port 443 is let through (and 80 where plain HTTP is allowed)")),
        }
    }
}

const ADDRESS_REFUSAL: Refusal = Refusal::Denied("addresses aren't let through, only names");

/// Parses a port of digits, without signs or zeros before it.
fn parse_port(text: &str) -> Result<u16, Refusal> {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) && !text.starts_with('0');
    let port = plain.then(|| text.parse().ok()).flatten();
    port.ok_or(Refusal::Malformed("the port isn't a number from 1 to 65535"))
}

/// Checks that a text is a host's name in its one spelling: ASCII labels between dots, none at the
/// end.
fn check_host_name(host: &str) -> Result<(), Refusal> {
    if host.is_empty() || host.len() > MAX_HOST_NAME_BYTES {
        return Err(Refusal::Malformed("the host's name is empty or too long"));
    }
    // A colon is in IPv6 addresses alone, with or without brackets.
    if host.contains([':', '[', ']', '%']) {
        return Err(ADDRESS_REFUSAL);
    }
    if !host.is_ascii() {
        return Err(Refusal::Malformed("names in other scripts go in as xn--..."));
    }
    if host.ends_with('.') {
        return Err(Refusal::Malformed("a name has no dot at its end here"));
    }
    let label = |label: &str| {
        !label.is_empty()
            && label.len() <= MAX_LABEL_BYTES
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if !host.split('.').all(label) {
        return Err(Refusal::Malformed("this isn't a host's name"));
    }
    // Resolvers read `127.1`, `0177.0.0.1`, `2130706433` and `0x7f000001` as addresses; no
    // top-level domain is a number.
    let last = host.rsplit('.').next().unwrap_or_default();
    let hex = last.strip_prefix("0x").or_else(|| last.strip_prefix("0X"));
    if last.bytes().all(|b| b.is_ascii_digit())
        || hex.is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))
    {
        return Err(ADDRESS_REFUSAL);
    }
    Ok(())
}

/// Returns the target as the log shows it.
pub(super) fn display_target(bytes: &[u8]) -> String {
    let text: String = crate::clean_output(bytes)
        .chars()
        .filter(|c| !c.is_whitespace())
        .take(MAX_SHOWN_CHARACTERS)
        .collect();
    if text.is_empty() { "(nothing)".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rules(plain_http: bool) -> NetworkRules {
        let hosts = ["allowed.test", "*.below.test"].map(|host| host.parse().unwrap()).to_vec();
        NetworkRules { hosts, plain_http, forwards: Vec::new() }
    }

    #[test]
    fn names_have_one_spelling() {
        assert_eq!(
            Target::parse("Allowed.TEST:443", None),
            Ok(Target { host: "allowed.test".into(), port: 443 })
        );
        assert_eq!(Target::parse("a_b.test", Some(80)), Ok(Target { host: "a_b.test".into(), port: 80 }));
        for wrong in [
            "",
            ":443",
            "allowed.test",
            "allowed.test:",
            "allowed.test:0",
            "allowed.test:0443",
            "allowed.test:+443",
            "allowed.test:65536",
            "allowed.test:99999999999999999999",
            "allowed.test:443:443",
            "allowed.test.:443",
            "allowed..test:443",
            ".allowed.test:443",
            "user@allowed.test:443",
            "allowed.test@evil.test:443",
            "allowed.test:443@evil.test:443",
            "allowed.test%00.evil.test:443",
            "all\u{2024}owed.test:443",
            "\u{ff41}llowed.test:443",
            "allowed\u{3002}test:443",
            "allowed.test/x:443",
            "allowed.test\\.evil.test:443",
            "allowed.test#.evil.test:443",
            "allowed.test?:443",
            "-a.test:443",
            "a .test:443",
            "*.below.test:443",
        ] {
            assert!(Target::parse(wrong, None).is_err(), "{wrong:?}");
        }
        let long = format!("{}.test:443", "a".repeat(64));
        assert!(Target::parse(&long, None).is_err());
    }

    #[test]
    fn addresses_are_refused_in_every_spelling() {
        for address in [
            "127.0.0.1:443",
            "1.1.1.1:443",
            "169.254.169.254:443",
            "127.1:443",
            "0:443",
            "2130706433:443",
            "0177.0.0.1:443",
            "0x7f000001:443",
            "0x7f.0.0.1:443",
            "127.0.0.0x1:443",
            "0X7F.0X1:443",
            "0x:443",
            "[::1]:443",
            "[::ffff:127.0.0.1]:443",
            "::1:443",
            "[fe80::1%25eth0]:443",
            "fe80::1%eth0:443",
            "1.2.3.4.5:443",
            "allowed.test.1:443",
        ] {
            assert_eq!(Target::parse(address, None), Err(ADDRESS_REFUSAL), "{address}");
        }
    }

    #[test]
    fn rules_name_hosts_and_ports() {
        let may =
            |host: &str, port, plain| Target::new(host, port).unwrap().check_rules(&rules(plain)).is_ok();
        assert!(may("allowed.test", 443, false) && may("a.b.below.test", 443, false));
        assert!(may("allowed.test", 80, true) && !may("allowed.test", 80, false));
        for port in [22, 25, 8443, 444] {
            assert!(!may("allowed.test", port, true));
        }
        for host in ["below.test", "xallowed.test", "a.allowed.test", "allowed.test.evil.test", "localhost"] {
            assert!(!may(host, 443, true), "{host}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_both_a_target_and_an_address(text in "[0-9a-fA-FxX.:\\[\\]%@]{0,24}") {
            if let Ok(target) = Target::parse(&text, Some(443)) {
                prop_assert!(target.host.parse::<std::net::IpAddr>().is_err());
                // What a resolver would read as an address without asking anybody.
                prop_assert!(!target.host.rsplit('.').next().unwrap().bytes().all(|b| b.is_ascii_digit()));
            }
        }

        #[test]
        fn any_text_is_judged(text in any::<String>()) {
            Target::parse(&text, Some(443)).and_then(|target| target.check_rules(&rules(true))).ok();
            prop_assert!(display_target(text.as_bytes()).chars().count() <= MAX_SHOWN_CHARACTERS);
        }
    }
}
