//! The environment variables that make programs in the sandbox use the proxy.

use std::collections::BTreeMap;
use std::ffi::OsString;

/// The proxy's port on the sandbox's own loopback: the usual one.
pub(crate) const PROXY_PORT: u16 = 3128;

const PROXY_URL: &str = "http://127.0.0.1:3128";
/// The sandbox's own servers are asked directly.
const DIRECT_HOSTS: &str = "localhost,127.0.0.1,::1";
/// Java reads no variable by itself, and asks loopback directly unless it is told otherwise. These
/// are read by its build tools alone: `JAVA_TOOL_OPTIONS`, which every JVM reads, makes each of
/// them write a line to standard error, which breaks tests that compare it.
const JAVA_OPTIONS: &str = "-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=3128 -Dhttps.proxyHost=127.0.0.1 \
                    -Dhttps.proxyPort=3128 -Daether.connector.http.useSystemProperties=true \
                    -Daether.transport.http.useSystemProperties=true";

/// The variables of a command whose network is a proxy. Curl, git, pip, go, cargo, gem, apt, wget
/// and most libraries read the first ones; the others are for tools whose settings files would
/// override them.
const PROXY_VARIABLES: [(&str, &str); 21] = [
    ("http_proxy", PROXY_URL),
    ("HTTP_PROXY", PROXY_URL),
    ("https_proxy", PROXY_URL),
    ("HTTPS_PROXY", PROXY_URL),
    // Not socks5h://, which some Python programs can't read.
    ("all_proxy", PROXY_URL),
    ("ALL_PROXY", PROXY_URL),
    ("no_proxy", DIRECT_HOSTS),
    ("NO_PROXY", DIRECT_HOSTS),
    ("CARGO_HTTP_PROXY", PROXY_URL),
    ("npm_config_proxy", PROXY_URL),
    ("npm_config_https_proxy", PROXY_URL),
    ("npm_config_noproxy", DIRECT_HOSTS),
    ("YARN_HTTP_PROXY", PROXY_URL),
    ("YARN_HTTPS_PROXY", PROXY_URL),
    // Node's own `fetch` reads the first ones only then.
    ("NODE_USE_ENV_PROXY", "1"),
    ("PIP_PROXY", PROXY_URL),
    ("GRADLE_OPTS", JAVA_OPTIONS),
    ("MAVEN_OPTS", JAVA_OPTIONS),
    ("SBT_OPTS", JAVA_OPTIONS),
    ("HEX_HTTP_PROXY", PROXY_URL),
    ("HEX_HTTPS_PROXY", PROXY_URL),
];

/// Sets what isn't set.
pub(crate) fn set_proxy_variables(env: &mut BTreeMap<OsString, OsString>) {
    for (name, value) in PROXY_VARIABLES {
        env.entry(name.into()).or_insert_with(|| value.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_caller_set_stays() {
        let mut env = BTreeMap::from([("https_proxy".into(), "http://own:1".into())]);
        set_proxy_variables(&mut env);
        assert_eq!(env.len(), PROXY_VARIABLES.len());
        assert_eq!(env[std::ffi::OsStr::new("https_proxy")], "http://own:1");
        assert!(
            PROXY_URL.ends_with(&PROXY_PORT.to_string())
                && JAVA_OPTIONS.contains(&format!("proxyPort={PROXY_PORT}"))
        );
    }
}
