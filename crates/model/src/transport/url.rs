//! The URLs of requests, and their form for people and recordings.

use std::net::IpAddr;

use reqwest::Url;

use crate::Wire;

/// Returns a URL in the form for people: without user, password, query and fragment, which may hold
/// secrets.
pub(crate) fn display_url(text: &str) -> String {
    if let Ok(mut url) = Url::parse(text)
        && url.set_username("").is_ok()
        && url.set_password(None).is_ok()
    {
        url.set_query(None);
        url.set_fragment(None);
        return url.as_str().trim_end_matches('/').to_owned();
    }
    let text = text.split(['?', '#']).next().unwrap_or_default();
    text.rsplit_once('@').map_or(text, |(_, rest)| rest).to_owned()
}

/// Returns the scheme that a base URL most likely lacks, such as `http` for `127.0.0.1:8080/v1`;
/// `None` for a URL with a scheme. A URL with a port or an address most likely means a server
/// without certificates.
pub(crate) fn guess_scheme(text: &str) -> Option<&'static str> {
    if text.contains("://") {
        return None;
    }
    let url = Url::parse(&format!("http://{text}")).ok()?;
    let host = url.host_str().filter(|host| !host.is_empty())?;
    let is_local = is_loopback(host) || host.parse::<IpAddr>().is_ok() || url.port().is_some();
    Some(if is_local { "http" } else { "https" })
}

/// Returns the path and query of a URL: the part that a replay compares, because hosts and ports
/// differ from run to run.
pub(crate) fn path_and_query(text: &str) -> String {
    match Url::parse(text) {
        Ok(url) => url.query().map_or(url.path().to_owned(), |query| format!("{}?{query}", url.path())),
        Err(_) => text.to_owned(),
    }
}

/// Joins a base URL and a codec's path, so that each form of base URL that people paste works.
///
/// A path begins with the version of the protocol (`/v1/…`). The version is omitted if the base URL
/// has one already: as its last segment, or, for the two OpenAI protocols, anywhere in its path,
/// because their gateways put it in the middle (`…/v1beta/openai`). The base URL's query is kept.
pub(crate) fn join_url(wire: Wire, base: &Url, path: &str) -> String {
    let (path, query) = match path.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (path, None),
    };
    let relative = path.trim_start_matches('/');
    let (version, unversioned) = match relative.split_once('/') {
        Some((first, rest)) if is_version(first) => (first, rest),
        _ => ("v1", relative),
    };
    let base_path = base.path().trim_end_matches('/');
    let mut segments = base_path.split('/').filter(|segment| !segment.is_empty());
    let has_version = match wire {
        Wire::Chat | Wire::Responses => segments.any(is_version),
        Wire::Anthropic | Wire::Gemini => segments.next_back().is_some_and(is_version),
    };
    let mut url = base.clone();
    if has_version {
        url.set_path(&format!("{base_path}/{unversioned}"));
    } else {
        url.set_path(&format!("{base_path}/{version}/{unversioned}"));
    }
    let queries: Vec<&str> = base.query().into_iter().chain(query).filter(|part| !part.is_empty()).collect();
    url.set_query(if queries.is_empty() { None } else { Some(queries.join("&")) }.as_deref());
    url.set_fragment(None);
    url.into()
}

/// Returns true for a version such as `v1`, `v4`, `v1beta` or `v1beta2`.
fn is_version(segment: &str) -> bool {
    let mut bytes = segment.bytes();
    bytes.next() == Some(b'v')
        && bytes.next().is_some_and(|byte| byte.is_ascii_digit())
        && bytes.all(|byte| byte.is_ascii_alphanumeric())
}

/// Returns true if a host names this machine, so that neither a look-up nor a proxy is needed.
pub(crate) fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare.eq_ignore_ascii_case("localhost")
        || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_base_url_joins_with_a_path() {
        use Wire::{Anthropic, Chat, Gemini, Responses};
        let chat = "/v1/chat/completions";
        let messages = "/v1/messages";
        let cases = [
            (Anthropic, "https://api.anthropic.com", messages, "https://api.anthropic.com/v1/messages"),
            (Anthropic, "https://api.anthropic.com/v1/", messages, "https://api.anthropic.com/v1/messages"),
            (
                Anthropic,
                "https://gw.test/v1/acct/anthropic",
                messages,
                "https://gw.test/v1/acct/anthropic/v1/messages",
            ),
            (Chat, "http://127.0.0.1:11434", chat, "http://127.0.0.1:11434/v1/chat/completions"),
            (Chat, "http://127.0.0.1:11434/v1", chat, "http://127.0.0.1:11434/v1/chat/completions"),
            (
                Chat,
                "http://127.0.0.1:11434/v1",
                "/chat/completions",
                "http://127.0.0.1:11434/v1/chat/completions",
            ),
            (Chat, "https://api.z.ai/api/paas/v4", chat, "https://api.z.ai/api/paas/v4/chat/completions"),
            (Chat, "https://g.test/v1beta/openai/", chat, "https://g.test/v1beta/openai/chat/completions"),
            (
                Chat,
                "https://x.test/openai/v1?api-version=1",
                chat,
                "https://x.test/openai/v1/chat/completions?api-version=1",
            ),
            (Responses, "https://api.openai.com/v1", "/v1/responses", "https://api.openai.com/v1/responses"),
            (
                Gemini,
                "https://g.test",
                "/v1beta/models/m:streamGenerateContent?alt=sse",
                "https://g.test/v1beta/models/m:streamGenerateContent?alt=sse",
            ),
            (
                Gemini,
                "https://g.test/v1beta?x=1",
                "/v1beta/models/m:streamGenerateContent?alt=sse",
                "https://g.test/v1beta/models/m:streamGenerateContent?x=1&alt=sse",
            ),
        ];
        for (wire, base, path, expected) in cases {
            assert_eq!(join_url(wire, &Url::parse(base).unwrap(), path), expected, "{wire} {base}");
        }
    }

    #[test]
    fn a_shown_url_has_no_secret() {
        let cases = [
            ("https://user:pass@host.test:8/v1/x?key=abc#frag", "https://host.test:8/v1/x"),
            ("https://host.test", "https://host.test"),
            ("http://a@b@host/p@q", "http://host/p@q"),
            ("nonsense?key=abc", "nonsense"),
            ("https://user:pass@host:99999/v1", "host:99999/v1"),
        ];
        for (url, expected) in cases {
            assert_eq!(display_url(url), expected);
        }
        assert_eq!(path_and_query("https://u:p@host:1/v1/x?alt=sse"), "/v1/x?alt=sse");
        assert_eq!(path_and_query("https://host"), "/");
    }

    #[test]
    fn a_missing_scheme_is_found() {
        let cases = [
            ("127.0.0.1:18101", Some("http")),
            ("localhost:8080/v1", Some("http")),
            ("[::1]:8080", Some("http")),
            ("10.0.0.7/v1", Some("http")),
            ("gpu.lan:8000", Some("http")),
            ("api.example.com/v1", Some("https")),
            ("https://api.example.com/v1", None),
            ("ftp://api.example.com", None),
            ("", None),
            ("not a url", None),
        ];
        for (text, expected) in cases {
            assert_eq!(guess_scheme(text), expected, "{text}");
        }
    }

    #[test]
    fn loopback_hosts_are_recognized() {
        for host in ["localhost", "LOCALHOST", "127.0.0.1", "127.8.9.1", "[::1]", "::1"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["localhost.example.com", "10.0.0.1", "", "[::2]"] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
