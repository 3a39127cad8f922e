//! One GET request through the sandbox's proxy.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use journeyman_sandbox::{HostPattern, NetworkRules, Sandbox};
use reqwest::Url;
use reqwest::header::{
    ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION, USER_AGENT,
};

/// Maximum bytes of an address: servers accept no longer ones.
const MAX_URL_BYTES: usize = 2_000;
/// Maximum bytes of a body: a long page without its images.
const MAX_BODY_BYTES: usize = 2 * 1024 * 1024;
/// Maximum number of redirects that are followed on one host.
const MAX_REDIRECTS: usize = 5;
/// Maximum duration of one request.
const MAX_REQUEST_TIME: Duration = Duration::from_secs(30);
/// The user agent that servers are told.
const USER_AGENT_NAME: &str = concat!("journeyman/", env!("CARGO_PKG_VERSION"));

/// An address that may be fetched: http or https, a host name, the default port, no password.
#[derive(Debug, Clone)]
pub(super) struct WebAddress {
    pub(super) url: Url,
    pub(super) host: String,
    pattern: HostPattern,
}

impl WebAddress {
    /// Parses an address.
    ///
    /// # Errors
    /// The reason why the address can't be fetched, and the remedy.
    pub(super) fn parse(given: &str) -> Result<Self, String> {
        if given.len() > MAX_URL_BYTES {
            return Err(format!("the address has {} bytes; at most {MAX_URL_BYTES} are sent", given.len()));
        }
        let given = given.trim();
        let whole = if given.contains("://") { given.to_owned() } else { format!("https://{given}") };
        let url = Url::parse(&whole).map_err(|error| format!("`{given}` is no web address: {error}"))?;
        Self::new(url)
    }

    fn new(mut url: Url) -> Result<Self, String> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("only http and https addresses are fetched, not {}", url.scheme()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("an address with a name or a password in it is not fetched".to_owned());
        }
        if url.port().is_some() {
            return Err("only the usual ports, 80 and 443, are reached".to_owned());
        }
        let host = url.host_str().unwrap_or_default().to_ascii_lowercase();
        if host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok() {
            return Err(format!("{host} is no name; hosts are reached by their names"));
        }
        let pattern: HostPattern = host.parse().map_err(|error| format!("{error}"))?;
        url.set_fragment(None);
        Ok(Self { url, host, pattern })
    }

    fn network_rules(&self) -> NetworkRules {
        NetworkRules { hosts: vec![self.pattern.clone()], plain_http: true, ..NetworkRules::default() }
    }
}

/// A server's response.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) status: u16,
    /// The media type, in lower case and without parameters.
    pub(super) media_type: String,
    /// The character set, if the server names one.
    pub(super) charset: Option<String>,
    pub(super) body: Vec<u8>,
    /// True if the body was longer than the part that was read.
    pub(super) cut: bool,
    /// The final address, after redirects.
    pub(super) url: Url,
}

/// Fetches an address, following redirects within its host.
///
/// # Errors
/// The reason, in words for the model.
pub(super) async fn get(
    sandbox: &Sandbox,
    address: &WebAddress,
    header: Option<(&'static str, &str)>,
) -> Result<Page, String> {
    let proxy = sandbox.open_proxy(address.network_rules()).map_err(|error| format!("the proxy: {error}"))?;
    let client = build_client(&proxy.address().to_string())?;
    let mut headers = HeaderMap::new();
    headers.insert(USER_AGENT, HeaderValue::from_static(USER_AGENT_NAME));
    headers.insert(ACCEPT, HeaderValue::from_static("text/html,application/json,text/*;q=0.9,*/*;q=0.1"));
    if let Some((name, value)) = header {
        let mut value = HeaderValue::from_str(value)
            .map_err(|_| "the key has characters that no header has".to_owned())?;
        value.set_sensitive(true);
        headers.insert(HeaderName::from_static(name), value);
    }
    let fetched = tokio::time::timeout(MAX_REQUEST_TIME, follow_redirects(&client, address, headers)).await;
    let refused =
        proxy.finish().await.into_iter().find_map(|connection| connection.denied.or(connection.failed));
    match fetched {
        Err(_) => Err(format!("{} did not answer within {} s", address.host, MAX_REQUEST_TIME.as_secs())),
        Ok(Err(why)) => {
            Err(refused.map_or(why, |refused| format!("{} was not reached: {refused}", address.host)))
        }
        Ok(Ok(page)) if page.status == 403 || page.status == 502 => match refused {
            // The proxy itself has responded.
            Some(refused) => Err(format!("{} was not reached: {refused}", address.host)),
            None => Ok(page),
        },
        Ok(Ok(page)) => Ok(page),
    }
}

async fn follow_redirects(
    client: &reqwest::Client,
    address: &WebAddress,
    headers: HeaderMap,
) -> Result<Page, String> {
    let mut url = address.url.clone();
    for _ in 0..=MAX_REDIRECTS {
        let sent = client.get(url.clone()).headers(headers.clone()).send().await;
        let answer = sent.map_err(|error| describe_error(&error))?;
        let status = answer.status();
        let next = answer.headers().get(LOCATION).and_then(|place| place.to_str().ok());
        let Some(next) = next.filter(|_| status.is_redirection()) else {
            return read_page(answer, url).await;
        };
        let next = url.join(next).map_err(|error| format!("it leads to an address that is none: {error}"))?;
        let target = WebAddress::new(next)?;
        if target.host != address.host {
            return Err(format!("it leads to {}; fetch that if it is what you need", target.url));
        }
        if url.scheme() == "https" && target.url.scheme() != "https" {
            // A key in the headers would be sent unencrypted.
            return Err(format!("it leads to {}, which is not encrypted", target.url));
        }
        url = target.url;
    }
    Err(format!("it leads on more than {MAX_REDIRECTS} times"))
}

async fn read_page(mut answer: reqwest::Response, url: Url) -> Result<Page, String> {
    let header = |name| answer.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let content_type = header(CONTENT_TYPE).unwrap_or_default();
    let length = header(CONTENT_LENGTH).and_then(|length| length.parse::<usize>().ok());
    let mut parts = content_type.split(';').map(str::trim);
    let media_type = parts.next().unwrap_or_default().to_ascii_lowercase();
    let charset = parts.find_map(|part| {
        let (name, value) = part.split_once('=')?;
        name.eq_ignore_ascii_case("charset").then(|| value.trim_matches('"').to_ascii_lowercase())
    });
    let status = answer.status().as_u16();
    let mut body = Vec::with_capacity(length.unwrap_or(0).min(MAX_BODY_BYTES));
    let mut cut = false;
    while let Some(chunk) = answer.chunk().await.map_err(|error| describe_error(&error))? {
        let room = MAX_BODY_BYTES.saturating_sub(body.len());
        body.extend_from_slice(chunk.get(..room.min(chunk.len())).unwrap_or_default());
        if chunk.len() > room {
            cut = true;
            break;
        }
    }
    Ok(Page { status, media_type, charset, body, cut, url })
}

fn build_client(proxy: &str) -> Result<reqwest::Client, String> {
    // Needed for plain addresses, too, which usually redirect to https. Without certificates on
    // this machine the connection fails with a message.
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let proxy = reqwest::Proxy::all(format!("http://{proxy}")).map_err(|error| error.to_string())?;
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .http1_only()
        .no_proxy()
        .proxy(proxy)
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .pool_max_idle_per_host(0)
        .build()
        .map_err(|error| error.to_string())
}

/// Describes an error and its causes, without the address, which may contain a key.
fn describe_error(error: &reqwest::Error) -> String {
    let mut causes = Vec::new();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        causes.push(inner.to_string());
        cause = inner.source();
    }
    causes.pop().unwrap_or_else(|| "the request failed".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_web_addresses_of_named_hosts_are_fetched() {
        let cases = [
            ("https://Docs.rs/serde#x", Ok("https://docs.rs/serde")),
            ("docs.rs/serde", Ok("https://docs.rs/serde")),
            ("http://example.com:80/", Ok("http://example.com/")),
            ("ftp://example.com", Err("only http and https")),
            ("file:///etc/passwd", Err("only http and https")),
            ("https://me:secret@example.com", Err("a name or a password")),
            ("https://example.com:8443", Err("only the usual ports")),
            ("http://127.0.0.1/", Err("reached by their names")),
            ("http://[::1]/", Err("reached by their names")),
            ("http://2130706433/", Err("reached by their names")),
            ("https://", Err("is no web address")),
        ];
        for (given, expected) in cases {
            let parsed = WebAddress::parse(given).map(|address| address.url.to_string());
            match (parsed, expected) {
                (Ok(url), Ok(expected)) => assert_eq!(url, expected, "{given}"),
                (Err(why), Err(expected)) => assert!(why.contains(expected), "{given}: {why}"),
                (parsed, expected) => panic!("{given}: {parsed:?}, not {expected:?}"),
            }
        }
        assert!(WebAddress::parse(&"x".repeat(3_000)).unwrap_err().contains("3000 bytes"));
    }
}
